//! The parameters of `embed`, checked: from here on they cannot be wrong.

use store::{Params, Value};

use crate::{Failure, ParamError, Task};

/// Where vectors come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Drawn at random.
    Random,
    /// A 1 in the token's own place.
    OneHot,
    /// Trained here on the tokens.
    SkipGram,
    /// Made elsewhere.
    Vectors,
}

/// Every origin by its name in the pipeline file.
pub const ORIGINS: &[(&str, Origin)] = &[
    ("random", Origin::Random),
    ("one-hot", Origin::OneHot),
    ("skip-gram", Origin::SkipGram),
    ("vectors", Origin::Vectors),
];

/// What a token gets that the pretrained vectors do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A random vector of its own.
    Random,
    /// Zeros.
    Zero,
    /// The vector of the unknown word.
    Unknown,
}

/// The checked parameters.
#[derive(Clone, Debug)]
pub struct Settings {
    pub origin: Origin,
    pub dim: usize,
    pub scale: f32,
    pub file: Option<String>,
    pub tensor: Option<String>,
    pub unknown: Option<String>,
    pub missing: Missing,
    pub train: String,
    pub window: u32,
    pub negative: usize,
    pub epochs: usize,
    pub learning_rate: f32,
    /// 0 for no subsampling.
    pub subsample: f64,
}

impl Settings {
    /// The parameters of a stage that runs. They were checked before, so this hardly ever fails.
    pub fn of(task: &Task<'_>) -> Result<Settings, Failure> {
        Settings::read(task.params).map_err(|error| Failure {
            help: error.help,
            ..Failure::new(error.message).at(error.param)
        })
    }

    /// The parameters, or what is wrong with them.
    pub fn read(params: &Params) -> Result<Settings, ParamError> {
        let text = |name: &str| params.get(name).and_then(Value::as_text);
        let origin = named("source", text("source").unwrap_or_default(), ORIGINS)?;
        for param in ["file", "tensor", "unknown"] {
            if params.contains_key(param) && origin != Origin::Vectors {
                let message = format!("`{param}` is only for source = \"vectors\"");
                return Err(error(param, message, "leave it out"));
            }
        }
        for (param, usual, sources) in OF_SOURCES {
            let given = params.get(*param);
            if given.is_some_and(|value| *value != usual()) && !sources.contains(&origin) {
                let name = text("source").unwrap_or_default();
                let message = format!("`{param}` does not apply to source = \"{name}\"");
                return Err(error(param, message, "leave it out"));
            }
        }
        let missing = [
            ("random", Missing::Random),
            ("zero", Missing::Zero),
            ("unknown", Missing::Unknown),
        ];
        let settings = Settings {
            origin,
            dim: whole(params, "dim", 50, 1)?,
            scale: number(params, "scale", SCALE)? as f32,
            file: text("file").map(str::to_owned),
            tensor: text("tensor").map(str::to_owned),
            unknown: text("unknown").map(str::to_owned),
            missing: named("missing", text("missing").unwrap_or("random"), &missing)?,
            train: text("train").unwrap_or("train").to_owned(),
            window: whole(params, "window", 5, 1)? as u32,
            negative: whole(params, "negative", 5, 1)?,
            epochs: whole(params, "epochs", 5, 1)?,
            learning_rate: number(params, "learning_rate", 0.025)? as f32,
            subsample: number(params, "subsample", 1e-3)?,
        };
        if settings.missing == Missing::Unknown && settings.unknown.is_none() {
            let message = "missing = \"unknown\" needs `unknown`, the word whose vector is used";
            return Err(error(
                "missing",
                message.to_owned(),
                "add unknown = \"unk\"",
            ));
        }
        Ok(settings)
    }
}

/// Random numbers are between this and its negative, unless the pipeline says otherwise.
pub const SCALE: f64 = 0.1;

type Usual = fn() -> Value;

/// Parameters that some sources read and others would not notice, with their defaults.
const OF_SOURCES: &[(&str, Usual, &[Origin])] = &[
    (
        "dim",
        || Value::Int(50),
        &[Origin::Random, Origin::SkipGram],
    ),
    (
        "scale",
        || Value::Float(SCALE),
        &[Origin::Random, Origin::Vectors],
    ),
    (
        "missing",
        || Value::Text("random".to_owned()),
        &[Origin::Vectors],
    ),
    (
        "train",
        || Value::Text("train".to_owned()),
        &[Origin::SkipGram],
    ),
    ("window", || Value::Int(5), &[Origin::SkipGram]),
    ("negative", || Value::Int(5), &[Origin::SkipGram]),
    ("epochs", || Value::Int(5), &[Origin::SkipGram]),
    ("learning_rate", || Value::Float(0.025), &[Origin::SkipGram]),
    ("subsample", || Value::Float(1e-3), &[Origin::SkipGram]),
];

fn named<T: Copy>(param: &'static str, name: &str, all: &[(&str, T)]) -> Result<T, ParamError> {
    let names = || all.iter().map(|(name, _)| *name);
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let help = match crate::contract::nearest::nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "expected one of: {}",
                names().collect::<Vec<_>>().join(", ")
            ),
        };
        error(param, format!("`{param}` cannot be `{name}`"), &help)
    })
}

/// Integers are at most this: no vector has as many numbers.
const MOST: i64 = 1 << 20;

fn whole(
    params: &Params,
    name: &'static str,
    absent: i64,
    least: i64,
) -> Result<usize, ParamError> {
    let number = params.get(name).and_then(Value::as_int).unwrap_or(absent);
    if number < least || number > MOST {
        let message = format!("`{name}` is {number}, and must be between {least} and {MOST}");
        return Err(error(name, message, "common values are between 1 and 300"));
    }
    Ok(number as usize)
}

fn number(params: &Params, name: &'static str, absent: f64) -> Result<f64, ParamError> {
    let number = match params.get(name) {
        Some(Value::Float(number)) => *number,
        _ => absent,
    };
    if !(0.0..=1e6).contains(&number) {
        let message = format!("`{name}` is {number}, and must be at least 0");
        return Err(error(name, message, "see the README for common values"));
    }
    Ok(number)
}

fn error(param: &'static str, message: String, help: &str) -> ParamError {
    ParamError {
        param,
        message,
        help: Some(help.to_owned()),
    }
}
