//! What a reviewer signs after a rerun: an in-toto statement (which results, of which pipeline, with which verdicts, on
//! which machine) in a DSSE envelope with an Ed25519 signature. Other programs that know these two formats can read
//! and check it.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use store::Environment;

use crate::remote::keys::{PublicKey, SigningKey, hex};

/// The statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    #[serde(rename = "_type")]
    statement: String,
    /// Each output, as `stage[axis=value].output`, with its digest.
    pub subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    /// What is said of them.
    pub predicate: Predicate,
}

/// One output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// `blake3`, and the digest of its bytes.
    pub digest: BTreeMap<String, String>,
}

/// What is said of the outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predicate {
    /// The pipeline's name.
    pub pipeline: String,
    /// The digest of its file.
    pub file: String,
    /// The profile, if one was chosen.
    pub profile: Option<String>,
    /// The commit of the pipeline's repository, if there is one; and whether files differed from it.
    pub commit: Option<String>,
    /// See `commit`.
    pub changed: Option<bool>,
    /// The key of each stage.
    pub keys: BTreeMap<String, String>,
    /// Stages that were not executed for this store but taken from a remote, with who signed them.
    pub taken: BTreeMap<String, String>,
    /// The verdict of each claim.
    pub claims: BTreeMap<String, String>,
    /// What `results.lock` says beside these results, if there is one: how many stages of each verdict.
    pub lock: Option<BTreeMap<String, usize>>,
    /// Where it was certified.
    pub machine: Environment,
    /// When, in seconds since 1970.
    pub at: i64,
}

const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const PREDICATE: &str = "urn:ablate:certificate:v1";
const PAYLOAD: &str = "application/vnd.in-toto+json";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload_type: String,
    payload: String,
    signatures: Vec<Signature>,
}

#[derive(Serialize, Deserialize)]
struct Signature {
    keyid: String,
    sig: String,
}

impl Certificate {
    /// A statement about results.
    pub fn new(subject: Vec<Subject>, predicate: Predicate) -> Certificate {
        Certificate {
            statement: STATEMENT.to_owned(),
            subject,
            predicate_type: PREDICATE.to_owned(),
            predicate,
        }
    }

    /// The file, signed.
    pub fn signed(&self, key: &SigningKey) -> String {
        let payload = serde_json::to_vec(self).expect("plain values");
        let envelope = Envelope {
            payload_type: PAYLOAD.to_owned(),
            signatures: vec![Signature {
                keyid: key.public().to_string(),
                sig: STANDARD.encode(key.sign_bytes(&encoded(&payload))),
            }],
            payload: STANDARD.encode(payload),
        };
        let text = serde_json::to_string_pretty(&envelope).expect("plain values");
        text + "\n"
    }

    /// A certificate and who signed it; or what is wrong with the file. All signatures must be good.
    pub fn read(text: &str) -> Result<(Certificate, Vec<PublicKey>), String> {
        let envelope: Envelope =
            serde_json::from_str(text).map_err(|_| "is not a certificate".to_owned())?;
        let payload = STANDARD.decode(&envelope.payload);
        let payload = payload.map_err(|_| "has a payload that is not base64".to_owned())?;
        let mut signers = Vec::new();
        for signature in &envelope.signatures {
            let signer =
                PublicKey::read(&signature.keyid).ok_or("is signed by a key of another kind")?;
            let bytes = STANDARD.decode(&signature.sig).unwrap_or_default();
            if !signer.signed(&encoded(&payload), &hex(&bytes)) {
                return Err(format!("has a signature that is not {signer}'s"));
            }
            signers.push(signer);
        }
        if signers.is_empty() || envelope.payload_type != PAYLOAD {
            return Err("is signed by nobody, or is no in-toto statement".to_owned());
        }
        let certificate: Certificate = serde_json::from_slice(&payload)
            .map_err(|error| format!("cannot be read by this version of ablate: {error}"))?;
        match certificate.predicate_type == PREDICATE && certificate.statement == STATEMENT {
            true => Ok((certificate, signers)),
            false => Err("is a statement of another kind".to_owned()),
        }
    }
}

/// A file that should be a certificate.
pub struct CertificateFile {
    /// Its name.
    pub name: String,
    /// What it says and who signed it, or what is wrong with it.
    pub read: Result<(Certificate, Vec<PublicKey>), String>,
}

/// Those beside a pipeline file, by name: `certificate.json` and whatever the folder `certificates` has.
pub fn beside(pipeline: &Path) -> Vec<CertificateFile> {
    let own = pipeline.with_file_name("certificate.json");
    let folder = std::fs::read_dir(pipeline.with_file_name("certificates"));
    let listed = folder.into_iter().flatten().flatten();
    let listed = listed.map(|entry| entry.path());
    let mut paths: Vec<_> = listed
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    paths.sort();
    let all = [own].into_iter().chain(paths);
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).ok()?;
        let name = path.strip_prefix(pipeline.parent()?).unwrap_or(&path);
        Some(CertificateFile {
            name: name.display().to_string(),
            read: Certificate::read(&text),
        })
    };
    all.filter_map(read).collect()
}

/// What is signed, as DSSE has it: type and payload, each with its length.
fn encoded(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD} {} ", PAYLOAD.len(), payload.len());
    [head.as_bytes(), payload].concat()
}
