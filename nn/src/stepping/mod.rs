//! Models step by step, and attacks that run while the sequence arrives.

mod contraction;
mod goal;
mod limits;
mod online;
mod online_context;
mod online_steps;
mod quadrature;
mod stepper;
pub use contraction::{Envelope, contraction, example_1, measure, norm};
pub use goal::{Aim, Goal};
pub use limits::Limits;
pub use online::{Choose, Online, Rule};
pub use online_context::OnlineContext;
pub use quadrature::Quadrature;
pub use stepper::{Jacobian, Stepper};
