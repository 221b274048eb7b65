//! Changes the parameters of a stage one by one, and looks whether each has an effect or is refused by name.

use std::collections::{BTreeMap, BTreeSet};

use arrow::record_batch::RecordBatch;
use store::Params;

use super::values::{Other, Settings, elsewhere, others};
use crate::contract::expected::ExpectedInputs;
use crate::tests::trial;
use crate::{DataHome, Stage, Task};

type Made = BTreeMap<String, Vec<u8>>;

/// A stage that runs, whose parameters are changed one by one.
pub struct Ground {
    pub name: String,
    pub stage: &'static dyn Stage,
    pub base: Settings,
    pub inputs: Vec<(&'static str, RecordBatch)>,
    /// Which of its parameters are changed here.
    pub walks: fn(&str) -> bool,
}

/// What a stage makes of settings; or what it says of them.
fn made(ground: &Ground, settings: &[&Settings]) -> Result<Made, String> {
    let mut params = Params::new();
    for (name, value) in settings.iter().copied().flatten() {
        params.insert((*name).to_owned(), value.clone());
    }
    let told = |param: Option<&str>, message: String, help: Option<String>| {
        let param = param.map_or(String::new(), |param| format!(" [{param}]"));
        format!("{message}{param} ({})", help.unwrap_or_default())
    };
    let refused = |e: crate::ParamError| told(Some(e.param), e.message, e.help);
    let params = crate::complete(ground.stage, &params).map_err(refused)?;
    let ports = ground
        .inputs
        .iter()
        .map(|(port, _)| (*port, Default::default()));
    let expected = ground
        .stage
        .expect(&params, &ExpectedInputs(ports.collect()));
    let expected = expected.map_err(|e| told(None, format!("{} {:?}", e.message, e.at), e.help))?;
    let inputs = ground.inputs.iter();
    let task = Task {
        inputs: inputs
            .map(|(port, table)| ((*port).to_owned(), table.clone()))
            .collect(),
        params: &params,
        seed: 3,
        files: Default::default(),
        data: &DataHome::nowhere(),
        place: &crate::Place::default(),
        watch: &trial::Nobody,
    };
    let outputs = ground.stage.run(&task);
    let outputs = outputs.map_err(|e| told(e.param, e.message, e.help))?;
    for (port, expected) in ground.stage.ports(&params).outputs.iter().zip(expected) {
        if let (Some(columns), Some(table)) = (expected.columns, outputs.get(&port.name)) {
            let schema = table.schema();
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            assert_eq!(names, columns, "{}, output {}", ground.name, port.name);
        }
    }
    let bytes = outputs
        .into_iter()
        .map(|(name, table)| (name, store::encode(&table).unwrap()));
    Ok(bytes.collect())
}

/// Changes every parameter of a ground; what is wrong, and the parameters that have an effect.
pub fn walk(ground: &Ground, choice: &str) -> (Vec<String>, BTreeSet<&'static str>) {
    let description = ground.stage.describe();
    let (mut wrong, mut effective) = (Vec::new(), BTreeSet::new());
    let plain = made(ground, &[&ground.base]);
    let plain = plain.unwrap_or_else(|why| panic!("{}: {why}", ground.name));
    for param in description.params.iter().map(|param| param.name) {
        if !(ground.walks)(param) || elsewhere(description.kind, param) {
            continue;
        }
        let others = others(description.kind, choice, param);
        if others.is_empty() {
            wrong.push(format!(
                "{}: give `{param}` another value in others()",
                ground.name
            ));
        }
        let mut idle = Vec::new();
        for Other { value, with, also } in others {
            let before = match with.is_empty() {
                true => Ok(plain.clone()),
                false => made(ground, &[&ground.base, &with]),
            };
            // What it is tried with is not for this choice.
            let Ok(before) = before else { continue };
            let changed = vec![(param, value.clone())];
            match made(ground, &[&ground.base, &with, &changed, &also]) {
                Ok(after) if after != before => drop(effective.insert(param)),
                Ok(_) => idle.push(format!(
                    "{}: `{param}` = {value} is accepted and has no effect",
                    ground.name
                )),
                Err(why) if why.contains(param) => {}
                Err(why) => wrong.push(format!(
                    "{}: `{param}` = {value} is refused without its name: {why}",
                    ground.name
                )),
            }
        }
        // Two epochs may be the best by chance: one try in which they differ is enough.
        let by_chance = ["best", "keep"].contains(&param) && effective.contains(param);
        wrong.extend(idle.into_iter().filter(|_| !by_chance));
    }
    (wrong, effective)
}

/// Walks grounds of one kind: nothing is wrong, and every parameter has an effect in one of them.
pub fn walk_all(grounds: Vec<(&str, Ground)>) {
    let (mut wrong, mut effective) = (Vec::new(), BTreeSet::new());
    let description = grounds[0].1.stage.describe();
    for (choice, ground) in &grounds {
        let (found, with) = walk(ground, choice);
        wrong.extend(found);
        effective.extend(with);
    }
    let excused = |param: &str| {
        let refused = [
            ("dataset", "encoding"),
            ("adversarial-retrain", "probes"),
            ("adversarial-retrain", "warmup"),
        ];
        elsewhere(description.kind, param) || refused.contains(&(description.kind, param))
    };
    for param in description.params.iter().map(|param| param.name) {
        if !effective.contains(param) && !excused(param) {
            wrong.push(format!(
                "`{param}` of {} has no effect in any ground",
                description.kind
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

pub fn all(_: &str) -> bool {
    true
}
