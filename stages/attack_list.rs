//! The attacks as people choose among them: what each needs, its budget and its paper, from the entries.

use store::{Params, Value};

use crate::contract::description::Param;
use crate::kinds::attack::AttackStage;
use crate::kinds::attack::attacks::ATTACKS;
use crate::kinds::attack::entry::Attack;
use crate::params::complete::complete;
use crate::params::settings::Settings;

/// One attack.
pub struct AttackSummary {
    /// The name after `attack =`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// More of it.
    pub details: &'static str,
    /// What it changes.
    pub changes: &'static str,
    /// The models that it can attack.
    pub models: &'static str,
    /// The inputs that it needs beside victim and rows, with default parameters.
    pub needs: Vec<&'static str>,
    /// What it may do to a row, with default parameters.
    pub budget: String,
    /// The paper that it is from, if it is from one.
    pub paper: Option<&'static str>,
    /// Its own parameters.
    pub params: &'static [Param],
}

/// All attacks, in the order of their list.
pub fn attacks() -> Vec<AttackSummary> {
    ATTACKS.iter().map(|attack| summary(*attack)).collect()
}

fn summary(attack: &dyn Attack) -> AttackSummary {
    let entry = attack.entry();
    let params = defaults(entry.name);
    let settings = Settings(&params);
    AttackSummary {
        name: entry.name,
        summary: entry.summary,
        details: entry.details,
        changes: entry.changes.name(),
        models: entry.victims.name(),
        needs: entry.needed(settings),
        budget: (entry.budget)(settings).to_string(),
        paper: Some(entry.paper).filter(|paper| !paper.is_empty()),
        params: entry.params,
    }
}

/// Its parameters as they are if none is written.
fn defaults(name: &str) -> Params {
    let mut params = Params::new();
    params.insert("attack".to_owned(), Value::Text(name.to_owned()));
    // A program has no default.
    let program = Value::List(vec![Value::Text("program".to_owned())]);
    let with = [("run".to_owned(), program)];
    let also: Params = params.clone().into_iter().chain(with).collect();
    complete(&AttackStage, &params)
        .or_else(|_| complete(&AttackStage, &also))
        .unwrap_or(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attack_has_its_defaults() {
        for attack in attacks() {
            let with_default = |param: &&Param| param.presence.default().is_some();
            let first = attack.params.iter().find(with_default);
            let params = defaults(attack.name);
            if let Some(first) = first.filter(|param| param.when.is_none()) {
                assert!(params.contains_key(first.name), "{}", attack.name);
            }
        }
        let find = |name: &str| attacks().into_iter().find(|a| a.name == name).unwrap();
        assert_eq!(find("jsma").budget, "at most 35 words");
        assert_eq!(find("textfooler").needs, ["vocab", "synonyms", "vectors"]);
        assert_eq!(find("none").paper, None);
    }
}
