//! Skip-gram with negative sampling, trained on any number of threads with one result.
//!
//! Paper: Mikolov et al., arXiv:1310.4546; the details (windows of random width, frequent words
//! left out at random, noise by count to the 3/4, a linearly falling step) are word2vec's.
//! Differs: word2vec's threads write into each other's vectors, so that no two runs agree. Here
//! the text is cut into blocks of about [`BLOCK`] words, and a round is [`SHARDS`] blocks. Each
//! block starts from the vectors as they were when the round began and trains its own copies of
//! the rows that it touches. Then every row moves by the sum of what the blocks did to it, as
//! if they had worked one after another. That holds for small moves alone: a row that was
//! updated more than [`CALM`] times in a round moves by less, down to the mean, because the
//! same large step taken several times would overshoot and in the end diverge.
//! Blocks, rounds and the order of every sum depend on the text alone.

use std::ops::Range;

use rayon::prelude::*;

use super::draw::Stream;
use super::negatives::Negatives;
use super::settings::Settings;
use super::tables::Matrix;
use crate::{Failure, Watch};

/// Words of a block, before frequent ones are left out.
const BLOCK: usize = 1_000;
/// Blocks of a round. More would serve more cores, and average more.
const SHARDS: usize = 8;
/// Updates of a row in a round up to which its moves are simply added. Measured on 1.4 million
/// words of film reviews: with sums alone the vectors diverge; with means alone, and longer
/// blocks, all words end up alike.
const CALM: u32 = 64;
/// Rows are padded to a whole number of these, so that loops over them need no rest.
const LANES: usize = 8;
/// Purposes of random streams.
const INITIAL: u64 = 1;
const EPOCH: u64 = 1 << 32;

/// The texts to learn from: lists of ids.
pub struct Corpus<'a> {
    /// All ids.
    pub ids: &'a [i32],
    /// Where each text lies in `ids`.
    pub texts: Vec<Range<usize>>,
}

/// The vectors of all words.
pub fn train(
    corpus: &Corpus<'_>,
    counts: &[i64],
    settings: &Settings,
    seed: u64,
    watch: &dyn Watch,
) -> Result<Matrix, Failure> {
    let words: usize = corpus.texts.iter().map(ExactSizeIterator::len).sum();
    let Some(negatives) = Negatives::new(counts).filter(|_| words > 0) else {
        return Err(Failure::new("there are no tokens to learn from")
            .help("the training split is empty, or its vocabulary has no counts"));
    };
    let blocks = blocks(&corpus.texts);
    let stride = settings.dim.next_multiple_of(LANES);
    let mut shared = Shared {
        input: initial(counts.len(), settings.dim, stride, seed),
        output: vec![0.0; counts.len() * stride],
    };
    let lesson = Lesson {
        corpus,
        settings,
        seed,
        negatives,
        keep: keep(counts, settings.subsample),
        total: words * settings.epochs,
        sigmoid: sigmoid_table(),
        stride,
    };
    let mut learners: Vec<Learner> = (0..SHARDS).map(|_| Learner::new(counts.len())).collect();
    let rounds = blocks.chunks(SHARDS).len() * settings.epochs;
    let mut done = 0;
    for epoch in 0..settings.epochs {
        for round in blocks.chunks(SHARDS) {
            if watch.stopped() {
                return Err(Failure::stopped());
            }
            let each = learners.par_iter_mut().zip(round);
            each.for_each(|(learner, block)| learner.learn(&lesson, &shared, block, epoch, words));
            merge(
                &mut shared.input,
                stride,
                &mut learners[..round.len()],
                |l| &mut l.input,
            );
            merge(
                &mut shared.output,
                stride,
                &mut learners[..round.len()],
                |l| &mut l.output,
            );
            done += 1;
            watch.progress(done, rounds as u64);
        }
    }
    let rows = shared.input.chunks_exact(stride);
    Ok(Matrix {
        dim: settings.dim,
        values: rows.flat_map(|row| &row[..settings.dim]).copied().collect(),
    })
}

/// What all blocks of a round see, and none may change.
struct Shared {
    input: Vec<f32>,
    output: Vec<f32>,
}

