//! The DAGs that every tool runs, and the number that their last stage must make.
//! Knows nothing of how a tool writes them down.
//!
//! A stage adds up what it reads and a number of its own. In one stage that number is the
//! *dial*: the parameter that a case changes and turns back.

use std::fmt;

/// How the stages hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each reads the one before; the dial is in the middle one.
    Chain,
    /// All read the first, which has the dial.
    Fan,
    /// A fan of configurations, and a last stage that reads them all.
    Sweep,
    /// A fan of configurations: each row with each column.
    Grid,
}

/// What a stage adds.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    /// Always this.
    Fixed(i64),
    /// Whatever the dial says.
    Dial,
}

/// One stage.
pub struct Node {
    /// Its name in every tool.
    pub name: String,
    /// The positions of the stages that it reads, all before its own.
    pub reads: Vec<usize>,
    /// What it adds.
    pub adds: Amount,
}

/// A DAG to run.
pub struct Dag {
    /// How the stages hang together.
    pub shape: Shape,
    /// How many stages, or how many configurations in a sweep.
    pub size: usize,
    /// The stages, readers after what they read.
    pub nodes: Vec<Node>,
}

/// What the dial says at first.
pub const DIAL: i64 = 1;

impl Dag {
    /// A chain whose stage `size / 2`, counted from 1, has the dial.
    pub fn chain(size: usize) -> Dag {
        let adds = |n| match n + 1 == size / 2 {
            true => Amount::Dial,
            false => Amount::Fixed(1),
        };
        let reads = |n: usize| n.checked_sub(1).into_iter().collect();
        Dag::new(Shape::Chain, size, (0..size).map(|n| (reads(n), adds(n))))
    }

    /// A first stage and `size - 1` that read it.
    pub fn fan(size: usize) -> Dag {
        Dag::new(Shape::Fan, size, fan(size))
    }

    /// A first stage, `size` that read it, and one that reads those.
    pub fn sweep(size: usize) -> Dag {
        let last = ((1..=size).collect(), Amount::Fixed(0));
        Dag::new(Shape::Sweep, size, fan(size + 1).chain([last]))
    }

    /// A first stage, and one that reads it for each of `side` rows and as many columns.
    pub fn grid(side: usize) -> Dag {
        Dag::new(Shape::Grid, side * side, fan(side * side + 1))
    }

    fn new(shape: Shape, size: usize, nodes: impl Iterator<Item = (Vec<usize>, Amount)>) -> Dag {
        let node = |(n, (reads, adds))| Node {
            name: format!("s{}", n + 1),
            reads,
            adds,
        };
        Dag {
            shape,
            size,
            nodes: nodes.enumerate().map(node).collect(),
        }
    }

    /// The name of the last stage.
    pub fn last(&self) -> &str {
        &self.nodes[self.nodes.len() - 1].name
    }

    /// What the last stage must make.
    pub fn last_value(&self, dial: i64) -> i64 {
        let mut values: Vec<i64> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let read: i64 = node.reads.iter().map(|n| values[*n]).sum();
            values.push(read + node.adds.at(dial));
        }
        values[values.len() - 1]
    }

    /// How many stages a turn of the dial concerns.
    pub fn after_dial(&self) -> usize {
        let mut concerned: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let reads_one = node.reads.iter().any(|n| concerned[*n]);
            concerned.push(reads_one || matches!(node.adds, Amount::Dial));
        }
        concerned.iter().filter(|is| **is).count()
    }

    /// The stages that nobody reads: what a tool is asked for.
    pub fn leaves(&self) -> Vec<&Node> {
        let mut read = vec![false; self.nodes.len()];
        for n in self.nodes.iter().flat_map(|node| &node.reads) {
            read[*n] = true;
        }
        let nodes = self.nodes.iter().zip(read);
        nodes
            .filter(|(_, read)| !read)
            .map(|(node, _)| node)
            .collect()
    }
}

impl Amount {
    /// The number itself.
    pub fn at(self, dial: i64) -> i64 {
        match self {
            Amount::Fixed(amount) => amount,
            Amount::Dial => dial,
        }
    }
}

/// Stages that read the first must differ, or a tool that knows equal work would do it once.
fn fan(size: usize) -> impl Iterator<Item = (Vec<usize>, Amount)> {
    (0..size).map(|n| match n {
        0 => (Vec::new(), Amount::Dial),
        n => (vec![0], Amount::Fixed(n as i64)),
    })
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shape::Chain => "chain",
            Shape::Fan => "fan",
            Shape::Sweep => "sweep",
            Shape::Grid => "grid",
        })
    }
}
