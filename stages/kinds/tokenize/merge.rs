//! What all readers have seen, put together.
//!
//! The numbers that come out say nothing: the vocabulary puts tokens in an order of its own, and
//! only that order reaches a result.

use super::interner::Interner;
use super::scan::Reading;
use super::token_counts::TokenCounts;

/// Puts readings together: what the first has seen, and what the others have besides.
pub fn merge(readings: Vec<Reading>) -> TokenCounts {
    let mut readings = readings.into_iter();
    let Some(first) = readings.next() else {
        return TokenCounts {
            tokens: Interner::new(),
            counts: Vec::new(),
            places: Vec::new(),
        };
    };
    let (mut tokens, mut counts) = (first.tokens, first.counts);
    let mut places = vec![(0..tokens.len() as u32).collect()];
    for reading in readings {
        if reading.tokens.len() == 0 {
            // Numbers without tokens are ids (word-piece), the same for every reader.
            counts.resize(counts.len().max(reading.counts.len()), 0);
            let pairs = counts.iter_mut().zip(&reading.counts);
            pairs.for_each(|(sum, count)| *sum += count);
        }
        let place = |(token, count): (&[u8], &u64)| {
            let place = tokens.intern(token);
            if place as usize == counts.len() {
                counts.push(0);
            }
            counts[place as usize] += count;
            place
        };
        let pairs = reading.tokens.iter().zip(&reading.counts);
        places.push(pairs.map(place).collect());
    }
    TokenCounts {
        tokens,
        counts,
        places,
    }
}
