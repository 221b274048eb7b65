//! A number out of a table, compared exactly: whole numbers never become floats on the way.
//! Knows nothing of what it measures.

use std::cmp::Ordering;

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};

/// A number as it is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number of any integer type.
    Whole(i128),
    /// A float.
    Float(f64),
}

impl Number {
    /// The number in a row of a column, none if it is null; or the column's type, if it holds none.
    pub fn read(column: &dyn Array, row: usize) -> Result<Option<Number>, DataType> {
        let kind = column.data_type();
        if !kind.is_numeric() {
            return Err(kind.clone());
        }
        if column.is_null(row) {
            return Ok(None);
        }
        let other = |_| kind.clone();
        Ok(Some(match kind {
            DataType::UInt64 => {
                Number::Whole(column.as_primitive::<UInt64Type>().value(row).into())
            }
            kind if kind.is_integer() => {
                let wide = cast(column, &DataType::Int64).map_err(other)?;
                Number::Whole(wide.as_primitive::<Int64Type>().value(row).into())
            }
            _ => {
                let wide = cast(column, &DataType::Float64).map_err(other)?;
                Number::Float(wide.as_primitive::<Float64Type>().value(row))
            }
        }))
    }

    /// Whether it is a float that is not a number.
    pub fn is_nan(self) -> bool {
        matches!(self, Number::Float(float) if float.is_nan())
    }

    /// Which is larger; nothing beside a NaN.
    pub fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Whole(a), Number::Whole(b)) => Some(a.cmp(&b)),
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
            (Number::Whole(a), Number::Float(b)) => whole_and_float(a, b),
            (Number::Float(a), Number::Whole(b)) => Some(whole_and_float(b, a)?.reverse()),
        }
    }
}

fn whole_and_float(whole: i128, float: f64) -> Option<Ordering> {
    // Columns have 64 bits: outside of these the float decides, inside it is exact once it is cut.
    match float {
        float if float.is_nan() => None,
        float if float >= 1e30 => Some(Ordering::Less),
        float if float <= -1e30 => Some(Ordering::Greater),
        float => Some(
            whole
                .cmp(&(float.trunc() as i128))
                .then_with(|| 0.0_f64.total_cmp(&(float.fract() + 0.0))),
        ),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int32Array, Int64Array, StringArray, UInt64Array};

    use super::*;

    #[test]
    fn whole_numbers_and_floats_are_compared_exactly() {
        let large = 9_007_199_254_740_993_i128;
        let cases = [
            (large, 9_007_199_254_740_992.0, Some(Ordering::Greater)),
            (large, 9_007_199_254_740_994.0, Some(Ordering::Less)),
            (1, 1.0, Some(Ordering::Equal)),
            (1, 1.5, Some(Ordering::Less)),
            (-1, -1.5, Some(Ordering::Greater)),
            (0, -0.0, Some(Ordering::Equal)),
            (i128::from(u64::MAX), f64::INFINITY, Some(Ordering::Less)),
            (0, f64::NEG_INFINITY, Some(Ordering::Greater)),
            (0, f64::NAN, None),
        ];
        for (whole, float, expected) in cases {
            let (a, b) = (Number::Whole(whole), Number::Float(float));
            assert_eq!(a.compare(b), expected, "{whole} and {float}");
            assert_eq!(b.compare(a), expected.map(Ordering::reverse));
        }
    }

    #[test]
    fn columns_of_every_width_are_read() {
        let read = |column: &dyn Array| Number::read(column, 0);
        let most = Number::Whole(u64::MAX.into());
        assert_eq!(read(&UInt64Array::from(vec![u64::MAX])), Ok(Some(most)));
        assert_eq!(
            read(&Int32Array::from(vec![-7])),
            Ok(Some(Number::Whole(-7)))
        );
        assert_eq!(read(&Int64Array::from(vec![None])), Ok(None));
        assert_eq!(
            read(&Float64Array::from(vec![0.5])),
            Ok(Some(Number::Float(0.5)))
        );
        assert_eq!(read(&StringArray::from(vec!["1"])), Err(DataType::Utf8));
    }
}
