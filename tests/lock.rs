//! `results.lock`: one line per stage, and what another execution gives beside it.

use std::path::Path;

use serde_json::Value;

use crate::lab::Lab;
use crate::verify::fickle;

/// Lines without their first words, and the exit code.
fn locked(lab: &Lab, arguments: &[&str]) -> (i32, Vec<String>) {
    let printed = lab.ablate(arguments);
    let lines = printed.stdout.lines();
    let lines = lines.filter(|line| !line.starts_with("ran ") && !line.starts_with("ablate: "));
    (printed.code, lines.map(str::to_owned).collect())
}

/// What a run of the repository's own pipelines gave is what their `results.lock` says: the project's own proof that
/// bits agree between machines. `UPDATE_LOCKS=1 cargo test --workspace runs_small` writes those of papers anew,
/// `… quick_start_prints` that of the quick start.
pub fn is_as_committed(lab: &Lab, options: &[&str], folder: &Path) {
    let file = folder.join("results.lock");
    let file = file.to_str().unwrap();
    if std::env::var_os("UPDATE_LOCKS").is_some() {
        lab.ablate(&[options, &["lock", "-o", file]].concat())
            .good();
    }
    let started = std::time::Instant::now();
    let printed = lab.ablate(&[options, &["run", "-q", &format!("--locked={file}")]].concat());
    println!("{file}: compared in {:?}", started.elapsed());
    assert_eq!(
        printed.code, 0,
        "{}\n{}\nIf other results are right, `UPDATE_LOCKS=1 cargo test --workspace runs_small`, and \
         `… quick_start_prints`, write these files anew",
        printed.stdout, printed.stderr
    );
}

#[test]
fn a_lock_is_confirmed_by_another_store_and_does_not_change() {
    let lab = Lab::demo();
    let early = lab.ablate(&["lock"]);
    assert_eq!(early.code, 1);
    assert!(!lab.path("results.lock").exists());
    lab.run_with(&["scaled"]);
    let early = lab.ablate(&["lock"]);
    assert_eq!(
        early.stderr,
        "error: the stage `summary` has no result to lock\n |\n = help: ablate run\n"
    );
    lab.run();
    let printed = lab.ablate(&["lock"]).good().stdout;
    assert_eq!(
        printed,
        "ablate: results.lock: 5 stages, 0 changed, 5 new, 0 gone\n"
    );
    let text = std::fs::read_to_string(lab.path("results.lock")).unwrap();
    let stages: Vec<&str> = text.lines().filter(|line| line.starts_with('"')).collect();
    assert_eq!(stages.len(), 5, "{text}");
    assert!(stages.is_sorted(), "{text}");
    for (label, digest) in lab.digests() {
        let name = label.split('.').next().unwrap();
        assert!(text.contains(&digest), "{name} {digest}\n{text}");
    }
    // From nothing, in another store.
    let elsewhere = ["run", "--store", "other", "--locked"];
    let (code, lines) = locked(&lab, &elsewhere);
    assert_eq!(code, 0, "{lines:?}");
    assert_eq!(
        lines,
        [
            "bit-identical     numbers",
            "bit-identical     scaled[scale=1]",
            "bit-identical     scaled[scale=2]",
            "bit-identical     scaled[scale=3]",
            "bit-identical     summary",
            "results.lock: 5 bit-identical, 0 within tolerance, 0 different, 0 damaged, 0 not in the lock, 0 missing",
        ]
    );
    lab.ablate(&["lock", "--store", "other"]).good();
    assert_eq!(
        std::fs::read_to_string(lab.path("results.lock")).unwrap(),
        text
    );
    let (code, again) = locked(&lab, &["challenge", "results.lock", "--store", "other"]);
    assert_eq!((code, again), (0, lines));
}

