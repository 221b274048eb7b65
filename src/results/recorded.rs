//! A run as it was recorded: its stage instances in reading order, each with the execution
//! behind it and wired to what it read. Reads the provenance alone: the pipeline file may have
//! changed since, or be gone.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use stages::Role;
use store::{CodeFiles, Digest, Error, Execution, InputUsed, Output, Run, StageKey, Status, Store};

use super::find::{Catalog, find_instances};
use super::reference::{axes, parse, split_output};
use crate::config::ablations;
use crate::diagnostic::Diagnostic;

/// A run and all that it used.
pub struct Recorded {
    /// The run.
    pub run: Run,
    /// Its stage instances, readers after what they read.
    pub steps: Vec<Step>,
    /// The source files behind each code fingerprint.
    pub codes: BTreeMap<Digest, CodeFiles>,
    /// Instances whose record is not what the log sealed, with what was changed. They have no
    /// outputs here, so that nothing of them is shown.
    pub altered: BTreeMap<String, String>,
    /// Axes whose values are variants of an ablation, each with its base.
    pub bases: Vec<(String, String)>,
}

/// One stage instance of a run.
pub struct Step {
    /// `name` or `name[axis=value]`.
    pub label: String,
    /// What became of it in this run.
    pub status: Status,
    /// The time that this run spent on it.
    pub wall: Duration,
    /// The execution behind it: this run's own, or the one that was found.
    pub execution: Option<Execution>,
    /// What each of the execution's inputs came from.
    pub reads: Vec<Read>,
}

/// An input with where it came from in this run.
pub struct Read {
    /// The position of the step that made it, if this run has it.
    pub step: Option<usize>,
    /// Which of that step's outputs it is.
    pub output: Option<usize>,
    /// As recorded.
    pub input: InputUsed,
}

impl Recorded {
    /// Whether a step is a variant of an ablation other than its base.
    pub fn is_variant(&self, step: &Step) -> bool {
        let point = axes(&step.label);
        let other = |(axis, base): &(String, String)| {
            point
                .iter()
                .any(|(name, value)| name == axis && value != base)
        };
        self.bases.iter().any(other)
    }

    /// The outputs that some step of the run reads: by step and place.
    pub fn read(&self) -> HashSet<(usize, usize)> {
        let reads = self.steps.iter().flat_map(|step| &step.reads);
        reads
            .filter_map(|read| Some((read.step?, read.output?)))
            .collect()
    }
}

impl Recorded {
    /// The steps that a reference names, whether they have results or not.
    pub fn steps_of(&self, reference: &str) -> Result<Vec<usize>, Diagnostic> {
        let parts = parse(reference)?;
        let known = super::reference::axes(&self.steps[self.instances_of(parts.stage)?[0]].label);
        let own = parts
            .filters
            .iter()
            .filter(|(name, _)| known.iter().any(|(a, _)| a == name));
        let point: Vec<String> = own
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect();
        find_instances(self, &format!("{}[{}]", parts.stage, point.join(",")))
    }
}

impl Catalog for Recorded {
    fn instances_of(&self, stage: &str) -> Result<Vec<usize>, Diagnostic> {
        let steps = self.steps.iter().enumerate();
        let found: Vec<usize> = steps
            .filter(|(_, step)| step.name() == stage)
            .map(|(at, _)| at)
            .collect();
        match found.is_empty() {
            true => Err(Diagnostic::new(format!(
                "run {} has no stage `{stage}`",
                self.run.id
            ))),
            false => Ok(found),
        }
    }

    fn label(&self, instance: usize) -> &str {
        &self.steps[instance].label
    }

    fn bases(&self) -> Vec<(String, String)> {
        self.bases.clone()
    }

    fn outputs(&self, instance: usize) -> Vec<&str> {
        let outputs = self.steps[instance].outputs().iter();
        outputs.map(|output| output.name.as_str()).collect()
    }
}

impl Step {
    /// The stage's name, without its axes.
    pub fn name(&self) -> &str {
        self.label.split('[').next().unwrap_or(&self.label)
    }

    /// The stage's kind, where it was executed.
    pub fn kind(&self) -> &str {
        self.execution.as_ref().map_or("", |found| &found.key.kind)
    }

    /// What its kind is to those who show results.
    pub fn role(&self) -> Role {
        role_of(self.kind())
    }

    /// What it made.
    pub fn outputs(&self) -> &[Output] {
        self.execution.as_ref().map_or(&[], |found| &found.outputs)
    }

    /// An output by name.
    pub fn output(&self, name: &str) -> Option<&Output> {
        self.outputs().iter().find(|output| output.name == name)
    }

    /// `label` for the only output, `label.output` otherwise: what `ablate show` takes.
    pub fn source(&self, output: &Output) -> String {
        match self.outputs().len() {
            1 => self.label.clone(),
            _ => format!("{}.{}", self.label, output.name),
        }
    }

    /// Where the input of this port came from; the first, if it collected several.
    pub fn read_by(&self, port: &str) -> Option<&Read> {
        self.reads.iter().find(|read| read.input.port == port)
    }
}

/// What a kind is to those who show results. One that this program does not have is nothing special.
pub fn role_of(kind: &str) -> Role {
    stages::find(kind).map_or(Role::Other, |kind| kind.role())
}

