//! One change of a row: a word, a character or a number is replaced, inserted or deleted.

use ndarray::Array2;
use nn::batch::Sequence;
use serde::{Deserialize, Serialize};

use crate::Failure;

/// What becomes of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Change<T> {
    /// Another takes its place.
    Replace {
        /// What was there.
        old: T,
        /// What is there now.
        new: T,
    },
    /// It is put before what is there.
    Insert {
        /// What is there now.
        new: T,
    },
    /// It is taken out.
    Delete {
        /// What was there.
        old: T,
    },
}

impl<T> Change<T> {
    /// The name of the operation, as tables have it.
    pub fn operation(&self) -> &'static str {
        match self {
            Change::Replace { .. } => "replace",
            Change::Insert { .. } => "insert",
            Change::Delete { .. } => "delete",
        }
    }

    /// What was there, if something was.
    pub fn before(&self) -> Option<T>
    where
        T: Clone,
    {
        match self {
            Change::Replace { old, .. } | Change::Delete { old } => Some(old.clone()),
            Change::Insert { .. } => None,
        }
    }

    /// What is there now, if something is.
    pub fn after(&self) -> Option<T>
    where
        T: Clone,
    {
        match self {
            Change::Replace { new, .. } | Change::Insert { new } => Some(new.clone()),
            Change::Delete { .. } => None,
        }
    }

    /// The same change of what they stand for.
    pub fn map<U>(self, f: impl Fn(T) -> U) -> Change<U> {
        match self {
            Change::Replace { old, new } => Change::Replace {
                old: f(old),
                new: f(new),
            },
            Change::Insert { new } => Change::Insert { new: f(new) },
            Change::Delete { old } => Change::Delete { old: f(old) },
        }
    }

    /// The change that undoes this one.
    pub fn inverse(self) -> Change<T> {
        match self {
            Change::Replace { old, new } => Change::Replace { old: new, new: old },
            Change::Insert { new } => Change::Delete { old: new },
            Change::Delete { old } => Change::Insert { new: old },
        }
    }
}

/// A change and its place. Places are those of the row at the time of the edit: an inserted word moves the ones
/// behind it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Edit {
    /// Of a token of a text.
    Word {
        /// Which token.
        position: usize,
        /// What becomes of it.
        change: Change<u32>,
    },
    /// Of a character of a word. The word keeps its width: padding is pushed out or moves in at its end.
    Character {
        /// Which word.
        position: usize,
        /// Which character of it.
        slot: usize,
        /// What becomes of it.
        change: Change<u32>,
        /// The padding character.
        pad: u32,
    },
    /// Of a number of a signal. An inserted or deleted number is a step of its own, of a signal with one channel.
    Number {
        /// Which step.
        position: usize,
        /// Which number of it.
        slot: usize,
        /// What becomes of it.
        change: Change<f32>,
    },
}

impl Edit {
    /// One word for another.
    pub fn replace(position: usize, old: u32, new: u32) -> Edit {
        Edit::Word {
            position,
            change: Change::Replace { old, new },
        }
    }

    /// The replacements that turn one text into another of the same length.
    pub fn replacements(old: &[u32], new: &[u32]) -> Vec<Edit> {
        let pairs = old.iter().zip(new).enumerate();
        let changed = pairs.filter(|(_, (old, new))| old != new);
        changed
            .map(|(place, (old, new))| Edit::replace(place, *old, *new))
            .collect()
    }

    /// Which word, or which step.
    pub fn position(&self) -> usize {
        match self {
            Edit::Word { position, .. }
            | Edit::Character { position, .. }
            | Edit::Number { position, .. } => *position,
        }
    }

    /// Makes the change. A row that is not as the edit says is refused: nothing is changed without a record of what
    /// it was.
    pub fn apply(&self, row: &mut Sequence) -> Result<(), Failure> {
        let done = match (*self, row) {
            (Edit::Word { position, change }, Sequence::Tokens(tokens)) => {
                in_list(tokens, position, change)
            }
            (
                Edit::Character {
                    position,
                    slot,
                    change,
                    pad,
                },
                Sequence::Chars { width, ids },
            ) => {
                let word = ids.get_mut(position * *width..(position + 1) * *width);
                word.and_then(|word| in_word(word, slot, change, pad))
            }
            (
                Edit::Number {
                    position,
                    slot,
                    change,
                },
                Sequence::Vectors(rows),
            ) => in_signal(rows, position, slot, change),
            _ => None,
        };
        done.ok_or_else(|| Failure::new(format!("the edit {self:?} does not fit its row")))
    }

    /// The edit that undoes this one.
    pub fn inverse(&self) -> Edit {
        let mut edit = *self;
        match &mut edit {
            Edit::Word { change, .. } | Edit::Character { change, .. } => {
                *change = change.inverse();
            }
            Edit::Number { change, .. } => *change = change.inverse(),
        }
        edit
    }
}

/// Numbers can be replaced anywhere; whole steps come and go only where they are one number.
fn in_signal(
    rows: &mut Array2<f32>,
    position: usize,
    slot: usize,
    change: Change<f32>,
) -> Option<()> {
    let dim = rows.ncols();
    let replaces = matches!(change, Change::Replace { .. });
    if slot >= dim || !(replaces || dim == 1) {
        return None;
    }
    let mut numbers: Vec<f32> = rows.iter().copied().collect();
    in_list(&mut numbers, position * dim + slot, change)?;
    *rows = Array2::from_shape_vec((numbers.len() / dim, dim), numbers).ok()?;
    Some(())
}

