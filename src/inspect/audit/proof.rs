//! A derivation as a small file that stands on its own: a graph of stage keys in which each
//! names the contents that it read by digest, sealed under one root digest.
//!
//! What it proves: the value stands in a table with this digest; that table is what the stage
//! with this key was recorded to make; the key names its inputs' contents; and so on to stages
//! that read nothing but raw files with checksums. [`super::check`] recomputes all of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use store::{Acceptance, Digest, Inspected, RawFile, StageKey, Store, Value};

use super::Audit;
use crate::diagnostic::Diagnostic;
use crate::resolve::collected;
use crate::results::cell::{Cell, CellFilter};

/// The tag of this version of the file.
pub const RECORD: &str = "ablate-proof/2";

/// Tables up to this size go along, so that the value can be seen without any store.
const SMALL: u64 = 32 << 10;

/// The file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// [`RECORD`].
    pub record: String,
    /// The reference that was audited, as it was written.
    pub asked: String,
    /// The seal of everything, see [`root_of`].
    pub root: Digest,
    /// The output of the last node that the proof is about.
    pub output: String,
    /// The cell of that output.
    pub cell: Option<ProvenCell>,
    /// The stages, makers before readers, the one in question last.
    pub nodes: Vec<Node>,
    /// Changes of code that somebody accepted, of stages that are in it.
    pub accepted: Vec<Acceptance>,
    /// The bytes of that output in hexadecimal, if they are few.
    pub artifact: Option<String>,
}

/// A cell and what stands in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvenCell {
    /// Which cell.
    pub wanted: CellFilter,
    /// Where it was found, and its value.
    pub found: Cell,
}

/// One stage.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// The instance's name when it was executed.
    pub stage: String,
    /// What decided its outputs.
    pub key: StageKey,
    /// What it made.
    pub outputs: BTreeMap<String, Digest>,
    /// What it read.
    pub inputs: Vec<Edge>,
    /// Files from outside that it read.
    pub raw: Vec<RawFile>,
}

/// One table that a stage read.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// The port.
    pub port: String,
    /// The axes of a part of a collected input, and their values, as JSON.
    pub axes: Option<String>,
    /// The node that made it: an earlier one.
    pub node: usize,
    /// Which of its outputs.
    pub output: String,
    /// Its contents.
    pub digest: Digest,
}

/// Makes the proof of an audit of one instance.
pub fn make(audit: &Audit, store: &Store) -> Result<Proof, Diagnostic> {
    let ([root], [output]) = (&audit.lineage.roots[..], &audit.outputs[..]) else {
        return Err(Diagnostic::new(format!(
            "`{}` has {} instances, and a proof is of one",
            audit.asked,
            audit.outputs.len()
        ))
        .help("name its axes: 'stage[axis=value]'"));
    };
    let mut nodes = Vec::with_capacity(audit.lineage.links.len());
    for link in &audit.lineage.links {
        let step = &link.execution;
        let mut inputs = Vec::with_capacity(step.inputs.len());
        for (input, maker) in step.inputs.iter().zip(&link.makers) {
            let maker = maker.ok_or_else(|| {
                Diagnostic::new(format!(
                    "`{}` read {}, but nothing records what produced it, so it cannot be proven",
                    step.instance,
                    input.digest.short()
                ))
                .help("run the pipeline again in a fresh store: `ablate run --store DIR`")
            })?;
            let made = &audit.lineage.links[maker].execution.outputs;
            let mut same = made.iter().filter(|output| output.digest == input.digest);
            let named = |name: &str| input.producer.ends_with(&format!(".{name}"));
            let output = same.clone().find(|output| named(&output.name));
            let output = output.or(same.next()).expect("the maker was found by it");
            inputs.push(Edge {
                port: input.port.clone(),
                axes: input.axes.clone(),
                node: maker,
                output: output.name.clone(),
                digest: input.digest,
            });
        }
        let outputs = step.outputs.iter();
        nodes.push(Node {
            stage: step.instance.clone(),
            key: step.key.clone(),
            outputs: outputs.map(|o| (o.name.clone(), o.digest)).collect(),
            inputs,
            raw: step.facts.raw.clone(),
        });
    }
    debug_assert_eq!(*root + 1, nodes.len(), "the root is walked last");
    let seals = seals(&nodes).map_err(|why| Diagnostic::new(format!("cannot prove it: {why}")))?;
    let asked = &audit.lineage.links[*root].execution.outputs;
    let artifact = asked.iter().find(|known| known.name == *output);
    if let Some(why) = audit.altered.first() {
        let what = format!("cannot prove it: the store's record is altered ({why})");
        return Err(Diagnostic::new(what).help("`ablate run` recomputes altered results"));
    }
    if let Some(Inspected::Damaged(why)) = artifact.map(|output| store.inspect(&output.digest)) {
        return Err(Diagnostic::new(format!(
            "cannot prove it: the stored result of `{}` is damaged: {why}",
            audit.asked
        ))
        .help("`ablate run` sets it aside and recomputes it"));
    }
    let small = artifact.filter(|output| output.bytes <= SMALL);
    let bytes = small.and_then(|output| std::fs::read(store.object_path(&output.digest)).ok());
    let cell = audit.cell.clone();
    let cell = cell.map(|(wanted, found)| ProvenCell { wanted, found });
    let mut proof = Proof {
        record: RECORD.to_owned(),
        asked: audit.asked.clone(),
        root: Digest::of(b"not sealed yet"),
        output: output.clone(),
        cell,
        nodes,
        accepted: audit.accepted.clone(),
        artifact: bytes.map(|bytes| hex(&bytes)),
    };
    proof.root = root_of(&proof, &seals);
    Ok(proof)
}

