//! Where an input comes from when it is not connected: from the stage behind another input.

/// How an input is filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follow {
    /// The input to fill in.
    pub port: &'static str,
    /// The input whose maker knows where it comes from.
    pub of: &'static str,
    /// What to take of that maker.
    pub takes: Takes,
}

/// What is taken of the stage that made an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// What that stage itself read by this port.
    Input(&'static str),
    /// This other output of that stage.
    Output(&'static str),
}
