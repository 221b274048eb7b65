//! Training and measuring a language model on one long text, states carried from window to window.

mod evaluate;
mod fit;
mod windows;

pub use evaluate::evaluate_stream;
pub use fit::{FittedStream, StreamSpec, fit_stream, resume_stream};

#[cfg(test)]
mod tests;
