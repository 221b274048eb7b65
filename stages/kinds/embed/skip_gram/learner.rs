//! One block of a round: SGD on pairs of words and negative samples.

use super::super::draw::Stream;
use super::context::{Shared, TrainingContext};
use super::corpus::Block;
use super::touched::Touched;

/// Rows are padded to a multiple of these, so that loops over them have no remainder.
pub const LANES: usize = 8;

/// The purpose of the random streams of the first epoch; those of the others follow.
const EPOCH: u64 = 1 << 32;

/// Trains one block of a round.
pub struct Learner {
    /// What it did to the vectors of words.
    pub input: Touched,
    /// What it did to the vectors of contexts.
    pub output: Touched,
    text: Vec<u32>,
    change: Vec<f32>,
}

impl Learner {
    /// A learner of `rows` words.
    pub fn new(rows: usize) -> Learner {
        Learner {
            input: Touched::new(rows),
            output: Touched::new(rows),
            text: Vec::new(),
            change: Vec::new(),
        }
    }

    /// Trains copies on the texts of a block, in an epoch of `words` words.
    pub fn learn(
        &mut self,
        training: &TrainingContext<'_>,
        shared: &Shared,
        block: &Block,
        epoch: usize,
        words: usize,
    ) {
        let mut done = epoch * words + block.before;
        self.change.resize(training.stride, 0.0);
        for n in block.texts.clone() {
            let mut stream = Stream::new(training.seed, EPOCH + epoch as u64, n as u64);
            let ids = &training.corpus.ids[training.corpus.texts[n].clone()];
            let left = 1.0 - done as f32 / training.total as f32;
            let step = training.settings.learning_rate * left.max(1e-4);
            done += ids.len();
            self.text.clear();
            for id in ids {
                let keep = training.keep[*id as usize];
                if keep >= 1.0 || stream.unit() < keep {
                    self.text.push(*id as u32);
                }
            }
            for at in 0..self.text.len() {
                let reach = 1 + stream.below(training.settings.window) as usize;
                let around = at.saturating_sub(reach)..(at + reach + 1).min(self.text.len());
                for other in around.filter(|other| *other != at) {
                    let (word, context) = (self.text[at], self.text[other]);
                    self.pair(training, shared, word, context, step, &mut stream);
                }
            }
        }
    }

    /// Pulls a context's vector towards the word that it surrounds, and away from negative samples.
    #[inline]
    fn pair(
        &mut self,
        training: &TrainingContext<'_>,
        shared: &Shared,
        word: u32,
        context: u32,
        step: f32,
        stream: &mut Stream,
    ) {
        let stride = training.stride;
        let from = self.input.row(context, &shared.input, stride);
        let input = &mut self.input.copies[from..from + stride];
        self.change.fill(0.0);
        for n in 0..=training.settings.negative {
            let (target, truth) = match n {
                0 => (word, 1.0),
                _ => (training.negatives.draw(stream), 0.0),
            };
            if n > 0 && target == word {
                continue;
            }
            let at = self.output.row(target, &shared.output, stride);
            let output = &mut self.output.copies[at..at + stride];
            let slope = (truth - sigmoid(&training.sigmoid, dot(input, output))) * step;
            for ((change, output), input) in self.change.iter_mut().zip(output).zip(&*input) {
                *change += slope * *output;
                *output += slope * *input;
            }
        }
        for (input, change) in input.iter_mut().zip(&self.change) {
            *input += change;
        }
    }
}

#[inline]
fn sigmoid(table: &[f32], x: f32) -> f32 {
    let at = (x + 6.0) * (1024.0 / 12.0);
    table[(at.max(0.0) as usize).min(1023)]
}

/// A sum in lanes: a fixed order that the processor can compute side by side.
#[inline]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

/// 1 / (1 + e^-x) for x from -6 to 6 in 1,024 steps.
pub fn sigmoid_table() -> Vec<f32> {
    let at = |n: u32| (f64::from(n) + 0.5) / 1024.0 * 12.0 - 6.0;
    (0..1024)
        .map(|n| (1.0 / (1.0 + (-at(n)).exp())) as f32)
        .collect()
}
