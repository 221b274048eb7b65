//! Edits of characters: which are legal, and what a text under attack looks like.
//!
//! Paper: HotFlip (Ebrahimi et al. 2018), section 2. A new word must not be a known one; no slot is edited twice;
//! words of one character are not deleted; padding, the unknown character and white space are never put in.
//! A slot that was edited moves with the characters around it.

use arrow::array::StringArray;
use nn::Stream;
use nn::batch::Sequence;

use crate::Failure;
use crate::contract::description::Param;
use crate::kinds::attack::context::AttackContext;
use crate::kinds::attack::edit::{Change, Edit};
use crate::kinds::attack::known_words::{KnownWords, spelt};

/// How many edits are made before the model is asked.
pub const MODE: Param = Param::choice(
    "mode",
    &["search", "one-shot"],
    "search (edit by edit, until the goal is reached) or one-shot (all edits of the budget at once).",
);
/// How many edits a row may have.
pub const BUDGET: Param = Param::float(
    "budget",
    0.1,
    (1e-6, 1.0),
    "The maximum edits of a row, as a fraction of its characters; rounded down, and at least 1.",
);
/// How sure the model must be of the wrong class.
pub const CONFIDENCE: Param = Param::float(
    "confidence",
    0.0,
    (0.0, 1.0),
    "The least probability of the wrong class that makes a success; 0 = any. Lower confidences are recorded on the way, in the output `by_confidence`.",
);
/// What may be done to a word.
pub struct Spelling<'a> {
    /// The characters that may be put in.
    pub letters: Vec<u32>,
    /// The padding character.
    pub pad: u32,
    /// Whether the last slot of a word stays padding.
    pub keep_last_pad: bool,
    known: &'a KnownWords,
}

impl<'a> Spelling<'a> {
    /// The rules of an attack of that name.
    pub fn new(
        context: &AttackContext<'a>,
        attack: &str,
        keep_last_pad: bool,
    ) -> Result<Spelling<'a>, Failure> {
        Ok(Spelling {
            letters: letters(context.words(attack)?, context.special),
            pad: context.pad,
            keep_last_pad,
            known: context.known_words(attack)?,
        })
    }

    /// Whether a change makes a word that is not known. `word` has no padding.
    pub fn is_new(&self, word: &[u32], slot: usize, change: Change<u32>) -> bool {
        let mut new = Vec::with_capacity(word.len() + 1);
        new.extend_from_slice(&word[..slot]);
        new.extend(change.after());
        let rest = slot + usize::from(change.before().is_some());
        new.extend_from_slice(word.get(rest..).unwrap_or_default());
        !self.known.contains(&new)
    }

    /// Whether an edit of the text as it is now makes a word that is not known.
    pub fn allows(&self, text: &Sequence, edit: &Edit) -> bool {
        let (
            Edit::Character {
                position,
                slot,
                change,
                ..
            },
            Sequence::Chars { width, ids },
        ) = (edit, text)
        else {
            return false;
        };
        let word = spelt(&ids[position * width..][..*width], self.pad);
        self.is_new(word, *slot, *change)
    }

    /// Whether a word of `len` characters in a grid of `width` has room for another.
    pub fn has_room(&self, len: usize, width: usize) -> bool {
        len + usize::from(self.keep_last_pad) < width
    }
}

/// Characters but padding, unknown and white space.
fn letters(symbols: &StringArray, special: [u32; 2]) -> Vec<u32> {
    let all = symbols.iter().zip(0_u32..);
    let written = all.filter(|(text, id)| {
        let blank = text.is_none_or(|text| text.chars().all(char::is_whitespace));
        !special.contains(id) && !blank
    });
    written.map(|(_, id)| id).collect()
}

/// A text of characters with the slots that were edited.
pub struct GridText<'t> {
    /// Slots of a word.
    pub width: usize,
    ids: &'t [u32],
    edited: Vec<bool>,
    pad: u32,
}

/// A word of it.
#[derive(Clone, Copy)]
pub struct GridWord<'t> {
    /// Which word.
    pub position: usize,
    /// Its characters, without padding.
    pub letters: &'t [u32],
    /// Which slots were edited, padding included.
    pub edited: &'t [bool],
}

