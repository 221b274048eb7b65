//! Claims about integers: nothing wraps, wherever it is computed, and what fails says so.

mod sqlite;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;

use crate::Failure;
use crate::kinds::sql::query;

const MOST: i64 = i64::MAX;

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)))
        .unwrap()
}

fn ask(text: &str, tables: &[(&str, RecordBatch)]) -> Result<RecordBatch, Failure> {
    let tables: BTreeMap<_, _> = tables
        .iter()
        .map(|(name, table)| ((*name).to_owned(), table.clone()))
        .collect();
    query(tables, text, || false)
}

/// Two groups; `b` has a null more than `a` in the first.
fn small() -> RecordBatch {
    let integers = |values: &[Option<i64>]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    table(vec![
        ("g", integers(&[Some(1), Some(1), Some(2)])),
        ("a", integers(&[Some(10), Some(20), Some(30)])),
        ("b", integers(&[Some(1), None, Some(3)])),
        ("s", Arc::new(StringArray::from(vec!["x", "xyz", "xy"]))),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([
                Some(vec![Some(1), Some(2)]),
                None,
                Some(vec![]),
            ])),
        ),
    ])
}

#[track_caller]
fn gives(expression: &str, expected: &[Option<i64>]) {
    let text = format!("SELECT {expression} AS x FROM t");
    let found = ask(&text, &[("t", small())]).unwrap_or_else(|e| panic!("{text}: {e}"));
    let column = found.column(0);
    assert_eq!(column.data_type(), &DataType::Int64, "{text}");
    let found: Vec<_> = column.as_primitive::<Int64Type>().iter().collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn whatever_counts_is_signed_and_can_go_below_zero() {
    gives("COUNT(b) - COUNT(a)", &[Some(-1)]);
    gives("COUNT(*) - 5", &[Some(-2)]);
    gives("COUNT(DISTINCT g) - COUNT(*)", &[Some(-1)]);
    gives("-COUNT(*)", &[Some(-3)]);
    gives("SUM(a < 20) - SUM(g = 1)", &[Some(-1)]);
    gives("LENGTH(s) - 2", &[Some(-1), Some(0), Some(1)]);
    gives("OCTET_LENGTH(s) - 3", &[Some(-2), Some(-1), Some(0)]);
    gives("STRPOS(s, 'y') - 1", &[Some(-1), Some(1), Some(1)]);
    gives("ARRAY_LENGTH(list) - 1", &[None, Some(-1), Some(1)]);
    gives(
        "ROW_NUMBER() OVER (ORDER BY a) - 2",
        &[Some(-1), Some(0), Some(1)],
    );
    gives(
        "RANK() OVER (ORDER BY g) - 2",
        &[Some(-1), Some(-1), Some(1)],
    );
    gives(
        "DENSE_RANK() OVER (ORDER BY g) - 2",
        &[Some(-1), Some(-1), Some(0)],
    );
    gives(
        "COUNT(b) OVER (PARTITION BY g) - 2",
        &[Some(-1), Some(-1), Some(-1)],
    );
    gives(
        "CAST(a AS SMALLINT) - 100",
        &[Some(-90), Some(-80), Some(-70)],
    );
    gives(
        "CASE WHEN COUNT(*) > 5 THEN COUNT(*) ELSE -1 END",
        &[Some(-1)],
    );
}

#[test]
fn counts_are_signed_in_groups_subqueries_and_joins() {
    let tables = [("t", small()), ("u", small())];
    let queries = [
        "SELECT COUNT(b) - COUNT(a) AS x FROM t GROUP BY g ORDER BY x",
        "SELECT SUM(b > 0) - SUM(a > 5) AS x FROM t GROUP BY g ORDER BY x",
        "SELECT d AS x FROM (SELECT g, COUNT(b) - COUNT(a) AS d FROM t GROUP BY g) ORDER BY x",
        "WITH n AS (SELECT g, COUNT(a) AS a, COUNT(b) AS b FROM t GROUP BY g) SELECT b - a AS x FROM n ORDER BY x",
        "SELECT COUNT(t.b) - COUNT(u.a) AS x FROM t JOIN u ON t.a = u.a GROUP BY t.g ORDER BY x",
    ];
    for text in queries {
        let found = ask(text, &tables).unwrap_or_else(|e| panic!("{text}: {e}"));
        let found = found.column(0).as_primitive::<Int64Type>();
        assert_eq!(found.values(), &[-1, 0], "{text}");
    }
    let text = "SELECT a FROM t WHERE LENGTH(s) - 2 < 0";
    assert_eq!(ask(text, &tables).unwrap().num_rows(), 1);
}

/// From the smallest to the largest type, every integer comes out signed with 64 bits.
#[test]
fn integers_of_every_type_come_out_signed() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("a", Arc::new(Int8Array::from(vec![3]))),
        ("b", Arc::new(Int16Array::from(vec![3]))),
        ("c", Arc::new(Int32Array::from(vec![3]))),
        ("d", Arc::new(UInt8Array::from(vec![3]))),
        ("e", Arc::new(UInt16Array::from(vec![3]))),
        ("f", Arc::new(UInt32Array::from(vec![3]))),
        ("g", Arc::new(UInt64Array::from(vec![3]))),
    ];
    let t = table(columns);
    for column in ["a", "b", "c", "d", "e", "f", "g"] {
        for (text, expected) in [("", 3), (" - 5", -2), (" * 4000000000", 12_000_000_000)] {
            let text = format!("SELECT {column}{text} AS x FROM t");
            let found = ask(&text, &[("t", t.clone())]).unwrap();
            let found = found.column(0).as_primitive::<Int64Type>().value(0);
            assert_eq!(found, expected, "{text}");
        }
    }
    let large = table(vec![("x", Arc::new(UInt64Array::from(vec![u64::MAX])))]);
    let failure = ask("SELECT x FROM t", &[("t", large)]).unwrap_err();
    assert_eq!(
        failure.help.as_deref(),
        Some("integers are signed, with 64 bits: store larger ones as strings or floats")
    );
    assert_eq!(
        failure.message,
        "column `x` of `t` has the type UInt64, which SQL cannot read: \
         Cast error: Can't cast value 18446744073709551615 to type Int64"
    );
}

