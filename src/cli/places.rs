//! Where data sets are looked for: options that several commands share.

use std::path::PathBuf;

use clap::Args;
use stages::DataHome;

use crate::config::Data;

/// Where to look for data sets.
#[derive(Args)]
pub struct Places {
    /// A folder of copies of the data sets' files [also: ABLATE_MIRROR, or mirror under [data]]
    #[arg(long, global = true, value_name = "DIR")]
    mirror: Option<PathBuf>,
    /// Do not fetch data sets from the network
    #[arg(long, global = true)]
    offline: bool,
}

impl Places {
    /// Where data sets are: the command line comes first, then the environment, then the pipeline.
    pub fn home(&self, written: &Data) -> DataHome {
        let environment = std::env::var_os("ABLATE_MIRROR").filter(|value| !value.is_empty());
        let mirror = self.mirror.clone().or(environment.map(PathBuf::from));
        // Without a home there is still a place that survives until the next start.
        let cache = dirs::cache_dir().unwrap_or_else(std::env::temp_dir);
        DataHome {
            cache: cache.join("ablate").join("data"),
            mirror: mirror.or(written.mirror.clone()),
            offline: self.offline || written.offline,
        }
    }
}
