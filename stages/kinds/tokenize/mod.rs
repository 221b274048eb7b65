//! `tokenize`: texts to lists of token ids, with the vocabulary that they mean.
//!
//! [`rows`] reads the table, [`scan`] the texts (by the rules in [`words`], [`split`],
//! [`basic`] and [`pieces`]), [`vocab`] decides the ids, [`output`] and [`stats`] make the
//! tables. Knows nothing of models: nothing is padded here but the words of a grid, unless asked for.

mod basic;
mod interner;
mod merge;
mod numbers;
mod output;
mod pieces;
mod rows;
mod scan;
mod settings;
mod split;
mod stats;
#[cfg(test)]
mod tests;
mod token_counts;
mod vocab;
mod words;

use rayon::prelude::*;
use store::{Params, Value};

use crate::contract::description::{
    Description, Inputs, Param, Port, Ports, Presence, Renamed, Type,
};
use crate::contract::expected::{
    Blamed, Expected, ExpectedInputs, ExpectedOutputs, ExpectedRows, Mismatch, TextSource,
};
use crate::contract::role::Role;
use crate::params::settings::{failure, wrong};
use crate::{Failure, Outputs, ParamError, Stage, Task};
use rows::Rows;
use settings::{Scheme, Settings};
use vocab::Vocabulary;

/// The kind `tokenize`.
pub struct Tokenize;

static DESCRIPTION: Description = Description {
    kind: "tokenize",
    summary: "Texts to token ids, with the vocabulary of the training split.",
    params: &[
        Param {
            name: "scheme",
            ty: Type::Text,
            presence: Presence::Required,
            help: "words, words-punctuation, whitespace, char-grid, chars or word-piece.",
            ..Param::PLAIN
        },
        Param {
            name: "max_len",
            ty: Type::Int,
            presence: Presence::Optional,
            help: "Maximum number of tokens per text (words, for char-grid); default: all.",
            ..Param::PLAIN
        },
        Param {
            name: "pad",
            ty: Type::Bool,
            presence: Presence::Optional,
            help: "Whether shorter texts are padded to max_len with [PAD]; default: false.",
            ..Param::PLAIN
        },
        Param {
            name: "min_count",
            ty: Type::Int,
            presence: Presence::Default(|| Value::Int(1)),
            help: "Tokens that are rarer in the training split become [UNK].",
            ..Param::PLAIN
        },
        Param {
            name: "max_vocab",
            ty: Type::Int,
            presence: Presence::Optional,
            help: "Maximum vocabulary size, without special tokens.",
            ..Param::PLAIN
        },
        Param {
            name: "lowercase",
            ty: Type::Bool,
            presence: Presence::Optional,
            help: "Whether texts are lowercased; default: by scheme, see its README.",
            ..Param::PLAIN
        },
        Param {
            name: "word_width",
            ty: Type::Int,
            presence: Presence::Optional,
            help: "For char-grid: characters per word, the last one padding; default: 20.",
            ..Param::PLAIN
        },
        Param {
            name: "eos",
            ty: Type::Bool,
            presence: Presence::Optional,
            help: "For whitespace and chars: whether every text ends with [EOS]; default: false.",
            ..Param::PLAIN
        },
        Param {
            name: "add_special_tokens",
            ty: Type::Bool,
            presence: Presence::Optional,
            help: "For words, words-punctuation, whitespace and word-piece: whether [CLS] and [SEP] are added; default: true for word-piece, false for others.",
            ..Param::PLAIN
        },
        Param {
            name: "vocab_file",
            ty: Type::Text,
            presence: Presence::Optional,
            help: "For word-piece: BERT's vocab.txt, if no vocabulary is connected.",
            ..Param::PLAIN
        },
        Param {
            name: "text",
            ty: Type::Text,
            presence: Presence::Default(|| Value::Text("text".to_owned())),
            help: "The text column; a second text has the same name with `_b`.",
            ..Param::PLAIN
        },
        Param {
            name: "train",
            ty: Type::Text,
            presence: Presence::Default(|| Value::Text("train".to_owned())),
            help: "The split that the vocabulary is made from.",
            ..Param::PLAIN
        },
    ],
    seeded: false,
    role: Role::Tokenizer,
};

