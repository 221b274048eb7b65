//! gc, fsck, tags, history.

use serde_json::Value;

use crate::lab::Lab;

#[test]
fn gc_says_what_goes_and_keeps_recent_and_tagged_runs() {
    let lab = Lab::demo();
    lab.run_with(&["--tag", "paper"]);
    lab.edit("{ x = 2 }", "{ x = 20 }").run();
    lab.edit("{ x = 20 }", "{ x = 30 }").run();
    let before = lab.files("objects").len();

    let dry = lab
        .ablate(&["gc", "--keep", "1", "--dry-run", "--json"])
        .good();
    assert_eq!(
        lab.files("objects").len(),
        before,
        "a dry run removes nothing"
    );
    let dry: Value = serde_json::from_str(&dry.stdout).unwrap();
    let wet = lab.ablate(&["gc", "--keep", "1", "--json"]).good();
    let wet: Value = serde_json::from_str(&wet.stdout).unwrap();
    assert_eq!(dry["removed"], wet["removed"], "it does what it printed");
    let removed = wet["removed"].as_array().unwrap().len();
    assert!(removed > 0);
    assert_eq!(lab.files("objects").len(), before - removed);

    lab.run().ran([]); // the last run is whole
    lab.edit("{ x = 30 }", "{ x = 2 }").run().ran([]); // and so is the tagged one
    lab.edit("{ x = 2 }", "{ x = 20 }");
    // The one between is gone, and comes back: four executions make its five results, because
    // scaled[scale=1] has the same bytes as numbers, and so is whole again with it.
    assert_eq!(lab.run().done()["ran"], 4);
}

#[test]
fn gc_refuses_while_a_run_is_going_on() {
    let lab = Lab::new(
        "[stage.slow]\nkind = \"command\"\nrun = [\"sleep\", \"20\"]\noutputs = [\"o\"]\n",
    );
    let mut child = lab.start(&[]);
    crate::daemons::wait_until(|| crate::schedule::running_children(child.id()) > 0);
    let printed = lab.ablate(&["gc"]);
    crate::schedule::signal(child.id(), "INT");
    child.wait().unwrap();
    assert_eq!(printed.code, 1);
    assert_eq!(
        printed.stderr,
        "error: the store `.ablate` is in use by a run or another command: \
         wait until it has ended, then try again\n"
    );
}

#[test]
fn history_and_differences() {
    let lab = Lab::demo();
    lab.run();
    lab.run_with(&[
        "--set",
        "summary.query=SELECT scale, MAX(x) AS total FROM t GROUP BY scale ORDER BY scale",
    ]);
    let diff = lab.ablate(&["diff", "1", "2"]).good().stdout;
    assert_eq!(
        redact(&diff),
        "summary\n  \
         params.query was \"SELECT scale, SUM(x) AS total FROM t GROUP BY scale ORDER BY scale\", \
         now \"SELECT scale, MAX(x) AS total FROM t GROUP BY scale ORDER BY scale\"\n  \
         rows: [digest] -> [digest], 3 of 3 rows differ\n    \
         row 0 total: 3 -> 2\n    row 1 total: 6 -> 4\n    row 2 total: 9 -> 6\n\
         ablate: 4 stages the same in runs 1 and 2\n"
    );
    lab.ablate(&["tag", "base", "1"]).good();
    assert_eq!(lab.ablate(&["diff", "base", "last"]).good().stdout, diff);
    let wrong = lab.ablate(&["diff", "7", "last"]);
    assert_eq!(wrong.code, 2);
    assert_eq!(
        wrong.stderr,
        "error: no run `7`\n |\n = help: `ablate runs` lists them; a run is named by number, tag, `last` or `prev`\n"
    );
}

/// Digests and times differ between machines and runs.
pub fn redact(text: &str) -> String {
    let words = text.split_inclusive([' ', '\n', ',']);
    words
        .map(|word| {
            let core = word.trim_end_matches([' ', '\n', ',']);
            let hex = core.len() >= 12 && core.chars().all(|c| c.is_ascii_hexdigit());
            match hex {
                true => word.replace(core, "[digest]"),
                false => word.to_owned(),
            }
        })
        .collect()
}

#[test]
fn nothing_of_the_environment_is_stored() {
    let lab = Lab::new(
        "[stage.c]\nkind = \"command\"\nrun = [\"sh\", \"-c\", \"env; exit 1\"]\noutputs = [\"o\"]\n",
    );
    let secret = "s3cr3t-in-the-environment";
    let output = lab
        .command(&["run"])
        .env("MY_TOKEN", secret)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = lab.ablate(&["show", "c", "--log"]).good().stdout;
    assert!(log.contains("ABLATE_OUT="), "{log}");
    for file in ["provenance.db", "provenance.db-wal"] {
        let bytes = std::fs::read(lab.path(".ablate").join(file)).unwrap_or_default();
        assert!(
            !bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes())
        );
    }
}

#[test]
fn completions_are_scripts() {
    let lab = Lab::demo();
    for (shell, word) in [
        ("bash", "complete"),
        ("zsh", "compdef"),
        ("fish", "complete -c ablate"),
    ] {
        assert!(
            lab.ablate(&["completions", shell])
                .good()
                .stdout
                .contains(word),
            "{shell}"
        );
    }
}

#[test]
fn help_fits_a_screen() {
    let lab = Lab::demo();
    let help = lab.ablate(&["--help"]).good().stdout;
    assert!(help.lines().count() <= 50, "{} lines", help.lines().count());
    assert!(help.contains("Examples:") && help.contains("Exit codes:"));
}
