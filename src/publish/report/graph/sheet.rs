//! Boxes and lanes in their columns: sorted, pulled level, and joined by lines.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{Line, MARGIN};

/// Between boxes above each other, and between lanes.
const APART: (f64, f64) = (16.0, 8.0);
/// How often columns are sorted and pulled level. More changes little.
const SWEEPS: usize = 8;
/// So many lanes are drawn. A graph with more is black anyway, and its lines run straight.
const LANES: usize = 20_000;

/// What stands in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Box(usize),
    /// A lane of all lines that come from this box.
    Lane(usize),
}

/// Boxes and lanes in their columns.
pub struct Sheet {
    /// Boxes first, by number, then lanes.
    items: Vec<Item>,
    /// What an item is connected to on its left and on its right.
    beside: [Vec<Vec<usize>>; 2],
    /// Items from top to bottom.
    pub columns: Vec<Vec<usize>>,
    /// The lanes of each box with their columns.
    lanes: Vec<BTreeMap<usize, usize>>,
}

impl Sheet {
    /// Boxes in their columns, with a lane for each line that passes one.
    pub fn new(reads: &[BTreeSet<usize>], column: &[usize]) -> Sheet {
        let count = column.iter().max().map_or(0, |last| last + 1);
        let mut sheet = Sheet {
            items: (0..reads.len()).map(Item::Box).collect(),
            beside: [vec![Vec::new(); reads.len()], vec![Vec::new(); reads.len()]],
            columns: vec![Vec::new(); count],
            lanes: vec![BTreeMap::new(); reads.len()],
        };
        for (node, column) in column.iter().enumerate() {
            sheet.columns[*column].push(node);
        }
        let mut last = column.to_vec();
        for (node, from) in reads.iter().enumerate() {
            for from in from {
                last[*from] = last[*from].max(column[node]);
            }
        }
        let needed = |node: usize| last[node].saturating_sub(column[node] + 1);
        if (0..reads.len()).map(needed).sum::<usize>() <= LANES {
            for node in 0..reads.len() {
                sheet.add_lanes(node, column[node] + 1..last[node]);
            }
        }
        for (node, from) in reads.iter().enumerate() {
            for from in from.iter().filter(|from| column[**from] < column[node]) {
                let left = sheet.before(*from, column[node]);
                sheet.connect(left, node);
            }
        }
        sheet
    }

    fn add_lanes(&mut self, node: usize, columns: std::ops::Range<usize>) {
        let mut left = node;
        for column in columns {
            let lane = self.items.len();
            self.items.push(Item::Lane(node));
            self.beside
                .iter_mut()
                .for_each(|side| side.push(Vec::new()));
            self.columns[column].push(lane);
            self.lanes[node].insert(column, lane);
            self.connect(left, lane);
            left = lane;
        }
    }

    fn connect(&mut self, left: usize, right: usize) {
        self.beside[0][right].push(left);
        self.beside[1][left].push(right);
    }

    /// What a reader in this column is connected to: the lane in the column before, or the box.
    fn before(&self, node: usize, column: usize) -> usize {
        let lane = column.checked_sub(1).and_then(|c| self.lanes[node].get(&c));
        lane.copied().unwrap_or(node)
    }

    /// Sorts each column by where its neighbours stand, alternately by those on the left and
    /// those on the right.
    pub fn sort(&mut self) {
        // Heights are from the middle, so that columns of different length compare.
        let mut height = vec![0.0; self.items.len()];
        let note = |column: &[usize], height: &mut [f64]| {
            for (place, item) in column.iter().enumerate() {
                height[*item] = place as f64 - column.len() as f64 / 2.0;
            }
        };
        for column in &self.columns {
            note(column, &mut height);
        }
        for sweep in 0..SWEEPS {
            let side = sweep % 2;
            for c in in_turn(self.columns.len(), side) {
                let keyed = self.columns[c].iter();
                let keyed = keyed.map(|item| (mean(&self.beside[side][*item], &height), *item));
                let mut keyed: Vec<(f64, usize)> = keyed
                    .map(|(mean, item)| (mean.unwrap_or(height[item]), item))
                    .collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                self.columns[c] = keyed.into_iter().map(|(_, item)| item).collect();
                note(&self.columns[c], &mut height);
            }
        }
    }

