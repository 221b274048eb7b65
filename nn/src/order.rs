//! The order of training: batches of similar lengths, shuffled by a named stream.
//!
//! Examples are shuffled, cut into windows of several batches, sorted by length inside a
//! window, cut into batches, and the batches shuffled. A function of (seed, epoch, lengths) only.

use crate::Stream;

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
    if window > 1 {
        for part in order.chunks_mut(size * window) {
            // Stable: equal lengths keep their random order.
            part.sort_by_key(|&i| lengths[i]);
        }
    }
    let mut batches: Vec<Vec<usize>> = order.chunks(size).map(<[usize]>::to_vec).collect();
    stream.item(1).shuffle(&mut batches);
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let padding = |window| -> usize {
            let waste = |b: &Vec<usize>| {
                b.iter().map(|&i| lengths[i]).max().unwrap_or(0) * b.len()
                    - b.iter().map(|&i| lengths[i]).sum::<usize>()
            };
            batches(&lengths, 10, window, 1, 0).iter().map(waste).sum()
        };
        assert!(
            padding(20) * 4 < padding(1),
            "{} {}",
            padding(20),
            padding(1)
        );
    }
}
