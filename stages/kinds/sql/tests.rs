//! Claims about the kind `sql`: the same bytes every time, every type goes through, and
//! errors that help.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType, Field, Float32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use rayon::prelude::*;
use store::{Digest, Value};

use super::Sql;
use crate::tables::weights::with_metadata;
use crate::{Failure, Stage, Task, Usage, Watch};

struct Nobody;

impl Watch for Nobody {
    fn progress(&self, _: u64, _: u64) {}
    fn work(&self, _: &'static str, _: u64) {}

    fn log(&self, _: &str) {}
    fn child(&self, _: Usage) {}
    fn stopped(&self) -> bool {
        false
    }
}

fn sql(query: &str, inputs: &[(&str, RecordBatch)]) -> Result<RecordBatch, Failure> {
    let inputs: BTreeMap<_, _> = inputs
        .iter()
        .map(|(n, t)| ((*n).to_owned(), t.clone()))
        .collect();
    let params = [("query".to_owned(), Value::Text(query.into()))].into();
    let task = Task {
        inputs,
        params: &params,
        seed: 0,
        files: BTreeMap::new(),
        data: &crate::DataHome::nowhere(),
        place: &crate::Place::default(),
        watch: &Nobody,
    };
    Ok(Sql.run(&task)?.remove("rows").unwrap())
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)))
        .unwrap()
}

/// Floats of very different sizes, so that another order of addition gives another sum, and
/// enough groups and rows that polars would cut the work up if it could.
fn measurements() -> RecordBatch {
    let n = 20_000_u64;
    let noise = |i: u64| (i.wrapping_mul(6_364_136_223_846_793_005) >> 33) as f64;
    let g = Int64Array::from_iter_values((0..n).map(|i| (noise(i) as i64) % 97));
    let s =
        StringArray::from_iter_values((0..n).map(|i| format!("k{}", (noise(i + 7) as u64) % 31)));
    let x = Float64Array::from_iter_values(
        (0..n).map(|i| (noise(i) + 0.1) * 10f64.powi((i % 17) as i32 - 8)),
    );
    batch(vec![
        ("g", Arc::new(g)),
        ("s", Arc::new(s)),
        ("x", Arc::new(x)),
    ])
}

fn names() -> RecordBatch {
    let g = Int64Array::from_iter_values((0..120).map(|i| i * 7 % 110));
    let label = StringArray::from_iter_values((0..120).map(|i| format!("label {}", i % 13)));
    batch(vec![("g", Arc::new(g)), ("label", Arc::new(label))])
}

