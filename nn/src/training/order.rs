//! The order of training: batches of similar lengths, shuffled by a named stream.
//!
//! Examples are shuffled, cut into windows of several batches, sorted by length inside a
//! window, cut into batches, and the batches shuffled. A function of (seed, epoch, lengths) only.
//!
//! Balanced batches hold the same number of items of every class. Each class is shuffled and cut on its
//! own; batch `k` of a window takes the `k`-th part of every class. An epoch ends where the smallest class
//! has no full part left: nothing is used twice, and what is left over sits out this epoch. The next
//! epoch's shuffle chooses anew who sits out.

use crate::error::{Result, setting};
use crate::numeric::Stream;

/// The batches of one epoch, as indices of examples.
pub fn batches(
    lengths: &[usize],
    size: usize,
    window: usize,
    seed: u64,
    epoch: u64,
) -> Vec<Vec<usize>> {
    let stream = Stream::new(seed, "shuffle").item(epoch);
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    stream.item(0).shuffle(&mut order);
    sort_windows(&mut order, lengths, size, window);
    let mut batches: Vec<Vec<usize>> = order.chunks(size).map(<[usize]>::to_vec).collect();
    stream.item(1).shuffle(&mut batches);
    batches
}

/// Examples by class, in the order of the classes' numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    members: Vec<Vec<usize>>,
    /// Items of one class in a batch.
    part: usize,
}

impl Classes {
    /// An error when batches of `size` cannot hold every class equally often.
    pub fn new(classes: &[u32], size: usize) -> Result<Self> {
        let mut by_class = std::collections::BTreeMap::<u32, Vec<usize>>::new();
        for (i, class) in classes.iter().enumerate() {
            by_class.entry(*class).or_default().push(i);
        }
        let members: Vec<Vec<usize>> = by_class.into_values().collect();
        setting(
            "batch",
            size > 0 && !members.is_empty() && size.is_multiple_of(members.len()),
            &format!(
                "a multiple of the {} classes, for balanced batches",
                members.len()
            ),
            size,
        )?;
        let part = size / members.len();
        let fewest = members.iter().map(Vec::len).min().unwrap_or(0);
        setting(
            "examples of the smallest class",
            fewest >= part,
            &format!("at least {part}, its share of a balanced batch"),
            fewest,
        )?;
        Ok(Classes { members, part })
    }

    /// The batches of one epoch; each holds the same number of every class.
    pub fn batches(
        &self,
        lengths: &[usize],
        window: usize,
        seed: u64,
        epoch: u64,
    ) -> Vec<Vec<usize>> {
        let stream = Stream::new(seed, "shuffle").item(epoch);
        let fewest = self.members.iter().map(Vec::len).min().unwrap_or(0);
        let mut batches = vec![Vec::new(); fewest / self.part];
        for (class, members) in self.members.iter().enumerate() {
            let mut order = members.clone();
            stream.item(2).item(class as u64).shuffle(&mut order);
            order.truncate(batches.len() * self.part);
            sort_windows(&mut order, lengths, self.part, window);
            for (batch, part) in batches.iter_mut().zip(order.chunks(self.part)) {
                batch.extend(part);
            }
        }
        if window > 1 {
            // Neighbours share a shard, and a shard is padded to its longest.
            batches
                .iter_mut()
                .for_each(|b| b.sort_by_key(|&i| lengths[i]));
        }
        stream.item(1).shuffle(&mut batches);
        batches
    }
}

fn sort_windows(order: &mut [usize], lengths: &[usize], size: usize, window: usize) {
    if window > 1 {
        for part in order.chunks_mut(size * window) {
            // Stable: equal lengths keep their random order.
            part.sort_by_key(|&i| lengths[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waste(batches: &[Vec<usize>], lengths: &[usize]) -> usize {
        let one = |b: &Vec<usize>| {
            b.iter().map(|&i| lengths[i]).max().unwrap_or(0) * b.len()
                - b.iter().map(|&i| lengths[i]).sum::<usize>()
        };
        batches.iter().map(one).sum()
    }

    #[test]
    fn an_epoch_holds_every_example_once_and_epochs_differ() {
        let lengths: Vec<usize> = (0..103).map(|i| 1 + (i * 31) % 40).collect();
        let first = batches(&lengths, 8, 4, 1, 0);
        let mut all: Vec<usize> = first.iter().flatten().copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..103).collect::<Vec<_>>());
        assert_eq!(first, batches(&lengths, 8, 4, 1, 0));
        assert_ne!(first, batches(&lengths, 8, 4, 1, 1));
        assert_ne!(first, batches(&lengths, 8, 4, 2, 0));
    }

    #[test]
    fn windows_cut_the_padding() {
        let lengths: Vec<usize> = (0..400).map(|i| 1 + (i * 31) % 97).collect();
        let classes: Vec<u32> = (0..400).map(|i| i % 2).collect();
        let balanced = Classes::new(&classes, 10).unwrap();
        let plain = |window| waste(&batches(&lengths, 10, window, 1, 0), &lengths);
        let equal = |window| waste(&balanced.batches(&lengths, window, 1, 0), &lengths);
        assert!(plain(20) * 4 < plain(1), "{} {}", plain(20), plain(1));
        assert!(equal(20) * 4 < equal(1), "{} {}", equal(20), equal(1));
    }

    #[test]
    fn balanced_batches_hold_every_class_equally_and_the_rest_sits_out_in_turn() {
        // 50 of class 0, 29 of class 3, 24 of class 7; parts of 4: the last class gives 6 full batches.
        let classes: Vec<u32> = (0..103)
            .map(|i| match i {
                0..50 => 0,
                50..79 => 3,
                _ => 7,
            })
            .collect();
        let lengths: Vec<usize> = (0..103).map(|i| 1 + (i * 31) % 40).collect();
        let balanced = Classes::new(&classes, 12).unwrap();
        let mut seen = [0usize; 103];
        for epoch in 0..40 {
            let found = balanced.batches(&lengths, 3, 1, epoch);
            assert_eq!(found.len(), 6);
            for batch in &found {
                for class in [0, 3, 7] {
                    assert_eq!(batch.iter().filter(|&&i| classes[i] == class).count(), 4);
                }
            }
            let mut once: Vec<usize> = found.into_iter().flatten().collect();
            once.iter().for_each(|&i| seen[i] += 1);
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), 72, "nothing twice in an epoch");
        }
        assert!(
            seen[79..].iter().all(|&n| n == 40),
            "the smallest class fits exactly"
        );
        assert!(seen.iter().all(|&n| n > 5), "everybody has a turn {seen:?}");
        assert_eq!(
            balanced.batches(&lengths, 3, 1, 0),
            balanced.batches(&lengths, 3, 1, 0)
        );
        assert_ne!(
            balanced.batches(&lengths, 3, 1, 0),
            balanced.batches(&lengths, 3, 2, 0)
        );
    }

    #[test]
    fn batches_that_cannot_be_balanced_are_errors() {
        let say = |classes: &[u32], size| Classes::new(classes, size).unwrap_err().to_string();
        assert_eq!(
            say(&[0, 1, 0, 1], 3),
            "batch is 3: expected a multiple of the 2 classes, for balanced batches"
        );
        assert_eq!(
            say(&[0, 0, 0, 1], 4),
            "examples of the smallest class is 1: expected at least 2, its share of a balanced batch"
        );
    }
}
