//! `schema-check SCHEMA FILE…`: holds TOML files to a JSON Schema, and prints what does not fit, a line each.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let schema = arguments.next().expect("a schema");
    let schema = std::fs::read_to_string(schema).expect("a readable schema");
    let schema = serde_json::from_str(&schema).expect("a schema in JSON");
    let validator = jsonschema::draft7::new(&schema).expect("a valid schema");
    let mut good = true;
    for file in arguments {
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let value: toml::Value = toml::from_str(&text).expect("a file in TOML");
        let value = serde_json::to_value(value).expect("TOML fits JSON");
        for error in validator.iter_errors(&value) {
            println!("{file}: {}: {error}", error.instance_path());
            good = false;
        }
    }
    match good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
