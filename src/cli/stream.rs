//! `ablate attack-stream STAGE`: samples in on standard input, perturbed samples out, one line each,
//! by the attack and the model of a stage. Nothing is stored, and nothing grows.

use std::io::{BufRead, Write};

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use stages::attack::{Live, Run};

use super::{Exit, Global, in_pipeline, unprinted};
use crate::diagnostic::Diagnostic;
use crate::plan::{self, Feed};
use crate::results;
use crate::survey::{Standing, survey};

#[derive(Args)]
pub struct Arguments {
    /// An attack stage, or one instance of it: its model must have been trained
    stage: String,
    /// The class that the sequence has and shall leave; not needed with `target` in the stage
    #[arg(long, value_name = "CLASS")]
    label: Option<u32>,
    /// Also print what the classifier would say after each sample
    #[arg(long)]
    probabilities: bool,
}

/// How samples come, and so how they leave.
#[derive(Clone, Copy)]
enum Form {
    /// `[0.1, 0.2]`, or a number alone.
    Json,
    /// `0.1,0.2`
    Csv,
}

/// Reads samples until there are no more. An empty line ends a sequence and begins another.
pub fn stream(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let live = open(global, &arguments.stage)?;
    let wrong = |failure: stages::Failure| {
        Exit::from(Diagnostic::new(failure.message).maybe_help(failure.help))
    };
    let begin = || live.start(arguments.label).map_err(wrong);
    let mut run = begin()?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (n, line) in std::io::stdin().lock().lines().enumerate() {
        let line =
            line.map_err(|error| Diagnostic::new(format!("cannot read standard input: {error}")))?;
        if line.trim().is_empty() {
            run = begin()?;
            writeln!(out).map_err(unprinted)?;
        } else {
            let at = |what: String| Diagnostic::new(format!("line {}: {what}", n + 1));
            let (sample, form) = parse(&line).map_err(at)?;
            if sample.len() != run.width() {
                let (found, width) = (sample.len(), run.width());
                let what = format!("{found} numbers, but the model reads {width} in a sample");
                return Err(at(what).into());
            }
            let moved = run.push(&sample).map_err(|e| at(e.message))?;
            write(&mut out, &mut run, &moved, form, arguments)?;
        }
        // Whoever waits for the answer to a sample gets it before the next one.
        out.flush().map_err(unprinted)?;
    }
    Ok(())
}

/// The model and the parameters of an attack stage.
fn open(global: &Global, stage: &str) -> Result<Live, Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let [asked] = results::find(&plan, stage)?[..] else {
        let label = &plan.instances[results::find(&plan, stage)?[0].instance].label;
        return Err(Diagnostic::new(format!("`{stage}` has several instances"))
            .help(format!("name one: ablate attack-stream '{label}'"))
            .into());
    };
    let instance = &plan.instances[asked.instance];
    let weights = instance.wires.iter().find(|wire| wire.port == "weights");
    let weights = match weights.map(|wire| &wire.from) {
        Some(Feed::One(source)) if plan.decl(asked.instance).kind.describe().kind == "attack" => {
            *source
        }
        Some(Feed::Pick(_)) => {
            return Err(Diagnostic::new(format!("`{stage}` selects its model"))
                .help("name a stage that reads one model")
                .into());
        }
        _ => {
            let message = format!("`{stage}` is no attack stage");
            return Err(Diagnostic::new(message)
                .help("name one with attack = \"gradient-sign\", \"fixed-point\" or \"dynamic\"")
                .into());
        }
    };
    let label = &plan.instances[weights.instance].label;
    let targets = [label.clone()];
    let wanted = in_pipeline(&pipeline, plan::wanted(&plan, &targets))?;
    let store = global.needed_store()?;
    let standings = survey(&plan, &wanted, Some(&store));
    let Standing::Cached { outputs, .. } = &standings[weights.instance] else {
        return Err(Diagnostic::new(format!("`{label}` is not made yet"))
            .help(format!("ablate run '{label}'"))
            .into());
    };
    let table = store.read(&outputs[weights.output])?;
    let live = Live::open(&table, instance.params.as_ref().clone());
    live.map_err(|failure| {
        Diagnostic::new(failure.message)
            .maybe_help(failure.help)
            .into()
    })
}

fn parse(line: &str) -> Result<(Vec<f32>, Form), String> {
    let bad = || format!("`{}` is no sample: [0.1, 0.2] or 0.1,0.2", line.trim());
    let number = |value: &Value| value.as_f64().map(|x| x as f32);
    match serde_json::from_str(line) {
        Ok(Value::Array(list)) => {
            let sample = list.iter().map(number).collect::<Option<_>>();
            Ok((sample.ok_or_else(bad)?, Form::Json))
        }
        Ok(value @ Value::Number(_)) => Ok((vec![number(&value).ok_or_else(bad)?], Form::Csv)),
        _ => {
            let numbers = line.split(',').map(|part| part.trim().parse().ok());
            let sample = numbers.collect::<Option<Vec<f32>>>();
            Ok((sample.ok_or_else(bad)?, Form::Csv))
        }
    }
}

/// A sample and what the classifier says after it.
#[derive(Serialize)]
struct Answer<'a> {
    x: &'a [f32],
    p: &'a [f32],
}

fn write(
    out: &mut impl Write,
    run: &mut Run<'_>,
    moved: &[f32],
    form: Form,
    arguments: &Arguments,
) -> Result<(), Exit> {
    let mut numbers: Vec<f32> = moved.to_vec();
    let mut said = Vec::new();
    if arguments.probabilities {
        said = run
            .probabilities()
            .map_err(|e| Exit::from(Diagnostic::new(e.message)))?;
    }
    let json = |text: serde_json::Result<String>| text.expect("numbers are plain");
    match form {
        Form::Json if arguments.probabilities => {
            let answer = Answer { x: moved, p: &said };
            writeln!(out, "{}", json(serde_json::to_string(&answer)))
        }
        Form::Json => writeln!(out, "{}", json(serde_json::to_string(moved))),
        Form::Csv => {
            numbers.extend(said);
            let texts: Vec<String> = numbers.iter().map(f32::to_string).collect();
            writeln!(out, "{}", texts.join(","))
        }
    }
    .map_err(unprinted)
}
