//! Runs in the forms of other tools, read back by those tools where they are installed.

use std::process::Command;

use serde_json::Value;

use crate::lab::{Lab, text};

/// Python with ro-crate-py: `ABLATE_ROCRATE_PYTHON`, or `python3` if it has it. Nothing is
/// installed here; `.ci/run` may. (rocrate-validator fetches its contexts from the network.)
fn python() -> Option<String> {
    let named = std::env::var("ABLATE_ROCRATE_PYTHON").ok();
    let candidates = named.into_iter().chain(["python3".to_owned()]);
    candidates.into_iter().find(|python| {
        let asked = Command::new(python).args(["-c", "import rocrate"]).output();
        asked.is_ok_and(|answer| answer.status.success())
    })
}

/// A run of the demo.
fn lab() -> Lab {
    let lab = Lab::demo();
    lab.run();
    lab
}

#[test]
fn a_crate_names_every_table_parameter_and_execution() {
    let lab = lab();
    let printed = lab.ablate(&["export", "--ro-crate", "crate"]).good().stdout;
    assert_eq!(printed, "run 1: 5 executions and 4 tables in crate\n");
    let metadata = std::fs::read_to_string(lab.path("crate/ro-crate-metadata.json")).unwrap();
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let graph = metadata["@graph"].as_array().unwrap();
    let ids: Vec<&str> = graph.iter().map(|entity| text(&entity["@id"])).collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len(), "each entity is described once");
    // Whatever is referred to is described, and whatever is a file is there.
    let mut open = vec![&metadata["@graph"]];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(entries) if entries.len() == 1 && entries.contains_key("@id") => {
                let name = text(&entries["@id"]);
                let outside = name.starts_with("https://w3id.org/ro/crate/1.1");
                assert!(outside || ids.contains(&name), "{name} is not described");
            }
            Value::Object(entries) => open.extend(entries.values()),
            _ => {}
        }
    }
    let files = graph.iter().filter(|entity| entity["@type"] == "File");
    let mut count = 0;
    for file in files {
        let bytes = std::fs::read(lab.path("crate").join(text(&file["@id"]))).unwrap();
        let digest = format!("blake3:{}", blake3::hash(&bytes));
        assert_eq!(file["identifier"], digest);
        count += 1;
    }
    assert_eq!(count, 4, "scaled[scale=1] has the bytes of numbers");
    let again = lab.ablate(&["export", "--ro-crate", "crate"]);
    assert_eq!(again.code, 2);
    assert!(
        again.stderr.starts_with("error: `crate` already exists\n"),
        "{}",
        again.stderr
    );
    lab.ablate(&["export", "--ro-crate", "a.zip"]).good();
    lab.ablate(&["export", "--ro-crate", "b.zip"]).good();
    let zip = |name: &str| std::fs::read(lab.path(name)).unwrap();
    assert_eq!(zip("a.zip"), zip("b.zip"));
}

#[test]
fn a_crate_of_a_past_run_has_its_pipeline_and_who_accepted_what() {
    let lab = lab();
    let before = std::fs::read_to_string(lab.path("pipeline.toml")).unwrap();
    crate::trust::as_if_made_by_older_code(&lab, "table");
    lab.ablate(&["accept", "numbers", "--reason", "a comment", "--by", "Ada"])
        .good();
    lab.run();
    lab.edit("{ x = 2 }", "{ x = 20 }").run();
    lab.ablate(&["export", "--ro-crate", "crate", "--run", "2"])
        .good();
    let kept = std::fs::read_to_string(lab.path("crate/pipeline.toml")).unwrap();
    assert_eq!(kept, before);
    let metadata = std::fs::read_to_string(lab.path("crate/ro-crate-metadata.json")).unwrap();
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let graph = metadata["@graph"].as_array().unwrap();
    let find = |kind: &str| graph.iter().find(|entity| entity["@type"] == kind).unwrap();
    assert!(text(&find("AcceptAction")["description"]).starts_with("a comment (code "));
    assert_eq!(find("Person")["name"], "Ada");
    let events = lab.ablate(&["export", "--openlineage", "--run", "2"]);
    let events = events.good().stdout;
    assert!(events.contains("\"reason\":\"a comment\""), "{events}");
    lab.ablate(&[
        "audit",
        "summary[scale=2].total",
        "--run",
        "2",
        "--proof",
        "p.json",
    ])
    .good();
    let text = lab.ablate(&["audit", "--check", "p.json"]).good().stdout;
    assert!(text.contains("\naccepted numbers: made by code "), "{text}");
}

#[test]
fn ro_crate_py_reads_it() {
    let Some(python) = python() else {
        println!("skipped: no python with ro-crate-py (PyPI: rocrate)");
        return;
    };
    let lab = lab();
    lab.ablate(&["export", "--ro-crate", "crate"]).good();
    // Reads it, writes it anew and reads that: what it does not understand would be lost.
    let script = r#"
from rocrate.rocrate import ROCrate
crate = ROCrate("crate")
crate.write("again")
again = ROCrate("again")
assert {e.id for e in crate.get_entities()} == {e.id for e in again.get_entities()}
for action in again.get_by_type("CreateAction"):
    assert action["instrument"].type and action["startTime"], action.id
    for made in action.get("result") or []:
        assert made["identifier"].startswith("blake3:"), made.id
profiles = [p.id for p in again.root_dataset["conformsTo"]]
assert "https://w3id.org/ro/wfrun/workflow/0.5" in profiles, profiles
assert "ComputationalWorkflow" in again.mainEntity.type
print(len(again.get_by_type("CreateAction")), len(again.data_entities), again.mainEntity.id)
"#;
    let text = Command::new(python)
        .args(["-c", script])
        .current_dir(lab.dir())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&text.stdout);
    assert!(
        text.status.success(),
        "{}",
        String::from_utf8_lossy(&text.stderr)
    );
    assert_eq!(printed.trim_end(), "6 5 pipeline.toml");
}

#[test]
fn events_tell_of_every_execution() {
    let lab = lab();
    let printed = lab.ablate(&["export", "--openlineage"]).good().stdout;
    let events: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), 10);
    let of = |kind: &str| {
        events
            .iter()
            .filter(|event| event["eventType"] == kind)
            .count()
    };
    assert_eq!((of("START"), of("COMPLETE")), (5, 5));
    let times: Vec<&str> = events
        .iter()
        .map(|event| text(&event["eventTime"]))
        .collect();
    assert!(times.is_sorted());
    let summary = events
        .iter()
        .find(|event| event["job"]["name"] == "summary")
        .unwrap();
    assert_eq!(summary["inputs"].as_array().unwrap().len(), 3);
    let fields = &summary["outputs"][0]["facets"]["schema"]["fields"];
    assert_eq!(fields[1]["name"], "total");
    for required in ["eventTime", "producer", "schemaURL", "run", "job"] {
        assert!(
            events.iter().all(|event| !event[required].is_null()),
            "{required}"
        );
    }
}
