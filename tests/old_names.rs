//! Old names of parameters, inputs and values: accepted with a warning, and the same results under the same keys.

use crate::lab::Lab;

const NEW: &str = include_str!("pipelines/renamed.toml");

fn old() -> String {
    NEW.replace("victim =", "weights =")
        .replace("pad =", "fill =")
        .replace("\"correct\"", "\"right\"")
}

#[test]
fn old_names_find_the_results_of_new_ones() {
    let lab = Lab::new(NEW);
    assert_eq!(lab.ablate(&["run"]).stderr.matches("warning").count(), 0);
    lab.write("pipeline.toml", &old());
    let planned = lab.ablate(&["plan"]);
    assert!(
        planned.stdout.contains("5 cached, 0 to run"),
        "{}",
        planned.stdout
    );
    insta::assert_snapshot!(planned.stderr);
    assert_eq!(lab.ablate(&["plan", "-q"]).stderr, "");
}

#[test]
fn both_names_at_once_are_refused() {
    let both = NEW.replace(
        "victim = \"lstm\",",
        "victim = \"lstm\", weights = \"lstm\",",
    );
    let both = both.replace("pad = true", "pad = true\nfill = true");
    let printed = Lab::new(&both).ablate(&["plan"]);
    assert_eq!(printed.code, 2);
    insta::assert_snapshot!(printed.stderr);
}

/// Points and choices set keys by old names too: they mean the same, and are warned of.
#[test]
fn old_names_in_points_and_choices_set_the_new_keys() {
    let point = |key: &str, value: &str| {
        let stage = NEW.replace("pad = true\n", "");
        let stage = stage.replace("among = \"correct\"", "with = [\"who\"]");
        format!(
            "{stage}\n[axes.who]\ncorrect = {{ among = \"{value}\" }}\n\n[axes.filled]\nbase = {{}}\npadded = {{ \"tokens.{key}\" = true }}\n"
        )
    };
    let lab = Lab::new(&point("pad", "correct"));
    assert_eq!(
        lab.ablate(&["run"])
            .good()
            .stderr
            .matches("warning")
            .count(),
        0
    );
    lab.write("pipeline.toml", &point("fill", "right"));
    let planned = lab.ablate(&["plan"]);
    assert!(planned.stdout.contains(" 0 to run"), "{}", planned.stdout);
    insta::assert_snapshot!(planned.stderr);
}
