//! `ablate kinds`: the stage kinds, and the parameters of one.

use clap::Args;
use serde_json::json;
use stages::{Inputs, Param, Presence, Stage};

use super::exit::Exit;
use super::global::Global;
use super::print::out;
use crate::diagnostic::{Diagnostic, nearest};

/// What `kinds` takes.
#[derive(Args)]
pub struct Arguments {
    /// A kind, to see its parameters
    kind: Option<String>,
    /// Print the reference of all kinds as Markdown
    #[arg(long, conflicts_with = "kind")]
    markdown: bool,
}

/// Prints the kinds, or one of them in full.
pub fn kinds(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let all = || stages::STAGES.iter().map(|kind| kind.describe());
    if arguments.markdown {
        out!("{}", super::kinds_markdown::markdown().trim_end());
        return Ok(());
    }
    match &arguments.kind {
        None => {
            for kind in all() {
                match global.json {
                    true => out!("{}", json!({ "kind": kind.kind, "summary": kind.summary })),
                    false => out!("{:<20} {}", kind.kind, kind.summary),
                }
            }
        }
        Some(name) => match stages::find(name) {
            Some(kind) if global.json => out!("{}", as_json(kind)),
            Some(kind) => out!("{}", in_full(kind)),
            None => {
                return Err(Diagnostic::new(format!("no stage kind `{name}`"))
                    .maybe_help(nearest(name, all().map(|kind| kind.kind)))
                    .into());
            }
        },
    }
    Ok(())
}

/// One kind for programs.
fn as_json(kind: &dyn Stage) -> serde_json::Value {
    let description = kind.describe();
    let choice = |choice: &stages::Choice| {
        json!({
            "param": choice.selector, "name": choice.name,
            "summary": choice.summary, "params": json_of(choice.params),
        })
    };
    let choices: Vec<_> = kind.choices().iter().map(choice).collect();
    json!({
        "kind": description.kind, "summary": description.summary,
        "seeded": description.seeded, "params": json_of(&stages::common(kind)),
        "choices": choices,
    })
}

/// Parameters for programs.
pub fn json_of(params: &[Param]) -> Vec<serde_json::Value> {
    let one = |param: &Param| {
        json!({
            "name": param.name, "type": param.ty.name(), "help": param.help,
            "required": matches!(param.presence, Presence::Required),
            "default": param.presence.default(),
        })
    };
    params.iter().map(one).collect()
}

fn in_full(kind: &dyn Stage) -> String {
    let description = kind.describe();
    let mut text = format!("{}: {}\n", description.kind, description.summary);
    text.push_str(&parameters(&stages::common(kind)));
    for choice in kind.choices() {
        let (selector, name, summary) = (choice.selector, choice.name, choice.summary);
        text.push_str(&format!("\n\n{selector} = \"{name}\": {summary}"));
        text.push_str(&parameters(choice.params));
    }
    let ports = kind.ports(&store::Params::new());
    let inputs = match ports.inputs {
        Inputs::Any(_) => "any, named as you like".to_owned(),
        Inputs::Named(named) if named.is_empty() => "none".to_owned(),
        Inputs::Named(named) => {
            let each = named
                .iter()
                .map(|port| format!("{} ({})", port.name, port.holds));
            each.collect::<Vec<_>>().join(", ")
        }
    };
    text.push_str(&format!("\n\n  inputs: {inputs}"));
    let outputs: Vec<_> = ports
        .outputs
        .iter()
        .map(|port| port.name.as_str())
        .collect();
    if !outputs.is_empty() {
        text.push_str(&format!("\n  outputs: {}", outputs.join(", ")));
    }
    text
}

/// Parameters, two lines each.
pub fn parameters(params: &[Param]) -> String {
    let one = |param: &Param| {
        let presence = match (param.presence.default(), param.presence) {
            (Some(value), _) => format!("default {value}"),
            (None, Presence::Required) => "required".to_owned(),
            (None, _) => "optional".to_owned(),
        };
        let (name, ty, help) = (param.name, param.holds(), param.help);
        format!("\n  {name} ({ty}, {presence})\n      {help}")
    };
    params.iter().map(one).collect()
}
