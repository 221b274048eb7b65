//! Which rows are kept, and in which split: chosen by a seeded hash of each row's id, so the
//! choice does not depend on the order of rows, and a bigger sample contains the smaller one.
//! Knows nothing of columns beyond id, split and label.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// What is drawn from a table.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Plan {
    /// Only these splits; all if empty.
    pub splits: Vec<String>,
    /// Rows that move from one split to another, one step after the other.
    pub moves: Vec<Move>,
    /// Whether every class of a split is cut to the size of its smallest.
    pub balance: bool,
    /// At most this many rows of a split.
    pub sample: BTreeMap<String, usize>,
}

/// Some rows of one split become another.
#[derive(Debug, Clone, PartialEq)]
pub struct Move {
    /// Where they are.
    pub of: String,
    /// Where they go.
    pub into: String,
    /// How many of them.
    pub part: Part,
    /// The first of each class in the order of rows, rather than those that the hash picks.
    pub in_order: bool,
}

/// How many rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Part {
    /// A share between 0 and 1.
    Share(f64),
    /// A number of rows.
    Rows(usize),
}

/// What drawing must know of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its id: what is hashed.
    pub id: String,
    /// Its split.
    pub split: String,
    /// Its class, if it has one.
    pub label: Option<i64>,
}

/// The rows that are kept, in their order, each with its split.
pub fn draw(rows: &[Row], plan: &Plan, seed: u64) -> Result<Vec<(usize, String)>, String> {
    let mut splits: Vec<String> = rows.iter().map(|row| row.split.clone()).collect();
    for (n, step) in plan.moves.iter().enumerate() {
        apply(rows, &mut splits, step, seed, n)?;
    }
    if plan.balance && rows.iter().all(|row| row.label.is_none()) {
        return Err("there are no labels to balance".to_owned());
    }
    let mut kept: Vec<usize> = (0..rows.len()).collect();
    if !plan.splits.is_empty() {
        for wanted in &plan.splits {
            if !splits.contains(wanted) {
                return Err(format!("no row has the split `{wanted}`"));
            }
        }
        kept.retain(|row| plan.splits.contains(&splits[*row]));
    }
    let order = Order {
        rows,
        seed,
        stream: "sample".to_owned(),
    };
    let mut chosen: Vec<usize> = Vec::with_capacity(kept.len());
    for (split, members) in groups(kept, |row| splits[row].clone()) {
        let size = plan.sample.get(&split).copied();
        if plan.balance {
            let classes = groups(members, |row| rows[row].label);
            let smallest = classes.values().map(Vec::len).min().unwrap_or(0);
            let count = classes.len();
            for (n, (_, class)) in classes.into_iter().enumerate() {
                // What cannot be shared evenly goes to the first classes.
                let share = size.map_or(smallest, |size| {
                    size / count + usize::from(n < size % count)
                });
                chosen.extend(order.first(class, share.min(smallest)));
            }
        } else {
            let size = size.unwrap_or(members.len());
            chosen.extend(order.first(members, size));
        }
    }
    for split in plan.sample.keys() {
        if !chosen.iter().any(|row| splits[*row] == *split) && !splits.contains(split) {
            return Err(format!("no row has the split `{split}`"));
        }
    }
    chosen.sort_unstable();
    Ok(chosen
        .into_iter()
        .map(|row| (row, splits[row].clone()))
        .collect())
}

/// One step: each class gives its part, so that a balanced split stays balanced.
fn apply(
    rows: &[Row],
    splits: &mut [String],
    step: &Move,
    seed: u64,
    n: usize,
) -> Result<(), String> {
    let members: Vec<usize> = (0..rows.len())
        .filter(|row| splits[*row] == step.of)
        .collect();
    let total = match step.part {
        Part::Share(share) => (members.len() as f64 * share).round() as usize,
        Part::Rows(rows) if rows > members.len() => {
            return Err(format!(
                "the split `{}` has only {} rows, not {rows}",
                step.of,
                members.len()
            ));
        }
        Part::Rows(rows) => rows,
    };
    if members.is_empty() {
        return Err(format!("no row has the split `{}`", step.of));
    }
    let order = Order {
        rows,
        seed,
        stream: format!("split {n}"),
    };
    let classes = groups(members, |row| rows[row].label);
    let quotas = quotas(&classes.values().map(Vec::len).collect::<Vec<_>>(), total);
    for ((_, class), quota) in classes.into_iter().zip(quotas) {
        let first = match step.in_order {
            true => class[..quota].to_vec(),
            false => order.first(class, quota),
        };
        first
            .into_iter()
            .for_each(|row| splits[row].clone_from(&step.into));
    }
    Ok(())
}

/// `total` shared out in proportion to sizes: one after another goes to the class with the largest
/// `size / (2 had + 1)`, the first of equals first (Sainte-Laguë). So a larger total takes nothing back, which sharing
/// out by the largest remainder does now and then.
fn quotas(sizes: &[usize], total: usize) -> Vec<usize> {
    let all = sizes.iter().sum::<usize>().max(1) as u128;
    // Rounding moves the sum of `count` classes by `count / 2` at most, so that no class ends with less than this:
    // what is left to go round is little.
    let even = (2 * total as u128).saturating_sub(sizes.len() as u128);
    let sure = |size: &usize| (*size as u128 * even / (2 * all)).saturating_sub(1) as usize;
    let mut quotas: Vec<usize> = sizes.iter().map(sure).collect();
    for _ in quotas.iter().sum::<usize>()..total {
        let open = (0..sizes.len()).filter(|n| quotas[*n] < sizes[*n]);
        let next = open.reduce(|best, n| {
            let weight =
                |n: usize, other: usize| sizes[n] as u128 * (2 * quotas[other] as u128 + 1);
            if weight(n, best) > weight(best, n) {
                n
            } else {
                best
            }
        });
        match next {
            Some(n) => quotas[n] += 1,
            None => break,
        }
    }
    quotas
}

fn groups<K: Ord>(rows: Vec<usize>, key: impl Fn(usize) -> K) -> BTreeMap<K, Vec<usize>> {
    let mut groups: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for row in rows {
        groups.entry(key(row)).or_default().push(row);
    }
    groups
}

/// Rows in the order of their hashes.
struct Order<'a> {
    rows: &'a [Row],
    seed: u64,
    /// Different choices must not be the same choice.
    stream: String,
}

impl Order<'_> {
    fn first(&self, rows: Vec<usize>, count: usize) -> Vec<usize> {
        if count >= rows.len() {
            return rows;
        }
        let mut hashed: Vec<(u64, &str, usize)> = rows
            .iter()
            .map(|row| (self.hash(*row), self.rows[*row].id.as_str(), *row))
            .collect();
        hashed.sort_unstable();
        hashed[..count].iter().map(|(_, _, row)| *row).collect()
    }

    fn hash(&self, row: usize) -> u64 {
        let mut hasher = blake3::Hasher::new_derive_key("ablate dataset draw 1");
        hasher.update(&self.seed.to_le_bytes());
        hasher
            .update(&(self.stream.len() as u64).to_le_bytes())
            .update(self.stream.as_bytes());
        hasher.update(self.rows[row].id.as_bytes());
        let bytes = hasher.finalize();
        u64::from_le_bytes(bytes.as_bytes()[..8].try_into().expect("eight bytes"))
    }
}
