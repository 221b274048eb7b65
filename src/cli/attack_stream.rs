//! `ablate attack-stream STAGE`: samples in on standard input, perturbed samples out, one line each,
//! by the attack and the model of a stage. Nothing is stored, and nothing grows.

use std::io::{BufRead, Read, Write};

use clap::Args;
use serde::Serialize;
use stages::Role;
use stages::attack_stream::{self, AttackStream, StreamRun};

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::unprinted;
use super::run_selection;
use crate::diagnostic::Diagnostic;
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::plan::{self, Feed, Pointer};
use crate::results::find;

/// Bytes of a line, at most: a stream is not read into memory.
const LONGEST: u64 = 1 << 24;

/// What goes in and comes out, for `--help`.
pub const FORMAT: &str = "\
Standard input has one sample per line, with as many numbers as the model reads per step: 0.1,0.2 or [0.1, 0.2].
An empty line ends a sequence and begins another. Each sample is answered at once, in the form that it came in;
with --probabilities these follow its numbers, or it is {\"x\": [...], \"p\": [...]}.
With --json every answer is {\"sequence\": 0, \"step\": 0, \"x\": [...]}, and \"p\" with --probabilities.

  seq 0 99 | awk '{ print sin($1 / 10) }' | ablate attack-stream gradient --label 0";

#[derive(Args)]
pub struct Arguments {
    /// An attack stage, or one instance of it: its model must have been trained
    stage: String,
    /// The true class of the sequence; not needed with `target` in the stage
    #[arg(long, value_name = "CLASS")]
    label: Option<u32>,
    /// Also print the class probabilities after each sample
    #[arg(long)]
    probabilities: bool,
}

/// How samples come, and so how they leave.
#[derive(Clone, Copy)]
enum Form {
    /// `[0.1, 0.2]`
    Json,
    /// `0.1,0.2`
    Csv,
    /// They leave as objects, because `--json` asks for them.
    Object,
}

/// Where in the stream a sample is.
#[derive(Clone, Copy, Default)]
struct Place {
    sequence: u64,
    step: u64,
}

/// Reads samples until there are no more. An empty line ends a sequence and begins another.
pub fn stream(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let live = open(global, arguments)?;
    let wrong = |failure: stages::Failure| {
        Exit::from(Diagnostic::new(failure.message).maybe_help(failure.help))
    };
    let begin = || live.start(arguments.label).map_err(wrong);
    let mut run = begin()?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut place = Place::default();
    let mut lines = std::io::stdin().lock();
    for n in 1_u64.. {
        let mut line = Vec::new();
        let read = lines
            .by_ref()
            .take(LONGEST + 1)
            .read_until(b'\n', &mut line);
        read.map_err(|error| Diagnostic::new(format!("cannot read standard input: {error}")))?;
        let at = |what: String| Diagnostic::new(format!("line {n}: {what}"));
        if line.is_empty() {
            break;
        }
        if line.pop_if(|byte| *byte == b'\n').is_none() && line.len() as u64 > LONGEST {
            let what = format!("it is longer than {LONGEST} bytes");
            return Err(at(what).help("put each sample on its own line").into());
        }
        let line = std::str::from_utf8(&line).map_err(|error| {
            let (byte, place) = (line[error.valid_up_to()], error.valid_up_to() + 1);
            at(format!("byte {place} is {byte:#04x}, which is not UTF-8"))
                .help("samples are text: 0.1,0.2 or [0.1, 0.2]")
        })?;
        if line.trim().is_empty() {
            run = begin()?;
            (place.sequence, place.step) = (place.sequence + 1, 0);
            if !global.json {
                writeln!(out).map_err(unprinted)?;
            }
        } else {
            let (sample, form) = parse(line).map_err(|(what, help)| at(what).help(help))?;
            let form = if global.json { Form::Object } else { form };
            if sample.len() != run.width() {
                let (found, width) = (sample.len(), run.width());
                let what = format!("{found} numbers, but the model reads {width} in a sample");
                return Err(at(what).into());
            }
            let moved = run.push(&sample).map_err(|e| at(e.message))?;
            write(&mut out, &mut run, &moved, (form, place), arguments)?;
            place.step += 1;
        }
        // Each sample is answered before the next one is read.
        out.flush().map_err(unprinted)?;
    }
    Ok(())
}

/// The model and the parameters of an attack stage.
fn open(global: &Global, arguments: &Arguments) -> Result<AttackStream, Exit> {
    let stage = arguments.stage.as_str();
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let [asked] = find::find_table(&plan, stage)?[..] else {
        let label = &plan.instances[find::find_table(&plan, stage)?[0].instance].label;
        return Err(Diagnostic::new(format!("`{stage}` has several instances"))
            .help(format!(
                "name one: {}",
                global.command(&format!("attack-stream '{label}'"))
            ))
            .into());
    };
    let instance = &plan.instances[asked.instance];
    if arguments.label.is_some() && attack_stream::has_target(&instance.params) {
        let message = format!("`{stage}` has a target, so --label would have no effect");
        return Err(Diagnostic::new(message).help("omit --label").into());
    }
    let weights = instance
        .wires
        .iter()
        .find(|wire| wire.port == attack_stream::VICTIM);
    let weights = match weights.map(|wire| &wire.from) {
        Some(Feed::One(Pointer::Made(source)))
            if plan.decl(asked.instance).kind.role() == Role::Attack =>
        {
            *source
        }
        Some(Feed::One(Pointer::Best { .. })) => {
            return Err(Diagnostic::new(format!("`{stage}` selects its model"))
                .help("name a stage that reads one model")
                .into());
        }
        _ => {
            let message = format!("`{stage}` is not an attack stage");
            return Err(Diagnostic::new(message)
                .help("`ablate kinds attack` describes those that perturb samples as they arrive")
                .into());
        }
    };
    let label = &plan.instances[weights.instance].label;
    let targets = [label.clone()];
    let wanted = in_pipeline(&pipeline, find::wanted(&plan, &targets))?;
    let store = global.needed_store()?;
    let statuses = instance_statuses(&plan, &wanted, Some(&store));
    let InstanceStatus::Cached { outputs, .. } = &statuses[weights.instance] else {
        return Err(run_selection::unshown(
            global,
            &plan,
            &statuses,
            weights.instance,
        ));
    };
    let table = store.read(&outputs[weights.output])?;
    let live = AttackStream::open(&table, instance.params.as_ref().clone());
    live.map_err(|failure| {
        Diagnostic::new(failure.message)
            .maybe_help(failure.help)
            .into()
    })
}

/// The numbers of a line; or what is wrong with it, and what to do.
fn parse(line: &str) -> Result<(Vec<f32>, Form), (String, &'static str)> {
    let line = line.trim();
    let (parts, form) = match line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
        Some(inside) => (inside, Form::Json),
        None => (line, Form::Csv),
    };
    let number = |part: &str| {
        let part = part.trim();
        let wide: f64 = part.parse().map_err(|_| {
            let what = format!(
                "`{}` is not a sample: `{}` is not a number",
                cut(line),
                cut(part)
            );
            (what, "a sample is 0.1,0.2 or [0.1, 0.2]")
        })?;
        match wide as f32 {
            narrow if narrow.is_finite() => Ok(narrow),
            _ if wide.is_finite() => Err((
                format!("{} does not fit in 32 bits", cut(part)),
                "numbers are between -3.4e38 and 3.4e38: scale the samples as the training data was",
            )),
            _ => Err((
                format!("{} is not a finite number", cut(part)),
                "leave out samples without a value, or impute them",
            )),
        }
    };
    let sample = parts.split(',').map(number).collect::<Result<_, _>>()?;
    Ok((sample, form))
}

/// The beginning of a long text.
fn cut(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A sample and the class probabilities after it.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    x: &'a [f32],
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<&'a [f32]>,
}

fn write(
    out: &mut impl Write,
    run: &mut StreamRun<'_>,
    moved: &[f32],
    (form, place): (Form, Place),
    arguments: &Arguments,
) -> Result<(), Exit> {
    let mut printed = None;
    if arguments.probabilities {
        let asked = run.probabilities();
        printed = Some(asked.map_err(|e| Exit::from(Diagnostic::new(e.message)))?);
    }
    let json = |text: serde_json::Result<String>| text.expect("numbers are plain");
    let object = matches!(form, Form::Object);
    let answer = Answer {
        sequence: object.then_some(place.sequence),
        step: object.then_some(place.step),
        x: moved,
        p: printed.as_deref(),
    };
    match form {
        Form::Json if printed.is_none() => {
            writeln!(out, "{}", json(serde_json::to_string(moved)))
        }
        Form::Json | Form::Object => writeln!(out, "{}", json(serde_json::to_string(&answer))),
        Form::Csv => {
            let numbers = moved.iter().chain(printed.iter().flatten());
            let texts: Vec<String> = numbers.map(f32::to_string).collect();
            writeln!(out, "{}", texts.join(","))
        }
    }
    .map_err(unprinted)
}
