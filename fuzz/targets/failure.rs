//! As much of `stages::Failure` as the readers use.

/// Something could not be read.
#[derive(Debug)]
pub struct Failure {
    pub message: String,
    pub help: Option<String>,
    pub param: Option<&'static str>,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Failure {
        let message = message.into();
        assert!(!message.is_empty());
        Failure {
            message,
            help: None,
            param: None,
        }
    }

    pub fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    pub fn at(mut self, param: &'static str) -> Failure {
        self.param = Some(param);
        self
    }
}
