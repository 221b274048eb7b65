//! The states that a batch carries, as values on the tape.

use crate::autodiff::{Shape, Tape, Var};
use crate::batch::Batch;
use crate::error::{Result, same};
use crate::layers::RecurrentCell;
use crate::numeric::Real;

/// The states that a batch carries for layer `index`, as values on the tape.
pub(in crate::models) fn carried<T: Real, C: RecurrentCell>(
    tape: &mut Tape<T>,
    batch: &Batch<T>,
    cell: &C,
    index: usize,
    layers: usize,
) -> Result<Option<(Var, Option<Var>)>> {
    let Some(carry) = &batch.carry else {
        return Ok(None);
    };
    same("carried layers", layers, carry.len())?;
    let (h, c) = &carry[index];
    let shape = Shape::new(1, batch.items(), cell.units());
    same("carried hidden state", shape.len(), h.len())?;
    let h = tape.input(shape, h);
    if !C::CELL_STATE {
        return Ok(Some((h, None)));
    }
    same("carried cell state", shape.len(), c.len())?;
    Ok(Some((h, Some(tape.input(shape, c)))))
}