/// What is fixed for the whole of the training.
struct Lesson<'a> {
    corpus: &'a Corpus<'a>,
    settings: &'a Settings,
    seed: u64,
    negatives: Negatives,
    keep: Vec<f32>,
    total: usize,
    sigmoid: Vec<f32>,
    stride: usize,
}

/// Consecutive texts, and how many words come before them in an epoch.
struct Block {
    texts: Range<usize>,
    before: usize,
}

fn blocks(texts: &[Range<usize>]) -> Vec<Block> {
    let (mut blocks, mut start, mut before, mut words) = (Vec::new(), 0, 0, 0);
    for (n, text) in texts.iter().enumerate() {
        words += text.len();
        if words >= BLOCK || n + 1 == texts.len() {
            blocks.push(Block {
                texts: start..n + 1,
                before,
            });
            (start, before, words) = (n + 1, before + words, 0);
        }
    }
    blocks
}

/// Small random numbers for the words, as word2vec begins.
fn initial(rows: usize, dim: usize, stride: usize, seed: u64) -> Vec<f32> {
    let mut values = vec![0.0; rows * stride];
    for (n, row) in values.chunks_exact_mut(stride).enumerate() {
        let mut stream = Stream::new(seed, INITIAL, n as u64);
        row[..dim].fill_with(|| (stream.unit() - 0.5) / dim as f32);
    }
    values
}

/// How likely each word is kept: all of the rare ones, few of the most frequent.
fn keep(counts: &[i64], subsample: f64) -> Vec<f32> {
    let total: i64 = counts.iter().sum();
    let keep = |count: &i64| {
        let relative = *count as f64 / total.max(1) as f64 / subsample;
        if subsample == 0.0 || relative <= 0.0 {
            return 1.0;
        }
        (((relative.sqrt() + 1.0) / relative) as f32).min(1.0)
    };
    counts.iter().map(keep).collect()
}

/// 1 / (1 + e^-x) for x from -6 to 6 in 1,024 steps.
fn sigmoid_table() -> Vec<f32> {
    let at = |n: u32| (f64::from(n) + 0.5) / 1024.0 * 12.0 - 6.0;
    (0..1024)
        .map(|n| (1.0 / (1.0 + (-at(n)).exp())) as f32)
        .collect()
}

/// Copies of the rows that a block has touched.
struct Touched {
    /// For every row of the shared matrix its place among the copies, or `NONE`.
    place: Vec<u32>,
    rows: Vec<u32>,
    /// How often each copy was used.
    updates: Vec<u32>,
    copies: Vec<f32>,
}

const NONE: u32 = u32::MAX;

impl Touched {
    fn new(rows: usize) -> Touched {
        Touched {
            place: vec![NONE; rows],
            rows: Vec::new(),
            updates: Vec::new(),
            copies: Vec::new(),
        }
    }

    /// Where the copy of a row begins.
    #[inline]
    fn row(&mut self, row: u32, shared: &[f32], stride: usize) -> usize {
        let place = self.place[row as usize];
        if place != NONE {
            self.updates[place as usize] += 1;
            return place as usize * stride;
        }
        self.copy(row, shared, stride)
    }

    #[cold]
    fn copy(&mut self, row: u32, shared: &[f32], stride: usize) -> usize {
        self.place[row as usize] = self.rows.len() as u32;
        self.rows.push(row);
        self.updates.push(1);
        let (at, from) = (self.copies.len(), row as usize * stride);
        self.copies.extend_from_slice(&shared[from..from + stride]);
        at
    }

    fn clear(&mut self) {
        for row in self.rows.drain(..) {
            self.place[row as usize] = NONE;
        }
        self.updates.clear();
        self.copies.clear();
    }
}

/// Trains one block of a round.
struct Learner {
    input: Touched,
    output: Touched,
    text: Vec<u32>,
    change: Vec<f32>,
}

impl Learner {
    fn new(rows: usize) -> Learner {
        Learner {
            input: Touched::new(rows),
            output: Touched::new(rows),
            text: Vec::new(),
            change: Vec::new(),
        }
    }

