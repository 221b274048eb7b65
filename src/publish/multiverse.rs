//! The multiverse of a reproduction: what a paper leaves open is decided one way in the file, and another way in each
//! of its `[choices]`. A verdict that turns with such a choice is worth little. Knows nothing of running.

use serde::Serialize;

use crate::config::{Dotted, Pipeline};

/// One way to decide what the paper leaves open.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct World {
    /// The choices that differ from what is written; none for the file as it is.
    pub choices: Vec<String>,
}

impl World {
    /// The file as it is.
    pub fn written() -> World {
        World {
            choices: Vec::new(),
        }
    }

    /// As people call it.
    pub fn name(&self) -> String {
        match self.choices.is_empty() {
            true => "as written".to_owned(),
            false => self.choices.join(" + "),
        }
    }

    /// The settings that take its choices.
    pub fn settings(&self) -> impl Iterator<Item = String> + '_ {
        let each = self.choices.iter();
        each.map(|name| format!("choices.{name}=true"))
    }
}

/// The file as it is, each choice alone and, if wanted, two at a time.
pub fn worlds(pipeline: &Pipeline, pairs: bool) -> Vec<World> {
    let choices = &pipeline.choices;
    let names: Vec<&String> = choices.iter().map(|choice| &choice.name).collect();
    // Two alternatives of one decision cannot be taken together.
    let clash = |a: usize, b: usize| {
        let key = |dotted: &Dotted| (dotted.stage.clone(), dotted.entry.key.clone());
        let taken: Vec<_> = choices[a].changes.iter().map(key).collect();
        choices[b]
            .changes
            .iter()
            .any(|other| taken.contains(&key(other)))
    };
    let mut worlds = vec![World::written()];
    worlds.extend(names.iter().map(|name| World {
        choices: vec![(*name).clone()],
    }));
    if pairs {
        for (n, first) in names.iter().enumerate() {
            let others = (n + 1..names.len()).filter(|other| !clash(n, *other));
            worlds.extend(others.map(|other| World {
                choices: vec![(*first).clone(), names[other].clone()],
            }));
        }
    }
    worlds
}

/// What a claim says in one world.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimInWorld {
    /// The claim.
    pub claim: String,
    /// The verdict, or before it is graded whether it holds.
    pub verdict: String,
    /// Whether it was run there.
    pub run: bool,
    /// The numbers behind it, each with the ends of its 95% interval.
    pub numbers: Vec<(String, Option<f64>, Option<[f64; 2]>)>,
}

/// A claim in all worlds.
#[derive(Debug, Serialize)]
pub struct ClaimAcross {
    /// The claim.
    pub claim: String,
    /// The names of the worlds.
    pub names: Vec<String>,
    /// What it says in each world, in the order of the worlds.
    pub worlds: Vec<ClaimInWorld>,
    /// The worlds in which the verdict is another one than as written.
    pub turns_with: Vec<String>,
    /// In how many of the worlds that were run the verdict is as written, that one included.
    pub same: usize,
    /// How many worlds were run.
    pub run: usize,
}

/// Puts what the worlds say of each claim side by side. The first world is the file as it is.
pub fn across(worlds: &[World], said: &[Vec<ClaimInWorld>]) -> Vec<ClaimAcross> {
    let Some(written) = said.first() else {
        return Vec::new();
    };
    let each = written.iter().enumerate().map(|(n, own)| {
        let of: Vec<ClaimInWorld> = said.iter().map(|world| world[n].clone()).collect();
        let run = of.iter().filter(|claim| claim.run).count();
        let same = |claim: &&ClaimInWorld| claim.run && claim.verdict == own.verdict;
        let other = of
            .iter()
            .zip(worlds)
            .filter(|(claim, _)| own.run && claim.run && claim.verdict != own.verdict);
        ClaimAcross {
            claim: own.claim.clone(),
            names: worlds.iter().map(World::name).collect(),
            turns_with: other.map(|(_, world)| world.name()).collect(),
            same: of.iter().filter(same).count(),
            run,
            worlds: of,
        }
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(verdict: &str) -> Vec<ClaimInWorld> {
        vec![ClaimInWorld {
            claim: "c".to_owned(),
            verdict: verdict.to_owned(),
            run: verdict != "not run",
            numbers: Vec::new(),
        }]
    }

    #[test]
    fn a_claim_turns_with_the_choices_that_change_its_verdict() {
        let world = |names: &[&str]| World {
            choices: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let worlds = [world(&[]), world(&["a"]), world(&["b"]), world(&["a", "b"])];
        let all = ["reproduced", "uncertain", "not run", "reproduced"].map(said);
        let found = across(&worlds, &all);
        assert_eq!(found[0].turns_with, ["a"]);
        assert_eq!((found[0].same, found[0].run), (2, 3));
        assert_eq!(worlds[3].name(), "a + b");
        let settings: Vec<String> = worlds[3].settings().collect();
        assert_eq!(settings, ["choices.a=true", "choices.b=true"]);
    }
}
