//! `ablate ablation`: the variants of an ablation side by side, with what each changes and what it cost.

use std::io::IsTerminal;
use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use crate::amounts::{seconds, thousands};
use crate::diagnostic::{Diagnostic, nearest};
use crate::inspect::ablation::{self, Ablation, Number, Outcome, Variants};
use crate::inspect::status::{InstanceStatus, instance_statuses, root_cause};
use crate::inspect::stored;
use crate::plan::{self, Plan};
use crate::publish::report::export::{Grid, in_latex};

/// What `ablation` takes.
#[derive(Args)]
pub struct Arguments {
    /// The evaluate stage [default: all that vary with an ablation]
    stage: Option<String>,
    /// Only numbers of this table
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Print in this format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format latex
    #[arg(long, conflicts_with_all = ["format", "csv", "markdown"])]
    latex: bool,
    /// The same as --format csv
    #[arg(long, conflicts_with_all = ["format", "markdown"])]
    csv: bool,
    /// The same as --format markdown
    #[arg(long, conflicts_with = "format")]
    markdown: bool,
    /// Decimals of numbers
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=9))]
    decimals: u8,
    /// Print numbers between 0 and 1 as percentages
    #[arg(long)]
    percent: bool,
    /// Which end of a number is best, printed in bold in LaTeX and Markdown
    #[arg(long, value_enum, default_value_t = BestEnd::Max)]
    best: BestEnd,
    /// How many draws the intervals rest on [default: 50 per difference, from 1,000 to 20,000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    draws: Option<u64>,
}

/// How the table is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For spreadsheets
    Csv,
    /// For READMEs
    Markdown,
    /// For papers, with the package booktabs
    Latex,
}

/// Which end of a number is best.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BestEnd {
    /// The largest
    Max,
    /// The smallest
    Min,
}

/// Prints the ablations of the pipeline.
pub fn ablation(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let store = global.needed_store()?;
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let asked = asked(&plan, arguments)?;
    let mut wanted = vec![false; plan.instances.len()];
    let instances = asked.iter().flat_map(|variants| &variants.instances);
    instances.for_each(|instance| wanted[*instance] = true);
    plan::reach(&plan, &mut wanted);
    let statuses = instance_statuses(&plan, &wanted, Some(&store));
    let stored = stored::now(&plan, &wanted, Some(&store));
    let mut found = Vec::new();
    for variants in &asked {
        all_run(global, &plan, &statuses, variants)?;
        let bar = bar(global);
        let progress = |done: u64, of: u64| {
            bar.set_length(of);
            bar.set_position(done);
        };
        let draws = arguments.draws;
        let ablation =
            ablation::compare(&plan, &store, &stored, &statuses, variants, draws, progress)?;
        bar.finish_and_clear();
        found.push(ablation);
    }
    for ablation in &mut found {
        if let Some(table) = &arguments.table {
            only_table(ablation, table)?;
        }
        print(global, arguments, ablation)?;
    }
    Ok(())
}

/// The evaluations to compare.
fn asked(plan: &Plan<'_>, arguments: &Arguments) -> Result<Vec<Variants>, Exit> {
    let all = ablation::evaluations(plan);
    if all.is_empty() {
        let example = "[axes.variant]\nbase = {}\nno-dropout = { \"STAGE.dropout\" = 0.0 }";
        return Err(Diagnostic::new("no evaluate stage varies with an ablation")
            .help(format!(
                "name changes of other stages as points of an axis:\n{example}"
            ))
            .into());
    }
    let Some(stage) = &arguments.stage else {
        return Ok(all);
    };
    let names: Vec<String> = all.iter().map(|one| one.stage.clone()).collect();
    let found: Vec<Variants> = all.into_iter().filter(|one| one.stage == *stage).collect();
    match found.is_empty() {
        false => Ok(found),
        true => Err(Diagnostic::new(format!(
            "`{stage}` is not an evaluate stage with an ablation"
        ))
        .maybe_help(nearest(stage, names.iter().map(String::as_str)))
        .help(format!("those are: {}", names.join(", ")))
        .into()),
    }
}

