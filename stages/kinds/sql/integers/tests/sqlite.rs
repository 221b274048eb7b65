//! The same queries, written by chance, asked of us and of SQLite.
//!
//! Where the dialects differ, the generator keeps away:
//! - SQLite goes on in floats where `+`, `-`, `*` overflow; ours is an error.
//! - `/` of integers gives a float here and an integer there; not generated.
//! - `NOT IN` with nulls, and the place of nulls in a ranking, differ; not generated.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::{ask, table};
use crate::kinds::sql::integers::OVERFLOW;

const QUERIES: usize = 400;

#[test]
fn generated_queries_agree_with_sqlite() {
    let (mut compared, mut overflows) = (0, 0);
    for seed in 0..QUERIES as u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let (t, u) = (dice.t(), dice.u());
        let text = dice.query();
        let theirs = sqlite(&text, &[("t", &t), ("u", &u)]);
        match ask(&text, &[("t", t), ("u", u)]) {
            Ok(ours) => {
                let theirs = theirs.unwrap_or_else(|e| panic!("{text}\nSQLite: {e}"));
                let ours = sorted(rows(&ours));
                let theirs = sorted(theirs);
                assert_eq!(ours.len(), theirs.len(), "{text}\n{ours:?}\n{theirs:?}");
                let all = ours.iter().flatten().zip(theirs.iter().flatten());
                for (a, b) in all {
                    assert!(same(a, b), "{text}\nours {ours:?}\nSQLite {theirs:?}");
                }
                compared += 1;
            }
            Err(failure) => {
                assert!(failure.message.starts_with(OVERFLOW), "{text}\n{failure}");
                overflows += 1;
            }
        }
    }
    println!("{compared} queries agree, {overflows} overflow");
    // Or the generator has lost its grip.
    assert!(compared > QUERIES * 7 / 10 && overflows > QUERIES / 50);
}

/// The differences that the generator keeps away from, so that the list above stays true.
#[test]
fn the_dialects_differ_where_it_is_said() {
    let both = |text: &str| (rows(&ask(text, &[]).unwrap()), sqlite(text, &[]).unwrap());
    let (ours, theirs) = both("SELECT 7 / 2 AS q");
    assert_eq!(
        (&ours[0][0], &theirs[0][0]),
        (&Value::Real(3.5), &Value::Integer(3))
    );
}

fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Real(a), Value::Real(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0),
        (a, b) => a == b,
    }
}

/// Rows in an order that both sides have.
fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    let key = |value: &Value| match value {
        Value::Null => (0, 0, 0.0, String::new()),
        Value::Integer(n) => (1, *n, 0.0, String::new()),
        Value::Real(x) => (2, 0, (x * 1e6).round(), String::new()),
        Value::Text(text) => (3, 0, 0.0, text.clone()),
        Value::Blob(_) => (4, 0, 0.0, String::new()),
    };
    rows.sort_by(|a, b| {
        let (a, b): (Vec<_>, Vec<_>) = (a.iter().map(key).collect(), b.iter().map(key).collect());
        a.partial_cmp(&b).expect("no NaN is generated")
    });
    rows
}

