//! Words that mean the same: pairs of a word and its synonym, the nearest first.
//!
//! The table is the data set `counterfit`, `wordnet` or `ppdb`, or one with the same columns. Knows nothing of attacks.

use std::collections::{BTreeMap, HashMap};

use arrow::array::{AsArray, StringArray};
use arrow::record_batch::RecordBatch;

use crate::Failure;

/// Synonyms by word, in the order of the table.
pub struct Synonyms {
    of: HashMap<String, Vec<String>>,
}

impl Synonyms {
    /// From the columns `source` and `target` of an input. Rows with another `relation` than `synonym` are left out.
    pub fn read(table: &RecordBatch, port: &str) -> Result<Synonyms, Failure> {
        let column = |name: &str| {
            let column = table.column_by_name(name);
            column.and_then(|column| column.as_string_opt::<i32>())
        };
        let needed = |name: &str| {
            column(name).ok_or_else(|| {
                Failure::new(format!(
                    "the input `{port}` has no column `{name}` of strings"
                ))
                .help("connect a dataset stage with name = \"counterfit\"")
            })
        };
        let (source, target) = (needed("source")?, needed("target")?);
        let relation = column("relation");
        let mut of: HashMap<String, Vec<String>> = HashMap::new();
        for row in 0..table.num_rows() {
            if relation.is_none_or(|relation| relation.value(row) == "synonym") {
                let synonyms = of.entry(source.value(row).to_owned()).or_default();
                synonyms.push(target.value(row).to_owned());
            }
        }
        Ok(Synonyms { of })
    }

    /// The same by the ids of a vocabulary: words and synonyms that it lacks are left out.
    pub fn by_id(&self, words: &StringArray) -> BTreeMap<u32, Vec<u32>> {
        let ids = words.iter().zip(0_u32..);
        let ids: HashMap<&str, u32> = ids.filter_map(|(word, id)| Some((word?, id))).collect();
        let mut by_id = BTreeMap::new();
        for (word, id) in &ids {
            let synonyms = self.of.get(*word).into_iter().flatten();
            let known: Vec<u32> = synonyms
                .filter_map(|s| ids.get(s.as_str()).copied())
                .collect();
            if !known.is_empty() {
                by_id.insert(*id, known);
            }
        }
        by_id
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::ArrayRef;

    use super::*;
    use crate::tables::weights::with_metadata;

    fn pairs(rows: &[[&str; 3]]) -> RecordBatch {
        let column = |k: usize| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row[k])))
        };
        let columns = ["relation", "source", "target"].into_iter().enumerate();
        let columns = columns.map(|(k, name)| (name, column(k))).collect();
        with_metadata(columns, Default::default())
    }

    #[test]
    fn synonyms_keep_their_order_and_antonyms_are_none() {
        let table = pairs(&[
            ["synonym", "film", "movie"],
            ["antonym", "film", "book"],
            ["synonym", "film", "cinema"],
            ["synonym", "film", "unheard"],
            ["synonym", "unheard", "film"],
        ]);
        let words = StringArray::from(vec!["book", "cinema", "film", "movie"]);
        let found = Synonyms::read(&table, "synonyms").unwrap().by_id(&words);
        assert_eq!(found, BTreeMap::from([(2, vec![3, 1])]));
    }

    #[test]
    fn a_table_without_pairs_is_refused() {
        let error = Synonyms::read(&pairs(&[]).project(&[0, 1]).unwrap(), "synonyms");
        let message = error.err().unwrap().message;
        assert_eq!(
            message,
            "the input `synonyms` has no column `target` of strings"
        );
    }
}