/// Refuses to compare what has not been run.
fn all_run(
    global: &Global,
    plan: &Plan<'_>,
    statuses: &[InstanceStatus],
    variants: &Variants,
) -> Result<(), Diagnostic> {
    for instance in &variants.instances {
        if !matches!(statuses[*instance], InstanceStatus::Cached { .. }) {
            let label = &plan.instances[*instance].label;
            let first = &plan.instances[root_cause(statuses, *instance)].label;
            let problem = Diagnostic::new(format!("`{label}` has not been run"));
            let waits = (first != label).then(|| format!("it waits on `{first}`"));
            return Err(problem
                .maybe_help(waits)
                .help(global.command(&format!("run {}", variants.stage))));
        }
    }
    Ok(())
}

fn bar(global: &Global) -> ProgressBar {
    let watched = !global.json && !global.quiet && std::io::stderr().is_terminal();
    let bar = match watched {
        true => ProgressBar::new(0),
        false => ProgressBar::hidden(),
    };
    let style =
        ProgressStyle::with_template("{bar:30.green} {pos}/{len} draws  {elapsed}, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn only_table(ablation: &mut Ablation, table: &str) -> Result<(), Diagnostic> {
    let names: Vec<String> = ablation.numbers.iter().map(|n| n.table.clone()).collect();
    ablation.numbers.retain(|number| number.table == table);
    if ablation.numbers.is_empty() {
        let mut known: Vec<&str> = names.iter().map(String::as_str).collect();
        known.dedup();
        return Err(Diagnostic::new(format!(
            "no number of table `{table}` differs between variants"
        ))
        .maybe_help(nearest(table, known.iter().copied()))
        .help(format!("tables with differences: {}", known.join(", "))));
    }
    Ok(())
}

fn print(global: &Global, arguments: &Arguments, ablation: &Ablation) -> Result<(), Exit> {
    if global.json {
        out!("{}", json!(ablation));
        return Ok(());
    }
    let format = match () {
        () if arguments.latex => Format::Latex,
        () if arguments.csv => Format::Csv,
        () if arguments.markdown => Format::Markdown,
        () => arguments.format,
    };
    if format == Format::Csv {
        out!("{}", csv(ablation).trim_end());
        return Ok(());
    }
    let shown = Shown {
        decimals: usize::from(arguments.decimals),
        percent: arguments.percent,
    };
    match format {
        Format::Text => text(&shown, ablation)?,
        _ => {
            for number in &ablation.numbers {
                let bold = best_of(number, arguments.best);
                let grid = grid(&shown, ablation, number, bold);
                match format {
                    Format::Latex => out!("{}", grid.latex()),
                    _ => out!("{}", grid.markdown()),
                }
            }
            match format {
                Format::Latex => out!("\\par\\footnotesize {}", in_latex(&caption(ablation))),
                _ => out!("{}", caption(ablation)),
            }
        }
    }
    Ok(())
}

/// How numbers are written.
struct Shown {
    decimals: usize,
    percent: bool,
}

impl Shown {
    fn number(&self, number: f64) -> String {
        match self.percent {
            true => format!("{:.*}", self.decimals.saturating_sub(2), number * 100.0),
            false => format!("{number:.*}", self.decimals),
        }
    }

    fn signed(&self, number: f64) -> String {
        let text = self.number(number);
        match number < 0.0 {
            true => text.replace('-', "−"),
            false => format!("+{text}"),
        }
    }

    fn mean(&self, outcome: &Outcome) -> String {
        outcome
            .mean
            .map_or("none".to_owned(), |mean| self.number(mean))
    }

    /// The difference with its interval, and a mark if chance is an unlikely reason.
    fn difference(&self, outcome: &Outcome) -> String {
        let Some(difference) = outcome.difference else {
            return String::new();
        };
        let interval = outcome.interval.map_or(String::new(), |interval| {
            let (low, high) = (self.signed(interval.low), self.signed(interval.high));
            format!(" [{low}, {high}]")
        });
        let mark = match outcome.p {
            Some(p) if p < 0.001 => " ***",
            Some(p) if p < 0.01 => " **",
            Some(p) if p < 0.05 => " *",
            _ => "",
        };
        format!("{}{interval}{mark}", self.signed(difference))
    }
}

/// What the intervals and marks are.
fn caption(ablation: &Ablation) -> String {
    if ablation.draws == 0 {
        return "No intervals: nothing is known of how these numbers vary.".to_owned();
    }
    format!(
        "Brackets: 95% intervals of the difference to the base, from {} draws over {}, paired. \
         Marks: * p < 0.05, ** p < 0.01, *** p < 0.001, adjusted by Holm's method for all differences; before that p is at least {:.4}, because of the number of draws.",
        thousands(ablation.draws as usize),
        ablation.over,
        2.0 / (ablation.draws + 1) as f64
    )
}

fn text(shown: &Shown, ablation: &Ablation) -> Result<(), Exit> {
    let width = ablation.variants.iter().map(|v| v.name.len()).max();
    let width = width.unwrap_or_default();
    out!("{}: variants of `{}`", ablation.stage, ablation.axis);
    for variant in &ablation.variants[1..] {
        let cost = seconds(Duration::from_secs_f64(variant.seconds));
        let what = match variant.same_as_base {
            true => "same as base".to_owned(),
            false => format!("ran {} in {cost}", variant.ran.join(", ")),
        };
        out!("  {:width$}  {what}", variant.name);
        for note in &variant.notes {
            out!("  {:width$}  note: {note}", "");
        }
    }
    if ablation.numbers.is_empty() {
        out!("no number differs between the variants");
        return Ok(());
    }
    for number in &ablation.numbers {
        out!("\n{} / {} / {}", number.table, number.row, number.col);
        for (variant, outcome) in ablation.variants.iter().zip(&number.values) {
            let line = format!(
                "  {:width$}  {:>8}  {}",
                variant.name,
                shown.mean(outcome),
                shown.difference(outcome)
            );
            out!("{}", line.trim_end());
        }
    }
    out!("\n{}", caption(ablation));
    Ok(())
}

/// The position of the best variant of a number.
fn best_of(number: &Number, end: BestEnd) -> Option<usize> {
    let means = number.values.iter().enumerate();
    let means = means.filter_map(|(n, outcome)| Some((n, outcome.mean?)));
    let key = |mean: f64| if end == BestEnd::Max { mean } else { -mean };
    means
        .max_by(|a, b| key(a.1).total_cmp(&key(b.1)).then(b.0.cmp(&a.0)))
        .map(|(n, _)| n)
}

fn grid(shown: &Shown, ablation: &Ablation, number: &Number, bold: Option<usize>) -> Grid {
    let rows = ablation.variants.iter().zip(&number.values);
    let rows = rows.map(|(variant, outcome)| {
        vec![
            variant.name.clone(),
            shown.mean(outcome),
            shown.difference(outcome),
        ]
    });
    Grid {
        title: format!("{} / {} / {}", number.table, number.row, number.col),
        head: ["variant", "value", "difference to base"]
            .map(str::to_owned)
            .into(),
        numbers: vec![false, true, true],
        rows: rows.collect(),
        bold: bold.map(|row| vec![(row, 1)]).unwrap_or_default(),
    }
}

/// One line for each number of each variant, at full precision.
fn csv(ablation: &Ablation) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = [
        "stage",
        "axis",
        "table",
        "row",
        "col",
        "variant",
        "value",
        "difference",
        "low",
        "high",
        "p",
    ];
    let mut write = |record: &[String]| writer.write_record(record).expect("memory grows");
    write(&head.map(str::to_owned));
    let float = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
    for number in &ablation.numbers {
        for (variant, outcome) in ablation.variants.iter().zip(&number.values) {
            let interval = outcome.interval;
            write(&[
                ablation.stage.clone(),
                ablation.axis.clone(),
                number.table.clone(),
                number.row.clone(),
                number.col.clone(),
                variant.name.clone(),
                float(outcome.mean),
                float(outcome.difference),
                float(interval.map(|interval| interval.low)),
                float(interval.map(|interval| interval.high)),
                float(outcome.p),
            ]);
        }
    }
    String::from_utf8(writer.into_inner().expect("memory grows")).expect("texts")
}
