//! A model under test with its inputs, opened from tables.

use arrow::array::{Array, StringArray};
use nn::Stream;
use nn::autodiff::Params as Weights;
use nn::batch::{Sequence, Target};
use nn::models::Model;
use nn::victim::{Neural, Victim};

use super::generate::{Generator, Item, Made};
use super::nearest::Embeddings;
use super::settings::{FallBack, TestSettings, for_task};
use super::spelling::{Characters, Correction};
use super::windows::windows;
use crate::models::entry::ModelTask;
use crate::models::loaded::Loaded;
use crate::models::{self, failure as refused};
use crate::params::settings::{Settings, failure};
use crate::tables::generated::{GeneratedRow, PredictionRow};
use crate::tables::sequences::{Form, SequenceTable};
use crate::tables::vocabulary;
use crate::training::translate;
use crate::{Failure, Task};

/// What is tested.
pub struct Tested {
    loaded: Loaded,
    task: ModelTask,
    rows: SequenceTable,
    words: Option<StringArray>,
    /// Of a sequence-to-sequence model.
    characters: Option<Characters>,
    settings: TestSettings,
}

/// An input, and what a sequence-to-sequence model makes of it.
pub struct Input {
    /// The input.
    pub item: Item,
    /// The model's own prediction, beside the target, and what it corrects.
    pub before: Option<(PredictionRow, Vec<Correction>)>,
}

/// What a sequence-to-sequence model makes of an input and of the changed one.
pub struct Predicted {
    /// Both, beside the target.
    pub rows: [PredictionRow; 2],
    /// Whether a correction was lost, and whether a misspelt word is back.
    pub undone: [bool; 2],
}

/// What a tokenize stage puts into a vocabulary beside what is in texts.
const SPECIAL: [&str; 4] = ["[PAD]", "[UNK]", "[EOS]", "[GO]"];

/// Texts that are decoded together.
const GROUP: usize = 256;

impl Tested {
    /// Model, rows and words, which must belong together.
    pub fn open(task: &Task<'_>) -> Result<Tested, Failure> {
        let settings = TestSettings::read(task.params).map_err(failure)?;
        let loaded = Loaded::open(&task.inputs["victim"], None)?;
        let kind = models::of(&loaded.card)?.entry().task;
        for_task(task.params, Some(kind)).map_err(failure)?;
        let rows = match kind {
            ModelTask::Translate => SequenceTable::read_pairs(&task.inputs["rows"])?,
            _ => SequenceTable::read(&task.inputs["rows"])?,
        };
        vocabulary::agreed("victim", loaded.card.words(), "rows", rows.form.words())?;
        let vocab = task.inputs.get("vocab");
        let listed = vocab.and_then(vocabulary::listed);
        vocabulary::agree(rows.form.words(), listed.as_deref(), "vocab")?;
        let words = vocab.map(|vocab| vocabulary::words(vocab, "vocab"));
        let words = words.transpose()?;
        let characters = match kind {
            ModelTask::Translate => Some(characters(words.as_ref())?),
            _ => None,
        };
        Ok(Tested {
            loaded,
            task: kind,
            rows,
            words,
            characters,
            settings,
        })
    }

    /// The network and its weights.
    pub fn network(&self) -> Result<(&Model, &Weights<f32>), Failure> {
        let network = self.loaded.network();
        network.ok_or_else(|| Failure::new("the victim is not a network"))
    }

    /// Tokens that may be put into an input: not padding, and not what stands for unknown ones; of characters neither
    /// spaces nor what ends a text.
    pub fn allowed(&self) -> Vec<u32> {
        let Form::Tokens { vocabulary, .. } = self.rows.form else {
            return Vec::new();
        };
        let special = self.rows.form.special().unwrap_or_default();
        let of_characters = |token: &u32| {
            let known = self.characters.as_ref();
            known.is_some_and(|c| c.space == *token || c.special.contains(token))
        };
        let tokens = 0..vocabulary as u32;
        tokens
            .filter(|token| !special.contains(token) && !of_characters(token))
            .collect()
    }

