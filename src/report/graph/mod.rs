//! The graph of a run for a page: stages from left to right, axes folded. Each stage stands one
//! column after the last thing that it reads, and beside what it is connected to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use serde::Serialize;
use store::Status;

use super::gather::Recorded;
use crate::progress::seconds;

/// A drawing in pixels.
#[derive(Serialize)]
pub struct Graph {
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
    /// The stages.
    pub nodes: Vec<Node>,
    /// What is read, as lines behind them.
    pub edges: Vec<Edge>,
}

/// A stage with its instances.
#[derive(Serialize)]
pub struct Node {
    /// The stage's name.
    pub name: String,
    /// As much of it as fits into the box.
    pub shown: String,
    /// Its kind.
    pub kind: String,
    /// `ran`, `hit`, `failed`, `skipped`: the worst of its instances.
    pub status: &'static str,
    /// `3 × 1.20 s`, or a part of it.
    pub about: String,
    /// Its instances, as steps.
    pub steps: Vec<usize>,
    /// The left edge.
    pub x: usize,
    /// The upper edge.
    pub y: usize,
}

/// From the right of one stage to the left of another.
#[derive(Serialize)]
pub struct Edge {
    /// Where it begins.
    pub from: (usize, usize),
    /// Where it ends.
    pub to: (usize, usize),
    /// Halfway along, where it bends.
    pub bend: usize,
}

/// The size of a stage's box; the page draws it.
pub const BOX: (usize, usize) = (152, 44);
const GAP: (usize, usize) = (40, 16);
const MARGIN: usize = 12;
/// How often columns are put in order by their neighbours. More changes little.
const SWEEPS: usize = 4;

/// Lays the graph out.
pub fn lay_out(recorded: &Recorded) -> Graph {
    let mut nodes: Vec<Node> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut node_of = Vec::with_capacity(recorded.steps.len());
    for (at, step) in recorded.steps.iter().enumerate() {
        let place = *places.entry(step.name()).or_insert_with(|| {
            nodes.push(Node {
                name: step.name().to_owned(),
                shown: clipped(step.name()),
                kind: step.kind().to_owned(),
                status: "hit",
                about: String::new(),
                steps: Vec::new(),
                x: 0,
                y: 0,
            });
            nodes.len() - 1
        });
        nodes[place].steps.push(at);
        node_of.push(place);
    }
    for node in &mut nodes {
        describe(node, recorded);
    }
    let mut reads: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); nodes.len()];
    for (at, step) in recorded.steps.iter().enumerate() {
        let from = step.reads.iter().filter_map(|read| read.step);
        let from = from.map(|from| node_of[from]);
        reads[node_of[at]].extend(from.filter(|from| *from != node_of[at]));
    }
    let columns = in_columns(&reads);
    let tallest = columns.iter().map(Vec::len).max().unwrap_or(0);
    let (wide, high) = (BOX.0 + GAP.0, BOX.1 + GAP.1);
    for (c, column) in columns.iter().enumerate() {
        // Short columns stand in the middle.
        let above = (tallest - column.len()) * high / 2;
        for (r, node) in column.iter().enumerate() {
            nodes[*node].x = MARGIN + c * wide;
            nodes[*node].y = MARGIN + above + r * high;
        }
    }
    let edge = |(to, from): (usize, usize)| {
        let middle = |node: &Node| node.y + BOX.1 / 2;
        let (left, right) = (&nodes[from], &nodes[to]);
        let (from, to) = ((left.x + BOX.0, middle(left)), (right.x, middle(right)));
        Edge {
            from,
            to,
            bend: (from.0 + to.0) / 2,
        }
    };
    let pairs = reads.iter().enumerate();
    let pairs = pairs.flat_map(|(to, reads)| reads.iter().map(move |from| (to, *from)));
    Graph {
        width: 2 * MARGIN + (columns.len() * wide).saturating_sub(GAP.0),
        height: 2 * MARGIN + (tallest * high).saturating_sub(GAP.1),
        edges: pairs.map(edge).collect(),
        nodes,
    }
}

