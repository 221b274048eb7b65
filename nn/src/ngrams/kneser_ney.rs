//! A model of what word comes next: interpolated Kneser-Ney with one discount an order.
//!
//! `p_n(w | c) = max(k(c w) - D_n, 0) / sum_v k(c v) + left(c) p_{n-1}(w | c without its first word)`, down to
//! `p_0 = 1 / |V|`. `k` counts occurrences in the highest order and below it how many different words stand before;
//! `D_n = a / (a + 2 b)` with `a` and `b` the n-grams of count 1 and 2. A text begins with a special token, so that
//! first words have a context; what begins with the mark has nothing before it, and counts by its occurrences.
//!
//! N-grams of order 3 and more that are rare can be left out: their share goes to the shorter context, and
//! probabilities still add up to 1.

use crate::error::{Error, Result, same, setting};
use rayon::prelude::*;

/// Bits of a token in a packed n-gram, so that five of them fit into 128.
const BITS: u32 = 24;

/// The highest order.
pub const MOST: usize = 5;

/// A model with its n-grams.
#[derive(Clone, Debug, PartialEq)]
pub struct KneserNey {
    vocabulary: usize,
    start: u32,
    /// From single words to the highest order.
    orders: Vec<Order>,
}

/// N-grams of one order, by context and then by token.
#[derive(Clone, Debug, Default, PartialEq)]
struct Order {
    contexts: Vec<u128>,
    /// Where the n-grams of each context begin; one more than contexts.
    begins: Vec<usize>,
    /// What the shorter context is trusted with.
    left: Vec<f64>,
    tokens: Vec<u32>,
    counts: Vec<u64>,
    shares: Vec<f64>,
}

/// One n-gram of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Gram {
    /// The words before.
    pub context: Vec<u32>,
    /// The word that follows.
    pub token: u32,
    /// How often, or after how many different words.
    pub count: u64,
    /// `(count - D) / counts of the context`
    pub share: f64,
}

impl KneserNey {
    /// Counts. `start` marks the beginning of a text and is in none; n-grams of order 3 and more with a count below
    /// `least` are left out.
    pub fn fit(
        texts: &[&[u32]],
        vocabulary: usize,
        start: u32,
        order: usize,
        least: u64,
    ) -> Result<Self> {
        setting("order", (1..=MOST).contains(&order), "from 1 to 5", order)?;
        let most = 1usize << BITS;
        setting(
            "vocabulary",
            (1..=most).contains(&vocabulary),
            "from 1 to 16777216",
            vocabulary,
        )?;
        for (item, text) in texts.iter().enumerate() {
            let wrong = |w: &&u32| **w as usize >= vocabulary || **w == start;
            if let Some(w) = text.iter().find(wrong) {
                return Err(Error::Range {
                    what: "token",
                    item,
                    got: *w as usize,
                    below: vocabulary,
                });
            }
        }
        let mut orders = Vec::with_capacity(order);
        // From the highest down: an order is counted by the different n-grams of the one above.
        let mut above: Option<Vec<u128>> = None;
        for n in (1..=order).rev() {
            let raw = runs(windows(texts, n, start));
            let counted = match &above {
                None => raw.clone(),
                Some(above) => continued(above, &raw, n, start),
            };
            let least = if n > 2 { least } else { 0 };
            orders.push(Order::new(&counted, least));
            above = Some(raw.into_iter().map(|(key, _)| key).collect());
        }
        orders.reverse();
        Ok(KneserNey {
            vocabulary,
            start,
            orders,
        })
    }

    /// A model of stored n-grams: a list for each order, in the order in which [`KneserNey::grams`] gives them.
    pub fn from_grams(vocabulary: usize, start: u32, grams: &[Vec<Gram>]) -> Result<Self> {
        let order = grams.len();
        setting("order", (1..=MOST).contains(&order), "from 1 to 5", order)?;
        let mut orders = Vec::with_capacity(order);
        for (n, grams) in grams.iter().enumerate() {
            let mut built = Order::default();
            for gram in grams {
                same("context", n, gram.context.len())?;
                built.push(pack(&gram.context), gram.token, gram.count, gram.share);
            }
            built.close();
            let rising = |keys: &[u128]| keys.windows(2).all(|pair| pair[0] < pair[1]);
            if !rising(&built.contexts) {
                return Err(Error::Format {
                    what: "n-grams",
                    why: format!("order {} is not sorted by context", n + 1),
                });
            }
            orders.push(built);
        }
        Ok(KneserNey {
            vocabulary,
            start,
            orders,
        })
    }

