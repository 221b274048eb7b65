//! Convolution and maximum over positions.

mod backward;
mod kernels;
mod layer;
mod windows;

pub use layer::ConvMax;
pub use windows::Windows;
