//! Variables with secrets: `secret_env = ["HF_TOKEN"]` passes them on to a program. Their values are in no key and no
//! record, and are masked in what the program prints before anybody keeps it.

use std::ops::Range;

use store::Params;

use super::params::texts;
use crate::Failure;

/// What stands in the place of a secret.
const MASK: &[u8] = b"***";

/// Variables with their values. Deliberately without `Debug`: they are not to be printed.
#[derive(Clone, Default)]
pub struct Secrets(Vec<(String, String)>);

impl Secrets {
    /// Those that a stage's parameters name, from our own environment.
    pub fn of(params: &Params) -> Result<Secrets, Failure> {
        let names = texts(params, "secret_env");
        if let Some(name) = unset(&names) {
            return Err(Failure::new(missing(name)).help(HELP).at("secret_env"));
        }
        let value = |name: String| {
            let value = std::env::var(&name).unwrap_or_default();
            (name, value)
        };
        Ok(Secrets(names.into_iter().map(value).collect()))
    }

    #[cfg(test)]
    pub fn of_value(name: &str, value: &str) -> Secrets {
        Secrets(vec![(name.to_owned(), value.to_owned())])
    }

    /// Each variable with its value.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The length of the longest.
    pub fn longest(&self) -> usize {
        let lengths = self.0.iter().map(|(_, value)| value.trim().len());
        lengths.max().unwrap_or(0)
    }

    /// A part of some bytes with every secret masked, also one that only begins or ends in it.
    pub fn masked(&self, bytes: &[u8], part: Range<usize>) -> Vec<u8> {
        let secret = self.covered(bytes);
        let mut kept = Vec::with_capacity(part.len());
        for n in part.clone() {
            match secret[n] {
                false => kept.push(bytes[n]),
                true if n == part.start || !secret[n - 1] => kept.extend(MASK),
                true => {}
            }
        }
        kept
    }

    /// The same of a whole text.
    pub fn masked_text(&self, text: &str) -> String {
        let masked = self.masked(text.as_bytes(), 0..text.len());
        String::from_utf8_lossy(&masked).into_owned()
    }

    /// Which bytes belong to a secret: two may share some.
    fn covered(&self, bytes: &[u8]) -> Vec<bool> {
        let mut covered = vec![false; bytes.len()];
        for (_, value) in &self.0 {
            // What is read from a file often ends with a line break, and is printed without.
            let value = value.trim().as_bytes();
            if value.is_empty() {
                continue;
            }
            for (start, there) in bytes.windows(value.len()).enumerate() {
                if there == value {
                    covered[start..start + value.len()].fill(true);
                }
            }
        }
        covered
    }
}

/// The first of these variables that has no value.
pub fn unset(names: &[String]) -> Option<&str> {
    let has_value = |name: &str| std::env::var(name).is_ok_and(|value| !value.trim().is_empty());
    names
        .iter()
        .map(String::as_str)
        .find(|name| !has_value(name))
}

/// Says that a variable has no value.
pub fn missing(name: &str) -> String {
    format!("the variable {name} is not set, and `secret_env` names it")
}

/// What to do about it.
pub const HELP: &str =
    "export it before you start ablate: its value is passed on, and stored nowhere";

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(values: &[&str]) -> Secrets {
        let named = |value: &&str| ("NAME".to_owned(), (*value).to_owned());
        Secrets(values.iter().map(named).collect())
    }

    #[test]
    fn every_secret_is_masked_wherever_it_is() {
        let two = secrets(&["swordfish", "sword\n"]);
        assert_eq!(
            two.masked_text("swordfish, (swordfish) sword"),
            "***, (***) ***"
        );
        // Secrets that share letters, one after the other, and one in itself.
        assert_eq!(secrets(&["abcd", "cdef"]).masked_text("xabcdefx"), "x***x");
        assert_eq!(secrets(&["aa"]).masked_text("baaab"), "b***b");
        assert_eq!(secrets(&[]).masked_text("plain"), "plain");
        assert_eq!(secrets(&["ü"]).masked_text("füßü"), "f***ß***");
    }

    #[test]
    fn a_secret_that_is_cut_is_masked_in_both_parts() {
        let bytes = b"before swordfish after";
        let one = secrets(&["swordfish"]);
        for cut in 0..=bytes.len() {
            let head = one.masked(bytes, 0..cut);
            let tail = one.masked(bytes, cut..bytes.len());
            for part in [&head, &tail] {
                let shown = String::from_utf8_lossy(part);
                let left = shown.replace("***", "").replace("before ", "");
                let left = left.replace(" after", "");
                // What is left are pieces of the words around it.
                assert!(
                    "before ".contains(&left) || " after".contains(&left),
                    "{cut}: {shown}"
                );
            }
        }
    }
}
