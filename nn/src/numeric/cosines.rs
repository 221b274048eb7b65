//! Cosines of one vector with all of a table, with the same bits on every machine.

use ndarray::{Array2, ArrayView2};

/// Vectors of length 1, one in each column, so that the cosines of one with all are a sum over rows of columns: every
/// sum goes through the numbers of a vector in their order, and many sums are made at once.
#[derive(Clone, Debug)]
pub struct Cosines {
    units: Array2<f32>,
}

impl Cosines {
    /// Of the rows of a table. Zeros have no direction: their cosines are 0.
    pub fn new(rows: ArrayView2<f32>) -> Cosines {
        let mut units = Array2::zeros((rows.ncols(), rows.nrows()));
        for (row, vector) in rows.rows().into_iter().enumerate() {
            let square: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
            let length = if square > 0.0 { square.sqrt() } else { 1.0 };
            for (d, x) in vector.iter().enumerate() {
                units[[d, row]] = (f64::from(*x) / length) as f32;
            }
        }
        Cosines { units }
    }

    /// The rows whose cosine with this one is above a limit, ascending; the row itself may be one.
    pub fn above(&self, row: usize, limit: f32) -> Vec<u32> {
        let mut cosines = vec![0.0f32; self.units.ncols()];
        for numbers in self.units.rows() {
            let numbers = numbers
                .to_slice()
                .expect("rows of a new array are contiguous");
            let own = numbers[row];
            for (cosine, other) in cosines.iter_mut().zip(numbers) {
                *cosine += own * other;
            }
        }
        let near = cosines.iter().enumerate().filter(|(_, c)| **c > limit);
        near.map(|(other, _)| other as u32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_vector_does_not_matter() {
        let rows = ndarray::arr2(&[[0.0, 0.0], [3.0, 0.0], [0.5, 0.1], [0.0, 2.0], [-1.0, 0.0]]);
        let cosines = Cosines::new(rows.view());
        assert_eq!(cosines.above(1, 0.8), [1, 2]);
        assert_eq!(cosines.above(1, 0.0), [1, 2]);
        assert_eq!(cosines.above(1, -0.5), [0, 1, 2, 3]);
        assert_eq!(cosines.above(0, 0.8), [] as [u32; 0]);
    }

    #[test]
    fn they_are_the_rows_that_a_search_one_by_one_finds() {
        let stream = crate::Stream::new(4, "rows");
        let rows =
            Array2::from_shape_fn((200, 7), |(i, j)| stream.normal((7 * i + j) as u64) as f32);
        let cosines = Cosines::new(rows.view());
        for row in 0..200 {
            for limit in [-0.3, 0.2, 0.7] {
                let units = cosines.units.t();
                let found = super::super::similar(units, units.row(row), limit);
                let found: Vec<u32> = found.into_iter().map(|n| n as u32).collect();
                assert_eq!(cosines.above(row, limit), found);
            }
        }
    }
}