impl Stage for Tokenize {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn renamed(&self) -> &'static [Renamed] {
        const PAD: Renamed = Renamed::Param {
            old: "fill",
            new: "pad",
        };
        &[PAD]
    }

    fn ports(&self, _: &Params) -> Ports {
        let output = |name: &'static str| Port {
            name: name.to_owned(),
            holds: name,
            required: true,
        };
        Ports {
            inputs: Inputs::Named(vec![
                Port::table("rows"),
                Port {
                    required: false,
                    ..Port::table("vocab")
                },
            ]),
            outputs: vec![output("tokens"), output("vocab"), output("stats")],
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        Settings::read(params).map(drop)
    }

    fn expect(
        &self,
        params: &Params,
        inputs: &ExpectedInputs<'_>,
    ) -> Result<ExpectedOutputs, Mismatch> {
        let settings = Settings::read(params)?;
        one_vocabulary(&settings, inputs.has("vocab"))?;
        inputs.has_split("rows", "train", &settings.train)?;
        let given = inputs.of("rows");
        if given.is_some_and(|rows| rows.rows == Some(ExpectedRows::Signals)) {
            let at = Blamed::Input("rows".to_owned());
            let help = "connect signals to train and attack stages as they are";
            return Err(Mismatch::new(
                at,
                "`tokenize` reads texts, and `rows` are signals",
                help,
            ));
        }
        let second = format!("{}_b", settings.text);
        let is_pair = |rows: &Expected| {
            rows.second_text.as_ref() == Some(&second) || rows.has_column(&second) == Some(true)
        };
        let texts = given.and_then(|rows| rows.texts.clone());
        let texts = texts.map(|texts| TextSource {
            lowercase: Some(settings.lowercase),
            ..texts
        });
        let tokens = Expected {
            texts: texts.clone(),
            rows: Some(match settings.scheme {
                Scheme::CharGrid => ExpectedRows::Grid,
                _ => ExpectedRows::Tokens {
                    padded: settings.pad.is_some(),
                },
            }),
            splits: given.and_then(|rows| rows.splits.clone()),
            classes: given.and_then(|rows| rows.classes),
            second_text: given.is_some_and(is_pair).then(|| "ids_b".to_owned()),
            ..Expected::default()
        };
        let vocab = Expected {
            // Those of a vocabulary that was given may be of anything.
            texts: texts.filter(|_| !inputs.has("vocab") && settings.vocab_file.is_none()),
            ..Expected::of_columns(&["id", "token", "count"])
        };
        let stats = Expected::of_columns(&["column", "split", "stat", "from", "value"]);
        Ok(vec![tokens, vocab, stats])
    }

    fn files<'a>(&self, params: &'a Params) -> Vec<(&'static str, &'a str)> {
        let file = params.get("vocab_file").and_then(Value::as_text);
        file.map(|name| ("vocab_file", name)).into_iter().collect()
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let settings = Settings::of(task)?;
        let rows = Rows::read(&task.inputs["rows"], &settings)?;
        let given = given(task, &settings)?;
        let (shards, readings) = scan::scan(&rows, &settings, given.as_ref(), task.watch)?;
        let seen = merge::merge(readings);
        let vocab = match given {
            Some(given) => given,
            None => Vocabulary::count(&seen, &settings),
        };
        // From the numbers of all readers to ids; for word-piece they are the same.
        let marks = Settings::MARKS.iter();
        let marks: Vec<u32> = marks
            .filter_map(|mark| vocab.tokens.find(mark.as_bytes()))
            .collect();
        let id = |n| {
            let found = vocab.tokens.find(seen.tokens.get(n));
            let word = found.filter(|id| !marks.contains(id));
            word.unwrap_or(vocab.unknown) as i32
        };
        let id: Vec<i32> = (0..seen.tokens.len() as u32)
            .into_par_iter()
            .map(id)
            .collect();
        let table = |places: &Vec<u32>| {
            let pad = std::iter::once(vocab.pad as i32);
            match settings.scheme {
                Scheme::WordPiece => pad.chain(0..vocab.tokens.len() as i32).collect(),
                _ => pad.chain(places.iter().map(|n| id[*n as usize])).collect(),
            }
        };
        let tables: Vec<Vec<i32>> = seen.places.iter().map(table).collect();
        let mut counts = match settings.scheme {
            Scheme::WordPiece => {
                let mut counts: Vec<i64> = seen.counts.iter().map(|n| *n as i64).collect();
                counts.resize(vocab.tokens.len(), 0);
                counts
            }
            _ => {
                let mut counts = vec![0; vocab.tokens.len()];
                for (id, count) in id.iter().zip(&seen.counts) {
                    counts[*id as usize] += *count as i64;
                }
                counts
            }
        };
        let trained = rows.split.iter().filter(|split| **split == rows.train);
        let trained = (trained.count() * rows.texts.len()) as i64;
        for mark in [settings.before, settings.after].into_iter().flatten() {
            let id = vocab.tokens.find(mark.as_bytes());
            counts[id.expect("special tokens are looked up with the vocabulary") as usize] +=
                trained;
        }
        // Shards are handed over, so that each is gone as soon as its ids are in the table.
        drop(seen);
        let mut of_column: Vec<Vec<_>> = rows.texts.iter().map(|_| Vec::new()).collect();
        for shard in shards {
            of_column[shard.column].push(shard);
        }
        let columns = of_column
            .into_iter()
            .map(|shards| output::ids(shards, &tables, &vocab, &settings))
            .collect::<Result<Vec<_>, _>>()?;
        let stats = stats::table(&rows, &columns, &vocab, &settings);
        let metadata = output::metadata(&vocab, &settings);
        let marks = output::pair_marks(&rows, &vocab, &settings);
        let tokens = [metadata.clone(), marks].concat();
        let tokens = output::tokens(&rows, columns, tokens, &settings);
        let vocab = output::vocab(&vocab, counts, metadata);
        Ok([("tokens", tokens), ("vocab", vocab), ("stats", stats)]
            .map(|(name, table)| (name.to_owned(), table))
            .into())
    }
}

