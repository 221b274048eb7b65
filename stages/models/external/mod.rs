//! A model that lives in a program of the user: it is started once for a stage, and asked in batches.
//!
//! Its files are stored with its card, so that whoever reads its weights has all of it but its environments, whose
//! digests are in the card. What it answers is checked before it counts as an answer. [`wire`] has the format of
//! requests and answers; `ablate.py` is the other side.

mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ndarray::Array2;
use nn::batch::Sequence;
use nn::linear::Vectors;
use nn::victim::{Queries, Victim};
use serde::{Deserialize, Serialize};
use store::{Digest, Params, Value};

use super::entry::{
    Data, LoadedModel, ModelEntry, ModelKind, ModelTask, Subject, Tensors, VectorUse, not_a_model,
};
use crate::contract::expected::ExpectedRows;
use crate::params::settings::{self, Settings};
use crate::programs::serving::Serving;
use crate::tables::model_card::{ModelCard, json};
use crate::tables::vocabulary;
use crate::tables::weights::{Numbers, Tensor};
use crate::{Failure, ParamError, SourceFile, Task, Watch};
use wire::{Format, Items};

/// The name of such models: no `train` stage makes one.
pub const NAME: &str = "external";

/// The Python side.
const MODULE: (&str, &str) = ("ablate.py", include_str!("ablate.py"));

/// What its words are stored as, beside its files.
const WORDS: &str = "/words";

/// How it is started and asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalSpec {
    /// The program and its arguments.
    pub run: Vec<String>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Folders that it reads in place, as the pipeline names them, with their digests.
    pub environments: BTreeMap<String, Digest>,
    /// Which of its files may be run.
    pub executable: Vec<String>,
    /// Whether it may use the network.
    pub network: bool,
    /// The most memory, in GB.
    pub memory: Option<f64>,
    /// The most processes and threads.
    pub processes: i64,
    /// Seconds for one answer.
    pub timeout: f64,
    /// Whether it is sent texts, or ids of tokens.
    pub texts: bool,
    /// The classes that it predicts.
    pub classes: usize,
    /// Items in one request.
    pub batch: usize,
}

/// The card and the tensors of a model: its files, and the words of its texts.
pub fn stored(
    spec: &ExternalSpec,
    files: Vec<(String, Vec<u8>)>,
    words: Option<&[String]>,
    vocabulary: Option<&str>,
) -> (ModelCard, Vec<Tensor>) {
    let fields = [("spec", json(spec)), ("words", json(vocabulary))];
    let card = ModelCard::written(NAME, &fields);
    let words = words.map(|words| (WORDS.to_owned(), json(words).into_bytes()));
    let tensor = |(name, bytes): (String, Vec<u8>)| Tensor {
        name,
        shape: [1, bytes.len()],
        numbers: Numbers::Bytes(bytes),
    };
    let tensors = files.into_iter().chain(words).map(tensor);
    (card, tensors.collect())
}

/// The kind of model.
pub struct External;

impl ModelKind for External {
    fn entry(&self) -> ModelEntry {
        ModelEntry {
            name: NAME,
            file: "stages/models/external/mod.rs",
            summary: "A model in a program of the user.",
            task: ModelTask::Classify,
            params: &[],
            reads: "tokens",
            fits: |rows| matches!(rows, ExpectedRows::Tokens { .. }),
            vectors: VectorUse::Own,
        }
    }

    fn card(&self, _: Settings<'_>, _: &Data) -> Result<ModelCard, ParamError> {
        let message = "an external model cannot be trained here".to_owned();
        Err(settings::wrong(
            "model",
            message,
            "use kind = \"external-model\"",
        ))
    }

    fn load(
        &self,
        card: &ModelCard,
        tensors: &Tensors,
        _: Option<&Vectors>,
    ) -> Result<Box<dyn LoadedModel>, Failure> {
        let spec: ExternalSpec = card.spec().map_err(not_a_model)?;
        let mut files = BTreeMap::new();
        for (name, tensor) in tensors {
            let Numbers::Bytes(bytes) = &tensor.numbers else {
                return Err(not_a_model(format!("`{name}` is not a file")));
            };
            files.insert(name.clone(), bytes.clone());
        }
        let words = files.remove(WORDS);
        let words = words.map(|bytes| serde_json::from_slice(&bytes));
        let words = words.transpose().map_err(|e| not_a_model(e.to_string()))?;
        Ok(Box::new(ExternalModel {
            spec,
            files,
            words,
            running: Mutex::new(None),
            passes: AtomicU64::new(0),
        }))
    }

    fn by_gradient(&self) -> bool {
        false
    }
}

/// A model that may be running.
struct ExternalModel {
    spec: ExternalSpec,
    files: BTreeMap<String, Vec<u8>>,
    words: Option<Vec<String>>,
    running: Mutex<Option<(Serving, Format)>>,
    passes: AtomicU64,
}

impl LoadedModel for ExternalModel {
    fn start(&self, task: &Task<'_>) -> Result<(), Failure> {
        let folder = tempfile::tempdir().map_err(|e| failed("make a temporary folder", &e))?;
        let pipeline = task.place.pipeline.as_deref().unwrap_or(Path::new(""));
        let environments = self.spec.environments.iter();
        let environments =
            environments.map(|(name, digest)| (format!("{name}/"), pipeline.join(name), *digest));
        let mut files = self.unpacked(folder.path())?;
        files.extend(environments);
        let files = files.iter().map(|(name, path, digest)| {
            let file = SourceFile {
                path,
                digest: *digest,
                executable: self.spec.executable.contains(name),
            };
            (name.clone(), file)
        });
        let program = Task {
            inputs: BTreeMap::new(),
            params: &self.params(),
            seed: 0,
            files: files.collect(),
            data: task.data,
            place: task.place,
            watch: task.watch,
        };
        let timeout = Duration::try_from_secs_f64(self.spec.timeout).unwrap_or(Duration::MAX);
        let started = Serving::start(&program, &self.spec.run, timeout);
        let (serving, hello) = started?;
        let format = wire::greeted(&hello).map_err(|why| serving.failure(&why))?;
        *self.running() = Some((serving, format));
        Ok(())
    }

