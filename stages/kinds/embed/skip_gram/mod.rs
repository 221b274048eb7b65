//! Skip-gram with negative sampling, trained on any number of threads with one result.
//!
//! Paper: Mikolov et al., arXiv:1310.4546; the details (windows of random width, frequent words
//! left out at random, negative samples by count to the 3/4, a linearly decaying learning rate) are word2vec's.
//! Differs: word2vec's threads write into each other's vectors, so that no two runs agree. Here
//! the text is cut into blocks of about [`BLOCK`](corpus::BLOCK) words, and a round is [`SHARDS`] blocks. Each
//! block starts from the vectors as they were when the round began and trains its own copies of
//! the rows that it touches. Then every row moves by the sum of what the blocks did to it, as
//! if they had worked one after another. That holds for small moves alone: a row that was
//! updated more than `CALM` times in a round moves by less, down to the mean, because the
//! same large step taken several times would overshoot and in the end diverge.
//! Blocks, rounds and the order of every sum depend on the text alone.

mod context;
mod corpus;
mod input;
mod learner;
mod touched;

use rayon::prelude::*;

use super::draw::Stream;
use super::negatives::Negatives;
use super::settings::Settings;
use crate::tables::vectors::Matrix;
use crate::tables::vocabulary::Vocab;
use crate::{Failure, Task, Watch};
use context::{Shared, TrainingContext};
use corpus::{Corpus, blocks};
use learner::{LANES, Learner, sigmoid_table};
use touched::merge;

/// Blocks of a round. More would serve more cores, and average more.
const SHARDS: usize = 8;
/// The purpose of the random streams of initial vectors.
const INITIAL: u64 = 1;

/// The vectors of all words, from the inputs of a stage.
pub fn run(task: &Task<'_>, settings: &Settings, vocab: &Vocab) -> Result<Matrix, Failure> {
    let counts = vocab.counts.as_deref().ok_or_else(|| {
        Failure::new("the vocabulary has no column `count`, which skip-gram needs")
            .help("connect the output `vocab` of the tokenize stage that made the tokens")
    })?;
    let (ids, texts) = input::read(task, settings, vocab)?;
    let corpus = Corpus {
        ids: ids.values(),
        texts,
    };
    let matrix = train(&corpus, counts, settings, task.seed, task.watch)?;
    if !matrix.values.iter().all(|number| number.is_finite()) {
        return Err(Failure::new(format!(
            "skip-gram diverged with the learning rate {}",
            settings.learning_rate
        ))
        .help("lower `learning_rate`: 0.025 is usual")
        .at("learning_rate"));
    }
    Ok(matrix)
}

fn train(
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
    let context = TrainingContext {
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
            each.for_each(|(learner, block)| learner.learn(&context, &shared, block, epoch, words));
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
