//! Large weights packed once a step for all shards, instead of once in each: see [`crate::gemm::Packed`].
//!
//! The products have the same bits with a pack and without; a pass that is given none packs for itself.

use crate::Real;
use crate::gemm::{Into, Mat, Packed, gemm, gemm_bias, gemm_packed, gemm_packed_bias};
use crate::params::{Layout, Params, Span};
use crate::tape::Tape;

/// Every large linear map of a model, as it is and transposed.
#[derive(Clone, Debug, Default)]
pub struct Packs<T> {
    maps: Vec<(Span, Packed<T>, Packed<T>)>,
}

impl<T: Real> Packs<T> {
    /// Packs these weights anew, in the memory of the old ones.
    pub(crate) fn refresh(&mut self, layout: &Layout, params: &Params<T>) {
        if self.maps.is_empty() {
            let fresh = |span: &Span| (*span, Packed::default(), Packed::default());
            self.maps = layout.large().iter().map(fresh).collect();
        }
        for (span, straight, turned) in &mut self.maps {
            straight.pack_in_parallel(params.mat(*span));
            turned.pack_in_parallel(params.mat(*span).t());
        }
    }

    fn get(&self, span: Span) -> Option<(&Packed<T>, &Packed<T>)> {
        let found = self.maps.iter().find(|(s, ..)| *s == span);
        found.map(|(_, straight, turned)| (straight, turned))
    }
}

/// `y = x W` or, with a bias, `y = x W + b`.
pub(crate) fn map<T: Real>(
    tape: &Tape<T>,
    params: &Params<T>,
    weight: Span,
    bias: Option<Span>,
    x: Mat<T>,
    y: &mut [T],
) {
    let packed = tape.packs().and_then(|p| p.get(weight)).map(|p| p.0);
    match (packed, bias.map(|b| params.get(b))) {
        (None, None) => gemm(Into::Set, y, x, params.mat(weight)),
        (None, Some(bias)) => gemm_bias(y, x, params.mat(weight), bias),
        (Some(packed), None) => gemm_packed(Into::Set, y, x, packed),
        (Some(packed), Some(bias)) => gemm_packed_bias(y, x, packed, bias),
    }
}

/// `dx += dy W^T`
pub(crate) fn map_back<T: Real>(
    tape: &Tape<T>,
    params: &Params<T>,
    weight: Span,
    dy: Mat<T>,
    dx: &mut [T],
) {
    match tape.packs().and_then(|p| p.get(weight)) {
        None => gemm(Into::Add, dx, dy, params.mat(weight).t()),
        Some((_, turned)) => gemm_packed(Into::Add, dx, dy, turned),
    }
}
