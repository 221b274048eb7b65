//! Vectors made elsewhere, whole or for the tokens of a vocabulary.

use std::collections::HashMap;
use std::io::Read;

use arrow::array::{Array, StringArray};
use arrow::datatypes::Metadata;
use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use store::Digest;

use super::formats;
use super::plain::random;
use super::settings::{Missing, SCALE, Settings};
use crate::params::settings::{failure, wrong};
use crate::tables::vectors::{self, Matrix};
use crate::tables::vocabulary::{self, PAD, UNKNOWN, Vocab};
use crate::{Failure, ParamError, Task};

/// The words and vectors of the stage, and how many tokens were found among them.
pub fn read(
    task: &Task<'_>,
    settings: &Settings,
    vocab: Option<&Vocab>,
) -> Result<(StringArray, Matrix, Metadata), Failure> {
    let port = task.inputs.get("vectors");
    one_source(settings, port.is_some(), vocab.is_some()).map_err(failure)?;
    let (words, matrix) = match (&settings.file, port) {
        (Some(name), _) if name.ends_with(".safetensors") => {
            let matrix =
                formats::safetensors(name, &bytes(task, name)?, settings.tensor.as_deref())?;
            return by_place(name, matrix, vocab);
        }
        (Some(name), _) => {
            let bytes = bytes(task, name)?;
            let (words, matrix) = formats::text(name, &bytes)?;
            (StringArray::from_iter_values(words), matrix)
        }
        (None, Some(table)) => (
            vocabulary::words(table, "vectors")?,
            vectors::read_any(table)?,
        ),
        (None, None) => return Err(Failure::new("there are no vectors")),
    };
    match vocab {
        None => Ok((words, matrix, Metadata::default())),
        Some(vocab) => restrict(&words, &matrix, vocab, settings, task),
    }
}

/// Refuses two sets of vectors, none, and settings of how words are looked up where none are.
pub fn one_source(settings: &Settings, vectors: bool, vocab: bool) -> Result<(), ParamError> {
    let file = settings.file.as_deref();
    let (param, message, help) = match (file, vectors) {
        (Some(_), true) => (
            "file",
            "both a file and an input give vectors",
            "leave out `file` or the input `vectors`",
        ),
        (None, false) => (
            "source",
            "there are no vectors",
            "connect the input `vectors`, or name a `file`",
        ),
        _ => {
            let by_place = file.is_some_and(|name| name.ends_with(".safetensors"));
            return looked_up(settings, by_place, vocab);
        }
    };
    Err(wrong(param, message.to_owned(), help))
}

fn looked_up(settings: &Settings, by_place: bool, vocab: bool) -> Result<(), ParamError> {
    if settings.tensor.is_some() && !by_place {
        let message = "`tensor` would have no effect here".to_owned();
        let help = "remove it: it only applies to safetensors files";
        return Err(wrong("tensor", message, help));
    }
    let random = settings.missing == Missing::Random;
    let given = [
        ("unknown", settings.unknown.is_some(), true),
        ("missing", !random, true),
        ("scale", settings.scale != SCALE as f32, random),
    ];
    let words = vocab && !by_place;
    let idle = given
        .iter()
        .find(|(_, given, used)| *given && !(words && *used));
    match idle {
        None => Ok(()),
        Some((name, _, true)) => {
            let message = format!("`{name}` would have no effect here");
            let help = match by_place {
                true => "leave it out: the rows of a safetensors file are taken as they are",
                false => {
                    "leave it out, or connect `vocab`: without it all vectors are taken as they are"
                }
            };
            Err(wrong(name, message, help))
        }
        Some((name, ..)) => {
            let message = format!("`{name}` would have no effect here");
            Err(wrong(
                name,
                message,
                "remove it: it only applies to missing = \"random\"",
            ))
        }
    }
}

/// Rows by id: a model's own table of embeddings.
fn by_place(
    name: &str,
    matrix: Matrix,
    vocab: Option<&Vocab>,
) -> Result<(StringArray, Matrix, Metadata), Failure> {
    let rows = matrix.values.len() / matrix.dim.max(1);
    match vocab {
        Some(vocab) if vocab.tokens.len() == rows => {
            Ok((vocab.tokens.clone(), matrix, Metadata::default()))
        }
        Some(vocab) => Err(Failure::new(format!(
            "{name} has {rows} rows, but the vocabulary has {} tokens",
            vocab.tokens.len()
        ))
        .help("the rows of a safetensors file are the ids of the vocabulary it was trained with")),
        None => Err(Failure::new(format!("{name} has vectors without words"))
            .help("connect the input `vocab` that its rows belong to")),
    }
}

