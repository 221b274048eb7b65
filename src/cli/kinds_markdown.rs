//! The reference of the stage kinds in `docs/pipeline.md`, from the kinds' own descriptions.

use stages::{Inputs, Param, Presence, Stage};

/// All kinds as Markdown.
pub fn markdown() -> String {
    let each = stages::STAGES.iter().map(|kind| one(*kind));
    each.collect::<Vec<_>>().join("\n")
}

fn one(kind: &dyn Stage) -> String {
    let description = kind.describe();
    let name = description.kind;
    let mut text = format!("### `{name}`\n\n{}\n\n", description.summary);
    text.push_str(&table(&stages::common(kind)));
    for choice in kind.choices() {
        let (selector, name, summary) = (choice.selector, choice.name, choice.summary);
        text.push_str(&format!("\n`{selector} = \"{name}\"`: {summary}\n"));
        if !choice.params.is_empty() {
            text.push_str(&format!("\n{}", table(choice.params)));
        }
    }
    let ports = kind.ports(&store::Params::new());
    let names = |ports: &[stages::Port]| -> Vec<String> {
        ports
            .iter()
            .map(|port| format!("`{}`", port.name))
            .collect()
    };
    let inputs = match &ports.inputs {
        Inputs::Any(_) => "any number, with names of your choice".to_owned(),
        Inputs::Named(named) if named.is_empty() => "none".to_owned(),
        Inputs::Named(named) => names(named).join(", "),
    };
    let outputs = match ports.outputs.is_empty() {
        true => "as its parameters say".to_owned(),
        false => names(&ports.outputs).join(", "),
    };
    let seeded = match description.seeded {
        true => "is part of its key",
        false => "is ignored",
    };
    // Rust's names have no dash, and neither have the folders.
    let folder = name.replace('-', "_");
    text.push_str(&format!(
        "\nInputs: {inputs}. Outputs: {outputs}. The seed {seeded}. \
         More in [its README](../stages/kinds/{folder}/README.md).\n"
    ));
    text
}

/// Parameters as a table.
fn table(params: &[Param]) -> String {
    let mut text = "| parameter | type | default | meaning |\n|---|---|---|---|\n".to_owned();
    for param in params {
        let default = match (param.presence.default(), param.presence) {
            (Some(value), _) => format!("`{value}`"),
            (None, Presence::Required) => "required".to_owned(),
            (None, _) => "none".to_owned(),
        };
        let (param, ty, help) = (param.name, param.holds(), param.help.replace('|', "\\|"));
        text.push_str(&format!("| `{param}` | {ty} | {default} | {help} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    const MARKS: [&str; 2] = [
        "<!-- kinds: made by a test -->\n",
        "<!-- end of kinds -->\n",
    ];

    #[test]
    fn the_reference_in_docs_is_current() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/pipeline.md");
        let text = std::fs::read_to_string(file).unwrap();
        let (before, rest) = text.split_once(MARKS[0]).expect("the first mark");
        let (_, after) = rest.split_once(MARKS[1]).expect("the last mark");
        let fresh = [before, MARKS[0], &super::markdown(), MARKS[1], after].concat();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(file, &fresh).unwrap();
        }
        let current = std::fs::read_to_string(file).unwrap() == fresh;
        assert!(
            current,
            "docs/pipeline.md is old: UPDATE_DOCS=1 cargo test -p ablate reference"
        );
    }
}