/// Queries whose answer, or its order, polars would leave to chance.
const QUERIES: &[&str] = &[
    "SELECT g, SUM(x) AS total, AVG(x) AS mean, STDDEV(x) AS sd FROM t GROUP BY g",
    "SELECT SUM(x) AS total, VARIANCE(x) AS v FROM t",
    "SELECT s, g, SUM(x) AS total FROM t GROUP BY s, g",
    "SELECT DISTINCT s, g FROM t",
    "SELECT DISTINCT ON (s) s, g, x FROM t",
    "SELECT t.g, u.label, t.x FROM t JOIN u ON t.g = u.g LIMIT 500",
    "SELECT t.g, u.label, t.x FROM t LEFT JOIN u ON t.g = u.g LIMIT 500",
    "SELECT u.label, SUM(t.x) AS total FROM t FULL JOIN u ON t.g = u.g GROUP BY u.label",
    "SELECT label, SUM(total) AS total FROM (SELECT g, SUM(x) AS total FROM t GROUP BY g) AS a JOIN u ON a.g = u.g GROUP BY label",
    "SELECT SUM(total) AS total FROM (SELECT s, SUM(x) AS total FROM t GROUP BY s)",
    // The sum adds groups up, so the order of groups is in its last bits.
    "SELECT SUM(m) AS m FROM (SELECT s, g, AVG(x) AS m FROM t GROUP BY s, g)",
    // Ties: many groups have the same key.
    "SELECT s, g FROM (SELECT s, g, COUNT(*) AS n FROM t GROUP BY s, g) ORDER BY s LIMIT 40",
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g ORDER BY n LIMIT 10",
    "SELECT s, x FROM t ORDER BY s LIMIT 77",
    "SELECT g, n FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g) ORDER BY n DESC",
    "SELECT g FROM t GROUP BY g LIMIT 5",
    "SELECT s, x, SUM(x) OVER (PARTITION BY s) AS w FROM t LIMIT 300",
    "SELECT s, g, ROW_NUMBER() OVER (PARTITION BY s ORDER BY g) AS r FROM t",
    "SELECT x, ROW_NUMBER() OVER (ORDER BY s DESC, g DESC) AS r FROM t",
    "SELECT x, ROW_NUMBER() OVER (PARTITION BY g ORDER BY s, g) AS r FROM t",
    "SELECT g, ARRAY_AGG(s) AS all FROM t GROUP BY g",
    "SELECT g, ARRAY_AGG(DISTINCT s) AS some FROM t GROUP BY g",
    "SELECT g, FIRST(x) AS f FROM t GROUP BY g",
    "SELECT g FROM t UNION SELECT g FROM u",
    "SELECT g FROM t UNION SELECT g FROM u LIMIT 5",
    "SELECT g FROM t UNION ALL SELECT g FROM u",
    "WITH a AS (SELECT s, SUM(x) AS x FROM t GROUP BY s) SELECT a.s, b.x - a.x AS d FROM a JOIN a AS b ON a.s = b.s",
    "SELECT t.g, u.label FROM t CROSS JOIN u WHERE t.g < 3 LIMIT 200",
    "SELECT COUNT(DISTINCT s) AS n, MEDIAN(x) AS m FROM t",
    "SELECT g, x FROM t WHERE g IN (SELECT g FROM u WHERE label < 'label 4') LIMIT 90",
    "SELECT g FROM t EXCEPT SELECT g FROM u",
    "SELECT g FROM t INTERSECT SELECT g FROM u LIMIT 7",
    "SELECT s, x, RANK() OVER (PARTITION BY s ORDER BY g) AS r FROM t",
];

fn digest(query: &str, inputs: &[(&str, RecordBatch)]) -> Digest {
    let table = sql(query, inputs).unwrap_or_else(|e| panic!("{query}\n{e}\n{:?}", e.help));
    Digest::of(&store::encode(&table).unwrap())
}

fn digests() -> Vec<Digest> {
    let inputs = [("t", measurements()), ("u", names())];
    QUERIES.iter().map(|query| digest(query, &inputs)).collect()
}

#[test]
fn bytes_are_the_same_on_any_number_of_threads() {
    let expected = digests();
    let inputs = [("t", measurements()), ("u", names())];
    for threads in [1, 2, 8] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let found: Vec<Digest> = pool.install(|| {
            let twice = (0..2 * QUERIES.len()).into_par_iter();
            twice
                .map(|n| digest(QUERIES[n % QUERIES.len()], &inputs))
                .collect()
        });
        for (n, digest) in found.iter().enumerate() {
            let n = n % QUERIES.len();
            assert_eq!(*digest, expected[n], "{threads} threads: {}", QUERIES[n]);
        }
    }
}

/// Hash tables are seeded anew by each process, so this one asks others.
#[test]
fn bytes_are_the_same_in_other_processes() {
    let expected: Vec<String> = digests().iter().map(Digest::to_string).collect();
    for _ in 0..3 {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kinds::sql::tests::print_digests", "--nocapture"])
            .env(OTHER_PROCESS, "1")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let found: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("digest "))
            .collect();
        assert_eq!(found.len(), QUERIES.len(), "{text}");
        for ((query, found), expected) in QUERIES.iter().zip(found).zip(&expected) {
            assert_eq!(found, expected, "{query}");
        }
    }
}

const OTHER_PROCESS: &str = "ABLATE_TEST_PRINT_DIGESTS";

/// Not a test of its own: the other process of the test above.
#[test]
fn print_digests() {
    if std::env::var_os(OTHER_PROCESS).is_some() {
        digests()
            .iter()
            .for_each(|digest| println!("\ndigest {digest}"));
    }
}

/// The queries above must be able to tell: without the pins at least the sums differ.
#[test]
fn the_order_of_rows_shows_in_the_sums() {
    let t = measurements();
    let backwards = UInt32Array::from_iter_values((0..t.num_rows() as u32).rev());
    let reversed = arrow::compute::take_record_batch(&t, &backwards).unwrap();
    let query = "SELECT g, SUM(x) AS total FROM t GROUP BY g";
    assert_ne!(
        digest(query, &[("t", t)]),
        digest(query, &[("t", reversed)])
    );
}

