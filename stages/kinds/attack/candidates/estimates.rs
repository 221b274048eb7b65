//! What an edit of a character does to the loss, estimated from one gradient (HotFlip, section 2).
//!
//! With `g` the gradient at the vector of slot `j` of a word, `D_j(b) = e_b . g` is the derivative with respect to the
//! one-hot component `b`. A word is `a_0 … a_(L-1)`, then padding `a_L`.
//!
//! ```text
//! flip j to b:    s = D_j(b) - D_j(a_j)
//! insert b at j:  s = D_j(b) - D_j(a_j) + sum over j' = j+1 … L of D_j'(a_(j'-1)) - D_j'(a_j')
//! delete j:       s = sum over j' = j … L-1 of D_j'(a_(j'+1)) - D_j'(a_j')
//! ```
//!
//! divided by `sqrt(2 N)`, with `N` the slots that really change. All `D` of a text are one matrix product; the best
//! edits are kept in running order, and only what would be kept is looked up among the known words.

use ndarray::{Array2, ArrayView2};
use nn::numeric::gemm::{Into, Mat, gemm};

use super::characters::{GridText, GridWord, Spelling, edit, slots_changed};
use crate::kinds::attack::edit::{Change, Edit};

/// Which edits are estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// A character becomes another.
    pub flip: bool,
    /// A character is inserted.
    pub insert: bool,
    /// A character is deleted.
    pub delete: bool,
}

/// An edit and what it is expected to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The expected change of the loss.
    pub raw: f64,
    /// The same divided by `sqrt(2 N)`.
    pub normalised: f64,
    /// `N`, the slots that change.
    pub slots: usize,
    /// The edit.
    pub edit: Edit,
}

/// The vectors of characters, and the rules.
pub struct Estimator<'a> {
    /// What may be done.
    pub spelling: Spelling<'a>,
    /// Which edits.
    pub operations: Operations,
    vectors: ArrayView2<'a, f32>,
}

/// The derivatives of a text, a row for each slot up to the first padding of each word.
pub struct Derivatives<'t> {
    words: Vec<GridWord<'t>>,
    /// Where the rows of each word begin.
    starts: Vec<usize>,
    rows: Vec<f32>,
    characters: usize,
}

