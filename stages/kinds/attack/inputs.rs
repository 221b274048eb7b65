//! The inputs of an attack, taken apart once: which rows there are, the model, the words; and the
//! loop that attacks groups of rows in parallel and measures what is left of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{AsArray, StringArray};
use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;
use nn::linear::Vectors;
use nn::models::Model;
use nn::ngrams::KneserNey;
use nn::victim::Neural;
use rayon::prelude::*;
use store::Params;

use super::attacks::find;
use super::context::{AttackContext, Item};
use super::entry::{Changes, PreparedAttack};
use super::goals::Goal;
use super::outcome::Outcome;
use super::trace::Trace;
use crate::models::entry::Subject;
use crate::models::loaded::{Loaded, accuracy, probabilities};
use crate::params::settings::Settings;
use crate::tables::examples::{BACKWARD, FORWARD};
use crate::tables::model_card::ModelCard;
use crate::tables::pairs;
use crate::tables::sequences::SequenceTable;
use crate::tables::vectors;
use crate::tables::{ngrams, vocabulary};
use crate::{Failure, Task, Watch, models};

/// Which rows of a split there are to draw from; all of them by default.
#[derive(Clone, Copy, Default)]
pub struct Among {
    /// Only those that the model classifies correctly.
    pub correct: bool,
    /// Only those of this class.
    pub label: Option<i64>,
}

/// Rows to attack.
pub struct Selected {
    /// Their places, in order.
    pub rows: Vec<usize>,
    /// The model's probabilities, of rows that it was asked about already.
    before: BTreeMap<usize, Vec<f32>>,
}

impl Selected {
    /// The same rows for a model that was not asked about them.
    pub fn of_another_model(&self) -> Selected {
        Selected {
            rows: self.rows.clone(),
            before: BTreeMap::new(),
        }
    }
}

/// The inputs of an attack, taken apart once.
pub struct AttackInputs {
    /// The rows.
    pub rows: SequenceTable,
    loaded: Loaded,
    bayes: Option<Loaded>,
    language: Option<KneserNey>,
    /// The words by id, if a vocabulary is connected.
    pub words: Option<StringArray>,
    vectors: Option<Vectors>,
    /// The word vectors that are connected, whatever the model reads.
    pub connected: Option<Vectors>,
}

/// Items that share batches: two groups of 16, one for each of two classes.
const GROUP: usize = 32;

impl AttackInputs {
    /// From the inputs `victim`, `rows`, `vectors`, `vocab`, `bayes` and `language`.
    pub fn open(task: &Task<'_>) -> Result<AttackInputs, Failure> {
        let connected = task.inputs.get("vectors").map(vectors::read).transpose()?;
        let loaded = Loaded::open(&task.inputs["victim"], connected.as_ref())?;
        let bayes = task.inputs.get("bayes");
        let bayes = bayes.map(|table| Loaded::open(table, None)).transpose()?;
        if let Some(other) = bayes.as_ref().filter(|loaded| loaded.bayes().is_none()) {
            let name = other.card.model();
            return Err(
                Failure::new(format!("the input `bayes` is the model `{name}`"))
                    .help("connect a train stage with model = \"naive-bayes\""),
            );
        }
        let rows = rows(task, &loaded.card)?;
        let words = task.inputs.get("vocab").map(words).transpose()?;
        let ours = rows.form.words();
        vocabulary::agree(ours, loaded.card.words(), "victim")?;
        for port in ["vectors", "vocab"] {
            let listed = task.inputs.get(port).and_then(vocabulary::listed);
            vocabulary::agree(ours, listed.as_deref(), port)?;
        }
        let counted = bayes.as_ref().and_then(|bayes| bayes.card.words());
        vocabulary::agree(ours, counted, "bayes")?;
        let language = task.inputs.get("language").map(ngrams::read).transpose()?;
        let theirs = language.as_ref().map(|(_, words)| words.as_str());
        vocabulary::agree(ours, theirs, "language")?;
        Ok(AttackInputs {
            rows,
            bayes,
            language: language.map(|(model, _)| model),
            words,
            vectors: read_by(&loaded, connected.as_ref()),
            connected,
            loaded,
        })
    }

    /// The same inputs with another model that reads the same tokens.
    pub fn with_model(self, loaded: Loaded) -> AttackInputs {
        AttackInputs {
            vectors: read_by(&loaded, self.connected.as_ref()),
            loaded,
            ..self
        }
    }