fn ints(table: &RecordBatch, column: usize) -> Vec<i64> {
    table
        .column(column)
        .as_primitive::<Int64Type>()
        .values()
        .to_vec()
}

/// A key with many ties, and a second column that says in which order the rows came.
fn ties() -> (Vec<i64>, RecordBatch) {
    let keys: Vec<i64> = (0..5_000).map(|i| i * 7_919 % 5).collect();
    let came = Int64Array::from_iter_values(0..5_000);
    let table = batch(vec![
        ("k", Arc::new(Int64Array::from(keys.clone()))),
        ("came", Arc::new(came)),
    ]);
    (keys, table)
}

#[test]
fn rows_that_tie_keep_the_order_of_the_input() {
    let (keys, table) = ties();
    let mut expected: Vec<i64> = (0..5_000).collect();
    expected.sort_by_key(|i| keys[*i as usize]);
    let inputs = [("t", table)];
    let sorted = |query| ints(&sql(query, &inputs).unwrap(), 0);
    assert_eq!(sorted("SELECT came FROM t ORDER BY k"), expected);
    assert_eq!(
        sorted("SELECT came FROM t ORDER BY k LIMIT 70"),
        expected[..70]
    );
    assert_eq!(
        sorted("SELECT came FROM t ORDER BY k LIMIT 70 OFFSET 9"),
        expected[9..79]
    );
    expected.sort_by_key(|i| -keys[*i as usize]);
    assert_eq!(
        sorted("SELECT came FROM t ORDER BY k DESC LIMIT 3000"),
        expected[..3000]
    );
}

#[test]
fn ties_inside_lists_and_windows_keep_the_order_of_the_input() {
    let (keys, table) = ties();
    let inputs = [("t", table)];
    let from = "FROM (SELECT came, k, k * 0.5 AS f, CAST(k AS VARCHAR) AS s, 1 AS c FROM t)";
    for (order, sign) in [
        ("k", 1),
        ("k DESC", -1),
        ("f", 1),
        ("f DESC", -1),
        ("s", 1),
        ("c DESC, k DESC", -1),
    ] {
        let mut expected: Vec<i64> = (0..5_000).collect();
        expected.sort_by_key(|i| sign * keys[*i as usize]);
        for group in ["", "GROUP BY c"] {
            let query = format!("SELECT ARRAY_AGG(came ORDER BY {order}) AS a {from} {group}");
            let out = sql(&query, &inputs).unwrap();
            let list = out.column(0).as_list::<i64>().value(0);
            assert_eq!(
                list.as_primitive::<Int64Type>().values(),
                &expected,
                "{query}"
            );
        }
        // By several keys polars breaks ties its own way in windows; QUERIES has such a
        // query, since it must be the same way every time.
        if order.contains(',') {
            continue;
        }
        for partition in ["", "PARTITION BY c"] {
            let number = format!("ROW_NUMBER() OVER ({partition} ORDER BY {order}) AS n");
            let query = format!("SELECT came FROM (SELECT came, {number} {from}) ORDER BY n");
            assert_eq!(ints(&sql(&query, &inputs).unwrap(), 0), expected, "{query}");
        }
    }
}