fn clipped(name: &str) -> String {
    const MOST: usize = 19;
    match name.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
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
    let mut parts = Vec::new();
    if count > 1 {
        parts.push(format!("{count} ×"));
    }
    parts.push(match status {
        "hit" => "cached".to_owned(),
        "skipped" => "skipped".to_owned(),
        "failed" => "failed".to_owned(),
        _ => seconds(spent),
    });
    node.status = status;
    node.about = parts.join(" ");
}

/// Which node stands in which column, from top to bottom.
fn in_columns(reads: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut column = vec![0_usize; reads.len()];
    // Nodes are in the order of their first step; a later step of a folded stage may read
    // something new, so a few rounds may be needed. A circle of folded stages ends with them.
    for _ in 0..reads.len().min(64) {
        let mut moved = false;
        for node in 0..reads.len() {
            let wanted = reads[node]
                .iter()
                .map(|from| column[*from] + 1)
                .max()
                .unwrap_or(0);
            if wanted > column[node] && wanted < reads.len() {
                column[node] = wanted;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let mut columns: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (node, column) in column.iter().enumerate() {
        columns.entry(*column).or_default().push(node);
    }
    let mut columns: Vec<Vec<usize>> = columns.into_values().collect();
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); reads.len()];
    for (node, reads) in reads.iter().enumerate() {
        reads.iter().for_each(|from| readers[*from].push(node));
    }
    let reads: Vec<Vec<usize>> = reads
        .iter()
        .map(|set| set.iter().copied().collect())
        .collect();
    let mut height = vec![0.0; reads.len()];
    note_heights(&columns, &mut height);
    for sweep in 0..SWEEPS {
        let neighbours = if sweep % 2 == 0 { &reads } else { &readers };
        for column in &mut columns {
            let middle = |node: &usize| match neighbours[*node].len() {
                0 => height[*node],
                n => {
                    neighbours[*node]
                        .iter()
                        .map(|other| height[*other])
                        .sum::<f64>()
                        / n as f64
                }
            };
            let mut keyed: Vec<(f64, usize)> =
                column.iter().map(|node| (middle(node), *node)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *column = keyed.into_iter().map(|(_, node)| node).collect();
            note_heights(std::slice::from_ref(column), &mut height);
        }
    }
    columns
}

/// Heights are from the middle of a column, so that columns of different length compare.
fn note_heights(columns: &[Vec<usize>], height: &mut [f64]) {
    for column in columns {
        for (place, node) in column.iter().enumerate() {
            height[*node] = place as f64 - column.len() as f64 / 2.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(list: &[&[usize]]) -> Vec<BTreeSet<usize>> {
        list.iter()
            .map(|reads| reads.iter().copied().collect())
            .collect()
    }

    #[test]
    fn every_stage_stands_right_of_what_it_reads() {
        let reads = reads(&[&[], &[0], &[], &[1, 2], &[0]]);
        let columns = in_columns(&reads);
        let column = |node: usize| columns.iter().position(|c| c.contains(&node)).unwrap();
        for (node, reads) in reads.iter().enumerate() {
            assert!(reads.iter().all(|from| column(*from) < column(node)));
        }
        assert_eq!(columns.concat().len(), 5);
    }

    #[test]
    fn neighbours_uncross() {
        // 2 reads 1 and 3 reads 0: side by side they would cross.
        let columns = in_columns(&reads(&[&[], &[], &[1], &[0]]));
        assert_eq!(columns, [vec![0, 1], vec![3, 2]]);
    }

    #[test]
    fn a_circle_of_folded_stages_ends() {
        let columns = in_columns(&reads(&[&[1], &[0]]));
        assert_eq!(columns.concat().len(), 2);
    }
}
