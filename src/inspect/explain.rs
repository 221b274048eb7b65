//! Why a stage will run: its key compared with the nearest one in the store, field by field.

use std::collections::{BTreeMap, BTreeSet};

use store::{Digest, StageKey, Store, Value};

use crate::engine::checkpoint;
use crate::plan::Plan;
use crate::results::recall::{Fault, Recalled, recall};

/// One field that differs.
#[derive(Debug, serde::Serialize)]
pub struct Difference {
    /// The field: `params.query`, `inputs.t`, `code stages/kinds/sql/mod.rs`.
    pub field: String,
    /// What the stored key has.
    pub was: Option<String>,
    /// Its value in the new key.
    pub now: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let field = &self.field;
        match (&self.was, &self.now) {
            (Some(was), Some(now)) => write!(f, "{field} was {was}, now {now}"),
            (None, Some(now)) => write!(f, "{field} is new: {now}"),
            (Some(was), None) => write!(f, "{field} is gone, was {was}"),
            (None, None) => write!(f, "{field} changed"),
        }
    }
}

/// Why an instance will run.
pub enum Reason {
    /// Nothing like it has run before.
    Never,
    /// It has run, and what the store has of it cannot be used.
    Unsound(Fault),
    /// It was interrupted, and has left a checkpoint.
    Interrupted,
    /// It has run with another key.
    Differs(Vec<Difference>),
}

/// Finds the reason.
pub fn reason(
    plan: &Plan<'_>,
    instance: usize,
    key: &StageKey,
    store: Option<&Store>,
) -> Result<Reason, store::Error> {
    let Some(store) = store else {
        return Ok(Reason::Never);
    };
    if let Recalled::Unsound(_, fault) = recall(store, &key.digest()) {
        return Ok(Reason::Unsound(fault));
    }
    if checkpoint::is_saved(&store.checkpoints(), &key.digest()) {
        return Ok(Reason::Interrupted);
    }
    let label = &plan.instances[instance].label;
    let Some((old, old_code)) = store.nearest(&key.kind, label, key)? else {
        return Ok(Reason::Never);
    };
    let code = plan.code(instance);
    Ok(Reason::Differs(differences(
        &old,
        &old_code,
        key,
        &code.files,
    )))
}

/// What has changed since an instance was last executed with success; nothing if it never was.
pub fn since_it_ran(
    plan: &Plan<'_>,
    instance: usize,
    key: &StageKey,
    store: &Store,
) -> Result<Option<String>, store::Error> {
    let label = &plan.instances[instance].label;
    let found = store.nearest_of_instance(&key.kind, label, key)?;
    let changes =
        found.map(|(old, old_code)| differences(&old, &old_code, key, &plan.code(instance).files));
    let changes = changes.filter(|changes| !changes.is_empty());
    Ok(changes.map(|changes| line(&Reason::Differs(changes))))
}

/// The fields in which two keys of one kind differ.
pub fn differences(
    old: &StageKey,
    old_code: &BTreeMap<String, Digest>,
    new: &StageKey,
    new_code: &BTreeMap<String, Digest>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    let short = |digest: &Digest| digest.short();
    compare(
        "params.",
        &old.params,
        &new.params,
        Value::to_string,
        &mut found,
    );
    if old.seed != new.seed {
        found.push(Difference {
            field: "seed".to_owned(),
            was: old.seed.map(|seed| seed.to_string()),
            now: new.seed.map(|seed| seed.to_string()),
        });
    }
    for change in old.installed.changes(&new.installed) {
        found.push(Difference {
            field: change.name,
            was: change.was,
            now: change.now,
        });
    }
    compare("files ", &old.files, &new.files, short, &mut found);
    let run = |key: &StageKey| {
        let names = key.executable.iter();
        names
            .map(|name| (name.clone(), "executable"))
            .collect::<BTreeMap<_, _>>()
    };
    let text = |what: &&str| (*what).to_owned();
    compare("files ", &run(old), &run(new), text, &mut found);
    compare("inputs.", &old.inputs, &new.inputs, short, &mut found);
    if old.code != new.code {
        let before = found.len();
        compare("code ", old_code, new_code, short, &mut found);
        if found.len() == before {
            found.push(Difference {
                field: "code".to_owned(),
                was: Some(old.code.short()),
                now: Some(new.code.short()),
            });
        }
    }
    found
}

fn compare<T: PartialEq>(
    prefix: &str,
    old: &BTreeMap<String, T>,
    new: &BTreeMap<String, T>,
    show: impl Fn(&T) -> String,
    found: &mut Vec<Difference>,
) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let (was, now) = (old.get(name), new.get(name));
        if was != now {
            found.push(Difference {
                field: format!("{prefix}{name}"),
                was: was.map(|value| shorten(show(value))),
                now: now.map(|value| shorten(show(value))),
            });
        }
    }
}

/// A value that fits on a line.
fn shorten(text: String) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// All differences on one line.
pub fn line(reason: &Reason) -> String {
    match reason {
        Reason::Never => "never run before".to_owned(),
        Reason::Unsound(fault) => format!("its stored result is {fault}"),
        Reason::Interrupted => "interrupted, continues from its checkpoint".to_owned(),
        Reason::Differs(list) if list.is_empty() => "nothing like it is in the store".to_owned(),
        Reason::Differs(list) => {
            let shown = list.iter().take(3).map(Difference::to_string);
            let mut text = shown.collect::<Vec<_>>().join("; ");
            if list.len() > 3 {
                text.push_str(&format!("; and {} more", list.len() - 3));
            }
            text
        }
    }
}
