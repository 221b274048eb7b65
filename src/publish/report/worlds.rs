//! The specification curve of each claim: its first number in every world that has been run, sorted, with its interval.

use serde::Serialize;

use super::ablations::{Row, intervals};
use crate::publish::multiverse::{ClaimAcross, ClaimInWorld};

/// A claim across worlds as the page shows it.
#[derive(Serialize)]
pub struct WorldsView {
    claim: String,
    /// How stable it is.
    about: String,
    /// What the picture shows.
    number: String,
    svg: String,
    /// Each world with its verdict, in the order of the picture.
    rows: Vec<[String; 2]>,
}

/// Claims that have been judged in more than one world.
pub fn view(claims: &[ClaimAcross]) -> Vec<WorldsView> {
    let judged = claims.iter().filter(|claim| claim.run > 1);
    judged.map(one).collect()
}

fn one(claim: &ClaimAcross) -> WorldsView {
    let mut worlds: Vec<(&String, &ClaimInWorld)> = claim
        .names
        .iter()
        .zip(&claim.worlds)
        .filter(|(_, said)| said.run)
        .collect();
    let first = |said: &ClaimInWorld| {
        let number = said.numbers.first()?;
        Some((number.1?, number.2))
    };
    let size = |said: &ClaimInWorld| first(said).map_or(f64::NAN, |(value, _)| value);
    worlds.sort_by(|a, b| size(a.1).total_cmp(&size(b.1)));
    let rows = worlds.iter().filter_map(|(name, said)| {
        let (value, ends) = first(said)?;
        Some(Row {
            name: (*name).clone(),
            value,
            ends,
        })
    });
    let number = claim.worlds.iter().find_map(|said| said.numbers.first());
    WorldsView {
        claim: claim.claim.clone(),
        about: match claim.turns_with.is_empty() {
            true => format!("stable in {} of {} worlds", claim.same, claim.run),
            false => format!("turns with {}", claim.turns_with.join(", ")),
        },
        number: number.map_or(String::new(), |(name, ..)| name.clone()),
        svg: intervals(&rows.collect::<Vec<_>>(), None),
        rows: worlds
            .iter()
            .map(|(name, said)| [(*name).clone(), said.verdict.clone()])
            .collect(),
    }
}
