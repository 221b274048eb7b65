//! How a kind describes itself. Checks, help, `docs/` and keys are made from these.

use store::{Params, Value};

use super::role::Role;

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
    /// The part that it plays in an experiment. Decides no result.
    pub role: Role,
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
    /// The values that it may have.
    pub range: Range,
    /// The parameter and its values without which this one has no effect.
    pub when: Option<(&'static str, &'static [&'static str])>,
    /// What it means, in one line.
    pub help: &'static str,
}

/// The values that a parameter may have, beyond its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// All of the type.
    Any,
    /// Integers from the first to the last.
    Ints(i64, i64),
    /// Floats from the first to the last.
    Floats(f64, f64),
    /// One of these strings.
    OneOf(&'static [&'static str]),
}

/// Integers are at most this: sizes fit 32 bits.
pub const MOST: i64 = u32::MAX as i64;

impl Param {
    /// For literals: any value, always in force.
    pub const PLAIN: Param = Param {
        name: "",
        ty: Type::Text,
        presence: Presence::Optional,
        range: Range::Any,
        when: None,
        help: "",
    };

    const fn new(name: &'static str, ty: Type, presence: Presence, help: &'static str) -> Param {
        Param {
            name,
            ty,
            presence,
            help,
            ..Param::PLAIN
        }
    }

    /// An integer from `least` on, with a default.
    pub const fn int(name: &'static str, default: i64, least: i64, help: &'static str) -> Param {
        let presence = Presence::Constant(Constant::Int(default));
        Param {
            range: Range::Ints(least, MOST),
            ..Param::new(name, Type::Int, presence, help)
        }
    }

    /// A float within a range, with a default.
    pub const fn float(
        name: &'static str,
        default: f64,
        range: (f64, f64),
        help: &'static str,
    ) -> Param {
        let presence = Presence::Constant(Constant::Float(default));
        Param {
            range: Range::Floats(range.0, range.1),
            ..Param::new(name, Type::Float, presence, help)
        }
    }

    /// A boolean with a default.
    pub const fn flag(name: &'static str, default: bool, help: &'static str) -> Param {
        let presence = Presence::Constant(Constant::Bool(default));
        Param::new(name, Type::Bool, presence, help)
    }

    /// One of several strings; the first is the default.
    pub const fn choice(
        name: &'static str,
        all: &'static [&'static str],
        help: &'static str,
    ) -> Param {
        let presence = Presence::Constant(Constant::Text(all[0]));
        Param {
            range: Range::OneOf(all),
            ..Param::new(name, Type::Text, presence, help)
        }
    }

    /// A string with a default.
    pub const fn text(name: &'static str, default: &'static str, help: &'static str) -> Param {
        let presence = Presence::Constant(Constant::Text(default));
        Param::new(name, Type::Text, presence, help)
    }

    /// What it holds, for docs: the type, or the values if they are listed.
    pub fn holds(&self) -> String {
        match self.range {
            Range::OneOf(all) => format!("\"{}\"", all.join("\", \"")),
            _ => self.ty.name().to_owned(),
        }
    }

    /// The same without a default: absent unless it is written.
    pub const fn optional(self) -> Param {
        Param {
            presence: Presence::Optional,
            ..self
        }
    }

    /// The same, without a default, and it must be written.
    pub const fn required(self) -> Param {
        Param {
            presence: Presence::Required,
            ..self
        }
    }

    /// The same with another default.
    pub const fn or(self, default: Constant) -> Param {
        Param {
            presence: Presence::Constant(default),
            ..self
        }
    }

    /// The same with a default that the written parameters imply.
    pub const fn implied(self, default: fn(&Params) -> Value) -> Param {
        Param {
            presence: Presence::Implied(default),
            ..self
        }
    }

    /// The same, in force only where another parameter has one of these values.
    pub const fn when(self, param: &'static str, values: &'static [&'static str]) -> Param {
        Param {
            when: Some((param, values)),
            ..self
        }
    }
}

/// Something that had another name before. The old name is accepted with a warning, and gives the same key.
#[derive(Clone, Copy, Debug)]
pub enum Renamed {
    /// A parameter.
    Param {
        /// The old name.
        old: &'static str,
        /// The name now.
        new: &'static str,
    },
    /// An input.
    Input {
        /// The old name.
        old: &'static str,
        /// The name now.
        new: &'static str,
    },
    /// A value of a parameter.
    Value {
        /// The parameter.
        param: &'static str,
        /// The old value.
        old: &'static str,
        /// The value now.
        new: &'static str,
    },
}

/// One of the things that a parameter of a kind names, such as an attack or a model, with parameters of
/// its own.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The parameter that names it.
    pub selector: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Its own parameters, with its own defaults.
    pub params: &'static [Param],
}

/// A default that needs no computing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Text(&'static str),
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `true` or `false`.
    Bool,
    /// An integer.
    Int,
    /// A list of integers.
    Ints,
    /// A float; integers are taken as floats.
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
            Type::Ints => "a list of integers",
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
    /// The same for a plain value.
    Constant(Constant),
    /// It may be left out, and is then what the written parameters imply, written out in the key.
    Implied(fn(&Params) -> Value),
}

impl Presence {
    /// The value of a parameter that is not written, if it has one: where nothing else is written.
    pub fn default(self) -> Option<Value> {
        self.default_beside(&Params::new())
    }

    /// The value of a parameter that is not written, if it has one, beside those that are.
    pub fn default_beside(self, written: &Params) -> Option<Value> {
        match self {
            Presence::Implied(value) => Some(value(written)),
            Presence::Required | Presence::Optional => None,
            Presence::Default(value) => Some(value()),
            Presence::Constant(Constant::Bool(value)) => Some(Value::Bool(value)),
            Presence::Constant(Constant::Int(value)) => Some(Value::Int(value)),
            Presence::Constant(Constant::Float(value)) => Some(Value::Float(value)),
            Presence::Constant(Constant::Text(value)) => Some(Value::Text(value.to_owned())),
        }
    }
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