    fn finish(&self, watch: &dyn Watch) -> Result<(), Failure> {
        match self.running().take() {
            Some((serving, _)) => serving.finish(watch),
            None => Ok(()),
        }
    }

    fn victim(&self) -> Result<Subject<'_>, Failure> {
        match self.running().is_some() {
            true => Ok(Subject::Classifier(self)),
            false => Err(Failure::new(
                "a model that lives in a program of its own can only be attacked",
            )
            .help("connect it to an attack stage")),
        }
    }
}

impl ExternalModel {
    fn running(&self) -> std::sync::MutexGuard<'_, Option<(Serving, Format)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes its files to a folder. The Python side is beside them, unless there is a file of that name.
    fn unpacked(&self, folder: &Path) -> Result<Vec<(String, PathBuf, Digest)>, Failure> {
        let (name, module) = MODULE;
        let own = self.files.iter();
        let mut all: BTreeMap<&str, &[u8]> = own.map(|(n, b)| (n.as_str(), b.as_slice())).collect();
        all.entry(name).or_insert(module.as_bytes());
        let mut written = Vec::new();
        for (n, (name, bytes)) in all.into_iter().enumerate() {
            let path = folder.join(n.to_string());
            std::fs::write(&path, bytes).map_err(|e| failed("write a file of the model", &e))?;
            written.push((name.to_owned(), path, Digest::of(bytes)));
        }
        Ok(written)
    }

    /// As the sandbox reads them.
    fn params(&self) -> Params {
        let env = self.spec.env.iter();
        let env = env.map(|(name, value)| (name.clone(), Value::Text(value.clone())));
        let mut params: Params = [
            ("env".to_owned(), Value::Table(env.collect())),
            ("network".to_owned(), Value::Bool(self.spec.network)),
            ("processes".to_owned(), Value::Int(self.spec.processes)),
        ]
        .into();
        let memory = self.spec.memory.map(Value::Float);
        params.extend(memory.map(|memory| ("memory".to_owned(), memory)));
        params
    }

    /// Items as they are sent.
    fn items(&self, rows: &[&Sequence]) -> nn::Result<Items> {
        let tokens = |row: &&Sequence| match row {
            Sequence::Tokens(ids) => Ok(ids.clone()),
            _ => Err(nn::Error::Missing {
                what: "input vectors",
            }),
        };
        let rows = rows
            .iter()
            .map(tokens)
            .collect::<nn::Result<Vec<Vec<u32>>>>()?;
        let Some(words) = self.words.as_ref().filter(|_| self.spec.texts) else {
            return Ok(Items::Tokens(rows));
        };
        let word = |id: &u32| words.get(*id as usize).map_or("", String::as_str);
        let text = |ids: Vec<u32>| {
            let words = ids.iter().map(word);
            let words: Vec<&str> = words.filter(|word| *word != vocabulary::PAD).collect();
            words.join(" ")
        };
        Ok(Items::Texts(rows.into_iter().map(text).collect()))
    }

    /// The probabilities of one batch.
    fn ask(&self, rows: &[&Sequence]) -> nn::Result<Vec<Vec<f32>>> {
        let items = self.items(rows)?;
        let mut running = self.running();
        let outside = |failure: Failure| nn::Error::Outside {
            why: failure.message,
        };
        let Some((serving, format)) = running.as_mut() else {
            let why = "the program of the model has ended".to_owned();
            return Err(nn::Error::Outside { why });
        };
        let answer = serving.ask(&wire::request(&items, *format));
        let answer = answer.and_then(|frame| {
            let rows = wire::answer(&frame, rows.len(), self.spec.classes);
            rows.map_err(|why| serving.failure(&why))
        });
        if answer.is_err() {
            // It is not asked again: what it would answer belongs to another question.
            *running = None;
        }
        answer.map_err(outside)
    }
}

impl Victim for ExternalModel {
    fn logits(&self, items: &[&Sequence]) -> nn::Result<Vec<Array2<f32>>> {
        let mut rows = self.probabilities(items)?;
        for row in &mut rows {
            row.mapv_inplace(|p| p.max(f32::MIN_POSITIVE).ln());
        }
        Ok(rows)
    }

    fn probabilities(&self, items: &[&Sequence]) -> nn::Result<Vec<Array2<f32>>> {
        let mut all = Vec::with_capacity(items.len());
        for batch in items.chunks(self.spec.batch.max(1)) {
            let rows = self.ask(batch)?;
            let row = |p: Vec<f32>| Array2::from_shape_vec((1, p.len()), p).expect("one row");
            all.extend(rows.into_iter().map(row));
        }
        self.passes.fetch_add(items.len() as u64, Ordering::Relaxed);
        Ok(all)
    }

    fn queries(&self) -> Queries {
        Queries {
            forwards: self.passes.load(Ordering::Relaxed),
            backwards: 0,
        }
    }
}

fn failed(operation: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {operation}: {error}"))
}
