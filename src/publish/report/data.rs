//! What the page's script needs to show how a number was made: every step of the run with its
//! parameters, code, inputs, outputs and log, as JSON inside the page.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use store::{Environment, Execution};

use crate::engine::progress::Worked;
use crate::environment::utc;
use crate::results::recorded::{Recorded, Step};

/// The longest parameter and log that are embedded; the store has them whole.
const LONGEST: usize = 20_000;

/// Steps, code and machines.
pub fn lineage(recorded: &Recorded) -> Value {
    let codes: BTreeMap<String, BTreeMap<&String, String>> = recorded
        .codes
        .iter()
        .map(|(code, files)| {
            let files = files
                .iter()
                .map(|(name, digest)| (name, digest.to_string()));
            (code.to_string(), files.collect())
        })
        .collect();
    let mut machines: Vec<&Environment> = Vec::new();
    let steps: Vec<Value> = recorded
        .steps
        .iter()
        .map(|step| {
            let execution = step.execution.as_ref();
            let machine = execution.map(|found| place(&mut machines, found.environment.as_ref()));
            one(step, machine)
        })
        .collect();
    json!({ "steps": steps, "codes": codes, "machines": machines })
}

fn place<'a>(machines: &mut Vec<&'a Environment>, machine: &'a Environment) -> usize {
    machines
        .iter()
        .position(|known| *known == machine)
        .unwrap_or_else(|| {
            machines.push(machine);
            machines.len() - 1
        })
}

fn one(step: &Step, machine: Option<usize>) -> Value {
    let mut object = json!({
        "label": step.label, "status": step.status, "ms": millis(step.wall.as_secs_f64()),
    });
    let (Some(execution), Some(fields)) = (&step.execution, object.as_object_mut()) else {
        return object;
    };
    fields.extend(executed(step, execution, machine));
    object
}

fn executed(step: &Step, execution: &Execution, machine: Option<usize>) -> Map<String, Value> {
    let key = &execution.key;
    let params = key.params.iter();
    let params: Map<String, Value> = params
        .map(|(name, value)| (name.clone(), json!(cut(&value.to_string()))))
        .collect();
    let files = key.files.iter();
    let files: BTreeMap<&String, String> = files.map(|(n, d)| (n, d.to_string())).collect();
    let inputs: Vec<Value> = step
        .reads
        .iter()
        .map(|read| {
            json!({
                "port": read.input.port, "step": read.step, "from": read.input.producer,
                "digest": read.input.digest, "axes": axes(read.input.axes.as_deref()),
            })
        })
        .collect();
    let outputs: Vec<Value> = execution
        .outputs
        .iter()
        .map(|output| {
            json!({
                "name": output.name, "digest": output.digest, "rows": output.rows,
                "bytes": output.bytes, "columns": output.schema,
            })
        })
        .collect();
    let worked = Worked {
        taken: false,
        work: execution.work.clone(),
        wall: execution.wall,
    };
    let made = json!({
        "kind": key.kind, "key": execution.key_digest, "code": key.code, "seed": key.seed,
        "params": params, "files": files, "inputs": inputs, "outputs": outputs,
        "run": execution.run, "started": utc(execution.started),
        "took": millis(execution.wall.as_secs_f64()),
        "cpu": execution.cpu.map(|cpu| millis(cpu.as_secs_f64())),
        "memory": execution.peak_memory, "work": worked.to_string(), "machine": machine,
        "log": tail(&execution.log), "failure": execution.failure, "facts": execution.facts,
    });
    match made {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// `[["n"],[3]]`, as recorded, to `{"n": "3"}`.
fn axes(recorded: Option<&str>) -> BTreeMap<String, String> {
    let read = recorded.and_then(|text| serde_json::from_str(text).ok());
    let (names, values): (Vec<String>, Vec<store::Value>) = read.unwrap_or_default();
    let shown = values.iter().map(|value| match value.as_text() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    });
    names.into_iter().zip(shown).collect()
}

fn millis(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e3
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}… ({} bytes in all)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

/// The end of a log: that is where it says what went wrong.
fn tail(log: &str) -> String {
    let over = log.chars().count().saturating_sub(LONGEST);
    match log.char_indices().nth(over) {
        Some((at, _)) if over > 0 => format!("… ({at} bytes before)\n{}", &log[at..]),
        _ => log.to_owned(),
    }
}

/// JSON that may stand inside a page: no text of it can end the element that it is in.
pub fn embeddable(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).expect("plain values");
    text.replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_the_element_that_it_is_in() {
        let evil = "</script><script>alert(1)</script><!-- \u{2028}";
        let text = embeddable(&json!({ "x": evil }));
        assert!(!text.contains('<') && !text.contains('\u{2028}'), "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["x"], evil);
    }

    #[test]
    fn axes_are_read_as_they_were_recorded() {
        let expected = [
            ("n".to_owned(), "3".to_owned()),
            ("m".to_owned(), "x".to_owned()),
        ];
        assert_eq!(axes(Some(r#"[["n","m"],[3,"x"]]"#)), expected.into());
        assert!(axes(None).is_empty() && axes(Some("?")).is_empty());
    }

    #[test]
    fn long_logs_keep_their_end() {
        let log = "a".repeat(LONGEST) + "the end";
        assert!(tail(&log).ends_with("the end") && tail(&log).starts_with("… (7 bytes before)\n"));
        assert_eq!(tail("short"), "short");
    }
}
