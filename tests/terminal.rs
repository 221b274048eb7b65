//! What is printed may come from anybody: cells, names of columns, logs, tags, axes, messages. None of
//! it is obeyed by a terminal, whichever command prints it.

use crate::lab::{CommandOutput, Lab};

/// Clears the screen, by one byte and by two; sets the title; goes back; turns the direction.
const EVIL: &str = "\u{1b}[2J\u{9b}2J\u{1b}]0;owned\u{7}\u{8}\u{202e}";

/// The same as TOML writes it.
const IN_TOML: &str = "\\u001b[2J\\u009b2J\\u001b]0;owned\\u0007\\u0008\\u202e";

fn pipeline(value: u32) -> String {
    format!(
        "[pipeline]\nname = \"p{IN_TOML}\"\n[axes]\nk = [\"a{IN_TOML}\", \"b\"]\n\
         [stage.t]\nkind = \"table\"\nrows = [{{ \"c{IN_TOML}\" = \"v{IN_TOML}\", n = {value} }}]\n\
         [stage.k]\nkind = \"table\"\nrows = [{{ x = \"${{k}}\" }}]\n\
         [stage.c]\nkind = \"command\"\ninputs = {{ t = \"t\" }}\noutputs = [\"o\"]\n\
         run = [\"sh\", \"-c\", '''printf '\\033[2J\\302\\2332J\\033]0;owned\\007\\342\\200\\256'; \
         cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet''']\n"
    )
}

fn hidden(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{202a}'..='\u{202e}')
}

fn is_clean(what: &str, text: &CommandOutput) {
    for text in [&text.stdout, &text.stderr] {
        assert!(!text.contains(hidden), "{what}: {text:?}");
    }
}

#[test]
fn nothing_that_is_printed_is_obeyed_by_a_terminal() {
    let lab = Lab::new(&pipeline(1));
    is_clean("run", &lab.ablate(&["run"]));
    lab.write("pipeline.toml", &pipeline(2));
    is_clean("run again", &lab.ablate(&["run"]));
    is_clean("tag", &lab.ablate(&["tag", &format!("best{EVIL}")]));
    let commands: &[&[&str]] = &[
        &["plan"],
        &["show", "t"],
        &["show", "c"],
        &["show", "k"],
        &["show", "t", "--json"],
        &["runs"],
        &["runs", "last"],
        &["runs", "last", "--json"],
        &["show", "c", "--log"],
        &["explain", "c"],
        &["explain", "t"],
        &["diff", "1", "2"],
        &["diff", "1", "2", "--json"],
        &["compare"],
        &["audit", "c"],
        &["audit", "c", "--json"],
        &["graph"],
        &["verify"],
        &["fsck"],
        &["gc", "--dry-run"],
        &["show", EVIL],
        &["runs", EVIL],
        &["explain", EVIL],
        &["run", "--set", EVIL],
        &["run", EVIL],
        &["export", EVIL],
    ];
    for command in commands {
        is_clean(&command.join(" "), &lab.ablate(command));
    }
    // JSON still says what there is.
    let text = lab.ablate(&["show", "t", "--json"]).good().stdout;
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(first.to_string().contains("owned"), "{first}");
    let cell = &first["head"][0][format!("c{EVIL}")];
    assert_eq!(cell, &format!("v{EVIL}"), "{first}");
    // A program that fails is quoted.
    lab.edit("cp $ABLATE_IN", "exit 3; cp $ABLATE_IN");
    let text = lab.ablate(&["run"]);
    assert_eq!(text.code, 1);
    is_clean("a failed run", &text);
    is_clean("its log", &lab.ablate(&["show", "c", "--log"]));
    is_clean("its run", &lab.ablate(&["runs", "last"]));
    // A mistake in the file is shown with its line.
    lab.write(
        "pipeline.toml",
        "[stage.t]\nkind = \"table\u{9b}2J\u{202e}\"\nrows = [{ x = 1 }]\n",
    );
    let text = lab.ablate(&["plan"]);
    assert_eq!(text.code, 2);
    is_clean("a mistake", &text);
}
