//! The specification curve of each claim: its first number in every world that has been run, sorted, with its interval.

use serde::Serialize;

use super::curve::{CurvePoint, curve};
use crate::publish::multiverse::{ClaimAcross, ClaimInWorld, World};

/// A claim across worlds as the page shows it.
#[derive(Serialize)]
pub struct WorldsView {
    claim: String,
    /// How stable it is.
    about: String,
    /// What the picture shows.
    number: String,
    svg: String,
    /// Each world with its verdict.
    rows: Vec<[String; 2]>,
}

/// Claims that have been judged in more than one world.
pub fn view(claims: &[ClaimAcross]) -> Vec<WorldsView> {
    let judged = claims.iter().filter(|claim| claim.run > 1);
    judged.map(one).collect()
}

fn one(claim: &ClaimAcross) -> WorldsView {
    let worlds = claim.names.iter().zip(&claim.worlds);
    let run = worlds.filter(|(_, said)| said.run);
    let points: Vec<CurvePoint> = run
        .clone()
        .filter_map(|(name, said)| point(name, said))
        .collect();
    let number = claim.worlds.iter().find_map(|said| said.numbers.first());
    WorldsView {
        claim: claim.claim.clone(),
        about: match claim.turns_with.is_empty() {
            true => format!("stable in {} of {} worlds", claim.same, claim.run),
            false => format!("turns with {}", claim.turns_with.join(", ")),
        },
        number: number.map_or(String::new(), |(name, ..)| name.clone()),
        svg: curve(&points),
        rows: run
            .map(|(name, said)| [name.clone(), said.verdict.clone()])
            .collect(),
    }
}

/// The claim's first number in a world.
fn point(name: &str, said: &ClaimInWorld) -> Option<CurvePoint> {
    let (_, value, ends) = said.numbers.first()?;
    Some(CurvePoint {
        choices: match name == World::written().name() {
            true => Vec::new(),
            false => name.split(" + ").map(str::to_owned).collect(),
        },
        value: (*value)?,
        ends: *ends,
        verdict: said.verdict.clone(),
    })
}