/// The attack that an execution made or trained against.
pub fn attack_of(key: &StageKey) -> Option<&str> {
    stages::find(&key.kind)?.attack(&key.params)
}

/// Whether an execution left its rows as they were, as a control.
pub fn is_control(key: &StageKey) -> bool {
    stages::find(&key.kind).is_some_and(|kind| kind.is_control(&key.params))
}

/// Reads a run back.
pub fn gather(store: &Store, run: Run) -> Result<Recorded, Error> {
    let _snapshot = store.snapshot();
    let mut steps = Vec::new();
    let uses = store.uses(run.id)?;
    let unsealed = store.unsealed(uses.iter().filter_map(|used| used.execution))?;
    let mut altered = BTreeMap::new();
    for used in uses {
        let mut execution = match used.execution {
            Some(id) => store.execution(id)?,
            None => None,
        };
        if let Some(execution) = &mut execution
            && let Some(why) = unsealed.get(&execution.id)
        {
            execution.outputs.clear();
            altered.insert(used.instance.clone(), why.clone());
        }
        steps.push(Step {
            label: used.instance,
            status: used.status,
            wall: used.wall,
            execution,
            reads: Vec::new(),
        });
    }
    wire(&mut steps);
    let steps = in_order(steps);
    let codes = codes(store, &steps)?;
    let source = run.source.map(|source| store.text(&source)).transpose()?;
    let bases = source
        .flatten()
        .map_or_else(Vec::new, |text| ablations(&text));
    Ok(Recorded {
        bases,
        run,
        steps,
        codes,
        altered,
    })
}

/// The source files behind each code fingerprint.
fn codes(store: &Store, steps: &[Step]) -> Result<BTreeMap<Digest, CodeFiles>, Error> {
    let mut codes = BTreeMap::new();
    for execution in steps.iter().filter_map(|step| step.execution.as_ref()) {
        let code = execution.key.code;
        if let Entry::Vacant(place) = codes.entry(code) {
            place.insert(store.code_files(&code)?.unwrap_or_default());
        }
    }
    Ok(codes)
}

/// The table behind an output, if it is still in the store and whole. A report shows what is
/// there; `ablate fsck` is for what is not.
pub fn table(store: &Store, output: &Output) -> Option<RecordBatch> {
    store.peek(&output.digest).ok()
}

/// Connects inputs to the steps that made them. Names are not part of a key, so an execution of
/// an older run may name a producer that is called otherwise now: contents decide, and the name
/// only chooses among equals.
fn wire(steps: &mut [Step]) {
    let mut makers: HashMap<Digest, Vec<(usize, usize)>> = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        for (n, output) in step.outputs().iter().enumerate() {
            makers.entry(output.digest).or_default().push((at, n));
        }
    }
    let wired: Vec<Vec<Read>> = steps
        .iter()
        .map(|step| {
            let inputs = step.execution.iter().flat_map(|found| &found.inputs);
            let each = inputs.map(|input| {
                let (label, _) = split_output(&input.producer);
                let equal = makers.get(&input.digest).map_or(&[][..], Vec::as_slice);
                let named = equal.iter().find(|(at, _)| steps[*at].label == label);
                let found = named.or(equal.first()).copied();
                Read {
                    step: found.map(|(at, _)| at),
                    output: found.map(|(_, n)| n),
                    input: input.clone(),
                }
            });
            each.collect()
        })
        .collect();
    for (step, reads) in steps.iter_mut().zip(wired) {
        step.reads = reads;
    }
}

/// Readers after what they read, otherwise in the order of names.
fn in_order(steps: Vec<Step>) -> Vec<Step> {
    let mut waits = vec![0_usize; steps.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (at, step) in steps.iter().enumerate() {
        for from in step.reads.iter().filter_map(|read| read.step) {
            // Bytes that two steps share may make one seem to read itself.
            if from != at {
                waits[at] += 1;
                readers[from].push(at);
            }
        }
    }
    let free = (0..steps.len()).filter(|at| waits[*at] == 0);
    let mut free: BinaryHeap<Reverse<usize>> = free.map(Reverse).collect();
    let mut order = Vec::with_capacity(steps.len());
    while let Some(Reverse(at)) = free.pop() {
        order.push(at);
        for reader in &readers[at] {
            waits[*reader] -= 1;
            if waits[*reader] == 0 {
                free.push(Reverse(*reader));
            }
        }
    }
    placed(steps, &order)
}

/// The steps in an order that may lack some: these keep the order of names.
fn placed(steps: Vec<Step>, order: &[usize]) -> Vec<Step> {
    // Equal bytes in a cycle cannot be put in order: what is left keeps the order of names.
    let mut place = vec![usize::MAX; steps.len()];
    for (new, at) in order.iter().enumerate() {
        place[*at] = new;
    }
    let left = place.iter_mut().filter(|slot| **slot == usize::MAX);
    for (next, slot) in (order.len()..).zip(left) {
        *slot = next;
    }
    let mut placed: Vec<(usize, Step)> = place.iter().copied().zip(steps).collect();
    placed.sort_by_key(|(new, _)| *new);
    let mut steps: Vec<Step> = placed.into_iter().map(|(_, step)| step).collect();
    for read in steps.iter_mut().flat_map(|step| &mut step.reads) {
        read.step = read.step.map(|old| place[old]);
    }
    steps
}