fn large() -> RecordBatch {
    table(vec![
        ("g", Arc::new(Int64Array::from(vec![1, 1, 2]))),
        ("x", Arc::new(Int64Array::from(vec![MOST, 1, i64::MIN]))),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([
                Some(vec![Some(MOST), Some(MOST)]),
                None,
                None,
            ])),
        ),
    ])
}

#[test]
fn what_does_not_fit_is_an_error_wherever_it_is_computed() {
    let cases = [
        ("SELECT x + 1 AS y FROM t", "9223372036854775807 + 1"),
        ("SELECT 2 * x AS y FROM t", "2 * 9223372036854775807"),
        (
            "SELECT x - 2 AS y FROM t WHERE g = 2",
            "-9223372036854775808 - 2",
        ),
        ("SELECT g FROM t WHERE x + 1 > 0", "9223372036854775807 + 1"),
        ("SELECT -x AS y FROM t", "0 - -9223372036854775808"),
        ("SELECT ABS(x) AS y FROM t", "-(-9223372036854775808)"),
        (
            "SELECT POW(x, 2) AS y FROM t WHERE g = 1",
            "9223372036854775807 to the power of 2",
        ),
        (
            "SELECT SUM(x) AS y FROM t WHERE g = 1",
            "a sum of 9223372036854775808",
        ),
        (
            "SELECT g, SUM(x) AS y FROM t GROUP BY g",
            "a sum of 9223372036854775808",
        ),
        (
            "SELECT g, SUM(x) OVER (PARTITION BY g) AS y FROM t",
            "a sum of 9223372036854775808",
        ),
        (
            "SELECT g, SUM(x) OVER (ORDER BY x DESC) AS y FROM t",
            "a sum of 9223372036854775808",
        ),
        (
            "SELECT SUM(x) - SUM(g) AS y FROM t WHERE g = 2",
            "-9223372036854775808 - 2",
        ),
        (
            "SELECT g, MAX(x) + MAX(g) AS y FROM t WHERE g = 1 GROUP BY g",
            "9223372036854775807 + 1",
        ),
        (
            "SELECT ARRAY_SUM(list) AS y FROM t",
            "a sum of 18446744073709551614",
        ),
        (
            "SELECT a.g FROM t AS a JOIN t AS b ON a.x + 1 = b.x",
            "9223372036854775807 + 1",
        ),
        ("SELECT g FROM t ORDER BY x + 1", "9223372036854775807 + 1"),
        (
            "SELECT DIV(x, -1) AS y FROM t",
            "-9223372036854775808 // -1",
        ),
    ];
    for (text, what) in cases {
        let failure = match ask(text, &[("t", large())]) {
            Ok(table) => panic!("{text} gave {:?}", table.column(0)),
            Err(failure) => failure,
        };
        let expected = format!("integer overflow: {what} does not fit in 64 bits");
        assert_eq!(failure.message, expected, "{text}");
        assert_eq!(
            failure.help.as_deref(),
            Some(
                "integers have 64 bits: where an approximate number will do, use CAST(… AS DOUBLE)"
            )
        );
    }
}

/// polars computes with constants as soon as it reads them, in more bits.
#[test]
fn constants_that_do_not_fit_are_an_error() {
    let failure = ask("SELECT 9223372036854775807 + 1 AS y", &[]).unwrap_err();
    assert!(failure.message.contains("9223372036854775808"), "{failure}");
}

/// polars takes the sum of a constant over a group to be the constant.
#[test]
fn constants_are_added_up_once_for_each_row() {
    gives("SUM(1)", &[Some(3)]);
    gives("SUM(2 + 3) - COUNT(7)", &[Some(12)]);
    gives("COUNT(NULL) - 1", &[Some(-1)]);
    gives("SUM(1) OVER (PARTITION BY g)", &[Some(1), Some(2), Some(2)]);
    gives("SUM(1) OVER (ORDER BY a)", &[Some(1), Some(2), Some(3)]);
    let text = "SELECT g, SUM(2) AS x FROM t GROUP BY g ORDER BY g";
    let found = ask(text, &[("t", small())]).unwrap();
    assert_eq!(
        found.column(1).as_primitive::<Int64Type>().values(),
        &[4, 2]
    );
    let text = "SELECT SUM(1) AS x FROM t WHERE g > 7";
    let found = ask(text, &[("t", small())]).unwrap();
    assert!(found.column(0).is_null(0));
}

/// An overflow on the way that is undone before the end is none.
#[test]
fn sums_that_fit_in_the_end_are_right() {
    let t = table(vec![(
        "x",
        Arc::new(Int64Array::from(vec![MOST, 5, -5, MOST, -MOST, -1])),
    )]);
    let found = ask("SELECT SUM(x) AS y FROM t", &[("t", t)]).unwrap();
    assert_eq!(
        found.column(0).as_primitive::<Int64Type>().value(0),
        MOST - 1
    );
}
