//! Examples, and the padded arrays that models take.
//!
//! A batch is time-major: number `t * items + b` belongs to step `t` of item `b`.

use crate::error::{Error, Result, same};
use crate::numeric::Real;
use ndarray::{Array2, Array3, CowArray, Ix2};

/// The length of every item of a batch.
pub type Lens = std::sync::Arc<[usize]>;

/// A sequence of any kind a model reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Sequence {
    /// Token ids.
    Tokens(Vec<u32>),
    /// (steps, dim): signals, pixels, perturbed embeddings.
    Vectors(Array2<f32>),
    /// Words of `width` character ids each, padded with the model's padding character.
    Chars {
        /// Characters in a word.
        width: usize,
        /// Words one after the other.
        ids: Vec<u32>,
    },
}

impl Sequence {
    /// Vectors of `dim` numbers, one after the other.
    ///
    /// # Panics
    /// Unless all vectors are whole.
    pub fn of_rows(dim: usize, data: Vec<f32>) -> Self {
        let steps = data.len() / dim.max(1);
        Sequence::Vectors(Array2::from_shape_vec((steps, dim), data).expect("whole vectors"))
    }

    /// Steps: tokens, rows or words.
    pub fn len(&self) -> usize {
        match self {
            Sequence::Tokens(ids) => ids.len(),
            Sequence::Vectors(rows) => rows.nrows(),
            Sequence::Chars { width, ids } => ids.len() / (*width).max(1),
        }
    }
    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Numbers in a step.
    fn width(&self) -> usize {
        match self {
            Sequence::Tokens(_) => 1,
            Sequence::Vectors(rows) => rows.ncols(),
            Sequence::Chars { width, .. } => *width,
        }
    }
}

/// What a model should predict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing is known.
    None,
    /// A class.
    Class(u32),
    /// A token at each step: the next words, a translation.
    Tokens(Vec<u32>),
}

/// A sequence with its target.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// What the model reads.
    pub input: Sequence,
    /// What it should predict.
    pub target: Target,
}

/// Inputs of a batch, padded to the longest.
#[derive(Clone, Debug, PartialEq)]
pub enum Input<T> {
    /// (time, items)
    Tokens(Vec<u32>),
    /// (time, items, dim)
    Vectors(Array3<T>),
    /// (time, items, width)
    Chars(Vec<u32>, usize),
}

/// Targets of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// Unknown.
    None,
    /// One class per item.
    Classes(Vec<u32>),
    /// (time, items), with their own lengths.
    Tokens(Vec<u32>, Lens),
}

/// States that a stateful model carries from one batch to the next: (hidden, cell) of each layer.
pub type Carry<T> = Vec<(Vec<T>, Vec<T>)>;

/// The two sequences of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What the model reads.
    Source,
    /// The target, or what was generated.
    Target,
}

/// A padded batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch<T> {
    /// What the model reads.
    pub input: Input<T>,
    /// The length of each item.
    pub lens: Lens,
    /// What it should predict.
    pub targets: Targets,
    /// States to start from instead of the model's own.
    pub carry: Option<Carry<T>>,
    /// The tokens that vectors stand for, (time, items), for models that also look at them: where the second text of
    /// a pair begins. Empty = unknown.
    pub tokens: Vec<u32>,
    /// What is added to the vectors that ids are read as, in their shape: perturbed embeddings. Empty = nothing.
    pub noise: Vec<T>,
}

impl<T: Real> Batch<T> {
    /// Pads examples of one kind.
    pub fn new(examples: &[&Example]) -> Result<Self> {
        let first = examples.first().ok_or(Error::Empty { what: "batch" })?;
        let lens: Lens = examples.iter().map(|e| e.input.len()).collect();
        let (time, width) = (lens.iter().copied().max().unwrap_or(0), first.input.width());
        if lens.contains(&0) {
            return Err(Error::Empty { what: "sequence" });
        }
        let mut ids: Vec<&[u32]> = Vec::new();
        let mut vectors: Vec<CowArray<'_, f32, Ix2>> = Vec::new();
        for e in examples {
            match (&first.input, &e.input) {
                (Sequence::Tokens(_), Sequence::Tokens(x))
                | (Sequence::Chars { .. }, Sequence::Chars { ids: x, .. }) => ids.push(x),
                (Sequence::Vectors(_), Sequence::Vectors(x)) => {
                    vectors.push(x.as_standard_layout());
                }
                _ => return Err(mixed("kind of sequence")),
            }
        }
        for e in examples {
            same("values per step", width, e.input.width())?;
            if let Sequence::Chars { ids, .. } = &e.input {
                same("characters in a sequence", e.input.len() * width, ids.len())?;
            }
        }
        let input = match &first.input {
            Sequence::Tokens(_) => Input::Tokens(pad(&ids, time, 1, 0, |id| id)),
            Sequence::Chars { .. } => Input::Chars(pad(&ids, time, width, 0, |id| id), width),
            Sequence::Vectors(_) => {
                let rows: Option<Vec<&[f32]>> = vectors.iter().map(|x| x.as_slice()).collect();
                let rows = rows.expect("the standard layout");
                let shape = (time, examples.len(), width);
                let padded = pad(&rows, time, width, T::ZERO, |x| T::of(f64::from(x)));
                Input::Vectors(Array3::from_shape_vec(shape, padded).expect("padded to one shape"))
            }
        };
        Ok(Batch {
            input,
            lens,
            targets: targets(examples)?,
            carry: None,
            tokens: Vec::new(),
            noise: Vec::new(),
        })
    }

