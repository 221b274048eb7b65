//! Results beside a lock: for each stage instance, did the same come out? Outputs are compared, by digest; that a key
//! is another one is said and decides nothing. Runs nothing, and believes no record: the bytes are hashed.

use serde::Serialize;
use stages::Determinism;
use store::{Digest, Inspected, Store};

use super::{Lock, LockedStage, machine_class};
use crate::inspect::status::InstanceStatus;
use crate::inspect::stored;
use crate::inspect::verify::grade::{self, Grade};
use crate::plan::Plan;

/// How one stage instance compares with the lock.
#[derive(Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The instance.
    pub stage: String,
    /// How it compares.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Whether it has another key than in the lock: parameters, inputs, files or code have changed.
    pub other_key: bool,
    /// What its kind promises.
    pub promise: String,
}

/// How an instance compares with the lock.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Both have a result.
    Compared {
        /// The output that differs most; the first of those that are alike.
        output: String,
        /// How it differs.
        #[serde(flatten)]
        grade: Grade,
    },
    /// It has a result, whose bytes are not what was stored.
    Damaged {
        /// The output.
        output: String,
        /// What is wrong with it.
        why: String,
    },
    /// The lock does not name it.
    NotInTheLock,
    /// The lock names it, and there is no result.
    Missing {
        /// Why not.
        why: String,
    },
}

impl Verdict {
    /// In words.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Compared { grade, .. } => grade.name(),
            Verdict::Damaged { .. } => "damaged",
            Verdict::NotInTheLock => "not in the lock",
            Verdict::Missing { .. } => "missing",
        }
    }

    /// Whether it speaks against the lock.
    pub fn is_bad(&self) -> bool {
        match self {
            Verdict::Compared { grade, .. } => grade.rank() > 1,
            Verdict::NotInTheLock => false,
            Verdict::Damaged { .. } | Verdict::Missing { .. } => true,
        }
    }
}

/// Compares what a store has of the wanted instances. If all are wanted, those that only the lock has are missing.
pub fn compare(
    lock: &Lock,
    plan: &Plan<'_>,
    wanted: &[bool],
    statuses: &[InstanceStatus],
    store: &Store,
) -> Result<Vec<Compared>, store::Error> {
    let mut compared = Vec::new();
    for n in (0..wanted.len()).filter(|n| wanted[*n]) {
        let label = &plan.instances[n].label;
        let promise = plan.decl(n).kind.determinism(&plan.instances[n].params);
        let locked = lock.stages.get(label);
        let verdict = match (locked, &statuses[n]) {
            (None, _) => Verdict::NotInTheLock,
            (Some(locked), InstanceStatus::Cached { key, execution, .. }) => {
                let ours = (*key, *execution);
                graded(lock, locked, ours, &promise, store)?
            }
            (Some(_), _) => Verdict::Missing {
                why: match stored::unusable(plan, statuses, n) {
                    Some(unusable) => unusable.to_string(),
                    None => "it has not been run".to_owned(),
                },
            },
        };
        let key = statuses[n].key();
        compared.push(Compared {
            stage: label.clone(),
            verdict,
            other_key: locked.is_some_and(|locked| key.is_some_and(|key| key != locked.key)),
            promise: promise.name().to_owned(),
        });
    }
    if wanted.iter().all(|wanted| *wanted) {
        compared.extend(gone(lock, plan));
    }
    compared.sort_by(|a, b| a.stage.cmp(&b.stage));
    Ok(compared)
}

/// Instances that only the lock has.
fn gone(lock: &Lock, plan: &Plan<'_>) -> Vec<Compared> {
    let labels = plan.instances.iter().map(|it| it.label.as_str());
    let labels: std::collections::HashSet<&str> = labels.collect();
    let stages = lock.stages.iter();
    let stages = stages.filter(|(label, _)| !labels.contains(label.as_str()));
    let missing = stages.map(|(label, locked)| Compared {
        stage: label.clone(),
        verdict: Verdict::Missing {
            why: "the pipeline does not have it".to_owned(),
        },
        other_key: false,
        promise: locked.promise.clone(),
    });
    missing.collect()
}

/// The worst of an instance's outputs.
fn graded(
    lock: &Lock,
    locked: &LockedStage,
    (key, execution): (Digest, i64),
    promise: &Determinism,
    store: &Store,
) -> Result<Verdict, store::Error> {
    let execution = store.execution(execution)?;
    let execution = execution.expect("what is cached was executed");
    let elsewhere = machine_class(&execution.environment) != lock.machine_of(locked);
    let tolerant = elsewhere || key != locked.key;
    let ours = |name: &str| {
        let output = execution.outputs.iter().find(|output| output.name == name);
        output.map(|output| output.digest)
    };
    let names = locked.outputs.keys();
    let new = execution.outputs.iter().map(|output| &output.name);
    let new = new.filter(|name| !locked.outputs.contains_key(*name));
    let mut worst: Option<(String, Grade)> = None;
    for name in names.chain(new) {
        let allowed = |column: &str| match tolerant {
            true => promise.tolerance(name, column),
            false => 0.0,
        };
        let ours = ours(name);
        if let Some(why) = ours.and_then(|ours| damage(store, &ours)) {
            let output = name.clone();
            return Ok(Verdict::Damaged { output, why });
        }
        let grade = grade(locked.outputs.get(name).copied(), ours, store, allowed);
        if worst
            .as_ref()
            .is_none_or(|(_, known)| grade.rank() > known.rank())
        {
            worst = Some((name.clone(), grade));
        }
    }
    let (output, grade) = worst.unwrap_or((String::new(), Grade::BitIdentical));
    Ok(Verdict::Compared { output, grade })
}

/// What is wrong with the bytes of an output: whether the same came out cannot be said then.
fn damage(store: &Store, digest: &Digest) -> Option<String> {
    match store.inspect(digest) {
        Inspected::Damaged(why) => Some(why),
        Inspected::Missing => Some("the file is missing".to_owned()),
        Inspected::Whole(_) => None,
    }
}

/// One output as the lock has it, and as the store has it, where it is whole.
fn grade(
    locked: Option<Digest>,
    ours: Option<Digest>,
    store: &Store,
    allowed: impl Fn(&str) -> f64,
) -> Grade {
    let different = |detail: String| Grade::Different {
        row: None,
        column: None,
        detail,
    };
    let (Some(locked), Some(ours)) = (locked, ours) else {
        return different("only one of both has this output".to_owned());
    };
    if ours == locked {
        return Grade::BitIdentical;
    }
    // A lock has no tables: how far they are apart can be said where the locked one is stored as well.
    match (store.read(&locked), store.read(&ours)) {
        (Ok(was), Ok(now)) => grade::tables(&was, &now, allowed),
        _ => different(format!(
            "{} was locked, {} came out; the locked table is not in this store to compare with",
            locked.short(),
            ours.short()
        )),
    }
}
