//! The listed edits of one row, made again from the table alone.

use std::collections::BTreeSet;

use nn::batch::Sequence;

use crate::tables::examples::{Examples, NEW, OLD, OPERATIONS, POSITIONS, SLOTS};

/// How ids are written in the table.
pub struct Symbols<'a> {
    /// From an id to its text.
    pub name: &'a dyn Fn(u32) -> Option<String>,
    /// The reverse.
    pub id: &'a dyn Fn(&str) -> Option<u32>,
    /// The padding.
    pub pad: u32,
}

/// What the edits of a row come to.
pub struct Edited {
    /// The row that they lead to.
    pub row: Sequence,
    /// How many there are.
    pub edits: usize,
    /// How many words they change: whole ones, and words with changed characters.
    pub words: usize,
    /// The ids that they put in.
    pub put_in: Vec<u32>,
}

/// Makes the edits of row `n`; or says which of them does not fit.
pub fn edited(
    table: &Examples<'_>,
    n: usize,
    original: &Sequence,
    symbols: &Symbols<'_>,
) -> Result<Edited, String> {
    let positions = table.ints(POSITIONS, n).unwrap_or_default();
    let slots = table.ints(SLOTS, n).unwrap_or_default();
    let operations = table.texts(OPERATIONS, n);
    let (old, new) = (table.texts(OLD, n), table.texts(NEW, n));
    let count = positions.len();
    if [slots.len(), operations.len(), old.len(), new.len()] != [count; 4] {
        return Err("lists of different lengths".to_owned());
    }
    // Tokens are one list, a grid is one for each word.
    let (width, mut lists) = match original {
        Sequence::Tokens(ids) => (None, vec![ids.clone()]),
        Sequence::Chars { width, ids } => {
            let words = ids.chunks(*width).map(<[u32]>::to_vec);
            (Some(*width), words.collect())
        }
        Sequence::Vectors(_) => return Err("edits of a signal".to_owned()),
    };
    let (mut put_in, mut words) = (Vec::new(), BTreeSet::new());
    for k in 0..count {
        let one = One {
            operation: &operations[k],
            position: usize::try_from(positions[k]).unwrap_or(usize::MAX),
            slot: usize::try_from(slots[k]).unwrap_or(usize::MAX),
            old: &old[k],
            new: &new[k],
        };
        let made = match width {
            None => one.make(lists.first_mut(), one.position, None, symbols),
            Some(_) => {
                let word = lists.get_mut(one.position);
                one.make(word, one.slot, Some(symbols.pad), symbols)
            }
        };
        put_in.extend(made.ok_or_else(|| one.described())?);
        words.insert(if width.is_none() { k } else { one.position });
    }
    let ids = lists.concat();
    Ok(Edited {
        row: match width {
            Some(width) => Sequence::Chars { width, ids },
            None => Sequence::Tokens(ids),
        },
        edits: count,
        words: words.len(),
        put_in,
    })
}

/// One listed edit.
struct One<'a> {
    operation: &'a str,
    position: usize,
    slot: usize,
    old: &'a str,
    new: &'a str,
}

impl One<'_> {
    /// Makes the edit in a list of ids, and gives the id that it puts in. `padded`: the list keeps its length,
    /// padding being pushed out or moving in at its end.
    fn make(
        &self,
        list: Option<&mut Vec<u32>>,
        at: usize,
        padded: Option<u32>,
        symbols: &Symbols<'_>,
    ) -> Option<Option<u32>> {
        let list = list?;
        if self.operation != "insert" && (symbols.name)(*list.get(at)?)? != self.old {
            return None;
        }
        match self.operation {
            "replace" => list[at] = (symbols.id)(self.new)?,
            "insert" if at <= list.len() => {
                list.insert(at, (symbols.id)(self.new)?);
                if let Some(pad) = padded {
                    (list.pop() == Some(pad)).then_some(())?;
                }
            }
            "delete" => {
                list.remove(at);
                list.extend(padded);
                return Some(None);
            }
            _ => return None,
        }
        Some(list.get(at).copied())
    }

    fn described(&self) -> String {
        let One {
            operation,
            position,
            slot,
            old,
            new,
        } = self;
        format!("{operation} `{old}` -> `{new}` at {position}, {slot}")
    }
}
