//! Results that a report cannot show, because what is stored is not what was made.

use store::{Inspected, Store};

use super::run_tables::is_result;
use crate::results::recorded::Recorded;

/// A result that cannot be shown.
#[derive(Clone, Debug, serde::Serialize)]
pub struct LostResult {
    /// Which, and why.
    pub what: String,
    /// Whether something is wrong with it: what is missing may have been removed by gc.
    pub wrong: bool,
}

/// Results that cannot be shown, and why.
pub fn lost(store: &Store, recorded: &Recorded) -> Vec<LostResult> {
    let read = recorded.read();
    let mut lost = Vec::new();
    for (stage, why) in &recorded.altered {
        lost.push(LostResult {
            what: format!("the stored result of `{stage}` is altered ({why}): it is not shown"),
            wrong: true,
        });
    }
    for (at, step) in recorded.steps.iter().enumerate() {
        for (n, output) in step.outputs().iter().enumerate() {
            if !is_result(step, output, read.contains(&(at, n))) {
                // Large tables may be among them: their bytes are checked if they are drawn.
                if let Inspected::Damaged(why) = store.inspect_size(output) {
                    lost.push(LostResult {
                        what: format!("{} is damaged on disk: {why}", step.source(output)),
                        wrong: true,
                    });
                }
                continue;
            }
            if let Err(error) = store.peek(&output.digest) {
                lost.push(LostResult {
                    what: format!(
                        "the results of {} are not shown: {error}",
                        step.source(output)
                    ),
                    wrong: !matches!(error, store::Error::Missing { .. }),
                });
            }
        }
    }
    lost
}
