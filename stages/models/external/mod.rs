//! A model that lives in a program of the user: it is started once for a stage, and asked in batches.
//!
//! Its files are stored with its card, so that whoever reads its weights has all of it but its environments, whose
//! digests are in the card. What it answers is checked before it counts as an answer. A model with gradients answers
//! those of the logarithm of a class's probability, with respect to the vectors of its words. [`wire`] has the format of
//! requests and answers; `ablate.py` is the other side.

mod line;
mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ndarray::{Array2, Array3};
use nn::batch::{Example, Sequence, Side, Target};
use nn::layers::Direction;
use nn::linear::Vectors;
use nn::objectives::Objective;
use nn::victim::{Gradient, LayerAttention, LayerStates, Queries, Victim};
use serde::{Deserialize, Serialize};
use store::{Digest, Installed, Params, Value};

use super::entry::{
    Data, LoadedModel, ModelEntry, ModelKind, ModelTask, Subject, Tensors, VectorUse, not_a_model,
};
use crate::contract::expected::{EXTERNAL, ExpectedRows};
use crate::contract::program::ProgramSpec;
use crate::params::settings::{self, Settings};
use crate::programs::environment::{self, Problem};
use crate::programs::installed;
use crate::programs::serving::{Frame, Serving};
use crate::tables::model_card::{ModelCard, json};
use crate::tables::vocabulary;
use crate::tables::weights::{Numbers, Tensor};
use crate::{Failure, ParamError, SourceFile, Task, Watch};
use line::{Asked, Line};
use wire::{Answers, Format, Items, StateLayer};

/// The name of such models: no `train` stage makes one.
pub const NAME: &str = EXTERNAL;

/// The Python side, of models and of attacks.
pub const MODULE: (&str, &str) = ("ablate.py", include_str!("ablate.py"));

/// What its words and their vectors are stored as, beside its files.
const WORDS: &str = "/words";
const VECTORS: &str = "/vectors";

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
    /// The order in which they are searched, if it is not that of their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments_in_order: Vec<String>,
    /// The lock file that says what they hold, if there is one: it is among its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// What it runs on beside them.
    #[serde(default, skip_serializing_if = "Installed::is_empty")]
    pub installed: Installed,
    /// The variables with secrets that it needs, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_env: Vec<String>,
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
    /// Whether it answers gradients.
    pub gradients: bool,
    /// Whether it answers how much it attends to each token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attention: bool,
    /// Whether it answers its recurrent states.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub states: bool,
    /// The dimension of its vectors, once they are known.
    pub dim: Option<usize>,
    /// The classes that it predicts.
    pub classes: usize,
    /// Items in one request.
    pub batch: usize,
}

/// What a model is made of beside its specification.
#[derive(Clone, Default)]
pub struct Parts {
    /// Its files.
    pub files: Vec<(String, Vec<u8>)>,
    /// The words of its texts, by id.
    pub words: Option<Vec<String>>,
    /// The digest of the vocabulary that its tokens are numbered by.
    pub vocabulary: Option<String>,
    /// The vectors of its words, if it answers gradients.
    pub vectors: Option<Vectors>,
}

