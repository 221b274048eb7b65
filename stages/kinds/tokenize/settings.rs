//! The parameters of `tokenize`, checked: from here on they cannot be wrong.

use store::{Params, Value};

use crate::tables::vocabulary;
use crate::{Failure, ParamError, Task};

/// How a text becomes tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// English words without punctuation.
    Words,
    /// Words and signs.
    WordsPunctuation,
    /// What white space separates.
    Whitespace,
    /// Words and signs, each as a row of characters.
    CharGrid,
    /// Characters.
    Chars,
    /// Pieces of words from a fixed vocabulary.
    WordPiece,
}

/// Every scheme by its name in the pipeline file.
pub const SCHEMES: &[(&str, Scheme)] = &[
    ("words", Scheme::Words),
    ("words-punctuation", Scheme::WordsPunctuation),
    ("whitespace", Scheme::Whitespace),
    ("char-grid", Scheme::CharGrid),
    ("chars", Scheme::Chars),
    ("word-piece", Scheme::WordPiece),
];

/// The checked parameters.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How a text becomes tokens.
    pub scheme: Scheme,
    /// The column that holds the text.
    pub text: String,
    /// The split that the vocabulary comes from.
    pub train: String,
    /// Whether letters are put into lower case.
    pub lowercase: bool,
    /// Maximum number of tokens per text (words, for a grid), special tokens included.
    pub max_len: Option<usize>,
    /// The length that every text is padded to.
    pub pad: Option<usize>,
    /// Tokens seen less often are unknown.
    pub min_count: u64,
    /// How many tokens the vocabulary may have, special ones not counted.
    pub max_vocab: Option<usize>,
    /// Characters for each word of a grid, at least one of them padding; 1 for other schemes.
    pub width: usize,
    /// Tokens put before every text.
    pub before: Option<&'static str>,
    /// Tokens put after every text.
    pub after: Option<&'static str>,
    /// The file with the vocabulary.
    pub vocab_file: Option<String>,
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
        let flag = |name: &str| match params.get(name) {
            Some(Value::Bool(flag)) => Some(*flag),
            _ => None,
        };
        let name = text("scheme").unwrap_or_default();
        let scheme = scheme(name)?;
        let only = |param: &'static str, schemes: &[Scheme]| {
            if params.contains_key(param) && !schemes.contains(&scheme) {
                let message = format!("`{param}` does not apply to the scheme `{name}`");
                return Err(error(param, message, "leave it out"));
            }
            Ok(())
        };
        use Scheme::{CharGrid, Chars, Whitespace, WordPiece, Words, WordsPunctuation};
        only("word_width", &[CharGrid])?;
        only(
            "add_special_tokens",
            &[Words, WordsPunctuation, Whitespace, WordPiece],
        )?;
        only("vocab_file", &[WordPiece])?;
        only("eos", &[Whitespace, Chars])?;
        only(
            "lowercase",
            &[WordsPunctuation, Whitespace, CharGrid, Chars, WordPiece],
        )?;
        let framed = flag("add_special_tokens").unwrap_or(scheme == WordPiece);
        let ended = flag("eos").unwrap_or(false);
        if framed && ended {
            let message = "`eos` and `add_special_tokens` are both given".to_owned();
            return Err(error(
                "eos",
                message,
                "leave one out: [SEP] ends a text too",
            ));
        }
        let max_len = whole(params, "max_len", 1)?;
        let pad = flag("pad").unwrap_or(false);
        if pad && max_len.is_none() {
            let message = "`pad` needs `max_len`";
            return Err(error(
                "pad",
                message.to_owned(),
                "give the length to pad to: max_len = 250",
            ));
        }
        let settings = Settings {
            scheme,
            text: text("text").unwrap_or("text").to_owned(),
            train: text("train").unwrap_or("train").to_owned(),
            lowercase: flag("lowercase")
                .unwrap_or(!matches!(scheme, Whitespace | CharGrid | Chars)),
            max_len,
            pad: max_len.filter(|_| pad),
            min_count: whole(params, "min_count", 1)?.unwrap_or(1) as u64,
            max_vocab: whole(params, "max_vocab", 1)?,
            width: match scheme {
                CharGrid => match whole(params, "word_width", 2)?.unwrap_or(20) {
                    wide if wide > WIDEST => {
                        let message =
                            format!("`word_width` is {wide}, and must be at most {WIDEST}");
                        return Err(error(
                            "word_width",
                            message,
                            "every word takes that many ids",
                        ));
                    }
                    width => width,
                },
                _ => 1,
            },
            before: framed.then_some("[CLS]"),
            after: match framed {
                true => Some("[SEP]"),
                false => ended.then_some("[EOS]"),
            },
            vocab_file: text("vocab_file").map(str::to_owned),
        };
        if settings.keep() == 0 {
            let message = "`max_len` leaves no room for text between the special tokens";
            return Err(error("max_len", message.to_owned(), "raise it"));
        }
        Ok(settings)
    }

    /// How many tokens of the text itself are kept.
    pub fn keep(&self) -> usize {
        let marks = usize::from(self.before.is_some()) + usize::from(self.after.is_some());
        self.max_len
            .map_or(usize::MAX, |most| most.saturating_sub(marks))
    }

    /// Names that only special tokens have. Text is data: `[PAD]` in a text is an unknown word, whether or not this
    /// scheme has that special token.
    pub const MARKS: [&str; 7] = vocabulary::SPECIAL;

    /// The tokens at the head of a vocabulary made here, by their ids.
    pub fn specials(&self) -> &'static [&'static str] {
        match self.scheme {
            Scheme::Chars => &["[PAD]", "[UNK]", "[EOS]", "[GO]"],
            _ if self.after == Some("[EOS]") => &["[PAD]", "[UNK]", "[EOS]"],
            _ if self.before.is_some() => &["[PAD]", "[UNK]", "[CLS]", "[SEP]"],
            _ => &["[PAD]", "[UNK]"],
        }
    }
}

fn scheme(name: &str) -> Result<Scheme, ParamError> {
    let names = || SCHEMES.iter().map(|(name, _)| *name);
    match SCHEMES.iter().find(|(known, _)| *known == name) {
        Some((_, scheme)) => Ok(*scheme),
        None => Err(error(
            "scheme",
            format!("no scheme `{name}`"),
            &match crate::contract::nearest::nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("schemes: {}", names().collect::<Vec<_>>().join(", ")),
            },
        )),
    }
}

/// Characters for a word of a grid, at most: no word is as long.
const WIDEST: usize = 1 << 12;

fn whole(params: &Params, name: &'static str, least: i64) -> Result<Option<usize>, ParamError> {
    let Some(number) = params.get(name).and_then(Value::as_int) else {
        return Ok(None);
    };
    // Ids are 32-bit, so no larger number can mean anything.
    let most = i64::from(i32::MAX);
    if number < least || number > most {
        let limit = match number < least {
            true => format!("at least {least}"),
            false => format!("at most {most}"),
        };
        let message = format!("`{name}` is {number}, and must be {limit}");
        return Err(error(name, message, "or leave it out"));
    }
    Ok(Some(number as usize))
}

fn error(param: &'static str, message: String, help: &str) -> ParamError {
    ParamError {
        param,
        message,
        help: Some(help.to_owned()),
    }
}