    /// The inputs to change.
    pub fn inputs(&self, task: &Task<'_>, victim: &Neural<'_>) -> Result<Vec<Input>, Failure> {
        let split = Settings(task.params).text("split").unwrap_or("test");
        match &self.characters {
            Some(characters) => self.sentences(characters, split, task.seed, victim),
            None => {
                let window = self.settings.window.unwrap_or(10);
                let items = windows(&self.rows, split, window, self.settings.items, task.seed)?;
                let input = |item| Input { item, before: None };
                Ok(items.into_iter().map(input).collect())
            }
        }
    }

    /// The first rows of a split in which the model corrects a misspelt word.
    fn sentences(
        &self,
        characters: &Characters,
        split: &str,
        seed: u64,
        victim: &Neural<'_>,
    ) -> Result<Vec<Input>, Failure> {
        let places = self.rows.split(split);
        if places.is_empty() {
            return Err(self.rows.no_split(split, "split"));
        }
        let mut inputs = Vec::new();
        for places in places.chunks(GROUP) {
            inputs.extend(self.corrected(characters, places, seed, victim)?);
            if self.settings.items > 0 && inputs.len() >= self.settings.items {
                inputs.truncate(self.settings.items);
                break;
            }
        }
        if inputs.is_empty() {
            return Err(Failure::new(format!(
                "the model corrects no misspelt word of the split `{split}`: there is nothing to change"
            ))
            .help("train it for longer, or connect rows with misspellings that it corrects"));
        }
        Ok(inputs)
    }

    /// The rows at these places in which the model corrects a misspelt word.
    fn corrected(
        &self,
        characters: &Characters,
        places: &[usize],
        seed: u64,
        victim: &Neural<'_>,
    ) -> Result<Vec<Input>, Failure> {
        let pairs = translate::examples(&self.rows, places)?;
        let texts: Vec<&Sequence> = pairs.iter().map(|pair| &pair.input).collect();
        let predicted = predictions(victim, &texts)?;
        let stream = Stream::new(seed, "rnn-test");
        let mut inputs = Vec::new();
        for ((place, pair), predicted) in places.iter().zip(&pairs).zip(predicted) {
            let (Sequence::Tokens(input), Target::Tokens(target)) = (&pair.input, &pair.target)
            else {
                continue;
            };
            let corrections = characters.corrections(input, target, &predicted);
            let (id, stream) = (&self.rows.ids[*place], stream.item(*place as u64));
            let fall_back = self.fall_back();
            let item = characters.item(id, input, target, &corrections, fall_back, stream);
            inputs.extend(item.map(|item| Input {
                item,
                before: Some((characters.measured(predicted, target), corrections)),
            }));
        }
        Ok(inputs)
    }

    fn fall_back(&self) -> FallBack {
        match self.task {
            ModelTask::Translate => self.settings.fall_back.unwrap_or(FallBack::Word),
            _ => FallBack::None,
        }
    }

    /// Changes them.
    pub fn generate(&self, task: &Task<'_>) -> Result<Made, Failure> {
        let (model, params) = self.network()?;
        let victim = Neural::new(model, params).map_err(refused)?;
        let span = model.layout().find("embedding");
        let span = span.ok_or_else(|| Failure::new("the victim has no embeddings"))?;
        let embeddings = Embeddings::new(params.view(span), self.allowed());
        let generator = Generator {
            victim: &victim,
            embeddings: &embeddings,
            settings: &self.settings,
            fall_back: self.fall_back(),
            task: self.task,
            scales: self.settings.scales(self.task).map_err(failure)?,
        };
        let inputs = self.inputs(task, &victim)?;
        if self.settings.items > inputs.len() {
            let (asked, found) = (self.settings.items, inputs.len());
            let what = format!("`items` is {asked}, but there are only {found} inputs");
            task.watch.log(&format!("{what}: all of them are taken"));
        }
        let items: Vec<Item> = inputs.iter().map(|input| input.item.clone()).collect();
        let mut made = generator.run(&items, task.watch)?;
        self.predict(&victim, &inputs, &mut made.rows)?;
        Ok(made)
    }

