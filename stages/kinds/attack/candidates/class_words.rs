//! The words that speak most for each class, to be drawn from against the others.

use nn::Stream;

use crate::Failure;
use crate::contract::description::Param;
use crate::kinds::attack::context::AttackContext;
use crate::kinds::attack::search::moves::drawn;
use crate::models::sway::Sway;
use crate::params::settings::failure;

/// How many words of a class are drawn from.
pub const STRONGEST: Param = Param::int(
    "strongest",
    5,
    1,
    "How many of a class's strongest words are sampled from.",
);

/// The strongest words of every class.
pub struct Opposed {
    sets: Vec<Vec<u32>>,
}

impl Opposed {
    /// From the counts that are connected, which must be of these words.
    pub fn new<'a>(
        attack: &str,
        context: &AttackContext<'a>,
    ) -> Result<(Opposed, Sway<'a>), Failure> {
        let words = context.words(attack)?;
        let sway = Sway::new(context.bayes(attack)?);
        let count = context.settings().int("strongest").map_err(failure)?;
        if context.classes > sway.classes() {
            return Err(Failure::new(format!(
                "the model predicts {} classes, and `bayes` has counted words of {}",
                context.classes,
                sway.classes()
            ))
            .help("correct `classes` of the model's stage, or connect a naive Bayes that was trained on rows of all its classes"));
        }
        let classes = 0..context.classes as u32;
        let set = |class| sway.strongest(class, count, words, &context.special);
        let sets = classes.map(set).collect();
        Ok((Opposed { sets }, sway))
    }

    /// A word that speaks against a class.
    pub fn draw(&self, label: u32, stream: &Stream, draw: u64) -> Option<u32> {
        let others: Vec<&Vec<u32>> = (0u32..)
            .zip(&self.sets)
            .filter(|(class, _)| *class != label)
            .map(|(_, set)| set)
            .collect();
        // Two draws for each word: the class, then the word.
        let set = others.get(stream.below(2 * draw, others.len()))?;
        drawn(set, stream, 2 * draw + 1)
    }
}
