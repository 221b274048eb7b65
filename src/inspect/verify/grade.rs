//! Two tables that should be the same: are they, how far are they apart, and where first.
//! Knows nothing of stages.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::record_batch::RecordBatch;
use serde::Serialize;

use crate::results::cell::texts;

/// How two tables compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "grade", rename_all = "kebab-case")]
pub enum Grade {
    /// The same bytes.
    BitIdentical,
    /// Other bytes, and no number is further off than allowed.
    WithinTolerance {
        /// The column whose numbers lie furthest apart, measured by what is allowed.
        column: String,
        /// How far they lie apart at most.
        off: f64,
        /// How far they may.
        allowed: f64,
    },
    /// Neither.
    Different {
        /// The first row that differs, counted from 0.
        row: Option<usize>,
        /// The first column that differs in that row.
        column: Option<String>,
        /// What was there, and what is there now.
        detail: String,
    },
}

impl Grade {
    /// Where and how much, in words.
    pub fn described(&self) -> String {
        match self {
            Grade::BitIdentical => "the same bytes".to_owned(),
            Grade::WithinTolerance {
                column,
                off,
                allowed,
            } => format!("column {column} differs by at most {off:.1e} ({allowed:.0e} is allowed)"),
            Grade::Different {
                row,
                column,
                detail,
            } => {
                let row = row.map(|row| format!("row {row}"));
                let column = column.as_ref().map(|column| format!("column {column}"));
                let place: Vec<String> = row.into_iter().chain(column).collect();
                match place.is_empty() {
                    true => detail.clone(),
                    false => format!("{}: {detail}", place.join(", ")),
                }
            }
        }
    }

    /// In words.
    pub fn name(&self) -> &'static str {
        match self {
            Grade::BitIdentical => "bit-identical",
            Grade::WithinTolerance { .. } => "within tolerance",
            Grade::Different { .. } => "different",
        }
    }

    /// How bad it is.
    pub fn rank(&self) -> u8 {
        match self {
            Grade::BitIdentical => 0,
            Grade::WithinTolerance { .. } => 1,
            Grade::Different { .. } => 2,
        }
    }
}

/// Compares tables whose bytes differ. `allowed` says how far the floats of a column may be off.
pub fn tables(old: &RecordBatch, new: &RecordBatch, allowed: impl Fn(&str) -> f64) -> Grade {
    let different = |detail: String| Grade::Different {
        row: None,
        column: None,
        detail,
    };
    if old.schema().fields() != new.schema().fields() {
        return different(format!(
            "columns were {}, now {}",
            store::schema_text(old.schema_ref()),
            store::schema_text(new.schema_ref())
        ));
    }
    let mut worst: Option<(f64, String, f64, f64)> = None;
    let mut first: Option<(usize, usize)> = None;
    for (at, field) in old.schema().fields().iter().enumerate() {
        let (was, now) = (old.column(at), new.column(at));
        if was == now {
            continue;
        }
        let allowed = allowed(field.name());
        for row in 0..old.num_rows().min(new.num_rows()) {
            let off = apart(&was.slice(row, 1), &now.slice(row, 1));
            match off {
                Some(off) if off <= allowed => {
                    let share = off / allowed.max(f64::MIN_POSITIVE);
                    if off > 0.0 && worst.as_ref().is_none_or(|(most, ..)| share > *most) {
                        worst = Some((share, field.name().clone(), off, allowed));
                    }
                }
                _ => {
                    if first.is_none_or(|(known, _)| row < known) {
                        first = Some((row, at));
                    }
                    break;
                }
            }
        }
    }
    if let Some((row, at)) = first {
        let show = |table: &RecordBatch| shorten(&texts(&table.column(at).slice(row, 1))[0]);
        return Grade::Different {
            row: Some(row),
            column: Some(old.schema().field(at).name().clone()),
            detail: format!("{} -> {}", show(old), show(new)),
        };
    }
    if old.num_rows() != new.num_rows() {
        return Grade::Different {
            row: Some(old.num_rows().min(new.num_rows())),
            column: None,
            detail: format!("{} rows were {}", new.num_rows(), old.num_rows()),
        };
    }
    match worst {
        Some((_, column, off, allowed)) => Grade::WithinTolerance {
            column,
            off,
            allowed,
        },
        None if old.schema() == new.schema() => {
            different("the same rows, stored as other bytes".to_owned())
        }
        None => different("the tables' metadata differ".to_owned()),
    }
}

