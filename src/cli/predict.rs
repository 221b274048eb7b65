//! `ablate predict STAGE [TEXT…]`: asks a stored classifier about texts. The tokenizer and the vocabulary are those of
//! the rows that it was trained on, found by lineage. Nothing is stored.

use std::io::Read;
use std::path::{Path, PathBuf};

use arrow::record_batch::RecordBatch;
use clap::Args;
use serde_json::json;
use stages::Role;
use stages::predict::{StoredModel, digest_of, vocabulary_of};
use store::Store;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use super::replay::Silent;
use super::run_selection;
use crate::diagnostic::{Diagnostic, nearest};
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::plan::{self, Feed, Plan, Pointer};
use crate::results::find;

/// What goes in and comes out, for `--help`.
pub const FORMAT: &str = "\
Texts are arguments, the lines of standard input, or a column of a CSV file (--csv reviews.csv --column review).
Each is answered by its most likely class and the probabilities of all classes.

  ablate predict lstm 'a wonderful film' 'dull and long'
  ablate predict 'svm[seed=1]' --csv reviews.csv --json";

/// What `predict` takes.
#[derive(Args)]
pub struct Arguments {
    /// A stage that trained or has a classifier, or one instance of it: `stage` or `stage[axis=value]`
    stage: String,
    /// Texts [default: the lines of standard input]
    texts: Vec<String>,
    /// A CSV file with a header
    #[arg(long, value_name = "FILE", conflicts_with = "texts")]
    csv: Option<PathBuf>,
    /// The column of the file that has the texts
    #[arg(long, value_name = "NAME", default_value = "text", requires = "csv")]
    column: String,
}

/// Asks a stored classifier.
pub fn predict(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let n = instance(global, &plan, &arguments.stage)?;
    let label = &plan.instances[n].label;
    let outputs = &plan.instances[n].outputs;
    let Some(weights) = outputs.iter().position(|output| output == WEIGHTS) else {
        let kind = plan.decl(n).kind.describe().kind;
        return Err(Diagnostic::new(format!(
            "`{label}` is of kind `{kind}`, which makes no model"
        ))
        .help("name a stage of kind train, adversarial-retrain or external-model")
        .into());
    };
    let targets = [label.clone()];
    let wanted = in_pipeline(&pipeline, find::wanted(&plan, &targets))?;
    let store = global.needed_store()?;
    let statuses = instance_statuses(&plan, &wanted, Some(&store));
    if !matches!(statuses[n], InstanceStatus::Cached { .. }) {
        return Err(run_selection::unshown(global, &plan, &statuses, n));
    }
    let made = Made {
        plan: &plan,
        statuses: &statuses,
        store: &store,
    };
    let weights = made.table(n, weights)?;
    let failed = |failure: stages::Failure| {
        let message = format!("`{label}` cannot be asked: {}", failure.message);
        Exit::from(Diagnostic::new(message).maybe_help(failure.help))
    };
    let Some(vocabulary) = vocabulary_of(&weights).map_err(failed)? else {
        return Err(Diagnostic::new(format!("`{label}` does not read texts"))
            .help("a model of signals is asked by attack stages: attack = \"none\" leaves rows as they are")
            .into());
    };
    let (tokenizer, vocab) = made.tokenizer(n, &vocabulary)?.ok_or_else(|| {
        Diagnostic::new(format!(
            "the tokenize stage of `{label}` is not among what it was made from"
        ))
        .help("its rows must come from a tokenize stage of this pipeline")
    })?;
    let vectors = made.input(n, "vectors")?;
    let texts = texts(arguments)?;
    let place = stages::Place {
        pipeline: Some(pipeline.dir.clone()),
        ..stages::Place::default()
    };
    let model = StoredModel {
        weights: &weights,
        vectors: vectors.as_ref(),
        tokenizer: &plan.instances[tokenizer].params,
        vocab: &vocab,
        place: &place,
    };
    if texts.is_empty() {
        return Ok(());
    }
    let answers = model.ask(&texts, &Silent).map_err(failed)?;
    for (text, answer) in texts.iter().zip(answers) {
        let (p, [all, unknown]) = (answer.probabilities, answer.tokens);
        let class = (0..p.len()).fold(0, |best, n| if p[n] > p[best] { n } else { best });
        if global.json {
            out!(
                "{}",
                json!({ "text": text, "class": class, "probabilities": p, "tokens": all, "unknown": unknown })
            );
            continue;
        }
        let p: Vec<String> = p.iter().map(|p| format!("{p:.4}")).collect();
        // A model may be sure of a text that it cannot read.
        let unread = match unknown {
            0 => String::new(),
            _ => format!("  ({unknown} of {all} tokens unknown to the model)"),
        };
        out!(
            "{class}  [{}]  {}{unread}",
            p.join(", "),
            crate::visible::visible(text)
        );
    }
    Ok(())
}

