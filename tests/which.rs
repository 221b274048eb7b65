//! One rule for every command that reads results: the pipeline, profile and settings given now, and
//! a past run only if it is named.

use crate::lab::{CommandOutput, DEMO, Lab};

const CLAIMS: &str = r#"[claims]
tables = { t = "summary" }

[claim.small]
level = "must"
text = "The first total is small."
query = "SELECT total < 5 AS holds, total FROM t WHERE scale = 1"
"#;

/// What the first total is, according to each command that can be asked for it.
fn told(lab: &Lab, arguments: &[&str]) -> Vec<(&'static str, String)> {
    let run = |command: &[&str]| lab.ablate(&[command, arguments].concat()).good();
    lab.write("paper.md", "{{ablate:summary[scale=1].total}}");
    let after = |text: &str, mark: &str| {
        let rest = &text[text.find(mark).unwrap_or_else(|| panic!("{text}")) + mark.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].to_owned()
    };
    let show = run(&["show", "summary"]).stdout;
    let csv = run(&["export", "summary", "--csv"]).stdout;
    let claims = run(&["claims"]).stdout;
    let render = run(&["render", "paper.md"]).stdout;
    let audit = run(&["audit", "summary[scale=1].total"]).stdout;
    run(&["report"]);
    let report = std::fs::read_to_string(lab.path("report.html")).unwrap();
    let report = report.replace(char::is_whitespace, "");
    vec![
        ("show", after(&show, "| 1     | ")),
        ("export", after(&csv, "scale,total\n1,")),
        ("claims", after(&claims, "ours   total ")),
        ("render", render),
        ("audit", after(&audit, "cell     total = ")),
        ("report", after(&report, ">total</span>")),
    ]
}

#[track_caller]
fn all_tell(lab: &Lab, arguments: &[&str], total: &str) {
    for (command, found) in told(lab, arguments) {
        assert_eq!(found, total, "{command} {arguments:?}");
    }
}

fn lab() -> Lab {
    let lab = Lab::demo();
    lab.write("claims.toml", CLAIMS);
    lab
}

#[test]
fn every_command_shows_the_settings_of_now_or_the_run_that_is_named() {
    let lab = lab();
    let set = ["--set", "numbers.rows=[{x = 9}]"];
    lab.run_with(&["--tag", "base"]);
    lab.run_with(&set);
    // The newest run had other settings: nobody shows it unasked.
    all_tell(&lab, &[], "3");
    all_tell(&lab, &set, "9");
    all_tell(&lab, &["--run", "last"], "9");
    all_tell(&lab, &["--run", "prev"], "3");
    all_tell(&lab, &["--run", "base"], "3");
    all_tell(&lab, &["--run", "2"], "9");
    // What was never run is shown by nobody, whatever is in the store.
    lab.edit("{ x = 2 }", "{ x = 20 }");
    for command in [
        &["show", "summary"][..],
        &["export", "summary", "--csv"],
        &["report"],
        &["render", "paper.md"],
        &["audit", "summary"],
        &["export", "--openlineage"],
    ] {
        let printed = lab.ablate(command);
        assert_eq!(
            (printed.code, printed.stdout.as_str()),
            (2, ""),
            "{command:?}"
        );
    }
    let printed = lab.ablate(&["claims"]).good().stdout;
    assert!(
        printed.contains("why    `summary` has not been run\n"),
        "{printed}"
    );
    all_tell(&lab, &["--run", "base"], "3");
}

#[test]
fn a_past_run_is_named_on_standard_error() {
    let lab = lab();
    lab.run_with(&["--set", "numbers.rows=[{x = 9}]", "--tag", "nine"]);
    lab.run();
    let line = |printed: CommandOutput| {
        let line = printed.good().stderr;
        // The time is between two commas.
        let mut parts: Vec<&str> = line.trim_end().split(", ").collect();
        assert!(
            parts[1].starts_with("20") && parts[1].ends_with('Z'),
            "{line}"
        );
        parts.remove(1);
        parts.join(", ")
    };
    for command in [
        &["show", "summary"][..],
        &["export", "summary", "--csv"],
        &["export", "--openlineage"],
        &["report"],
        &["claims"],
        &["audit", "summary"],
    ] {
        assert_eq!(lab.ablate(command).good().stderr, "", "{command:?}");
        let named = lab.ablate(&[command, &["--run", "nine"]].concat());
        assert_eq!(
            line(named),
            "ablate: showing run 1 (tag nine), --set numbers.rows=[{x = 9}]",
            "{command:?}"
        );
    }
    let quiet = lab.ablate(&["show", "summary", "--run", "1", "-q"]).good();
    assert_eq!(quiet.stderr, "");
    // The older spelling still works, and says what it is called now.
    let printed = lab.ablate(&["claims", "2"]).good().stderr;
    assert!(
        printed.starts_with("ablate: a run is now named with `--run 2`\n"),
        "{printed}"
    );
}

