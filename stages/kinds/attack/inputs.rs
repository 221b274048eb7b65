//! The inputs of an attack, taken apart once: which rows there are, the model, the words; and the
//! loop that attacks groups of rows in parallel and measures what is left of them.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{AsArray, StringArray};
use arrow::record_batch::RecordBatch;
use nn::batch::{Example, Sequence, Target};
use nn::linear::Vectors;
use nn::models::Model;
use nn::ngrams::KneserNey;
use nn::victim::Neural;
use store::Params;

use super::attacks::{find, transfer};
use super::context::{AttackContext, Item};
use super::entry::{Attack, Changes, PreparedAttack};
use super::goals::Goal;
use super::known_words::{self, KnownWords};
use super::outcome::Outcome;
use super::resumable::in_groups;
use super::trace::Trace;
use crate::models::entry::Subject;
use crate::models::loaded::{Loaded, accuracy, probabilities};
use crate::params::settings::Settings;
use crate::tables::by_confidence;
use crate::tables::examples::{BACKWARD, FORWARD};
use crate::tables::lemmas::Lemmas;
use crate::tables::model_card::ModelCard;
use crate::tables::pairs;
use crate::tables::sequences::{self, SequenceTable};
use crate::tables::synonyms::Synonyms;
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
    lemmas: Option<Lemmas>,
    synonyms: Option<Synonyms>,
    candidates: Option<StringArray>,
    /// The only rows that may be attacked, and the input that lists them.
    listed: Vec<(&'static str, BTreeSet<String>)>,
    /// The words by id, if a vocabulary is connected.
    pub words: Option<StringArray>,
    known_words: Option<KnownWords>,
    vectors: Option<Vectors>,
    /// The word vectors that are connected, whatever the model reads.
    pub connected: Option<Vectors>,
}

