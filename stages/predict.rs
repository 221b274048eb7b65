//! Asks a stored classifier about texts, through the tokenizer that its rows came from. For the command line: nothing is
//! stored, and nothing is in a key.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;
use store::{Params, Value};

use crate::kinds::tokenize::Tokenize;
use crate::models::loaded::{Loaded, probabilities};
use crate::tables::sequences::{self, Form, SequenceTable};
use crate::tables::{vectors, vocabulary, weights};
use crate::{DataHome, Failure, Place, Stage, Task, Watch};

/// A stored model, and what it needs to read texts.
pub struct StoredModel<'a> {
    /// Its weights.
    pub weights: &'a RecordBatch,
    /// The word vectors that it was trained with, if some are connected to it.
    pub vectors: Option<&'a RecordBatch>,
    /// The completed parameters of its tokenize stage.
    pub tokenizer: &'a Params,
    /// The vocabulary that the tokenize stage made.
    pub vocab: &'a RecordBatch,
    /// Where an external model is started.
    pub place: &'a Place,
}

/// The digest of the vocabulary that a model was trained with; none for a model that reads no tokens.
pub fn vocabulary_of(table: &RecordBatch) -> Result<Option<String>, Failure> {
    let (card, _) = weights::read(table)?;
    Ok(card.words().map(str::to_owned))
}

/// The digest of the words of a table `vocab`.
pub fn digest_of(vocab: &RecordBatch) -> Option<String> {
    vocabulary::listed(vocab)
}

/// What a model says of a text.
pub struct Answer {
    /// The probabilities of the classes.
    pub probabilities: Vec<f32>,
    /// How many tokens it read, and how many of them its vocabulary does not have.
    pub tokens: [usize; 2],
}

impl StoredModel<'_> {
    /// What it says of each text.
    pub fn ask(&self, texts: &[String], watch: &dyn Watch) -> Result<Vec<Answer>, Failure> {
        let vectors = self.vectors.map(vectors::read).transpose()?;
        let loaded = Loaded::open(self.weights, vectors.as_ref())?;
        // A translator is refused before anything is started.
        loaded.classifies()?;
        let rows = SequenceTable::read(&self.tokenized(texts, watch)?)?;
        vocabulary::agree(rows.form.words(), loaded.card.words(), "weights")?;
        let (nothing, home) = (Params::new(), DataHome::nowhere());
        let loaded = loaded.started(&task(BTreeMap::new(), &nothing, &home, self.place, watch))?;
        let inputs: Vec<&Sequence> = rows.examples.iter().map(|example| &example.input).collect();
        let answers = probabilities(loaded.subject()?.victim(), &inputs)?;
        loaded.finish(watch)?;
        let counted = inputs.iter().map(|input| counted(input, &rows.form));
        let each = answers.into_iter().zip(counted);
        Ok(each
            .map(|(probabilities, tokens)| Answer {
                probabilities,
                tokens,
            })
            .collect())
    }

    /// The texts as its tokenize stage would make them of the same vocabulary.
    fn tokenized(&self, texts: &[String], watch: &dyn Watch) -> Result<RecordBatch, Failure> {
        let mut params = self.tokenizer.clone();
        // The vocabulary is there already: what it was made by has been decided.
        params.insert("min_count".to_owned(), Value::Int(1));
        params.retain(|name, _| name != "max_vocab" && name != "vocab_file");
        let text = |name: &str| params.get(name).and_then(Value::as_text);
        let (column, train) = (text("text").unwrap_or("text"), text("train"));
        let split = vec![train.unwrap_or("train"); texts.len()];
        let ids = (0..texts.len()).map(|n| n.to_string());
        let columns: Vec<(&str, ArrayRef)> = vec![
            (sequences::ID, Arc::new(StringArray::from_iter_values(ids))),
            (sequences::SPLIT, Arc::new(StringArray::from(split))),
            (column, Arc::new(StringArray::from_iter_values(texts))),
        ];
        let rows = weights::with_metadata(columns, Default::default());
        let inputs = [("rows", rows), ("vocab", self.vocab.clone())];
        let inputs = inputs.map(|(port, table)| (port.to_owned(), table)).into();
        let (home, place) = (DataHome::nowhere(), Place::default());
        let mut outputs = Tokenize.run(&task(inputs, &params, &home, &place, watch))?;
        Ok(outputs.remove("tokens").expect("its first output"))
    }
}

/// How many tokens there are, padding left out, and how many of them are unknown.
fn counted(input: &Sequence, form: &Form) -> [usize; 2] {
    let (Some([pad, unknown]), Sequence::Tokens(ids)) = (form.special(), input) else {
        return [0, 0];
    };
    let count = |which: &dyn Fn(u32) -> bool| ids.iter().filter(|id| which(**id)).count();
    [count(&|id| id != pad), count(&|id| id == unknown)]
}

fn task<'a>(
    inputs: BTreeMap<String, RecordBatch>,
    params: &'a Params,
    data: &'a DataHome,
    place: &'a Place,
    watch: &'a dyn Watch,
) -> Task<'a> {
    Task {
        inputs,
        params,
        seed: 0,
        files: BTreeMap::new(),
        data,
        place,
        watch,
    }
}
