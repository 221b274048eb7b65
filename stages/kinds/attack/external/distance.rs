//! The fewest replacements, insertions and deletions that turn one list into another (Levenshtein distance).

use super::super::edit::{Change, Edit};

/// Lists whose table would have more cells than this are not compared: 64 MB.
const LARGEST: usize = 1 << 24;

/// How many edits it takes.
pub fn distance<T: PartialEq>(old: &[T], new: &[T]) -> usize {
    let mut above: Vec<usize> = (0..=new.len()).collect();
    for (i, a) in old.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in new.iter().enumerate() {
            let replaced = above[j] + usize::from(a != b);
            row.push(replaced.min(above[j + 1] + 1).min(row[j] + 1));
        }
        above = row;
    }
    above[new.len()]
}

/// The edits, from the left to the right, each with its place at the time of the edit; none for lists that are too long
/// and too different.
pub fn script(old: &[u32], new: &[u32]) -> Option<Vec<Edit>> {
    let same = |pairs: &mut dyn Iterator<Item = (&u32, &u32)>| {
        pairs.take_while(|(old, new)| old == new).count()
    };
    let start = same(&mut old.iter().zip(new));
    let (a, b) = (&old[start..], &new[start..]);
    let end = same(&mut a.iter().rev().zip(b.iter().rev()));
    let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
    let width = b.len() + 1;
    let cells = (a.len() + 1).checked_mul(width);
    let cells = cells.filter(|cells| *cells <= LARGEST)?;
    // costs[i * width + j]: edits from a[i..] to b[j..].
    let mut costs = vec![0_u32; cells];
    for i in (0..=a.len()).rev() {
        for j in (0..=b.len()).rev() {
            let (right, down) = (i * width + j + 1, (i + 1) * width + j);
            costs[i * width + j] = match (a.get(i), b.get(j)) {
                (None, None) => 0,
                (None, Some(_)) => costs[right] + 1,
                (Some(_), None) => costs[down] + 1,
                (Some(x), Some(y)) => {
                    let replaced = costs[down + 1] + u32::from(x != y);
                    replaced.min(costs[right] + 1).min(costs[down] + 1)
                }
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut edits = Vec::new();
    while i < a.len() || j < b.len() {
        let here = costs[i * width + j];
        let (x, y) = (a.get(i).copied(), b.get(j).copied());
        let position = start + j;
        let change = match x.zip(y) {
            Some((old, new)) if here == costs[(i + 1) * width + j + 1] + u32::from(old != new) => {
                (i, j) = (i + 1, j + 1);
                match old == new {
                    true => continue,
                    false => Change::Replace { old, new },
                }
            }
            _ if x.is_some() && here == costs[(i + 1) * width + j] + 1 => {
                i += 1;
                Change::Delete { old: x? }
            }
            _ => {
                j += 1;
                Change::Insert { new: y? }
            }
        };
        edits.push(Edit::Word { position, change });
    }
    Some(edits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nn::Stream;
    use nn::batch::Sequence;

    #[test]
    fn the_script_leads_from_one_list_to_the_other_in_the_fewest_edits() {
        let stream = Stream::new(3, "lists");
        for n in 0..400 {
            let list = |from: u64| -> Vec<u32> {
                let stream = stream.item(n).item(from);
                let length = stream.below(0, 9);
                (0..length as u64)
                    .map(|k| stream.below(k + 1, 4) as u32)
                    .collect()
            };
            let (old, new) = (list(0), list(1));
            let edits = script(&old, &new).unwrap();
            assert_eq!(edits.len(), distance(&old, &new), "{old:?} {new:?}");
            let mut row = Sequence::Tokens(old.clone());
            for edit in &edits {
                edit.apply(&mut row).unwrap();
            }
            assert_eq!(row, Sequence::Tokens(new), "{old:?} {edits:?}");
        }
    }

    #[test]
    fn distances_are_those_of_the_textbook() {
        let letters = |word: &str| word.chars().collect::<Vec<char>>();
        let of = |a: &str, b: &str| distance(&letters(a), &letters(b));
        assert_eq!(of("kitten", "sitting"), 3);
        assert_eq!(of("", "abc"), 3);
        assert_eq!(of("same", "same"), 0);
    }

    #[test]
    fn what_is_too_different_is_not_compared_and_what_is_alike_is() {
        let long: Vec<u32> = (0..100_000).collect();
        let mut other = long.clone();
        other[50_000] = 7;
        assert_eq!(script(&long, &other).unwrap().len(), 1);
        other.reverse();
        assert_eq!(script(&long, &other), None);
    }
}
