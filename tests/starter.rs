//! `ablate init`: what it writes runs at once, on synthetic data and on a user's own file.

use serde_json::Value;

use crate::lab::Lab;

/// An empty folder.
fn empty() -> Lab {
    let lab = Lab::new("");
    std::fs::remove_file(lab.path("pipeline.toml")).unwrap();
    lab
}

/// Reviews with two classes, in columns that say nothing by their names.
fn reviews(rows: usize) -> String {
    let (good, bad) = (["fine", "lovely", "great"], ["bad", "awful", "dull"]);
    let mut text = "what,opinion\n".to_owned();
    for n in 0..rows {
        let (class, words) = match n % 2 {
            0 => ("up", good),
            _ => ("down", bad),
        };
        let (a, b) = (words[n / 2 % 3], words[n / 6 % 3]);
        text += &format!("\"the film, number {n}, was {a} and {b} to the end\",{class}\n");
    }
    text
}

/// Cuts what takes long: these tests are about files, not about models.
const SMALL: [&str; 6] = [
    "--set",
    "data.sample={train=60,dev=20,test=20}",
    "--set",
    "lstm.epochs=1",
    "--set",
    "axes.seed=[1]",
];

#[test]
fn every_template_runs_on_synthetic_data() {
    for template in ["classify", "attack", "paper"] {
        let lab = empty();
        lab.ablate(&["init", "--template", template]).good();
        let run = lab.ablate(&[&["run"][..], &SMALL].concat());
        assert_eq!(run.code, 0, "{template}: {}", run.stderr);
        lab.ablate(&["claims", "--check"]).good();
        let judged = lab
            .ablate(&[&["claims", "--json"][..], &SMALL].concat())
            .good();
        for line in judged.stdout.lines() {
            let claim: Value = serde_json::from_str(line).unwrap();
            assert_ne!(claim["verdict"], "not run", "{template}: {line}");
        }
        let study = lab
            .ablate(&[&["ablation", "--csv"][..], &SMALL].concat())
            .good();
        assert!(
            study.stdout.contains("no-dropout"),
            "{template}: {}",
            study.stdout
        );
    }
}

