//! What can be wrong with parameters, and what can go wrong in a stage: where, what, next step.

/// A parameter that has the right type and a wrong value. Found before anything runs.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ParamError {
    /// The parameter to point at.
    pub param: &'static str,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// A stage that could not make its outputs.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What went wrong. The first line is the headline.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The parameter to point at, if one is to blame.
    pub param: Option<&'static str>,
    /// The user stopped it: not a fault of the stage.
    pub stopped: bool,
}

impl Failure {
    /// A failure with a message alone.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
            help: None,
            param: None,
            stopped: false,
        }
    }

    /// With a next step.
    pub fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    /// With the parameter that is to blame.
    pub fn at(mut self, param: &'static str) -> Failure {
        self.param = Some(param);
        self
    }

    /// The user asked to stop.
    pub fn stopped() -> Failure {
        Failure {
            stopped: true,
            ..Failure::new("stopped")
        }
    }
}
