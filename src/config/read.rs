//! From the pipeline file to a checked pipeline.

use std::path::{Path, PathBuf};

use store::Value;

use super::axes::{check_axes, set_replicates, untaken_points, unused_axes};
use super::choices::{change_points, check_choices, chosen, set_twice};
use super::entries::{as_table, decoded, unknown_key, wrong_type};
use super::overlay::Overlaid;
use super::pipeline::{Data, Pipeline, PipelineRequest, UNNAMED};
use super::renamed::Outdated;
use super::tree::{Raw, Table};
use super::{executor, like, overlay, references, resources, stage, tree};
use crate::diagnostic::{Diagnostic, Problems, Sources, Span};

/// Reads and checks a pipeline file with its overlays.
pub fn read(request: &PipelineRequest) -> Result<Pipeline, Problems> {
    let shown = request.file.display().to_string();
    let bytes = std::fs::read(&request.file).map_err(|error| {
        Problems::plain(
            Diagnostic::new(format!("cannot read {shown}: {error}"))
                .help("name the pipeline file with `-f FILE`, or its folder with `-C DIR`"),
        )
    })?;
    let text = decoded(bytes, &shown).map_err(Problems::plain)?;
    let mut sources = Sources::default();
    let file = sources.add(shown, text);
    let parent = request.file.parent().unwrap_or(Path::new(""));
    let dir = match parent.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => parent.to_owned(),
    };
    let mut profiles = Vec::new();
    let checked = tree::parse(&sources, file)
        .and_then(|root| {
            profiles = overlay::profiles(&root);
            overlay::apply(root, request, &mut sources)
        })
        .and_then(|(root, overlaid)| check(root, &overlaid, dir));
    match checked {
        Ok(pipeline) => Ok(Pipeline {
            profiles,
            sources,
            ..pipeline
        }),
        Err(list) => Err(Problems { sources, list }),
    }
}

/// From the tree to the checked form. Collects every error that it can reach.
fn check(mut root: Table, overlaid: &Overlaid, dir: PathBuf) -> Result<Pipeline, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let mut section = |key: &str| -> Table {
        match root.take(key) {
            None => Table::default(),
            Some(entry) => as_table(entry, &mut problems),
        }
    };
    let pipeline = section("pipeline");
    let data = section("data");
    let executors = section("executor");
    let resources = section("resources");
    let mut axes = section("axes");
    let choices = section("choices");
    let mut stages = section("stage");
    section("profile");
    for entry in &root.entries {
        let known = [
            "pipeline",
            "data",
            "executor",
            "resources",
            "axes",
            "choices",
            "stage",
            "profile",
        ];
        problems.push(unknown_key(entry, "at the top of the file", known));
    }
    let header = header(pipeline, &mut problems);
    let data = check_data(data, &dir, &mut problems);
    let executors = executor::read(executors, &mut problems);
    let resources = resources::per_kind(resources, &mut problems);
    like::copy_keys(&mut stages, &mut problems);
    let choices = check_choices(choices, (&axes, &overlaid.left_out), &stages, &mut problems);
    let chosen = chosen(&overlaid.choices, &choices).unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    });
    set_twice(&overlaid.settings, &chosen, &mut problems);
    let chosen = change_points(chosen, &mut axes, &mut problems);
    let mut axes = check_axes(axes, &overlaid.left_out, &stages, &mut problems);
    if let Some(replicates) = &header.replicates {
        set_replicates(&mut axes, replicates, &mut problems);
    }
    // What a stage copies from one that does not exist would be missed again below.
    if !problems.is_empty() {
        return Err(problems);
    }

    if stages.entries.is_empty() && problems.is_empty() {
        problems.push(
            Diagnostic::new("the pipeline has no stages")
                .help("add one: [stage.NAME] with kind = \"table\", \"sql\" or \"command\""),
        );
    }
    let mut decls = Vec::with_capacity(stages.entries.len());
    let mut outdated = Outdated::default();
    for entry in stages.entries.iter().cloned() {
        let own = matches!(&entry.node.raw, Raw::Table(table) if table.get("resources").is_some());
        match stage::check(entry, &axes, &stages, &chosen, &mut outdated) {
            Ok(mut decl) => {
                let default = resources.get(decl.kind.describe().kind);
                if let Some(default) = default.filter(|_| !own) {
                    decl.resources = *default;
                }
                decls.push(decl);
            }
            Err(mut found) => problems.append(&mut found),
        }
    }
    problems.append(&mut outdated.problems);
    // A reference to a stage that is itself wrong would be reported twice: stop before.
    if problems.is_empty() {
        references::resolve(&mut decls, &axes, &mut problems);
        untaken_points(&axes, &decls, &mut problems);
        unused_axes(&axes, &decls, &mut problems);
    }
    if problems.is_empty() {
        Ok(Pipeline {
            name: header.name,
            seed: header.seed,
            claims: header.claims,
            profiles: Vec::new(),
            data,
            executors,
            dir,
            names: references::positions(&decls),
            axes,
            choices,
            stages: decls,
            warnings: outdated.warnings,
            sources: Sources::default(),
        })
    } else {
        Err(problems)
    }
}

/// The settings of `[pipeline]`.
struct Header {
    name: String,
    seed: u64,
    claims: Option<(String, Span)>,
    replicates: Option<(String, Span)>,
}

fn header(table: Table, problems: &mut Vec<Diagnostic>) -> Header {
    let (mut name, mut seed) = (UNNAMED.to_owned(), 0);
    let (mut claims, mut replicates) = (None, None);
    for entry in table.entries {
        match (entry.key.as_str(), &entry.node.raw) {
            ("name", Raw::Scalar(Value::Text(text))) => name.clone_from(text),
            ("name", _) => problems.push(wrong_type(&entry, "a string")),
            ("seed", Raw::Scalar(Value::Int(int))) if *int >= 0 => seed = int.unsigned_abs(),
            ("seed", _) => problems.push(wrong_type(&entry, "a non-negative integer")),
            ("claims", Raw::Scalar(Value::Text(file))) => {
                claims = Some((file.clone(), entry.node.span));
            }
            ("replicates", Raw::Scalar(Value::Text(axis))) => {
                replicates = Some((axis.clone(), entry.node.span));
            }
            ("claims" | "replicates", _) => problems.push(wrong_type(&entry, "a string")),
            _ => {
                let known = ["name", "seed", "claims", "replicates"];
                problems.push(unknown_key(&entry, "in [pipeline]", known));
            }
        }
    }
    Header {
        name,
        seed,
        claims,
        replicates,
    }
}

fn check_data(table: Table, dir: &Path, problems: &mut Vec<Diagnostic>) -> Data {
    let mut data = Data::default();
    for entry in table.entries {
        match (entry.key.as_str(), &entry.node.raw) {
            ("mirror", Raw::Scalar(Value::Text(text))) => data.mirror = Some(dir.join(text)),
            ("mirror", _) => problems.push(wrong_type(&entry, "a string")),
            ("offline", Raw::Scalar(Value::Bool(offline))) => data.offline = *offline,
            ("offline", _) => problems.push(wrong_type(&entry, "true or false")),
            _ => problems.push(unknown_key(&entry, "in [data]", ["mirror", "offline"])),
        }
    }
    data
}
