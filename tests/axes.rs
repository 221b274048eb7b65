//! Axes: multiplied, inherited, collected, selected.

use serde_json::json;

use crate::lab::Lab;

#[test]
fn readers_inherit_axes_and_two_axes_make_a_product() {
    let lab = Lab::new(include_str!("pipelines/two_axes.toml"));
    let ran = lab.run();
    assert_eq!(ran.printed.code, 0, "{}", ran.printed.stderr);
    assert_eq!(
        ran.with("ran"),
        [
            "all",
            "both[a=1,b=\"y z\"]",
            "both[a=1,b=x]",
            "both[a=2,b=\"y z\"]",
            "both[a=2,b=x]",
            "one[a=1]",
            "one[a=2]",
            "per_a[a=1]",
            "per_a[a=2]",
            "two[b=\"y z\"]",
            "two[b=x]",
        ]
    );
    // A lone ${a} keeps its type: v is a number.
    assert_eq!(lab.rows("one[a=2]"), [json!({ "v": 2 })]);
    assert_eq!(
        lab.rows("per_a[a=2]"),
        [
            json!({ "b": "x", "v": 2, "w": "x" }),
            json!({ "b": "y z", "v": 2, "w": "y z" })
        ]
    );
    assert_eq!(lab.rows("all").len(), 4);
    // Several instances are shown as one table with their axes.
    assert_eq!(
        lab.rows("one"),
        [json!({ "a": 1, "v": 1 }), json!({ "a": 2, "v": 2 })]
    );
}

const SELECT: &str = include_str!("pipelines/select_by_fold.toml");

#[test]
fn select_picks_the_best_instance_for_each_other_axis() {
    let lab = Lab::new(SELECT);
    let ran = lab.run();
    assert_eq!(ran.with("ran").len(), 6 + 6 + 2, "{}", ran.printed.stderr);
    assert_eq!(
        lab.rows("best[fold=1]"),
        [json!({ "fold": 1, "weight": 0.5 })]
    );
    assert_eq!(
        lab.rows("best[fold=2]"),
        [json!({ "fold": 2, "weight": 0.9 })]
    );
    // Another metric that picks the same instance changes nothing for the reader.
    lab.edit("ABS(weight - 0.4 * fold)", "ABS(weight - 0.41 * fold)");
    assert!(
        lab.run()
            .with("ran")
            .iter()
            .all(|stage| stage.starts_with("dev["))
    );
    // The other end picks another instance.
    lab.edit("best = \"min\"", "best = \"max\"")
        .run()
        .ran(["best[fold=1]", "best[fold=2]"]);
    assert_eq!(
        lab.rows("best[fold=1]"),
        [json!({ "fold": 1, "weight": 0.9 })]
    );
}

#[test]
fn a_metric_that_cannot_be_used_fails_the_stage_with_the_reason() {
    let lab = Lab::new(SELECT);
    lab.edit("column = \"loss\"", "column = \"lost\"");
    let ran = lab.run_with(&["--keep-going"]);
    assert_eq!(ran.printed.code, 1);
    assert_eq!(ran.with("failed"), ["best[fold=1]", "best[fold=2]"]);
    assert!(ran.printed.stderr.is_empty(), "errors are events in JSON");
    let error = ran
        .events
        .iter()
        .find(|event| event["status"] == "failed" && event["stage"] == "best[fold=1]")
        .unwrap();
    assert_eq!(
        error["error"],
        "`best[fold=1]` failed: the metric table `dev[lr=0.1,fold=1]` has no column `lost`: it has loss"
    );
}

#[test]
fn a_sweep_shares_what_does_not_depend_on_it() {
    let lab = Lab::new(SELECT);
    lab.run();
    lab.edit("lr = [0.1, 0.5, 0.9]", "lr = [0.5, 0.7]");
    let ran = lab.run();
    let stages = ran.with("ran");
    assert!(
        stages
            .iter()
            .all(|stage| stage.contains("lr=0.7") || stage.starts_with("best"))
    );
}

#[test]
fn numbers_of_an_axis_are_safe_in_queries_and_texts_in_commands() {
    let lab = Lab::new(include_str!("pipelines/axis_values_in_queries.toml"));
    let ran = lab.run();
    assert_eq!(ran.printed.code, 0, "{}", ran.printed.stderr);
    assert_eq!(lab.rows("b[i=-1]"), [json!({ "y": 11 })]);
    assert_eq!(lab.rows("b[i=2]"), [json!({ "y": 8 })]);
    let log = lab.ablate(&["show", "c[i=-1]", "--log"]).good().stdout;
    assert!(log.ends_with("\n-1 -1\n"), "{log}");
}
