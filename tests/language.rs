//! The second edition of the pipeline language: points, axes in inputs, following inputs, except, like, pick,
//! ablations and choices. Errors are whole messages.

use serde_json::json;

use crate::lab::Lab;

const GRID: &str = include_str!("pipelines/grid.toml");

#[test]
fn points_set_keys_and_axes_choose_inputs() {
    let lab = Lab::new(GRID);
    let ran = lab.run();
    assert_eq!(ran.printed.code, 0, "{}", ran.printed.stderr);
    // Two tables by three points, less the one that is excluded.
    let rated = |row: &str| lab.rows(row);
    assert_eq!(
        rated("rated[table=big,how=twice]"),
        [json!({ "y": 20, "named": "twice" })]
    );
    assert_eq!(
        rated("rated[table=small,how=plain]"),
        [json!({ "y": 1, "named": "plain" })]
    );
    let labels = ran.with("ran");
    let count = |stage: &str| labels.iter().filter(|l| l.starts_with(stage)).count();
    assert_eq!(count("rated["), 5, "{labels:?}");
    // A reader that does not collect has the instances whose inputs exist; one that collects skips the rest.
    assert_eq!(count("again["), 5);
    assert_eq!(lab.rows("all").len(), 5);
    // The best of the three, picked once for all readers; the plan says which it is.
    assert_eq!(lab.rows("from-best"), [json!({ "y": 20 })]);
    let planned = lab.ablate(&["plan", "--wiring", "from-best"]).good().stdout;
    assert!(
        planned.contains("b <- again[table=big,how=twice], the best of 5\n"),
        "{planned}"
    );
    // What a point sets is not a default.
    let audit = lab.ablate(&["audit", "from-best", "--json"]).good().stdout;
    let audit: serde_json::Value = serde_json::from_str(&audit).unwrap();
    let steps = audit["steps"].as_array().unwrap();
    let step = |label: &str| steps.iter().find(|step| step["stage"] == label).unwrap();
    assert_eq!(step("rated[table=big,how=twice]")["defaults"], json!([]));
}