/// The vocabulary of the port or of the file, if there is one.
fn given(task: &Task<'_>, settings: &Settings) -> Result<Option<Vocabulary>, Failure> {
    let port = task.inputs.get("vocab");
    one_vocabulary(settings, port.is_some()).map_err(failure)?;
    Ok(match (&settings.vocab_file, port) {
        (Some(name), _) => Some(Vocabulary::from_file(name, file(task, name)?, settings)?),
        (None, Some(table)) => Some(Vocabulary::from_table(table, settings)?),
        (None, None) => None,
    })
}

/// Refuses two vocabularies, none where one is needed, and limits on one that is not made here: silently
/// ignored they would be taken for granted.
fn one_vocabulary(settings: &Settings, connected: bool) -> Result<(), ParamError> {
    let given = connected || settings.vocab_file.is_some();
    if connected && settings.vocab_file.is_some() {
        let message = "both a file and an input give a vocabulary".to_owned();
        let help = "leave out `vocab_file` or the input `vocab`";
        return Err(wrong("vocab_file", message, help));
    }
    if !given && settings.scheme == Scheme::WordPiece {
        let message = "word-piece needs a vocabulary".to_owned();
        let help = "name BERT's vocab.txt as `vocab_file`, or connect the input `vocab`";
        return Err(wrong("scheme", message, help));
    }
    let limit = match settings.max_vocab {
        Some(_) => Some("max_vocab"),
        None => (settings.min_count > 1).then_some("min_count"),
    };
    match limit.filter(|_| given) {
        Some(param) => {
            let message = format!("`{param}` would have no effect on a vocabulary that is given");
            let help = "leave it out, or set it in the stage that makes the vocabulary";
            Err(wrong(param, message, help))
        }
        None => Ok(()),
    }
}

fn file<'a>(task: &Task<'a>, name: &str) -> Result<crate::SourceFile<'a>, Failure> {
    // The engine names files without `./`.
    let plain = name.trim_start_matches("./");
    task.files.get(plain).copied().ok_or_else(|| {
        Failure::new(format!("{name} is not a file"))
            .help("name one file beside the pipeline file")
            .at("vocab_file")
    })
}
