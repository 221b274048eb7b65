//! What the store has for a key, and whether it can be used: one answer for `run`, which makes
//! again what cannot, and for all who show results, who say so. Knows nothing of plans.

use std::fmt;

use store::{Digest, Execution, Found, Inspected, Output, Store};

/// What is remembered of a key.
pub enum Recalled {
    /// It was never executed.
    Never,
    /// Its result is there.
    Sound(Found),
    /// It was executed, and what the store has of it is not what was made.
    Unsound(Found, Fault),
}

/// Why a stored result cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Its record is not what the log sealed, so that its bytes may be anybody's.
    Altered(String),
    /// The bytes of an output are not those that were made.
    Damaged {
        /// The output.
        output: String,
        /// What is wrong with it.
        why: String,
    },
    /// An output is not there any more.
    Missing {
        /// The output.
        output: String,
    },
    /// An output was left in the remote that the result was taken from: nobody has read it here.
    Left {
        /// The output.
        output: String,
    },
}

impl Fault {
    /// In a word.
    pub fn word(&self) -> &'static str {
        match self {
            Fault::Altered(_) => "altered",
            Fault::Damaged { .. } => "damaged",
            Fault::Missing { .. } => "missing",
            Fault::Left { .. } => "in a remote",
        }
    }
}

/// `damaged (output rows: it has 10 bytes instead of 812)`
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.word())?;
        match self {
            Fault::Altered(why) => write!(f, "({why})"),
            Fault::Damaged { output, why } => write!(f, "(output `{output}`: {why})"),
            Fault::Missing { output } => {
                write!(f, "(output `{output}`: removed by gc, or lost)")
            }
            Fault::Left { output } => write!(
                f,
                "(output `{output}`: the result was taken from there without it; `ablate pull STAGE` fetches it)"
            ),
        }
    }
}

/// The newest result for a key. Objects are looked at by their size; their bytes are checked by
/// whoever reads them.
pub fn recall(store: &Store, key: &Digest) -> Recalled {
    // A store that cannot be read is a miss here; running the stage meets the same fault and names it.
    let Ok(Some(found)) = store.lookup(key) else {
        return Recalled::Never;
    };
    let fault = match &found.altered {
        Some(why) => Some(Fault::Altered(why.clone())),
        None => of_outputs(store, &found.outputs, found.taken),
    };
    match fault {
        Some(fault) => Recalled::Unsound(found, fault),
        None => Recalled::Sound(found),
    }
}

/// What is wrong with the result of a past execution, if anything is.
pub fn of_execution(store: &Store, execution: &Execution) -> Result<Option<Fault>, store::Error> {
    let altered = store.unsealed([execution.id])?.into_values().next();
    let altered = altered.map(Fault::Altered);
    let taken = execution.facts.signer.is_some();
    Ok(altered.or_else(|| of_outputs(store, &execution.outputs, taken)))
}

/// The worst comes first: what was left in a remote is not lost.
fn of_outputs(store: &Store, outputs: &[Output], taken: bool) -> Option<Fault> {
    let mut faults = outputs.iter().filter_map(|output| {
        let name = output.name.clone();
        match store.inspect_size(output) {
            Inspected::Whole(_) => None,
            Inspected::Damaged(why) => Some(Fault::Damaged { output: name, why }),
            Inspected::Missing if taken => Some(Fault::Left { output: name }),
            Inspected::Missing => Some(Fault::Missing { output: name }),
        }
    });
    let first = faults.next()?;
    match first {
        Fault::Left { .. } => faults.find(|it| !matches!(it, Fault::Left { .. })),
        _ => None,
    }
    .or(Some(first))
}
