//! `ablate graph`: the pipeline as a tree of text, or for Graphviz and Mermaid.
//! Stages are drawn once, however many instances their axes give them.

use std::fmt::Write;

use clap::Args;
use serde_json::{Value, json};

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::out;
use crate::plan::{self, Plan};

/// What `graph` takes.
#[derive(Args)]
pub struct Arguments {
    /// Print Graphviz source
    #[arg(long, conflicts_with = "mermaid")]
    dot: bool,
    /// Print Mermaid source
    #[arg(long)]
    mermaid: bool,
    /// How deep the tree goes
    #[arg(long, value_name = "N", default_value_t = 40)]
    depth: usize,
}

/// Draws the pipeline.
pub fn graph(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let drawing = Drawing::of(&plan);
    if global.json {
        let object = match () {
            () if arguments.dot => json!({ "dot": drawing.dot(&pipeline.name) }),
            () if arguments.mermaid => json!({ "mermaid": drawing.mermaid() }),
            () => drawing.json(),
        };
        out!("{object}");
        return Ok(());
    }
    let text = match () {
        () if arguments.dot => drawing.dot(&pipeline.name),
        () if arguments.mermaid => drawing.mermaid(),
        () => drawing.tree(arguments.depth),
    };
    out!("{}", text.trim_end());
    Ok(())
}

struct Drawing {
    /// Name, kind and number of instances of each stage.
    stages: Vec<(String, &'static str, usize)>,
    /// What each stage reads: the stage, and the port (or that it is a metric).
    reads: Vec<Vec<(usize, String)>>,
}

/// What a stage reads: as written, then what was filled in.
fn reads(plan: &Plan<'_>, stage: usize) -> Vec<(usize, String)> {
    let written = plan.pipeline.stages[stage].reads.iter().map(|read| {
        let port = read.port.clone();
        (read.stage, port.unwrap_or_else(|| "metric".to_owned()))
    });
    let mut reads: Vec<(usize, String)> = written.collect();
    for instance in &plan.instances[plan.of_stage[stage].clone()] {
        for wire in instance.wires.iter().filter(|wire| wire.filled_in) {
            let makers = wire
                .from
                .sources()
                .map(|s| plan.instances[s.instance].stage);
            for maker in makers {
                let read = (maker, wire.port.clone());
                if !reads.contains(&read) {
                    reads.push(read);
                }
            }
        }
    }
    reads
}

impl Drawing {
    fn of(plan: &Plan<'_>) -> Drawing {
        let decls = &plan.pipeline.stages;
        Drawing {
            stages: decls
                .iter()
                .enumerate()
                .map(|(n, decl)| {
                    (
                        decl.name.clone(),
                        decl.kind.describe().kind,
                        plan.of_stage[n].len(),
                    )
                })
                .collect(),
            reads: (0..decls.len()).map(|n| reads(plan, n)).collect(),
        }
    }

    fn json(&self) -> Value {
        let stages = self.stages.iter().zip(&self.reads);
        let stages = stages.map(|((name, kind, count), reads)| {
            let reads = reads.iter();
            let reads = reads.map(|(n, port)| json!({ "stage": self.stages[*n].0, "port": port }));
            let reads: Vec<Value> = reads.collect();
            json!({ "stage": name, "kind": kind, "instances": count, "reads": reads })
        });
        json!({ "stages": stages.collect::<Vec<_>>() })
    }

    fn title(&self, n: usize) -> String {
        let (name, kind, count) = &self.stages[n];
        match count {
            1 => format!("{name} ({kind})"),
            _ => format!("{name} ({kind}, {count} instances)"),
        }
    }

    /// From the results down to what they are made of; what was drawn before ends in `(*)`.
    fn tree(&self, depth: usize) -> String {
        let mut read = vec![false; self.stages.len()];
        self.reads
            .iter()
            .flatten()
            .for_each(|(n, _)| read[*n] = true);
        let mut text = String::new();
        let mut drawn = vec![false; self.stages.len()];
        for root in (0..self.stages.len()).filter(|n| !read[*n]) {
            // The prefix of a line, the prefix of lines below it, and how deep it is.
            let mut open = vec![(root, String::new(), String::new(), 0)];
            while let Some((n, line, below, level)) = open.pop() {
                let again = drawn[n] && !self.reads[n].is_empty();
                let mark = if again { " (*)" } else { "" };
                writeln!(text, "{line}{}{mark}", self.title(n)).expect("strings grow");
                if again {
                    continue;
                }
                drawn[n] = true;
                if level == depth && !self.reads[n].is_empty() {
                    writeln!(text, "{below}└─ … deeper: --depth {}", depth * 2)
                        .expect("strings grow");
                    continue;
                }
                for (at, (child, _)) in self.reads[n].iter().enumerate().rev() {
                    let last = at + 1 == self.reads[n].len();
                    let (here, further) = if last {
                        ("└─ ", "   ")
                    } else {
                        ("├─ ", "│  ")
                    };
                    open.push((
                        *child,
                        format!("{below}{here}"),
                        format!("{below}{further}"),
                        level + 1,
                    ));
                }
            }
        }
        text
    }

    fn dot(&self, name: &str) -> String {
        let mut text = format!("digraph {name:?} {{\n  rankdir = LR;\n  node [shape = box];\n");
        for n in 0..self.stages.len() {
            writeln!(text, "  s{n} [label = {:?}];", self.title(n)).expect("strings grow");
        }
        for (n, reads) in self.reads.iter().enumerate() {
            for (from, port) in reads {
                writeln!(text, "  s{from} -> s{n} [label = {port:?}];").expect("strings grow");
            }
        }
        text.push('}');
        text
    }

    fn mermaid(&self) -> String {
        let mut text = "graph LR\n".to_owned();
        for n in 0..self.stages.len() {
            writeln!(text, "  s{n}[\"{}\"]", self.title(n)).expect("strings grow");
        }
        for (n, reads) in self.reads.iter().enumerate() {
            for (from, port) in reads {
                writeln!(text, "  s{from} -->|{port}| s{n}").expect("strings grow");
            }
        }
        text
    }
}