fn in_list<T: Copy + PartialEq>(list: &mut Vec<T>, at: usize, change: Change<T>) -> Option<()> {
    if let Some(old) = change.before()
        && *list.get(at)? != old
    {
        return None;
    }
    match change {
        Change::Replace { new, .. } => list[at] = new,
        Change::Insert { new } if at <= list.len() => list.insert(at, new),
        Change::Insert { .. } => return None,
        Change::Delete { .. } => drop(list.remove(at)),
    }
    Some(())
}

fn in_word(word: &mut [u32], slot: usize, change: Change<u32>, pad: u32) -> Option<()> {
    let there = *word.get(slot)?;
    if change.before().is_some_and(|old| old != there) {
        return None;
    }
    match change {
        Change::Replace { new, .. } => word[slot] = new,
        Change::Insert { new } => {
            // A character that would be pushed out would be lost.
            if *word.last()? != pad {
                return None;
            }
            word[slot..].rotate_right(1);
            word[slot] = new;
        }
        Change::Delete { .. } => {
            word[slot..].rotate_left(1);
            *word.last_mut()? = pad;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAD: u32 = 0;

    fn change() -> impl Strategy<Value = (usize, Change<u32>)> {
        let kind = prop_oneof![
            (1..9u32, 1..9u32).prop_map(|(old, new)| Change::Replace { old, new }),
            (1..9u32).prop_map(|new| Change::Insert { new }),
            (1..9u32).prop_map(|old| Change::Delete { old }),
        ];
        (0..6usize, kind)
    }

    /// The same change, of what is there.
    fn fitting(change: Change<u32>, there: Option<u32>) -> Change<u32> {
        match (change, there) {
            (Change::Replace { new, .. }, Some(old)) => Change::Replace { old, new },
            (Change::Delete { .. }, Some(old)) => Change::Delete { old },
            (change, _) => change,
        }
    }

    proptest! {
        #[test]
        fn an_edit_of_words_is_undone_by_its_inverse(
            text in prop::collection::vec(1..9u32, 0..6),
            (position, change) in change(),
        ) {
            let change = fitting(change, text.get(position).copied());
            let edit = Edit::Word { position, change };
            let mut row = Sequence::Tokens(text.clone());
            let fits = position < text.len() || position == text.len() && change.before().is_none();
            prop_assert_eq!(edit.apply(&mut row).is_ok(), fits);
            if fits {
                let len = text.len() as i64 + i64::from(change.after().is_some())
                    - i64::from(change.before().is_some());
                prop_assert_eq!(row.len() as i64, len);
                edit.inverse().apply(&mut row).unwrap();
            }
            prop_assert_eq!(row, Sequence::Tokens(text));
        }

        #[test]
        fn an_edit_of_characters_stays_in_its_word(
            words in prop::collection::vec(prop::collection::vec(1..9u32, 1..5), 1..4),
            position in 0..4usize,
            (slot, change) in change(),
        ) {
            const WIDTH: usize = 5;
            let grid = words.iter().flat_map(|word| {
                word.iter().copied().chain(std::iter::repeat(PAD)).take(WIDTH)
            });
            let before = Sequence::Chars { width: WIDTH, ids: grid.collect() };
            let there = words.get(position).and_then(|word| word.get(slot).copied());
            let edit = Edit::Character { position, slot, change: fitting(change, there), pad: PAD };
            let mut row = before.clone();
            if edit.apply(&mut row).is_err() {
                prop_assert_eq!(row, before);
                return Ok(());
            }
            let (Sequence::Chars { ids: old, .. }, Sequence::Chars { ids: new, .. }) =
                (&before, &row)
            else {
                panic!("another kind of row");
            };
            prop_assert_eq!(old.len(), new.len());
            let other = |k: &usize| k / WIDTH != position;
            for k in (0..old.len()).filter(other) {
                prop_assert_eq!(old[k], new[k]);
            }
            edit.inverse().apply(&mut row).unwrap();
            prop_assert_eq!(row, before);
        }
    }

    #[test]
    fn an_edit_of_something_else_is_refused() {
        let mut row = Sequence::Tokens(vec![4, 5]);
        let error = Edit::replace(1, 4, 6).apply(&mut row).unwrap_err();
        assert_eq!(
            error.message,
            "the edit Word { position: 1, change: Replace { old: 4, new: 6 } } does not fit its row"
        );
        let mut signal = Sequence::of_rows(2, vec![0.0, 1.0, 2.0, 3.0]);
        let change = Change::Replace { old: 3.0, new: 3.5 };
        let edit = Edit::Number {
            position: 1,
            slot: 1,
            change,
        };
        edit.apply(&mut signal).unwrap();
        let moved = vec![0.0, 1.0, 2.0, 3.5];
        assert_eq!(signal, Sequence::of_rows(2, moved));
        assert!(Edit::replace(0, 0, 1).apply(&mut signal).is_err());
    }
}
