//! `ablate sql`: stages and the record of all runs as tables.

use serde_json::Value;

use crate::lab::Lab;

fn answered(lab: &Lab, arguments: &[&str]) -> Vec<Value> {
    let printed = lab
        .ablate(&[&["sql", "--json"][..], arguments].concat())
        .good();
    let lines = printed.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn stages_of_the_current_results_and_of_all_runs() {
    let lab = Lab::new("[stage.t]\nkind = \"table\"\nrows = [{ x = 1 }, { x = 2 }]\n");
    lab.run();
    lab.edit("{ x = 2 }", "{ x = 5 }").run();
    assert_eq!(
        answered(&lab, &["SELECT MAX(x) AS most FROM t"]),
        [serde_json::json!({ "most": 5 })]
    );
    let all = answered(
        &lab,
        &[
            "--all-runs",
            "SELECT run, MAX(x) AS most FROM t GROUP BY run ORDER BY run",
        ],
    );
    let wanted = serde_json::json!([{ "run": 1, "most": 2 }, { "run": 2, "most": 5 }]);
    assert_eq!(serde_json::json!(all), wanted);
    let past = answered(&lab, &["--run", "1", "SELECT MAX(x) AS most FROM t"]);
    assert_eq!(past, [serde_json::json!({ "most": 2 })]);
}

#[test]
fn the_record_of_all_runs() {
    let lab = Lab::demo();
    lab.run();
    lab.run();
    lab.ablate(&["tag", "good", "1"]).good();
    for table in store_tables() {
        let rows = answered(&lab, &[&format!("SELECT * FROM ablate_{table}")]);
        assert!(!rows.is_empty(), "{table}");
    }
    // What the second run executed is nothing, and it used everything.
    let uses = answered(
        &lab,
        &[
            "SELECT u.status AS status, COUNT(*) AS n FROM ablate_uses AS u JOIN ablate_runs AS r ON u.run = r.id WHERE r.id = 2 GROUP BY u.status",
        ],
    );
    let executed = answered(
        &lab,
        &["SELECT COUNT(*) AS n FROM ablate_executions WHERE run = 1"],
    );
    assert_eq!(uses.len(), 1);
    assert_eq!(
        (&uses[0]["status"], &uses[0]["n"]),
        (&Value::from("hit"), &executed[0]["n"])
    );
}

/// The names of the record's tables, as the page about them lists them.
fn store_tables() -> Vec<&'static str> {
    store::PROVENANCE.iter().map(|table| table.name).collect()
}

#[test]
fn what_is_wrong_with_a_query_is_said() {
    let lab = Lab::new("[stage.t]\nkind = \"table\"\nrows = [{ x = 1 }]\n");
    let before = lab.ablate(&["sql", "SELECT x FROM t"]);
    assert_eq!(before.code, 1, "{}", before.stderr);
    lab.run();
    let said = |query: &str| lab.ablate(&["sql", query]);
    let unknown = said("SELECT x FROM u");
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    assert!(
        unknown.stderr.contains("cannot query `u`"),
        "{}",
        unknown.stderr
    );
    let record = said("SELECT * FROM ablate_stages");
    assert_eq!(
        record.stderr,
        "error: no table `ablate_stages`\n |\n = help: the record of all runs is in ablate_runs, ablate_executions, \
         ablate_uses, ablate_inputs, ablate_outputs, ablate_tags\n"
    );
    let unquoted = said("SELECT x FROM t.rows");
    assert_eq!(
        unquoted.stderr,
        "error: the query failed: no table is named `t`\n |\n = help: tables are stages; a name with dots or brackets is \
         written in double quotes, as in \"attacked.examples\" or \"attacked[seed=1]\"\n"
    );
    assert_eq!(said("SELECT y FROM t").code, 2);
    assert_eq!(said("DROP TABLE t").code, 2);
}

/// docs/read-results.md lists the tables with their columns.
#[test]
fn the_reference_of_the_record_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/read-results.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (
        "<!-- provenance: made by a test -->\n",
        "<!-- end of provenance -->",
    );
    let (before, rest) = page.split_once(begin).expect("its beginning is marked");
    let (_, after) = rest.split_once(end).expect("its end is marked");
    let mut made = String::new();
    for table in store::PROVENANCE {
        made += &format!(
            "`ablate_{}`: {}\n\n| column | type | |\n|---|---|---|\n",
            table.name, table.about
        );
        for column in table.columns {
            made += &format!(
                "| `{}` | {} | {} |\n",
                column.name,
                column.type_name(),
                column.about
            );
        }
        made += "\n";
    }
    let wanted = format!("{before}{begin}{made}{end}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
        return;
    }
    assert!(
        page == wanted,
        "docs/read-results.md is old: UPDATE_DOCS=1 cargo test --workspace reference"
    );
}
