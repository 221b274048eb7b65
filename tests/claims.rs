//! `claims.toml`: verdicts come from the current results, and mistakes are shown where they are.

use serde_json::Value;

use crate::lab::Lab;

/// Accuracies as an evaluation would leave them, with one number that is not there.
const PIPELINE: &str = include_str!("pipelines/claims.toml");

const CLAIMS: &str = include_str!("pipelines/claims.claims.toml");

fn lab(claims: &str) -> Lab {
    let lab = Lab::new(PIPELINE);
    lab.write("claims.toml", claims);
    lab
}

/// The verdict of each claim, in order.
fn verdicts(lab: &Lab, arguments: &[&str]) -> Vec<(String, String)> {
    let printed = lab.ablate(&[&["claims", "--json"], arguments].concat());
    let lines = printed.good().stdout;
    let each = lines.lines().map(|line| {
        let claim: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| claim[key].as_str().unwrap().to_owned();
        (text("claim"), text("verdict"))
    });
    each.collect()
}

#[test]
fn verdicts_come_with_our_numbers_and_the_papers() {
    let lab = lab(CLAIMS);
    lab.run();
    let printed = lab.ablate(&["claims"]).good();
    insta::assert_snapshot!(printed.stdout);
    assert_eq!(printed.stderr, "");
}

#[test]
fn before_any_run_nothing_is_judged_and_nothing_is_made() {
    let lab = lab(CLAIMS);
    let printed = lab.ablate(&["claims"]).good();
    insta::assert_snapshot!(printed.stdout);
    assert!(!lab.path(".ablate").exists(), "looking makes no store");
    let printed = lab.ablate(&["claims", "--check"]).good();
    assert_eq!(printed.stdout, "ablate: 6 claims, nothing wrong\n");
}

#[test]
fn programs_get_numbers_at_full_precision() {
    let lab = lab(CLAIMS);
    lab.run();
    let printed = lab.ablate(&["claims", "--json"]).good();
    let first: Value = serde_json::from_str(printed.stdout.lines().next().unwrap()).unwrap();
    let expected = serde_json::json!({
        "claim": "A-1", "verdict": "reproduced", "level": "must",
        "text": "Three swaps cost more than 5 points.", "paper": "82.24 -> 68.17",
        "numbers": { "clean": 0.822149, "swap3": 0.6817 }, "why": null, "notes": [],
        "holds": true, "intervals": {}, "paper_numbers": {}, "draws": null, "draws_of_items": null,
        "draws_of_seeds": null, "executions": null, "seeds_needed": null, "of_seeds": null,
        "failed_draws": null,
    });
    assert_eq!(first, expected);
}

/// Claims are judged by what the pipeline, the profile and the settings give now.
/// The file says of which pipeline and claims it is, so that one can tell when it no longer is.
#[test]
fn verdicts_are_written_with_the_digests_of_what_they_were_judged_by() {
    let lab = lab(CLAIMS);
    lab.run();
    lab.ablate(&["claims", "-q", "--write", "verdicts.json"])
        .good();
    let read = |name: &str| std::fs::read(lab.path(name)).unwrap();
    let file: Value = serde_json::from_slice(&read("verdicts.json")).unwrap();
    for (key, name) in [("pipeline", "pipeline.toml"), ("claims", "claims.toml")] {
        let digest = blake3::hash(&read(name)).to_hex();
        assert_eq!(file[key], digest.as_str(), "{key}");
    }
    assert_eq!(file["record"], "verdicts/1");
    let verdict = |one: &Value| {
        let text = |key: &str| one[key].as_str().unwrap().to_owned();
        (text("claim"), text("verdict"))
    };
    let written = file["verdicts"].as_array().unwrap().iter();
    assert_eq!(
        written.map(verdict).collect::<Vec<_>>(),
        verdicts(&lab, &[])
    );
    let refused = lab.ablate(&["claims", "--write", "no/such/folder.json"]);
    assert_eq!(refused.code, 2);
    assert_eq!(
        refused.stderr,
        "error: cannot write `no/such/folder.json`: No such file or directory (os error 2)\n"
    );
}

