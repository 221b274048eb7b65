//! What the pipeline file tells of a table before it is made. Kinds pass it on from input to output, so that
//! tables that do not fit together are found before anything runs. What the file does not tell is left open,
//! never guessed: then the stage finds out when it runs. Decides no result.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ParamError;
use crate::contract::nearest::nearest;

/// What is known of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Expected {
    /// The names of all its columns.
    pub columns: Option<Vec<String>>,
    /// The axes that a reader collects it along: columns as well.
    pub axes: Vec<String>,
    /// What the columns of those axes hold.
    pub axis_values: Vec<AxisValues>,
    /// What its rows hold.
    pub rows: Option<ExpectedRows>,
    /// The column that holds the second text of pairs; there may be one if this is none.
    pub second_text: Option<String>,
    /// The splits that its rows may have: no others.
    pub splits: Option<Vec<String>>,
    /// How many classes its labels may have, at most: they are numbered from 0.
    pub classes: Option<usize>,
    /// The model, of a table of weights.
    pub model: Option<ExpectedModel>,
    /// Whether these are the examples of an attack, which metrics are measured on.
    pub examples: bool,
    /// The texts that its rows or words come from.
    pub texts: Option<TextSource>,
}

/// Where texts come from, and how they were read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TextSource {
    /// The data set, or the user's file.
    pub data: String,
    /// Whether upper case was made lower case, if they were tokenized.
    pub lowercase: Option<bool>,
}

/// The values of an axis that a table is collected along.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AxisValues {
    /// The axis.
    pub name: String,
    /// Its values, as texts.
    pub values: Vec<String>,
    /// Values that the file has, but not this run of it.
    pub left_out: Vec<String>,
}

/// What rows hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpectedRows {
    /// Texts, not tokenized.
    Texts,
    /// Ids of tokens, perhaps filled up with padding.
    Tokens {
        /// Whether short texts are filled up.
        padded: bool,
    },
    /// Words of characters.
    Grid,
    /// Numbers over time.
    Signals,
}

impl ExpectedRows {
    /// For messages.
    pub fn name(self) -> &'static str {
        match self {
            ExpectedRows::Texts => "texts that are not tokenized",
            ExpectedRows::Tokens { padded: true } => "padded tokens",
            ExpectedRows::Tokens { padded: false } => "tokens",
            ExpectedRows::Grid => "words of characters (char-grid)",
            ExpectedRows::Signals => "signals",
        }
    }
}

/// The name of models in programs of the user.
pub const EXTERNAL: &str = "external";

/// A model that will be trained, or that lives in a program of the user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExpectedModel {
    /// Its name, as after `model =`.
    pub name: String,
    /// Whether it reads word vectors that are not among its weights.
    pub outside_vectors: bool,
    /// Whether it answers gradients.
    pub gradients: bool,
    /// Whether it says how much it attends to each token.
    pub attends: bool,
    /// Whether it can be read one step after the other, without seeing what comes later.
    pub steps: bool,
    /// Whether it has recurrent states to be looked at.
    pub states: bool,
    /// What it was trained on, if that is known.
    pub reads: Option<ExpectedRows>,
    /// How many classes it predicts, at most, if that is known.
    pub classes: Option<usize>,
    /// The stage that it comes from, once that is known.
    pub stage: Option<String>,
}

impl ExpectedModel {
    /// What messages call it: all models in programs of the user have one name, which is not theirs.
    pub fn called(&self) -> &str {
        match &self.stage {
            Some(stage) if self.name == EXTERNAL => stage,
            _ => &self.name,
        }
    }
}

/// Tables that do not fit a stage, or each other.
#[derive(Debug, PartialEq)]
pub struct Mismatch {
    /// What to point at.
    pub at: Blamed,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// What a mismatch is blamed on.
#[derive(Debug, PartialEq)]
pub enum Blamed {
    /// The connection of an input port.
    Input(String),
    /// A parameter.
    Param(&'static str),
    /// The stage.
    Stage,
}

impl Mismatch {
    /// A mismatch with a next step.
    pub fn new(at: Blamed, message: impl Into<String>, help: impl Into<String>) -> Mismatch {
        Mismatch {
            at,
            message: message.into(),
            help: Some(help.into()),
        }
    }
}

impl From<ParamError> for Mismatch {
    fn from(error: ParamError) -> Mismatch {
        Mismatch {
            at: Blamed::Param(error.param),
            message: error.message,
            help: error.help,
        }
    }
}

/// What is known of each output, in the order of the ports; an output that is left out is unknown.
pub type ExpectedOutputs = Vec<Expected>;

impl Expected {
    /// A table with these columns.
    pub fn of_columns(columns: &[&str]) -> Expected {
        Expected {
            columns: Some(columns.iter().map(|name| (*name).to_owned()).collect()),
            ..Expected::default()
        }
    }