impl<'a> Estimator<'a> {
    /// `vectors` has a row for each character.
    pub fn new(
        spelling: Spelling<'a>,
        operations: Operations,
        vectors: ArrayView2<'a, f32>,
    ) -> Estimator<'a> {
        Estimator {
            spelling,
            operations,
            vectors,
        }
    }

    /// All `D` of a text, from the gradient with a row for each slot.
    pub fn derivatives<'t>(
        &self,
        text: &'t GridText<'_>,
        gradient: &Array2<f32>,
    ) -> Derivatives<'t> {
        let (characters, dim) = self.vectors.dim();
        let words: Vec<GridWord<'t>> = text.words().collect();
        let (mut starts, mut taken) = (Vec::with_capacity(words.len()), Vec::new());
        for word in &words {
            starts.push(taken.len() / dim);
            let from = word.position * text.width;
            let slots = (word.letters.len() + 1).min(text.width);
            for slot in from..from + slots {
                taken.extend(gradient.row(slot));
            }
        }
        let count = taken.len() / dim;
        let mut rows = vec![0.0; count * characters];
        let vectors = self.vectors.as_standard_layout();
        let vectors = vectors.as_slice().unwrap_or_default();
        let table = Mat::new(vectors, characters, dim).t();
        gemm(Into::Set, &mut rows, Mat::new(&taken, count, dim), table);
        Derivatives {
            words,
            starts,
            rows,
            characters,
        }
    }

    /// The best legal edits by their normalised scores, at most `most` of them, the best first. Edits that change more
    /// than `affordable` slots are left out.
    pub fn best(
        &self,
        text: &GridText<'_>,
        gradient: &Array2<f32>,
        most: usize,
        affordable: usize,
    ) -> Vec<Estimate> {
        let all = self.derivatives(text, gradient);
        let mut best = Best::new(most, affordable);
        for (n, word) in all.words.iter().enumerate() {
            let d = |slot: usize| all.row(n, slot);
            if self.operations.flip {
                for slot in 0..word.letters.len() {
                    self.flips(word, slot, d(slot), &mut best);
                }
            }
            if self.operations.insert && self.spelling.has_room(word.letters.len(), text.width) {
                self.inserts(word, d, &mut best);
            }
            if self.operations.delete && word.letters.len() > 1 {
                self.deletes(word, d, &mut best);
            }
        }
        best.list
    }

    /// The best legal flip of each slot of which there is one.
    pub fn best_flips(&self, text: &GridText<'_>, gradient: &Array2<f32>) -> Vec<Estimate> {
        let all = self.derivatives(text, gradient);
        let mut found = Vec::new();
        for (n, word) in all.words.iter().enumerate() {
            for slot in 0..word.letters.len() {
                let mut best = Best::new(1, usize::MAX);
                self.flips(word, slot, all.row(n, slot), &mut best);
                found.extend(best.list);
            }
        }
        found
    }

    fn flips(&self, word: &GridWord<'_>, slot: usize, d: &[f32], best: &mut Best) {
        if word.edited[slot] || best.affordable == 0 {
            return;
        }
        let old = word.letters[slot];
        let (here, one) = (d[old as usize], Changed::new(1));
        for &new in &self.spelling.letters {
            // A flip to itself gains 0, and is none.
            if new != old {
                let change = Change::Replace { old, new };
                let raw = f64::from(d[new as usize] - here);
                best.offer(self, word, slot, change, raw, one);
            }
        }
    }

    fn inserts<'d>(&self, word: &GridWord<'_>, d: impl Fn(usize) -> &'d [f32], best: &mut Best) {
        let letters = word.letters;
        let at = |slot: usize| letters.get(slot).copied().unwrap_or(self.spelling.pad);
        // What moves to the right of the slot: how much that gains, and in how many slots.
        let (mut gain, mut moved) = (0.0, 0);
        for slot in (0..=letters.len()).rev() {
            if slot < letters.len() && at(slot) != at(slot + 1) {
                let row = d(slot + 1);
                gain += f64::from(row[at(slot) as usize] - row[at(slot + 1) as usize]);
                moved += 1;
            }
            if word.edited[slot] || moved + 1 > best.affordable {
                continue;
            }
            let (row, there, changed) = (d(slot), at(slot), Changed::new(moved + 1));
            for &new in &self.spelling.letters {
                // Beside its like it is the same text as behind it.
                if new != there {
                    let raw = f64::from(row[new as usize] - row[there as usize]) + gain;
                    best.offer(self, word, slot, Change::Insert { new }, raw, changed);
                }
            }
        }
    }

    fn deletes<'d>(&self, word: &GridWord<'_>, d: impl Fn(usize) -> &'d [f32], best: &mut Best) {
        let letters = word.letters;
        let at = |slot: usize| letters.get(slot).copied().unwrap_or(self.spelling.pad);
        let (mut gain, mut moved) = (0.0, 0);
        for slot in (0..letters.len()).rev() {
            // Of equal neighbours the last is deleted: the text is the same.
            if at(slot) == at(slot + 1) {
                continue;
            }
            let row = d(slot);
            gain += f64::from(row[at(slot + 1) as usize] - row[at(slot) as usize]);
            moved += 1;
            if !word.edited[slot] && moved <= best.affordable {
                let change = Change::Delete { old: at(slot) };
                best.offer(self, word, slot, change, gain, Changed::new(moved));
            }
        }
    }

    /// What one edit is expected to do, by the same sums.
    pub fn estimate(
        &self,
        text: &GridText<'_>,
        derivatives: &Derivatives<'_>,
        chosen: Edit,
    ) -> Option<Estimate> {
        let Edit::Character {
            position,
            slot,
            change,
            ..
        } = chosen
        else {
            return None;
        };
        let n = derivatives
            .words
            .iter()
            .position(|word| word.position == position)?;
        let letters = derivatives.words[n].letters;
        let at = |slot: usize| letters.get(slot).copied().unwrap_or(self.spelling.pad);
        let new = |k: usize| match change {
            Change::Replace { new, .. } | Change::Insert { new } if k == slot => new,
            Change::Insert { .. } => at(k - 1),
            Change::Delete { .. } => at(k + 1),
            Change::Replace { .. } => at(k),
        };
        let end = (letters.len() + 1).min(text.width);
        let mut raw = 0.0;
        for k in slot..end {
            let row = derivatives.row(n, k);
            raw += f64::from(row[new(k) as usize] - row[at(k) as usize]);
        }
        let slots = slots_changed(letters, slot, change);
        Some(Estimate {
            raw,
            normalised: raw / Changed::new(slots).root,
            slots,
            edit: chosen,
        })
    }
}

impl Derivatives<'_> {
    /// `D` of every character at a slot of the n-th word.
    fn row(&self, n: usize, slot: usize) -> &[f32] {
        &self.rows[(self.starts[n] + slot) * self.characters..][..self.characters]
    }
}

/// How many slots an edit changes.
#[derive(Clone, Copy)]
struct Changed {
    slots: usize,
    /// `sqrt(2 N)`: the distance between the texts as one-hot vectors.
    root: f64,
}

impl Changed {
    fn new(slots: usize) -> Changed {
        let root = (2.0 * slots.max(1) as f64).sqrt();
        Changed { slots, root }
    }
}

/// The best edits so far, the best first; of equals the one that came first.
struct Best {
    list: Vec<Estimate>,
    most: usize,
    affordable: usize,
    /// Scores up to this one are not kept.
    least: f64,
}

impl Best {
    fn new(most: usize, affordable: usize) -> Best {
        Best {
            list: Vec::with_capacity(most + 1),
            most,
            affordable,
            least: f64::NEG_INFINITY,
        }
    }

    #[inline]
    fn offer(
        &mut self,
        rules: &Estimator<'_>,
        word: &GridWord<'_>,
        slot: usize,
        change: Change<u32>,
        raw: f64,
        changed: Changed,
    ) {
        let normalised = raw / changed.root;
        if normalised > self.least && rules.spelling.is_new(word.letters, slot, change) {
            let edit = edit(word.position, slot, change, rules.spelling.pad);
            let place = self.list.partition_point(|e| e.normalised >= normalised);
            let estimate = Estimate {
                raw,
                normalised,
                slots: changed.slots,
                edit,
            };
            self.list.insert(place, estimate);
            self.list.truncate(self.most);
            if self.list.len() == self.most {
                self.least = self.list.last().map_or(f64::INFINITY, |e| e.normalised);
            }
        }
    }
}
