//! Base forms of words, as WordNet finds them: a table of base forms and irregular forms, and rules for the rest.
//!
//! The table is the data set `wordnet-lemmas`, or one with the same columns: a row whose `source` is its `target` is
//! a base form, any other an irregular form and its base. Knows nothing of vocabularies or attacks.

use std::collections::{BTreeSet, HashMap, HashSet};

use arrow::array::AsArray;
use arrow::record_batch::RecordBatch;

use crate::Failure;

/// Endings and what stands in their place in a base form, by part of speech: those of WordNet's own `morphy`.
const RULES: [(&str, &[(&str, &str)]); 4] = [
    (
        "n",
        &[
            ("s", ""),
            ("ses", "s"),
            ("ves", "f"),
            ("xes", "x"),
            ("zes", "z"),
            ("ches", "ch"),
            ("shes", "sh"),
            ("men", "man"),
            ("ies", "y"),
        ],
    ),
    (
        "v",
        &[
            ("s", ""),
            ("ies", "y"),
            ("es", "e"),
            ("es", ""),
            ("ed", "e"),
            ("ed", ""),
            ("ing", "e"),
            ("ing", ""),
        ],
    ),
    ("a", &[("er", ""), ("est", ""), ("er", "e"), ("est", "e")]),
    ("r", &[]),
];

/// Base forms and irregular forms of one part of speech.
#[derive(Default)]
struct Forms {
    base: HashSet<String>,
    irregular: HashMap<String, Vec<String>>,
}

/// What is needed to find the base forms of any word.
pub struct Lemmas {
    forms: [Forms; RULES.len()],
}

impl Lemmas {
    /// From the input of that name.
    pub fn read(table: &RecordBatch, port: &str) -> Result<Lemmas, Failure> {
        let column = |name: &str| {
            let column = table.column_by_name(name);
            let column = column.and_then(|column| column.as_string_opt::<i32>());
            column.ok_or_else(|| {
                Failure::new(format!(
                    "the input `{port}` has no column `{name}` of strings"
                ))
                .help("connect a dataset stage with name = \"wordnet-lemmas\"")
            })
        };
        let columns = [column("pos")?, column("source")?, column("target")?];
        let mut forms: [Forms; RULES.len()] = Default::default();
        for row in 0..table.num_rows() {
            let [pos, source, target] = columns.map(|column| column.value(row));
            let place = RULES.iter().position(|(known, _)| *known == pos);
            let place = place.ok_or_else(|| {
                Failure::new(format!(
                    "row {row} of the input `{port}` has the part of speech `{pos}`"
                ))
                .help("write n, v, a or r")
            })?;
            let forms = &mut forms[place];
            match source == target {
                true => drop(forms.base.insert(source.to_lowercase())),
                false => {
                    let bases = forms.irregular.entry(source.to_lowercase());
                    bases.or_default().push(target.to_lowercase());
                }
            }
        }
        Ok(Lemmas { forms })
    }

    /// The base forms that a word may be a form of, as any part of speech; the word itself if none is known.
    pub fn of(&self, word: &str) -> BTreeSet<String> {
        let word = word.to_lowercase();
        let mut found = BTreeSet::new();
        for (forms, (_, rules)) in self.forms.iter().zip(RULES) {
            if forms.base.contains(&word) {
                found.insert(word.clone());
            }
            if let Some(bases) = forms.irregular.get(&word) {
                found.extend(bases.iter().cloned());
                continue;
            }
            let regular = rules.iter().filter_map(|(ending, instead)| {
                let stem = word.strip_suffix(ending)?;
                Some(format!("{stem}{instead}"))
            });
            found.extend(regular.filter(|base| forms.base.contains(base)));
        }
        if found.is_empty() {
            found.insert(word);
        }
        found
    }
}

#[cfg(test)]
pub mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, StringArray};

    use super::*;
    use crate::tables::weights::with_metadata;

    /// A table of forms: part of speech, form, base form.
    pub fn table(rows: &[[&str; 3]]) -> RecordBatch {
        let column = |k: usize| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row[k])))
        };
        let names = ["pos", "source", "target"];
        let columns = names.iter().enumerate().map(|(k, name)| (*name, column(k)));
        with_metadata(columns.collect(), Default::default())
    }

    #[test]
    fn base_forms_are_looked_up_and_made_by_rules() {
        let lemmas = Lemmas::read(
            &table(&[
                ["n", "film", "film"],
                ["n", "church", "church"],
                ["v", "bore", "bore"],
                ["v", "see", "see"],
                ["v", "saw", "saw"],
                ["v", "saw", "see"],
                ["a", "boring", "boring"],
                ["a", "nice", "nice"],
                ["a", "good", "good"],
                ["a", "better", "good"],
                ["r", "better", "well"],
            ]),
            "lemmas",
        );
        let lemmas = lemmas.unwrap();
        for (word, bases) in [
            ("films", &["film"][..]),
            ("Churches", &["church"]),
            ("saw", &["saw", "see"]),
            ("boring", &["bore", "boring"]),
            ("bored", &["bore"]),
            ("nicest", &["nice"]),
            ("better", &["good", "well"]),
            // No base form is known: it stands for itself.
            ("xyzzies", &["xyzzies"]),
            ("s", &["s"]),
        ] {
            let found: Vec<String> = lemmas.of(word).into_iter().collect();
            assert_eq!(found, bases, "{word}");
        }
    }

    #[test]
    fn a_table_that_is_not_one_of_forms_is_refused() {
        let refused = |table: &RecordBatch| Lemmas::read(table, "lemmas").err().unwrap();
        let another = refused(&table(&[["x", "a", "a"]]));
        assert_eq!(
            another.message,
            "row 0 of the input `lemmas` has the part of speech `x`"
        );
        let missing = table(&[["n", "a", "a"]]).project(&[0, 1]).unwrap();
        let missing = refused(&missing);
        assert_eq!(
            missing.message,
            "the input `lemmas` has no column `target` of strings"
        );
        assert_eq!(
            missing.help.unwrap(),
            "connect a dataset stage with name = \"wordnet-lemmas\""
        );
    }
}
