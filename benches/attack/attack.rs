//! Our side of the attacks: the kind `attack` as the engine calls it.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use serde_json::{Value as Json, json};
use stages::DataHome;
use store::Value;

use crate::data::{DRAWN, table};
use crate::kinds::{run, text, timed};

/// What one attack on the drawn reviews takes, from tables to tables.
pub fn attack(dir: &Path, name: &str) -> Result<Json, String> {
    let ports = ["victim", "rows", "vectors", "vocab", "bayes"];
    let tables = ports.map(|port| table(dir, port));
    let mut inputs = Vec::new();
    for (port, table) in ports.iter().zip(&tables) {
        inputs.push((*port, table.as_ref().map_err(Clone::clone)?));
    }
    let mut params = vec![("attack", text(name)), ("items", Value::Int(DRAWN))];
    match name {
        "swap" => params.push(("n", Value::Int(3))),
        "jsma" => params.push(("max_words", Value::Int(35))),
        _ => {}
    }
    timed(|| {
        let home = DataHome::nowhere();
        let made = run("attack", &inputs, &params, BTreeMap::new(), &home)?;
        let (examples, summary) = (&made["examples"], &made["summary"]);
        let sum = |column: &str| summary[column].as_primitive::<Int64Type>().value(0);
        let words = examples["words_changed"]
            .as_primitive::<Int64Type>()
            .values();
        Ok(json!({
            "items": examples.num_rows(), "attacked": sum("attacked"), "successes": sum("successes"),
            "forward": sum("forward"), "backward": sum("backward"), "words": words.to_vec(),
        }))
    })
}
