//! Re-execution gives the same results, or the first difference is reported.

use serde_json::Value;

use crate::lab::{Lab, text};

/// A program that copies what a file beside the pipeline says: the same key, other bytes.
/// It reads collected inputs, because those are no objects of the store themselves.
pub fn fickle() -> Lab {
    let lab = Lab::loose();
    let file = lab.path("outside.txt").display().to_string();
    lab.write(
        "pipeline.toml",
        &format!(
            "[axes]\nk = [0]\n\
             [stage.a]\nkind = \"table\"\nrows = [{{ x = 1, y = 5, z = \"${{k}}\" }}, {{ x = 2, y = 6, z = \"${{k}}\" }}]\n\
             [stage.b]\nkind = \"table\"\nrows = [{{ x = 1, y = 5, z = \"${{k}}\" }}, {{ x = 2, y = 7, z = \"${{k}}\" }}]\n\
             [stage.c]\nkind = \"command\"\ninputs = {{ a = \"a\", b = \"b\" }}\nover = [\"k\"]\noutputs = [\"o\"]\n\
             run = [\"sh\", \"-c\", \"cp $ABLATE_IN/$(cat {file}).parquet $ABLATE_OUT/o.parquet\"]\n\
             [stage.d]\nkind = \"sql\"\ninputs = {{ c = \"c\" }}\nquery = \"SELECT SUM(y) AS y FROM c\"\n"
        ),
    );
    lab.write("outside.txt", "a");
    lab
}

#[test]
fn what_was_made_comes_out_again_on_any_number_of_threads() {
    let lab = Lab::demo();
    lab.run();
    let (objects, digests) = (lab.files(""), lab.digests());
    let printed = lab.ablate(&["verify", "--threads", "1,2,8"]).good().stdout;
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 16, "{printed}");
    assert!(
        lines[0].starts_with("bit-identical     numbers  1 thread, "),
        "{printed}"
    );
    assert!(
        lines[14].starts_with("bit-identical     summary  8 threads, "),
        "{printed}"
    );
    assert_eq!(
        lines[15],
        "ablate: 5 of 5 stages executed 15 times: 15 bit-identical, 0 within tolerance, 0 different, 0 failed"
    );
    assert_eq!(lab.files(""), objects, "the store is left alone");
    assert_eq!(lab.digests(), digests);
}

#[test]
fn what_does_not_come_out_again_is_named_with_row_and_column() {
    let lab = fickle();
    lab.run();
    lab.ablate(&["verify"]).good();
    lab.write("outside.txt", "b");
    let printed = lab.ablate(&["verify", "--threads", "1"]);
    assert_eq!(printed.code, 1);
    let rest: Vec<&str> = printed
        .stdout
        .lines()
        .filter(|l| !l.starts_with("bit-"))
        .collect();
    // `d` is judged by the stored input, so it is not blamed for `c`.
    assert_eq!(
        rest,
        [
            "different         c  1 thread: o: row 1, column y: 6 -> 7 (external programs make no promise)",
            "first divergent: c, output o, row 1, column y: 6 -> 7",
            "ablate: 4 of 4 stages executed 4 times: 3 bit-identical, 0 within tolerance, 1 different, 0 failed",
        ]
    );
    let printed = lab.ablate(&["verify", "--json", "c", "--threads", "1"]);
    let lines: Vec<Value> = printed
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let output = &lines[0]["outputs"]["Ok"][0];
    assert_eq!(
        (text(&output[0]), &output[1]["row"]),
        ("o", &Value::from(1))
    );
    assert_eq!(lines[1]["first_divergent"], "c");
}

