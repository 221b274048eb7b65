//! What runs again and what does not.

use crate::lab::{DEMO, Lab};

const ALL: [&str; 5] = [
    "numbers",
    "scaled[scale=1]",
    "scaled[scale=2]",
    "scaled[scale=3]",
    "summary",
];

#[test]
fn a_second_run_does_nothing() {
    let lab = Lab::demo();
    lab.run().ran(ALL);
    let again = lab.run();
    again.ran([]);
    assert_eq!(again.done()["hits"], 5);
    assert_eq!(
        lab.ablate(&["run"]).good().stdout,
        "ablate: all 5 stages cached\n"
    );
}

#[test]
fn an_edited_line_reruns_what_it_changes_and_reverting_it_reruns_nothing() {
    let lab = Lab::demo();
    lab.run().ran(ALL);
    lab.edit("SUM(x) AS total", "MAX(x) AS total")
        .run()
        .ran(["summary"]);
    lab.edit("MAX(x) AS total", "SUM(x) AS total").run().ran([]);
    lab.edit("{ x = 2 }", "{ x = 4 }").run().ran(ALL);
    lab.edit("{ x = 4 }", "{ x = 2 }").run().ran([]);
}

#[test]
fn a_new_axis_value_runs_alone_with_what_collects_it() {
    let lab = Lab::demo();
    lab.run().ran(ALL);
    lab.edit("[1, 2, 3]", "[1, 2, 3, 4]")
        .run()
        .ran(["scaled[scale=4]", "summary"]);
    lab.edit("[1, 2, 3, 4]", "[1, 2, 3]").run().ran([]);
}

#[test]
fn same_bytes_stop_the_cascade() {
    let lab = Lab::demo();
    lab.run().ran(ALL);
    // Another query, the same rows.
    lab.edit("SELECT x * ${scale} AS x", "SELECT ${scale} * x AS x");
    lab.run()
        .ran(["scaled[scale=1]", "scaled[scale=2]", "scaled[scale=3]"]);
}

#[test]
fn layout_comments_and_names_are_not_in_the_key() {
    let lab = Lab::demo();
    let before = lab.run();
    // Other names for stages, other order, spacing, comments, key order, pipeline name.
    lab.write(
        "pipeline.toml",
        r#"
        # The same again.
        [stage.total]
        query = "SELECT scale, SUM(x) AS total FROM t GROUP BY scale ORDER BY scale"
        over = ['scale']
        inputs.t = "multiplied.rows"
        kind = 'sql'

        [stage.multiplied]
        query = """SELECT x * ${scale} AS x FROM t"""
        kind = "sql"
        inputs = {t="base"}

        [stage]
        base = { rows = [ {x=1}, { x = 0x2 } ], kind = "table" }

        [axes]
        scale = [
            1,
            2,   # two
            3,
        ]

        [pipeline]
        seed = 8
        name = "other"
        "#,
    );
    let after = lab.run();
    after.ran([]);
    for (old, new) in [
        ("numbers", "base"),
        ("scaled[scale=2]", "multiplied[scale=2]"),
        ("summary", "total"),
    ] {
        assert_eq!(before.key(old), after.key(new));
    }
}

#[test]
fn an_axis_of_another_name_is_another_input_only_where_it_becomes_a_column() {
    let lab = Lab::demo();
    lab.run();
    lab.edit("scale = [1, 2, 3]", "factor = [1, 2, 3]")
        .edit("${scale}", "${factor}")
        .edit("over = [\"scale\"]", "over = [\"factor\"]")
        .edit(
            "SELECT scale, SUM(x) AS total FROM t GROUP BY scale ORDER BY scale",
            "SELECT factor AS scale, SUM(x) AS total FROM t GROUP BY factor ORDER BY factor",
        );
    lab.run().ran(["summary"]);
}

#[test]
fn keys_and_digests_are_the_same_on_any_number_of_threads_and_in_any_folder() {
    let one = Lab::demo();
    let keys = |ran: &crate::lab::Ran| ALL.map(|stage| ran.key(stage));
    let first = one.run_with(&["--jobs", "1"]);
    let many = Lab::demo();
    let second = many.run_with(&["--jobs", "8"]);
    assert_eq!(keys(&first), keys(&second));
    assert_eq!(one.digests(), many.digests());
    assert_eq!(one.digests().len(), 5);
}

