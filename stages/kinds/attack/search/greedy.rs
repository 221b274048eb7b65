//! A walk along the gradient: one word after the other, until the goal is reached or the budget spent.
//!
//! A batch of items walks in step, so that every round is one gradient and one product with the
//! dictionary. Rows of both have the same bits alone and in a batch: so does an item's walk.
//! A network that can be resumed reads again only from the first word that is or may be changed.

use nn::batch::{Example, Sequence, Target};
use nn::objectives::Objective;
use nn::victim::{Neural, Remembered, Suffix};

use crate::Failure;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::goals::{self, Goal};
use crate::kinds::attack::search::moves::{Ask, Steepest};
use crate::kinds::attack::trace::Trace;
use crate::models::entry::Subject;
use crate::models::failure;
use crate::tables::examples::{BACKWARD, FORWARD};

/// Of which text the gradient is that chooses the next word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jacobian {
    /// Of the text as it is now: one gradient for each word.
    EachStep,
    /// Of the original: one gradient in all, then queries that tell when to stop.
    Once,
}

/// One item on its way.
struct Walker {
    goal: Goal,
    /// Places still to be changed, the next one last.
    places: Vec<usize>,
    trace: Trace,
    walking: bool,
    /// The text as it was when the first gradient was asked for.
    memory: Option<Remembered>,
    /// Rows of the only gradient, as `places` are: the next one last.
    rows: Option<Vec<Vec<f32>>>,
}

impl Walker {
    /// The text as it is now.
    fn tokens(&self) -> &[u32] {
        match &self.trace.input {
            Sequence::Tokens(tokens) => tokens,
            _ => &[],
        }
    }

    /// The first step that is not as it was, or that may be changed now.
    fn from(&self) -> usize {
        let changed = self.trace.edits.iter().map(Edit::position);
        let next = self.places.last().copied();
        changed.chain(next).min().unwrap_or_default()
    }
}

/// What one gradient says: the logits, and the row of the place to be changed next.
struct Answer {
    logits: Vec<f32>,
    row: Vec<f32>,
    /// The rows of all places, if there will be no other gradient.
    rows: Option<Vec<Vec<f32>>>,
}

impl Answer {
    /// From a gradient whose first row is that of step `from`.
    fn new(
        gradient: nn::victim::Gradient,
        from: usize,
        walker: &Walker,
        jacobian: Jacobian,
    ) -> Answer {
        let row = |place: &usize| gradient.input.row(place - from).to_vec();
        let once = jacobian == Jacobian::Once;
        Answer {
            logits: gradient.logits.row(0).to_vec(),
            row: walker.places.last().map(row).unwrap_or_default(),
            rows: once.then(|| walker.places.iter().map(row).collect()),
        }
    }
}