/// A row for each token of the vocabulary.
fn restrict(
    words: &StringArray,
    matrix: &Matrix,
    vocab: &Vocab,
    settings: &Settings,
    task: &Task<'_>,
) -> Result<(StringArray, Matrix, Metadata), Failure> {
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(words.len());
    for (n, word) in words.iter().flatten().enumerate() {
        // The first of two equal words counts, as for every reader of these files.
        places.entry(word).or_insert(n);
    }
    let unknown = match &settings.unknown {
        // Vectors that were made for a vocabulary have one of their own.
        None => places.get(UNKNOWN).copied(),
        Some(word) => Some(*places.get(word.as_str()).ok_or_else(|| {
            Failure::new(format!("the word `{word}` has no vector"))
                .help("name another word for `unknown`, or leave it out")
                .at("unknown")
        })?),
    };
    let dim = matrix.dim;
    let mut values = Vec::with_capacity(vocab.tokens.len() * dim);
    let (mut found, mut absent) = (0, 0);
    for (n, token) in vocab.tokens.iter().flatten().enumerate() {
        let place = match token {
            UNKNOWN => unknown,
            token => places.get(token).copied(),
        };
        match (place, settings.missing) {
            _ if token == PAD => values.resize(values.len() + dim, 0.0),
            (Some(place), _) => {
                found += 1;
                values.extend_from_slice(matrix.row(place));
            }
            (None, missing) => {
                absent += 1;
                match (missing, unknown) {
                    (Missing::Unknown, Some(unknown)) => {
                        values.extend_from_slice(matrix.row(unknown));
                    }
                    (Missing::Random, _) => {
                        values.extend(random(task.seed, n, dim, settings.scale));
                    }
                    _ => values.resize(values.len() + dim, 0.0),
                }
            }
        }
    }
    let special = |token: &str| token == PAD || token == UNKNOWN;
    let words = || vocab.tokens.iter().flatten();
    if words().any(|token| !special(token))
        && !words().any(|t| !special(t) && places.contains_key(t))
    {
        return Err(Failure::new(format!(
            "none of the {} tokens of the vocabulary has a vector",
            vocab.tokens.len()
        ))
        .help("are the vectors for the same language, and in the same case?")
        .at("source"));
    }
    task.watch
        .log(&format!("{found} tokens have a vector, {absent} have none"));
    let metadata = [("ablate.found", found), ("ablate.missing", absent)];
    let metadata = metadata.map(|(key, n)| (key.to_owned(), n.to_string()));
    Ok((
        vocab.tokens.clone(),
        Matrix { dim, values },
        metadata.into_iter().collect(),
    ))
}

/// The contents of a file, unpacked if its name says that it is packed.
fn bytes(task: &Task<'_>, name: &str) -> Result<Vec<u8>, Failure> {
    // The engine names files without `./`.
    let file = task
        .files
        .get(name.trim_start_matches("./"))
        .ok_or_else(|| {
            Failure::new(format!("{name} is not a file"))
                .help("name one file beside the pipeline file")
                .at("file")
        })?;
    let bytes = std::fs::read(file.path)
        .map_err(|error| Failure::new(format!("cannot read {name}: {error}")).at("file"))?;
    if Digest::of(&bytes) != file.digest {
        return Err(
            Failure::new(format!("{name} changed while the pipeline was running"))
                .help("run again: the new contents get a new key")
                .at("file"),
        );
    }
    let mut plain = Vec::new();
    let unpacked = match name.rsplit_once('.') {
        Some((_, "bz2")) => MultiBzDecoder::new(&bytes[..]).read_to_end(&mut plain),
        Some((_, "gz")) => MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain),
        _ => return Ok(bytes),
    };
    match unpacked {
        Ok(_) => Ok(plain),
        Err(error) => Err(Failure::new(format!("{name} cannot be unpacked: {error}"))
            .help("the file is damaged or truncated: download it again")
            .at("file")),
    }
}