#[test]
fn stored_bytes_that_somebody_edited_are_different_though_the_stage_comes_out_again() {
    let lab = Lab::demo();
    lab.run();
    let shown = lab.ablate(&["show", "numbers", "--json"]).good().stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let path = lab.path(shown["artifacts"][0]["path"].as_str().unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes[half] ^= 1;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    let printed = lab.ablate(&["verify", "numbers", "--threads", "1"]);
    assert_eq!(printed.code, 1, "{}", printed.stdout);
    let why = "the stored result is damaged: ";
    assert!(printed.stdout.contains(why), "{}", printed.stdout);
    let printed = lab.ablate(&["audit", "numbers", "--proof", "p.json"]);
    assert_ne!(printed.code, 0);
    let why = "cannot prove it: the stored result of `numbers` is damaged";
    assert!(printed.stderr.contains(why), "{}", printed.stderr);
    assert!(!lab.path("p.json").exists());
}

#[test]
fn a_sample_is_a_part_that_can_be_drawn_again() {
    let lab = Lab::demo();
    lab.run();
    let drawn = |arguments: &[&str]| {
        let printed = lab
            .ablate(&[&["verify", "--json"], arguments].concat())
            .good();
        let lines = printed
            .stdout
            .lines()
            .map(|l| serde_json::from_str::<Value>(l).unwrap());
        let stages = lines.filter_map(|line| line["stage"].as_str().map(str::to_owned));
        stages.collect::<Vec<_>>()
    };
    let some = drawn(&["--sample", "40%"]);
    assert_eq!(some.len(), 2);
    assert_eq!(drawn(&["--sample", "2"]), some);
    assert_eq!(drawn(&["scaled", "--sample", "100%"]).len(), 3);
    let wrong = lab.ablate(&["verify", "--sample", "x"]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong
            .stderr
            .contains("`x` is neither a share such as 20% nor a number such as 5"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn what_is_not_made_cannot_be_verified() {
    let lab = Lab::demo();
    lab.run_with(&["numbers"]);
    let printed = lab.ablate(&["verify", "summary"]);
    let expected = "error: `summary` has not been run\n |\n = help: ablate run 'summary'\n";
    assert_eq!((printed.code, printed.stderr.as_str()), (2, expected));
    // Without names, what there is.
    let printed = lab.ablate(&["verify"]).good().stdout;
    assert!(
        printed.contains("ablate: 1 of 1 stage executed 1 time"),
        "{printed}"
    );
}

#[test]
fn stores_that_agree_and_stores_that_do_not() {
    let lab = fickle();
    lab.run();
    lab.run_with(&["--store", "same"]);
    let printed = lab.ablate(&["challenge", "same"]).good().stdout;
    assert_eq!(
        printed,
        "ablate: 4 keys agree, 0 disagree, 0 only here, 0 only there\n"
    );
    lab.write("outside.txt", "b");
    lab.run_with(&["--store", "other"]);
    let printed = lab.ablate(&["challenge", "other"]);
    assert_eq!(printed.code, 1);
    // `d` read other contents, so its keys are not the same question.
    assert_eq!(
        crate::audit::redact(&printed.stdout),
        "disagree  c.o: [digest] here, [digest] there (key [digest])\n          \
         first at row 1, column y: 6 -> 7\n\
         ablate: 2 keys agree, 1 disagree, 1 only here, 1 only there"
    );
    // Stores that have nothing in common confirm nothing.
    let apart = Lab::demo();
    apart.run();
    let printed = lab.ablate(&["challenge", &apart.path(".ablate").display().to_string()]);
    assert_eq!(printed.code, 1);
    assert_eq!(
        printed.stdout,
        "ablate: 0 keys agree, 0 disagree, 4 only here, 5 only there\n"
    );
    assert_eq!(
        printed.stderr,
        "nothing was compared: no key was executed by both. Keys have parameters, files, inputs \
         and code: run the same pipeline with the same `ablate` there\n"
    );
    let printed = lab.ablate(&["challenge", "."]);
    assert_eq!(
        printed.stderr,
        "error: `./.ablate` is the same store\n |\n = help: a store cannot confirm itself: \
         name one that was filled independently\n"
    );
    let printed = lab.ablate(&["challenge", "nowhere"]);
    let expected = "error: `nowhere` does not exist\n |\n = help: name the other store, the folder of the pipeline that filled it, or a results.lock\n";
    assert_eq!((printed.code, printed.stderr.as_str()), (1, expected));
}

#[test]
fn a_store_that_contradicts_itself_is_named() {
    let lab = fickle();
    lab.run();
    lab.run_with(&["--store", "same"]);
    std::fs::remove_file(lab.object("c")).unwrap();
    lab.write("outside.txt", "b");
    lab.run();
    let printed = lab.ablate(&["challenge", "same"]);
    assert_eq!(printed.code, 1);
    let twice = "conflict  c: the store here has two different results for key ";
    assert!(printed.stdout.contains(twice), "{}", printed.stdout);
    let audit = lab.ablate(&["audit", "c"]).good().stdout;
    let doubt = "doubt: c: the store also has different bytes for the same key\n";
    assert!(audit.contains(doubt), "{audit}");
}

/// The example of the kind `attack`: a victim, and swaps against it.
#[test]
fn a_stored_attack_is_recomputed_by_another_process() {
    let root = env!("CARGO_MANIFEST_DIR");
    let example =
        std::fs::read_to_string(format!("{root}/stages/kinds/attack/example.toml")).unwrap();
    let lab = Lab::new(&example);
    lab.run();
    let printed = lab.ablate(&["replay"]).good().stdout;
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("ok       "), "{printed}");
    assert!(
        lines.last().unwrap().starts_with("ablate: all confirmed: "),
        "{printed}"
    );
    assert!(printed.ends_with(", 0 mismatches\n"), "{printed}");
    let printed = lab.ablate(&["verify", "--threads", "1,2"]).good().stdout;
    assert!(
        printed.contains("0 within tolerance, 0 different, 0 failed"),
        "{printed}"
    );
}

#[test]
fn only_attacks_can_be_replayed() {
    let lab = Lab::demo();
    lab.run();
    let printed = lab.ablate(&["replay", "numbers"]);
    assert_eq!(
        (printed.code, printed.stderr.as_str()),
        (
            2,
            "error: `numbers` is of kind `table`, which has nothing to re-check\n |\n \
             = help: `ablate replay` is for attacks; `ablate verify` executes any stage again\n"
        )
    );
}