    /// The n-grams of one order, by context and then by token.
    pub fn grams(&self, order: usize) -> impl Iterator<Item = Gram> {
        let found = &self.orders[order - 1];
        let spans = found.contexts.iter().zip(found.begins.windows(2));
        spans.flat_map(move |(context, ends)| {
            (ends[0]..ends[1]).map(move |i| Gram {
                context: unpack(*context, order - 1),
                token: found.tokens[i],
                count: found.counts[i],
                share: found.shares[i],
            })
        })
    }

    /// The highest order: it looks at one word less.
    pub fn order(&self) -> usize {
        self.orders.len()
    }

    /// How many tokens there are.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Tokens that a text had, ascending.
    pub fn seen(&self) -> &[u32] {
        &self.orders[0].tokens
    }

    /// The probability of each of some tokens (ascending) after the words `before`, of which the last few count.
    /// `before` is all of a text so far if it is shorter than the context.
    pub fn probabilities(&self, before: &[u32], of: &[u32]) -> Vec<f64> {
        let mut p = vec![1.0 / self.vocabulary as f64; of.len()];
        let begun: Vec<u32> = match before.len() + 1 < self.order() {
            true => std::iter::once(self.start)
                .chain(before.iter().copied())
                .collect(),
            false => before[before.len() + 1 - self.order()..].to_vec(),
        };
        for (n, order) in self.orders.iter().enumerate().take(begun.len() + 1) {
            let context = pack(&begun[begun.len() - n..]);
            let Ok(at) = order.contexts.binary_search(&context) else {
                // A longer one may be there all the same: rare n-grams are left out order by order.
                continue;
            };
            p.iter_mut().for_each(|p| *p *= order.left[at]);
            let mut next = 0;
            for i in order.begins[at]..order.begins[at + 1] {
                let token = order.tokens[i];
                next += of[next..].partition_point(|w| *w < token);
                match of.get(next) {
                    Some(w) if *w == token => p[next] += order.shares[i],
                    Some(_) => {}
                    None => break,
                }
            }
        }
        p
    }
}

impl KneserNey {
    /// Some tokens (ascending), the likeliest after `before` first, equally likely ones in their order.
    pub fn ranked(&self, before: &[u32], of: &[u32]) -> Vec<u32> {
        let p = self.probabilities(before, of);
        let mut places: Vec<usize> = (0..of.len()).collect();
        places.sort_unstable_by(|a, b| p[*b].total_cmp(&p[*a]).then(a.cmp(b)));
        places.into_iter().map(|place| of[place]).collect()
    }
}

impl Order {
    fn new(counted: &[(u128, u64)], least: u64) -> Order {
        let with = |count: u64| counted.iter().filter(|(_, k)| *k == count).count() as f64;
        let (once, twice) = (with(1), with(2));
        // Without both there is nothing to estimate it from.
        let discount = match once > 0.0 && twice > 0.0 {
            true => once / (once + 2.0 * twice),
            false => 0.5,
        };
        let mut order = Order::default();
        for of_context in counted.chunk_by(|a, b| a.0 >> BITS == b.0 >> BITS) {
            let total: u64 = of_context.iter().map(|(_, k)| k).sum();
            for (key, count) in of_context.iter().filter(|(_, k)| *k >= least) {
                let token = (key & ((1 << BITS) - 1)) as u32;
                let share = (*count as f64 - discount) / total as f64;
                order.push(key >> BITS, token, *count, share);
            }
        }
        order.close();
        order
    }

    /// Adds the next n-gram.
    fn push(&mut self, context: u128, token: u32, count: u64, share: f64) {
        if self.contexts.last() != Some(&context) {
            self.contexts.push(context);
            self.begins.push(self.tokens.len());
        }
        self.tokens.push(token);
        self.counts.push(count);
        self.shares.push(share);
    }

    /// What each context leaves, once all n-grams are there.
    fn close(&mut self) {
        self.begins.push(self.tokens.len());
        let left = |ends: &[usize]| 1.0 - self.shares[ends[0]..ends[1]].iter().sum::<f64>();
        self.left = self.begins.windows(2).map(left).collect();
    }
}

fn pack(tokens: &[u32]) -> u128 {
    let join = |key: u128, token: &u32| key << BITS | u128::from(*token);
    tokens.iter().fold(0, join)
}

fn unpack(key: u128, n: usize) -> Vec<u32> {
    let token = |k: usize| (key >> (BITS as usize * k) & ((1 << BITS) - 1)) as u32;
    (0..n).rev().map(token).collect()
}

/// All windows of `n` tokens; a single mark is none.
fn windows(texts: &[&[u32]], n: usize, start: u32) -> Vec<u128> {
    let mut keys = Vec::new();
    let mut marked = Vec::new();
    for text in texts {
        marked.clear();
        marked.push(start);
        marked.extend_from_slice(text);
        let from = usize::from(n == 1);
        keys.extend(marked[from..].windows(n).map(pack));
    }
    keys
}