#[test]
fn groups_distinct_rows_and_joins_keep_the_order_of_the_input() {
    let (_, table) = ties();
    let key = Int64Array::from(vec![4, 4, 0, 1, 2, 3]);
    let right = batch(vec![
        ("k", Arc::new(key)),
        ("r", Arc::new(Int64Array::from_iter_values(0..6))),
    ]);
    let inputs = [("t", table), ("u", right)];
    // A constant key: what comes out is the order in which rows went in.
    let order = |query, column| ints(&sql(query, &inputs).unwrap(), column);
    assert_eq!(
        order(
            "SELECT k FROM (SELECT k, 1 AS c FROM t GROUP BY k) ORDER BY c",
            0
        ),
        [0, 4, 3, 2, 1]
    );
    assert_eq!(
        order(
            "SELECT k FROM (SELECT DISTINCT k, 1 AS c FROM t) ORDER BY c",
            0
        ),
        [0, 4, 3, 2, 1]
    );
    assert_eq!(
        order(
            "SELECT k FROM (SELECT k, 1 AS c FROM u UNION SELECT k, 1 AS c FROM t) ORDER BY c",
            0
        ),
        [4, 0, 1, 2, 3]
    );
    for join in ["JOIN", "LEFT JOIN", "FULL JOIN"] {
        let query = format!(
            "SELECT came, r FROM (SELECT t.came, u.r, 1 AS c FROM t {join} u ON t.k = u.k) ORDER BY c LIMIT 5"
        );
        let out = sql(&query, &inputs).unwrap();
        assert_eq!(
            (ints(&out, 0), ints(&out, 1)),
            (vec![0, 1, 1, 2, 3], vec![2, 0, 1, 5, 4]),
            "{join}"
        );
    } // polars would rather follow the longer table.
    let query = "SELECT r, came FROM (SELECT u.r, t.came, 1 AS c FROM u JOIN t ON u.k = t.k) ORDER BY c LIMIT 3";
    let out = sql(query, &inputs).unwrap();
    assert_eq!(
        (ints(&out, 0), ints(&out, 1)),
        (vec![0, 0, 0], vec![1, 6, 11])
    );
}

fn every_type() -> RecordBatch {
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
    ]);
    let vector = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        [
            Some(vec![Some(1.0), Some(2.0)]),
            Some(vec![Some(3.0), Some(4.0)]),
            None,
        ],
        2,
    );
    let bytes = FixedSizeBinaryArray::try_from_iter([b"ab", b"cd", b"ef"].into_iter()).unwrap();
    let words: DictionaryArray<arrow::datatypes::Int32Type> = ["x", "y", "x"].into_iter().collect();
    let tiny = ListArray::from_iter_primitive::<arrow::datatypes::UInt8Type, _, _>([
        Some(vec![Some(9)]),
        None,
        None,
    ]);
    let pair = StructArray::from(vec![(
        Arc::new(Field::new("a", DataType::Int64, true)),
        Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef,
    )]);
    batch(vec![
        ("id", Arc::new(Int64Array::from(vec![3, 1, 2]))),
        ("nothing", Arc::new(NullArray::new(3))),
        (
            "flag",
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        ),
        ("i8", Arc::new(Int8Array::from(vec![-1, 0, 1]))),
        ("i16", Arc::new(Int16Array::from(vec![-1, 0, 1]))),
        (
            "i32",
            Arc::new(Int32Array::from(vec![Some(-1), None, Some(1)])),
        ),
        ("u8", Arc::new(UInt8Array::from(vec![0, 1, 255]))),
        ("u16", Arc::new(UInt16Array::from(vec![0, 1, 65535]))),
        ("u32", Arc::new(UInt32Array::from(vec![0, 1, u32::MAX]))),
        (
            "u64",
            Arc::new(UInt64Array::from(vec![0, 1, i64::MAX as u64])),
        ),
        (
            "f32",
            Arc::new(Float32Array::from(vec![0.5, f32::NAN, -0.0])),
        ),
        (
            "f64",
            Arc::new(Float64Array::from(vec![0.5, f64::INFINITY, -0.0])),
        ),
        (
            "text",
            Arc::new(StringArray::from(vec![Some("é"), None, Some("")])),
        ),
        (
            "bytes",
            Arc::new(BinaryArray::from_vec(vec![b"a", b"", b"\xff"])),
        ),
        ("fixed", Arc::new(bytes)),
        ("word", Arc::new(words)),
        ("day", Arc::new(Date32Array::from(vec![0, 1, 20_000]))),
        ("time", Arc::new(Time64NanosecondArray::from(vec![0, 1, 2]))),
        (
            "second",
            Arc::new(TimestampSecondArray::from(vec![0, 1, 2])),
        ),
        (
            "micro",
            Arc::new(TimestampMicrosecondArray::from(vec![0, 1, 2]).with_timezone("UTC")),
        ),
        (
            "lasted",
            Arc::new(DurationMillisecondArray::from(vec![0, 1, 2])),
        ),
        (
            "price",
            Arc::new(
                Decimal128Array::from(vec![1, 2, 3])
                    .with_precision_and_scale(10, 2)
                    .unwrap(),
            ),
        ),
        ("list", Arc::new(list)),
        ("vector", Arc::new(vector)),
        ("tiny", Arc::new(tiny)),
        ("pair", Arc::new(pair)),
    ])
}

