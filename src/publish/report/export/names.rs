//! Names that MLflow takes: letters, digits, `_`, `-`, `.`, spaces, and `/` between folders.
//! Ours have more signs, and two of them may look alike once these are replaced: then each gets
//! the beginning of its digest, so that both survive and keep their names from run to run.

use std::collections::BTreeMap;

use store::Digest;

/// The longest part of a name.
const LONGEST: usize = 80;

/// Names in the order of what they name: `parts` become folders.
pub fn paths(all: &[Vec<String>]) -> Vec<String> {
    let plain: Vec<String> = all.iter().map(|parts| path(parts)).collect();
    let mut count: BTreeMap<&String, usize> = BTreeMap::new();
    for name in &plain {
        *count.entry(name).or_default() += 1;
    }
    let named = plain
        .iter()
        .zip(all)
        .map(|(name, parts)| match count[name] {
            1 => name.clone(),
            _ => {
                // Lengths keep `["a", "b/c"]` from `["a/b", "c"]`.
                let whole: String = parts.iter().map(|p| format!("{} {p} ", p.len())).collect();
                format!("{name}.{}", &Digest::of(whole.as_bytes()).to_string()[..8])
            }
        });
    named.collect()
}

fn path(parts: &[String]) -> String {
    parts
        .iter()
        .map(|name| part(name))
        .collect::<Vec<_>>()
        .join("/")
}

/// One part: `lstm[n=1]` is `lstm.n.1`.
fn part(name: &str) -> String {
    let plain = |sign: char| match sign {
        sign if sign.is_ascii_alphanumeric() || " _-.".contains(sign) => sign,
        '[' | '=' | ',' => '.',
        _ => '_',
    };
    let name: String = name
        .trim_end_matches(']')
        .chars()
        .map(plain)
        .take(LONGEST)
        .collect();
    // Not a folder's own name, not its parent's, and nothing hidden.
    match name.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if name.trim().is_empty() => "_".to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&[&str]]) -> Vec<String> {
        let owned = |parts: &&[&str]| parts.iter().map(|part| (*part).to_owned()).collect();
        paths(&all.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn names_stay_inside_and_are_what_mlflow_takes() {
        assert_eq!(
            names(&[&["lstm-swap[n=1]", "max_words"], &["../..", "a/b", "é"]]),
            ["lstm-swap.n.1/max_words", "_._../a_b/_"]
        );
    }

    #[test]
    fn names_that_look_alike_stay_apart() {
        let long = "x".repeat(100);
        let cases: [[&[&str]; 2]; 4] = [
            [&["t", "a/b"], &["t", "a_b"]],
            [&["t", "é"], &["t", "ü"]],
            [&["s[n=1]"], &["s[n=1"]],
            [&[&long, "y"], &[&(long.clone() + "z"), "y"]],
        ];
        for pair in cases {
            let alone = names(&pair[..1]);
            let both = names(&pair);
            assert_ne!(both[0], both[1], "{pair:?}");
            let digest = both[0].strip_prefix(&format!("{}.", alone[0]));
            assert_eq!(digest.map(str::len), Some(8), "{both:?}");
            // The order in which they come decides nothing.
            let turned = names(&[pair[1], pair[0]]);
            assert_eq!([&turned[1], &turned[0]], [&both[0], &both[1]]);
        }
    }
}
