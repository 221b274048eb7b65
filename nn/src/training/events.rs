//! Events of a fit, and what the caller may answer: go on or stop.

use crate::training::Evaluation;

/// An event of a fit.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A step was taken.
    Step {
        /// Steps taken so far.
        step: u64,
        /// The loss of its batch.
        loss: f64,
        /// The gradient's norm before clipping.
        norm: f64,
        /// The learning rate.
        rate: f64,
    },
    /// An epoch ended.
    Epoch {
        /// Counted from 0.
        epoch: usize,
        /// Steps taken so far.
        step: u64,
        /// Mean loss of its batches.
        loss: f64,
        /// On the training examples that [`FitSpec::probe`](super::FitSpec) asks for.
        train: Option<Evaluation>,
        /// On dev, if there are dev examples.
        dev: Option<Evaluation>,
    },
    /// Dev stayed below what is accepted: fresh weights.
    Restart {
        /// Counted from 1.
        attempt: u32,
    },
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Yes.
    Continue,
    /// No; [`Fitted::stopped`](super::Fitted::stopped) is then set.
    Stop,
}
