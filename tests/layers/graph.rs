//! Cycles among modules. At every folder its children are nodes, each with all below it, and so is the folder's
//! own file; an arrow between two files is drawn where their paths part. Knows nothing of sources.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::sources::Package;

/// One module names something that another defines.
pub struct Arrow {
    pub from: usize,
    pub to: usize,
    pub line: usize,
}

impl Arrow {
    pub fn named(&self, package: &Package) -> String {
        let name = |module: usize| package.modules[module].path.join("::");
        format!("{} -> {}", name(self.from), name(self.to))
    }
}

pub struct Cycle {
    /// All modules that reach each other.
    pub members: Vec<String>,
    /// A shortest way around, with the place of each arrow.
    pub shortest: String,
}

/// The arrows of one folder between its children, each with the place of the first that draws it.
type Level = BTreeMap<String, BTreeMap<String, String>>;

pub fn cycles(package: &Package, arrows: &[Arrow]) -> Vec<Cycle> {
    let mut levels: BTreeMap<Vec<String>, Level> = BTreeMap::new();
    for arrow in arrows {
        let (from, to) = (&package.modules[arrow.from], &package.modules[arrow.to]);
        let common = from
            .path
            .iter()
            .zip(&to.path)
            .take_while(|(a, b)| a == b)
            .count();
        let node = |path: &[String]| {
            let path = path[..path.len().min(common + 1)].join("::");
            if path.is_empty() {
                "the root".to_owned()
            } else {
                path
            }
        };
        let place = format!("{}:{}", from.name, arrow.line);
        let level = levels.entry(from.path[..common].to_vec()).or_default();
        level
            .entry(node(&from.path))
            .or_default()
            .entry(node(&to.path))
            .or_insert(place);
    }
    levels.values().flat_map(cycles_of).collect()
}

fn cycles_of(level: &Level) -> Vec<Cycle> {
    let reach: BTreeMap<&String, BTreeSet<&String>> = level
        .keys()
        .map(|node| (node, reached(level, node)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (node, reaches) in &reach {
        if seen.contains(node) || !reaches.contains(*node) {
            continue;
        }
        let back = |other: &&&String| reach.get(**other).is_some_and(|all| all.contains(*node));
        let members: Vec<&String> = reaches.iter().filter(back).copied().collect();
        seen.extend(members.iter().copied());
        let ways = members
            .iter()
            .filter_map(|member| way_around(level, member));
        let shortest = ways.min_by_key(Vec::len).unwrap_or_default();
        found.push(Cycle {
            shortest: shortest.concat(),
            members: members.into_iter().cloned().collect(),
        });
    }
    found
}

fn reached<'a>(level: &'a Level, start: &String) -> BTreeSet<&'a String> {
    let mut open: Vec<&String> = level
        .get(start)
        .into_iter()
        .flat_map(BTreeMap::keys)
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            open.extend(level.get(node).into_iter().flat_map(BTreeMap::keys));
        }
    }
    seen
}

/// The shortest way from a node back to it, as `a`, ` -> b (a.rs:3)`, ` -> a (b.rs:7)`.
fn way_around(level: &Level, start: &String) -> Option<Vec<String>> {
    let mut open = VecDeque::from([(start, vec![start.clone()])]);
    let mut seen = BTreeSet::new();
    while let Some((node, way)) = open.pop_front() {
        for (next, place) in level.get(node).into_iter().flatten() {
            let mut longer = way.clone();
            longer.push(format!(" -> {next} ({place})"));
            if next == start {
                return Some(longer);
            }
            if seen.insert(next) {
                open.push_back((next, longer));
            }
        }
    }
    None
}