    /// The middle of each item, pulled level with its neighbours as far as order and distance
    /// allow.
    pub fn level(&self, high: f64) -> Vec<usize> {
        let tall = |item: usize| match self.items[item] {
            Item::Box(_) => high,
            Item::Lane(_) => 0.0,
        };
        let apart = |above: usize, below: usize| {
            let gap = match (self.items[above], self.items[below]) {
                (Item::Box(_), Item::Box(_)) => APART.0,
                _ => APART.1,
            };
            (tall(above) + tall(below)) / 2.0 + gap
        };
        let mut middle = vec![0.0; self.items.len()];
        for column in &self.columns {
            let wanted = vec![0.0; column.len()];
            place(column, &wanted, apart, &mut middle);
        }
        for sweep in 0..SWEEPS {
            for c in in_turn(self.columns.len(), sweep % 2) {
                let column = &self.columns[c];
                let wanted = column.iter().map(|item| {
                    let sides = [0, 1].map(|side| mean(&self.beside[side][*item], &middle));
                    match (sides, sweep % 2) {
                        ([Some(left), Some(right)], _) if sweep + 2 >= SWEEPS => {
                            (left + right) / 2.0
                        }
                        ([Some(left), _], 0) | ([Some(left), None], _) => left,
                        ([_, Some(right)], _) => right,
                        ([None, None], _) => middle[*item],
                    }
                });
                let wanted: Vec<f64> = wanted.collect();
                place(column, &wanted, apart, &mut middle);
            }
        }
        let tops = (0..middle.len()).map(|item| middle[item] - tall(item) / 2.0);
        let top = tops.fold(f64::INFINITY, f64::min);
        let down = |middle: &f64| (middle - top).round() as usize + MARGIN;
        middle.iter().map(down).collect()
    }

    /// Bends between columns and lanes through them.
    pub fn lines(
        &self,
        reads: &[BTreeSet<usize>],
        column: &[usize],
        middle: &[usize],
        lefts: &[usize],
        widths: &[usize],
    ) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut bend = |source: usize, reader: Option<usize>, (a, c): (usize, usize), (b, d)| {
            let (from, to) = ((lefts[c] + widths[c], middle[a]), (lefts[d], middle[b]));
            lines.push(Line {
                source,
                reader,
                from,
                to,
                bend: (from.0 + to.0) / 2,
            });
        };
        for (node, lanes) in self.lanes.iter().enumerate() {
            let mut left = (node, column[node]);
            for (c, lane) in lanes {
                bend(node, None, left, (*lane, *c));
                left = (*lane, *c);
            }
        }
        for (reader, from) in reads.iter().enumerate() {
            for from in from {
                let left = self.before(*from, column[reader]);
                let at = if left == *from {
                    column[*from]
                } else {
                    column[reader] - 1
                };
                bend(*from, Some(reader), (left, at), (reader, column[reader]));
            }
        }
        for (node, lanes) in self.lanes.iter().enumerate() {
            for (c, lane) in lanes {
                let (from, to) = (lefts[*c], lefts[*c] + widths[*c]);
                lines.push(Line {
                    source: node,
                    reader: None,
                    from: (from, middle[*lane]),
                    to: (to, middle[*lane]),
                    bend: from,
                });
            }
        }
        lines
    }
}

/// From left to right if the left decides, otherwise from right to left.
fn in_turn(count: usize, side: usize) -> Box<dyn Iterator<Item = usize>> {
    match side {
        0 => Box::new(0..count),
        _ => Box::new((0..count).rev()),
    }
}

fn mean(items: &[usize], of: &[f64]) -> Option<f64> {
    let sum: f64 = items.iter().map(|item| of[*item]).sum();
    (!items.is_empty()).then(|| sum / items.len() as f64)
}

/// Puts a column as near as possible to where it wants to be, in its order and with room between:
/// the least squares under that condition, by pooling neighbours that would overlap.
fn place(
    column: &[usize],
    wanted: &[f64],
    apart: impl Fn(usize, usize) -> f64,
    middle: &mut [f64],
) {
    let mut offset = Vec::with_capacity(column.len());
    let mut below = 0.0;
    // Blocks of items that touch: the sum of what they want, and how many they are.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (n, item) in column.iter().enumerate() {
        below += if n == 0 {
            0.0
        } else {
            apart(column[n - 1], *item)
        };
        offset.push(below);
        blocks.push((wanted[n] - below, 1));
        while let [.., (a, m), (b, k)] = blocks[..]
            && a / m as f64 > b / k as f64
        {
            blocks.pop();
            blocks.pop();
            blocks.push((a + b, m + k));
        }
    }
    let mut n = 0;
    for (sum, count) in blocks {
        for _ in 0..count {
            middle[column[n]] = sum / count as f64 + offset[n];
            n += 1;
        }
    }
}