/// Different keys in order, with how often each is there.
fn runs(mut keys: Vec<u128>) -> Vec<(u128, u64)> {
    keys.par_sort_unstable();
    let equal = keys.chunk_by(|a, b| a == b);
    equal.map(|run| (run[0], run.len() as u64)).collect()
}

/// After how many different words each n-gram stands, from the different n-grams above; those that begin a text by
/// their occurrences.
fn continued(above: &[u128], raw: &[(u128, u64)], n: usize, start: u32) -> Vec<(u128, u64)> {
    let mask = (1u128 << (BITS as usize * n)) - 1;
    let mut counted = runs(above.iter().map(|key| key & mask).collect());
    let first = |key: u128| (key >> (BITS as usize * (n - 1))) as u32;
    counted.extend(raw.iter().filter(|(key, _)| first(*key) == start));
    counted.sort_unstable();
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Stream;

    const START: u32 = 0;

    /// Texts of 12 words in which some follow others.
    fn texts() -> Vec<Vec<u32>> {
        let stream = Stream::new(4, "texts");
        let text = |i: u64| {
            let s = stream.item(i);
            let mut text = vec![1 + s.below(0, 12) as u32];
            for k in 1..20 {
                let last = text[k as usize - 1];
                let next = match s.below(2 * k, 3) {
                    0 => 1 + s.below(2 * k + 1, 12) as u32,
                    n => 1 + (last * 5 + n as u32) % 12,
                };
                text.push(next);
            }
            text
        };
        (0..40).map(text).collect()
    }

    #[test]
    fn after_any_words_probabilities_add_up_to_1() {
        let texts = texts();
        let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        let all: Vec<u32> = (0..13).collect();
        for (order, least) in [(1, 1), (2, 1), (3, 1), (5, 1), (5, 3)] {
            let model = KneserNey::fit(&texts, 13, START, order, least).unwrap();
            for before in [&[][..], &[3], &[12, 12], &texts[0][..7], &[1, 1, 1, 1, 1]] {
                let p = model.probabilities(before, &all);
                let sum: f64 = p.iter().sum();
                assert!((sum - 1.0).abs() < 1e-12, "{order} {before:?}: {sum}");
                assert!(p.iter().all(|p| *p > 0.0));
                // Alone each token has what it has among the others.
                for w in 0..13u32 {
                    assert_eq!(model.probabilities(before, &[w]), [p[w as usize]]);
                }
            }
        }
    }

    /// By hand: `a b`, `a b`, `c b`, `a c` as texts of two words.
    #[test]
    fn a_small_model_is_as_by_hand() {
        let (a, b, c) = (1, 2, 3);
        let texts: [&[u32]; 4] = [&[a, b], &[a, b], &[c, b], &[a, c]];
        let model = KneserNey::fit(&texts, 4, START, 2, 1).unwrap();
        // Different bigrams: start a (3), start c (1), a b (2), a c (1), c b (1). b stands after a and c, c after
        // the start and a, a after the start: counts 1, 2, 2 of 5; of them one is 1 and two are 2.
        let d1 = 1.0 / (1.0 + 2.0 * 2.0);
        let one = |k: f64| (k - d1) / 5.0 + 3.0 * d1 / 5.0 / 4.0;
        // Three bigrams occur once, one twice.
        let d2 = 3.0 / (3.0 + 2.0 * 1.0);
        let after_a = |k: f64, lower: f64| k / 3.0 + 2.0 * d2 / 3.0 * lower;
        let p = model.probabilities(&[a], &[a, b, c]);
        let expected = [
            after_a(0.0, one(1.0)),
            after_a(2.0 - d2, one(2.0)),
            after_a(1.0 - d2, one(2.0)),
        ];
        for (p, expected) in p.iter().zip(expected) {
            assert!((p - expected).abs() < 1e-15, "{p} {expected}");
        }
        assert_eq!(model.seen(), [a, b, c]);
    }

    #[test]
    fn a_model_of_its_own_grams_is_the_same_one() {
        let texts = texts();
        let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        let model = KneserNey::fit(&texts, 13, START, 4, 2).unwrap();
        let grams: Vec<Vec<Gram>> = (1..=4).map(|n| model.grams(n).collect()).collect();
        assert_eq!(KneserNey::from_grams(13, START, &grams).unwrap(), model);
        let mut mixed = grams;
        mixed[2].reverse();
        let error = KneserNey::from_grams(13, START, &mixed).unwrap_err();
        assert_eq!(
            error.to_string(),
            "n-grams: order 3 is not sorted by context"
        );
    }

    #[test]
    fn a_word_that_is_none_is_refused() {
        let error = KneserNey::fit(&[&[1, 2], &[13]], 13, START, 2, 1).unwrap_err();
        assert_eq!(error.to_string(), "token 13 at item 1: expected below 13");
    }
}
