//! Random numbers by counting: a stream for each (seed, name, item), so that no draw depends
//! on the order in which items are worked on. SplitMix64.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(u64);

impl Stream {
    /// The stream of an item, such as a row in an epoch.
    pub fn new(seed: u64, purpose: u64, item: u64) -> Stream {
        let mut stream = Stream(seed);
        stream.0 = stream.bits() ^ purpose;
        stream.0 = stream.bits() ^ item;
        stream
    }

    /// Sixty-four random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a limit.
    #[inline]
    pub fn below(&mut self, limit: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(limit)) >> 32) as u32
    }

    /// A number from 0 up to 1.
    #[inline]
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1_u64 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let first = |seed, purpose, item| Stream::new(seed, purpose, item).bits();
        assert_eq!(first(1, 2, 3), first(1, 2, 3));
        let all = [
            first(1, 2, 3),
            first(1, 2, 4),
            first(1, 3, 2),
            first(2, 1, 3),
        ];
        for (n, one) in all.iter().enumerate() {
            assert!(!all[..n].contains(one));
        }
    }

    #[test]
    fn numbers_are_even() {
        let mut stream = Stream::new(7, 0, 0);
        let mut seen = [0; 5];
        for _ in 0..50_000 {
            seen[stream.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (9_600..10_400).contains(n)), "{seen:?}");
        let mean = (0..50_000).map(|_| f64::from(stream.unit())).sum::<f64>() / 50_000.0;
        assert!((0.49..0.51).contains(&mean), "{mean}");
    }
}