impl AttackInputs {
    /// From the inputs of the stage.
    pub fn open(task: &Task<'_>) -> Result<AttackInputs, Failure> {
        let connected = task.inputs.get("vectors").map(vectors::read).transpose()?;
        let loaded = Loaded::open(&task.inputs["victim"], connected.as_ref())?.started(task)?;
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
        let known_words = known_words(task, &rows, words.as_ref())?;
        let lemmas = task.inputs.get("lemmas");
        let lemmas = lemmas
            .map(|table| Lemmas::read(table, "lemmas"))
            .transpose()?;
        let synonyms = task.inputs.get("synonyms");
        let synonyms = synonyms
            .map(|table| Synonyms::read(table, "synonyms"))
            .transpose()?;
        let candidates = task.inputs.get("candidates");
        let candidates = candidates.map(|table| vocabulary::words(table, "candidates"));
        let mut listed = Vec::new();
        for port in ["ids", transfer::PORT] {
            if let Some(table) = task.inputs.get(port) {
                listed.push((port, sequences::ids(table)?.into_iter().collect()));
            }
        }
        Ok(AttackInputs {
            known_words,
            rows,
            bayes,
            lemmas,
            synonyms,
            candidates: candidates.transpose()?,
            listed,
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
        for (port, listed) in &self.listed {
            let known: BTreeSet<&str> = rows.iter().map(|r| self.rows.ids[*r].as_str()).collect();
            if let Some(id) = listed.iter().find(|id| !known.contains(id.as_str())) {
                return Err(Failure::new(format!(
                    "the input `{port}` has the id {id}, which no row of the split `{split}` has"
                ))
                .help("take them from an attack on the same rows and split"));
            }
            rows.retain(|row| listed.contains(&self.rows.ids[*row]));
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

    /// The words that must not be made, if connected.
    pub fn known_words(&self) -> Option<&KnownWords> {
        self.known_words.as_ref()
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
        task: &Task<'_>,
        watch: &dyn Watch,
    ) -> Result<Vec<Outcome>, Failure> {
        let (params, seed) = (task.params, task.seed);
        let subject = self.loaded.subject()?;
        let known = |row: &usize| selected.before.get(row).cloned();
        let before: Option<Vec<Vec<f32>>> = selected.rows.iter().map(known).collect();
        let victim = Attacked {
            subject: &subject,
            vectors: self.vectors.as_ref(),
            before,
            task: Some(task),
        };
        let rows = &selected.rows;
        self.attack_subject(victim, rows, params, seed, watch, |items, traces| {
            let goals = AttackInputs::goals(params, &items)?;
            self.measure(&subject, items, traces, goals, watch)
        })
    }

    /// Adversarial rows with their true classes, of a network that has other weights by now.
    pub fn adversarial_with(
        &self,
        weights: &nn::autodiff::Params<f32>,
        places: &[usize],
        params: &Params,
        seed: u64,
        watch: &dyn Watch,
    ) -> Result<Vec<Example>, Failure> {
        let (model, _) = self
            .loaded
            .network()
            .ok_or_else(|| Failure::new("this model is not a network"))?;
        let subject = Subject::Network(Neural::new(model, weights).map_err(models::failure)?);
        let own = own_vectors(model, weights);
        let attack = attack_of(params)?;
        let asks = attack.asks_before(Settings(params));
        let victim = Attacked {
            subject: &subject,
            vectors: own.as_ref().or(self.vectors.as_ref()),
            before: (!asks).then(|| vec![Vec::new(); places.len()]),
            task: None,
        };
        let example = |(item, trace): (&Item<'_>, Trace)| Example {
            input: trace.input,
            target: Target::Class(item.label),
        };
        self.attack_subject(victim, places, params, seed, watch, |items, traces| {
            Ok(items.iter().zip(traces).map(example).collect())
        })
    }

    /// Attacks rows, and makes something of what was done to them.
    fn attack_subject<R>(
        &self,
        victim: Attacked<'_>,
        places: &[usize],
        params: &Params,
        seed: u64,
        watch: &dyn Watch,
        then: impl FnOnce(Vec<Item<'_>>, Vec<Trace>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let attack = attack_of(params)?;
        let examples = self.rows.examples(places)?;
        let texts: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
        let Attacked {
            subject,
            vectors,
            task,
            ..
        } = victim;
        let before = match victim.before {
            Some(before) => before,
            None => probabilities(subject.victim(), &texts)?,
        };
        let classes = match subject {
            Subject::Network(network) => network.parts().0.outputs(),
            Subject::Classifier(_) => before.first().map_or(0, Vec::len),
        };
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
            connected: self.connected.as_ref(),
            lemmas: self.lemmas.as_ref(),
            synonyms: self.synonyms.as_ref(),
            candidates: self.candidates.as_ref(),
            bayes: self.bayes.as_ref().and_then(Loaded::bayes),
            language: self.language.as_ref(),
            known_words: self.known_words(),
            special,
            pad: special[0],
            classes,
            task,
        };
        let ready = attack.prepare(&context)?;
        let traces = match attack.entry().ordered {
            true => in_order(&items, ready.as_ref(), watch)?,
            false => {
                let (entry, ready) = (attack.entry(), ready.as_ref());
                in_groups(
                    &items,
                    ready,
                    &entry,
                    (entry.group)(Settings(params)),
                    watch,
                )?
            }
        };
        ready.finish()?;
        then(items, traces)
    }

    /// What each item was attacked for.
    fn goals(params: &Params, items: &[Item<'_>]) -> Result<Vec<Goal>, Failure> {
        let settings = Settings(params);
        let confidence = settings.maybe_float(by_confidence::CONFIDENCE);
        let goal = |item: &Item<'_>| {
            let target = settings.maybe_int("target");
            let goal = target.map_or(Goal::untargeted(item.label), |c| Goal::targeted(c as u32));
            goal.with_confidence(confidence.unwrap_or_default() as f32)
        };
        items.iter().map(goal).collect()
    }

    /// What the model says of what the attack left, asked afresh.
    fn measure(
        &self,
        subject: &Subject<'_>,
        items: Vec<Item<'_>>,
        traces: Vec<Trace>,
        goals: Vec<Goal>,
        watch: &dyn Watch,
    ) -> Result<Vec<Outcome>, Failure> {
        let sum = |name: &str| traces.iter().filter_map(|t| t.counters.get(name)).sum();
        let done = [
            ("items", items.len() as u64),
            (FORWARD, sum(FORWARD)),
            (BACKWARD, sum(BACKWARD)),
        ];
        for (unit, amount) in done.into_iter().filter(|(_, amount)| *amount > 0) {
            watch.work(unit, amount);
        }
        let mut left: Vec<Left> = Vec::with_capacity(traces.len());
        for (n, (trace, goal)) in traces.into_iter().zip(goals).enumerate() {
            for lower in goal.milestones() {
                let trace = at_confidence(&trace, lower.confidence());
                left.push((n, lower, trace, Level::Lower));
            }
            left.push((n, goal, trace, Level::Wanted));
        }
        let texts: Vec<&Sequence> = left.iter().map(|(_, _, trace, _)| &trace.input).collect();
        let after = probabilities(subject.victim(), &texts)?;
        let (mut outcomes, mut lower) = (Vec::with_capacity(items.len()), Vec::new());
        for ((n, goal, trace, level), after) in left.into_iter().zip(after) {
            let item = &items[n];
            let outcome = Outcome {
                id: item.id.to_owned(),
                label: item.label,
                original: item.input.clone(),
                before: item.before.clone(),
                after,
                goal,
                trace,
                lower: Vec::new(),
            };
            match level {
                Level::Lower => lower.push(outcome),
                // It comes after the lower ones.
                Level::Wanted => outcomes.push(Outcome {
                    lower: std::mem::take(&mut lower),
                    ..outcome
                }),
            }
        }
        Ok(outcomes)
    }
}

/// The place of an item, a goal, and the text that is to reach it.
type Left = (usize, Goal, Trace, Level);

/// Which confidence a goal has.
enum Level {
    /// A lower one than is wanted.
    Lower,
    /// The one that is wanted.
    Wanted,
}

/// The first text that reached the goal with some confidence, or where the attack ended.
fn at_confidence(trace: &Trace, confidence: f32) -> Trace {
    let first = trace.firsts.iter().find(|f| f.confidence == confidence);
    match first {
        Some(first) => Trace {
            input: first.input.clone(),
            edits: first.edits.clone(),
            counters: first.counters.clone(),
            attacked: trace.attacked,
            firsts: Vec::new(),
            probes: Vec::new(),
        },
        None => Trace {
            firsts: Vec::new(),
            probes: Vec::new(),
            ..trace.clone()
        },
    }
}

/// The vectors that a model reads, also when they were trained with it.
pub fn read_by(loaded: &Loaded, connected: Option<&Vectors>) -> Option<Vectors> {
    let own = loaded.network();
    let own = own.and_then(|(model, params)| own_vectors(model, params));
    own.or_else(|| loaded.vectors().cloned())
        .or_else(|| connected.cloned())
}

/// The vectors among a network's weights.
fn own_vectors(model: &Model, params: &nn::autodiff::Params<f32>) -> Option<Vectors> {
    let span = model.layout().find("embedding")?;
    Some(Vectors {
        dim: span.cols,
        data: params.view(span).iter().copied().collect(),
    })
}

/// The attack that parameters choose.
fn attack_of(params: &Params) -> Result<&'static dyn Attack, Failure> {
    let name = Settings(params).text("attack").unwrap_or_default();
    find(name).ok_or_else(|| Failure::new(format!("no attack `{name}`")))
}

/// The model under attack.
struct Attacked<'a> {
    subject: &'a Subject<'a>,
    /// The vectors that it reads.
    vectors: Option<&'a Vectors>,
    /// Its probabilities of the rows as they are, if it was asked already.
    before: Option<Vec<Vec<f32>>>,
    /// The stage that attacks it, if attacks may start programs.
    task: Option<&'a Task<'a>>,
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

/// One item after the other, or a few at once.
fn in_order(
    items: &[Item<'_>],
    ready: &dyn PreparedAttack,
    watch: &dyn Watch,
) -> Result<Vec<Trace>, Failure> {
    let mut traces = Vec::with_capacity(items.len());
    for next in items.chunks(ready.together()) {
        if watch.stopped() {
            return Err(Failure::stopped());
        }
        traces.extend(ready.attack(next)?);
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
    let joins = |attack: &dyn Attack| {
        let entry = attack.entry();
        entry.pairs || entry.changes == Changes::Nothing
    };
    let rows = match attack.is_some_and(joins) {
        true => pairs::read_joined(table)?,
        false => SequenceTable::read(table)?,
    };
    pairs::agree(rows.separator, model.separator())?;
    Ok(rows)
}

/// The words that must not be made, spelt in the characters of the rows.
fn known_words(
    task: &Task<'_>,
    rows: &SequenceTable,
    letters: Option<&StringArray>,
) -> Result<Option<KnownWords>, Failure> {
    let (Some(table), Some(letters)) = (task.inputs.get(known_words::PORT), letters) else {
        return Ok(None);
    };
    let words = vocabulary::words(table, known_words::PORT)?;
    let known = KnownWords::new(&words, letters, &rows.form)?;
    let train = Settings(task.params).text("train").unwrap_or("train");
    known.check(rows, train, letters)?;
    Ok(Some(known))
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