#[test]
fn outputs_are_compared_and_another_key_is_only_said() {
    let lab = Lab::demo();
    lab.run();
    lab.ablate(&["lock"]).good();
    // The same rows by another query: another key, the same bytes.
    lab.edit("x * ${scale} AS x", "${scale} * x AS x");
    let (code, lines) = locked(&lab, &["run", "--locked"]);
    assert_eq!(code, 0, "{lines:?}");
    let other = "(another key: parameters, inputs, files or code have changed)";
    assert_eq!(
        lines[1],
        format!("bit-identical     scaled[scale=1]  {other}")
    );
    assert_eq!(
        lines[5],
        "results.lock: 5 bit-identical, 0 within tolerance, 0 different, 0 damaged, 0 not in the lock, 0 missing; \
         3 have another key"
    );
    // Other rows, a stage more, an axis value less.
    lab.edit("scale = [1, 2, 3]", "scale = [1, 2]")
        .edit("{ x = 2 }", "{ x = 4 }")
        .edit(
            "[stage.summary]",
            "[stage.more]\nkind = \"table\"\nrows = [{ x = 1 }]\n\n[stage.summary]",
        );
    let (code, lines) = locked(&lab, &["run", "--locked"]);
    assert_eq!(code, 1);
    let changed =
        |stage: &str, what: &str| format!("different         {stage}.rows: {what}  {other}");
    assert_eq!(
        lines,
        [
            "not in the lock   more",
            &changed("numbers", "row 1, column x: 2 -> 4"),
            &changed(
                "scaled[scale=1]",
                "row 1, column x: 2 -> 4 (promised: within-tolerance)"
            ),
            &changed(
                "scaled[scale=2]",
                "row 1, column x: 4 -> 8 (promised: within-tolerance)"
            ),
            "missing           scaled[scale=3]: the pipeline does not have it",
            &changed(
                "summary",
                "row 0, column total: 3 -> 5 (promised: within-tolerance)"
            ),
            "results.lock: 0 bit-identical, 0 within tolerance, 4 different, 0 damaged, 1 not in the lock, 1 missing; \
             4 have another key",
        ]
    );
    // Only what is asked for.
    let (code, lines) = locked(&lab, &["run", "--locked", "more"]);
    assert_eq!(code, 1, "nothing was confirmed");
    assert_eq!(lines[0], "not in the lock   more");
    let printed = lab.ablate(&["lock"]).good().stdout;
    assert_eq!(
        printed,
        "ablate: results.lock: 5 stages, 4 changed, 1 new, 1 gone\n"
    );
}

#[test]
fn rounding_is_within_tolerance_only_on_another_machine_or_with_other_code() {
    let lab = Lab::new(
        "[stage.a]\nkind = \"table\"\nrows = [{ x = 0.5 }]\n\
         [stage.b]\nkind = \"sql\"\ninputs = { t = \"a\" }\nquery = \"SELECT x + 0.25 AS x FROM t\"\n",
    );
    lab.run();
    lab.ablate(&["lock"]).good();
    lab.edit("x + 0.25", "x + 0.250000000001");
    let (code, lines) = locked(&lab, &["run", "--locked"]);
    assert_eq!(code, 0, "{lines:?}");
    assert!(
        lines[1].starts_with(
            "within tolerance  b.rows: column x differs by at most 1.0e-12 (1e-9 is allowed)"
        ),
        "{lines:?}"
    );
    // With the same key on the same machine the same bytes are promised; and a table that is not there cannot be near.
    let text = std::fs::read_to_string(lab.path("results.lock")).unwrap();
    lab.ablate(&["lock"]).good();
    let new = std::fs::read_to_string(lab.path("results.lock")).unwrap();
    let output = |text: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with("\"b\""))
            .unwrap()
            .to_owned();
        line.split('"').nth(5).unwrap().to_owned()
    };
    let forged = new.replace(&output(&new), &output(&text));
    lab.write("results.lock", &forged);
    let (code, lines) = locked(&lab, &["challenge", "results.lock"]);
    assert_eq!(code, 1, "{lines:?}");
    assert!(
        lines[1].starts_with("different         b.rows: row 0, column x: 0.75 -> "),
        "{lines:?}"
    );
    lab.write(
        "results.lock",
        &forged.replace("machine = \"", "machine = \"vax "),
    );
    let (code, lines) = locked(&lab, &["challenge", "results.lock"]);
    assert_eq!(code, 0, "{lines:?}");
    assert!(
        lines[1].starts_with("within tolerance  b.rows: "),
        "{lines:?}"
    );
    std::fs::rename(lab.path("results.lock"), lab.path("theirs.lock")).unwrap();
    let elsewhere = ["run", "--store", "other", "--locked=theirs.lock"];
    let (code, lines) = locked(&lab, &elsewhere);
    assert_eq!(code, 1);
    assert!(
        lines[1].contains("the locked table is not in this store"),
        "{lines:?}"
    );
}

