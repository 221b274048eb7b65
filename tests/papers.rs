//! Every folder of `papers/` is whole: a pipeline whose profile `smoke` can be planned, claims that
//! can be read, and a README.

use std::path::Path;

use crate::lab::Lab;

#[test]
fn every_paper_has_a_pipeline_that_plans_claims_and_a_readme() {
    let papers = Path::new(env!("CARGO_MANIFEST_DIR")).join("papers");
    let entries = std::fs::read_dir(&papers).unwrap();
    let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    assert!(!folders.is_empty());
    let lab = Lab::demo();
    let store = lab.path("no-store");
    let mut wrong = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        for (file, what) in [
            (
                "pipeline.toml",
                "its stages, with the profiles smoke, cpu and paper",
            ),
            ("claims.toml", "what the paper claims, as queries"),
            (
                "README.md",
                "the paper's numbers beside ours, and what does not agree and why",
            ),
        ] {
            if !folder.join(file).is_file() {
                wrong.push(format!("papers/{name}/{file} is missing: write {what}"));
            }
        }
        let file = folder.join("pipeline.toml");
        let (file, store) = (file.to_str().unwrap(), store.to_str().unwrap());
        let smoke = ["-f", file, "--store", store, "--profile", "smoke"];
        for command in [&["plan"][..], &["claims", "--check"]] {
            let printed = lab.ablate(&[&smoke[..], command].concat());
            if printed.code != 0 {
                wrong.push(format!(
                    "papers/{name}: `ablate --profile smoke {}` fails:\n{}",
                    command.join(" "),
                    printed.stderr
                ));
            }
        }
    }
    assert!(!store.exists(), "a plan makes no store");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The profile `smoke` runs from nothing, its claims can be asked, a second run is cached, and the
/// report has all its figures.
#[test]
fn every_paper_runs_small() {
    let papers = Path::new(env!("CARGO_MANIFEST_DIR")).join("papers");
    for entry in std::fs::read_dir(&papers).unwrap() {
        let folder = entry.unwrap().path();
        let file = folder.join("pipeline.toml");
        if !file.is_file() {
            continue;
        }
        let lab = Lab::demo();
        let store = lab.path("store");
        let (file, store) = (file.to_str().unwrap(), store.to_str().unwrap());
        let smoke = ["-f", file, "--store", store, "--profile", "smoke"];
        let run = lab.ablate(&[&smoke[..], &["run"]].concat());
        assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
        crate::lock::is_as_committed(&lab, &smoke, &folder);
        let again = lab.ablate(&[&smoke[..], &["run"]].concat());
        assert!(!again.stdout.contains("ran  "), "{}", again.stdout);
        // A tenth of the draws: in a build for tests all of them take minutes.
        let few = ["claims", "--draws", "100"];
        let claims = lab.ablate(&[&smoke[..], &few].concat());
        assert_eq!(claims.code, 0, "{}", claims.stderr);
        let expected = "not run";
        assert!(
            claims.stdout.contains(expected),
            "no claim is judged on toys"
        );
        // Draws that fail would leave every claim of these results uncertain.
        assert!(
            !claims.stdout.contains("its draws could not be computed"),
            "{}",
            claims.stdout
        );
        // Every figure that is for this profile can be drawn, and toys are told from the paper.
        let report = lab.ablate(&[&smoke[..], &["report"]].concat()).good();
        // Only the warnings that toy data must give.
        let printed = |line: &&str| {
            let toys = ["the model predicts class", "nothing was learnt"];
            toys.iter().any(|words| line.contains(words)) || line.contains("are not graded yet")
        };
        let other: Vec<&str> = report
            .stderr
            .lines()
            .filter(|line| !printed(line))
            .collect();
        assert!(other.is_empty(), "{}: {other:?}", folder.display());
        let html = std::fs::read_to_string(lab.path("report.html")).unwrap();
        assert!(html.contains("Not the paper's data") && !html.contains("<td class=\"shade-"));
    }
}