#[test]
fn every_type_goes_through_with_its_values() {
    let table = every_type();
    let out = sql("SELECT * FROM t ORDER BY id", &[("t", table.clone())]).unwrap();
    let order = UInt32Array::from(vec![1, 2, 0]);
    let expected = arrow::compute::take_record_batch(&table, &order).unwrap();
    let changed: BTreeMap<String, String> = expected
        .columns()
        .iter()
        .zip(out.columns())
        .zip(expected.schema().fields())
        .filter(|((before, after), _)| {
            // In the form that is stored, where LargeUtf8 and Utf8 are one.
            let stored = |a: &ArrayRef| store::canonical(&batch(vec![("c", a.clone())])).unwrap();
            stored(before) != stored(after)
        })
        .map(|((_, after), field)| (field.name().clone(), after.data_type().to_string()))
        .collect();
    // Integers come back with 64 bits, what polars has no type for in the next wider one, and
    // nothing else changes.
    let widened = [
        ("fixed", "LargeBinary"),
        ("i16", "Int64"),
        ("i32", "Int64"),
        ("i8", "Int64"),
        ("second", "Timestamp(ms)"),
        ("tiny", "LargeList(UInt32)"),
        ("u16", "Int64"),
        ("u32", "Int64"),
        ("u64", "Int64"),
        ("u8", "Int64"),
    ];
    let widened: BTreeMap<String, String> = widened
        .into_iter()
        .map(|(name, ty)| (name.into(), ty.into()))
        .collect();
    assert_eq!(changed, widened);
}

/// polars writes columns of nulls in a way that arrow-rs refuses, so they need a way round.
#[test]
fn lists_of_nothing_come_back_as_lists_of_booleans() {
    let item = Arc::new(Field::new("item", DataType::Null, true));
    let offsets = arrow::buffer::OffsetBuffer::from_lengths([0, 2]);
    let list = ListArray::new(item, offsets, Arc::new(NullArray::new(2)), None);
    let out = sql(
        "SELECT l FROM t",
        &[("t", batch(vec![("l", Arc::new(list))]))],
    )
    .unwrap();
    let lists = out.column(0).as_list::<i64>();
    assert_eq!((lists.value(0).len(), lists.value(1).null_count()), (0, 2));
    assert_eq!(lists.value_type(), DataType::Boolean);
}

#[test]
fn rows_of_every_type_can_be_put_in_order() {
    let once = sql("SELECT * FROM t", &[("t", every_type())]).unwrap();
    assert_eq!(
        once.column(0).as_primitive::<Int64Type>().values(),
        &[1, 2, 3]
    );
    let by_list = sql(
        "SELECT list, vector, pair, nothing FROM t",
        &[("t", every_type())],
    )
    .unwrap();
    assert!(by_list.column(0).is_null(0), "nulls come first");
}

#[test]
fn tables_without_rows_keep_their_columns() {
    let empty = every_type().slice(0, 0);
    let out = sql("SELECT * FROM t", &[("t", empty.clone())]).unwrap();
    assert_eq!(
        (out.num_rows(), out.num_columns()),
        (0, empty.num_columns())
    );
    let out = sql(
        "SELECT COUNT(*) AS n, SUM(f64) AS s FROM t",
        &[("t", empty)],
    )
    .unwrap();
    assert_eq!(out.num_rows(), 1);
}

#[test]
fn slices_are_read_where_they_lie() {
    let part = every_type().slice(1, 2);
    let out = sql("SELECT id, text, flag FROM t ORDER BY id", &[("t", part)]).unwrap();
    assert_eq!(out.column(0).as_primitive::<Int64Type>().values(), &[1, 2]);
    assert!(out.column(2).is_null(0));
}

