//! Random numbers by counting: number `i` of a stream is a hash of (seed, purpose, `i`).
//!
//! Nothing is drawn "next", so nothing depends on the order in which threads arrive:
//! the dropout of item 7 is the same on any thread and in any order.

/// A stream named by a seed and a purpose.
///
/// ```
/// use nn::Stream;
/// let a = Stream::new(1, "shuffle");
/// assert_eq!(a.bits(5), Stream::new(1, "shuffle").bits(5));
/// assert_ne!(a.bits(5), Stream::new(1, "dropout").bits(5));
/// assert_ne!(a.bits(5), a.item(5).bits(5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: u64,
}

impl Stream {
    /// The stream for one purpose.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let key = purpose
            .bytes()
            .fold(mix(seed ^ 0x6a09_e667_f3bc_c908), |h, b| {
                mix(h ^ u64::from(b))
            });
        Stream {
            key: mix(key ^ purpose.len() as u64),
        }
    }

    /// The stream of item `k` within this one: an epoch, a step, a row.
    pub fn item(&self, k: u64) -> Self {
        Stream {
            key: mix(self.key ^ mix(k ^ 0xbb67_ae85_84ca_a73b)),
        }
    }

    /// 64 random bits.
    pub fn bits(&self, i: u64) -> u64 {
        mix(self
            .key
            .wrapping_add(mix(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))))
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn uniform(&self, i: u64) -> f64 {
        (self.bits(i) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&self, i: u64) -> f64 {
        // From the libm crate: the system's functions differ in the last place between systems.
        let radius = (-2.0 * libm::log(1.0 - self.uniform(2 * i))).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform(2 * i + 1))
    }

    /// Uniform in `0..n`, without the bias of a remainder beyond 2^-64.
    pub fn below(&self, i: u64, n: usize) -> usize {
        ((u128::from(self.bits(i)) * n as u128) >> 64) as usize
    }

    /// Puts `items` in random order (Fisher and Yates).
    pub fn shuffle<T>(&self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64, last + 1));
        }
    }
}

/// The finaliser of SplitMix64: a bijection whose every output bit depends on every input bit.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_distributions() {
        let s = Stream::new(3, "test");
        let n = 100_000u64;
        let mean = |f: &dyn Fn(u64) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        assert!((mean(&|i| s.uniform(i)) - 0.5).abs() < 0.005);
        assert!(
            (mean(&|i| s.uniform(i) * s.uniform(i + 1)) - 0.25).abs() < 0.005,
            "neighbours are independent"
        );
        assert!(
            mean(&|i| s.normal(i)).abs() < 0.02
                && (mean(&|i| s.normal(i).powi(2)) - 1.0).abs() < 0.03
        );
        assert!((mean(&|i| s.item(i).uniform(0)) - 0.5).abs() < 0.005);
        assert!((mean(&|i| s.below(i, 10) as f64) - 4.5).abs() < 0.05);
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_every_place_is_likely() {
        let mut first = [0usize; 7];
        for k in 0..7000 {
            let mut v: Vec<usize> = (0..7).collect();
            Stream::new(0, "shuffle").item(k).shuffle(&mut v);
            first[v[0]] += 1;
            v.sort_unstable();
            assert_eq!(v, (0..7).collect::<Vec<_>>());
        }
        assert!(first.iter().all(|c| (850..1150).contains(c)), "{first:?}");
    }

    #[test]
    fn the_stream_itself_is_pinned() {
        assert_eq!(Stream::new(7, "init").bits(0), 5_557_215_629_194_431_938);
    }
}