/// Same stages, same profile, other numbers.
fn two_pipelines() -> Lab {
    let lab = lab();
    let other = DEMO
        .replace("name = \"demo\"", "name = \"other\"")
        .replace("{ x = 2 }", "{ x = 7 }");
    lab.write("other.toml", &other);
    lab
}

#[test]
fn pipelines_that_share_a_store_do_not_see_each_others_runs() {
    let lab = two_pipelines();
    let other = ["-f", "other.toml"];
    lab.run(); // 1
    lab.run_with(&other); // 2
    lab.run_with(&["--set", "numbers.rows=[{x = 9}]"]); // 3
    lab.run_with(&other); // 4
    all_tell(&lab, &[], "3");
    all_tell(&lab, &other, "8");
    all_tell(&lab, &["--run", "last"], "9");
    all_tell(&lab, &["--run", "prev"], "3");
    all_tell(&lab, &["-f", "other.toml", "--run", "prev"], "8");
    // Comparisons too, and names that are given.
    let ends = |arguments: &[&str], end: &str| {
        let printed = lab.ablate(arguments).good().stdout;
        assert!(
            printed.trim_end().ends_with(end),
            "{arguments:?}: {printed}"
        );
    };
    ends(&["diff"], "in runs 1 and 3");
    ends(&["compare"], "(ablate diff 1 3)");
    ends(
        &["diff", "-f", "other.toml"],
        "5 stages the same in runs 2 and 4",
    );
    ends(&["tag", "mine"], "mine: run 3");
    let stages = lab.ablate(&["runs", "last"]).good().stdout;
    assert!(
        stages.starts_with("run 3 of demo (pipeline.toml)"),
        "{stages}"
    );
    // By number, the other's run is shown as what it is.
    let printed = lab
        .ablate(&["export", "summary", "--csv", "--run", "4"])
        .good();
    assert!(printed.stdout.contains("\n1,8\n"), "{}", printed.stdout);
    let named = "ablate: showing run 4 of other.toml (`other`), ";
    assert!(printed.stderr.starts_with(named), "{}", printed.stderr);
    let printed = lab.ablate(&["claims", "--run", "4"]);
    assert_eq!(printed.code, 2);
    let why = "error: run 4 is of other.toml, not of pipeline.toml\n";
    assert!(printed.stderr.contains(why), "{}", printed.stderr);
    // A number of the other pipeline is not a stale one of ours.
    lab.write(
        "paper.md",
        "It is 8<!-- ablate:summary[scale=1].total -->.\n",
    );
    let printed = lab.ablate(&["lint", "paper.md"]).stdout;
    assert!(printed.contains("8 is wrong: "), "{printed}");
    // A pipeline without runs has none, whatever the store holds.
    lab.write(
        "third.toml",
        &DEMO.replace("name = \"demo\"", "name = \"third\""),
    );
    let printed = lab.ablate(&["-f", "third.toml", "report"]);
    assert_eq!(
        (printed.code, printed.stderr.lines().next()),
        (2, Some("error: the store has no run of `third.toml`"))
    );
}

#[test]
fn a_part_of_the_pipeline_that_was_run_later_hides_nothing() {
    let lab = lab();
    lab.run();
    lab.run_with(&["numbers"]);
    all_tell(&lab, &[], "3");
    // Edited and put back: the run of before is the present again.
    lab.edit("{ x = 2 }", "{ x = 20 }").run();
    all_tell(&lab, &[], "21");
    lab.edit("{ x = 20 }", "{ x = 2 }");
    all_tell(&lab, &[], "3");
}