#[test]
fn damage_and_outside_programs_are_noticed() {
    let lab = fickle();
    lab.run();
    lab.ablate(&["lock"]).good();
    // The same size and the same record: only hashing shows it.
    let object = lab.object("a[k=0]");
    let whole = std::fs::read(&object).unwrap();
    let mut bytes = whole.clone();
    bytes[20] ^= 1;
    let writable = std::fs::metadata(&object).unwrap().permissions();
    std::fs::remove_file(&object).unwrap();
    std::fs::write(&object, &bytes).unwrap();
    let (code, lines) = locked(&lab, &["challenge", "results.lock"]);
    assert_eq!(code, 1);
    assert!(
        lines[0].starts_with("damaged           a[k=0].rows: the stored result is damaged"),
        "{lines:?}"
    );
    std::fs::write(&object, &whole).unwrap();
    std::fs::set_permissions(&object, writable).unwrap();
    lab.write("outside.txt", "b");
    let printed = lab.ablate(&["run", "--store", "other", "--locked", "--json"]);
    assert_eq!(printed.code, 1);
    let lines = printed.stdout.lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |stage: &str| {
        let mut lines = lines.iter();
        let line = lines.find(|line| line["event"] == "locked" && line["stage"] == stage);
        line.unwrap().clone()
    };
    assert_eq!(of("c")["verdict"], "different");
    assert_eq!(of("c")["promise"], "outside-program");
    assert_eq!(of("a[k=0]")["verdict"], "bit-identical");
    assert_eq!(of("d")["other_key"], true);
    let summary = lines.iter().find(|line| line["event"] == "lock").unwrap();
    assert_eq!(
        (&summary["bit_identical"], &summary["different"]),
        (&2.into(), &2.into())
    );
    assert_eq!(lines.last().unwrap()["event"], "done");
}

#[test]
fn a_lock_of_something_else_is_refused_before_anything_runs() {
    let lab = Lab::demo();
    let text = format!(
        "{}\n[profile.small.stage.numbers]\nrows = [{{ x = 1 }}]\n",
        crate::lab::DEMO
    );
    lab.write("pipeline.toml", &text);
    let absent = lab.ablate(&["run", "--locked"]);
    assert_eq!(absent.code, 2);
    assert!(
        absent
            .stderr
            .starts_with("error: cannot read `results.lock`: "),
        "{}",
        absent.stderr
    );
    assert!(!lab.path(".ablate").exists());
    lab.ablate(&["run", "--profile", "small"]).good();
    lab.ablate(&["lock", "--profile", "small"]).good();
    for command in [&["run", "--locked"][..], &["lock"]] {
        let printed = lab.ablate(command);
        assert_eq!(printed.code, 2);
        assert_eq!(
            printed.stderr,
            "error: `results.lock` is of the profile `small`\n |\n = help: add `--profile small`, or name another file\n"
        );
    }
    // It knows its profile.
    assert_eq!(locked(&lab, &["challenge", "results.lock"]).0, 0);
    lab.edit("name = \"demo\"", "name = \"other\"");
    let printed = lab.ablate(&["run", "--locked", "--profile", "small"]);
    assert_eq!(
        (printed.code, printed.stderr.lines().next()),
        (2, Some("error: `results.lock` is of the pipeline `demo`"))
    );
    lab.write("results.lock", "format = 1\n");
    let printed = lab.ablate(&["run", "--locked"]);
    assert!(
        printed
            .stderr
            .starts_with("error: `results.lock` is not a lock of results: ")
    );
}