impl<'t> GridText<'t> {
    /// A text, and the edits that led to it.
    pub fn new(text: &'t Sequence, edits: &[Edit], pad: u32) -> Result<GridText<'t>, Failure> {
        let Sequence::Chars { width, ids } = text else {
            return Err(Failure::new(
                "this attack changes characters, and these rows are not words of characters",
            )
            .help("connect the output `tokens` of a tokenize stage with scheme = \"char-grid\""));
        };
        let mut edited = vec![false; ids.len()];
        for edit in edits {
            if let Edit::Character {
                position,
                slot,
                change,
                ..
            } = edit
            {
                mark(&mut edited[position * width..][..*width], *slot, *change);
            }
        }
        Ok(GridText {
            width: *width,
            ids,
            edited,
            pad,
        })
    }

    /// Its words, but those that are all padding.
    pub fn words(&self) -> impl Iterator<Item = GridWord<'_>> {
        let words = self.ids.chunks(self.width);
        let words = words.zip(self.edited.chunks(self.width)).enumerate();
        let words = words.map(|(position, (ids, edited))| GridWord {
            position,
            letters: spelt(ids, self.pad),
            edited,
        });
        words.filter(|word| !word.letters.is_empty())
    }
}

/// An edit of a character.
pub fn edit(position: usize, slot: usize, change: Change<u32>, pad: u32) -> Edit {
    Edit::Character {
        position,
        slot,
        change,
        pad,
    }
}

/// What an edit does to the marks of a word: they move with its characters, and its own slot is marked.
fn mark(edited: &mut [bool], slot: usize, change: Change<u32>) {
    match change {
        Change::Replace { .. } => {}
        Change::Insert { .. } => edited[slot..].rotate_right(1),
        Change::Delete { .. } => {
            edited[slot..].rotate_left(1);
            if let Some(last) = edited.last_mut() {
                *last = false;
            }
        }
    }
    edited[slot] = true;
}

/// How many slots of a word an edit really changes: equal neighbours that move into each other's place do not count.
pub fn slots_changed(word: &[u32], slot: usize, change: Change<u32>) -> usize {
    let moved = |from: usize| {
        let pairs = word[from..].windows(2);
        pairs.filter(|pair| pair[0] != pair[1]).count()
    };
    match change {
        Change::Replace { old, new } => usize::from(old != new),
        // Padding is unlike any character: the last one always moves into another's place.
        Change::Insert { .. } if slot == word.len() => 1,
        Change::Insert { new } => usize::from(new != word[slot]) + moved(slot) + 1,
        Change::Delete { .. } => moved(slot) + 1,
    }
}

/// The edits that a text of this many characters may have: a share of them, rounded down, and at least one.
pub fn budget(characters: usize, share: f64) -> usize {
    ((characters as f64 * share) as usize).max(1)
}

/// How many characters a text has, padding not counted.
pub fn characters_in(text: &Sequence, pad: u32) -> usize {
    match text {
        Sequence::Chars { ids, .. } => ids.iter().filter(|id| **id != pad).count(),
        _ => 0,
    }
}

/// How many slots the edits of a text changed, one after the other.
pub fn slots_used(original: &Sequence, edits: &[Edit], pad: u32) -> Result<usize, Failure> {
    let mut row = original.clone();
    let mut used = 0;
    for made in edits {
        if let (
            Edit::Character {
                position,
                slot,
                change,
                ..
            },
            Sequence::Chars { width, ids },
        ) = (made, &row)
        {
            let word = spelt(&ids[position * width..][..*width], pad);
            used += slots_changed(word, *slot, *change);
        }
        made.apply(&mut row)?;
    }
    Ok(used)
}

/// How often a flip is drawn before there is taken to be none: a text of known words only may have none.
const TRIES: u64 = 200;

/// A random legal flip: any slot that was not edited, any other character.
pub fn random_flip(text: &GridText<'_>, spelling: &Spelling<'_>, stream: &Stream) -> Option<Edit> {
    let open = |word: &GridWord<'_>| {
        let slots = 0..word.letters.len();
        slots.filter(|slot| !word.edited[*slot]).count()
    };
    let open: Vec<(GridWord<'_>, usize)> = text.words().map(|word| (word, open(&word))).collect();
    let slots: usize = open.iter().map(|(_, count)| count).sum();
    if slots == 0 || spelling.letters.is_empty() {
        return None;
    }
    (0..TRIES).find_map(|k| {
        let mut at = stream.below(2 * k, slots);
        let (word, _) = open.iter().find(|(_, count)| {
            let here = at < *count;
            at -= if here { 0 } else { *count };
            here
        })?;
        let mut free = (0..word.letters.len()).filter(|slot| !word.edited[*slot]);
        let slot = free.nth(at)?;
        let old = word.letters[slot];
        let new = spelling.letters[stream.below(2 * k + 1, spelling.letters.len())];
        let change = Change::Replace { old, new };
        let legal = new != old && spelling.is_new(word.letters, slot, change);
        legal.then(|| edit(word.position, slot, change, text.pad))
    })
}
