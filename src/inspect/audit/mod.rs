//! Where a number came from: every execution behind a result, down to the raw data's checksums.
//! Reads the store and runs nothing. [`tree`] and [`html`] show it, [`proof`] makes a file of it
//! that [`check`] tests against another store.

pub mod check;
pub mod html;
pub mod proof;
pub mod tree;

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::{Value, json};
use store::{Acceptance, Digest, Environment, Execution, Inspected, Lineage, Store};

use crate::environment::utc;
use crate::remote::keys::Keys;
use crate::results::cell::{Cell, CellFilter};

/// The derivation of a result.
pub struct Audit {
    /// The reference that is audited, as it was written.
    pub asked: String,
    /// The output that is audited, of each root.
    pub outputs: Vec<String>,
    /// The cell, if one is audited.
    pub cell: Option<(CellFilter, Cell)>,
    /// All executions behind it.
    pub lineage: Lineage,
    /// The state of the objects; empty if they were not checked.
    pub objects: BTreeMap<Digest, Inspected>,
    /// Every machine and checkout, once.
    pub machines: Vec<Arc<Environment>>,
    /// Changes of code that somebody accepted, of the executions behind the result.
    pub accepted: Vec<Acceptance>,
    /// What of its record was changed after it was recorded.
    pub altered: Vec<String>,
    /// Steps for whose keys the store has made something else as well.
    pub contradicted: Vec<usize>,
}

impl Audit {
    /// Follows executions to their beginnings. With `bytes`, every object on the way is hashed.
    pub fn of(
        store: &Store,
        asked: &str,
        roots: &[(i64, String)],
        bytes: bool,
    ) -> Result<Audit, store::Error> {
        // Thousands of look-ups, which would each take their own locks.
        let _one_moment = store.snapshot();
        let ids: Vec<i64> = roots.iter().map(|(id, _)| *id).collect();
        let lineage = store.lineage(&ids)?;
        let mut machines: Vec<Arc<Environment>> = Vec::new();
        let mut made = Vec::new();
        for link in &lineage.links {
            let here = &link.execution.environment;
            if !machines
                .iter()
                .any(|known| Arc::ptr_eq(known, here) || known == here)
            {
                machines.push(here.clone());
            }
            made.extend(link.execution.outputs.iter().map(|output| output.digest));
        }
        let objects = match bytes {
            true => {
                let look = |digest: Digest| (digest, store.inspect(&digest));
                made.into_par_iter().map(look).collect()
            }
            false => BTreeMap::new(),
        };
        let mut accepted = store.acceptances()?;
        accepted.retain(|one| {
            lineage
                .links
                .iter()
                .any(|l| l.execution.id == one.execution)
        });
        let steps = lineage.links.iter().map(|link| &link.execution);
        let altered = store.altered(steps)?;
        let (again, mut contradicted) = (store.made_again()?, Vec::new());
        for (n, link) in lineage.links.iter().enumerate() {
            if !again.contains(&link.execution.key_digest) {
                continue;
            }
            let made = store.results_of(&link.execution.key_digest)?;
            if made.iter().any(|one| one.outputs != made[0].outputs) {
                contradicted.push(n);
            }
        }
        Ok(Audit {
            accepted,
            altered,
            contradicted,
            asked: asked.to_owned(),
            outputs: roots.iter().map(|(_, output)| output.clone()).collect(),
            cell: None,
            lineage,
            objects,
            machines,
        })
    }

    /// The letter of the machine that an execution ran on: A, B, …, AA.
    pub fn machine(&self, execution: &Execution) -> String {
        let here = &execution.environment;
        let at = self.machines.iter().position(|known| known == here);
        letters(at.unwrap_or_default())
    }

    /// Whether a record was altered or an object is damaged: then nothing of it may be believed.
    pub fn is_wrong(&self) -> bool {
        let damaged = |found: &Inspected| matches!(found, Inspected::Damaged(_));
        !self.altered.is_empty() || self.objects.values().any(damaged)
    }

