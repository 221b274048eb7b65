//! Random numbers by counting, so that any review can be made by itself.

/// Random numbers that depend on (seed, row, stream) alone: SplitMix64.
pub struct Dice(u64);

impl Dice {
    /// The numbers of one row, for one purpose.
    pub fn new(seed: u64, row: u64, stream: u64) -> Dice {
        let mut dice = Dice(seed ^ 0x72_6576_6965_7773);
        dice.0 = dice.next() ^ row;
        dice.0 = dice.next() ^ stream;
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An integer below the limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// A number from 0 up to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