#[test]
fn a_changed_pipeline_is_judged_anew_or_not_at_all() {
    let lab = lab(CLAIMS);
    lab.run();
    let verdict = |arguments: &[&str], id: &str| {
        let all = verdicts(&lab, arguments);
        all.into_iter().find(|(claim, _)| claim == id).unwrap().1
    };
    assert_eq!(verdict(&[], "A-3"), "not reproduced");
    lab.edit("acc = 0.822149", "acc = 0.45");
    assert_eq!(
        verdict(&[], "A-3"),
        "not run",
        "the old numbers are not these"
    );
    lab.run();
    assert_eq!(verdict(&[], "A-3"), "not reproduced", "0.6817 is left");
    lab.edit("acc = 0.6817", "acc = 0.3");
    lab.run();
    assert_eq!(verdict(&[], "A-3"), "reproduced");
    let set = [
        "--set",
        "results.query=SELECT attack, acc + 1 AS acc FROM s",
    ];
    assert_eq!(verdict(&set, "A-3"), "not run");
    assert_eq!(verdict(&["--profile", "paper"], "A-5"), "not run");
    lab.run_with(&["--profile", "paper"]);
    assert_eq!(verdict(&["--profile", "paper"], "A-5"), "not reproduced");
    assert_eq!(verdict(&[], "A-5"), "not run");
}

#[test]
fn a_past_run_is_judged_by_its_own_results() {
    let lab = lab(CLAIMS);
    lab.run();
    lab.run_with(&["--profile", "paper", "results"]);
    let of = |arguments: &[&str]| -> Vec<String> {
        let all = verdicts(&lab, arguments);
        all.into_iter().map(|(_, verdict)| verdict).collect()
    };
    let first = [
        "reproduced",
        "not run",
        "not reproduced",
        "reported",
        "not run",
        "not run",
    ];
    let second = [
        "reproduced",
        "not run",
        "not reproduced",
        "not run",
        "reproduced",
        "not run",
    ];
    assert_eq!(of(&["--run", "1"]), first);
    assert_eq!(of(&["--run", "last"]), second);
    let printed = lab.ablate(&["claims", "--run", "2"]).good();
    let why = "why    run 2 has no stored result of `jsma[seed=1]`";
    assert!(printed.stdout.contains(why), "{}", printed.stdout);
    lab.ablate(&["claims", "--run", "2", "--profile", "paper"])
        .good();
    let printed = lab.ablate(&["claims", "--run", "1", "--profile", "paper"]);
    assert_eq!(printed.code, 2);
    insta::assert_snapshot!(printed.stderr);
}

#[test]
fn a_run_ends_with_the_count_once_all_is_there() {
    let lab = lab(CLAIMS);
    let printed = lab.ablate(&["run", "results"]).good();
    assert!(!printed.stdout.contains("claims"), "{}", printed.stdout);
    let printed = lab.ablate(&["run"]).good();
    let last = printed.stdout.lines().last().unwrap();
    let counts = "1 reproduced, 0 uncertain, 1 not reproduced, 3 not run, 1 reported";
    assert_eq!(last, format!("claims: {counts} (ablate claims)"));
    let ran = lab.run();
    assert_eq!(ran.done()["event"], "done");
    let events = ran.events.iter();
    let counts: Vec<_> = events.filter(|event| event["event"] == "claims").collect();
    let expected = serde_json::json!({
        "event": "claims", "reproduced": 1, "uncertain": 0, "not_reproduced": 1, "not_run": 3, "reported": 1,
    });
    assert_eq!(counts, [&expected]);
}

/// A finding, and even a broken file, fails no run.
#[test]
fn a_broken_file_is_a_note_of_the_run() {
    let wrong = CLAIMS.replace("AS n FROM results", "AS n FROM result");
    let printed = lab(&wrong).ablate(&["run"]).good();
    assert_eq!(
        printed.stderr,
        "ablate: the claims cannot be evaluated: `ablate claims` says why\n"
    );
    let wrong = CLAIMS.replace("COUNT(acc)", "COUNT(ac)");
    let printed = lab(&wrong).ablate(&["run"]).good();
    assert_eq!(
        printed.stderr,
        "ablate: the claims cannot be judged (ablate claims): \
         the query of claim `A-3` failed: no column is named `ac`\n"
    );
}

/// polars holds that a NaN is larger than any number, which would reproduce anything.
#[test]
fn a_nan_reproduces_nothing() {
    let claims = "[claims]\ntables = { r = \"results\" }\n[claim.N]\nlevel = \"must\"\ntext = \"x\"\n\
        query = \"SELECT x > 0.5 AS holds, x FROM (SELECT MAX(acc - acc) / 0.0 AS x FROM r)\"\n";
    let lab = lab(claims);
    lab.run();
    let printed = lab.ablate(&["claims"]).good();
    assert!(
        printed.stdout.contains("why    `x` is NaN"),
        "{}",
        printed.stdout
    );
}

