//! Models with exact gradients.
