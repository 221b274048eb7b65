//! What draws of some outputs are about, and the digest of all that decides them: found in the plan, with nothing loaded.

use std::collections::{BTreeMap, BTreeSet};

use stages::Role;
use store::{Digest, Params, Store};

use super::executions::seeded;
use super::graph::{Graph, Key, Reached, graph};
use super::unread::{TablesRead, leave_out_unread};
use crate::inspect::stored::Stored;
use crate::plan::{Plan, Source};

/// What must be recomputed, and read for it.
pub struct Outline<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) graph: Graph,
    pub(super) reached: Reached,
    /// The parameters of evaluations whose lines are not all read.
    pub(super) shorter: BTreeMap<usize, Params>,
    /// For each instance of the plan, whether another seed might have given something else.
    pub(super) seeded: Vec<bool>,
    /// Of everything that decides a draw.
    pub digest: Digest,
}

/// The version of what a draw is: another one makes kept draws void.
const VERSION: &str = "draws/6";

/// Finds what must be recomputed to draw these outputs, which are all stored; of evaluations among them only the tables that
/// are read.
pub fn outline<'a>(
    plan: &'a Plan<'a>,
    store: &Store,
    stored: &Stored,
    targets: &[Source],
    read: TablesRead<'_>,
) -> Outline<'a> {
    let targets: BTreeSet<Key> = targets.iter().map(|s| (s.instance, s.output)).collect();
    let digest = |key: Key| stored.outputs[key.0].as_ref()?.get(key.1).copied();
    let mut graph = graph(plan, store, stored, &targets);
    let shorter = leave_out_unread(plan, &mut graph, &targets, read);
    let reached = Reached::new(plan, &graph, &targets, digest);
    let mut outline = Outline {
        plan,
        graph,
        reached,
        shorter,
        seeded: seeded(plan),
        digest: Digest::of(b""),
    };
    outline.digest = outline.identity(digest);
    outline
}

impl Outline<'_> {
    /// By names, so that a stage elsewhere in the file changes nothing.
    fn identity(&self, digest: impl Fn(Key) -> Option<Digest>) -> Digest {
        let label = |key: &Key| {
            let (instance, output) = *key;
            self.plan.source_label(Source { instance, output })
        };
        let mut lines = vec![VERSION.to_owned()];
        let targets = self.reached.targets.iter();
        lines.extend(targets.map(|key| format!("target {}", label(key))));
        for (n, inputs) in &self.graph {
            let instance = &self.plan.instances[*n];
            let (name, code) = (&instance.label, self.plan.code(*n).digest);
            let params = self.shorter.get(n).unwrap_or(&instance.params);
            lines.push(format!("stage {name} {code} {params:?}"));
            for (port, input) in inputs {
                let read = input
                    .keys()
                    .map(|key| (label(&key), digest(key), self.seeded[key.0]));
                let read: Vec<_> = read.collect();
                lines.push(format!("reads {name} {port} {read:?} {:?}", input.values()));
            }
        }
        for (key, data) in &self.reached.items {
            lines.push(format!("items {} {data} {:?}", label(key), digest(*key)));
        }
        for key in &self.reached.tables {
            lines.push(format!("table {} {:?}", label(key), digest(*key)));
        }
        lines.sort();
        Digest::of(lines.join("\n").as_bytes())
    }

    /// Whether draws might differ from what is stored: there are items, or results.
    pub fn may_vary(&self) -> bool {
        let role = |n: &usize| self.plan.decl(*n).kind.role();
        let mut nodes = self.reached.nodes.iter();
        !self.reached.items.is_empty() || nodes.any(|n| role(n) == Role::Results)
    }

    /// The labels of outputs.
    pub fn labels(&self, sources: &[Source]) -> Vec<String> {
        let each = sources.iter();
        each.map(|source| self.plan.source_label(*source)).collect()
    }
}
