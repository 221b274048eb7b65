//! A run as JSON, one object per line.

use std::io::Write;
use std::time::Duration;

use serde_json::json;

use super::event::{Event, Reporter};
use crate::visible::in_json;

/// One JSON object per line, for programs.
pub struct Json;

impl Reporter for Json {
    fn event(&self, event: Event<'_>) {
        let line = match event {
            Event::Stage {
                label,
                status,
                key,
                wall,
                worked,
                error,
                why,
            } => {
                let mut object = json!({
                    "event": "stage", "stage": label, "status": status,
                    "key": key, "ms": millis(wall),
                });
                if !worked.work.is_empty() {
                    object["work"] = json!(worked.work);
                    object["rates"] = json!(worked.rates());
                }
                if worked.taken {
                    object["taken"] = json!(true);
                }
                if let Some(why) = why {
                    object["why"] = json!(why);
                }
                if let Some((text, title)) = error {
                    object["error"] = json!(title);
                    object["detail"] = json!(text);
                }
                object
            }
            Event::Note(note) => json!({ "event": "note", "note": note }),
            Event::Done(tally) => json!({
                "event": "done", "ran": tally.ran, "taken": tally.taken, "hits": tally.hits,
                "failed": tally.failed, "skipped": tally.skipped, "interrupted": tally.interrupted, "ms": millis(tally.wall),
            }),
            Event::Claims(counts) => {
                let mut object = json!({ "event": "claims" });
                for (verdict, count) in counts {
                    object[verdict.replace(' ', "_")] = json!(count);
                }
                object
            }
            _ => return,
        };
        // A reader that has gone away must not take the run down with it.
        let line = line.to_string();
        let _ = writeln!(std::io::stdout(), "{}", in_json(&line));
    }
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
