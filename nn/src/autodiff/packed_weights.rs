//! Large weights packed once per step for all shards, instead of once in each: see [`crate::numeric::gemm::Packed`].
//!
//! The products have the same bits with a pack and without; a pass that is given none packs for itself.

use super::layout::{Layout, Span};
use super::params::Params;
use crate::numeric::Real;
use crate::numeric::gemm::Packed;

/// Every large linear map of a model, as it is and transposed.
#[derive(Clone, Debug, Default)]
pub struct PackedWeights<T> {
    maps: Vec<(Span, Packed<T>, Packed<T>)>,
}

impl<T: Real> PackedWeights<T> {
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

    pub(super) fn get(&self, span: Span) -> Option<(&Packed<T>, &Packed<T>)> {
        let found = self.maps.iter().find(|(s, ..)| *s == span);
        found.map(|(_, straight, turned)| (straight, turned))
    }
}
