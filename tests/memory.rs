//! Queries and files that want more memory than there is: one stage fails, with the reason, and
//! everything else goes on. Attacks on many items, which do not want more of it.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow::datatypes::Int32Type;
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use wait4::Wait4;

use crate::lab::Lab;

/// A thousand rows, each with each with each: a billion.
const CROSS: &str = include_str!("pipelines/cross_join.toml");
/// An attack on 64 documents and on 640.
const MANY_ITEMS: &str = include_str!("pipelines/many_items.toml");

#[test]
fn a_query_over_the_limit_is_one_failed_stage() {
    let lab = Lab::new(CROSS);
    let printed = lab.ablate(&["run", "--keep-going", "--memory", "300MB"]);
    assert_eq!(printed.code, 1, "{}", printed.stderr);
    let expected = "the query needs more memory than its limit of 300.0 MiB";
    assert!(printed.stderr.contains(expected), "{}", printed.stderr);
    assert!(
        printed.stderr.contains("--memory 8GB"),
        "{}",
        printed.stderr
    );
    assert_eq!(lab.rows("other")[0]["total"], 499_500);
}

/// Four gigabytes of text in a few kilobytes: one text of 64 KiB, 60,000 times.
fn bomb(path: &std::path::Path) {
    let text = StringArray::from(vec!["x".repeat(1 << 16)]);
    let keys = Int32Array::from(vec![0; 60_000]);
    let column = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(text)).unwrap();
    let columns = [("text", Arc::new(column) as ArrayRef)];
    let table = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(path).unwrap();
    // Without Arrow's description it is read as plain texts.
    let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true);
    let writer = ArrowWriter::try_new_with_options(file, table.schema(), options);
    let mut writer = writer.unwrap();
    writer.write(&table).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_small_file_that_grows_is_one_failed_stage() {
    let lab = Lab::new(
        r#"
[stage.grows]
kind = "command"
run = ["sh", "-c", "cp bomb.parquet $ABLATE_OUT/rows.parquet"]
files = ["bomb.parquet"]
outputs = ["rows"]
"#,
    );
    bomb(&lab.path("bomb.parquet"));
    let size = std::fs::metadata(lab.path("bomb.parquet")).unwrap().len();
    assert!(size < 100_000, "{size} bytes");
    let printed = lab.ablate(&["run", "--memory", "300MB"]);
    assert_eq!(printed.code, 1, "{}", printed.stderr);
    let expected = "reading the Parquet file needs more memory than its limit of 300.0 MiB";
    assert!(printed.stderr.contains(expected), "{}", printed.stderr);
}

#[test]
fn a_limit_that_is_not_a_size_is_refused() {
    let printed = Lab::demo().ablate(&["run", "--memory", "lots"]);
    assert_eq!(printed.code, 2);
    let expected = "`lots` is not a size: write 4GB or 512MB";
    assert!(printed.stderr.contains(expected), "{}", printed.stderr);
}

/// The most memory that a run of one stage had, in kB.
fn peak_of(lab: &Lab, stage: &str) -> u64 {
    let child = lab.command(&["run", "--quiet", stage]).spawn().unwrap();
    let used = child.wait4().unwrap();
    assert!(used.status.success(), "{stage}");
    used.rusage.maxrss / 1000
}

/// Memory grows by what is stored of a document, held as values and then as tables: its characters before and after, for
/// each confidence. What the search needs is given back: the gradients of a beam alone are 400 kB for a document here.
#[test]
fn memory_that_a_search_needs_does_not_grow_with_the_number_of_items() {
    let lab = Lab::new(MANY_ITEMS);
    lab.ablate(&["run", "--quiet", "victim", "known"]).good();
    let [few, many] = ["few", "many"].map(|stage| peak_of(&lab, stage));
    let each = many.saturating_sub(few) as f64 / (640.0 - 64.0);
    println!("64 documents: {few} kB, 640: {many} kB, {each:.1} kB for each further one");
    assert!(each < 200.0, "{each} kB for each further document");
}
