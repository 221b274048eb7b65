//! Tests a proof: in itself, then against a store that is not trusted. Of the store only two
//! things are taken: what it says it made for a key, which must agree with the proof, and bytes,
//! which are hashed here.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::record_batch::RecordBatch;
use rayon::prelude::*;
use store::{Acceptance, Answer, Digest, Inspected, RawFile, Store};

use super::proof::{Node, Proof, RECORD, root_of, seals, unhex};
use crate::diagnostic::Diagnostic;
use crate::results::cell;

/// Larger files are not proofs: one of a thousand stages has about a megabyte.
const LARGEST: u64 = 256 << 20;

/// What a check found.
#[derive(Debug, Default, serde::Serialize)]
pub struct Checked {
    /// How many stages the proof has.
    pub stages: usize,
    /// How many of them the store has made too, with the same outputs.
    pub confirmed: usize,
    /// Stages that the store does not know.
    pub unknown: Vec<String>,
    /// What contradicts the proof.
    pub against: Vec<String>,
    /// How many objects were hashed.
    pub hashed: usize,
    /// Whether the value was read from bytes with the right digest.
    pub seen: bool,
    /// Stages of whose acceptances the store has no record.
    pub unheard: Vec<String>,
    /// Acceptances of stages in the proof that only the store knows.
    pub unsaid: Vec<Acceptance>,
}

impl Checked {
    /// Whether everything was confirmed.
    pub fn holds(&self) -> bool {
        self.against.is_empty() && self.unknown.is_empty() && self.seen
    }
}

/// Reads a proof. Nothing that it says is believed yet.
pub fn read(path: &Path) -> Result<Proof, Diagnostic> {
    let name = path.display();
    let cannot = |error: std::io::Error| Diagnostic::new(format!("cannot read `{name}`: {error}"));
    if std::fs::metadata(path).map_err(cannot)?.len() > LARGEST {
        return Err(Diagnostic::new(format!(
            "`{name}` is too large to be a proof"
        )));
    }
    let text = std::fs::read(path).map_err(cannot)?;
    parse(&text).map_err(|why| {
        Diagnostic::new(format!("`{name}` is not a proof: {why}"))
            .help("`ablate audit RESULT --proof FILE` writes one")
    })
}

/// Takes a proof's text apart.
pub fn parse(text: &[u8]) -> Result<Proof, String> {
    let proof: Proof = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    match proof.record == RECORD {
        true => Ok(proof),
        false => Err(format!("its record is `{}`, not `{RECORD}`", proof.record)),
    }
}

/// Tests a proof in itself and, where one is given, against a store.
pub fn check(proof: &Proof, store: Option<&Store>) -> Result<Checked, store::Error> {
    let mut checked = Checked {
        stages: proof.nodes.len(),
        ..Checked::default()
    };
    match seals(&proof.nodes) {
        Err(why) => checked
            .against
            .push(format!("the proof contradicts itself: {why}")),
        Ok(seals) if root_of(proof, &seals) != proof.root => {
            let why = "the proof was changed: what it says does not have its root digest";
            checked.against.push(why.to_owned());
        }
        Ok(_) => {}
    }
    let digest = proof
        .nodes
        .last()
        .and_then(|node| node.outputs.get(&proof.output));
    let Some(digest) = digest else {
        let why = format!("its last stage has no output `{}`", proof.output);
        checked.against.push(why);
        return Ok(checked);
    };
    checked.against.extend(about_another(proof));
    if let Some(store) = store {
        compare(proof, store, &mut checked)?;
        acceptances(proof, store, &mut checked)?;
    }
    see(proof, digest, store, &mut checked);
    Ok(checked)
}

/// What the store recorded, and the bytes that it holds.
fn compare(proof: &Proof, store: &Store, checked: &mut Checked) -> Result<(), store::Error> {
    for node in &proof.nodes {
        let recorded = store.results_of(&node.key.digest())?;
        if recorded.is_empty() {
            checked.unknown.push(node.stage.clone());
            continue;
        }
        let altered = store.unsealed(recorded.iter().map(|one| one.execution))?;
        if let Some(why) = altered.into_values().next() {
            let why = format!("`{}`: this store's record is altered ({why})", node.stage);
            checked.against.push(why);
            continue;
        }
        match told_otherwise(node, &recorded, store)? {
            None => checked.confirmed += 1,
            Some(why) => checked.against.push(format!("`{}`: {why}", node.stage)),
        }
    }
    let outputs = proof.nodes.par_iter();
    let outputs = outputs.flat_map_iter(|node| {
        let each = node.outputs.iter();
        each.map(move |(name, digest)| (&node.stage, name, digest))
    });
    let looked: Vec<_> = outputs
        .map(|(stage, name, digest)| (stage, name, store.inspect(digest)))
        .collect();
    for (stage, name, found) in looked {
        match found {
            Inspected::Whole(_) => checked.hashed += 1,
            Inspected::Missing => {}
            Inspected::Damaged(why) => checked.against.push(format!(
                "`{stage}.{name}`: the store's bytes are not what was proven: {why}"
            )),
        }
    }
    Ok(())
}

