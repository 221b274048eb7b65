//! The bias of one step, for items as rows or as columns.

use crate::numeric::Real;

/// A bias as element-wise kernels read it: the same for every row, and of columns a number for every item.
pub struct StepBias<T> {
    each: Vec<T>,
    /// Every number this many times.
    spread: Vec<T>,
}

impl<T: Real> StepBias<T> {
    /// Copies a bias.
    pub fn new(bias: &[T]) -> Self {
        StepBias {
            each: bias.to_vec(),
            spread: Vec::new(),
        }
    }

    /// Every number as often as it stands side by side: once for rows, once for every item of columns.
    #[inline]
    pub fn of(&mut self, times: usize) -> &[T] {
        if times == 1 {
            return &self.each;
        }
        if self.spread.len() != times * self.each.len() {
            self.spread.clear();
            for b in &self.each {
                self.spread.extend(std::iter::repeat_n(*b, times));
            }
        }
        &self.spread
    }
}
