//! Where data sets lie on this machine. Decides no result.

use std::path::PathBuf;

/// Where data lies on this machine. Never part of a result: bytes are named by their digests.
#[derive(Clone, Debug)]
pub struct DataHome {
    /// The user's cache, laid out like a mirror, shared by all pipelines.
    pub cache: PathBuf,
    /// A folder of copies, read in place.
    pub mirror: Option<PathBuf>,
    /// Whether the network must not be asked.
    pub offline: bool,
}

impl DataHome {
    /// A home with nothing in it and no way out, for stages that read no data.
    pub fn nowhere() -> DataHome {
        DataHome {
            cache: PathBuf::from("/dev/null/no-cache"),
            mirror: None,
            offline: true,
        }
    }
}
