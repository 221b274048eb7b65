//! Commands that messages suggest can be typed as they are: with the profile and the settings they are about.

use crate::lab::Lab;

#[test]
fn a_suggested_command_keeps_profile_and_settings() {
    let lab = Lab::demo();
    lab.write(
        "other.toml",
        &std::fs::read_to_string(lab.path("pipeline.toml")).unwrap(),
    );
    let last_line = |arguments: &[&str]| {
        let printed = lab.ablate(arguments);
        assert_eq!(printed.code, 2, "{}", printed.stderr);
        let line = printed.stderr.lines().last();
        line.unwrap_or_default().trim().to_owned()
    };
    lab.run_with(&["numbers"]);
    assert_eq!(
        last_line(&["show", "scaled[scale=2]"]),
        "= help: ablate run 'scaled[scale=2]'"
    );
    let setting = "numbers.rows=[{ x = 5 }]";
    let suggested = "= help: ablate run numbers -f other.toml --set 'numbers.rows=[{ x = 5 }]'";
    let suggested = suggested.replace("run numbers", "run 'numbers'");
    let arguments = ["show", "numbers", "-f", "other.toml", "--set", setting];
    assert_eq!(last_line(&arguments), suggested);
}

#[test]
fn quiet_claims_print_nothing() {
    let lab = Lab::new(include_str!("pipelines/claims.toml"));
    lab.write("claims.toml", include_str!("pipelines/claims.claims.toml"));
    lab.run();
    assert!(!lab.ablate(&["claims"]).stdout.is_empty());
    assert_eq!(lab.ablate(&["claims", "-q"]).stdout, "");
}

#[test]
fn a_challenge_that_compares_nothing_says_why() {
    let lab = Lab::demo();
    lab.run();
    let nowhere = lab.ablate(&["challenge", "nowhere"]);
    assert_eq!(nowhere.code, 1);
    assert!(
        nowhere
            .stderr
            .starts_with("error: `nowhere` does not exist\n"),
        "{}",
        nowhere.stderr
    );
    std::fs::create_dir(lab.path("empty")).unwrap();
    let empty = lab.ablate(&["challenge", "empty"]);
    assert!(
        empty
            .stderr
            .starts_with("error: `empty` is not a store, and has no folder `.ablate`\n"),
        "{}",
        empty.stderr
    );
    lab.ablate(&[
        "run",
        "numbers",
        "--store",
        "other",
        "--set",
        "numbers.rows=[{ x = 5 }]",
    ])
    .good();
    let apart = lab.ablate(&["challenge", "other", "--json"]);
    assert_eq!(apart.code, 1);
    assert!(
        apart.stderr.starts_with("nothing was compared"),
        "{}",
        apart.stderr
    );
}
