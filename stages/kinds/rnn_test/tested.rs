//! A model under test with its inputs, opened from tables.

use arrow::array::{Array, StringArray};
use nn::autodiff::Params as Weights;
use nn::models::Model;
use nn::victim::Neural;

use super::generate::{Generator, Item, Made};
use super::nearest::Embeddings;
use super::settings::{FallBack, TestSettings, for_task};
use super::windows::windows;
use crate::models::entry::ModelTask;
use crate::models::loaded::Loaded;
use crate::models::{self, failure as refused};
use crate::params::settings::{Settings, failure};
use crate::tables::sequences::{Form, SequenceTable};
use crate::tables::vocabulary;
use crate::{Failure, Task};

/// What is tested.
pub struct Tested {
    loaded: Loaded,
    task: ModelTask,
    rows: SequenceTable,
    words: Option<StringArray>,
    settings: TestSettings,
}

impl Tested {
    /// Model, rows and words, which must belong together.
    pub fn open(task: &Task<'_>) -> Result<Tested, Failure> {
        let settings = TestSettings::read(task.params).map_err(failure)?;
        let loaded = Loaded::open(&task.inputs["victim"], None)?;
        let kind = models::of(&loaded.card)?.entry().task;
        for_task(task.params, Some(kind)).map_err(failure)?;
        let rows = SequenceTable::read(&task.inputs["rows"])?;
        vocabulary::agreed("victim", loaded.card.words(), "rows", rows.form.words())?;
        let vocab = task.inputs.get("vocab");
        let listed = vocab.and_then(vocabulary::listed);
        vocabulary::agree(rows.form.words(), listed.as_deref(), "vocab")?;
        let words = vocab.map(|vocab| vocabulary::words(vocab, "vocab"));
        Ok(Tested {
            loaded,
            task: kind,
            rows,
            words: words.transpose()?,
            settings,
        })
    }

    /// The network and its weights.
    pub fn network(&self) -> Result<(&Model, &Weights<f32>), Failure> {
        let network = self.loaded.network();
        network.ok_or_else(|| Failure::new("the victim is not a network"))
    }

    /// Tokens that may be put into an input: not padding, and not what stands for unknown ones.
    pub fn allowed(&self) -> Vec<u32> {
        let Form::Tokens { vocabulary, .. } = self.rows.form else {
            return Vec::new();
        };
        let special = self.rows.form.special().unwrap_or_default();
        let tokens = 0..vocabulary as u32;
        tokens.filter(|token| !special.contains(token)).collect()
    }

    /// The inputs to change.
    pub fn items(&self, task: &Task<'_>) -> Result<Vec<Item>, Failure> {
        let split = Settings(task.params).text("split").unwrap_or("test");
        let window = self.settings.window.unwrap_or(10);
        windows(&self.rows, split, window, self.settings.items, task.seed)
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
            fall_back: match self.task {
                ModelTask::Translate => self.settings.fall_back.unwrap_or(FallBack::Word),
                _ => FallBack::None,
            },
            mean_loss: self.task == ModelTask::Translate,
        };
        let items = self.items(task)?;
        if self.settings.items > items.len() {
            let (asked, found) = (self.settings.items, items.len());
            let what = format!("`items` is {asked}, but there are only {found} inputs");
            task.watch.log(&format!("{what}: all of them are taken"));
        }
        generator.run(&items, task.watch)
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
}