    /// What two tables have in common, of which either may be read.
    pub fn or(&self, other: &Expected) -> Expected {
        fn same<T: Clone + PartialEq>(a: &Option<T>, b: &Option<T>) -> Option<T> {
            a.clone().filter(|_| a == b)
        }
        let splits = self.splits.as_ref().zip(other.splits.as_ref());
        Expected {
            columns: same(&self.columns, &other.columns),
            axes: self.axes.clone(),
            axis_values: self.axis_values.clone(),
            rows: same(&self.rows, &other.rows),
            // One table of pairs is enough for a text to be ignored.
            second_text: self.second_text.clone().or(other.second_text.clone()),
            splits: splits.map(|(a, b)| {
                let new = b.iter().filter(|split| !a.contains(split));
                a.iter().chain(new).cloned().collect()
            }),
            classes: self.classes.zip(other.classes).map(|(a, b)| a.max(b)),
            model: same(&self.model, &other.model),
            examples: self.examples && other.examples,
            texts: same(&self.texts, &other.texts),
        }
    }

    /// Whether it has a column of that name, if that is known.
    pub fn has_column(&self, name: &str) -> Option<bool> {
        let columns = self.columns.as_ref()?;
        Some(columns.iter().chain(&self.axes).any(|known| known == name))
    }
}

/// What is known of the inputs of a stage, by port.
#[derive(Default)]
pub struct ExpectedInputs<'a>(pub BTreeMap<&'a str, Arc<Expected>>);

impl ExpectedInputs<'_> {
    /// Whether an input is connected.
    pub fn has(&self, port: &str) -> bool {
        self.0.contains_key(port)
    }

    /// What is known of an input; nothing if it is not connected.
    pub fn of(&self, port: &str) -> Option<&Expected> {
        self.0.get(port).map(Arc::as_ref)
    }

    /// Refuses rows with a second text, which only the first would be read of.
    pub fn one_text(&self, port: &str) -> Result<(), Mismatch> {
        let second = self.of(port).and_then(|rows| rows.second_text.as_deref());
        match second {
            Some(column) => {
                let at = Blamed::Input(port.to_owned());
                Err(Mismatch::new(at, pairs(column), PAIRS_HELP))
            }
            None => Ok(()),
        }
    }

    /// Refuses pairs of texts that cannot be joined into one sequence.
    pub fn joinable(&self, port: &str) -> Result<(), Mismatch> {
        let rows = self.of(port).filter(|rows| rows.second_text.is_some());
        match rows.and_then(|rows| rows.rows) {
            Some(ExpectedRows::Tokens { padded: true }) => {
                let at = Blamed::Input(port.to_owned());
                Err(Mismatch::new(at, PADDED_PAIRS, PADDED_PAIRS_HELP))
            }
            _ => Ok(()),
        }
    }

    /// Refuses rows that hold something else than a stage or model reads.
    pub fn hold(
        &self,
        port: &str,
        reader: &str,
        reads: &str,
        fits: impl Fn(ExpectedRows) -> bool,
    ) -> Result<(), Mismatch> {
        let rows = self.of(port).and_then(|rows| rows.rows);
        match rows.filter(|rows| !fits(*rows)) {
            Some(rows) => {
                let message = format!("{reader} reads {reads}, and `{port}` are {}", rows.name());
                let help = match rows {
                    ExpectedRows::Texts => "put a tokenize stage in between",
                    ExpectedRows::Signals => "connect the output `tokens` of a tokenize stage",
                    ExpectedRows::Tokens { padded: true } => {
                        "set pad = false in the tokenize stage, or connect other rows"
                    }
                    _ if reads == "words of characters" => {
                        "set scheme = \"char-grid\" in the tokenize stage, or connect other rows"
                    }
                    _ => {
                        "tokenize with scheme = \"words\" or another that makes tokens, or connect other rows"
                    }
                };
                Err(Mismatch::new(Blamed::Input(port.to_owned()), message, help))
            }
            None => Ok(()),
        }
    }