#[test]
fn a_file_of_the_users_own_is_guessed_linked_and_run() {
    let lab = empty();
    lab.write("data/films.csv", &reviews(200));
    let printed = lab
        .ablate(&["init", "study", "--from", "data/films.csv"])
        .good();
    let real = lab.path("data/films.csv").canonicalize().unwrap();
    let wanted = format!(
        "read     data/films.csv (200 rows)\n\
         --text   what (has the most words)\n\
         --label  opinion (has the fewest different values): 2 classes, down 100, up 100\n\
         --split  none: a fifth of the rows become test, a tenth of the rest dev\n\
         --id     none: row numbers\n\
         linked   films.csv -> {} (a pipeline only reads files in its own folder)\n\
         wrote    pipeline.toml, claims.toml, .gitignore\n\
         next     ablate -C study run\n",
        real.display()
    );
    assert_eq!(printed.stdout, wanted);
    let run = lab.ablate(&[&["-C", "study", "run"][..], &SMALL].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let again = lab.ablate(&["init", "study"]);
    assert_eq!(again.code, 2);
    assert_eq!(
        again.stderr,
        "error: study/pipeline.toml already exists\n |\n = help: name another folder: ablate init FOLDER\n"
    );
}

#[test]
fn splits_and_ids_of_a_file_are_used() {
    let lab = empty();
    let mut rows = String::new();
    for n in 0..120 {
        let split = ["train", "train", "validation", "test"][n % 4];
        let label = ["a", "b", "c"][n % 3];
        rows += &format!(
            "{}\n",
            serde_json::json!({ "id": format!("r{n}"), "Text": format!("words about {label} and {n}"), "label": label, "split": split })
        );
    }
    lab.write("rows.jsonl", &rows);
    lab.ablate(&["init", "--from", "rows.jsonl", "--template", "classify"])
        .good();
    let pipeline = std::fs::read_to_string(lab.path("pipeline.toml")).unwrap();
    let source = r#"source = { jsonl = "rows.jsonl", text = "Text", label = "label", split = "split", id = "id" }"#;
    assert!(pipeline.contains(source), "{pipeline}");
    assert!(
        pipeline.contains("# 3 classes: a 40, b 40, c 40"),
        "{pipeline}"
    );
    let run = lab.ablate(&[&["run"][..], &SMALL[2..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn every_format_of_a_file_gives_the_same_pipeline() {
    let lab = Lab::new(
        "[stage.rows]\nkind = \"dataset\"\nsource = { csv = \"films.csv\", text = \"what\", label = \"opinion\" }\n\
         [stage.table]\nkind = \"sql\"\ninputs = { r = \"rows\" }\nquery = \"SELECT text AS what, label AS opinion FROM r\"\n",
    );
    lab.write("films.csv", &reviews(40)).run();
    lab.write(
        "films.tsv",
        &reviews(40)
            .replace("\",", "\t")
            .replace('"', "")
            .replacen("what,", "what\t", 1),
    );
    lab.ablate(&["export", "table", "--parquet", "-o", "films.parquet"])
        .good();
    for ending in ["csv", "tsv", "parquet"] {
        let (folder, file) = (format!("from-{ending}"), format!("films.{ending}"));
        lab.ablate(&["init", &folder, "--from", &file, "--template", "classify"])
            .good();
        let run = lab.ablate(&["-C", &folder, "run", "data", "--set", "data.sample={}"]);
        assert_eq!(run.code, 0, "{ending}: {}", run.stderr);
        let counted = "SELECT COUNT(*) AS n, SUM(label) AS positive FROM data";
        let rows = lab
            .ablate(&[
                "-C",
                &folder,
                "sql",
                "--csv",
                "--set",
                "data.sample={}",
                counted,
            ])
            .good();
        assert_eq!(rows.stdout, "n,positive\n40,20\n", "{ending}");
    }
}

#[test]
fn what_cannot_be_started_from_is_said_and_nothing_is_written() {
    let lab = empty();
    lab.write(
        "one.csv",
        "text,label\nsome words here,1\nother words here,1\n",
    );
    lab.write("rows.txt", "");
    let said = |arguments: &[&str]| {
        let printed = lab.ablate(&[&["init", "new"][..], arguments].concat());
        assert_eq!(printed.code, 2, "{arguments:?}: {}", printed.stderr);
        assert!(!lab.path("new").exists());
        printed.stderr
    };
    assert_eq!(
        said(&["--from", "one.csv"]),
        "error: cannot start from one.csv: the column `label` has only one class in the first 2 rows\n |\n \
         = help: --label COLUMN names another one; a file sorted by class must be shuffled first\n"
    );
    assert_eq!(
        said(&["--from", "one.csv", "--text", "body"]),
        "error: cannot start from one.csv: it has no column `body`\n |\n = help: its columns are: text, label\n"
    );
    assert_eq!(
        said(&["--from", "rows.txt"]),
        "error: rows.txt is not a file of a known format\n |\n = help: its name must end in .csv, .tsv, .jsonl or .parquet\n"
    );
}

/// `run` would refuse these, so `init` does, before it writes anything.
#[test]
fn a_file_that_its_stage_would_refuse_is_refused_at_once() {
    let lab = empty();
    let said = |name: &str, bytes: &[u8]| {
        std::fs::write(lab.path(name), bytes).unwrap();
        let printed = lab.ablate(&["init", "new", "--from", name]);
        assert_eq!(
            printed.code, 2,
            "{name}: {}{}",
            printed.stdout, printed.stderr
        );
        assert!(!lab.path("new").exists());
        printed.stderr
    };
    let films = reviews(40);
    let lines: Vec<&str> = films.lines().collect();
    let with = |line: &str| [&films, line, "\n"].concat().into_bytes();
    for (name, bytes, why) in [
        (
            "missing.csv",
            with("a film without an opinion,"),
            "missing.csv, row 41: the label is empty",
        ),
        (
            "ragged.csv",
            with("one, two, three"),
            "ragged.csv, row 41: CSV error",
        ),
        (
            "quote.csv",
            with("\"never closed,up"),
            "quote.csv, row 41: unclosed quotation mark",
        ),
        (
            "returns.csv",
            lines.join("\r").into_bytes(),
            "carriage return in the middle of a line",
        ),
        (
            "twice.csv",
            films
                .replace("what,", "what,what,")
                .replace("the end\",", "the end\",,")
                .into_bytes(),
            "duplicate column `what`",
        ),
        (
            "numbers.csv",
            films
                .replace(",up", ",1")
                .replace(",down", ",1.0")
                .into_bytes(),
            "the labels `1` and `1.0` are the same number",
        ),
        (
            "wide.csv",
            films
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>(),
            "it looks like UTF-16: save it as UTF-8",
        ),
        (
            "few.csv",
            lines[..5].join("\n").into_bytes(),
            "none of its rows comes to be in `dev`",
        ),
        (
            "semicolons.csv",
            films.replace("what,opinion", "what;opinion").into_bytes(),
            "separated by `;`",
        ),
    ] {
        let stderr = said(name, &bytes);
        assert!(stderr.contains(why), "{name}: {stderr}");
        assert!(stderr.contains("cannot"), "{name}: {stderr}");
    }
    let marked = [&[0xFF, 0xFE][..], &[b't', 0, b'\n', 0]].concat();
    assert!(said("marked.csv", &marked).contains("it looks like UTF-16: save it as UTF-8"));
}

#[test]
fn a_file_in_an_old_encoding_is_read_in_it() {
    let lab = empty();
    let text = reviews(60)
        .replace("film", "caf\u{e9}")
        .replace(",up", ",tr\u{e8}s bon");
    let bytes: Vec<u8> = text.chars().map(|c| c as u8).collect();
    std::fs::write(lab.path("films.csv"), bytes).unwrap();
    let printed = lab
        .ablate(&["init", "--from", "films.csv", "--template", "classify"])
        .good();
    let read = "read     films.csv (60 rows, as latin-1: it is not UTF-8)\n";
    assert!(printed.stdout.starts_with(read), "{}", printed.stdout);
    assert!(
        printed
            .stdout
            .contains("2 classes, down 30, tr\u{e8}s bon 30\n"),
        "{}",
        printed.stdout
    );
    let run = lab.ablate(&[&["run", "data"][..], &SMALL[..2]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// Nineteen in twenty rows have one class: to answer it always is right as often, and no feat.
#[test]
fn what_is_odd_about_classes_is_said_and_chance_is_the_commonest_class() {
    let lab = empty();
    let mut text = "id,text,label\n".to_owned();
    for n in 0..200 {
        let label = match n {
            0..4 => "NA",
            4..20 => "good",
            _ => "bad",
        };
        let words = match n {
            7 => "".to_owned(),
            n => format!("words of the row {n}"),
        };
        text += &format!("{},{words},{label}\n", n / 2);
    }
    lab.write("rows.csv", &text);
    let printed = lab.ablate(&["init", "--from", "rows.csv"]).good().stdout;
    for line in [
        "--label  label (by its name): 3 classes, NA 4, bad 180, good 16\n",
        "--id     none: row numbers (`id` has a value twice)\n",
        "note     `NA` is a class of 4 rows: if it stands for a label that is missing, take these rows out of the file\n",
        "note     the class `NA` has 4 rows: too few to learn it, or to measure how well it is known\n",
        "note     1 row has no text\n",
    ] {
        assert!(printed.contains(line), "{line}{printed}");
    }
    let claims = std::fs::read_to_string(lab.path("claims.toml")).unwrap();
    assert!(
        claims.contains("SELECT MIN(value) > 0.900 AS holds"),
        "{claims}"
    );
}

#[test]
fn a_file_outside_the_folder_is_linked_and_its_contents_count() {
    let lab = Lab::new(
        "[stage.data]\nkind = \"dataset\"\nsource = { csv = \"../films.csv\", text = \"what\", label = \"opinion\" }\n",
    );
    let refused = lab.ablate(&["run"]);
    assert_eq!(refused.code, 2);
    let help = "help: link it: `ln -s ../films.csv films.csv` beside the pipeline file, and name `films.csv` here";
    assert!(refused.stderr.contains(help), "{}", refused.stderr);
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("films.csv");
    std::fs::write(&file, reviews(10)).unwrap();
    std::os::unix::fs::symlink(&file, lab.path("films.csv")).unwrap();
    lab.edit("../films.csv", "films.csv").run().ran(["data"]);
    lab.run().ran([]);
    std::fs::write(&file, reviews(12)).unwrap();
    lab.run().ran(["data"]);
}

/// docs/start-from-your-own-data.md: its commands, on a small file.
#[test]
fn the_page_about_own_data_runs() {
    let root = env!("CARGO_MANIFEST_DIR");
    let page = std::fs::read_to_string(format!("{root}/docs/start-from-your-own-data.md")).unwrap();
    let commands = page.split("```console\n").nth(1).unwrap();
    let commands = commands.split("```").next().unwrap();
    let lab = empty();
    lab.write("reviews.csv", &reviews(120));
    for command in commands.split("$ ablate ").skip(1) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let printed = lab.ablate(&words);
        assert_eq!(printed.code, 0, "{command}: {}", printed.stderr);
    }
    assert!(lab.path("study/report.html").exists());
}