#[test]
fn without_order_by_rows_are_sorted() {
    let x = Float64Array::from(vec![Some(2.0), None, Some(f64::NAN), Some(-1.0)]);
    let t = batch(vec![("x", Arc::new(x))]);
    let out = sql("SELECT x FROM t", &[("t", t.clone())]).unwrap();
    let out = out
        .column(0)
        .as_primitive::<arrow::datatypes::Float64Type>();
    assert!(out.is_null(0) && out.value(1) == -1.0 && out.value(2) == 2.0 && out.value(3).is_nan());
    let out = sql("SELECT x FROM t WHERE x < 5 ORDER BY x DESC", &[("t", t)]).unwrap();
    assert_eq!(
        out.column(0)
            .as_primitive::<arrow::datatypes::Float64Type>()
            .values(),
        &[2.0, -1.0]
    );
}

#[test]
fn a_query_may_do_without_inputs() {
    let out = sql("SELECT 1 AS one, 'x' AS text", &[]).unwrap();
    assert_eq!((out.num_rows(), out.num_columns()), (1, 2));
}

#[track_caller]
fn assert_fails(query: &str, message: &str, help: &str) {
    let t = batch(vec![
        ("accuracy", Arc::new(Float64Array::from(vec![0.5]))),
        ("model", Arc::new(StringArray::from(vec!["a"]))),
    ]);
    let failure = sql(query, &[("scores", t)]).unwrap_err();
    assert_eq!(
        (
            failure.message.as_str(),
            failure.help.as_deref().unwrap_or("")
        ),
        (message, help)
    );
    assert_eq!(failure.param, Some("query"));
}

#[test]
fn unknown_names_are_named_with_the_nearest() {
    assert_fails(
        "SELECT * FROM score",
        "no input is named `score`",
        "did you mean `scores`? the inputs are scores",
    );
    assert_fails(
        "SELECT * FROM other",
        "no input is named `other`",
        "the inputs are scores",
    );
    let columns = "`scores` has accuracy, model";
    assert_fails(
        "SELECT acuracy FROM scores",
        "no column is named `acuracy`",
        &format!("did you mean `accuracy`? {columns}"),
    );
    assert_fails(
        "SELECT scores.loss FROM scores",
        "no column is named `loss`",
        columns,
    );
    assert_fails(
        "SELECT model FROM scores WHERE loss > 1",
        "no column is named `loss`",
        columns,
    );
    assert_fails(
        "SELECT AVG(loss) AS l FROM scores GROUP BY model",
        "no column is named `loss`",
        columns,
    );
}

#[test]
fn other_errors_are_short() {
    let t = batch(vec![("x", Arc::new(StringArray::from(vec!["a"])))]);
    let queries = [
        "SELECT FROBNICATE(x) AS y FROM t",
        "SELECT x + 1 AS y, x AS y FROM t",
        "SELECT SUM(x) AS y FROM t WHERE x > 1",
    ];
    let mut messages = BTreeSet::new();
    for query in queries {
        if let Err(failure) = sql(query, &[("t", t.clone())]) {
            assert!(failure.message.lines().count() <= 2, "{query}: {failure}");
            messages.insert(failure.message);
        }
    }
    assert!(
        messages
            .iter()
            .any(|m| m.to_lowercase().contains("frobnicate")),
        "{messages:?}"
    );
}

#[test]
fn rows_that_a_query_chooses_keep_what_their_table_says_of_itself() {
    let mut ids = ListBuilder::new(Int32Builder::new());
    (0..4).for_each(|n| ids.append_value([Some(n)]));
    let said = [("ablate.vocab".to_owned(), "3".to_owned())];
    let columns = vec![
        (
            "id",
            Arc::new(Int64Array::from(vec![0, 1, 2, 3])) as ArrayRef,
        ),
        ("ids", Arc::new(ids.finish()) as ArrayRef),
    ];
    let tokens = with_metadata(columns, said.into_iter().collect());
    let other = batch(vec![(
        "id",
        Arc::new(Int64Array::from(vec![1, 3])) as ArrayRef,
    )]);
    let said = |query: &str| {
        let rows = sql(query, &[("t", tokens.clone()), ("o", other.clone())]).unwrap();
        rows.schema().metadata().get("ablate.vocab").cloned()
    };
    let chosen = "SELECT t.id AS id, t.ids AS ids FROM t JOIN o ON t.id = o.id";
    assert_eq!(said(chosen).as_deref(), Some("3"));
    assert_eq!(said("SELECT id FROM t"), None, "ids are not there");
    assert_eq!(said("SELECT id, id AS ids FROM t"), None, "of another type");
}
