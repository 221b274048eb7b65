//! The best sequences of edits, by the sum of the scores that each edit had when it was made.
//!
//! ```text
//! beam = [(x, 0)]
//! repeat at most `steps` times:
//!     look at every text of the beam; stop at the first that has reached the goal
//!     pool = for every text its `width` best edits: (edited text, score + the edit's)
//!     beam = the `width` best of the pool, no text twice
//! look at the last beam in the same way
//! ```
//!
//! All items go in step, so that a look is one batch. A width of 1 is greedy. A goal with a confidence is reached by
//! way of lower ones: the first text at each of them is kept.

use nn::batch::Sequence;

use crate::Failure;
use crate::kinds::attack::context::Item;
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::goals::{Answer, Goal};
use crate::kinds::attack::trace::{Milestones, Trace, passes};

/// How far to look.
#[derive(Clone, Copy, Debug)]
pub struct Beam {
    /// Texts that are kept after each step.
    pub width: usize,
}

/// What one forward and one backward pass tell of a text.
pub struct Look {
    /// The model's logits.
    pub logits: Vec<f32>,
    /// Edits with their scores, in any order; more is better. Those beyond the best `width` are not looked at.
    pub edits: Vec<(f64, Edit)>,
}

/// A text on its way.
#[derive(Clone)]
struct Candidate {
    score: f64,
    trace: Trace,
}

/// An item and its texts, the best first.
struct Search {
    goal: Goal,
    steps: usize,
    beam: Vec<Candidate>,
    /// Texts looked at.
    looks: u64,
    milestones: Milestones,
    /// The text that reached the goal, or the best of the last ones.
    best: Trace,
}

