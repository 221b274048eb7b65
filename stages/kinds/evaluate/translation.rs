//! How well a model translates, and how well with a typo in every sentence (Hsieh et al. 2019, table 8).
//!
//! Greedy decoding or beam search; corpus BLEU-4 of tokens. A typo replaces one random word of a sentence: one that the input
//! `misspellings` lists, by one of its misspellings; if it lists none of them, two neighbouring letters of a word change
//! places. What is no word of the vocabulary then is unknown to the model. Draws depend on the id of a row alone.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use arrow::record_batch::RecordBatch;
use nn::Stream;
use nn::batch::Sequence;
use nn::victim::{Neural, Victim, beam_search};

use super::bleu::corpus_bleu;
use super::translation_attention::{self, Translated};
use crate::models::failure as refused;
use crate::models::loaded::Loaded;
use crate::params::settings::Settings;
use crate::tables::sequences::{Form, SequenceTable};
use crate::tables::vocabulary::{self, SPECIAL};
use crate::tables::weights::with_metadata;
use crate::{Failure, Outputs, Task};

/// The columns of the output `translations`.
pub const COLUMNS: [&str; 6] = ["id", "source", "reference", "output", "typo", "typo_output"];
/// The columns of the output `bleu`.
pub const SCORES: [&str; 3] = ["input", "bleu", "n"];

/// The longest translation, in words.
const LONGEST: usize = 60;

/// The words of the rows, and their misspellings.
struct Spelling<'a> {
    words: &'a StringArray,
    ids: HashMap<&'a str, u32>,
    unknown: u32,
    wrong: HashMap<&'a str, Vec<&'a str>>,
}

/// `translations` and `bleu`.
pub fn run(task: &Task<'_>) -> Result<Outputs, Failure> {
    let loaded = Loaded::open(&task.inputs["victim"], None)?;
    let rows = SequenceTable::read_pairs(&task.inputs["rows"])?;
    let words = vocabulary::words(&task.inputs["vocab"], "vocab")?;
    let listed = vocabulary::listed(&task.inputs["vocab"]);
    vocabulary::agree(rows.form.words(), listed.as_deref(), "vocab")?;
    vocabulary::agree(rows.form.words(), loaded.card.words(), "victim")?;
    let (Some(second), Form::Tokens { unknown, .. }) = (&rows.second, &rows.form) else {
        return Err(
            Failure::new("the rows have no second text to compare translations with")
                .help("connect the rows that the model was trained on"),
        );
    };
    let misspellings = task.inputs.get("misspellings");
    let spelling = Spelling {
        ids: known(&words),
        unknown: *unknown,
        wrong: misspellings
            .map(wrong_spellings)
            .transpose()?
            .unwrap_or_default(),
        words: &words,
    };
    let settings = Settings(task.params);
    let split = settings.text("split").unwrap_or("test");
    let mut places = rows.split(split);
    if places.is_empty() {
        return Err(rows.no_split(split, "split"));
    }
    places.truncate(settings.maybe_int("samples").unwrap_or(usize::MAX));
    let tokens = |sequence: &Sequence| match sequence {
        Sequence::Tokens(ids) => ids.clone(),
        _ => Vec::new(),
    };
    let sources: Vec<Vec<u32>> = places
        .iter()
        .map(|n| tokens(&rows.examples[*n].input))
        .collect();
    let references: Vec<Vec<u32>> = places.iter().map(|n| tokens(&second[*n])).collect();
    let typos = places.iter().zip(&sources);
    let typos: Vec<(Vec<u32>, String)> = typos
        .map(|(n, source)| spelling.typo(source, &rows.ids[*n]))
        .collect();
    let misspelt: Vec<Vec<u32>> = typos.iter().map(|(text, _)| text.clone()).collect();
    let translator = Translator::new(&loaded, settings.maybe_int("beam").unwrap_or(1))?;
    let outputs = [
        translator.translate(&sources)?,
        translator.translate(&misspelt)?,
    ];
    let attention = translator.attention(&places, &rows.ids, &sources, &outputs[0], &spelling)?;
    let written = |ids: &[u32]| spelling.text(ids);
    let column = |get: &dyn Fn(usize) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..places.len()).map(get)))
    };
    let arrays: [ArrayRef; 6] = [
        column(&|n| rows.ids[places[n]].clone()),
        column(&|n| written(&sources[n])),
        column(&|n| written(&references[n])),
        column(&|n| written(&outputs[0][n])),
        column(&|n| typos[n].1.clone()),
        column(&|n| written(&outputs[1][n])),
    ];
    let columns = COLUMNS.into_iter().zip(arrays).collect();
    let scored = outputs.map(|outputs| {
        let pairs = outputs.iter().zip(&references);
        let plain = |ids: &Vec<u32>| spelling.plain(ids);
        let pairs = pairs.map(|(output, reference)| (plain(output), plain(reference)));
        corpus_bleu(&pairs.collect::<Vec<_>>())
    });
    let scores: [ArrayRef; 3] = [
        Arc::new(StringArray::from(vec!["clean", "typos"])),
        Arc::new(Float64Array::from(scored.to_vec())),
        Arc::new(Int64Array::from(vec![places.len() as i64; 2])),
    ];
    let scores = SCORES.into_iter().zip(scores).collect();
    Ok(Outputs::from([
        (
            "translations".to_owned(),
            with_metadata(columns, Metadata::default()),
        ),
        (
            "bleu".to_owned(),
            with_metadata(scores, Metadata::default()),
        ),
        ("attention".to_owned(), attention),
    ]))
}