/// Whether the reference, which people read first, names what is proven: the stage, and of a
/// cell its row and column. Axes of the stage may be named as well.
fn about_another(proof: &Proof) -> Option<String> {
    let last = proof.nodes.last()?;
    let asked = &proof.asked;
    let plain = |name: &str| name.split(['[', '.']).next().unwrap_or_default().to_owned();
    let digest = last.outputs.get(&proof.output)?;
    if asked.len() >= 12 && digest.to_string().starts_with(asked.as_str()) {
        return None;
    }
    let inside = asked
        .split_once('[')
        .and_then(|(_, rest)| rest.rsplit_once(']'));
    let (inside, after) = inside.unwrap_or(("", ""));
    let (_, axes) = last.stage.split_once('[').unwrap_or_default();
    let axes = axes.trim_end_matches(']').split(',');
    let filters = proof.cell.iter().flat_map(|cell| &cell.wanted.filters);
    let mut named: Vec<String> = filters.map(|(k, v)| format!("{k}={v}")).collect();
    named.extend(axes.map(str::to_owned));
    let bare = |pair: &str| pair.replace(['"', '\'', ' '], "");
    let named: Vec<String> = named.iter().map(|pair| bare(pair)).collect();
    let rows = inside.split(',').filter(|pair| !pair.is_empty());
    // A quoted value may have commas inside.
    let rows_fit = inside.contains('"') || rows.map(bare).all(|pair| named.contains(&pair));
    let column = after.strip_prefix('.');
    let found = proof.cell.as_ref().map(|cell| cell.found.column.as_str());
    let column_fits = column.is_none_or(|column| Some(column) == found || column == proof.output);
    let fits = plain(asked) == plain(&last.stage) && rows_fit && column_fits;
    let proven = format!("{}.{}", last.stage, proof.output);
    (!fits).then(|| format!("it claims to be of `{asked}`, but is of `{proven}`"))
}

/// Acceptances that the store has of stages in the proof and that the proof does not show, which
/// may be older than they are; and those that the store does not have, because it may be
/// another one. Neither is against what is proven.
fn acceptances(proof: &Proof, store: &Store, checked: &mut Checked) -> Result<(), store::Error> {
    for one in store.acceptances()? {
        let Some(execution) = store.execution(one.execution)? else {
            continue;
        };
        let in_proof = |node: &Node| node.key.digest() == execution.key_digest;
        if proof.nodes.iter().any(in_proof) && !proof.accepted.contains(&one) {
            checked.unsaid.push(one);
        }
    }
    let known = store.acceptances()?;
    let unheard = proof.accepted.iter().filter(|one| !known.contains(one));
    checked.unheard = unheard.map(|one| one.instance.clone()).collect();
    Ok(())
}

/// Where what a store recorded for a key is not what a proof says of it.
fn told_otherwise(
    node: &Node,
    recorded: &[Answer],
    store: &Store,
) -> Result<Option<String>, store::Error> {
    let outputs =
        |one: &&Answer| one.outputs.iter().cloned().collect::<BTreeMap<_, _>>() == node.outputs;
    let same: Vec<&Answer> = recorded.iter().filter(outputs).collect();
    let Some(newest) = same.first() else {
        return Ok(Some(
            "the store has different bytes for the same key".to_owned(),
        ));
    };
    // A name is not part of a key, but it is what people read.
    if !same.iter().any(|one| one.instance == node.stage) {
        return Ok(Some(format!(
            "the store recorded it as `{}`",
            newest.instance
        )));
    }
    let mut read = Vec::new();
    for one in same {
        let execution = store.execution(one.execution)?;
        let raw = execution.map(|it| it.facts.raw).unwrap_or_default();
        if raw == node.raw {
            return Ok(None);
        }
        read = raw;
    }
    Ok(Some(other_files(&read)))
}

fn other_files(read: &[RawFile]) -> String {
    let files = read.iter();
    let files: Vec<String> = files
        .map(|raw| format!("{} {}", raw.name, raw.checksum))
        .collect();
    match files.is_empty() {
        true => "the store recorded no raw files for it".to_owned(),
        false => format!(
            "the store recorded different raw files for it: {}",
            files.join(", ")
        ),
    }
}

/// Reads the value itself, from the proof or from the store.
fn see(proof: &Proof, digest: &Digest, store: Option<&Store>, checked: &mut Checked) {
    let carried = match &proof.artifact {
        None => None,
        Some(text) => match unhex(text).filter(|bytes| Digest::of(bytes) == *digest) {
            Some(bytes) => Some(bytes),
            None => {
                let why = "the table in the proof does not have the digest that is proven";
                return checked.against.push(why.to_owned());
            }
        },
    };
    let stored = || {
        let bytes = std::fs::read(store?.object_path(digest)).ok()?;
        (Digest::of(&bytes) == *digest).then_some(bytes)
    };
    let Some(bytes) = carried.or_else(stored) else {
        return;
    };
    let table: Result<RecordBatch, _> = store::decode_foreign(bytes);
    match (table, &proof.cell) {
        (Err(error), _) => checked.against.push(format!("the proven table: {error}")),
        (Ok(_), None) => checked.seen = true,
        (Ok(table), Some(cell)) => match cell::cell(&table, &cell.wanted) {
            Ok(found) if found == cell.found => checked.seen = true,
            Ok(found) => checked.against.push(format!(
                "the table has {} in row {} of `{}`, not {}",
                found.value, found.row, found.column, cell.found.value
            )),
            Err(why) => checked.against.push(format!("the cell: {}", why.title())),
        },
    }
}