    /// What a sequence-to-sequence model makes of the changed inputs.
    fn predict(
        &self,
        victim: &Neural<'_>,
        inputs: &[Input],
        rows: &mut [GeneratedRow],
    ) -> Result<(), Failure> {
        let Some(characters) = &self.characters else {
            return Ok(());
        };
        let texts = rows
            .iter()
            .map(|row| Sequence::Tokens(row.adversarial.clone()));
        let texts: Vec<Sequence> = texts.collect();
        let after = predictions(victim, &texts.iter().collect::<Vec<_>>())?;
        for ((row, input), after) in rows.iter_mut().zip(inputs).zip(after) {
            let Some((before, corrections)) = &input.before else {
                continue;
            };
            row.undone = characters.undone(corrections, &after);
            let after = characters.measured(after, &row.target);
            row.predictions = Some([before.clone(), after]);
            row.passes[0] += 1 + u64::from(row.by.is_some());
        }
        Ok(())
    }

    /// What a prediction of a changed input must be, for `replay`.
    pub fn predicted(
        &self,
        victim: &Neural<'_>,
        input: &Input,
        adversarial: &[u32],
    ) -> Result<Option<Predicted>, Failure> {
        let (Some(characters), Some((before, corrections))) = (&self.characters, &input.before)
        else {
            return Ok(None);
        };
        let after = predictions(victim, &[&Sequence::Tokens(adversarial.to_vec())])?;
        let after = after.into_iter().next().unwrap_or_default();
        let undone = characters.undone(corrections, &after);
        let after = characters.measured(after, &input.item.target);
        Ok(Some(Predicted {
            rows: [before.clone(), after],
            undone,
        }))
    }

    /// What counts as covered.
    pub fn settings(&self) -> &TestSettings {
        &self.settings
    }

    /// A token in words, or its id if no vocabulary is connected.
    pub fn name(&self, token: u32) -> String {
        match &self.words {
            Some(words) if (token as usize) < words.len() => words.value(token as usize).to_owned(),
            _ => token.to_string(),
        }
    }

    /// A text in words, without special tokens: as it can be tokenized again.
    pub fn text(&self, tokens: &[u32]) -> String {
        let special = self.rows.form.special().unwrap_or_default();
        let shown = |token: &&u32| {
            let name = self.name(**token);
            !special.contains(token) && !SPECIAL.contains(&name.as_str())
        };
        let names: Vec<String> = tokens.iter().filter(shown).map(|t| self.name(*t)).collect();
        names.join(if self.characters.is_some() { "" } else { " " })
    }
}

/// What the model makes of texts, each of at most twice its length and ten tokens more.
fn predictions(victim: &Neural<'_>, texts: &[&Sequence]) -> Result<Vec<Vec<u32>>, Failure> {
    let most = |text: &Sequence| 2 * text.len() + 10;
    let mut all = Vec::with_capacity(texts.len());
    for group in texts.chunks(GROUP) {
        let longest = group.iter().map(|text| most(text)).max().unwrap_or(0);
        let made = victim.decode(group, longest).map_err(refused)?;
        all.extend(made.into_iter().zip(group).map(|(mut made, text)| {
            made.truncate(most(text));
            made
        }));
    }
    Ok(all)
}

/// The characters of a vocabulary that have a meaning.
fn characters(words: Option<&StringArray>) -> Result<Characters, Failure> {
    let words = words.ok_or_else(|| {
        Failure::new("a sequence-to-sequence model is tested with the input `vocab`")
            .help("connect the output `vocab` of its tokenize stage")
    })?;
    let place = |name: &str| words.iter().position(|word| word == Some(name));
    let space = place(" ").ok_or_else(|| {
        Failure::new("the vocabulary has no space: sequence-to-sequence models are tested character by character")
            .help("tokenize with scheme = \"chars\"")
    })?;
    let special = SPECIAL.iter().filter_map(|name| place(name));
    Ok(Characters {
        space: space as u32,
        special: special.map(|token| token as u32).collect(),
    })
}