/// A record's word for bytes was signed, and confirmed, although they were others.
fn damaged_results_are_not_certified(
    lab: &Lab,
    ablate: &dyn Fn(&[&str]) -> crate::lab::CommandOutput,
) {
    let digest = lab.digests()["summary.rows"].clone();
    let object = lab.path(&format!(
        ".ablate/objects/{}/{}.parquet",
        &digest[..2],
        &digest[2..]
    ));
    let whole = std::fs::read(&object).unwrap();
    let mut bytes = whole.clone();
    *bytes.last_mut().unwrap() ^= 1;
    let put = |bytes: &[u8]| {
        std::fs::remove_file(&object).unwrap();
        std::fs::write(&object, bytes).unwrap();
    };
    put(&bytes);
    let signed = ablate(&["certify", "-o", "damaged.json"]);
    assert_eq!(signed.code, 1);
    assert_eq!(
        signed.stderr,
        "error: the stored result `summary.rows` is damaged, and cannot be certified\n |\n \
         = help: ablate fsck --repair, then ablate run\n"
    );
    let told = ablate(&["certify", "--check", "certificate.json"]);
    assert_eq!(told.code, 1);
    assert!(
        told.stdout.ends_with(
            "damaged here: summary.rows\n\
         ablate: 4 outputs identical here, 0 different, 1 damaged, 0 not here\n"
        ),
        "{}",
        told.stdout
    );
    put(&whole);
}

/// A certificate says what was found, and is believed only with its own signature.
#[test]
fn a_certificate_is_checked_by_others() {
    let lab = Lab::demo();
    let ablate = |arguments: &[&str]| {
        let mut command = lab.command(arguments);
        command.env("ABLATE_CONFIG", lab.path("config"));
        crate::lab::CommandOutput::of(command.output().unwrap())
    };
    lab.run();
    lab.ablate(&["lock"]).good();
    let early = ablate(&["certify"]);
    assert_eq!(
        early.stderr,
        "error: a certificate is signed, and you have no key\n |\n = help: ablate key new\n"
    );
    let key = ablate(&["key", "new"]).good().stdout;
    ablate(&["certify"]).good();
    let told = ablate(&["certify", "--check", "certificate.json"])
        .good()
        .stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines[0],
        format!("certificate.json: signed by you ({})", key.trim())
    );
    assert_eq!(lines[2], "claims: none");
    assert_eq!(lines[3], "beside results.lock: 5 bit-identical");
    assert_eq!(
        lines[5],
        "ablate: 5 outputs identical here, 0 different, 0 damaged, 0 not here"
    );
    damaged_results_are_not_certified(&lab, &ablate);
    let page = || {
        ablate(&["report", "-q"]).good();
        let html = std::fs::read_to_string(lab.path("report.html")).unwrap();
        let from = html
            .find("<section id=\"certificates\"")
            .expect("certificates are shown");
        html[from..].split("</section>").next().unwrap().to_owned()
    };
    let shown = page();
    assert!(shown.contains("<code>certificate.json</code>"), "{shown}");
    assert!(
        shown.contains(&format!("<td>you ({})</td>", key.trim())),
        "{shown}"
    );
    assert!(shown.contains("<td>5 the same</td>"), "{shown}");
    // Other results.
    lab.edit("{ x = 2 }", "{ x = 4 }").run();
    let shown = page();
    assert!(
        shown.contains("<strong>5 different</strong>: <code>"),
        "{shown}"
    );
    let other = ablate(&["certify", "--check", "certificate.json"]);
    assert_eq!(other.code, 1);
    assert!(
        other.stdout.contains("different here: numbers.rows"),
        "{}",
        other.stdout
    );
    // Other words.
    let text = std::fs::read_to_string(lab.path("certificate.json")).unwrap();
    let envelope: Value = serde_json::from_str(&text).unwrap();
    let payload = envelope["payload"].as_str().unwrap();
    lab.write("forged.json", &text.replace(&payload[40..44], "AAAA"));
    std::fs::create_dir(lab.path("certificates")).unwrap();
    std::fs::copy(lab.path("forged.json"), lab.path("certificates/bob.json")).unwrap();
    let shown = page();
    let invalid = "<strong>Not valid: it has a signature that is not ed25519:";
    assert!(
        shown.contains("<code>certificates&#x2f;bob.json</code>"),
        "{shown}"
    );
    assert!(shown.contains(invalid), "{shown}");
    let forged = ablate(&["certify", "--check", "forged.json"]);
    assert_eq!(forged.code, 1);
    assert!(
        forged
            .stderr
            .contains("`forged.json` has a signature that is not ed25519:"),
        "{}",
        forged.stderr
    );
}
