//! Beam search: the likeliest sequence found by a search that keeps several hypotheses, where greedy decoding keeps one.
//!
//! ```text
//! kept = the empty hypothesis
//! up to `most` times, as long as a kept one has not ended:
//!     kept = the `width` likeliest of: kept ones that have ended, and the others with each token or the end appended
//! ```
//!
//! The result is the likeliest one kept, by the sum of its tokens' log-probabilities, that of the end included; the sum
//! is not divided by the length. Width 1 is greedy decoding. Of equally likely ones the lower token is kept. Each step
//! asks about whole hypotheses by teacher forcing, which every model that generates has.

use super::interface::Victim;
use crate::batch::{Example, Sequence, Target};
use crate::error::{Result, setting};
use ndarray::ArrayView1;

/// Items that are searched together: their hypotheses are asked about at once.
const TOGETHER: usize = 16;

/// The beginning of a sequence, or all of it.
#[derive(Clone, Debug)]
struct Hypothesis {
    tokens: Vec<u32>,
    score: f64,
    ended: bool,
}

/// Up to `most` tokens for each item, without the token `end`.
pub fn beam_search(
    victim: &dyn Victim,
    items: &[&Sequence],
    end: u32,
    most: usize,
    width: usize,
) -> Result<Vec<Vec<u32>>> {
    setting("beam width", width > 0, "at least 1", width)?;
    let mut found = Vec::with_capacity(items.len());
    for part in items.chunks(TOGETHER) {
        found.extend(search(victim, part, end, most, width)?);
    }
    Ok(found)
}

fn search(
    victim: &dyn Victim,
    items: &[&Sequence],
    end: u32,
    most: usize,
    width: usize,
) -> Result<Vec<Vec<u32>>> {
    let empty = Hypothesis {
        tokens: Vec::new(),
        score: 0.0,
        ended: false,
    };
    let mut kept = vec![vec![empty]; items.len()];
    for _ in 0..most {
        let of = |item: usize| kept[item].iter().map(move |one| (item, one));
        let all = (0..items.len()).flat_map(of);
        let open: Vec<(usize, &Hypothesis)> = all.filter(|(_, one)| !one.ended).collect();
        if open.is_empty() {
            break;
        }
        // The model is asked what follows: the token in that place does not matter.
        let example = |(item, one): &(usize, &Hypothesis)| Example {
            input: items[*item].clone(),
            target: Target::Tokens(one.tokens.iter().copied().chain([end]).collect()),
        };
        let examples: Vec<Example> = open.iter().map(example).collect();
        let logits = victim.forced_logits(&examples.iter().collect::<Vec<_>>())?;
        let ended = |all: &Vec<Hypothesis>| -> Vec<Hypothesis> {
            all.iter().filter(|one| one.ended).cloned().collect()
        };
        let mut grown: Vec<Vec<Hypothesis>> = kept.iter().map(ended).collect();
        for ((item, one), z) in open.iter().zip(&logits) {
            let next = likeliest(z.row(one.tokens.len()), width);
            grown[*item].extend(
                next.into_iter()
                    .map(|(token, score)| one.with(token, score, end)),
            );
        }
        for hypotheses in &mut grown {
            // A stable sort: of equals the first, which is that of the lower token.
            hypotheses.sort_by(|a, b| b.score.total_cmp(&a.score));
            hypotheses.truncate(width);
        }
        kept = grown;
    }
    let best = |all: Vec<Hypothesis>| all.into_iter().next().map(|one| one.tokens);
    Ok(kept.into_iter().filter_map(best).collect())
}

impl Hypothesis {
    fn with(&self, token: u32, score: f64, end: u32) -> Hypothesis {
        let mut tokens = self.tokens.clone();
        if token != end {
            tokens.push(token);
        }
        Hypothesis {
            tokens,
            score: self.score + score,
            ended: token == end,
        }
    }
}

/// The likeliest tokens with their log-probabilities: of one hypothesis no more can be kept.
fn likeliest(z: ArrayView1<'_, f32>, width: usize) -> Vec<(u32, f64)> {
    let most = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = z.iter().map(|z| libm::exp(f64::from(z - most))).sum();
    let log_total = libm::log(total);
    let mut tokens: Vec<u32> = (0..z.len() as u32).collect();
    let order = |a: &u32, b: &u32| {
        let (za, zb) = (z[*a as usize], z[*b as usize]);
        zb.total_cmp(&za).then(a.cmp(b))
    };
    if width < tokens.len() {
        tokens.select_nth_unstable_by(width - 1, order);
        tokens.truncate(width);
    }
    tokens.sort_by(order);
    let scored = tokens.into_iter();
    scored
        .map(|token| (token, f64::from(z[token as usize] - most) - log_total))
        .collect()
}
