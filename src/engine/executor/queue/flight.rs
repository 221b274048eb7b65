//! One job that is on its way through a queue: which attempt it is, and what is known of its end.

use std::time::{Duration, Instant};

use crate::config::Resources;
use crate::engine::handover::Handover;
use crate::engine::job::Job;
use stages::isolated::in_words;

/// How a task ended, as its queue says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It ended, and nothing else is known.
    Ended,
    /// It wanted more memory than it had.
    OutOfMemory,
    /// It wanted more time than it had.
    TimeLimit,
    /// Its machine went away.
    NodeFailed,
    /// Somebody cancelled it.
    Cancelled,
    /// The queue does not know it.
    Forgotten,
}

impl Ending {
    /// More of what was short, if it is known how much there was.
    pub fn wants(self, had: Resources) -> Option<Resources> {
        match self {
            Ending::OutOfMemory if had.memory > 0 => Some(Resources {
                memory: had.memory.saturating_mul(2),
                ..had
            }),
            Ending::TimeLimit if had.time > 0 => Some(Resources {
                time: had.time.saturating_mul(2),
                ..had
            }),
            _ => None,
        }
    }

    /// Whether another machine may do better.
    fn is_the_machines(self) -> bool {
        matches!(self, Ending::Ended | Ending::NodeFailed | Ending::Forgotten)
    }
}

/// A task to be submitted.
pub struct Submission<'a> {
    /// The folder of the attempt.
    pub handover: &'a Handover,
    /// What it wants.
    pub resources: Resources,
    /// Machines that it should not run on.
    pub avoid: &'a [String],
}

/// A job on its way.
pub(super) struct Flight {
    pub job: Job,
    pub resources: Resources,
    /// Counted over all drivers.
    pub attempt: u32,
    /// Counted by this driver.
    pub retries: u32,
    pub nonce: String,
    pub handover: Handover,
    /// What the queue calls it; none until it is submitted.
    pub id: Option<String>,
    /// Since when it is not in the queue any more, and why.
    pub gone: Option<(Instant, Ending)>,
    pub avoid: Vec<String>,
}

impl Flight {
    pub fn submission(&self) -> Submission<'_> {
        Submission {
            handover: &self.handover,
            resources: self.resources,
            avoid: &self.avoid,
        }
    }

    /// It has ended. The first time counts, and the best reason.
    pub fn note_gone(&mut self, ending: Ending) {
        let vague = |ending: Ending| matches!(ending, Ending::Ended | Ending::Forgotten);
        match &mut self.gone {
            None => self.gone = Some((Instant::now(), ending)),
            Some((_, known)) if vague(*known) && !vague(ending) => *known = ending,
            Some(_) => {}
        }
    }

    /// How it ended, if it did so without a result, and none may still come.
    pub fn lost(&self, grace: Duration) -> Option<Ending> {
        let (since, ending) = self.gone?;
        let certain = matches!(
            ending,
            Ending::OutOfMemory | Ending::TimeLimit | Ending::Cancelled
        );
        // What the queue has ended writes no more, but its last words may be late.
        let grace = if certain {
            grace.min(Duration::from_secs(5))
        } else {
            grace
        };
        (since.elapsed() >= grace).then_some(ending)
    }

    /// One bad machine must not eat all attempts.
    pub fn avoid_where_it_ran(&mut self, ending: Ending) {
        if ending.is_the_machines()
            && let Some(started) = self.handover.started()
            && !self.avoid.contains(&started.node)
        {
            self.avoid.push(started.node);
        }
    }

    /// What happened, and what is done about it.
    pub fn described(&self, ending: Ending, next: Option<Resources>) -> String {
        let place = self.handover.started();
        let place = place.map_or_else(String::new, |it| format!(" on {}", it.node));
        match (ending, next) {
            (Ending::OutOfMemory, Some(next)) => format!(
                "ran out of memory{place} with {}, and gets {}",
                in_words(self.resources.memory),
                in_words(next.memory)
            ),
            (Ending::OutOfMemory, None) => {
                format!("ran out of memory{place}: set `resources.memory`")
            }
            (Ending::TimeLimit, Some(next)) => format!(
                "ran out of time{place} after {} s, and gets {} s",
                self.resources.time, next.time
            ),
            (Ending::TimeLimit, None) => format!("ran out of time{place}: set `resources.time`"),
            (Ending::NodeFailed, _) => format!("was lost with its machine{place}"),
            (Ending::Cancelled, _) => "was cancelled in the queue before it began".to_owned(),
            (Ending::Forgotten, _) => {
                format!("is not known to the queue any more, and left no result{place}")
            }
            _ => format!("ended without a result{place}"),
        }
    }
}