#[test]
fn a_stage_like_another_has_its_keys_after_settings() {
    let lab = Lab::new(GRID);
    lab.run_with(&["--set", "small.rows=[{ x = 7 }]"]);
    let shown = lab.ablate(&["show", "copy", "--json", "--set", "small.rows=[{ x = 7 }]"]);
    assert!(
        shown.stdout.contains(r#""head":[{"x":7}]"#),
        "{}",
        shown.stdout
    );
}

#[test]
fn overlays_keep_points_or_change_their_keys() {
    let lab = Lab::new(GRID);
    let planned = |set: &str| {
        let printed = lab.ablate(&["plan", "--json", "--set", set]);
        let rated = printed
            .stdout
            .lines()
            .filter(|l| l.starts_with(r#"{"stage":"rated["#));
        (printed.code, rated.count(), printed.stderr)
    };
    // Exclusions of points that were left out are no mistake.
    assert_eq!(planned("axes.how=[\"plain\"]").1, 2);
    let (code, count, stderr) = planned("axes.how.twice.query=SELECT 3 * x AS y FROM t");
    assert_eq!((code, count), (0, 5), "{stderr}");
    insta::assert_snapshot!(planned("axes.how=[\"plane\"]").2);
}

/// A stage and its readers do without a value of an axis that others have: fewer seeds where training is dear.
#[test]
fn a_value_may_be_taken_from_one_stage_alone() {
    let stage = |name: &str, times: usize, rest: &str| {
        format!(
            "[stage.{name}]\nkind = \"sql\"\ninputs = {{ t = \"t\" }}\nquery = \"SELECT {times} * ${{seed}} AS x FROM t\"\n{rest}"
        )
    };
    let text = format!(
        "[axes]\nseed = [1, 2, 3]\n{}{}[stage.dear-reader]\nkind = \"sql\"\ninputs = {{ t = \"dear\" }}\nquery = \"SELECT x FROM t\"\n\
         [stage.all]\nkind = \"sql\"\ninputs = {{ d = \"dear-reader\", c = \"cheap\" }}\nover = [\"seed\"]\n\
         query = \"SELECT COUNT(*) AS n, COUNT(d.x) AS m FROM c LEFT JOIN d ON c.seed = d.seed\"\n",
        stage("dear", 1, "except = [{ seed = [2, 3] }]\n"),
        stage("cheap", 10, ""),
    );
    let lab = Lab::new(&with_t(&text));
    let labels = lab.run().with("ran");
    let of = |name: &str| {
        labels
            .iter()
            .filter(|l| l.starts_with(&format!("{name}[")))
            .count()
    };
    assert_eq!((of("dear"), of("dear-reader"), of("cheap")), (1, 1, 3));
    assert_eq!(lab.rows("all"), [json!({ "n": 3, "m": 1 })]);
}

const ABLATION: &str = include_str!("pipelines/ablation.toml");

#[test]
fn variants_share_what_they_do_not_touch_and_results_are_never_mixed() {
    let lab = Lab::new(ABLATION);
    let ran = lab.run();
    assert_eq!(ran.printed.code, 0, "{}", ran.printed.stderr);
    let labels = ran.with("ran");
    // One execution for each distinct key: the variant `same` changes nothing, and the other table is shared.
    let rows = lab.rows("results[variant=more]");
    assert_eq!(rows.len(), lab.rows("results[variant=base]").len());
    assert!(
        !labels.iter().any(|l| l.starts_with("other[")),
        "{labels:?}"
    );
    // Without a variant the base is meant.
    assert_eq!(lab.rows("results"), lab.rows("results[variant=base]"));
    let printed = lab.ablate(&["ablation", "--json"]).good();
    let found: serde_json::Value = serde_json::from_str(printed.stdout.trim()).unwrap();
    assert_eq!(found["variants"][1]["name"], "more");
    let number = &found["numbers"][0];
    assert_eq!(number["values"][0]["mean"], json!(2.0));
    assert_eq!(number["values"][1]["difference"], json!(3.0));
    assert_eq!(found["variants"][2]["same_as_base"], json!(true));
    insta::assert_snapshot!(lab.ablate(&["ablation", "--markdown"]).good().stdout);
}

#[test]
fn choices_are_worlds_of_their_own() {
    let lab = Lab::new(include_str!("pipelines/choices.toml"));
    lab.write(
        "claims.toml",
        "[claims]\ntables = { t = \"t\" }\n[claim.small]\nlevel = \"must\"\ntext = \"x is small.\"\nquery = \"SELECT x < 5 AS holds, x FROM t\"\n",
    );
    let printed = lab.ablate(&["multiverse", "--quiet", "--write", "worlds.json"]);
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    insta::assert_snapshot!(printed.stdout);
    let written = std::fs::read_to_string(lab.path("worlds.json")).unwrap();
    insta::assert_snapshot!("worlds_in_a_file", written);
    let claims = lab.ablate(&["claims"]).good().stdout;
    assert!(
        claims.contains("agrees in 2 of 3 worlds; turns with large"),
        "{claims}"
    );
    // One of the worlds by itself.
    let large = ["claims", "--set", "choices.large=true"];
    let claims = lab.ablate(&large).good().stdout;
    assert!(claims.starts_with("not reproduced"), "{claims}");
    assert!(!claims.contains("worlds"), "{claims}");
    let twice = lab.ablate(&["multiverse", "--set", "choices.large=true"]);
    assert_eq!(twice.code, 2);
    insta::assert_snapshot!("a_choice_beside_all_of_them", twice.stderr);
}

/// The values of another axis are replicates: numbers along it have an interval.
#[test]
fn replicates_may_have_another_axis() {
    let lab = Lab::new(include_str!("pipelines/replicates.toml"));
    lab.run().printed.good();
    let shown = lab.ablate(&["show", "results"]).good().stdout;
    let shown: Vec<&str> = shown
        .lines()
        .filter(|line| !line.contains("file "))
        .collect();
    insta::assert_snapshot!("replicates", shown.join("\n"));
}

/// Two results are compared item by item, each seed beside its own.
#[test]
fn two_classifiers_are_compared_item_by_item() {
    let lab = Lab::new(include_str!("pipelines/items.toml"));
    lab.run().printed.good();
    let printed = lab.ablate(&["compare", "answers[model=a]", "answers[model=b]"]);
    insta::assert_snapshot!("items_compared", printed.good().stdout);
    let json = lab.ablate(&[
        "compare",
        "answers[model=a,seed=1]",
        "answers[model=b,seed=1]",
        "--json",
    ]);
    let found: serde_json::Value = serde_json::from_str(&json.good().stdout).unwrap();
    assert_eq!(found["columns"][0]["mcnemar"]["only_first"], 4);
    let without = lab.ablate(&["compare", "answers[model=a]", "t"]);
    insta::assert_snapshot!("items_that_tell_nothing", without.stderr);
    let misspelt = lab.ablate(&["compare", "answers[model=a]", "answer[model=b]"]);
    insta::assert_snapshot!("items_of_a_misspelt_stage", misspelt.stderr);
    let page = lab.ablate(&["compare", "answers", "answers", "--html"]);
    insta::assert_snapshot!("items_as_a_page", page.stderr);
    let many = lab.ablate(&["compare", "t", "answers"]);
    insta::assert_snapshot!("items_of_several_instances", many.stderr);
}

/// A choice may change one point of an axis; the others keep their keys.
#[test]
fn a_choice_changes_one_point() {
    let lab = Lab::new(include_str!("pipelines/choices_of_points.toml"));
    lab.run().printed.good();
    let taken = ["--set", "choices.huge=true"];
    let plan = lab.ablate(&[&["plan"][..], &taken].concat()).good().stdout;
    assert!(plan.contains("cached    q[size=small]"), "{plan}");
    assert!(plan.contains("will run  q[size=large]"), "{plan}");
    lab.ablate(&[&["run"][..], &taken].concat()).good();
    let shown = lab.ablate(&[&["show", "q[size=large]", "--json"][..], &taken].concat());
    assert!(shown.good().stdout.contains("100"));
}

/// Rows, vectors and vocabulary of an attack are those of its victim, also through a pick; what is written wins.
#[test]
fn inputs_follow_the_victim() {
    let lab = Lab::new(include_str!("pipelines/following.toml"));
    let printed = lab
        .ablate(&["plan", "--wiring", "attacked", "by-hand"])
        .good();
    insta::assert_snapshot!(printed.stdout);
    // However an input came to be connected, the key is the same.
    let digests = lab.run().printed;
    assert_eq!(digests.code, 0, "{}", digests.stderr);
    let same = lab.ablate(&["explain", "by-hand", "--json"]).good().stdout;
    let key = |stage: &str| {
        let printed = lab.ablate(&["show", stage, "--json"]).good().stdout;
        let shown: serde_json::Value = serde_json::from_str(&printed).unwrap();
        shown["artifacts"][0]["key"].clone()
    };
    assert_eq!(
        key("attacked[model=nb,adversary=swap]"),
        key("by-hand"),
        "{same}"
    );
}

/// What an overlay leaves out is not missed: an ablation without its variants, an input that only those points read.
#[test]
fn points_that_are_left_out_are_not_missed() {
    let lab = Lab::new(ABLATION);
    let planned = lab.ablate(&["plan", "--set", "axes.variant=[\"base\"]"]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    assert!(planned.stdout.contains(" results: "), "{}", planned.stdout);
    let lab = Lab::new(include_str!("pipelines/following.toml"));
    let planned = lab.ablate(&["plan", "--set", "axes.adversary=[\"none\"]"]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
}

/// Copies of what draws no random numbers are executed once, and count once, also in one table with others.
#[test]
fn copies_along_seeds_are_one_execution() {
    let lab = Lab::new(include_str!("pipelines/executions.toml"));
    let ran = lab.run();
    let labels = ran.with("ran");
    let count = |stage: &str| labels.iter().filter(|l| l.starts_with(stage)).count();
    assert_eq!((count("nb["), count("svm[")), (1, 3), "{labels:?}");
    let printed = lab.ablate(&["show", "results", "--json"]).good().stdout;
    let shown: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let cell = |row: &str| {
        let cells = shown["cells"].as_array().unwrap();
        let cell = cells.iter().find(|cell| cell["row"] == row).unwrap();
        (
            cell["executions"].clone(),
            cell["interval"]["method"].clone(),
        )
    };
    assert_eq!(cell("nb"), (json!(1), json!("wilson")), "{printed}");
    assert_eq!(cell("svm"), (json!(3), json!("student-t")), "{printed}");
    // A recorded run tells the same of its numbers.
    let past = lab.ablate(&["show", "results", "--run", "last", "--json"]);
    let past: serde_json::Value = serde_json::from_str(&past.good().stdout).unwrap();
    assert_eq!(past["cells"], shown["cells"]);
    // A claim about both rests on the three executions of the one that draws random numbers.
    lab.write(
        "claims.toml",
        include_str!("pipelines/executions.claims.toml"),
    );
    let printed = lab
        .ablate(&["claims", "--json", "--draws", "100"])
        .good()
        .stdout;
    let judged: serde_json::Value = serde_json::from_str(printed.trim()).unwrap();
    assert_eq!(judged["executions"], json!(3), "{printed}");
}

/// The message for a pipeline that cannot be planned.
#[track_caller]
fn wrong(pipeline: &str, arguments: &[&str]) -> String {
    let lab = Lab::new(pipeline.trim_start());
    let printed = lab.ablate(&[&["plan"], arguments].concat());
    assert_eq!(printed.code, 2, "{}\n{}", printed.stdout, printed.stderr);
    printed.stderr
}

macro_rules! case {
    ($name:ident, $pipeline:expr) => {
        case!($name, $pipeline, &[]);
    };
    ($name:ident, $pipeline:expr, $arguments:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(wrong($pipeline, $arguments));
        }
    };
}

const T: &str = "[stage.t]\nkind = \"table\"\nrows = [{ x = 1 }]\n";

fn with_t(rest: &str) -> String {
    format!("{T}{rest}")
}

case!(
    an_axis_value_that_names_no_stage,
    &with_t(
        "[axes]\nv = [\"t\", \"tt\"]\n[stage.q]\nkind = \"sql\"\ninputs = { i = \"${v}\" }\nquery = \"SELECT * FROM i\"\n"
    )
);
case!(
    an_unknown_key_in_a_point,
    "[axes.p]\na = { row = [{ x = 1 }] }\n[stage.q]\nkind = \"table\"\nwith = [\"p\"]\n"
);
case!(
    an_ablation_without_a_base,
    &with_t("[axes.p]\na = { \"t.rows\" = [{ x = 2 }] }\n")
);
case!(
    an_ablation_with_two_bases,
    &with_t("[axes.p]\nbase = {}\na = { \"t.rows\" = [{ x = 2 }] }\nsame = {}\n")
);
case!(
    a_dotted_key_of_no_stage,
    &with_t("[axes.p]\nbase = {}\na = { \"tt.rows\" = [{ x = 2 }] }\n")
);
case!(
    an_exclusion_that_matches_nothing,
    &with_t(
        "[axes]\na = [1, 2]\nb = [1, 2]\n[stage.q]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT ${a} AS a FROM t\"\nexcept = [{ b = 1 }]\n[stage.r]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT ${b} AS b FROM t\"\n"
    )
);
case!(
    an_exclusion_that_leaves_nothing_of_a_value,
    &with_t(
        "[axes]\na = [1, 2]\n[stage.q]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT ${a} AS a FROM t\"\nexcept = [{ a = 1 }]\n"
    )
);
case!(
    an_exclusion_of_combinations_that_leaves_nothing_of_a_value,
    &with_t(
        "[axes]\na = [1, 2]\nb = [1, 2]\n[stage.q]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT ${a} + ${b} AS a FROM t\"\nexcept = [{ a = 1, b = [1, 2] }]\n[stage.r]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT ${a} AS a FROM t\"\n"
    )
);
case!(
    an_exclusion_of_an_unknown_value,
    &with_t(
        "[axes]\na = [1, 2]\n[stage.q]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT ${a} AS a FROM t\"\nexcept = [{ a = 3 }]\n"
    )
);
case!(
    two_axes_that_set_one_key,
    "[axes.p]\na = { rows = [{ x = 1 }] }\n[axes.r]\nb = { rows = [{ x = 2 }] }\n[stage.q]\nkind = \"table\"\nwith = [\"p\", \"r\"]\n"
);
case!(
    a_setting_that_every_point_overrides,
    "[axes.p]\na = { rows = [{ x = 1 }] }\nb = { rows = [{ x = 2 }] }\n[stage.q]\nkind = \"table\"\nwith = [\"p\"]\n",
    &["--set", "q.rows=[{ x = 3 }]"]
);
case!(
    like_in_a_cycle,
    "[stage.a]\nlike = \"b\"\n[stage.b]\nlike = \"a\"\n"
);
case!(like_of_no_stage, &with_t("[stage.a]\nlike = \"tt\"\n"));
case!(
    with_of_plain_values,
    &with_t(
        "[axes]\na = [1, 2]\n[stage.q]\nkind = \"table\"\nwith = [\"a\"]\nrows = [{ x = 1 }]\n"
    )
);
case!(
    a_pick_without_select,
    &with_t("[stage.best]\npick = \"t\"\n")
);
case!(
    an_evaluation_that_collects_an_ablation,
    &with_t(
        "[axes.p]\nbase = {}\na = { \"t.rows\" = [{ x = 2 }] }\n[stage.e]\nkind = \"evaluate\"\ninputs = { t = \"t\" }\nover = [\"p\"]\ncells = [{ from = \"t\", metric = \"x\", table = \"t\", row = \"r\", col = \"c\" }]\n"
    )
);
case!(
    an_unknown_choice,
    &with_t("[choices]\nlarge = { \"t.rows\" = [{ x = 9 }] }\n"),
    &["--set", "choices.larg=true"]
);
case!(
    a_key_of_a_point_that_no_stage_takes,
    &with_t("[axes.p]\nbase = {}\na = { \"t.rows\" = [{ x = 2 }], columns = 3 }\n")
);
case!(
    a_change_of_a_stage_that_picks,
    &with_t(
        "[axes]\nk = [1, 2]\n[axes.p]\nbase = {}\na = { \"best.rows\" = [{ x = 2 }] }\n[stage.q]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT ${k} AS x FROM t\"\n[stage.best]\npick = \"q\"\nselect = { over = [\"k\"], metric = \"q\", column = \"x\", best = \"max\" }\n[stage.r]\nkind = \"sql\"\ninputs = { b = \"best\" }\nquery = \"SELECT * FROM b\"\n"
    )
);
case!(
    a_where_of_an_unknown_column_of_examples,
    &format!(
        "{}[stage.e]\nkind = \"evaluate\"\ncells = [{{ from = \"attacked\", where = {{ adversay = \"none\" }}, metric = \"accuracy\", table = \"t\", row = \"{{model}}\", col = \"{{adversary}}\" }}]\n",
        include_str!("pipelines/following.toml")
    )
);
case!(
    an_input_that_no_instance_reads,
    include_str!("pipelines/unread_input.toml")
);
case!(
    a_where_that_no_row_meets,
    &with_t(
        "[axes]\na = [\"u\", \"v\"]\n[stage.q]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT x, '${a}' AS b FROM t\"\n[stage.e]\nkind = \"evaluate\"\ncells = [{ from = \"q\", where = { a = \"w\" }, metric = \"x\", table = \"t\", row = \"r\", col = \"c\" }]\n"
    )
);
case!(
    profiles_that_are_like_each_other,
    &with_t("[profile.a]\nlike = \"b\"\n[profile.b]\nlike = \"a\"\n"),
    &["--profile", "a"]
);
case!(
    a_point_that_a_setting_keeps_twice,
    "[axes.p]\na = { rows = [{ x = 1 }] }\nb = { rows = [{ x = 2 }] }\n[stage.q]\nkind = \"table\"\nwith = [\"p\"]\n",
    &["--set", "axes.p=[\"a\", \"a\"]"]
);
case!(
    an_exclusion_that_is_listed_twice,
    &with_t(
        "[axes]\na = [1, 2]\nb = [1, 2]\n[stage.q]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT ${a} AS a, ${b} AS b FROM t\"\nexcept = [{ a = 1, b = 1 }, { a = 1, b = 1 }]\n"
    )
);
case!(
    a_setting_that_a_choice_overrides,
    &with_t("[choices]\nlarge = { \"t.rows\" = [{ x = 9 }] }\n"),
    &["--set", "t.rows=[{ x = 3 }]", "--set", "choices.large=true"]
);
case!(
    replicates_along_no_axis,
    &with_t(
        "[pipeline]\nreplicates = \"fodl\"\n[axes]\nfold = [1, 2]\n[stage.q]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT '${fold}' AS x FROM t\"\n"
    )
);
case!(
    replicates_that_are_not_numbers,
    &with_t(
        "[pipeline]\nreplicates = \"fold\"\n[axes]\nfold = [\"a\", \"b\"]\n[stage.q]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT '${fold}' AS x FROM t\"\n"
    )
);
case!(
    replicates_beside_seeds,
    &with_t(
        "[pipeline]\nreplicates = \"fold\"\n[axes]\nfold = [1, 2]\nseed = [1, 2]\n[stage.q]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT '${fold}' AS x FROM t\"\n"
    )
);
case!(
    a_choice_of_a_misspelt_point,
    &with_t(
        "[axes.p]\na = { rows = [{ x = 2 }] }\nb = { rows = [{ x = 3 }] }\n[stage.u]\nkind = \"table\"\nwith = [\"p\"]\n[choices]\nc = { \"axes.p.c.rows\" = [{ x = 4 }] }\n"
    )
);
case!(
    a_choice_of_a_misspelt_axis,
    &with_t(
        "[axes.p]\na = { rows = [{ x = 2 }] }\nb = { rows = [{ x = 3 }] }\n[stage.u]\nkind = \"table\"\nwith = [\"p\"]\n[choices]\nc = { \"axes.pp.a.rows\" = [{ x = 4 }] }\n"
    )
);
case!(
    a_choice_of_a_whole_axis,
    &with_t(
        "[axes.p]\na = { rows = [{ x = 2 }] }\nb = { rows = [{ x = 3 }] }\n[stage.u]\nkind = \"table\"\nwith = [\"p\"]\n[choices]\nc = { axes.p = [\"a\"] }\n"
    )
);
case!(
    a_choice_of_an_unknown_key_of_a_point,
    &with_t(
        "[axes.p]\na = { rows = [{ x = 2 }] }\nb = { rows = [{ x = 3 }] }\n[stage.u]\nkind = \"table\"\nwith = [\"p\"]\n[choices]\nc = { axes.p.a.row = 4 }\n"
    ),
    &["--set", "choices.c=true"]
);
case!(
    a_setting_that_a_choice_of_a_point_overrides,
    &with_t(
        "[axes.p]\na = { rows = [{ x = 2 }] }\nb = { rows = [{ x = 3 }] }\n[stage.u]\nkind = \"table\"\nwith = [\"p\"]\n[choices]\nc = { axes.p.a.rows = [{ x = 4 }] }\n"
    ),
    &[
        "--set",
        "axes.p.a.rows=[{ x = 5 }]",
        "--set",
        "choices.c=true"
    ]
);
case!(
    a_choice_of_a_point_that_is_left_out,
    &with_t(
        "[axes.p]\na = { rows = [{ x = 2 }] }\nb = { rows = [{ x = 3 }] }\n[stage.u]\nkind = \"table\"\nwith = [\"p\"]\n[choices]\nc = { axes.p.a.rows = [{ x = 4 }] }\n"
    ),
    &["--set", "axes.p=[\"b\"]", "--set", "choices.c=true"]
);
case!(
    two_choices_of_one_key,
    &with_t(
        "[choices]\nlarge = { \"t.rows\" = [{ x = 9 }] }\nsmall = { \"t.rows\" = [{ x = 1 }] }\n"
    ),
    &["--set", "choices.large=true", "--set", "choices.small=true"]
);
case!(
    an_exclusion_of_an_empty_list,
    &with_t(
        "[axes]\na = [1, 2]\n[stage.q]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT ${a} AS a FROM t\"\nexcept = [{ a = [] }]\n"
    )
);
case!(
    an_exclusion_that_another_covers,
    &with_t(
        "[axes]\na = [1, 2]\nb = [1, 2]\n[stage.q]\nkind = \"sql\"\ninputs = { t = \"t\" }\nquery = \"SELECT ${a} AS a, ${b} AS b FROM t\"\nexcept = [{ a = 1, b = [1, 2] }, { a = 1, b = 2 }]\n"
    )
);
case!(
    a_choice_that_cannot_be_taken,
    &with_t("[choices]\nlarge = { \"t.rows\" = 9 }\n")
);
case!(
    a_cell_from_a_misspelt_stage,
    &with_t(
        "[stage.e]\nkind = \"evaluate\"\ncells = [{ from = \"tt\", metric = \"x\", table = \"t\", row = \"r\", col = \"c\" }]\n"
    )
);
case!(
    resources_that_do_not_exist,
    "[stage.t]\nkind = \"table\"\nrows = [{ x = 1 }]\nresources = { cpu = 2, memory = 4 }\n"
);
case!(
    resources_of_no_size,
    "[stage.t]\nkind = \"table\"\nrows = [{ x = 1 }]\nresources = { cpus = 0, memory = \"much\" }\n"
);