/// Walks from every item to its goal. `places` lists where an item may be changed, in order;
/// none is used twice, and no more than the budget.
pub fn walk(
    context: &AttackContext<'_>,
    items: &[Item<'_>],
    goal: impl Fn(&Item<'_>) -> Goal,
    places: impl Fn(&[u32]) -> Vec<usize>,
    budget: usize,
    (moves, jacobian): (&Steepest, Jacobian),
) -> Result<Vec<Trace>, Failure> {
    let mut walkers = Vec::with_capacity(items.len());
    for item in items {
        let mut places = places(item.tokens()?);
        places.truncate(budget);
        places.reverse();
        walkers.push(Walker {
            goal: goal(item),
            places,
            trace: Trace {
                attacked: true,
                ..Trace::untouched(item)
            },
            walking: true,
            memory: None,
            rows: None,
        });
    }
    while walkers.iter().any(|w| w.walking) {
        step(context, &mut walkers, moves, jacobian)?;
    }
    Ok(walkers.into_iter().map(|walker| walker.trace).collect())
}

/// One round: a gradient for everyone on the way, then one word each.
fn step(
    context: &AttackContext<'_>,
    walkers: &mut [Walker],
    moves: &Steepest,
    jacobian: Jacobian,
) -> Result<(), Failure> {
    let mut asks = looks(context, walkers)?;
    asks.extend(gradients(context, walkers, jacobian)?);
    asks.sort_by_key(|(i, ..)| *i);
    let questions: Vec<Ask<'_>> = asks
        .iter()
        .map(|(i, place, gradient)| Ask {
            token: walkers[*i].tokens()[*place],
            gradient,
        })
        .collect();
    if questions.is_empty() {
        return Ok(());
    }
    let answers = moves.best(&questions)?;
    for ((i, place, _), answer) in asks.iter().zip(answers) {
        let walker = &mut walkers[*i];
        walker.places.pop();
        let Some(new) = answer else {
            walker.walking = false;
            continue;
        };
        let old = walker.tokens()[*place];
        walker.trace.edit(Edit::replace(*place, old, new))?;
    }
    Ok(())
}

/// Who has not arrived, where the next word is, and the row of the gradient there.
type Rows = Vec<(usize, usize, Vec<f32>)>;

/// Of those who have had their only gradient.
fn looks(context: &AttackContext<'_>, walkers: &mut [Walker]) -> Result<Rows, Failure> {
    let looks = |walker: &Walker| walker.walking && walker.rows.is_some();
    let group: Vec<usize> = (0..walkers.len()).filter(|i| looks(&walkers[*i])).collect();
    if group.is_empty() {
        return Ok(Vec::new());
    }
    let texts: Vec<&Sequence> = group.iter().map(|i| &walkers[*i].trace.input).collect();
    let logits = context.subject.victim().logits(&texts).map_err(failure)?;
    let mut asks = Rows::new();
    for (i, logits) in group.into_iter().zip(logits) {
        let walker = &mut walkers[i];
        walker.trace.count(FORWARD, 1);
        let row = walker.rows.as_mut().and_then(Vec::pop);
        let logits = logits.row(0).to_vec();
        match walker.places.last().copied().zip(row) {
            Some((place, row)) if !walker.goal.reached(goals::Answer::Logits(&logits)) => {
                asks.push((i, place, row));
            }
            _ => walker.walking = false,
        }
    }
    Ok(asks)
}

/// Of all others: a gradient each.
fn gradients(
    context: &AttackContext<'_>,
    walkers: &mut [Walker],
    jacobian: Jacobian,
) -> Result<Rows, Failure> {
    let asks_for_one = |walker: &Walker| walker.walking && walker.rows.is_none();
    let mut objectives: Vec<Objective> = Vec::new();
    for walker in walkers.iter().filter(|walker| asks_for_one(walker)) {
        let objective = walker.goal.objective();
        if !objectives.contains(&objective) {
            objectives.push(objective);
        }
    }
    let mut asks = Rows::new();
    // All of them are chosen before any of them has its only gradient.
    let of = |objective: &Objective| -> Vec<usize> {
        let wants = |walker: &Walker| asks_for_one(walker) && walker.goal.objective() == *objective;
        (0..walkers.len()).filter(|i| wants(&walkers[*i])).collect()
    };
    let groups: Vec<Vec<usize>> = objectives.iter().map(of).collect();
    for (objective, group) in objectives.into_iter().zip(groups) {
        let answers = match context.subject {
            Subject::Network(network) => resumed(network, walkers, &group, &objective, jacobian)?,
            Subject::Classifier(_) => {
                whole(context.subject, walkers, &group, &objective, jacobian)?
            }
        };
        for (i, answer) in group.into_iter().zip(answers) {
            let walker = &mut walkers[i];
            walker.trace.count(FORWARD, 1);
            walker.trace.count(BACKWARD, 1);
            match walker.places.last().copied() {
                Some(place) if !walker.goal.reached(goals::Answer::Logits(&answer.logits)) => {
                    asks.push((i, place, answer.row));
                    // The row of this place is used now.
                    walker.rows = answer.rows.map(|mut rows| {
                        rows.pop();
                        rows
                    });
                }
                _ => walker.walking = false,
            }
        }
    }
    Ok(asks)
}

/// Gradients of whole texts.
fn whole(
    subject: &Subject<'_>,
    walkers: &[Walker],
    group: &[usize],
    objective: &Objective,
    jacobian: Jacobian,
) -> Result<Vec<Answer>, Failure> {
    let examples: Vec<Example> = group
        .iter()
        .map(|i| Example {
            input: walkers[*i].trace.input.clone(),
            target: Target::None,
        })
        .collect();
    let examples: Vec<&Example> = examples.iter().collect();
    let gradients = subject.victim().gradients(&examples, objective);
    let pairs = gradients.map_err(failure)?.into_iter().zip(group);
    Ok(pairs
        .map(|(gradient, i)| Answer::new(gradient, 0, &walkers[*i], jacobian))
        .collect())
}

/// The same of a network: the first time of the whole text, then of as little as will do.
fn resumed(
    network: &Neural<'_>,
    walkers: &mut [Walker],
    group: &[usize],
    objective: &Objective,
    jacobian: Jacobian,
) -> Result<Vec<Answer>, Failure> {
    let knows = |walker: &Walker| walker.memory.as_ref().is_some_and(Remembered::resumable);
    let (known, new): (Vec<usize>, Vec<usize>) = group
        .iter()
        .partition(|i| knows(&walkers[**i]) && walkers[**i].from() > 0);
    let mut answers: Vec<(usize, Answer)> = Vec::with_capacity(group.len());
    if !known.is_empty() {
        let suffix = |i: &usize| {
            let (walker, from) = (&walkers[*i], walkers[*i].from());
            Some(Suffix {
                text: walker.memory.as_ref()?,
                from,
                tokens: &walker.tokens()[from..],
            })
        };
        let suffixes: Vec<Suffix<'_>> = known.iter().filter_map(suffix).collect();
        let gradients = network.suffix_gradients(&suffixes, objective);
        for (gradient, i) in gradients.map_err(failure)?.into_iter().zip(known) {
            let walker = &walkers[i];
            answers.push((i, Answer::new(gradient, walker.from(), walker, jacobian)));
        }
    }
    if !new.is_empty() {
        let texts: Vec<&[u32]> = new.iter().map(|i| walkers[*i].tokens()).collect();
        let gradients = network.gradients_remembered(&texts, objective);
        for ((gradient, memory), i) in gradients.map_err(failure)?.into_iter().zip(new) {
            answers.push((i, Answer::new(gradient, 0, &walkers[i], jacobian)));
            // Only the text as it came has no changes: `from` counts from there.
            if walkers[i].trace.edits.is_empty() {
                walkers[i].memory = Some(memory);
            }
        }
    }
    answers.sort_by_key(|(i, _)| *i);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

#[cfg(test)]
mod tests {
    use nn::Stream;
    use nn::linear::Vectors;
    use nn::models::{GRU, LSTM, Model, Reads, RecurrentSpec};
    use nn::victim::Victim;
    use store::Params;

    use super::*;
    use crate::kinds::attack::search::moves::Direction;

    const WORDS: usize = 60;

    /// Walks from the end of forty texts, and from other places, of one subject.
    fn walks(subject: &Subject<'_>, vectors: &Vectors, jacobian: Jacobian) -> Vec<Trace> {
        let stream = Stream::new(3, "texts");
        let text = |i: u64| {
            let word = |k| 2 + stream.item(i).below(k, WORDS - 2) as u32;
            Sequence::Tokens((0..1 + i).map(word).collect())
        };
        let texts: Vec<Sequence> = (0..40).map(text).collect();
        let before = subject
            .victim()
            .probabilities(&texts.iter().collect::<Vec<_>>());
        let item = |(input, before): (_, ndarray::Array2<f32>)| Item {
            id: "any",
            input,
            label: 0,
            before: before.row(0).to_vec(),
        };
        let items: Vec<Item<'_>> = texts.iter().zip(before.unwrap()).map(item).collect();
        let params = Params::new();
        let context = AttackContext {
            subject,
            params: &params,
            seed: 1,
            words: None,
            vectors: Some(vectors),
            connected: None,
            lemmas: None,
            synonyms: None,
            candidates: None,
            bayes: None,
            language: None,
            known_words: None,
            special: [0, 1],
            pad: 0,
            classes: 2,
            task: None,
        };
        let moves = Steepest::new(vectors, Direction::Sign, &[0, 1]).unwrap();
        let goal = |item: &Item<'_>| Goal::untargeted(item.predicted());
        let from_the_end = |tokens: &[u32]| (0..tokens.len()).rev().collect();
        let outwards = |tokens: &[u32]| {
            let half = tokens.len() / 2;
            (half..tokens.len()).chain((0..half).rev()).collect()
        };
        let mut all = walk(&context, &items, goal, from_the_end, 6, (&moves, jacobian)).unwrap();
        all.extend(walk(&context, &items, goal, outwards, 30, (&moves, jacobian)).unwrap());
        all
    }

    /// With one gradient the first word is the same, and the others are those that it names; queries tell when to stop.
    fn once(traces: &[Trace], each_step: &[Trace]) {
        for (trace, other) in traces.iter().zip(each_step) {
            assert_eq!(trace.edits.first(), other.edits.first());
            let count = |name| {
                let mut counters = trace.counters.iter();
                counters.find(|(n, _)| **n == name).map_or(0, |(_, n)| *n)
            };
            assert_eq!(count(BACKWARD), 1);
            assert_eq!(count(FORWARD), 1 + trace.edits.len() as u64);
        }
        let second = |trace: &Trace| trace.edits.get(1).cloned();
        let differs = |(a, b): (&Trace, &Trace)| {
            second(a).is_some() && second(b).is_some() && second(a) != second(b)
        };
        let longer = each_step.iter().any(|trace| trace.edits.len() > 4);
        assert!(!longer || traces.iter().zip(each_step).any(differs));
    }

    #[test]
    fn a_network_that_is_resumed_walks_as_one_that_reads_whole_texts() {
        let stream = Stream::new(5, "vectors");
        let data = (0..WORDS as u64 * 6).map(|i| stream.normal(i) as f32);
        let vectors = Vectors {
            dim: 6,
            data: data.collect(),
        };
        // One that gives in early, and one that nothing moves, so that every place is tried.
        for (cell, layers, bidirectional, stubborn) in [
            (&LSTM, 1, false, false),
            (&LSTM, 1, false, true),
            (&GRU, 2, false, true),
            (&LSTM, 1, true, true),
        ] {
            let reads = Reads::Tokens {
                vocabulary: WORDS,
                dim: 6,
                frozen: true,
            };
            let spec = RecurrentSpec {
                layers,
                bidirectional,
                ..RecurrentSpec::new(cell, reads, 8, 2)
            };
            let model = Model::new(&spec).unwrap();
            let mut params = model.init(2);
            let span = model.layout().find("embedding").unwrap();
            params.set(span, vectors.view()).unwrap();
            if stubborn {
                let bias = model.layout().find("head.bias").unwrap();
                params.set(bias, ndarray::aview2(&[[50.0, 0.0]])).unwrap();
            }
            let network = || Neural::new(&model, &params).unwrap();
            let plain = network();
            // As a machine it is asked for the gradient of whole texts.
            let whole = walks(&Subject::Classifier(&plain), &vectors, Jacobian::EachStep);
            let resumed = Subject::Network(network());
            let again = walks(&resumed, &vectors, Jacobian::EachStep);
            assert_eq!(whole, again, "{cell:?}");
            assert_eq!(plain.queries(), resumed.victim().queries());
            once(&walks(&resumed, &vectors, Jacobian::Once), &whole);
            let changed = |n: usize| whole.iter().any(|trace| trace.edits.len() == n);
            match stubborn {
                true => assert!(changed(6) && changed(30)),
                false => assert!(changed(1) && changed(2)),
            }
        }
    }
}