#[test]
fn the_pipeline_may_name_the_file() {
    let lab = lab("not read");
    lab.write("sub/mine.toml", CLAIMS);
    lab.edit("[axes]", "[pipeline]\nclaims = \"sub/mine.toml\"\n[axes]");
    lab.run();
    assert_eq!(verdicts(&lab, &[]).len(), 6);
    lab.edit("mine.toml", "yours.toml");
    let printed = lab.ablate(&["claims"]);
    assert_eq!((printed.code, printed.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(printed.stderr);
}

/// The message for a claims.toml in which `from` was written as `to`.
#[track_caller]
fn wrong(from: &str, to: &str) -> String {
    let claims = "[claims]\ntables = { results = \"results\" }\n\n[claim.A]\nlevel = \"must\"\n\
        text = \"It holds.\"\nquery = \"SELECT MAX(acc) > 0.5 AS holds, MAX(acc) AS acc FROM results\"\n";
    assert!(claims.contains(from), "no {from:?}");
    let lab = lab(&claims.replace(from, to));
    lab.run();
    let printed = lab.ablate(&["claims"]);
    assert_eq!(
        (printed.code, printed.stdout.as_str()),
        (2, ""),
        "{}",
        printed.stderr
    );
    printed.stderr
}

macro_rules! case {
    ($name:ident, $from:expr, $to:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(wrong($from, $to));
        }
    };
}

case!(not_toml, "[claims]", "[claims");
case!(unknown_section, "[claim.A]", "[clam.A]");
case!(unknown_key, "text =", "txt =");
case!(unknown_key_of_claims, "tables =", "table =");
case!(no_text, "text = \"It holds.\"\n", "");
case!(empty_text, "It holds.", "  ");
case!(no_query, "query = ", "paper = ");
case!(unknown_level, "\"must\"", "\"most\"");
case!(unknown_profile, "level", "profiles = [\"papr\"]\nlevel");
case!(unknown_stage, "= \"results\"", "= \"result\"");
case!(unknown_output, "= \"results\"", "= \"results.row\"");
case!(unknown_table, "FROM results", "FROM result");
case!(not_sql, "SELECT MAX", "SELEC MAX");
case!(unknown_column, "MAX(acc) AS acc", "MAX(ac) AS acc");
case!(no_holds, "AS holds", "AS hold");
case!(holds_is_no_boolean, "MAX(acc) > 0.5 AS", "MAX(acc) AS");
case!(
    several_rows,
    "SELECT MAX(acc) > 0.5 AS holds, MAX(acc) AS acc",
    "SELECT acc > 0.5 AS holds, acc"
);

#[test]
fn no_file() {
    let printed = Lab::new(PIPELINE).ablate(&["claims"]);
    assert_eq!(printed.code, 2);
    insta::assert_snapshot!(printed.stderr);
}

/// The example in docs/pipeline.md, on the pipeline above it there.
#[test]
fn the_example_in_the_docs_is_reproduced() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/pipeline.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let blocks: Vec<&str> = docs.split("```toml\n").skip(1).collect();
    let block = |start: &str| {
        let found = blocks.iter().find(|block| block.starts_with(start));
        found.unwrap().split("```").next().unwrap()
    };
    let lab = Lab::new(block("[pipeline]"));
    lab.write("claims.toml", block("[claims]"));
    lab.run();
    let expected = ("grows".to_owned(), "reproduced".to_owned());
    assert_eq!(verdicts(&lab, &[]), [expected]);
}

/// polars counts without a sign: one less two was 4294967295, and the claim reproduced.
#[test]
fn counts_can_be_subtracted() {
    let lab = Lab::new("[stage.t]\nkind = \"table\"\nrows = [{ a = 1, b = 1 }, { a = 2 }]\n");
    lab.write(
        "claims.toml",
        r#"[claims]
tables = { t = "t" }

[claim.lead]
level = "must"
text = "b was measured more often than a."
query = "SELECT COUNT(b) - COUNT(a) > 0 AS holds, COUNT(b) - COUNT(a) AS lead FROM t"
"#,
    );
    lab.ablate(&["run"]).good();
    let printed = lab.ablate(&["claims"]).stdout;
    assert!(printed.starts_with("not reproduced  lead"), "{printed}");
    assert!(printed.contains("lead -1"), "{printed}");
}
