//! The front of a model: from ids or vectors to vectors, checked.

use crate::autodiff::{Init, Layout, Params, Shape, Tape, Var};
use crate::batch::{Batch, Input, Side};
use crate::error::{Error, Result, same, setting};
use crate::layers::Embedding;
use crate::numeric::{Real, finite};
use ndarray::Array3;
use serde::{Deserialize, Serialize};

/// What a model reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reads {
    /// Token ids through a table of vectors.
    Tokens {
        /// Rows of the table.
        vocabulary: usize,
        /// Embedding dimension.
        dim: usize,
        /// Whether training leaves the table alone.
        #[serde(default)]
        frozen: bool,
    },
    /// Vectors as they are.
    Vectors {
        /// Input dimension.
        dim: usize,
    },
}

/// The front of a model: a table or nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reader {
    Table(Embedding),
    Raw(usize),
}

impl Reader {
    pub(crate) fn new(layout: &mut Layout, reads: &Reads, init: Init) -> Result<Self> {
        Ok(match *reads {
            Reads::Tokens {
                vocabulary,
                dim,
                frozen,
            } => {
                setting(
                    "vocabulary",
                    vocabulary > 0 && dim > 0,
                    "a size above 0",
                    vocabulary,
                )?;
                Reader::Table(if frozen {
                    Embedding::frozen(layout, "embedding", vocabulary, dim)
                } else {
                    Embedding::new(layout, "embedding", vocabulary, dim, init)
                })
            }
            Reads::Vectors { dim } => Reader::Raw(dim),
        })
    }

    /// A table of trained vectors.
    pub(crate) fn tokens(
        layout: &mut Layout,
        vocabulary: usize,
        dim: usize,
        init: Init,
    ) -> Result<Self> {
        let reads = Reads::Tokens {
            vocabulary,
            dim,
            frozen: false,
        };
        Reader::new(layout, &reads, init)
    }

    pub(crate) fn dim(&self) -> usize {
        match self {
            Reader::Table(table) => table.table.cols,
            Reader::Raw(dim) => *dim,
        }
    }

    /// The vectors of a batch. A model of tokens also takes vectors: perturbed embeddings.
    pub(crate) fn read<T: Real>(
        &self,
        tape: &mut Tape<T>,
        params: &Params<T>,
        batch: &Batch<T>,
    ) -> Result<Var> {
        let (time, items) = (batch.time(), batch.items());
        match (self, &batch.input) {
            (Reader::Table(table), Input::Tokens(ids)) => {
                tokens(ids, items, table.table.rows)?;
                Ok(table.forward(tape, params, ids, time, items, Side::Source))
            }
            (_, Input::Vectors(rows)) => {
                let dim = rows.dim().2;
                same("values per step", self.dim(), dim)?;
                vectors(tape, rows, Shape::new(time, items, dim))
            }
            (Reader::Raw(_), _) => Err(Error::Shape {
                what: "input",
                expected: "vectors".into(),
                got: "ids".into(),
            }),
            (Reader::Table(_), _) => Err(Error::Shape {
                what: "input",
                expected: "tokens or vectors".into(),
                got: "characters".into(),
            }),
        }
    }
}

/// Vectors of this shape, row after row.
pub(crate) fn vectors<T: Real>(tape: &mut Tape<T>, rows: &Array3<T>, shape: Shape) -> Result<Var> {
    same("input", shape.len(), rows.len())?;
    let rows = rows.as_standard_layout();
    let data = rows.as_slice().expect("the standard layout");
    finite("input", data)?;
    Ok(tape.input(shape, data))
}

/// An error at the first id that the table lacks.
pub(crate) fn tokens(ids: &[u32], items: usize, below: usize) -> Result<()> {
    match ids.iter().position(|id| *id as usize >= below) {
        None => Ok(()),
        Some(i) => Err(Error::Range {
            what: "token",
            item: i % items.max(1),
            got: ids[i] as usize,
            below,
        }),
    }
}
