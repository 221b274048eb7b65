//! Negative samples of skip-gram: words drawn in proportion to their count to the power of 3/4.
//!
//! An alias table: two numbers a word, one draw, exact.

use super::draw::Stream;

/// A distribution over words.
pub struct Negatives {
    /// For each place, how likely it is kept rather than its alias, in 2^32nds.
    keep: Vec<u32>,
    alias: Vec<u32>,
}

impl Negatives {
    /// From how often each word was seen. None if nothing was.
    pub fn new(counts: &[i64]) -> Option<Negatives> {
        let weight = |count: &i64| (*count).max(0) as f64;
        let weights: Vec<f64> = counts.iter().map(|c| weight(c).powf(0.75)).collect();
        let total: f64 = weights.iter().sum();
        if total <= 0.0 {
            return None;
        }
        let n = weights.len() as f64;
        let mut share: Vec<f64> = weights.iter().map(|w| w / total * n).collect();
        let mut alias: Vec<u32> = (0..share.len() as u32).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..share.len()).partition(|i| share[*i] < 1.0);
        let mut keep = vec![u32::MAX; share.len()];
        while let (Some(&little), Some(&much)) = (small.last(), large.last()) {
            small.pop();
            keep[little] = (share[little] * f64::from(u32::MAX)) as u32;
            alias[little] = much as u32;
            share[much] -= 1.0 - share[little];
            if share[much] < 1.0 {
                large.pop();
                small.push(much);
            }
        }
        // What rounding has left over in `small` is as good as 1, unless it was never seen.
        for i in small.into_iter().filter(|i| weights[*i] == 0.0) {
            keep[i] = 0;
            alias[i] = most(&weights);
        }
        Some(Negatives { keep, alias })
    }

    /// One word.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u32 {
        let bits = stream.bits();
        let at = (((bits >> 32) * self.keep.len() as u64) >> 32) as usize;
        match (bits as u32) < self.keep[at] {
            true => at as u32,
            false => self.alias[at],
        }
    }
}

fn most(weights: &[f64]) -> u32 {
    let best = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b]));
    best.expect("there is a weight above zero") as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_as_often_as_they_should_and_unseen_ones_never() {
        let counts = [0, 16, 1, 0, 81, 1];
        let negatives = Negatives::new(&counts).unwrap();
        let (mut stream, mut seen) = (Stream::new(3, 0, 0), [0_u32; 6]);
        for _ in 0..370_000 {
            seen[negatives.draw(&mut stream) as usize] += 1;
        }
        // 16 to the 3/4 is 8, 81 to the 3/4 is 27: 8 + 1 + 27 + 1 = 37.
        for (n, share) in [0, 8, 1, 0, 27, 1].into_iter().enumerate() {
            let expected = share * 10_000;
            assert!(seen[n].abs_diff(expected) <= expected / 20, "{seen:?}");
        }
        assert!(Negatives::new(&[0, 0]).is_none());
    }
}
