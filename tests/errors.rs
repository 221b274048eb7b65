//! Everything that a person can get wrong, and the whole message for it.
//! Each leaves nothing behind: no store, no result.

use crate::lab::Lab;

/// The message for a wrong pipeline.
#[track_caller]
fn wrong(pipeline: &str) -> String {
    wrong_with(pipeline, &[])
}

#[track_caller]
fn wrong_with(pipeline: &str, arguments: &[&str]) -> String {
    let lab = Lab::new(pipeline.trim_start());
    let printed = lab.ablate(&[&["run"], arguments].concat());
    assert_eq!(printed.code, 2, "{}\n{}", printed.stdout, printed.stderr);
    assert_eq!(printed.stdout, "");
    assert!(!lab.path(".ablate").exists(), "nothing is left behind");
    printed.stderr
}

const TABLE: &str = "[stage.t]\nkind = \"table\"\nrows = [{ x = 1 }]\n";

macro_rules! case {
    ($name:ident, $message:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!($message);
        }
    };
}

case!(not_toml, wrong("[stage.t\nkind = 1\n"));
case!(unknown_section, wrong("[stages.t]\nkind = \"table\"\n"));
case!(
    unknown_key,
    wrong("[stage.t]\nkind = \"table\"\nrow = [{ x = 1 }]\n")
);
case!(
    unknown_pipeline_key,
    wrong(&format!("[pipeline]\nsede = 1\n{TABLE}"))
);
case!(
    wrong_type,
    wrong("[stage.t]\nkind = \"table\"\nrows = { x = 1 }\n")
);
case!(
    wrong_item_type,
    wrong("[stage.t]\nkind = \"table\"\nrows = [{ x = 1 }, 2]\n")
);
case!(
    wrong_seed,
    wrong(&format!("[pipeline]\nseed = -1\n{TABLE}"))
);
case!(no_kind, wrong("[stage.t]\nrows = [{ x = 1 }]\n"));
case!(
    unknown_kind,
    wrong("[stage.t]\nkind = \"tabel\"\nrows = []\n")
);
case!(no_stages, wrong("[pipeline]\nname = \"x\"\n"));
case!(
    bad_stage_name,
    wrong("[stage.\"a b\"]\nkind = \"table\"\nrows = [{ x = 1 }]\n")
);
case!(
    unknown_stage,
    wrong(&format!(
        "{TABLE}[stage.s]\nkind = \"sql\"\ninputs = {{ t = \"u\" }}\nquery = \"SELECT 1\"\n"
    ))
);
case!(
    unknown_output,
    wrong(&format!(
        "{TABLE}[stage.s]\nkind = \"sql\"\ninputs = {{ t = \"t.row\" }}\nquery = \"SELECT 1\"\n"
    ))
);
case!(
    port_of_a_kind_without_inputs,
    wrong(&format!(
        "{TABLE}[stage.u]\nkind = \"table\"\nrows = [{{ x = 1 }}]\ninputs = {{ t = \"t\" }}\n"
    ))
);
case!(
    missing_port,
    wrong(&format!(
        "{TABLE}[stage.s]\nkind = \"sql\"\ninputs = {{ t = \"t\" }}\nquery = \"SELECT x FROM tt\"\n"
    ))
);
case!(missing_parameter, wrong("[stage.t]\nkind = \"table\"\n"));
case!(
    cycle,
    wrong(
        "[stage.a]\nkind = \"sql\"\ninputs = { t = \"b\" }\nquery = \"SELECT * FROM t\"\n\
         [stage.b]\nkind = \"sql\"\ninputs = { t = \"a\" }\nquery = \"SELECT * FROM t\"\n"
    )
);
case!(
    reads_itself,
    wrong("[stage.a]\nkind = \"sql\"\ninputs = { t = \"a\" }\nquery = \"SELECT * FROM t\"\n")
);
case!(
    unused_axis,
    wrong(&format!("[axes]\nscale = [1, 2]\n{TABLE}"))
);
case!(
    unknown_axis,
    wrong("[axes]\nscale = [1]\n[stage.t]\nkind = \"table\"\nrows = [{ x = \"${scal}\" }]\n")
);
case!(
    empty_axis,
    wrong("[axes]\nk = []\n[stage.t]\nkind = \"table\"\nrows = [{ x = \"${k}\" }]\n")
);
case!(
    mixed_axis,
    wrong("[axes]\nk = [1, \"a\"]\n[stage.t]\nkind = \"table\"\nrows = [{ x = \"${k}\" }]\n")
);
case!(
    collected_axis_that_no_input_has,
    wrong(&format!(
        "[axes]\nk = [1]\n{TABLE}[stage.u]\nkind = \"table\"\nrows = [{{ x = \"${{k}}\" }}]\n\
         [stage.s]\nkind = \"sql\"\ninputs = {{ t = \"t\" }}\nover = [\"k\"]\nquery = \"SELECT * FROM t\"\n"
    ))
);
case!(
    incomplete_select,
    wrong(&format!(
        "[axes]\nk = [1]\n{TABLE}[stage.s]\nkind = \"sql\"\ninputs = {{ t = \"t\" }}\n\
         select = {{ over = [\"k\"], metric = \"t\" }}\nquery = \"SELECT ${{k}} FROM t\"\n"
    ))
);
case!(
    duplicate_output,
    wrong("[stage.c]\nkind = \"command\"\nrun = [\"true\"]\noutputs = [\"a\", \"a\"]\n")
);
case!(
    output_that_climbs,
    wrong("[stage.c]\nkind = \"command\"\nrun = [\"true\"]\noutputs = [\"../a\"]\n")
);
case!(
    unreadable_file,
    wrong(
        "[stage.c]\nkind = \"command\"\nrun = [\"sh\", \"gone.sh\"]\nfiles = [\"gone.sh\"]\noutputs = [\"a\"]\n"
    )
);
#[test]
fn a_file_that_is_no_file() {
    let lab = Lab::new(
        "[stage.c]\nkind = \"command\"\nrun = [\"sh\"]\nfiles = [\"pipe\"]\noutputs = [\"a\"]\n",
    );
    let made = std::process::Command::new("mkfifo")
        .arg(lab.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let printed = lab.ablate(&["run"]);
    assert_eq!(printed.code, 2);
    insta::assert_snapshot!(printed.stderr);
}

#[test]
fn not_utf_8() {
    let lab = Lab::demo();
    std::fs::write(lab.path("pipeline.toml"), b"[pipeline]\nname = \"\xff\"\n").unwrap();
    let printed = lab.ablate(&["run"]);
    assert_eq!(printed.code, 2);
    insta::assert_snapshot!(printed.stderr);
}

case!(
    file_outside,
    wrong(
        "[stage.c]\nkind = \"command\"\nrun = [\"sh\"]\nfiles = [\"../x.sh\"]\noutputs = [\"a\"]\n"
    )
);
case!(
    invalid_sql,
    wrong(&format!(
        "{TABLE}[stage.s]\nkind = \"sql\"\ninputs = {{ t = \"t\" }}\nquery = \"SELEC x FROM t\"\n"
    ))
);
case!(seed_without_effect, wrong(&format!("{TABLE}seed = 3\n")));
case!(
    mixed_column,
    wrong("[stage.t]\nkind = \"table\"\nrows = [{ x = 1 }, { x = \"a\" }]\n")
);
case!(
    two_errors_at_once,
    wrong("[stage.t]\nkind = \"table\"\nrows = 2\n[stage.u]\nkind = \"table\"\nrows = 1\n")
);
case!(
    metric_with_an_axis_too_many,
    wrong(
        "[axes]\nk = [1, 2]\nfold = [1, 2]\n\
         [stage.m]\nkind = \"table\"\nrows = [{ x = \"${k}\" }]\n\
         [stage.d]\nkind = \"table\"\nrows = [{ x = \"${k}\", y = \"${fold}\" }]\n\
         [stage.s]\nkind = \"sql\"\ninputs = { t = \"m\" }\nquery = \"SELECT * FROM t\"\n\
         select = { over = [\"k\"], metric = \"d\", column = \"x\", best = \"max\" }\n"
    )
);
case!(
    unknown_profile,
    wrong_with(
        &format!("{TABLE}[profile.smoke.stage.t]\nrows = [{{ x = 2 }}]\n"),
        &["--profile", "smok"]
    )
);
case!(
    profile_of_no_stage,
    wrong_with(
        &format!("{TABLE}[profile.p.stage.tt]\nrows = [{{ x = 2 }}]\n"),
        &["--profile", "p"]
    )
);
case!(
    setting_without_value,
    wrong_with(TABLE, &["--set", "t.rows"])
);
case!(
    setting_of_no_stage,
    wrong_with(TABLE, &["--set", "tt.rows=1"])
);
case!(
    setting_of_a_misspelt_section,
    wrong_with(TABLE, &["--set", "pipelin.seed=1"])
);
case!(
    setting_of_wrong_type,
    wrong_with(TABLE, &["--set", "t.rows=3"])
);
case!(
    setting_that_does_not_parse,
    wrong_with(TABLE, &["--set", "t.rows=[{ x = ]"])
);
case!(
    setting_of_a_number_that_does_not_fit,
    wrong_with(TABLE, &["--set", "t.rows=1e400"])
);
case!(
    a_number_that_becomes_infinite,
    wrong("[stage.t]\nkind = \"table\"\nrows = [{ x = 1e400, y = 1e-400, z = inf, w = 0e9 }]\n")
);
case!(
    an_axis_with_one_number_written_in_two_ways,
    wrong(
        "[axes]\nk = [1, 2, 1.0, 0.0, -0.0, nan, nan]\n[stage.t]\nkind = \"table\"\nrows = [{ x = \"${k}\" }]\n"
    )
);
case!(
    an_axis_whose_whole_numbers_are_one_float,
    wrong(
        "[axes]\nk = [9007199254740992, 9007199254740993, 0.5]\n[stage.t]\nkind = \"table\"\nrows = [{ x = \"${k}\" }]\n"
    )
);
case!(unknown_target, wrong_with(TABLE, &["u"]));
case!(
    unknown_instance,
    wrong_with(
        "[axes]\nk = [1, 2]\n[stage.t]\nkind = \"table\"\nrows = [{ x = \"${k}\" }]\n",
        &["t[k=3]"]
    )
);

#[test]
fn no_pipeline_file() {
    let lab = Lab::demo();
    let printed = lab.ablate(&["run", "-f", "other.toml"]);
    assert_eq!(printed.code, 2);
    insta::assert_snapshot!(printed.stderr);
    let printed = lab.ablate(&["-C", "nowhere", "run"]);
    assert_eq!(printed.code, 2);
    insta::assert_snapshot!(printed.stderr);
}

#[test]
fn a_wrong_command_line_is_code_2() {
    let lab = Lab::demo();
    for arguments in [
        &["rnu"][..],
        &["run", "--jobs", "0"],
        &["run", "--no-such"],
        &[],
    ] {
        assert_eq!(lab.ablate(arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn a_query_that_fails_when_it_runs_points_at_itself() {
    let lab = Lab::new(&format!(
        "{TABLE}[stage.s]\nkind = \"sql\"\ninputs = {{ t = \"t\" }}\nquery = \"SELECT y FROM t\"\n"
    ));
    let printed = lab.ablate(&["run"]);
    assert_eq!(printed.code, 1);
    insta::assert_snapshot!(printed.stderr);
}
