//! Where boxes stand and lines run, in layers from left to right (after Sugiyama, Tagawa and
//! Toda, 1981): each box stands right of all that it reads; a line that passes a column has a
//! separate lane there, so that it never runs through a box; neighbours are sorted to cross
//! seldom and pulled level. Knows nothing of stages.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{Line, MARGIN};
use super::sheet::Sheet;

/// Where all of it is.
pub struct Layout {
    /// The boxes, in the order in which they were given.
    pub places: Vec<Place>,
    /// The lines.
    pub lines: Vec<Line>,
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
}

/// A box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The left edge.
    pub x: usize,
    /// The upper edge.
    pub y: usize,
    /// All boxes of a column are as wide as the widest.
    pub wide: usize,
}

/// Between columns: room for the bends.
const GAP: usize = 48;

/// Lays out boxes with what each reads, their widths, and the height of all.
pub fn lay_out(reads: &[BTreeSet<usize>], wide: &[usize], high: usize) -> Layout {
    let columns = columns(reads);
    let mut sheet = Sheet::new(reads, &columns);
    sheet.sort();
    let heights = sheet.level(high as f64);
    let mut widths = vec![0; sheet.columns.len()];
    for (node, column) in columns.iter().enumerate() {
        widths[*column] = wide[node].max(widths[*column]);
    }
    let mut lefts = vec![MARGIN; widths.len() + 1];
    for (c, width) in widths.iter().enumerate() {
        lefts[c + 1] = lefts[c] + width + GAP;
    }
    let mut places = vec![Place::default(); reads.len()];
    for (node, column) in columns.iter().enumerate() {
        places[node] = Place {
            x: lefts[*column],
            y: heights[node] - high / 2,
            wide: widths[*column],
        };
    }
    let lines = sheet.lines(reads, &columns, &heights, &lefts, &widths);
    let lowest = heights.iter().max().map_or(0, |y| y + high / 2);
    Layout {
        places,
        lines,
        width: lefts[widths.len()].saturating_sub(GAP) + MARGIN,
        height: lowest + MARGIN,
    }
}

/// The column of each box.
fn columns(reads: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut column = vec![0_usize; reads.len()];
    // Boxes are in the order of their first step; a later step of a folded stage may read
    // something new, so a few rounds may be needed. A cycle of folded stages ends with them.
    for _ in 0..reads.len().min(64) {
        let mut moved = false;
        for node in 0..reads.len() {
            let from = reads[node].iter().map(|from| column[*from] + 1);
            let wanted = from.max().unwrap_or(0);
            if wanted > column[node] && wanted < reads.len() {
                column[node] = wanted;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    // What reads nothing stands close to its first reader: a line across everything is hard to
    // follow.
    let mut first = vec![usize::MAX; reads.len()];
    for (node, from) in reads.iter().enumerate() {
        for from in from {
            first[*from] = first[*from].min(column[node]);
        }
    }
    for node in 0..reads.len() {
        if reads[node].is_empty() && (1..usize::MAX).contains(&first[node]) {
            column[node] = first[node] - 1;
        }
    }
    let used: BTreeSet<usize> = column.iter().copied().collect();
    let place: BTreeMap<usize, usize> = used.into_iter().zip(0..).collect();
    column.iter().map(|column| place[column]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIGH: usize = 60;

    fn laid(list: &[&[usize]]) -> (Vec<BTreeSet<usize>>, Layout) {
        let reads = list.iter().map(|reads| reads.iter().copied().collect());
        let reads: Vec<BTreeSet<usize>> = reads.collect();
        let layout = lay_out(&reads, &vec![100; reads.len()], HIGH);
        (reads, layout)
    }

    /// Whether a line, taken at many points, runs through a box that is not its own.
    fn crossed(layout: &Layout) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for line in &layout.lines {
            for n in 1..40 {
                let t = f64::from(n) / 40.0;
                let at = |a: usize, b: usize, c: usize, d: usize| {
                    let [a, b, c, d] = [a, b, c, d].map(|x| x as f64);
                    let s = 1.0 - t;
                    a * s.powi(3) + 3.0 * b * s * s * t + 3.0 * c * s * t * t + d * t.powi(3)
                };
                let x = at(line.from.0, line.bend, line.bend, line.to.0);
                let y = at(line.from.1, line.from.1, line.to.1, line.to.1);
                let inside = |place: &Place| {
                    let (left, top) = (place.x as f64, place.y as f64);
                    left < x && x < left + place.wide as f64 && top < y && y < top + HIGH as f64
                };
                let hit = layout.places.iter().position(inside);
                found.extend(hit.map(|node| (line.source, node)));
            }
        }
        found
    }

    #[test]
    fn boxes_stand_right_of_what_they_read_and_apart() {
        let (reads, layout) = laid(&[&[], &[0], &[], &[1, 2], &[0], &[0, 3, 4]]);
        for (node, from) in reads.iter().enumerate() {
            let ends = from.iter().map(|from| layout.places[*from]);
            assert!(ends.clone().all(|p| p.x + p.wide < layout.places[node].x));
        }
        for (a, one) in layout.places.iter().enumerate() {
            for other in &layout.places[a + 1..] {
                assert!(
                    one.x != other.x || one.y.abs_diff(other.y) >= HIGH,
                    "{one:?}"
                );
            }
            assert!(one.x + one.wide <= layout.width && one.y + HIGH <= layout.height);
        }
    }

    #[test]
    fn no_line_runs_through_a_box() {
        // 0 is read by all, also far to the right; 1 to 4 are a chain between.
        let (_, layout) = laid(&[&[], &[0], &[0, 1], &[0, 2], &[0, 3], &[0, 1, 2, 3, 4]]);
        assert_eq!(crossed(&layout), []);
        // Forty stages that read what came long before.
        let reads: Vec<Vec<usize>> = (0..40_usize)
            .map(|n| (n / 3..n).step_by(5).collect())
            .collect();
        let reads: Vec<&[usize]> = reads.iter().map(Vec::as_slice).collect();
        assert_eq!(crossed(&laid(&reads).1), []);
    }

    #[test]
    fn a_chain_is_a_straight_line() {
        let reads: Vec<Vec<usize>> = (0..1000_usize)
            .map(|n| n.checked_sub(1).into_iter().collect())
            .collect();
        let reads: Vec<&[usize]> = reads.iter().map(Vec::as_slice).collect();
        let (_, layout) = laid(&reads);
        let first = layout.places[0].y;
        assert!(layout.places.iter().all(|place| place.y == first));
        assert_eq!(layout.height, HIGH + 2 * MARGIN);
    }

    #[test]
    fn neighbours_uncross() {
        // 2 reads 1 and 3 reads 0: side by side they would cross.
        let (_, layout) = laid(&[&[], &[], &[1], &[0]]);
        let y = |node: usize| layout.places[node].y;
        assert_eq!(y(0) < y(1), y(3) < y(2));
        assert_eq!((y(0), y(1)), (y(3), y(2)), "and stand level");
    }

    #[test]
    fn what_reads_nothing_stands_beside_its_first_reader() {
        let (_, layout) = laid(&[&[], &[0], &[1], &[], &[2, 3]]);
        assert_eq!(layout.places[3].x, layout.places[2].x);
    }

    #[test]
    fn a_cycle_of_folded_stages_ends() {
        let (_, layout) = laid(&[&[1], &[0]]);
        assert_eq!(layout.places.len(), 2);
        assert_eq!(laid(&[]).1.lines, []);
    }
}
