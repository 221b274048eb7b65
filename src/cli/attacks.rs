//! `ablate attacks`: all attacks with what they need, their budget and their paper; or one in full.

use clap::Args;
use serde_json::json;
use stages::attack_list::{AttackSummary, attacks as all};

use super::exit::Exit;
use super::global::Global;
use super::kinds::{json_of, parameters};
use super::print::out;
use crate::diagnostic::{Diagnostic, nearest};

/// What `attacks` takes.
#[derive(Args)]
pub struct Arguments {
    /// An attack, to see its parameters
    attack: Option<String>,
}

/// Prints the attacks, or one of them in full.
pub fn attacks(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let all = all();
    let Some(name) = &arguments.attack else {
        for attack in &all {
            match global.json {
                true => out!("{}", as_json(attack)),
                false => out!("{}", in_short(attack)),
            }
        }
        return Ok(());
    };
    let Some(attack) = all.iter().find(|attack| attack.name == name) else {
        return Err(Diagnostic::new(format!("no attack `{name}`"))
            .maybe_help(nearest(name, all.iter().map(|attack| attack.name)))
            .help("`ablate attacks` lists them all")
            .into());
    };
    match global.json {
        true => out!("{}", as_json(attack)),
        false => out!("{}{}", in_full(attack), parameters(attack.params)),
    }
    Ok(())
}

fn in_short(attack: &AttackSummary) -> String {
    let paper = attack
        .paper
        .map(|paper| format!("\n{:16}paper: {paper}", ""));
    format!(
        "{:<15} {}\n{:16}changes: {}; models: {}; needs: {}; budget: {}{}",
        attack.name,
        attack.summary,
        "",
        attack.changes,
        attack.models,
        needs(attack),
        attack.budget,
        paper.unwrap_or_default()
    )
}

fn in_full(attack: &AttackSummary) -> String {
    let details = match attack.details {
        "" => String::new(),
        details => format!("\n  {details}"),
    };
    let paper = attack.paper.map(|paper| format!("\n  paper: {paper}"));
    format!(
        "{}: {}{details}\n  changes: {}\n  models: {}\n  needs: {}\n  budget: {}{}",
        attack.name,
        attack.summary,
        attack.changes,
        attack.models,
        needs(attack),
        attack.budget,
        paper.unwrap_or_default()
    )
}

fn needs(attack: &AttackSummary) -> String {
    match attack.needs.is_empty() {
        true => "nothing".to_owned(),
        false => attack.needs.join(", "),
    }
}

fn as_json(attack: &AttackSummary) -> serde_json::Value {
    json!({
        "name": attack.name, "summary": attack.summary, "details": attack.details,
        "changes": attack.changes, "models": attack.models, "needs": attack.needs,
        "budget": attack.budget, "paper": attack.paper, "params": json_of(attack.params),
    })
}