impl Beam {
    /// Searches for every item. `steps` is the number of edits that it may have; `look` tells of many texts at once,
    /// each with the place of its item and the edits that were made so far.
    pub fn search(
        &self,
        items: &[Item<'_>],
        goal: impl Fn(&Item<'_>) -> Goal,
        steps: impl Fn(&Item<'_>) -> usize,
        look: impl Fn(&[(usize, &Sequence, &[Edit])]) -> Result<Vec<Look>, Failure>,
    ) -> Result<Vec<Trace>, Failure> {
        let begin = |item: &Item<'_>| {
            let trace = Trace {
                attacked: true,
                ..Trace::untouched(item)
            };
            let goal = goal(item);
            Search {
                milestones: Milestones::of(&goal),
                goal,
                steps: steps(item),
                best: trace.clone(),
                beam: vec![Candidate { score: 0.0, trace }],
                looks: 0,
            }
        };
        let mut searches: Vec<Search> = items.iter().map(begin).collect();
        loop {
            let texts: Vec<(usize, &Sequence, &[Edit])> = searches
                .iter()
                .enumerate()
                .flat_map(|(n, search)| {
                    let texts = search.beam.iter().map(|candidate| &candidate.trace);
                    texts.map(move |trace| (n, &trace.input, &trace.edits[..]))
                })
                .collect();
            if texts.is_empty() {
                break;
            }
            let mut looks = look(&texts)?.into_iter();
            for search in searches.iter_mut().filter(|search| !search.beam.is_empty()) {
                let looks = looks.by_ref().take(search.beam.len()).collect();
                search.step(looks, self.width)?;
            }
        }
        Ok(searches.into_iter().map(Search::end).collect())
    }
}

impl Search {
    /// One round, given what is known of every text of the beam. An empty beam has ended.
    fn step(&mut self, looks: Vec<Look>, width: usize) -> Result<(), Failure> {
        self.looks += looks.len() as u64;
        let beam = std::mem::take(&mut self.beam);
        let so_far = passes(self.looks, self.looks);
        for (candidate, look) in beam.iter().zip(&looks) {
            let answer = Answer::Logits(&look.logits);
            self.milestones.see(answer, &candidate.trace, &so_far);
        }
        let reached = |look: &Look| self.goal.reached(Answer::Logits(&look.logits));
        let first = looks.iter().position(reached);
        self.best = beam[first.unwrap_or(0)].trace.clone();
        // Every text of a beam has as many edits as rounds were made.
        if first.is_some() || self.best.edits.len() >= self.steps {
            return Ok(());
        }
        let mut pool: Vec<(f64, usize, Edit)> = Vec::new();
        for (n, (candidate, look)) in beam.iter().zip(looks).enumerate() {
            let mut edits = look.edits;
            // Stable: of equals the first, as the attack lists them.
            edits.sort_by(|a, b| b.0.total_cmp(&a.0));
            let best = edits.into_iter().take(width);
            pool.extend(best.map(|(score, edit)| (candidate.score + score, n, edit)));
        }
        pool.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (score, n, edit) in pool {
            if self.beam.len() == width {
                break;
            }
            let mut trace = beam[n].trace.clone();
            trace.edit(edit)?;
            let same = |other: &Candidate| other.trace.input == trace.input;
            if !self.beam.iter().any(same) {
                self.beam.push(Candidate { score, trace });
            }
        }
        Ok(())
    }

    fn end(self) -> Trace {
        Trace {
            counters: passes(self.looks, self.looks),
            firsts: self.milestones.reached,
            ..self.best
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text of two places with words 0 to 4. A table says what each text is worth; the goal is reached above 9.
    fn worth(tokens: &[u32]) -> f64 {
        match tokens {
            // Greedy goes this way, and ends at 6.
            [1, 0] => 5.0,
            [1, _] => 6.0,
            // This one looks worse at first.
            [2, 0] => 4.0,
            [2, 3] => 10.0,
            [2, _] => 4.5,
            _ => 0.0,
        }
    }

    fn look(texts: &[(usize, &Sequence, &[Edit])]) -> Result<Vec<Look>, Failure> {
        let one = |(_, text, done): &(usize, &Sequence, &[Edit])| {
            let Sequence::Tokens(tokens) = text else {
                panic!("not tokens");
            };
            let here = worth(tokens);
            let used = |place: usize| done.iter().any(|edit| edit.position() == place);
            let places = (0..2).filter(|place| !used(*place));
            let edits = places.flat_map(|place| (1..5).map(move |new| (place, new)));
            let score = |(place, new): (usize, u32)| {
                let mut moved = tokens.clone();
                let old = std::mem::replace(&mut moved[place], new);
                (worth(&moved) - here, Edit::replace(place, old, new))
            };
            Look {
                logits: vec![9.0, here as f32],
                edits: edits.map(score).collect(),
            }
        };
        Ok(texts.iter().map(one).collect())
    }

    fn item(input: &Sequence) -> Item<'_> {
        Item {
            id: "a",
            input,
            label: 0,
            before: vec![1.0, 0.0],
        }
    }

    fn search(width: usize, steps: usize, items: usize) -> Vec<Trace> {
        let input = Sequence::Tokens(vec![0, 0]);
        let items = vec![item(&input); items];
        let goal = |item: &Item<'_>| Goal::untargeted(item.label);
        Beam { width }
            .search(&items, goal, |_| steps, look)
            .unwrap()
    }

    #[test]
    fn a_beam_finds_what_a_greedy_search_misses() {
        let greedy = &search(1, 2, 1)[0];
        assert_eq!(greedy.input, Sequence::Tokens(vec![1, 1]));
        assert_eq!(
            greedy.edits,
            [Edit::replace(0, 0, 1), Edit::replace(1, 0, 1)]
        );
        // The text as it came, after one edit, after two.
        assert_eq!(greedy.counters["forward"], 3);
        let wide = &search(2, 2, 1)[0];
        assert_eq!(wide.input, Sequence::Tokens(vec![2, 3]));
        assert_eq!(wide.counters["backward"], 5);
    }

    proptest::proptest! {
        /// Scores are differences of what texts are worth, so that a path is worth where it ends.
        #[test]
        fn a_beam_that_holds_every_text_is_never_worse_than_a_narrower_one(
            worth in proptest::collection::vec(-9.0..9.0_f64, 27),
            width in 1..4_usize,
            steps in 1..4_usize,
        ) {
            let of = |tokens: &[u32]| worth[tokens.iter().fold(0, |n, t| 3 * n + *t as usize)];
            let look = |texts: &[(usize, &Sequence, &[Edit])]| {
                let one = |(_, text, done): &(usize, &Sequence, &[Edit])| {
                    let Sequence::Tokens(tokens) = text else {
                        panic!("not tokens");
                    };
                    let used = |place: usize| done.iter().any(|edit| edit.position() == place);
                    let places = (0..3).filter(|place| !used(*place));
                    let edits = places.flat_map(|place| (1..3).map(move |new| (place, new)));
                    let score = |(place, new): (usize, u32)| {
                        let mut moved = tokens.clone();
                        let old = std::mem::replace(&mut moved[place], new);
                        (of(&moved) - of(tokens), Edit::replace(place, old, new))
                    };
                    Look {
                        logits: vec![9.0, 0.0],
                        edits: edits.map(score).collect(),
                    }
                };
                Ok(texts.iter().map(one).collect())
            };
            let input = Sequence::Tokens(vec![0, 0, 0]);
            let ends = |width: usize| {
                let goal = |item: &Item<'_>| Goal::untargeted(item.label);
                let found = Beam { width }.search(&[item(&input)], goal, |_| steps, look);
                let Sequence::Tokens(tokens) = found.unwrap().remove(0).input else {
                    panic!("not tokens");
                };
                of(&tokens)
            };
            proptest::prop_assert!(ends(27) >= ends(width) - 1e-9);
        }
    }

    #[test]
    fn no_more_edits_than_steps() {
        for (steps, edits) in [(0, 0), (1, 1), (2, 2), (9, 2)] {
            let trace = &search(1, steps, 1)[0];
            assert_eq!(trace.edits.len(), edits, "{steps} steps");
        }
    }

    #[test]
    fn items_share_batches_and_nothing_else() {
        let alone = search(3, 2, 1);
        assert_eq!(search(3, 2, 4), vec![alone[0].clone(); 4]);
    }

    #[test]
    fn a_beam_has_no_text_twice() {
        // Both orders of two edits lead to one text.
        let texts = std::cell::RefCell::new(Vec::new());
        let looking = |asked: &[(usize, &Sequence, &[Edit])]| {
            let mut of_a_round: Vec<Sequence> =
                asked.iter().map(|(_, t, _)| (*t).clone()).collect();
            let all = of_a_round.len();
            of_a_round.dedup();
            texts.borrow_mut().push((all, of_a_round.len()));
            let edit = |place, done: &[Edit]| {
                let used = done.iter().any(|edit| edit.position() == place);
                (!used).then(|| (1.0, Edit::replace(place, 0, 7)))
            };
            Ok(asked
                .iter()
                .map(|(_, _, done)| Look {
                    logits: vec![1.0, 0.0],
                    edits: (0..2).filter_map(|place| edit(place, done)).collect(),
                })
                .collect())
        };
        let input = Sequence::Tokens(vec![0, 0]);
        let goal = |item: &Item<'_>| Goal::untargeted(item.label);
        let beam = Beam { width: 4 };
        beam.search(&[item(&input)], goal, |_| 2, looking).unwrap();
        assert_eq!(*texts.borrow(), [(1, 1), (2, 2), (1, 1)]);
    }
}
