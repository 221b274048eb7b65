//! Graded verdicts: what claims say of the results as they might have been, with other items and other seeds.

use serde_json::Value;

use crate::lab::Lab;

const PIPELINE: &str = include_str!("pipelines/draws.toml");

const CLAIMS: &str = include_str!("pipelines/draws.claims.toml");

fn lab() -> Lab {
    let lab = Lab::new(PIPELINE);
    lab.write("claims.toml", CLAIMS);
    lab.run();
    lab
}

fn judged(lab: &Lab, draws: &str) -> Vec<Value> {
    let printed = lab.ablate(&["claims", "--json", "--draws", draws]).good();
    let lines = printed.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn verdicts_say_how_sure_they_are() {
    let lab = lab();
    let printed = lab.ablate(&["claims", "--draws", "200"]).good();
    insta::assert_snapshot!(printed.stdout);
    assert_eq!(printed.stderr, "");
}

/// Worlds are compared with a verdict of as many draws, and with no other.
#[test]
fn worlds_are_judged_by_as_many_draws_as_wanted() {
    let lab = Lab::new(&format!(
        "{PIPELINE}\n[choices]\nfewer-reviews = {{ \"reviews.generate\" = {{ train = 200, dev = 10, test = 60 }} }}\n"
    ));
    lab.write("claims.toml", CLAIMS);
    lab.ablate(&["multiverse", "--quiet", "--draws", "50"])
        .good();
    let worlds = |draws: &str| {
        let all = judged(&lab, draws);
        all[0]["notes"].to_string().contains("of 2 worlds")
    };
    assert!(worlds("50"));
    assert!(!worlds("60"));
}

/// Items alone vary `clean`, a share of 60 items: its interval is about that of the binomial distribution.
#[test]
fn intervals_of_draws_are_as_wide_as_theory_says() {
    let lab = lab();
    let all = judged(&lab, "400");
    let interval = &all[0]["intervals"]["clean"];
    let end = |name: &str| interval[name].as_f64().unwrap();
    let share = all[0]["numbers"]["clean"].as_f64().unwrap();
    let expected = 2.0 * 1.96 * (share * (1.0 - share) / 60.0).sqrt();
    let width = end("high") - end("low");
    assert!(
        (width / expected - 1.0).abs() < 0.15,
        "{width} instead of {expected}"
    );
    assert_eq!(interval["method"], "drawn-items");
    assert_eq!(all[1]["executions"], 3);
    assert_eq!(
        all[1]["of_seeds"],
        serde_json::json!({ "holds": 3, "of": 3 })
    );
    assert_eq!(
        all[0]["paper_numbers"]["clean"],
        serde_json::json!({ "value": 0.5, "inside": false })
    );
    assert_eq!(all[5]["verdict"], "uncertain");
}

/// Executions that agree on a number are several all the same, and seeds that other stages have do not count.
#[test]
fn executions_are_told_apart_by_what_is_behind_a_number() {
    let lab = Lab::new(&format!(
        "{PIPELINE}\n{}",
        r#"
[stage.any]
kind = "sql"
inputs = { t = "swap" }
query = "SELECT CASE WHEN COUNT(*) > 0 THEN 1.0 ELSE 0.0 END AS any FROM t"

[stage.few]
like = "swap"
except = [{ seed = 3 }]

[stage.agreed]
kind = "evaluate"
cells = [
    { from = "any", metric = "any", table = "t", row = "any", col = "swap-{n}" },
    { from = "few", metric = "accuracy", table = "t", row = "few", col = "swap-{n}" },
]
"#
    ));
    lab.write(
        "claims.toml",
        r#"
[claims]
tables = { agreed = "agreed" }

[claim.any]
level = "must"
text = "There are examples."
seeds = 3
query = "SELECT AVG(value) > 0.5 AS holds, AVG(value) AS mean FROM agreed WHERE \"row\" = 'any'"

[claim.few]
level = "must"
text = "Somebody is right."
query = "SELECT AVG(value) > 0.01 AS holds, AVG(value) AS mean FROM agreed WHERE \"row\" = 'few'"
"#,
    );
    lab.run();
    let all = judged(&lab, "60");
    let told = |n: usize| {
        let of_seeds = &all[n]["of_seeds"];
        let count = |name: &str| of_seeds[name].as_u64().unwrap();
        (
            all[n]["verdict"].as_str().unwrap().to_owned(),
            all[n]["executions"].as_u64().unwrap(),
            count("holds"),
            count("of"),
        )
    };
    assert_eq!(told(0), ("reproduced".to_owned(), 3, 3, 3));
    assert_eq!(told(1), ("reproduced".to_owned(), 2, 2, 2));
    // So does what is shown of results.
    let shown = lab.ablate(&["export", "agreed", "--csv"]).good().stdout;
    let executions = |row: &str| {
        let mut columns = shown.lines().next().unwrap().split(',');
        let at = columns.position(|name| name == "executions").unwrap();
        let line = shown.lines().find(|line| line.contains(row)).unwrap();
        line.split(',').nth(at).unwrap().to_owned()
    };
    assert_eq!(
        (executions(",any,"), executions(",few,")),
        ("3".to_owned(), "2".to_owned())
    );
}

/// A draw has its own random numbers, whoever computes it and when.
#[test]
fn draws_are_the_same_on_any_number_of_threads_and_from_the_cache() {
    let lab = lab();
    let ask = |threads: &str| {
        let mut command = lab.command(&["claims", "--json", "--draws", "60"]);
        let output = command.env("RAYON_NUM_THREADS", threads).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let first = ask("1");
    let kept = lab.files("draws");
    assert_eq!(
        kept.len(),
        5,
        "one file for each query: two claims share one"
    );
    assert_eq!(ask("1"), first, "from the cache");
    std::fs::remove_dir_all(lab.path(".ablate/draws")).unwrap();
    assert_eq!(ask("2"), first);
    // Draws of a claim do not depend on which others are drawn with it.
    std::fs::remove_file(&kept[0]).unwrap();
    assert_eq!(ask("2"), first);
}

/// What is kept is believed only if it is whole, and only for the numbers and the query it was made for.
#[test]
fn kept_draws_are_of_these_results_and_this_query() {
    let lab = lab();
    let before = judged(&lab, "60");
    for file in lab.files("draws") {
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("\\\"holds\\\":", "\\\"holds\\\":1")).unwrap();
    }
    assert_eq!(judged(&lab, "60"), before, "forged files are ignored");
    lab.write("claims.toml", &CLAIMS.replace("> 0.01", "> 0.011"));
    let files = lab.files("draws").len();
    judged(&lab, "60");
    assert_eq!(lab.files("draws").len(), files + 1, "a query is new");
}

/// A run ends with plain answers until the draws are there, in other words.
#[test]
fn a_run_does_not_wait_for_draws() {
    let lab = Lab::new(PIPELINE);
    // All 1,000 draws, of one claim.
    let claim = CLAIMS.split("[claim.three-hurt-more]").next().unwrap();
    lab.write("claims.toml", claim);
    let last = |lab: &Lab| {
        let printed = lab.ablate(&["run"]).good().stdout;
        printed.lines().last().unwrap().to_owned()
    };
    assert_eq!(
        last(&lab),
        "claims: 1 of 1 hold, 0 not run; not graded yet (ablate claims)"
    );
    let graded = lab.ablate(&["claims"]).good().stdout;
    let graded = graded.lines().last().unwrap();
    assert_eq!(last(&lab), format!("{graded} (ablate claims)"));
}

#[test]
fn wrong_seeds_and_papers_are_shown_where_they_are() {
    let lab = Lab::new(PIPELINE);
    let claims = CLAIMS.replace("seeds = 5", "seeds = 0");
    lab.write(
        "claims.toml",
        &claims.replace("swap_3 = 0.99", "swap_3 = \"0.99\""),
    );
    let printed = lab.ablate(&["claims", "--check"]);
    assert_eq!(printed.code, 2);
    insta::assert_snapshot!(printed.stderr);
}

/// A metric whose columns the draws leave out would make all of them fail, and claims that have nothing to do with it.
#[test]
fn every_metric_can_be_drawn() {
    let metrics = stages::kinds::evaluate::metrics::METRICS.iter();
    let mut cells = String::new();
    for entry in metrics.map(|metric| metric.entry()) {
        // Naive Bayes is asked about words: characters have an attack of their own.
        if entry.columns.contains(&"operations") {
            continue;
        }
        let names: Vec<String> = entry
            .placeholders
            .iter()
            .map(|name| format!("{{{name}}}"))
            .collect();
        let (name, col) = (entry.name, names.join(" "));
        cells += &format!(
            "    {{ from = \"swap\", metric = \"{name}\", table = \"{name}\", row = \"{{n}}\", col = \"x {col}\" }},\n"
        );
    }
    let lab = Lab::new(&PIPELINE.replace("cells = [\n", &format!("cells = [\n{cells}")));
    lab.write("claims.toml", CLAIMS);
    lab.run().printed.good();
    for claim in judged(&lab, "40") {
        assert_eq!(claim["failed_draws"], Value::Null, "{claim}");
    }
}

/// Lines of an evaluation that no claim reads are left out of draws, and change nothing.
#[test]
fn what_no_claim_reads_changes_no_draw() {
    let (pipeline, _) = PIPELINE.split_once("[stage.means]").unwrap();
    let claim = CLAIMS
        .split("\n\n")
        .find(|text| text.starts_with("[claim.three-hurt-more]"));
    let claims = format!(
        "[claims]\ntables = {{ results = \"results\" }}\n\n{}\n",
        claim.unwrap()
    );
    // The same rows, by a condition of which nobody can say which values it lets through.
    let all = claims.replace(r#""table" = 't'"#, r#""table" LIKE 't'"#);
    assert_ne!(claims, all);
    let lab = Lab::new(pipeline);
    lab.write("claims.toml", &claims);
    lab.run();
    let some = judged(&lab, "60");
    lab.write("claims.toml", &all);
    assert_eq!(judged(&lab, "60"), some);
    assert!(
        some[0]["draws"]["holds"].as_u64().is_some_and(|n| n > 0),
        "{}",
        some[0]
    );
}
