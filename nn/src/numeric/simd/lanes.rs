//! One vector of numbers: the few operations that the kernels need.

/// A vector of `N` numbers. Every operation is per element.
pub trait Lanes: Copy {
    /// The element.
    type T: Copy;
    /// Elements in a vector.
    const N: usize;
    /// Steps of a long loop to write out; 1 where a step is many instructions already.
    const TURN: usize;
    /// `N` copies of `x`.
    fn splat(x: Self::T) -> Self;
    /// Reads `N` elements.
    ///
    /// # Safety
    /// `p` must be valid for reading `N` elements.
    unsafe fn read(p: *const Self::T) -> Self;
    /// Writes `N` elements.
    ///
    /// # Safety
    /// `p` must be valid for writing `N` elements.
    unsafe fn write(self, p: *mut Self::T);
    /// The first elements of `s`, zero-filled when `s` is shorter than `N`.
    fn load(s: &[Self::T]) -> Self;
    /// Writes the first `min(N, s.len())` elements.
    fn store(self, s: &mut [Self::T]);
    /// `self + b`
    fn add(self, b: Self) -> Self;
    /// `self - b`
    fn sub(self, b: Self) -> Self;
    /// `self * b`
    fn mul(self, b: Self) -> Self;
    /// `self / b`
    fn div(self, b: Self) -> Self;
    /// `self * b + c`, fused where the instruction set can.
    fn fma(self, b: Self, c: Self) -> Self;
    /// `yes` where `self < b`, otherwise `no` (also for NaN).
    fn lt(self, b: Self, yes: Self, no: Self) -> Self;
    /// `low` where `self < low`, otherwise `self` (also for NaN).
    #[inline(always)]
    fn at_least(self, low: Self) -> Self {
        self.lt(low, low, self)
    }
    /// `high` where `high < self`, otherwise `self` (also for NaN).
    #[inline(always)]
    fn at_most(self, high: Self) -> Self {
        high.lt(self, high, self)
    }
    /// `|self|`
    fn abs(self) -> Self;
    /// The sum of sixteen numbers, the first of `of`: those eight apart, then those four, two and one apart.
    fn total(of: [Self; 2]) -> Self::T;
    /// Square root.
    fn sqrt(self) -> Self;
    /// `2^k` from `self = 1.5 * 2^23 + 127 + k`: the low bits become the exponent (f32 only).
    fn exponent(self) -> Self;
    /// `e^self`
    fn exp(self) -> Self;
    /// `tanh(self)`
    fn tanh(self) -> Self;
    /// `1 / (1 + e^-self)`
    fn sigmoid(self) -> Self;
    /// The standard normal distribution and density at `self`.
    fn normal(self) -> (Self, Self);
}