/// The model, and how it is asked.
struct Translator<'a> {
    victim: Neural<'a>,
    end: u32,
    /// The longest translation, in words.
    most: usize,
    /// The width of the beam; 1 for greedy decoding.
    beam: usize,
}

impl<'a> Translator<'a> {
    fn new(loaded: &'a Loaded, beam: usize) -> Result<Translator<'a>, Failure> {
        let network = loaded.network();
        let network = network.and_then(|(model, params)| Some((model, params, model.decoding()?)));
        let (model, params, decoding) = network.ok_or_else(|| {
            Failure::new(format!("the model `{}` does not translate", loaded.card.model()))
                .help("connect `victim` to a train stage with model = \"seq2seq\" or \"transformer-seq2seq\"")
        })?;
        Ok(Translator {
            victim: Neural::new(model, params).map_err(refused)?,
            end: decoding.end,
            most: decoding.max_steps.min(LONGEST),
            beam,
        })
    }

    fn translate(&self, sources: &[Vec<u32>]) -> Result<Vec<Vec<u32>>, Failure> {
        let texts: Vec<Sequence> = sources.iter().cloned().map(Sequence::Tokens).collect();
        let texts: Vec<&Sequence> = texts.iter().collect();
        let found = match self.beam {
            1 => self.victim.decode(&texts, self.most),
            beam => beam_search(&self.victim, &texts, self.end, self.most, beam),
        };
        found.map_err(refused)
    }

    /// What is attended to while each output is written.
    fn attention(
        &self,
        places: &[usize],
        ids: &[String],
        sources: &[Vec<u32>],
        outputs: &[Vec<u32>],
        spelling: &Spelling<'_>,
    ) -> Result<RecordBatch, Failure> {
        let translated = places.iter().zip(sources).zip(outputs);
        let translated = translated.map(|((place, source), output)| Translated {
            id: &ids[*place],
            source,
            output: self.ended(output),
        });
        let translated: Vec<Translated<'_>> = translated.collect();
        let word = |id: u32| spelling.word(id).to_owned();
        translation_attention::table(&self.victim, &translated, word)
    }

    /// An output with its end, if there was room for it.
    fn ended(&self, output: &[u32]) -> Vec<u32> {
        let all = output.iter().copied().chain([self.end]);
        all.take(self.most).collect()
    }
}

fn known(words: &StringArray) -> HashMap<&str, u32> {
    let ids = words.iter().zip(0_u32..);
    ids.filter_map(|(word, id)| Some((word?, id))).collect()
}

fn wrong_spellings(table: &RecordBatch) -> Result<HashMap<&str, Vec<&str>>, Failure> {
    let column = |name: &str| {
        let column = table.column_by_name(name);
        let column = column.and_then(|column| column.as_string_opt::<i32>());
        column.ok_or_else(|| {
            Failure::new(format!(
                "the input `misspellings` has no column `{name}` of strings"
            ))
            .help("connect a dataset stage with name = \"misspellings\"")
        })
    };
    let (source, target) = (column("source")?, column("target")?);
    let mut wrong: HashMap<&str, Vec<&str>> = HashMap::new();
    for row in 0..table.num_rows() {
        wrong
            .entry(source.value(row))
            .or_default()
            .push(target.value(row));
    }
    Ok(wrong)
}

impl Spelling<'_> {
    fn word(&self, id: u32) -> &str {
        self.words.value(id as usize)
    }

    /// Without special tokens. A text that has an unknown word keeps it.
    fn plain(&self, ids: &[u32]) -> Vec<u32> {
        let special = |id: &u32| SPECIAL.contains(&self.word(*id)) && *id != self.unknown;
        ids.iter().copied().filter(|id| !special(id)).collect()
    }

    fn text(&self, ids: &[u32]) -> String {
        let words: Vec<&str> = self
            .plain(ids)
            .into_iter()
            .map(|id| self.word(id))
            .collect();
        words.join(" ")
    }

    /// A text with one typo, and what became what.
    fn typo(&self, source: &[u32], id: &str) -> (Vec<u32>, String) {
        let digest = store::Digest::of(id.as_bytes()).to_string();
        let number = u64::from_str_radix(&digest[..16], 16).unwrap_or_default();
        let stream = Stream::new(0, "typos").item(number);
        let is_word = |place: &usize| !SPECIAL.contains(&self.word(source[*place]));
        let places: Vec<usize> = (0..source.len()).filter(is_word).collect();
        let listed = |place: &usize| self.wrong.contains_key(self.word(source[*place]));
        let long = |place: &usize| self.word(source[*place]).chars().count() > 1;
        let of = |test: &dyn Fn(&usize) -> bool| -> Vec<usize> {
            places.iter().copied().filter(|place| test(place)).collect()
        };
        let choices = match of(&listed) {
            choices if choices.is_empty() => of(&long),
            choices => choices,
        };
        let Some(place) = choices.get(stream.below(0, choices.len().max(1))) else {
            return (source.to_vec(), String::new());
        };
        let old = self.word(source[*place]);
        let new = match self.wrong.get(old) {
            Some(all) => all[stream.below(1, all.len())].to_owned(),
            None => swapped(old, &stream),
        };
        let mut text = source.to_vec();
        text[*place] = self.ids.get(new.as_str()).copied().unwrap_or(self.unknown);
        (text, format!("{old} -> {new}"))
    }
}

/// Two neighbouring letters change places.
fn swapped(word: &str, stream: &Stream) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let at = stream.below(1, letters.len() - 1);
    letters.swap(at, at + 1);
    letters.into_iter().collect()
}
