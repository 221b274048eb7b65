//! Events of a run, and who receives them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use store::{Digest, Status, Work};

/// Something that happened during a run.
pub enum Event<'a> {
    /// The run begins with this many stage instances.
    Begin(usize),
    /// An instance was started.
    Started(&'a str),
    /// An instance has done some of its work.
    Progress(&'a str, u64, u64),
    /// Another process is making this instance's result: waiting for it.
    Waiting(&'a str),
    /// An instance is done, one way or another.
    Stage {
        /// The instance.
        label: &'a str,
        /// What became of it.
        status: Status,
        /// Its key, if its inputs were known.
        key: Option<Digest>,
        /// The time that this run spent on it.
        wall: Duration,
        /// What the execution behind its result counted.
        worked: &'a Worked,
        /// The error as a person should see it, and its first line.
        error: Option<(&'a str, &'a str)>,
        /// Why it was skipped.
        why: Option<&'a str>,
    },
    /// Something that a person should know.
    Note(&'a str),
    /// The run is over.
    Done(&'a Tally),
    /// What became of the pipeline's claims: how many of each verdict.
    Claims(&'a BTreeMap<&'static str, usize>),
}

/// What an execution counted, and in what time: this run's, or the one found in the store.
#[derive(Clone, Debug, Default)]
pub struct Worked {
    /// Amounts by unit.
    pub work: Work,
    /// How long it took.
    pub wall: Duration,
    /// Whether this run took its result from a remote in place of executing it.
    pub taken: bool,
}

impl Worked {
    /// How much of each unit was done in a second. Nothing for an execution too short to tell.
    pub fn rates(&self) -> BTreeMap<&str, f64> {
        let seconds = self.wall.as_secs_f64();
        let rates = self.work.iter().filter(|_| seconds > 0.0);
        rates
            .map(|(unit, amount)| (unit.as_str(), *amount as f64 / seconds))
            .collect()
    }
}

/// `291 items, 23.6/s; 8123 forward, 659/s`, or nothing.
impl fmt::Display for Worked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rates = self.rates();
        for (n, (unit, amount)) in self.work.iter().enumerate() {
            let separator = if n == 0 { "" } else { "; " };
            write!(f, "{separator}{amount} {unit}")?;
            match rates.get(unit.as_str()) {
                Some(rate) if *rate < 99.95 => write!(f, ", {rate:.1}/s")?,
                Some(rate) => write!(f, ", {rate:.0}/s")?,
                None => {}
            }
        }
        Ok(())
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Executed in this run, or taken from a remote.
    pub ran: usize,
    /// Those of them that were taken from a remote.
    pub taken: usize,
    /// Found in the store.
    pub hits: usize,
    /// Failed.
    pub failed: usize,
    /// Not tried, because something before it failed or the run was stopped.
    pub skipped: usize,
    /// The user stopped it.
    pub interrupted: bool,
    /// From beginning to end.
    pub wall: Duration,
}

/// Where events go.
pub trait Reporter: Sync {
    /// Takes note of an event. May be called from any thread.
    fn event(&self, event: Event<'_>);

    /// Asks the user something. Nothing else is drawn meanwhile.
    fn pause(&self, ask: &mut dyn FnMut()) {
        ask();
    }
}
