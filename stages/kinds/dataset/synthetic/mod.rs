//! Synthetic data sets, generated from a seed: no network, no files. One list; each entry says what
//! it makes and which options it takes.

mod frequency;
mod options;
mod phrases;
mod relations;
mod reviews_grammar;

pub use options::{Options, Synthetic};

/// Every synthetic data set. To add one: a file, a `mod` line above and an entry here.
pub static SYNTHETIC: &[&Synthetic] = &[
    &frequency::FREQUENCY,
    &reviews_grammar::REVIEWS,
    &relations::RELATIONS,
    &phrases::PHRASES,
];

/// The set of that name.
pub fn find(name: &str) -> Option<&'static Synthetic> {
    SYNTHETIC.iter().copied().find(|set| set.name == name)
}

#[cfg(test)]
mod tests {
    use arrow::record_batch::RecordBatch;
    use store::Value;

    use super::*;
    use crate::kinds::dataset::table::{content, rows_of};

    fn made(seed: u64, options: &[(&str, Value)]) -> RecordBatch {
        let set = find("frequency").unwrap();
        let options = options
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.clone()))
            .collect();
        (set.make)(&Options::new(set, Some(&options)).unwrap(), seed)
    }

    /// If this fails, the set changed and with it every result on it.
    #[test]
    fn frequency_is_pinned() {
        let table = made(
            7,
            &[
                ("train", Value::Int(4)),
                ("dev", Value::Int(0)),
                ("test", Value::Int(2)),
            ],
        );
        assert_eq!(table.num_rows(), 6);
        assert_eq!(
            content(&table, "train").unwrap().to_string(),
            "92a007e1921e8308aaf174d654f99137fa75ff9af733b8bca20e6b88f5c874b3"
        );
    }

    #[test]
    fn more_rows_begin_with_the_same_ones() {
        let few = made(7, &[("train", Value::Int(4))]);
        let many = made(7, &[("train", Value::Int(8))]);
        assert_eq!(rows_of(&many, "train").len(), 8);
        assert_eq!(few.slice(0, 4), many.slice(0, 4));
        assert_ne!(
            few.slice(0, 4),
            made(8, &[("train", Value::Int(4))]).slice(0, 4)
        );
        assert_ne!(
            few.slice(0, 4),
            made(
                7,
                &[("train", Value::Int(4)), ("halves", Value::Bool(true))]
            )
            .slice(0, 4)
        );
    }

    #[test]
    fn options_are_checked() {
        let set = find("frequency").unwrap();
        let message = |key: &str, value| {
            Options::new(set, Some(&[(key.to_owned(), value)].into())).unwrap_err()
        };
        assert_eq!(
            message("typos", Value::Float(0.1)),
            "`frequency` has no option `typos`: it has train, dev, test, halves"
        );
        assert_eq!(
            message("train", Value::Int(-1)),
            "`train` of `frequency` must be a number of rows, at most ten million, not -1"
        );
        assert_eq!(
            message("halves", Value::Int(1)),
            "`halves` of `frequency` must be true or false, not 1"
        );
    }
}
