//! A program of the user as the parameters of a stage have it. Knows nothing of where anything is.

/// How a program is started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProgramSpec {
    /// The program and its arguments.
    pub run: Vec<String>,
    /// The lock file of its packages, beside the pipeline file.
    pub lock: Option<String>,
    /// Where programs are looked for, if the stage says so itself.
    pub path: Option<String>,
    /// The variables with secrets that it needs, by name.
    pub secrets: Vec<String>,
    /// Folders with programs and packages, in the order in which they are searched.
    pub environments: Vec<String>,
}
