//! Whether intervals and draws keep their promise, on simulated data whose truth is known: 2,000 simulations each,
//! with 3, 5 and 10 seeds.

use std::sync::atomic::{AtomicUsize, Ordering};

use nn::Stream;
use rayon::prelude::*;

use super::interval::{Method, percentile_interval};
use super::{SeedDraw, mean_interval, paired_difference, resample, share_at_least, wilson};

const SIMULATIONS: u64 = 2_000;
const DRAWS: u64 = 1_000;
const SEEDS: [usize; 3] = [3, 5, 10];
const ITEMS: usize = 100;

/// The share of simulations in which something is so.
fn share(purpose: &str, so: impl Fn(Stream) -> bool + Sync) -> f64 {
    let all = Stream::new(17, purpose);
    let each = (0..SIMULATIONS).into_par_iter();
    let hits = each.filter(|n| so(all.item(*n))).count();
    hits as f64 / SIMULATIONS as f64
}

fn within(what: &str, share: f64, low: f64, high: f64) {
    println!("{what}: {:.2}%", 100.0 * share);
    assert!((low..=high).contains(&share), "{what}: {share}");
}

#[test]
fn t_intervals_of_means_cover() {
    for k in SEEDS {
        let covered = share("means", |stream| {
            let numbers: Vec<f64> = (0..k as u64)
                .map(|i| 0.8 + 0.02 * stream.normal(i))
                .collect();
            mean_interval(&numbers).unwrap().contains(0.8)
        });
        within(&format!("t, mean, k = {k}"), covered, 0.93, 0.97);
    }
}

#[test]
fn t_intervals_of_paired_differences_cover() {
    for k in SEEDS {
        let covered = share("pairs", |stream| {
            let (seed, a, b) = (stream.item(0), stream.item(1), stream.item(2));
            // Both have what is common to a seed, and something of their own.
            let run = |own: Stream, i: u64, mean: f64| {
                mean + 0.05 * seed.normal(i) + 0.01 * own.normal(i)
            };
            let first: Vec<f64> = (0..k as u64).map(|i| run(a, i, 0.83)).collect();
            let second: Vec<f64> = (0..k as u64).map(|i| run(b, i, 0.80)).collect();
            let found = paired_difference(&first, &second).unwrap();
            found.interval.unwrap().contains(0.83 - 0.80)
        });
        within(
            &format!("t, paired difference, k = {k}"),
            covered,
            0.93,
            0.97,
        );
    }
}

#[test]
fn wilson_intervals_cover_on_average() {
    for n in [50_u64, 100, 200] {
        let truths: Vec<f64> = (1..20).map(|i| f64::from(i) * 0.05).collect();
        let each = truths.iter().map(|p| {
            share(&format!("wilson {n} {p}"), |stream| {
                let hits = (0..n).filter(|i| stream.uniform(*i) < *p).count();
                wilson(hits as f64 / n as f64, n).unwrap().contains(*p)
            })
        });
        let average = each.sum::<f64>() / truths.len() as f64;
        within(
            &format!("Wilson, n = {n}, p = 0.05 to 0.95"),
            average,
            0.93,
            0.97,
        );
    }
}

/// How much numbers vary between seeds, between items, and beyond both.
const MIXTURES: [(&str, [f64; 3]); 3] = [
    ("seeds and items alike", [0.03, 0.3, 0.3]),
    ("mostly items", [0.001, 0.4, 0.05]),
    ("mostly seeds", [0.05, 0.05, 0.1]),
];

/// The number of each seed and item, around 0: what is common to a seed, common to an item, and of its own.
fn simulated(stream: Stream, seeds: usize, [seed, item, own]: [f64; 3]) -> Vec<Vec<f64>> {
    let of = |s: usize, i: usize| {
        let (s, i) = (s as u64, i as u64);
        let place = s * ITEMS as u64 + i;
        seed * stream.item(0).normal(s)
            + item * stream.item(1).normal(i)
            + own * stream.item(2).normal(place)
    };
    let items = |s| (0..ITEMS).map(|i| of(s, i)).collect();
    (0..seeds).map(items).collect()
}

/// The mean over seeds and items in every draw. The draws of items are the same in all simulations, as they are for
/// all pipelines.
fn drawn(numbers: &[Vec<f64>], resampled: &[Vec<u32>]) -> Vec<f64> {
    let k = numbers.len() as f64;
    let of_item = |i: usize| numbers.iter().map(|items| items[i]).sum::<f64>() / k;
    let of_items: Vec<f64> = (0..ITEMS).map(of_item).collect();
    let of_seed = |items: &Vec<f64>| items.iter().sum::<f64>() / ITEMS as f64;
    let of_seeds: Vec<(Option<i64>, f64)> =
        (0..).map(Some).zip(numbers.iter().map(of_seed)).collect();
    let stream = Stream::new(1, "seeds");
    let draws = resampled.iter().enumerate().map(|(draw, counts)| {
        let mut sum = 0.0;
        for i in 0..ITEMS {
            sum += of_items[i] * f64::from(counts[i]);
        }
        sum / ITEMS as f64 + SeedDraw::new(stream.item(draw as u64)).term(&of_seeds)
    });
    draws.collect()
}

/// Draws cover; and a claim "above 0" about something that is exactly 0 is seldom called reproduced.
#[test]
fn draws_cover_and_a_claim_at_its_boundary_is_seldom_reproduced() {
    let stream = Stream::new(1, "items");
    let draws = (0..DRAWS).map(|draw| resample(ITEMS, stream.item(draw)));
    let draws: Vec<Vec<u32>> = draws.collect();
    for k in SEEDS {
        for (name, mixture) in MIXTURES {
            let reproduced = AtomicUsize::new(0);
            let covered = share(name, |stream| {
                let numbers = simulated(stream, k, mixture);
                let drawn = drawn(&numbers, &draws);
                let holds = numbers.iter().flatten().sum::<f64>() > 0.0;
                let in_draws = drawn.iter().filter(|x| **x > 0.0).count();
                if holds && share_at_least(in_draws, DRAWS as usize, 95) {
                    reproduced.fetch_add(1, Ordering::Relaxed);
                }
                let interval = percentile_interval(drawn, Method::Draws);
                interval.unwrap().contains(0.0)
            });
            let reproduced = reproduced.into_inner() as f64 / SIMULATIONS as f64;
            within(&format!("draws, {name}, k = {k}"), covered, 0.93, 1.0);
            within(&format!("boundary, {name}, k = {k}"), reproduced, 0.0, 0.06);
        }
    }
}