    /// What stands against believing the result, a line each.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let keys = Keys::open().ok();
        let altered = self.altered.iter();
        doubts.extend(altered.map(|what| format!("the store's record: {what}")));
        for (n, link) in self.lineage.links.iter().enumerate() {
            let step = &link.execution;
            if self.contradicted.contains(&n) {
                doubts.push(format!(
                    "{}: the store also has different bytes for the same key",
                    step.instance
                ));
            }
            let dirty = step.environment.git_dirty == Some(true);
            if dirty {
                doubts.push(format!(
                    "{}: made from a working tree with uncommitted changes",
                    step.instance
                ));
            }
            if step.key.digest() != step.key_digest {
                doubts.push(format!(
                    "{}: its recorded key does not have the digest that it is found by",
                    step.instance
                ));
            }
            for (input, maker) in step.inputs.iter().zip(&link.makers) {
                if maker.is_none() {
                    doubts.push(format!(
                        "{}: no record of what made {} (input `{}`)",
                        step.instance,
                        input.digest.short(),
                        input.port
                    ));
                }
            }
            for output in &step.outputs {
                if let Some(Inspected::Damaged(why)) = self.objects.get(&output.digest) {
                    doubts.push(format!(
                        "{}.{}: the stored result is damaged: {why}",
                        step.instance, output.name
                    ));
                }
            }
            if let Some(how) = step.facts.sandbox.as_deref()
                && how.starts_with("none")
            {
                doubts.push(format!(
                    "{}: its program could read undeclared files: sandbox {how}",
                    step.instance
                ));
            } else if let Some(how) = step.facts.sandbox.as_deref()
                && ["network open", "signals open"]
                    .iter()
                    .any(|open| how.contains(open))
            {
                doubts.push(format!(
                    "{}: its program was not isolated from other programs: sandbox {how}",
                    step.instance
                ));
            }
            if let Some(signer) = step.facts.signer.as_deref()
                && keys.as_ref().is_some_and(|keys| keys.is_revoked(signer))
            {
                doubts.push(format!(
                    "{}: taken from a remote, and you have revoked the key that signed it",
                    step.instance
                ));
            }
            if step.facts.determinism.as_deref() == Some("outside-program") {
                let unknown = match step.key.installed.is_empty() {
                    true => "whose version is not in the key",
                    false => {
                        "that promises nothing of its bytes; in the key are its files and what it was started with, not the system's libraries"
                    }
                };
                doubts.push(format!(
                    "{}: made by an external program {unknown}",
                    step.instance
                ));
            }
        }
        for one in &self.accepted {
            doubts.push(format!(
                "{}: made by code {}, and {} accepted {} on {}: {}",
                one.instance,
                one.old_code.short(),
                one.who,
                one.new_code.short(),
                utc(one.at),
                one.reason
            ));
        }
        doubts
    }

    /// All of it, for programs.
    pub fn json(&self) -> Value {
        let steps = self.lineage.links.iter().map(|link| {
            let step = &link.execution;
            let inputs = step.inputs.iter().zip(&link.makers).map(|(input, maker)| {
                json!({
                    "port": input.port, "ordinal": input.ordinal, "axes": input.axes,
                    "producer": input.producer, "digest": input.digest, "step": maker,
                })
            });
            let outputs = step.outputs.iter().map(|output| {
                json!({
                    "name": output.name, "digest": output.digest, "rows": output.rows,
                    "bytes": output.bytes, "columns": output.schema,
                    "object": self.object(step, &output.digest),
                })
            });
            json!({
                "stage": step.instance, "kind": step.key.kind, "run": step.run,
                "execution": step.id, "key": step.key_digest, "params": step.key.params,
                "defaults": step.facts.defaults, "seed": step.key.seed, "code": step.key.code,
                "files": step.key.files, "installed": step.key.installed, "raw": step.facts.raw,
                "determinism": step.facts.determinism, "sandbox": step.facts.sandbox, "resumed": step.facts.resumed.unwrap_or(0), "signer": step.facts.signer,
                "inputs": inputs.collect::<Vec<_>>(), "outputs": outputs.collect::<Vec<_>>(),
                "started": utc(step.started), "ms": step.wall.as_secs_f64() * 1e3,
                "machine": self.machine(step), "log": step.log,
            })
        });
        let machines = self.machines.iter().enumerate();
        let machines: BTreeMap<String, &Environment> = machines
            .map(|(n, machine)| (letters(n), machine.as_ref()))
            .collect();
        json!({
            "asked": self.asked,
            "cell": self.cell.as_ref().map(|(wanted, cell)| json!({
                "where": wanted.filters, "column": cell.column, "row": cell.row,
                "value": cell.value,
            })),
            "roots": self.lineage.roots, "steps": steps.collect::<Vec<_>>(),
            "machines": machines, "accepted": self.accepted, "codes": self.lineage.codes, "doubts": self.doubts(),
        })
    }

    /// The state of an object of a step in words; none if it was not checked.
    pub fn object(&self, step: &Execution, digest: &Digest) -> Option<&'static str> {
        Some(match self.objects.get(digest)? {
            Inspected::Whole(_) => "checked",
            Inspected::Damaged(_) => "DAMAGED",
            Inspected::Missing if step.facts.signer.is_some() => "not here: left in a remote",
            Inspected::Missing => "gone",
        })
    }
}

/// The parameters of a step, each with whether it is a default.
pub fn params(step: &Execution) -> impl Iterator<Item = (&String, String, bool)> {
    let left_out = step.facts.defaults.as_deref().unwrap_or_default();
    step.key
        .params
        .iter()
        .map(|(name, value)| (name, value.to_string(), left_out.contains(name)))
}

/// A machine in a line.
pub fn machine_line(machine: &Environment) -> String {
    let commit = match (&machine.git_commit, machine.git_dirty) {
        (None, _) => "not in a repository".to_owned(),
        (Some(commit), Some(true)) => format!("commit {commit} with changes"),
        (Some(commit), _) => format!("commit {commit}"),
    };
    format!(
        "{}, {}, {} ({}), {} threads; ablate {}, {}; {commit}",
        machine.host,
        machine.os,
        machine.cpu_model,
        machine.cpu_features.join(" "),
        machine.threads,
        machine.ablate,
        machine.rustc
    )
}

fn letters(n: usize) -> String {
    let last = char::from(b'A' + (n % 26) as u8);
    match n / 26 {
        0 => last.to_string(),
        more => format!("{}{last}", letters(more - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::letters;

    #[test]
    fn machines_have_letters() {
        let named: Vec<String> = [0, 25, 26, 702].into_iter().map(letters).collect();
        assert_eq!(named, ["A", "Z", "AA", "AAA"]);
    }
}