/// The root: the reference, what was found and what was accepted, over the seal of the last node.
pub fn root_of(proof: &Proof, seals: &[Digest]) -> Digest {
    let (asked, output, cell) = (&proof.asked, &proof.output, &proof.cell);
    let sealed = (
        "proof/2",
        asked,
        output,
        cell,
        seals.last(),
        &proof.accepted,
    );
    let text = serde_json::to_string(&sealed).expect("plain values");
    Digest::of(text.as_bytes())
}

/// The seal of each node, or what does not fit together. Needs no store.
pub fn seals(nodes: &[Node]) -> Result<Vec<Digest>, String> {
    let mut seals: Vec<Digest> = Vec::with_capacity(nodes.len());
    for (n, node) in nodes.iter().enumerate() {
        let wrong = |what: String| Err(format!("`{}`: {what}", node.stage));
        // A stage that nothing reads would count as confirmed and prove nothing.
        let read = nodes[n + 1..].iter().flat_map(|later| &later.inputs);
        if n + 1 < nodes.len() && !read.into_iter().any(|edge| edge.node == n) {
            return wrong("nothing reads it".to_owned());
        }
        let mut ports: BTreeMap<&str, Vec<&Edge>> = BTreeMap::new();
        for edge in &node.inputs {
            if edge.node >= n {
                return wrong(format!("input `{}` is of a later stage", edge.port));
            }
            let made = nodes[edge.node].outputs.get(&edge.output);
            if made != Some(&edge.digest) {
                return wrong(format!(
                    "input `{}` is not the output `{}` of `{}`",
                    edge.port, edge.output, nodes[edge.node].stage
                ));
            }
            ports.entry(&edge.port).or_default().push(edge);
        }
        for (port, named) in &node.key.inputs {
            let Some(edges) = ports.remove(port.as_str()) else {
                return wrong(format!("its input `{port}` is not described"));
            };
            if received(&edges)? != *named {
                return wrong(format!("its key names other contents for `{port}`"));
            }
        }
        if let Some(port) = ports.keys().next() {
            return wrong(format!("its key has no input `{port}`"));
        }
        let edges: Vec<_> = node
            .inputs
            .iter()
            .map(|e| (&e.port, &e.axes, seals[e.node], &e.output, e.digest))
            .collect();
        let sealed = (
            "proof-node/1",
            &node.stage,
            node.key.digest(),
            &node.outputs,
            edges,
            &node.raw,
        );
        let text = serde_json::to_string(&sealed).expect("plain values");
        seals.push(Digest::of(text.as_bytes()));
    }
    Ok(seals)
}

/// The digest that a key has for a port that receives these tables.
fn received(edges: &[&Edge]) -> Result<Digest, String> {
    if let [edge] = edges
        && edge.axes.is_none()
    {
        return Ok(edge.digest);
    }
    let mut names: Option<Vec<String>> = None;
    let mut parts: Vec<(Vec<Value>, Digest)> = Vec::with_capacity(edges.len());
    for edge in edges {
        let axes = edge.axes.as_deref().unwrap_or_default();
        let (axes, values): (Vec<String>, Vec<Value>) = serde_json::from_str(axes)
            .map_err(|error| format!("the axes of a part of `{}`: {error}", edge.port))?;
        if names.get_or_insert_with(|| axes.clone()) != &axes {
            return Err(format!("the parts of `{}` have different axes", edge.port));
        }
        parts.push((values, edge.digest));
    }
    let parts = parts
        .iter()
        .map(|(values, digest)| (values.as_slice(), *digest));
    Ok(collected(&names.unwrap_or_default(), parts.collect()))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes behind hexadecimal digits.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).map(|d| d as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_reads_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("zz"), None);
    }
}