    /// The rows of a split, or at most `limit` of them, sampled by seed and id, in their order.
    /// The split comes with the parameter that names it.
    pub fn select(
        &self,
        (split, param): (&str, &'static str),
        limit: usize,
        seed: u64,
        among: Among,
    ) -> Result<Selected, Failure> {
        let mut rows = self.rows.split(split);
        if rows.is_empty() {
            return Err(self.rows.no_split(split, param));
        }
        if let Some(label) = among.label {
            rows.retain(|row| self.rows.label(*row).map(i64::from) == Some(label));
        }
        let mut before: BTreeMap<usize, Vec<f32>> = BTreeMap::new();
        if among.correct && !rows.is_empty() {
            let examples = self.rows.examples(&rows)?;
            let texts: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
            let predicted = probabilities(self.loaded.subject()?.victim(), &texts)?;
            before = rows.iter().copied().zip(predicted).collect();
            rows.retain(|row| {
                let predicted = nn::numeric::argmax(&before[row]) as u32;
                Some(predicted) == self.rows.label(*row)
            });
        }
        if rows.is_empty() {
            return Err(nothing_to_attack(split, among));
        }
        if limit > 0 && limit < rows.len() {
            // A hash of the id, so that a bigger draw holds the smaller one.
            rows.sort_by_key(|row| {
                let name = format!("{seed}/{}", self.rows.ids[*row]);
                (store::Digest::of(name.as_bytes()).to_string(), *row)
            });
            rows.truncate(limit);
            rows.sort_unstable();
        }
        Ok(Selected { rows, before })
    }

    /// The model.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// What the model is.
    pub fn card(&self) -> &ModelCard {
        &self.loaded.card
    }

    /// The model's accuracy on these rows as they are.
    pub fn accuracy(&self, places: &[usize]) -> Result<f64, Failure> {
        let subject = self.loaded.subject()?;
        accuracy(subject.victim(), &self.rows.examples(places)?)
    }

    /// Attacks these rows.
    pub fn attack(
        &self,
        selected: &Selected,
        params: &Params,
        seed: u64,
        watch: &dyn Watch,
    ) -> Result<Vec<Outcome>, Failure> {
        let subject = self.loaded.subject()?;
        let known = |row: &usize| selected.before.get(row).cloned();
        let before: Option<Vec<Vec<f32>>> = selected.rows.iter().map(known).collect();
        let victim = Attacked {
            subject: &subject,
            vectors: self.vectors.as_ref(),
            before,
        };
        self.attack_subject(victim, &selected.rows, params, seed, watch)
    }

    /// Attacks these rows of a network that has other weights by now.
    pub fn attack_with(
        &self,
        weights: &nn::autodiff::Params<f32>,
        places: &[usize],
        params: &Params,
        seed: u64,
        watch: &dyn Watch,
    ) -> Result<Vec<Outcome>, Failure> {
        let (model, _) = self
            .loaded
            .network()
            .ok_or_else(|| Failure::new("this model is not a network"))?;
        let subject = Subject::Network(Neural::new(model, weights).map_err(models::failure)?);
        let own = own_vectors(model, weights);
        let victim = Attacked {
            subject: &subject,
            vectors: own.as_ref().or(self.vectors.as_ref()),
            before: None,
        };
        self.attack_subject(victim, places, params, seed, watch)
    }

    fn attack_subject(
        &self,
        victim: Attacked<'_>,
        places: &[usize],
        params: &Params,
        seed: u64,
        watch: &dyn Watch,
    ) -> Result<Vec<Outcome>, Failure> {
        let name = Settings(params).text("attack").unwrap_or_default();
        let attack = find(name).ok_or_else(|| Failure::new(format!("no attack `{name}`")))?;
        let examples = self.rows.examples(places)?;
        let texts: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
        let Attacked {
            subject, vectors, ..
        } = victim;
        let before = match victim.before {
            Some(before) => before,
            None => probabilities(subject.victim(), &texts)?,
        };
        let classes = before.first().map_or(0, Vec::len);
        let repeats = Settings(params).maybe_int("repeats").unwrap_or(1);
        let ids = places.iter().flat_map(|row| {
            let id = &self.rows.ids[*row];
            (0..repeats).map(move |k| match repeats {
                1 => id.clone(),
                _ => format!("{id}#{k}"),
            })
        });
        let ids: Vec<String> = ids.collect();
        let item = |n: usize| {
            let k = n / repeats;
            Item {
                id: &ids[n],
                input: texts[k],
                label: self.rows.label(places[k]).unwrap_or_default(),
                before: before[k].clone(),
            }
        };
        let items: Vec<Item<'_>> = (0..ids.len()).map(item).collect();
        if let Some(item) = items.iter().find(|item| item.label as usize >= classes) {
            return Err(Failure::new(format!(
                "the row with the id {} has the label {}, but the model has {classes} classes",
                item.id, item.label
            )));
        }
        let special = self.rows.form.special().unwrap_or_default();
        let context = AttackContext {
            subject,
            params,
            seed,
            words: self.words.as_ref(),
            vectors,
            bayes: self.bayes.as_ref().and_then(Loaded::bayes),
            language: self.language.as_ref(),
            special,
            pad: special[0],
            classes,
        };
        let ready = attack.prepare(&context)?;
        let traces = match attack.entry().ordered {
            true => in_order(&items, ready.as_ref(), watch)?,
            false => in_groups(&items, ready.as_ref(), watch)?,
        };
        let target = Settings(params).maybe_int("target");
        let target = target.map(|class| class as u32);
        self.measure(subject, items, traces, target, watch)
    }

    /// What the model says of what the attack left, asked afresh.
    fn measure(
        &self,
        subject: &Subject<'_>,
        items: Vec<Item<'_>>,
        traces: Vec<Trace>,
        target: Option<u32>,
        watch: &dyn Watch,
    ) -> Result<Vec<Outcome>, Failure> {
        let texts: Vec<&Sequence> = traces.iter().map(|trace| &trace.input).collect();
        let after = probabilities(subject.victim(), &texts)?;
        let sum = |name: &str| traces.iter().filter_map(|t| t.counters.get(name)).sum();
        let done = [
            ("items", items.len() as u64),
            (FORWARD, sum(FORWARD)),
            (BACKWARD, sum(BACKWARD)),
        ];
        for (unit, amount) in done.into_iter().filter(|(_, amount)| *amount > 0) {
            watch.work(unit, amount);
        }
        let outcome = |((item, trace), after): ((Item<'_>, Trace), Vec<f32>)| Outcome {
            id: item.id.to_owned(),
            label: item.label,
            original: item.input.clone(),
            before: item.before,
            after,
            goal: target.map_or(Goal::untargeted(item.label), Goal::targeted),
            trace,
        };
        Ok(items
            .into_iter()
            .zip(traces)
            .zip(after)
            .map(outcome)
            .collect())
    }
}

/// The vectors that a model reads, also when they were trained with it.
fn read_by(loaded: &Loaded, connected: Option<&Vectors>) -> Option<Vectors> {
    let own = loaded.network();
    let own = own.and_then(|(model, params)| own_vectors(model, params));
    own.or_else(|| connected.cloned())
}

/// The vectors among a network's weights.
fn own_vectors(model: &Model, params: &nn::autodiff::Params<f32>) -> Option<Vectors> {
    let span = model.layout().find("embedding")?;
    Some(Vectors {
        dim: span.cols,
        data: params.view(span).iter().copied().collect(),
    })
}

/// The model under attack.
struct Attacked<'a> {
    subject: &'a Subject<'a>,
    /// The vectors that it reads.
    vectors: Option<&'a Vectors>,
    /// Its probabilities of the rows as they are, if it was asked already.
    before: Option<Vec<Vec<f32>>>,
}

fn nothing_to_attack(split: &str, among: Among) -> Failure {
    let which = match among.correct {
        true => " that the model classifies correctly",
        false => "",
    };
    let class = among.label.map(|label| format!(" of class {label}"));
    let class = class.unwrap_or_default();
    Failure::new(format!(
        "the split `{split}` has no row{class}{which}: there is nothing to attack"
    ))
    .help("sample from other rows: see `split`, `label` and `among`")
}

/// Groups of items in parallel, in the order of items.
fn in_groups(
    items: &[Item<'_>],
    ready: &dyn PreparedAttack,
    watch: &dyn Watch,
) -> Result<Vec<Trace>, Failure> {
    let done = AtomicU64::new(0);
    let group = |group: &[Item<'_>]| {
        if watch.stopped() {
            return Err(Failure::stopped());
        }
        let traces = ready.attack(group)?;
        let done = done.fetch_add(group.len() as u64, Ordering::Relaxed) + group.len() as u64;
        watch.progress(done, items.len() as u64);
        Ok(traces)
    };
    let groups: Vec<Vec<Trace>> = items
        .par_chunks(GROUP)
        .map(group)
        .collect::<Result<_, _>>()?;
    Ok(groups.into_iter().flatten().collect())
}

/// One item after the other.
fn in_order(
    items: &[Item<'_>],
    ready: &dyn PreparedAttack,
    watch: &dyn Watch,
) -> Result<Vec<Trace>, Failure> {
    let mut traces = Vec::with_capacity(items.len());
    for item in items {
        if watch.stopped() {
            return Err(Failure::stopped());
        }
        traces.extend(ready.attack(std::slice::from_ref(item))?);
        watch.progress(traces.len() as u64, items.len() as u64);
    }
    Ok(traces)
}

/// Says in the log that there are fewer rows than a parameter asks for.
pub fn note_fewer(asked: usize, param: &str, rows: usize, watch: &dyn Watch) {
    if asked > rows {
        let what = format!("`{param}` is {asked}, but there are only {rows} rows");
        watch.log(&format!("{what}: all of them are taken"));
    }
}

/// The rows as the model reads them. Attacks that change rows read single texts only.
pub fn rows(task: &Task<'_>, model: &ModelCard) -> Result<SequenceTable, Failure> {
    let table = &task.inputs["rows"];
    let attack = Settings(task.params).text("attack").and_then(find);
    let rows = match attack.map(|attack| attack.entry().changes) {
        Some(Changes::Nothing) => pairs::read_joined(table)?,
        _ => SequenceTable::read(table)?,
    };
    pairs::agree(rows.separator, model.separator())?;
    Ok(rows)
}

/// The words by id, from the output `vocab` of a tokenize stage.
fn words(table: &RecordBatch) -> Result<StringArray, Failure> {
    let words = table.column_by_name(vocabulary::TOKEN);
    let words = words.and_then(|c| c.as_string_opt::<i32>());
    words.cloned().ok_or_else(|| {
        Failure::new("the input `vocab` has no column `token`")
            .help("connect the output `vocab` of a tokenize stage")
    })
}