    /// Refuses words of other texts than the rows', or of the same texts in another case.
    pub fn same_texts(&self, port: &str) -> Result<(), Mismatch> {
        let texts = |port: &str| self.of(port).and_then(|table| table.texts.as_ref());
        let (Some(rows), Some(words)) = (texts("rows"), texts(port)) else {
            return Ok(());
        };
        let at = || Blamed::Input(port.to_owned());
        if rows.data != words.data {
            let message = format!(
                "`rows` are texts of `{}`, and `{port}` has words of `{}`",
                rows.data, words.data
            );
            let help = "connect a tokenize stage that reads the same texts";
            return Err(Mismatch::new(at(), message, help));
        }
        match (rows.lowercase, words.lowercase) {
            (Some(rows), Some(words)) if rows != words => {
                let case = |lower| {
                    if lower {
                        "lower case"
                    } else {
                        "their own case"
                    }
                };
                let message = format!(
                    "`rows` are in {}, and the words of `{port}` in {}",
                    case(rows),
                    case(words)
                );
                let help = "set the same `lowercase` in both tokenize stages";
                Err(Mismatch::new(at(), message, help))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a split that no row of an input can have. `param` is what names it.
    pub fn has_split(&self, port: &str, param: &'static str, split: &str) -> Result<(), Mismatch> {
        let splits = self.of(port).and_then(|rows| rows.splits.as_ref());
        match splits.filter(|splits| !splits.iter().any(|known| known == split)) {
            Some(splits) => {
                let help = match nearest(split, splits.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("splits: {}", splits.join(", ")),
                };
                let message = format!("no row has the split `{split}`");
                Err(Mismatch::new(Blamed::Param(param), message, help))
            }
            None => Ok(()),
        }
    }
}

/// Refuses the number of a class that there is not: `param` says which, of at most `classes`.
pub fn has_class(
    param: &'static str,
    class: Option<i64>,
    classes: Option<usize>,
) -> Result<(), Mismatch> {
    match (class, classes) {
        (Some(class), Some(classes)) if usize::try_from(class).is_ok_and(|n| n >= classes) => {
            let message = format!("`{param}` is {class}, but there are {classes} classes");
            let help = format!(
                "classes are numbered from 0 to {}",
                classes.saturating_sub(1)
            );
            Err(Mismatch::new(Blamed::Param(param), message, help))
        }
        _ => Ok(()),
    }
}

/// What is wrong with pairs of texts.
pub fn pairs(column: &str) -> String {
    format!("the rows are pairs of texts, and the second text (column `{column}`) would be ignored")
}

/// What to do about pairs of texts.
pub const PAIRS_HELP: &str = "join both texts in a sql stage before tokenize, SELECT id, split, label, text || ' ' || text_b AS text FROM t, or leave `text_b` out";

/// What is wrong with pairs of padded texts.
pub const PADDED_PAIRS: &str = "pairs of padded texts cannot be joined into one sequence";

/// What to do about it.
pub const PADDED_PAIRS_HELP: &str = "set pad = false in the tokenize stage";

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(splits: &[&str], second: Option<&str>) -> Expected {
        Expected {
            rows: Some(ExpectedRows::Signals),
            splits: Some(splits.iter().map(|s| (*s).to_owned()).collect()),
            second_text: second.map(str::to_owned),
            ..Expected::default()
        }
    }

    #[test]
    fn of_two_tables_what_both_have_is_known() {
        let both = rows(&["train", "test"], None).or(&rows(&["train", "dev"], Some("ids_b")));
        assert_eq!(both.rows, Some(ExpectedRows::Signals));
        assert_eq!(both.splits.unwrap(), ["train", "test", "dev"]);
        assert_eq!(both.second_text.as_deref(), Some("ids_b"));
        let open = rows(&["train"], None).or(&Expected::default());
        assert_eq!((open.rows, open.splits), (None, None));
    }

    #[test]
    fn only_what_is_known_is_refused() {
        let known = Arc::new(rows(&["train", "test"], Some("ids_b")));
        let inputs = ExpectedInputs([("rows", known), ("open", Arc::default())].into());
        assert!(inputs.has_split("open", "dev", "dev").is_ok());
        assert!(inputs.one_text("open").is_ok() && inputs.one_text("none").is_ok());
        let wrong = inputs.has_split("rows", "split", "tset").unwrap_err();
        assert_eq!(wrong.at, Blamed::Param("split"));
        assert_eq!(wrong.help.as_deref(), Some("did you mean `test`?"));
        let wrong = inputs.one_text("rows").unwrap_err();
        assert_eq!(
            wrong.message,
            "the rows are pairs of texts, and the second text (column `ids_b`) would be ignored"
        );
        let tokens = |rows| matches!(rows, ExpectedRows::Tokens { .. });
        let wrong = inputs.hold("rows", "`svm`", "tokens", tokens).unwrap_err();
        assert_eq!(wrong.message, "`svm` reads tokens, and `rows` are signals");
    }
}