/// The card and the tensors of a model.
pub fn stored(spec: &ExternalSpec, parts: &Parts) -> (ModelCard, Vec<Tensor>) {
    let spec = ExternalSpec {
        dim: parts.vectors.as_ref().map(|vectors| vectors.dim),
        ..spec.clone()
    };
    let fields = [("spec", json(spec)), ("words", json(&parts.vocabulary))];
    let card = ModelCard::written(NAME, &fields);
    let words = parts.words.as_ref();
    let words = words.map(|words| (WORDS.to_owned(), json(words).into_bytes()));
    let vectors = parts.vectors.as_ref().map(|vectors| {
        let numbers = vectors.data.iter().flat_map(|x| x.to_le_bytes());
        (VECTORS.to_owned(), numbers.collect())
    });
    let tensor = |(name, bytes): (String, Vec<u8>)| Tensor {
        name,
        shape: [1, bytes.len()],
        numbers: Numbers::Bytes(bytes),
    };
    let files = parts.files.iter().cloned();
    let tensors = files.chain(words).chain(vectors).map(tensor);
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
        let vectors = files.remove(VECTORS).zip(spec.dim);
        let vectors = vectors.map(|(bytes, dim)| {
            let numbers = bytes.as_chunks::<4>().0.iter();
            let data = numbers.map(|x| f32::from_le_bytes(*x)).collect();
            Vectors { dim, data }
        });
        Ok(Box::new(ExternalModel {
            spec,
            files,
            words,
            vectors,
            backwards: AtomicU64::new(0),
            running: Mutex::new(None),
            ended: Mutex::new(None),
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
    vectors: Option<Vectors>,
    running: Mutex<Option<(Arc<Line>, Format)>>,
    /// What ended it, for those who ask afterwards.
    ended: Mutex<Option<String>>,
    passes: AtomicU64,
    backwards: AtomicU64,
}

impl LoadedModel for ExternalModel {
    fn start(&self, task: &Task<'_>) -> Result<(), Failure> {
        let folder = tempfile::tempdir().map_err(|e| failed("make a temporary folder", &e))?;
        let pipeline = task.place.pipeline.as_deref().unwrap_or(Path::new(""));
        let mut files = self.unpacked(folder.path())?;
        files.extend(self.environments(pipeline)?);
        self.check_installed(&files)?;
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
        let (serving, hello) = started.map_err(|failure| {
            match failure.message.contains("` ended: exit code 0\n") {
                true => failure
                    .help("it must end with ablate.serve(predict=…), which waits for requests"),
                false => failure,
            }
        })?;
        let needed = Answers {
            gradients: self.spec.gradients,
            attention: self.spec.attention,
            states: self.spec.states,
        };
        let format = wire::greeted(&hello, needed);
        let format = format.map_err(|why| serving.failure(&why))?;
        *self.running() = Some((Arc::new(Line::new(serving)), format));
        Ok(())
    }

    fn vectors(&self) -> Option<&Vectors> {
        self.vectors.as_ref()
    }

    fn ask_vectors(&self) -> Result<Option<Vectors>, Failure> {
        if !self.spec.gradients {
            return Ok(None);
        }
        let asked = self.ask(wire::for_vectors());
        let asked = asked.and_then(|asked| self.answer(asked, wire::vectors));
        asked.map(Some).map_err(super::failure)
    }

    fn finish(&self, watch: &dyn Watch) -> Result<(), Failure> {
        let line = self.running().take();
        match line.and_then(|(line, _)| Arc::into_inner(line)) {
            Some(line) => line.into_inner().finish(watch),
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
    fn running(&self) -> std::sync::MutexGuard<'_, Option<(Arc<Line>, Format)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of these folders, in the order in which they are searched.
    fn environment_names(&self) -> Vec<String> {
        match self.spec.environments_in_order.is_empty() {
            true => self.spec.environments.keys().cloned().collect(),
            false => self.spec.environments_in_order.clone(),
        }
    }

    /// The folders that it reads in place, as they are called here.
    fn environments(&self, pipeline: &Path) -> Result<Vec<(String, PathBuf, Digest)>, Failure> {
        let names: Vec<&str> = self.spec.environments.keys().map(String::as_str).collect();
        let found = environment::find(pipeline, &names).map_err(outside)?;
        let each = found.into_iter().map(|one| {
            let digest = self.spec.environments[&one.name];
            (format!("{}/", one.name), one.path, digest)
        });
        Ok(each.collect())
    }

    /// It must run on what it ran on when its stage was executed, or its answers are not this model's.
    fn check_installed(&self, files: &[(String, PathBuf, Digest)]) -> Result<(), Failure> {
        let program = ProgramSpec {
            run: self.spec.run.clone(),
            lock: self.spec.lock.clone(),
            path: self.spec.env.get("PATH").cloned(),
            secrets: Vec::new(),
            environments: self.environment_names(),
        };
        let own = files
            .iter()
            .map(|(name, path, _)| (name.as_str(), path.as_path()));
        let now = installed::find(&program, own).map_err(outside)?;
        installed::check(&self.spec.installed, &now)
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
        let secrets = self.spec.secret_env.iter().cloned().map(Value::Text);
        let environments = self.environment_names().into_iter().map(Value::Text);
        let mut params: Params = [
            ("env".to_owned(), Value::Table(env.collect())),
            (
                "environment".to_owned(),
                Value::List(environments.collect()),
            ),
            ("network".to_owned(), Value::Bool(self.spec.network)),
            ("secret_env".to_owned(), Value::List(secrets.collect())),
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

    /// Sends a question.
    fn ask(&self, request: impl FnOnce(Format) -> Frame) -> nn::Result<Question> {
        let running = self.running().clone();
        let Some((line, format)) = running else {
            let why = self.ended().clone();
            let why = why.unwrap_or_else(|| "the program of the model has ended".to_owned());
            return Err(nn::Error::Outside { why });
        };
        let asked = line.ask(&request(format));
        Ok(Question { line, asked })
    }

    /// Its answer, read by `read`; or what is wrong.
    fn answer<R>(
        &self,
        question: Question,
        read: impl FnOnce(&Frame) -> Result<R, String>,
    ) -> nn::Result<R> {
        let answer = question.line.answer(question.asked, read);
        if let Err(failure) = &answer {
            // In this order: who finds it gone finds the reason.
            self.ended().get_or_insert_with(|| failure.message.clone());
            *self.running() = None;
        }
        answer.map_err(|failure| nn::Error::Outside {
            why: failure.message,
        })
    }

    /// What the program answers to batches of rows. The next one is on its way while it computes.
    fn each_batch<R>(
        &self,
        batches: &[&[&Sequence]],
        request: impl Fn(&Items, Format) -> Frame,
        read: impl Fn(usize, &Frame) -> Result<R, String>,
    ) -> nn::Result<Vec<R>> {
        let items = batches.iter().map(|batch| self.items(batch));
        let items: Vec<Items> = items.collect::<nn::Result<_>>()?;
        let mut answers = Vec::with_capacity(items.len());
        let mut last = None;
        for (n, items) in items.iter().enumerate() {
            let next = self.ask(|format| request(items, format))?;
            if let Some(question) = last.replace(next) {
                answers.push(self.answer(question, |frame| read(n - 1, frame))?);
            }
        }
        if let Some(question) = last {
            let n = answers.len();
            answers.push(self.answer(question, |frame| read(n, frame))?);
        }
        Ok(answers)
    }
}

/// A question that was sent to a program.
struct Question {
    line: Arc<Line>,
    asked: Asked,
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
        let batches: Vec<&[&Sequence]> = items.chunks(self.spec.batch.max(1)).collect();
        let answers = self.each_batch(&batches, wire::for_probabilities, |n, frame| {
            wire::probabilities(frame, batches[n].len(), self.spec.classes)
        })?;
        let row = |p: Vec<f32>| Array2::from_shape_vec((1, p.len()), p).expect("one row");
        let all = answers.into_iter().flatten().map(row).collect();
        self.passes.fetch_add(items.len() as u64, Ordering::Relaxed);
        Ok(all)
    }

    fn queries(&self) -> Queries {
        Queries {
            forwards: self.passes.load(Ordering::Relaxed),
            backwards: self.backwards.load(Ordering::Relaxed),
        }
    }

    fn has_gradients(&self) -> bool {
        self.spec.gradients
    }

    /// As attention that pools a sequence: one layer, one head, one row.
    fn attention(&self, items: &[&Example]) -> nn::Result<Vec<Vec<LayerAttention>>> {
        if !self.spec.attention {
            return Err(nn::Error::Missing { what: "attention" });
        }
        let mut all = Vec::with_capacity(items.len());
        for batch in items.chunks(self.spec.batch.max(1)) {
            let rows: Vec<&Sequence> = batch.iter().map(|item| &item.input).collect();
            let steps: Vec<usize> = rows.iter().map(|row| row.len()).collect();
            let items = self.items(&rows)?;
            let asked = self.ask(|format| wire::for_attention(&items, format))?;
            let weights = self.answer(asked, |frame| wire::attention(frame, &steps))?;
            let layer = |row: Vec<f32>| LayerAttention {
                queries: Side::Source,
                keys: Side::Source,
                weights: Array3::from_shape_vec((1, 1, row.len()), row).expect("one row"),
            };
            all.extend(weights.into_iter().map(|row| vec![layer(row)]));
        }
        self.passes.fetch_add(items.len() as u64, Ordering::Relaxed);
        Ok(all)
    }

    /// Of its layers, in their order: each reads forward, as far as coverage looks at it.
    fn states(&self, items: &[&Example]) -> nn::Result<Vec<Vec<LayerStates>>> {
        if !self.spec.states {
            return Err(nn::Error::Missing {
                what: "recurrent states",
            });
        }
        let mut all = Vec::with_capacity(items.len());
        for batch in items.chunks(self.spec.batch.max(1)) {
            let rows: Vec<&Sequence> = batch.iter().map(|item| &item.input).collect();
            let steps: Vec<usize> = rows.iter().map(|row| row.len()).collect();
            let items = self.items(&rows)?;
            let asked = self.ask(|format| wire::for_states(&items, format))?;
            let (layers, rows) = self.answer(asked, |frame| wire::states(frame, &steps))?;
            let rows = rows.into_iter().zip(steps);
            all.extend(rows.map(|(row, steps)| layer_states(&layers, &row, steps)));
        }
        self.passes.fetch_add(items.len() as u64, Ordering::Relaxed);
        Ok(all)
    }

    /// Its logits are the logarithms of its probabilities.
    fn gradients_each(
        &self,
        items: &[&Example],
        objectives: &[&Objective],
    ) -> nn::Result<Vec<Gradient>> {
        let asked = items.iter().zip(objectives);
        let asked = asked.map(|(item, objective)| class_of(item, objective));
        let asked: Vec<(usize, f64)> = asked.collect::<nn::Result<_>>()?;
        let mut all = Vec::with_capacity(items.len());
        let size = self.spec.batch.max(1);
        for (batch, asked) in items.chunks(size).zip(asked.chunks(size)) {
            all.extend(self.gradient_batch(batch, asked)?);
        }
        let passes = items.len() as u64;
        self.passes.fetch_add(passes, Ordering::Relaxed);
        self.backwards.fetch_add(passes, Ordering::Relaxed);
        Ok(all)
    }
}

impl ExternalModel {
    /// Gradients of the logarithm of a class's probability, each with a factor.
    fn gradient_batch(
        &self,
        batch: &[&Example],
        asked: &[(usize, f64)],
    ) -> nn::Result<Vec<Gradient>> {
        let rows: Vec<&Sequence> = batch.iter().map(|item| &item.input).collect();
        let items = self.items(&rows)?;
        let classes: Vec<usize> = asked.iter().map(|(class, _)| *class).collect();
        let steps: Vec<usize> = rows.iter().map(|row| row.len()).collect();
        let dim = self.spec.dim.unwrap_or_default();
        let question = self.ask(|format| wire::for_gradients(&items, &classes, format))?;
        let answers = self.answer(question, |frame| {
            wire::gradients(frame, &steps, dim, self.spec.classes)
        })?;
        let answers = answers.into_iter().zip(asked).zip(steps);
        let gradient =
            |((answer, (class, factor)), steps): ((wire::Answered, &(usize, f64)), usize)| {
                let logits = answer.probabilities.iter();
                let logits: Vec<f32> = logits.map(|p| p.max(f32::MIN_POSITIVE).ln()).collect();
                let numbers = answer
                    .gradient
                    .iter()
                    .map(|g| (factor * f64::from(*g)) as f32);
                Gradient {
                    value: factor * f64::from(logits[*class]),
                    input: Array2::from_shape_vec((steps, dim), numbers.collect())
                        .expect("the answer was checked"),
                    logits: Array2::from_shape_vec((1, logits.len()), logits).expect("one row"),
                }
            };
        Ok(answers.map(gradient).collect())
    }
}

/// The states of one item, which are its layers' parts one after the other.
fn layer_states(layers: &[StateLayer], row: &[f32], steps: usize) -> Vec<LayerStates> {
    let mut from = 0;
    let mut part = |units: usize| {
        let numbers = row[from..from + steps * units].to_vec();
        from += steps * units;
        Array2::from_shape_vec((steps, units), numbers).expect("the answer was checked")
    };
    let layer = |layer: &StateLayer| {
        let parts = layer.parts.iter();
        let mut parts: BTreeMap<char, Array2<f32>> =
            parts.map(|name| (*name, part(layer.units))).collect();
        LayerStates {
            side: Side::Source,
            direction: Direction::Forward,
            h: parts.remove(&'h').expect("the answer was checked"),
            c: parts.remove(&'c'),
            gates: parts.into_iter().collect(),
        }
    };
    layers.iter().map(layer).collect()
}

/// An objective as a class and a factor of the logarithm of its probability.
fn class_of(item: &Example, objective: &Objective) -> nn::Result<(usize, f64)> {
    match (objective, &item.target) {
        (Objective::Logit(class), _) => Ok((*class, 1.0)),
        (Objective::CrossEntropy, Target::Class(label)) => Ok((*label as usize, -1.0)),
        (Objective::Sum(parts), _) if parts.len() == 1 => {
            let (class, factor) = class_of(item, &parts[0].1)?;
            Ok((class, factor * parts[0].0))
        }
        _ => Err(nn::Error::Missing {
            what: "gradient of this objective: external models answer those of one class",
        }),
    }
}

fn outside(problem: Problem) -> Failure {
    Failure::new(problem.message).help(problem.help).at("run")
}

fn failed(operation: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {operation}: {error}"))
}
