//! Each kind of figure, from a table.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float32Array, Int64Array, ListArray, StringArray};
use arrow::datatypes::Float32Type;
use arrow::record_batch::RecordBatch;

use super::spec::{FigureSpec, Kind};
use super::{Figure, make};

fn spec(kind: Kind, x: &str, y: &str) -> FigureSpec {
    let mut spec = FigureSpec {
        id: "f".to_owned(),
        table: "t".to_owned(),
        kind,
        x: x.to_owned(),
        y: (!y.is_empty()).then(|| y.to_owned()),
        rows: 2,
        ..FigureSpec::default()
    };
    spec.name_the_rest();
    spec
}

fn curves() -> RecordBatch {
    let attack: ArrayRef = Arc::new(StringArray::from(vec!["a", "a", "b", "b"]));
    let size: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 1, 2]));
    let success: ArrayRef = Arc::new(Float32Array::from(vec![
        Some(0.1),
        Some(0.5),
        None,
        Some(0.9),
    ]));
    RecordBatch::try_from_iter([("attack", attack), ("size", size), ("success", success)]).unwrap()
}

fn signals() -> RecordBatch {
    let lists = |rows: [[f32; 4]; 3]| -> ArrayRef {
        let rows = rows.map(|row| Some(row.map(Some)));
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
    };
    let original = lists([[0.0, 0.5, 1.0, 0.5], [0.0; 4], [1.0; 4]]);
    let adversarial = lists([[0.1, 0.4, 1.0, 0.5], [0.5; 4], [1.0; 4]]);
    RecordBatch::try_from_iter([("original", original), ("adversarial", adversarial)]).unwrap()
}

fn drawn(spec: &FigureSpec, table: &RecordBatch) -> Figure {
    make(spec, table, None).unwrap_or_else(|why| panic!("{:?}: {why}", spec.kind))
}

#[test]
fn tidy_tables_become_lines_paths_points_bars_and_grids() {
    for kind in [
        Kind::Lines,
        Kind::Path,
        Kind::Points,
        Kind::Bars,
        Kind::Boxes,
    ] {
        let by = FigureSpec {
            by: Some("attack".to_owned()),
            ..spec(kind, "size", "success")
        };
        let figure = drawn(&by, &curves());
        assert_eq!(figure.drawings.len(), 1, "{kind:?}");
        let names: Vec<&str> = figure
            .legend
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(
            (figure.data.total, figure.data.rows[2][2].as_str()),
            (4, "")
        );
    }
    let grid = FigureSpec {
        value: Some("success".to_owned()),
        ..spec(Kind::Matrix, "size", "attack")
    };
    assert!(
        drawn(&grid, &curves()).drawings[0].contains("0.5"),
        "small grids have their numbers"
    );
    let histogram = drawn(&spec(Kind::Histogram, "size", ""), &curves());
    assert!(histogram.drawings[0].contains("count"), "its axis is named");
}

#[test]
fn a_series_may_have_many_lines() {
    let lines = |each: Option<&str>| {
        let spec = FigureSpec {
            each: each.map(str::to_owned),
            ..spec(Kind::Path, "size", "size")
        };
        let figure = drawn(&spec, &curves());
        assert!(figure.legend.is_empty(), "they are one series");
        figure.drawings[0].matches("<polyline").count()
    };
    assert_eq!(lines(Some("attack")) - lines(None), 1);
}

#[test]
fn lists_become_signals_and_pictures_with_their_change() {
    let columns = vec!["original".to_owned(), "adversarial".to_owned()];
    let lines = FigureSpec {
        columns: columns.clone(),
        ..spec(Kind::Series, "", "")
    };
    let figure = drawn(&lines, &signals());
    assert_eq!(figure.drawings.len(), 2, "as many rows as spec for");
    let names: Vec<&str> = figure
        .legend
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["original", "adversarial", "change"]);
    let pictures = FigureSpec {
        columns,
        width: Some(2),
        ..spec(Kind::Images, "", "")
    };
    let figure = drawn(&pictures, &signals());
    let names: Vec<&str> = figure.pictures[0]
        .iter()
        .map(|picture| picture.name.as_str())
        .collect();
    assert_eq!(
        (figure.pictures.len(), names),
        (2, vec!["original", "adversarial", "change (±0.1)"])
    );
    let uneven = FigureSpec {
        width: Some(3),
        ..pictures
    };
    let why = make(&uneven, &signals(), None).unwrap_err();
    assert_eq!(
        why,
        "row 0 has 4 numbers, which is not a multiple of the width 3"
    );
}

#[test]
fn what_cannot_be_drawn_says_why() {
    let why = |spec: &FigureSpec| make(spec, &curves(), None).unwrap_err();
    assert_eq!(
        why(&spec(Kind::Lines, "size", "sucess")),
        "its table has no column `sucess` of numbers; it has attack, size, success"
    );
    assert_eq!(
        why(&spec(Kind::Bars, "size", "success")),
        "two rows have the size `2`: aggregate them in `query`, or distinguish them with `by`"
    );
    let nothing = RecordBatch::new_empty(curves().schema());
    let why = make(&spec(Kind::Points, "size", "success"), &nothing, None).unwrap_err();
    assert_eq!(why, "no numbers to draw");
}
