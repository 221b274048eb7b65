//! What all shards have seen, put together side by side.
//!
//! Tokens are dealt to [`PARTS`] parts by their keys, so that parts have nothing to do with each
//! other. The numbers that come out say nothing: the vocabulary puts tokens in an order of its
//! own, and only that order reaches a result.

use rayon::prelude::*;

use super::interner::{Interner, PARTS};
use super::scan::Shard;

/// All tokens of all shards.
pub struct Seen {
    parts: Vec<Interner>,
    /// The first number of each part.
    starts: Vec<u32>,
    /// How often each token was kept in the training split.
    pub counts: Vec<u64>,
    /// For each shard what its numbers are here.
    pub places: Vec<Vec<u32>>,
}

impl Seen {
    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// The token with that number.
    pub fn get(&self, number: u32) -> &[u8] {
        let part = self.starts.partition_point(|start| *start <= number) - 1;
        self.parts[part].get(number - self.starts[part])
    }
}

/// One part of what was seen.
struct Part {
    tokens: Interner,
    counts: Vec<u64>,
    /// For each shard what the numbers that it has dealt to this part are here.
    places: Vec<Vec<u32>>,
}

/// Puts shards together.
pub fn merge(shards: &[Shard]) -> Seen {
    let parts = (0..PARTS).into_par_iter().map(|part| of_part(shards, part));
    let parts: Vec<Part> = parts.collect();
    let mut starts = Vec::with_capacity(PARTS);
    let mut counts = Vec::new();
    for part in &parts {
        starts.push(counts.len() as u32);
        counts.extend_from_slice(&part.counts);
    }
    let places = shards.par_iter().enumerate().map(|(n, shard)| {
        let mut places = vec![0; shard.tokens.len()];
        for ((part, start), numbers) in parts.iter().zip(&starts).zip(&shard.parts) {
            for (number, place) in numbers.iter().zip(&part.places[n]) {
                places[*number as usize] = start + place;
            }
        }
        places
    });
    let places = places.collect();
    Seen {
        parts: parts.into_iter().map(|part| part.tokens).collect(),
        starts,
        counts,
        places,
    }
}

fn of_part(shards: &[Shard], part: usize) -> Part {
    let mut made = Part {
        tokens: Interner::new(),
        counts: Vec::new(),
        places: Vec::new(),
    };
    for shard in shards {
        let place = |number: &u32| {
            let place = made.tokens.intern(shard.tokens.get(*number));
            if place as usize == made.counts.len() {
                made.counts.push(0);
            }
            made.counts[place as usize] += shard.counts[*number as usize];
            place
        };
        let places = shard.parts[part].iter().map(place).collect();
        made.places.push(places);
    }
    made
}
