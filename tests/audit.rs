//! Where numbers came from, and proofs of it.

use std::process::Command;

use serde_json::Value;

use crate::lab::{Lab, text};

/// Digests, times and machines differ; all else is compared.
pub fn redact(printed: &str) -> String {
    let mut lines = Vec::new();
    for line in printed.lines() {
        let line = match line.split_once("machine A: ") {
            Some((before, _)) => format!("{before}machine A: [machine]"),
            None => line.to_owned(),
        };
        let words = line.split(' ').map(|word| {
            let core = word.trim_matches([',', '(', ')', ':']);
            let hex = core.len() >= 12 && core.chars().all(|c| c.is_ascii_hexdigit());
            let time = core.len() == 20 && core.ends_with('Z') && core.starts_with("20");
            match (hex, time) {
                (true, _) => word.replace(core, "[digest]"),
                (_, true) => word.replace(core, "[time]"),
                _ => word.to_owned(),
            }
        });
        let line = words.collect::<Vec<_>>().join(" ");
        // "1.2 ms on", "(31 sources)" and "… 30 more:" count what other files change.
        lines.push(match () {
            () if line.contains(" on machine ") => {
                let (head, _) = line.split_once("[time], ").unwrap();
                format!("{head}[time], [wall] on machine A")
            }
            () if line.contains(" sources)") || line.trim_start().starts_with("stages/") => {
                continue;
            }
            () if line.contains("more: --json") => continue,
            () => line,
        });
    }
    lines.join("\n")
}