fn rows(table: &RecordBatch) -> Vec<Vec<Value>> {
    let cell = |column: &ArrayRef, row: usize| match column.data_type() {
        _ if column.is_null(row) => Value::Null,
        DataType::Int64 => Value::Integer(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => Value::Real(column.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 | DataType::LargeUtf8 => Value::Text(text(column, row)),
        DataType::Null => Value::Null,
        other => panic!("a column of type {other}"),
    };
    let row = |row| table.columns().iter().map(|c| cell(c, row)).collect();
    (0..table.num_rows()).map(row).collect()
}

fn text(column: &ArrayRef, row: usize) -> String {
    let text = arrow::compute::cast(column, &DataType::Utf8).unwrap();
    text.as_string::<i32>().value(row).to_owned()
}

fn sqlite(query: &str, tables: &[(&str, &RecordBatch)]) -> rusqlite::Result<Vec<Vec<Value>>> {
    let database = Connection::open_in_memory()?;
    for (name, table) in tables {
        let schema = table.schema();
        let columns: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        database.execute(&format!("CREATE TABLE {name} ({})", columns.join(", ")), [])?;
        let marks = vec!["?"; columns.len()].join(", ");
        for row in rows(table) {
            let insert = format!("INSERT INTO {name} VALUES ({marks})");
            database.execute(&insert, rusqlite::params_from_iter(row))?;
        }
    }
    let mut statement = database.prepare(query)?;
    let width = statement.column_count();
    let found = statement.query_map([], |row| (0..width).map(|n| row.get(n)).collect())?;
    found.collect()
}

/// Chance that is the same on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    fn pick<'a>(&mut self, options: &[&'a str]) -> &'a str {
        options[self.roll(options.len() as u64) as usize]
    }

    fn number(&mut self) -> i64 {
        match self.roll(40) {
            0 => i64::MAX - self.roll(3) as i64,
            1 => i64::MIN + 1 + self.roll(3) as i64,
            2 => 3_000_000_000,
            3 => i64::from(u32::MAX),
            _ => self.roll(11) as i64 - 5,
        }
    }

    fn numbers(&mut self, rows: usize) -> ArrayRef {
        let each = (0..rows).map(|_| (self.roll(6) > 0).then(|| self.number()));
        Arc::new(each.collect::<Int64Array>())
    }

    fn t(&mut self) -> RecordBatch {
        let rows = self.roll(12) as usize;
        let groups = (0..rows).map(|_| self.roll(3) as i64);
        let groups = Int64Array::from_iter_values(groups.collect::<Vec<_>>());
        let texts = (0..rows).map(|_| self.pick(&["", "a", "été", "words"]));
        let texts = StringArray::from_iter_values(texts.collect::<Vec<_>>());
        table(vec![
            ("id", Arc::new(Int64Array::from_iter_values(0..rows as i64))),
            ("g", Arc::new(groups)),
            ("a", self.numbers(rows)),
            ("b", self.numbers(rows)),
            ("s", Arc::new(texts)),
        ])
    }

    fn u(&mut self) -> RecordBatch {
        let rows = 1 + self.roll(5) as usize;
        let keys = Int64Array::from_iter_values((0..rows as i64).map(|n| n % 4));
        table(vec![("k", Arc::new(keys)), ("c", self.numbers(rows))])
    }

    /// An expression over one row of `t`.
    fn integer(&mut self, depth: u64) -> String {
        if depth == 0 || self.roll(5) == 0 {
            return match self.roll(6) {
                0 => format!("({})", self.roll(9) as i64 - 4),
                1 => "LENGTH(s)".to_owned(),
                n => ["t.a", "t.b", "t.g", "t.id"][n as usize - 2].to_owned(),
            };
        }
        let depth = depth - 1;
        let left = self.integer(depth);
        match self.roll(9) {
            0 => format!("ABS({left})"),
            1 => format!("(-({left}))"),
            2 => format!("COALESCE({left}, {})", self.roll(5)),
            3 => {
                let (condition, right) = (self.condition(depth), self.integer(depth));
                format!("CASE WHEN {condition} THEN {left} ELSE {right} END")
            }
            _ => {
                let (op, right) = (self.pick(&["+", "-", "*"]), self.integer(depth));
                format!("({left} {op} {right})")
            }
        }
    }

    fn condition(&mut self, depth: u64) -> String {
        let (left, right) = (self.integer(depth), self.integer(depth));
        let op = self.pick(&["<", "<=", "=", "<>", ">", ">="]);
        match self.roll(7) {
            0 => format!("{left} IS NULL"),
            1 => format!("({left} {op} {right} AND t.g < 2)"),
            2 => format!("({left} {op} {right} OR t.b IS NOT NULL)"),
            3 => format!("NOT ({left} {op} {right})"),
            4 => format!("{left} BETWEEN -3 AND {}", self.roll(9)),
            _ => format!("{left} {op} {right}"),
        }
    }

    /// An expression over a group of rows of `t`.
    fn aggregate(&mut self, depth: u64) -> String {
        if depth > 0 && self.roll(2) == 0 {
            let (left, right) = (self.aggregate(depth - 1), self.aggregate(depth - 1));
            return format!("({left} {} {right})", self.pick(&["+", "-", "*"]));
        }
        let of = self.integer(1);
        match self.roll(6) {
            0 => "COUNT(*)".to_owned(),
            1 => "COUNT(t.a)".to_owned(),
            2 => "COUNT(t.b)".to_owned(),
            3 => format!("MIN({of})"),
            4 => format!("MAX({of})"),
            _ => format!("SUM({of})"),
        }
    }

    fn query(&mut self) -> String {
        let (x, y, condition) = (self.integer(3), self.integer(2), self.condition(1));
        let (p, q) = (self.aggregate(2), self.aggregate(1));
        match self.roll(12) {
            0 => format!("SELECT {x} AS x, {y} AS y FROM t WHERE {condition}"),
            1 => format!("SELECT t.g AS g, {p} AS p, {q} AS q FROM t GROUP BY t.g"),
            2 => format!("SELECT {p} AS p, {q} AS q FROM t WHERE {condition}"),
            3 => format!("SELECT t.g AS g, {p} AS p FROM t GROUP BY t.g HAVING {q} < 3"),
            4 => format!("SELECT {x} AS x, u.c - t.g AS y FROM t JOIN u ON t.g = u.k"),
            5 => "SELECT t.id AS id, COUNT(u.c) - COUNT(*) AS n \
                  FROM t LEFT JOIN u ON t.g = u.k GROUP BY t.id"
                .to_owned(),
            6 => format!(
                "SELECT t.id AS id, ROW_NUMBER() OVER (PARTITION BY t.g ORDER BY t.id) - LENGTH(s) AS r, \
                 {x} AS x FROM t"
            ),
            7 => format!(
                "SELECT q.x AS x, COUNT(*) - 3 AS n FROM (SELECT {x} AS x FROM t WHERE {condition}) AS q GROUP BY q.x"
            ),
            8 => format!("SELECT {x} AS x FROM t UNION ALL SELECT u.c AS x FROM u"),
            9 => format!("SELECT {x} AS x FROM t WHERE t.g IN (SELECT u.k FROM u WHERE u.c > 0)"),
            10 => format!(
                "WITH n AS (SELECT t.g AS g, {p} AS p FROM t GROUP BY t.g) \
                 SELECT n.p - t.id AS d, {y} AS y FROM n JOIN t ON n.g = t.g"
            ),
            _ => "SELECT t.id AS id, COUNT(*) OVER (PARTITION BY t.g) - t.id AS n, \
                  RANK() OVER (ORDER BY t.g) - 4 AS r FROM t"
                .to_owned(),
        }
    }
}
