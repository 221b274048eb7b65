//! How a kind describes itself. Checks, help, `docs/` and keys are made from these.

use store::Value;

/// A stage kind, in words and types.
#[derive(Debug)]
pub struct Description {
    /// The name after `kind =`.
    pub kind: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Its parameters, in the order in which people should read them.
    pub params: &'static [Param],
    /// Whether the result depends on the seed. If not, the seed stays out of the key.
    pub seeded: bool,
}

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its key in the stage's table.
    pub name: &'static str,
    /// What it holds.
    pub ty: Type,
    /// Whether it must be written.
    pub presence: Presence,
    /// What it means, in one line.
    pub help: &'static str,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Int,
    /// A number; whole numbers are taken as floats.
    Float,
    /// A string.
    Text,
    /// A string of SQL: an axis's value is written into it so that it stays one value.
    Query,
    /// A list of strings.
    Texts,
    /// A table of strings: `{ NAME = "value" }`.
    TextTable,
    /// A list of tables: `[{ x = 1 }, { x = 2 }]`.
    Rows,
    /// A table that the kind checks itself: `{ csv = "file.csv", text = "review" }`.
    Table,
    /// A list of files or folders beside the pipeline file. Their contents enter the key.
    Files,
}

impl Type {
    /// For messages and docs: "a list of strings".
    pub fn name(self) -> &'static str {
        match self {
            Type::Bool => "a boolean",
            Type::Int => "an integer",
            Type::Float => "a float",
            Type::Text | Type::Query => "a string",
            Type::Texts => "a list of strings",
            Type::TextTable => "a table of strings",
            Type::Rows => "a list of tables",
            Type::Table => "a table",
            Type::Files => "a list of file names",
        }
    }
}

/// Whether a parameter must be written, and what it is otherwise.
#[derive(Clone, Copy, Debug)]
pub enum Presence {
    /// It must be written.
    Required,
    /// It may be left out, and is then absent.
    Optional,
    /// It may be left out, and is then this value, written out in the key.
    Default(fn() -> Value),
}

/// The tables that a stage reads and makes.
#[derive(Debug)]
pub struct Ports {
    /// What it reads.
    pub inputs: Inputs,
    /// What it makes. A reader that names no output means the first.
    pub outputs: Vec<Port>,
}

/// Which input ports a stage has.
#[derive(Debug)]
pub enum Inputs {
    /// Any number of ports, named by the user, but these must be among them.
    Any(Vec<Port>),
    /// Exactly these; a port that is not required may be left out. An empty list: no inputs.
    Named(Vec<Port>),
}

/// One input or output.
#[derive(Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// What the table holds: a noun such as `vectors`, or `table` for anything.
    pub holds: &'static str,
    /// For inputs: whether it must be connected.
    pub required: bool,
}

impl Port {
    /// A required port that holds any table.
    pub fn table(name: impl Into<String>) -> Port {
        Port {
            name: name.into(),
            holds: "table",
            required: true,
        }
    }
}