#[test]
fn the_tree_goes_from_a_cell_to_the_beginning() {
    let lab = Lab::demo();
    lab.run();
    let printed = lab.ablate(&["audit", "summary[scale=2]"]).good().stdout;
    let shown = redact(&printed);
    let expected = r#"audit of summary[scale=2]
cell     total = 6 (row 1)

[4] summary (sql)
├─ t: [1] scaled[scale=1] (sql)
│  └─ t: [0] numbers (table)
├─ t: [2] scaled[scale=2] (sql)
│  └─ t: [0] numbers (table)
└─ t: [3] scaled[scale=3] (sql)
   └─ t: [0] numbers (table)

[0] numbers (table): run 1, [time], [wall] on machine A
    params   rows = [{ x = 1 }, { x = 2 }]
    seed     none: it draws no random numbers
    key      [digest]
    raw      none: made from its parameters, seed and code alone
    outputs  rows [digest] (2 rows, "#;
    assert!(shown.starts_with(expected), "{shown}");
    let last = r#"
    inputs   t = [1] scaled[scale=1] [digest]
             t = [2] scaled[scale=2] [digest]
             t = [3] scaled[scale=3] [digest]
    outputs  rows [digest] (3 rows, "#;
    assert!(shown.contains(last), "{shown}");
    assert!(printed.contains("stages/kinds/sql/mod.rs "), "{printed}");
    let end = "\nmachine A: [machine]\nablate: 5 steps, 1 machine, 0 doubts";
    assert!(shown.ends_with(end), "{shown}");
}

#[test]
fn json_has_every_field_and_defaults_are_marked() {
    let lab = Lab::new(
        "[stage.c]\nkind = \"command\"\nfiles = [\"a.txt\"]\noutputs = [\"o\"]\ninputs = { t = \"t\" }\n\
         run = [\"sh\", \"-c\", \"echo hello; cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\"]\n\
         [stage.t]\nkind = \"table\"\nrows = [{ x = 1 }]\n",
    );
    lab.write("a.txt", "data\n");
    lab.run();
    let printed = lab.ablate(&["audit", "c", "--json"]).good().stdout;
    let audit: Value = serde_json::from_str(&printed).unwrap();
    let step = &audit["steps"][1];
    assert_eq!(step["stage"], "c");
    assert_eq!(
        step["defaults"],
        serde_json::json!(["env", "environment", "network"])
    );
    assert_eq!(step["determinism"], "outside-program");
    assert_eq!(step["log"], "hello\n");
    let digest = blake3::hash(b"data\n").to_hex().to_string();
    assert_eq!(step["files"]["a.txt"], digest);
    assert_eq!(step["inputs"][0]["step"], 0);
    assert_eq!(step["outputs"][0]["object"], "checked");
    let code = text(&step["code"]);
    assert!(audit["codes"][code]["stages/kinds/command/mod.rs"].is_string());
    assert_eq!(audit["machines"]["A"]["git_dirty"], Value::Null);
    assert_eq!(
        audit["doubts"],
        serde_json::json!([
            "c: made by an external program that promises nothing of its bytes; in the key are its files and what it was started with, not the system's libraries"
        ])
    );
    // The same by digest, without the pipeline.
    let output = text(&step["outputs"][0]["digest"]).to_owned();
    std::fs::remove_file(lab.path("pipeline.toml")).unwrap();
    let same = lab
        .ablate(&["audit", &output[..12], "--json"])
        .good()
        .stdout;
    let same: Value = serde_json::from_str(&same).unwrap();
    // `c` copies `t`, so both made these bytes: the newest counts.
    assert_eq!(same["steps"], audit["steps"]);
}

#[test]
fn a_dirty_tree_and_damaged_bytes_are_doubts() {
    let lab = Lab::demo();
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(arguments)
            .current_dir(lab.dir())
            .output()
            .unwrap();
        assert!(done.status.success());
    };
    let doubt = "doubt: numbers: made from a working tree with uncommitted changes\n";
    let doubted = || {
        lab.ablate(&["audit", "numbers"])
            .good()
            .stdout
            .contains(doubt)
    };
    git(&["init", "-q"]);
    lab.write("other.txt", "x");
    git(&["add", "other.txt"]);
    git(&["commit", "-qm", "before"]);
    lab.run();
    assert!(doubted(), "the commit does not have the pipeline file");
    git(&["add", "pipeline.toml"]);
    git(&["commit", "-qm", "first"]);
    lab.edit("{ x = 2 }", "{ x = 4 }");
    git(&["commit", "-qam", "second"]);
    lab.run();
    assert!(!doubted(), "a clean tree");
    lab.edit("{ x = 4 }", "{ x = 3 }").run();
    assert!(doubted(), "a change that no commit has");
    let object = lab.object("numbers");
    let mut bytes = std::fs::read(&object).unwrap();
    bytes[40] ^= 1;
    crate::crash::overwrite(&object, &bytes);
    let printed = lab.ablate(&["audit", "numbers"]);
    assert_eq!(printed.code, 1);
    let printed = printed.stdout;
    assert!(
        printed.contains("doubt: numbers.rows: the stored result is damaged: "),
        "{printed}"
    );
    assert!(printed.contains("bytes, DAMAGED)"), "{printed}");
}

#[test]
fn a_past_run_can_be_audited() {
    let lab = Lab::demo();
    lab.run();
    lab.edit("SUM(x)", "MAX(x)").run();
    let cell = |run: &str| {
        let printed = lab.ablate(&["audit", "summary[scale=3].total", "--run", run, "--json"]);
        let audit: Value = serde_json::from_str(&printed.good().stdout).unwrap();
        text(&audit["cell"]["value"]).to_owned()
    };
    assert_eq!((cell("1"), cell("2")), ("9".to_owned(), "6".to_owned()));
}

#[test]
fn the_page_is_whole_and_escaped() {
    let lab =
        Lab::new("[stage.t]\nkind = \"table\"\nrows = [{ x = \"<script>alert(1)</script>\" }]\n");
    lab.run();
    lab.ablate(&["audit", "t", "--html", "a.html"]).good();
    let page = std::fs::read_to_string(lab.path("a.html")).unwrap();
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!page.contains("<script"));
    for outside in ["http:", "https:", "src=", "<link", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_proof_holds_here_and_elsewhere() {
    let lab = Lab::demo();
    lab.run();
    let proof = ["audit", "summary[scale=2].total", "--proof", "p.json"];
    let printed = lab.ablate(&proof).good().stdout;
    assert!(
        printed.starts_with("proof of 5 stages in p.json: root "),
        "{printed}"
    );
    let printed = lab.ablate(&["audit", "--check", "p.json"]).good().stdout;
    let expected =
        "ablate: holds: 5 of 5 stages confirmed, 0 unknown, 0 mismatched, 5 objects hashed\n";
    assert!(printed.ends_with(expected), "{printed}");
    assert!(
        printed.starts_with("proof of summary[scale=2].total, root "),
        "{printed}"
    );
    let value = "\nvalue    6 in `total`, row 1 (scale=2) of summary.rows\n";
    assert!(printed.contains(value), "{printed}");
    // Another store, as on another machine.
    lab.run_with(&["--store", "other"]);
    let printed = lab.ablate(&["audit", "--check", "p.json", "--store", "other"]);
    assert!(printed.good().stdout.ends_with(expected));
    // A store that knows less confirms less.
    lab.run_with(&["scaled[scale=1]", "--store", "less"]);
    let printed = lab.ablate(&["audit", "--check", "p.json", "--store", "less"]);
    assert_eq!(printed.code, 1);
    let expected = "unknown  `scaled[scale=2]`: not found in this store\n\
         unknown  `scaled[scale=3]`: not found in this store\n\
         unknown  `summary`: not found in this store\n\
         ablate: NOT confirmed: 2 of 5 stages confirmed, 3 unknown, 0 mismatched, 2 objects hashed\n";
    assert!(printed.stdout.ends_with(expected), "{}", printed.stdout);
    let printed = lab.ablate(&["audit", "--check", "p.json", "--store", "none"]);
    assert_eq!(printed.code, 1);
    let alone = "ablate: internally consistent, not verified against a store: 0 of 5";
    assert!(printed.stdout.contains(alone), "{}", printed.stdout);
    assert!(!lab.path("none").exists(), "looking makes no store");
}

#[test]
fn a_proof_that_was_changed_does_not_hold() {
    let lab = Lab::demo();
    lab.run();
    lab.ablate(&["audit", "summary[scale=2].total", "--proof", "p.json"])
        .good();
    let sound = std::fs::read_to_string(lab.path("p.json")).unwrap();
    let against = |from: &str, to: &str| {
        assert!(sound.contains(from), "{from}");
        lab.write("q.json", &sound.replacen(from, to, 1));
        let printed = lab.ablate(&["audit", "--check", "q.json"]);
        assert_eq!(printed.code, 1, "{}", printed.stdout);
        let lines = printed
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix("mismatch "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    // The value alone.
    let found = against("\"value\":\"6\"", "\"value\":\"7\"");
    let changed = "the proof was changed: what it says does not have its root digest";
    assert_eq!(
        found,
        [changed, "the table has 6 in row 1 of `total`, not 7"]
    );
    // What it says that it is about.
    let other = "it claims to be of `accuracy[scale=2].total`, but is of `summary.rows`";
    assert_eq!(
        against("\"asked\":\"summary", "\"asked\":\"accuracy"),
        [changed, other]
    );
    let other = "it claims to be of `summary[scale=3].total`, but is of `summary.rows`";
    assert_eq!(
        against("summary[scale=2]", "summary[scale=3]"),
        [changed, other]
    );
    // A parameter of the first stage: no store has made that key, and the root is another.
    let found = against("{\"x\":2}", "{\"x\":3}");
    assert_eq!(found, [changed]);
    // A name.
    let named = "`data`: the store recorded it as `numbers`";
    assert_eq!(
        against("\"stage\":\"numbers\"", "\"stage\":\"data\""),
        [changed, named]
    );
    // A raw file: whoever seals the proof anew is still contradicted by the store.
    let raw = "\"raw\":[{\"name\":\"x\",\"checksum\":\"sha256:0\",\"bytes\":1}]";
    let read = "`numbers`: the store recorded no raw files for it";
    assert_eq!(against("\"raw\":[]", raw), [changed, read]);
    // The bytes that go along.
    let found = against("\"artifact\":\"50", "\"artifact\":\"51");
    let table = "the table in the proof does not have the digest that is proven";
    assert_eq!(found, [table]);
    // No proof at all.
    for (text, why) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        (
            "{\"record\":1}",
            "invalid type: integer `1`, expected a string at line 1 column 11",
        ),
    ] {
        lab.write("q.json", text);
        let printed = lab.ablate(&["audit", "--check", "q.json"]);
        let expected = format!(
            "error: `q.json` is not a proof: {why}\n |\n = help: `ablate audit RESULT --proof FILE` writes one\n"
        );
        assert_eq!((printed.code, printed.stderr), (2, expected));
    }
}

#[test]
fn a_store_that_made_other_bytes_contradicts_a_proof() {
    let lab = Lab::loose();
    let file = lab.path("outside.txt").display().to_string();
    lab.write(
        "pipeline.toml",
        &format!(
            "[stage.a]\nkind = \"table\"\nrows = [{{ x = 1 }}]\n\
             [stage.b]\nkind = \"table\"\nrows = [{{ x = 2 }}]\n\
             [stage.c]\nkind = \"command\"\ninputs = {{ a = \"a\", b = \"b\" }}\noutputs = [\"o\"]\n\
             run = [\"sh\", \"-c\", \"cp $ABLATE_IN/$(cat {file}).parquet $ABLATE_OUT/o.parquet\"]\n"
        ),
    );
    lab.write("outside.txt", "a");
    lab.run();
    lab.ablate(&["audit", "c[x=1].x", "--proof", "p.json"])
        .good();
    lab.ablate(&["audit", "--check", "p.json"]).good();
    lab.write("outside.txt", "b");
    lab.run_with(&["--store", "other"]);
    let printed = lab.ablate(&["audit", "--check", "p.json", "--store", "other"]);
    assert_eq!(printed.code, 1);
    let expected = "mismatch `c`: the store has different bytes for the same key\n\
         ablate: does NOT hold: 2 of 3 stages confirmed, 0 unknown, 1 mismatched, 3 objects hashed\n";
    assert!(printed.stdout.ends_with(expected), "{}", printed.stdout);
}

#[test]
fn what_names_no_result_is_said() {
    let lab = Lab::demo();
    lab.run();
    let error = |asked: &str| lab.ablate(&["audit", asked]).stderr;
    assert_eq!(
        error("sumary[scale=2]"),
        "error: no stage `sumary`\n |\n = help: did you mean `summary`?\n = help: `ablate graph` shows the stages of the pipeline\n"
    );
    assert_eq!(
        error("summary[scale=7]"),
        "error: no row has scale=7\n |\n = help: values of scale: 1, 2, 3\n"
    );
    assert_eq!(
        error("scaled[x=2]"),
        "error: `scaled[x=2]` matches 3 instances, not one cell\n |\n = help: add its axes: scaled[scale=1], scaled[scale=2], scaled[scale=3]\n"
    );
    assert_eq!(
        error("0123456789ab"),
        "error: no output has a digest that begins with 0123456789ab\n |\n = help: `ablate runs RUN` and `ablate show STAGE` print digests\n"
    );
}
