//! Arithmetic on columns of integers that fails instead of wrapping around.

use polars::error::{PolarsError, PolarsResult, polars_bail, polars_err};
use polars::prelude::{Column, DataType, Int64Chunked, IntoColumn, Series};

/// How the message of every overflow begins.
pub const OVERFLOW: &str = "integer overflow: ";

/// An operation that may not fit.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Add,
    Subtract,
    Multiply,
    /// Rounds down, as polars does; by zero it gives null.
    Divide,
    Power,
    Negate,
    Absolute,
    /// The upper 32 bits: as many of them as there can be rows add up without an overflow.
    High,
    /// The lower 32 bits, in the same way.
    Low,
    /// A sum, from the sum of the upper and the sum of the lower bits.
    Sum,
    /// The sum of each list.
    SumOfList,
}

/// The result of the operation as this type, or the first numbers for which there is none.
pub fn compute(op: Op, columns: &[Column], ty: &DataType) -> PolarsResult<Column> {
    let name = columns[0].name().clone();
    let result = match op {
        Op::SumOfList => sums(&columns[0])?,
        Op::Negate | Op::Absolute | Op::High | Op::Low => {
            let numbers = whole(&columns[0])?;
            let each = numbers.iter().map(|n| n.map(|n| one(op, n)).transpose());
            each.collect::<PolarsResult<Int64Chunked>>()?
        }
        Op::Add | Op::Subtract | Op::Multiply | Op::Divide | Op::Power | Op::Sum => {
            pairs(op, &whole(&columns[0])?, &whole(&columns[1])?)?
        }
    };
    let result = result.with_name(name).into_column();
    match ty == &DataType::Int64 {
        true => Ok(result),
        // A type of fewer bits, which a function that `widen` does not know gave.
        false => result.strict_cast(ty).map_err(
            |_| polars_err!(ComputeError: "{OVERFLOW}a result does not fit in the type {ty}"),
        ),
    }
}

fn whole(column: &Column) -> PolarsResult<Int64Chunked> {
    let column = column.strict_cast(&DataType::Int64)?;
    Ok(column.as_materialized_series().i64()?.clone())
}

/// Item by item; a single item goes with all of the other side.
fn pairs(op: Op, left: &Int64Chunked, right: &Int64Chunked) -> PolarsResult<Int64Chunked> {
    let length = match (left.len(), right.len()) {
        (1, length) | (length, 1) => length,
        (a, b) if a == b => a,
        (a, b) => polars_bail!(ComputeError: "{a} integers do not go with {b}"),
    };
    let item = |side: &Int64Chunked, n| side.get(if side.len() == 1 { 0 } else { n });
    (0..length)
        .map(|n| match (item(left, n), item(right, n)) {
            (Some(a), Some(b)) => two(op, a, b),
            _ => Ok(None),
        })
        .collect()
}

fn two(op: Op, a: i64, b: i64) -> PolarsResult<Option<i64>> {
    let (result, sign) = match op {
        Op::Add => (a.checked_add(b), "+"),
        Op::Subtract => (a.checked_sub(b), "-"),
        Op::Multiply => (a.checked_mul(b), "*"),
        Op::Divide if b == 0 => return Ok(None),
        Op::Divide => (floor(a, b), "//"),
        Op::Sum => {
            let sum = (i128::from(a) << 32) + i128::from(b);
            return match i64::try_from(sum) {
                Ok(sum) => Ok(Some(sum)),
                Err(_) => Err(too_large(sum)),
            };
        }
        _ => (power(a, b)?, "to the power of"),
    };
    match result {
        Some(result) => Ok(Some(result)),
        None => polars_bail!(ComputeError: "{OVERFLOW}{a} {sign} {b} does not fit in 64 bits"),
    }
}

fn floor(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(quotient - i64::from(a % b != 0 && (a < 0) != (b < 0)))
}

fn power(a: i64, b: i64) -> PolarsResult<Option<i64>> {
    match (a, u32::try_from(b)) {
        (_, Ok(b)) => Ok(a.checked_pow(b)),
        (0 | 1, _) if b > 0 => Ok(Some(a)),
        (-1, _) if b > 0 => Ok(Some(if b % 2 == 0 { 1 } else { -1 })),
        _ if b > 0 => Ok(None),
        _ => polars_bail!(ComputeError:
            "{a} to the power of {b} is not an integer: convert it first, CAST({a} AS DOUBLE)"),
    }
}

fn one(op: Op, n: i64) -> PolarsResult<i64> {
    let result = match op {
        Op::High => Some(n >> 32),
        Op::Low => Some(n & 0xffff_ffff),
        Op::Negate => n.checked_neg(),
        _ => n.checked_abs(),
    };
    result.ok_or_else(|| polars_err!(ComputeError: "{OVERFLOW}-({n}) does not fit in 64 bits"))
}

fn too_large(sum: i128) -> PolarsError {
    polars_err!(ComputeError: "{OVERFLOW}a sum of {sum} does not fit in 64 bits")
}

fn sums(lists: &Column) -> PolarsResult<Int64Chunked> {
    let lists = lists.as_materialized_series();
    let sum = |items: Series| -> PolarsResult<i64> {
        let items = whole(&items.into_column())?;
        let sum = items.iter().flatten().map(i128::from).sum::<i128>();
        i64::try_from(sum).map_err(|_| too_large(sum))
    };
    let rows = lists.list()?.series_iter();
    rows.map(|row| row.map(sum).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_rounds_down() {
        for (a, b) in [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3)] {
            let expected = (a as f64 / b as f64).floor() as i64;
            assert_eq!(floor(a, b), Some(expected), "{a} // {b}");
        }
        assert_eq!(floor(i64::MIN, -1), None);
        assert_eq!(two(Op::Divide, 1, 0).unwrap(), None);
    }

    #[test]
    fn powers_fit_or_fail() {
        let power = |a, b| two(Op::Power, a, b);
        assert_eq!(power(2, 62).unwrap(), Some(1 << 62));
        assert_eq!(power(-1, i64::MAX).unwrap(), Some(-1));
        assert_eq!(power(1, i64::MAX).unwrap(), Some(1));
        let message = power(10, 19).unwrap_err().to_string();
        assert_eq!(
            message,
            "integer overflow: 10 to the power of 19 does not fit in 64 bits"
        );
        assert!(power(2, -1).is_err());
    }
}