#[test]
fn a_profile_and_a_setting_change_values_without_editing_the_file() {
    let lab = Lab::new(&format!(
        "{DEMO}\n[profile.smoke.stage.numbers]\nrows = [{{ x = 9 }}]\n"
    ));
    lab.run().ran(ALL);
    lab.run_with(&["--profile", "smoke"]).ran(ALL);
    assert_eq!(lab.run().with("hit").len(), 5);
    lab.run_with(&["--set", "numbers.rows=[{ x = 9 }]"]).ran([]);
    lab.run_with(&["--set", "axes.scale=[5]"])
        .ran(["scaled[scale=5]", "summary"]);
    lab.run_with(&["--set", "summary.query=SELECT COUNT(*) AS n FROM t"])
        .ran(["summary"]);
}

#[test]
fn targets_run_what_they_read_and_nothing_else() {
    let lab = Lab::demo();
    lab.run_with(&["scaled[scale=2]"])
        .ran(["numbers", "scaled[scale=2]"]);
    lab.run_with(&["scaled"])
        .ran(["scaled[scale=1]", "scaled[scale=3]"]);
    lab.run_with(&["summary"]).ran(["summary"]);
}

#[test]
fn stages_with_one_key_are_executed_once() {
    let lab = Lab::new(include_str!("pipelines/one_key.toml"));
    let ran = lab.run();
    assert_eq!(ran.done()["ran"], 2);
    assert_eq!(ran.done()["hits"], 1);
}

#[test]
fn a_seed_reruns_seeded_kinds_only() {
    let lab = Lab::new(include_str!("pipelines/seeded_kinds.toml"));
    lab.run().ran(["t", "c"]);
    lab.edit("seed = 7", "seed = 8").run().ran(["c"]);
    assert!(
        lab.ablate(&["show", "c", "--log"])
            .good()
            .stdout
            .contains("seed 8")
    );
}

/// As after an update of the program: what the store holds was made by other code.
#[test]
fn changed_code_of_a_kind_reruns_its_stages_and_not_their_readers() {
    let lab = Lab::new(&format!(
        "{DEMO}
        [stage.copy]
        kind = \"command\"
        inputs = {{ t = \"summary\" }}
        run = [\"sh\", \"-c\", \"cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\"]
        outputs = [\"o\"]"
    ));
    lab.run();
    let db = rusqlite::Connection::open(lab.path(".ablate/provenance.db")).unwrap();
    let mut keys = Vec::new();
    let mut query = db
        .prepare("SELECT id, key_json FROM executions WHERE kind = 'sql'")
        .unwrap();
    let mut rows = query.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        keys.push((
            row.get::<_, i64>(0).unwrap(),
            row.get::<_, String>(1).unwrap(),
        ));
    }
    for (id, key) in &keys {
        let mut key: serde_json::Value = serde_json::from_str(key).unwrap();
        key["code"] = blake3::hash(b"older code").to_hex().as_str().into();
        let key = key.to_string();
        let digest = blake3::hash(key.as_bytes()).to_hex();
        let values = (key, digest.as_str(), id);
        db.execute(
            "UPDATE executions SET key_json = ?1, key = ?2 WHERE id = ?3",
            values,
        )
        .unwrap();
    }
    assert_eq!(keys.len(), 4);
    let plan = lab.ablate(&["plan"]).good().stdout;
    assert!(
        plan.contains("will run  scaled[scale=1]: code was "),
        "{plan}"
    );
    // The command reads the same bytes as before: early cut-off.
    lab.run().ran([
        "scaled[scale=1]",
        "scaled[scale=2]",
        "scaled[scale=3]",
        "summary",
    ]);
}

/// The key of a stage with `over` names the parts that it reads, so how they are put together
/// must be part of its code; of the other stages it is none.
#[test]
fn how_instances_are_collected_is_code_of_the_stages_that_collect() {
    let lab = Lab::demo();
    lab.run();
    let db = rusqlite::Connection::open(lab.path(".ablate/provenance.db")).unwrap();
    let mut query = db
        .prepare(
            "SELECT x.instance, c.digest = json_extract(x.key_json, '$.code'),
                 c.files LIKE '%\"stages/collect.rs\"%'
             FROM executions x JOIN codes c ON c.id = x.code ORDER BY x.instance",
        )
        .unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let rows: Vec<(String, bool, bool)> = rows.unwrap().map(Result::unwrap).collect();
    let expected = [
        ("numbers", false),
        ("scaled[scale=1]", false),
        ("scaled[scale=2]", false),
        ("scaled[scale=3]", false),
        ("summary", true),
    ];
    let expected = expected.map(|(stage, collects)| (stage.to_owned(), true, collects));
    assert_eq!(rows, expected);
}
