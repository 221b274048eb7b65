//! Certificates beside a run: who signed which results, and whether this run has the same.
//! A signature that is not good, or a file that cannot be read, is shown as that.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::environment::utc;
use crate::publish::certificate::{Certificate, CertificateFile};
use crate::remote::keys::{Keys, PublicKey};
use crate::results::recorded::Recorded;

/// A certificate as the page shows it.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct CertificateRow {
    file: String,
    /// Why it does not count.
    problem: Option<String>,
    /// Each with the name that the reader has given to the key.
    signers: Vec<String>,
    at: String,
    machine: String,
    /// How many claims had each verdict.
    claims: Vec<(usize, String)>,
    /// Outputs of this run that have the certified digest, those that have another, and those that this run lacks.
    same: usize,
    different: Vec<String>,
    absent: usize,
}

/// All of them, beside the outputs of a run.
pub fn view(files: &[CertificateFile], recorded: &Recorded) -> Vec<CertificateRow> {
    let mut outputs = BTreeMap::new();
    for step in &recorded.steps {
        for output in step.outputs() {
            let name = format!("{}.{}", step.label, output.name);
            outputs.insert(name, output.digest.to_string());
        }
    }
    let keys = Keys::open().ok();
    let row = |file: &CertificateFile| match &file.read {
        Ok((certificate, signers)) => CertificateRow {
            file: file.name.clone(),
            signers: signers
                .iter()
                .map(|key| named(keys.as_ref(), key))
                .collect(),
            ..compared(certificate, &outputs)
        },
        Err(why) => CertificateRow {
            file: file.name.clone(),
            problem: Some(why.clone()),
            ..CertificateRow::default()
        },
    };
    files.iter().map(row).collect()
}

fn named(keys: Option<&Keys>, key: &PublicKey) -> String {
    let known = keys.and_then(|keys| keys.name_of(&key.to_string()));
    match known {
        Some(name) => format!("{name} ({key})"),
        None => format!("an unknown key ({key})"),
    }
}

fn compared(certificate: &Certificate, outputs: &BTreeMap<String, String>) -> CertificateRow {
    let about = &certificate.predicate;
    let mut row = CertificateRow {
        at: utc(about.at.saturating_mul(1_000_000)),
        machine: format!("{}, {}", about.machine.cpu_model, about.machine.os),
        ..CertificateRow::default()
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for verdict in about.claims.values() {
        *counts.entry(verdict).or_insert(0) += 1;
    }
    row.claims = counts
        .into_iter()
        .map(|(verdict, n)| (n, verdict.to_owned()))
        .collect();
    for subject in &certificate.subject {
        match outputs.get(&subject.name) {
            None => row.absent += 1,
            Some(here) if Some(here) == subject.digest.get("blake3") => row.same += 1,
            Some(_) => row.different.push(subject.name.clone()),
        }
    }
    row
}