/// How far two single values lie apart: absolutely below 1, relatively above. `None`: they are
/// no floats, or not of one shape, and not equal.
fn apart(was: &ArrayRef, now: &ArrayRef) -> Option<f64> {
    if was == now {
        return Some(0.0);
    }
    if was.is_null(0) || now.is_null(0) {
        return None;
    }
    match was.data_type() {
        kind if kind.is_floating() => {
            let number = |array: &ArrayRef| {
                let double = cast(array, &DataType::Float64).ok()?;
                Some(double.as_primitive::<Float64Type>().value(0))
            };
            let (a, b) = (number(was)?, number(now)?);
            match (a.is_nan(), b.is_nan()) {
                (true, true) => Some(0.0),
                (false, false) if a == b => Some(0.0),
                (false, false) => Some((a - b).abs() / a.abs().max(b.abs()).max(1.0)),
                _ => None,
            }
        }
        DataType::List(_) => inside(
            &was.as_list::<i32>().value(0),
            &now.as_list::<i32>().value(0),
        ),
        DataType::LargeList(_) => inside(
            &was.as_list::<i64>().value(0),
            &now.as_list::<i64>().value(0),
        ),
        DataType::FixedSizeList(..) => inside(
            &was.as_fixed_size_list().value(0),
            &now.as_fixed_size_list().value(0),
        ),
        _ => None,
    }
}

/// The furthest of two lists' items.
fn inside(was: &ArrayRef, now: &ArrayRef) -> Option<f64> {
    if was.len() != now.len() {
        return None;
    }
    let mut each = (0..was.len()).map(|n| apart(&was.slice(n, 1), &now.slice(n, 1)));
    each.try_fold(0.0, |most: f64, off| Some(most.max(off?)))
}

/// A value that fits on a line.
fn shorten(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float32Array, Int64Array, ListArray};
    use arrow::datatypes::Float32Type;

    use super::*;

    fn table(x: [f32; 3], n: [i64; 3]) -> RecordBatch {
        let lists = x.map(|x| Some(vec![Some(1.0), Some(x)]));
        let lists = ListArray::from_iter_primitive::<Float32Type, _, _>(lists);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("n", Arc::new(Int64Array::from(n.to_vec()))),
            ("x", Arc::new(Float32Array::from(x.to_vec()))),
            ("list", Arc::new(lists)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn floats_may_be_off_as_far_as_allowed() {
        let (old, new) = (
            table([1.0, 2.0, 3.0], [1, 2, 3]),
            table([1.0, 2.0, 3.003], [1, 2, 3]),
        );
        let found = tables(&old, &new, |_| 0.01);
        let Grade::WithinTolerance { column, off, .. } = &found else {
            panic!("{found:?}");
        };
        assert_eq!(column, "x");
        assert!((off - 0.001).abs() < 1e-5, "{off}");
        let found = tables(&old, &new, |name| if name == "x" { 0.01 } else { 0.0 });
        let expected = Grade::Different {
            row: Some(2),
            column: Some("list".to_owned()),
            detail: "[1.0, 3.0] -> [1.0, 3.003]".to_owned(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_first_row_counts_then_the_first_column() {
        let old = table([1.0, 2.0, 3.0], [1, 2, 3]);
        let found = tables(&old, &table([1.0, 9.0, 3.0], [1, 2, 7]), |_| 0.0);
        let Grade::Different {
            row,
            column,
            detail,
        } = found
        else {
            panic!("they differ");
        };
        assert_eq!((row, column.as_deref()), (Some(1), Some("x")));
        assert_eq!(detail, "2.0 -> 9.0");
        // Whole numbers are never near enough.
        let found = tables(&old, &table([1.0, 2.0, 3.0], [1, 2, 4]), |_| 10.0);
        assert_eq!(found.name(), "different");
    }

    #[test]
    fn lengths_and_columns_count() {
        let old = table([1.0, 2.0, 3.0], [1, 2, 3]);
        let found = tables(&old, &old.slice(0, 2), |_| 1.0);
        let expected = Grade::Different {
            row: Some(2),
            column: None,
            detail: "2 rows were 3".to_owned(),
        };
        assert_eq!(found, expected);
        let found = tables(&old, &old.project(&[0]).unwrap(), |_| 1.0);
        assert_eq!(found.name(), "different");
    }
}
