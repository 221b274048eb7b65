//! What can be measured on the examples of an attack. Each metric gives one number, or one for
//! each class, pair of classes or count of words.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;

use crate::Failure;

/// The columns of the output `examples` of an attack; all others are axes.
pub const EXAMPLES: &[&str] = &[
    "id",
    "label",
    "predicted_before",
    "predicted_after",
    "success",
    "attacked",
    "words_changed",
    "positions",
    "old",
    "new",
    "original",
    "adversarial",
    "p_before",
    "p_after",
    "forward",
    "backward",
    "wanted",
    "linf",
    "mean_l2",
    "halved",
];

/// What is measured on examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Accuracy,
    AccuracyBefore,
    SuccessRate,
    MissRate,
    Confusion,
    MedianWords,
    MeanWords,
    Words,
    MeanQueries,
}

/// Every metric by its name, with the holes that it fills.
pub const METRICS: &[(&str, Metric, &[&str])] = &[
    ("accuracy", Metric::Accuracy, &[]),
    ("accuracy_before", Metric::AccuracyBefore, &[]),
    ("success_rate", Metric::SuccessRate, &[]),
    ("miss_rate", Metric::MissRate, &["true"]),
    ("confusion", Metric::Confusion, &["true", "predicted"]),
    ("median_words", Metric::MedianWords, &[]),
    ("mean_words", Metric::MeanWords, &[]),
    ("words", Metric::Words, &["words"]),
    ("mean_queries", Metric::MeanQueries, &[]),
];

/// One number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Number {
    /// What it is; none if there was nothing to measure.
    pub value: Option<f64>,
    /// How many rows it was measured on, where that is known.
    pub n: Option<u64>,
    /// Which class, pair of classes or count it is about.
    pub holes: Vec<(&'static str, i64)>,
}

/// What metrics look at, one entry a row.
struct Rows {
    label: Vec<i64>,
    before: Vec<i64>,
    after: Vec<i64>,
    success: Vec<bool>,
    /// Rows that an attack left alone cannot be won.
    attacked: Vec<bool>,
    words: Vec<i64>,
    queries: Vec<i64>,
}

/// Measures the rows at these places of a table of examples.
pub fn measure(
    table: &RecordBatch,
    places: &[usize],
    metric: Metric,
) -> Result<Vec<Number>, Failure> {
    let whole = |name: &str| -> Result<Vec<i64>, Failure> {
        let column = table.column_by_name(name);
        let column = column.and_then(|c| c.as_primitive_opt::<Int64Type>());
        let column = column.ok_or_else(|| Failure::new(format!("no column `{name}`")))?;
        Ok(places.iter().map(|row| column.value(*row)).collect())
    };
    let success = table
        .column_by_name("success")
        .and_then(|c| c.as_boolean_opt());
    let success = success.ok_or_else(|| Failure::new("no column `success`"))?;
    let attacked = table
        .column_by_name("attacked")
        .and_then(|c| c.as_boolean_opt());
    let (forward, backward) = (whole("forward")?, whole("backward")?);
    let rows = Rows {
        label: whole("label")?,
        before: whole("predicted_before")?,
        after: whole("predicted_after")?,
        success: places.iter().map(|row| success.value(*row)).collect(),
        attacked: places
            .iter()
            .map(|row| attacked.is_none_or(|attacked| attacked.value(*row)))
            .collect(),
        words: whole("words_changed")?,
        queries: forward.iter().zip(&backward).map(|(f, b)| f + b).collect(),
    };
    Ok(rows.measure(metric))
}

impl Rows {
    fn measure(&self, metric: Metric) -> Vec<Number> {
        let all = 0..self.label.len();
        let share = |of: &[usize], test: &dyn Fn(usize) -> bool| Number {
            value: (!of.is_empty())
                .then(|| of.iter().filter(|i| test(**i)).count() as f64 / of.len() as f64),
            n: Some(of.len() as u64),
            holes: Vec::new(),
        };
        let places: Vec<usize> = all.clone().collect();
        let right_before = |i: usize| self.before[i] == self.label[i];
        let right_after = |i: usize| self.after[i] == self.label[i];
        let classes = all
            .clone()
            .map(|i| self.label[i].max(self.after[i]))
            .max()
            .unwrap_or(-1);
        match metric {
            Metric::Accuracy => vec![share(&places, &right_after)],
            Metric::AccuracyBefore => vec![share(&places, &right_before)],
            Metric::SuccessRate => {
                let tried = all.filter(|i| right_before(*i) && self.attacked[*i]);
                let tried: Vec<usize> = tried.collect();
                vec![share(&tried, &|i| self.success[i])]
            }
            Metric::MissRate => (0..=classes)
                .map(|class| {
                    let of: Vec<usize> = all.clone().filter(|i| self.label[*i] == class).collect();
                    Number {
                        holes: vec![("true", class)],
                        ..share(&of, &|i| !right_after(i))
                    }
                })
                .collect(),
            Metric::Confusion => (0..=classes)
                .flat_map(|class| (0..=classes).map(move |said| (class, said)))
                .map(|(class, said)| {
                    let hit = |i: &usize| self.label[*i] == class && self.after[*i] == said;
                    Number {
                        value: Some(all.clone().filter(hit).count() as f64),
                        n: Some(places.len() as u64),
                        holes: vec![("true", class), ("predicted", said)],
                    }
                })
                .collect(),
            Metric::MedianWords => vec![middle(self.won())],
            Metric::MeanWords => vec![mean(&self.won())],
            Metric::MeanQueries => vec![mean(&self.queries)],
            Metric::Words => {
                let won = self.won();
                let most = won.iter().copied().max().unwrap_or(0);
                (1..=most)
                    .map(|words| Number {
                        value: Some(won.iter().filter(|w| **w == words).count() as f64),
                        n: Some(won.len() as u64),
                        holes: vec![("words", words)],
                    })
                    .collect()
            }
        }
    }

    /// The words changed in successful attacks.
    fn won(&self) -> Vec<i64> {
        let pairs = self.words.iter().zip(&self.success);
        pairs.filter(|(_, won)| **won).map(|(w, _)| *w).collect()
    }
}

fn mean(numbers: &[i64]) -> Number {
    let n = numbers.len();
    Number {
        value: (n > 0).then(|| numbers.iter().sum::<i64>() as f64 / n as f64),
        n: Some(n as u64),
        holes: Vec::new(),
    }
}

fn middle(mut numbers: Vec<i64>) -> Number {
    numbers.sort_unstable();
    let (n, half) = (numbers.len(), numbers.len() / 2);
    let value = match n {
        0 => None,
        n if n % 2 == 1 => Some(numbers[half] as f64),
        _ => Some((numbers[half - 1] + numbers[half]) as f64 / 2.0),
    };
    Number {
        value,
        n: Some(n as u64),
        holes: Vec::new(),
    }
}
