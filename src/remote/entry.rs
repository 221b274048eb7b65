//! What a key gave, signed by whoever executed it. The signature is over the text of the statement as it stands, so
//! that nobody need agree how JSON is written.

use serde::{Deserialize, Serialize};
use store::{Digest, Environment, Output};

use super::keys::{PublicKey, SigningKey};
use crate::engine::execute::ExecutionRecord;

/// What somebody says of an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The type and version of this record.
    pub record: String,
    /// The key that was executed.
    pub key: Digest,
    /// The kind, by name.
    pub kind: String,
    /// What the stage was called.
    pub instance: String,
    /// What came out, in order.
    pub outputs: Vec<Output>,
    /// What it took.
    pub execution: ExecutionRecord,
    /// Where it ran.
    pub environment: Environment,
    /// Who says so.
    pub signer: String,
}

/// A statement with its signature.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    statement: String,
    signature: String,
}

/// Before the text, so that a signature of something else is none of this.
const CONTEXT: &[u8] = b"ablate entry\0";

impl Statement {
    /// The tag of this version of the record.
    pub const RECORD: &str = "entry/1";

    /// The file of an entry.
    pub fn signed(&self, key: &SigningKey) -> String {
        let statement = serde_json::to_string(self).expect("plain values");
        let signature = key.sign(&[CONTEXT, statement.as_bytes()].concat());
        let envelope = Envelope {
            statement,
            signature,
        };
        serde_json::to_string(&envelope).expect("plain values")
    }

    /// The statement of this signer about this key; or what is wrong with the file.
    pub fn read(bytes: &[u8], key: &Digest, signer: &PublicKey) -> Result<Statement, String> {
        let envelope: Envelope =
            serde_json::from_slice(bytes).map_err(|_| "is not an entry".to_owned())?;
        let signed = [CONTEXT, envelope.statement.as_bytes()].concat();
        if !signer.signed(&signed, &envelope.signature) {
            return Err("has a signature that does not belong to it".to_owned());
        }
        let statement: Statement = serde_json::from_str(&envelope.statement)
            .map_err(|error| format!("cannot be read by this version of ablate: {error}"))?;
        match statement.key == *key
            && statement.signer == signer.to_string()
            && statement.record == Statement::RECORD
        {
            true => Ok(statement),
            false => Err("is an entry of another key, signer or version".to_owned()),
        }
    }
}