    /// The same with the tokens that its vectors stand for, of all items alike.
    pub(crate) fn standing_for(mut self, tokens: &[u32]) -> Result<Self> {
        same("tokens", self.time(), tokens.len())?;
        let items = self.items();
        let each = tokens.iter().flat_map(|id| std::iter::repeat_n(*id, items));
        self.tokens = each.collect();
        Ok(self)
    }

    /// The same with noise for some items, (steps * slots, dim) each: a row for each vector that they are read as.
    pub fn with_noise(mut self, noise: &[Option<&Array2<f32>>]) -> Result<Self> {
        same("noises", self.items(), noise.len())?;
        let Some(first) = noise.iter().flatten().next() else {
            return Ok(self);
        };
        let slots = match &self.input {
            Input::Chars(_, width) => *width,
            _ => 1,
        };
        let step = slots * first.ncols();
        let mut added = vec![T::ZERO; self.time() * self.items() * step];
        for (b, noise) in noise.iter().enumerate() {
            let Some(noise) = noise else { continue };
            same("values of a noise", self.lens[b] * step, noise.len())?;
            let numbers = noise.as_standard_layout();
            let numbers = numbers.as_slice().expect("the standard layout");
            for (t, row) in numbers.chunks_exact(step).enumerate() {
                let to = &mut added[(t * self.items() + b) * step..][..step];
                for (to, x) in to.iter_mut().zip(row) {
                    *to = T::of(f64::from(*x));
                }
            }
        }
        self.noise = added;
        Ok(self)
    }

    /// Items.
    pub fn items(&self) -> usize {
        self.lens.len()
    }

    /// Steps of the longest item.
    pub fn time(&self) -> usize {
        self.lens.iter().copied().max().unwrap_or(0)
    }

    /// Steps of one side of item `b`; the source's where no target is known.
    pub(crate) fn len_of(&self, side: Side, b: usize) -> usize {
        match (side, &self.targets) {
            (Side::Target, Targets::Tokens(_, lens)) => lens[b],
            _ => self.lens[b],
        }
    }

    /// Of `time` steps of logits, those that belong to item `b`.
    pub(crate) fn answered(&self, time: usize, b: usize) -> usize {
        self.len_of(Side::Target, b).min(time)
    }

    /// The lengths, or the full length for every item when padding counts as text.
    pub fn lens_or_full(&self, through_padding: bool) -> Lens {
        if through_padding {
            vec![self.time(); self.items()].into()
        } else {
            self.lens.clone()
        }
    }
}

fn mixed(what: &'static str) -> Error {
    Error::Shape {
        what,
        expected: "one kind in a batch".into(),
        got: "several".into(),
    }
}

/// Time-major copies, filled up with `filler`.
fn pad<X: Copy, Y: Copy>(
    items: &[&[X]],
    time: usize,
    width: usize,
    filler: Y,
    cast: impl Fn(X) -> Y,
) -> Vec<Y> {
    let mut out = vec![filler; time * items.len() * width];
    for (b, item) in items.iter().enumerate() {
        for (t, row) in item.chunks_exact(width).enumerate() {
            for (to, from) in out[(t * items.len() + b) * width..][..width]
                .iter_mut()
                .zip(row)
            {
                *to = cast(*from);
            }
        }
    }
    out
}

fn targets(examples: &[&Example]) -> Result<Targets> {
    let (mut classes, mut ids): (Vec<u32>, Vec<&[u32]>) = Default::default();
    for e in examples {
        match (&examples[0].target, &e.target) {
            (Target::None, Target::None) => {}
            (Target::Class(_), Target::Class(c)) => classes.push(*c),
            (Target::Tokens(_), Target::Tokens(t)) if t.is_empty() => {
                return Err(Error::Empty {
                    what: "target sequence",
                });
            }
            (Target::Tokens(_), Target::Tokens(t)) => ids.push(t),
            _ => return Err(mixed("kind of target")),
        }
    }
    Ok(match &examples[0].target {
        Target::None => Targets::None,
        Target::Class(_) => Targets::Classes(classes),
        Target::Tokens(_) => {
            let lens: Lens = ids.iter().map(|t| t.len()).collect();
            let time = lens.iter().copied().max().unwrap_or(0);
            Targets::Tokens(pad(&ids, time, 1, 0, |id| id), lens)
        }
    })
}