/// The output that a model is.
const WEIGHTS: &str = "weights";

fn instance(global: &Global, plan: &Plan<'_>, stage: &str) -> Result<usize, Exit> {
    let found = find::find_instances(plan, stage)?;
    match found[..] {
        [one] => Ok(one),
        _ => {
            let label = &plan.instances[found[0]].label;
            let help = global.command(&format!("predict '{label}' 'a text'"));
            Err(Diagnostic::new(format!("`{stage}` has several instances"))
                .help(format!("name one: {help}"))
                .into())
        }
    }
}

/// What has been made by a plan.
struct Made<'a> {
    plan: &'a Plan<'a>,
    statuses: &'a [InstanceStatus],
    store: &'a Store,
}

impl Made<'_> {
    fn table(&self, instance: usize, output: usize) -> Result<RecordBatch, Exit> {
        match self.statuses[instance].outputs() {
            Some(outputs) => Ok(self.store.read(&outputs[output])?),
            None => {
                let label = &self.plan.instances[instance].label;
                Err(Diagnostic::new(format!("`{label}` has not been run")).into())
            }
        }
    }

    /// What is connected to a port of an instance.
    fn input(&self, n: usize, port: &str) -> Result<Option<RecordBatch>, Exit> {
        let wires = self.plan.instances[n].wires.iter();
        let wire = wires.into_iter().find(|wire| wire.port == port);
        match wire.map(|wire| &wire.from) {
            Some(Feed::One(Pointer::Made(source))) => {
                self.table(source.instance, source.output).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The nearest tokenizer among the ancestors of an instance whose vocabulary is this one, with its words.
    fn tokenizer(&self, n: usize, digest: &str) -> Result<Option<(usize, RecordBatch)>, Exit> {
        let mut near = vec![n];
        let mut next = 0;
        while let Some(n) = near.get(next).copied() {
            next += 1;
            let instance = &self.plan.instances[n];
            let vocab = instance.outputs.iter().position(|output| output == "vocab");
            if let (Role::Tokenizer, Some(vocab)) = (self.plan.decl(n).kind.role(), vocab) {
                let vocab = self.table(n, vocab)?;
                if digest_of(&vocab).as_deref() == Some(digest) {
                    return Ok(Some((n, vocab)));
                }
            }
            for wire in &instance.wires {
                if let Feed::One(Pointer::Made(source)) = &wire.from
                    && !near.contains(&source.instance)
                {
                    near.push(source.instance);
                }
            }
        }
        Ok(None)
    }
}

fn texts(arguments: &Arguments) -> Result<Vec<String>, Exit> {
    if let Some(file) = &arguments.csv {
        return column(file, &arguments.column);
    }
    if !arguments.texts.is_empty() {
        return Ok(arguments.texts.clone());
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    read.map_err(|error| {
        Diagnostic::new(format!("cannot read standard input: {error}"))
            .help("it has one text per line, in UTF-8")
    })?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// A column of a CSV file.
fn column(file: &Path, name: &str) -> Result<Vec<String>, Exit> {
    let unreadable = |error: csv::Error| {
        Diagnostic::new(format!("cannot read {}: {error}", file.display()))
            .help("a CSV file in UTF-8, with a header")
    };
    let mut reader = csv::Reader::from_path(file).map_err(unreadable)?;
    let header = reader.headers().map_err(unreadable)?.clone();
    let Some(at) = header.iter().position(|column| column == name) else {
        let columns: Vec<&str> = header.iter().collect();
        let help = nearest(name, columns.iter().copied());
        let help =
            help.unwrap_or_else(|| format!("columns: {}; --column names one", columns.join(", ")));
        return Err(
            Diagnostic::new(format!("{} has no column `{name}`", file.display()))
                .help(help)
                .into(),
        );
    };
    let mut texts = Vec::new();
    for row in reader.records() {
        let row = row.map_err(unreadable)?;
        texts.push(row.get(at).unwrap_or_default().to_owned());
    }
    Ok(texts)
}