    fn learn(
        &mut self,
        lesson: &Lesson<'_>,
        shared: &Shared,
        block: &Block,
        epoch: usize,
        words: usize,
    ) {
        let mut done = epoch * words + block.before;
        self.change.resize(lesson.stride, 0.0);
        for n in block.texts.clone() {
            let mut stream = Stream::new(lesson.seed, EPOCH + epoch as u64, n as u64);
            let ids = &lesson.corpus.ids[lesson.corpus.texts[n].clone()];
            let left = 1.0 - done as f32 / lesson.total as f32;
            let step = lesson.settings.learning_rate * left.max(1e-4);
            done += ids.len();
            self.text.clear();
            for id in ids {
                let keep = lesson.keep[*id as usize];
                if keep >= 1.0 || stream.unit() < keep {
                    self.text.push(*id as u32);
                }
            }
            for at in 0..self.text.len() {
                let reach = 1 + stream.below(lesson.settings.window) as usize;
                let around = at.saturating_sub(reach)..(at + reach + 1).min(self.text.len());
                for other in around.filter(|other| *other != at) {
                    let (word, context) = (self.text[at], self.text[other]);
                    self.pair(lesson, shared, word, context, step, &mut stream);
                }
            }
        }
    }

    /// Pulls a context's vector towards the word that it surrounds, and away from noise.
    #[inline]
    fn pair(
        &mut self,
        lesson: &Lesson<'_>,
        shared: &Shared,
        word: u32,
        context: u32,
        step: f32,
        stream: &mut Stream,
    ) {
        let stride = lesson.stride;
        let from = self.input.row(context, &shared.input, stride);
        let input = &mut self.input.copies[from..from + stride];
        self.change.fill(0.0);
        for n in 0..=lesson.settings.negative {
            let (target, truth) = match n {
                0 => (word, 1.0),
                _ => (lesson.negatives.draw(stream), 0.0),
            };
            if n > 0 && target == word {
                continue;
            }
            let at = self.output.row(target, &shared.output, stride);
            let output = &mut self.output.copies[at..at + stride];
            let slope = (truth - sigmoid(&lesson.sigmoid, dot(input, output))) * step;
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

/// Moves every touched row by what was done to its copies, block after block.
fn merge(
    shared: &mut [f32],
    stride: usize,
    learners: &mut [Learner],
    of: impl Fn(&mut Learner) -> &mut Touched + Copy,
) {
    let blocks: Vec<&mut Touched> = learners.iter_mut().map(of).collect();
    let touched: Vec<&Touched> = blocks.iter().map(|block| &**block).collect();
    // Rows are independent of each other, so they may be moved side by side.
    let slice = (shared.len() / stride).div_ceil(64).max(1);
    let slices = shared.par_chunks_mut(slice * stride).enumerate();
    slices.for_each(|(n, rows)| {
        for (at, row) in rows.chunks_exact_mut(stride).enumerate() {
            move_row(row, n * slice + at, stride, &touched);
        }
    });
    blocks.into_iter().for_each(Touched::clear);
}

fn move_row(row: &mut [f32], number: usize, stride: usize, blocks: &[&Touched]) {
    let copies = |block: &&&Touched| block.place[number] != NONE;
    let count = blocks.iter().filter(copies).count();
    if count == 0 {
        return;
    }
    let updates = blocks.iter().filter(copies);
    let updates: u32 = updates
        .map(|block| block.updates[block.place[number] as usize])
        .sum();
    let share = (CALM as f32 / updates as f32).clamp(1.0 / count as f32, 1.0);
    let mut moved = [0.0_f32; 64];
    for start in (0..stride).step_by(64) {
        let end = (start + 64).min(stride);
        let (base, moved) = (&mut row[start..end], &mut moved[..end - start]);
        moved.fill(0.0);
        for block in blocks.iter().filter(copies) {
            let at = block.place[number] as usize * stride;
            let copy = &block.copies[at + start..at + end];
            for ((moved, copy), base) in moved.iter_mut().zip(copy).zip(&*base) {
                *moved += copy - base;
            }
        }
        for (base, moved) in base.iter_mut().zip(moved) {
            *base += *moved * share;
        }
    }
}
