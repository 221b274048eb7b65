//! The graph of a run for a page: stages from left to right, axes folded.
//!
//! [`layout`] says where boxes stand and lines run, [`label`] what fits into a box.

mod label;
mod layout;
mod line;
mod sheet;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use serde::Serialize;
use store::Status;

use crate::amounts::seconds;
use crate::results::recorded::Recorded;
use label::{clipped, width_of};
use line::Line;

/// A drawing in pixels.
#[derive(Serialize)]
pub struct Graph {
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
    /// The height of every box.
    pub high: usize,
    /// The stages.
    pub nodes: Vec<Node>,
    /// What is read, as lines between and beside the boxes.
    pub lines: Vec<Line>,
    /// Which part of the stages this is, from 0: a browser cannot draw any number of them.
    pub part: usize,
    /// How many parts there are.
    pub parts: usize,
    /// How many stages there are before this part.
    pub before: usize,
    /// How many stages there are in all.
    pub all: usize,
}

/// A stage with its instances.
#[derive(Serialize)]
pub struct Node {
    /// The stage's name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// `ran`, `hit`, `failed`, `skipped`: the worst of its instances.
    pub status: &'static str,
    /// `3 instances, 1.20 s`, or a part of it.
    pub about: String,
    /// As much of name, kind and the rest as fits into the box.
    pub shown: [String; 3],
    /// Its instances, as steps.
    pub steps: Vec<usize>,
    /// The left edge.
    pub x: usize,
    /// The upper edge.
    pub y: usize,
    /// How wide the box is.
    pub wide: usize,
}

/// The height of a box: three lines of text.
const HIGH: usize = 60;
/// Between the edge of a box and its text.
const INSIDE: usize = 10;
/// The narrowest and the widest text of a box.
const TEXT: (usize, usize) = (70, 190);
/// The sizes of letters, line by line; the style sheet has the same.
const LETTERS: [usize; 3] = [13, 11, 11];

/// The most stages of a part.
pub const PART: usize = 500;
/// The most stages of a page that is written to a file, where there is no next part to go to.
const WHOLE: usize = 5_000;

/// Lays the graph out, stages in the order in which they are made: a part of it, or all that a
/// file can show.
pub fn lay_out(recorded: &Recorded, part: Option<usize>) -> Graph {
    let (mut nodes, node_of) = folded(recorded);
    let all = nodes.len();
    let most = if part.is_some() { PART } else { WHOLE };
    let parts = all.div_ceil(most).max(1);
    let part = part.unwrap_or(0).min(parts - 1);
    let shown = part * most..(part * most + most).min(all);
    let mut reads: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); shown.len()];
    for (at, step) in recorded.steps.iter().enumerate() {
        let to = node_of[at];
        if !shown.contains(&to) {
            continue;
        }
        let from = step.reads.iter().filter_map(|read| read.step);
        let from = from.map(|from| node_of[from]);
        let from = from.filter(|from| *from != to && shown.contains(from));
        reads[to - shown.start].extend(from.map(|from| from - shown.start));
    }
    nodes.truncate(shown.end);
    nodes.drain(..shown.start);
    let wide = nodes.iter().map(|node| {
        let lines = [&node.name, &node.kind, &node.about];
        let lines = lines.iter().zip(LETTERS);
        let widest = lines.map(|(line, size)| width_of(line, size)).max();
        widest.unwrap_or(0).clamp(TEXT.0, TEXT.1) + 2 * INSIDE
    });
    let laid = layout::lay_out(&reads, &wide.collect::<Vec<_>>(), HIGH);
    for (node, place) in nodes.iter_mut().zip(laid.places) {
        (node.x, node.y, node.wide) = (place.x, place.y, place.wide);
        let room = place.wide - 2 * INSIDE;
        let line = |text: &str, line: usize| clipped(text, LETTERS[line], room);
        node.shown = [
            line(&node.name, 0),
            line(&node.kind, 1),
            line(&node.about, 2),
        ];
    }
    Graph {
        width: laid.width,
        height: laid.height,
        high: HIGH,
        nodes,
        lines: laid.lines,
        part,
        parts,
        before: shown.start,
        all,
    }
}

/// Stages in the order of their first instance, and the stage of each step.
fn folded(recorded: &Recorded) -> (Vec<Node>, Vec<usize>) {
    let mut nodes: Vec<Node> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut node_of = Vec::with_capacity(recorded.steps.len());
    for (at, step) in recorded.steps.iter().enumerate() {
        let place = *places.entry(step.name()).or_insert_with(|| {
            nodes.push(Node {
                name: step.name().to_owned(),
                kind: step.kind().to_owned(),
                status: "hit",
                about: String::new(),
                shown: Default::default(),
                steps: Vec::new(),
                x: 0,
                y: 0,
                wide: 0,
            });
            nodes.len() - 1
        });
        nodes[place].steps.push(at);
        node_of.push(place);
    }
    for node in &mut nodes {
        describe(node, recorded);
    }
    (nodes, node_of)
}

fn describe(node: &mut Node, recorded: &Recorded) {
    let steps = || node.steps.iter().map(|at| &recorded.steps[*at]);
    let any = |status: Status| steps().any(|step| step.status == status);
    let status = match () {
        () if any(Status::Failed) => "failed",
        () if any(Status::Skipped) => "skipped",
        () if any(Status::Ran) => "ran",
        () => "hit",
    };
    let spent: Duration = steps().map(|step| step.wall).sum();
    let count = node.steps.len();
    let times = (count > 1).then(|| format!("{count} instances, "));
    let what = match status {
        "hit" => "cached".to_owned(),
        "ran" => seconds(spent),
        other => other.to_owned(),
    };
    node.status = status;
    node.about = format!("{}{what}", times.unwrap_or_default());
}
