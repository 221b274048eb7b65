//! Two principal components of texts as bags of words, and how well a straight line on them
//! tells the classes apart.
//!
//! `X` is (texts, words), 1 where a word occurs, columns centred without writing zeros out:
//! `(X - 1 m') v = X v - 1 (m . v)`. The line is Fisher's: the nearest class mean, distances measured
//! by the covariance that the classes share.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use nn::batch::Sequence;

use super::cells::tidy;
use super::components::{Centred, ROUNDS, two_components};
use crate::params::settings::Settings;
use crate::tables::results::ResultRow;
use crate::tables::sequences;
use crate::tables::sequences::{Form, SequenceTable};
use crate::tables::weights::with_metadata;
use crate::{Failure, Outputs, Task};

/// Words of each text, each once and in order.
struct Bags {
    rows: Vec<Vec<u32>>,
    mean: Vec<f64>,
}

/// Projects the texts of a split.
pub fn run(task: &Task<'_>) -> Result<Outputs, Failure> {
    let settings = Settings(task.params);
    let rows = SequenceTable::read(&task.inputs["rows"])?;
    let Form::Tokens {
        vocabulary, pad, ..
    } = rows.form
    else {
        return Err(Failure::new("pca reads tokens").help("tokenize with another scheme"));
    };
    let split = settings.text("split").unwrap_or("train");
    let places = rows.split(split);
    if places.len() < 3 {
        return Err(rows.no_split(split, "split"));
    }
    let examples = rows.examples(&places)?;
    let bag = |e: &nn::batch::Example| match &e.input {
        Sequence::Tokens(ids) => {
            let mut ids = ids.clone();
            ids.sort_unstable();
            ids.dedup();
            ids.retain(|id| *id != pad);
            ids
        }
        _ => Vec::new(),
    };
    let bags = Bags::new(examples.iter().map(bag).collect(), vocabulary);
    let points = bags.components(|done| {
        task.watch.progress(done, ROUNDS as u64);
        !task.watch.stopped()
    });
    let points = points.ok_or_else(Failure::stopped)?;
    let labels: Vec<u32> = places
        .iter()
        .map(|row| rows.label(*row).unwrap_or_default())
        .collect();
    let accuracy = nearest_mean(&points, &labels);
    let result = ResultRow {
        table: settings.text("table").unwrap_or("pca").to_owned(),
        row: "pca".to_owned(),
        col: "probe_accuracy".to_owned(),
        seed: None,
        value: Some(accuracy),
        n: Some(points.len() as u64),
    };
    let ids = StringArray::from_iter_values(places.iter().map(|row| rows.ids[*row].as_str()));
    let part = |k: usize| Float64Array::from_iter_values(points.iter().map(|p| p[k]));
    let columns: Vec<(&str, ArrayRef)> = vec![
        (sequences::ID, Arc::new(ids)),
        (
            sequences::LABEL,
            Arc::new(Int64Array::from_iter_values(
                labels.iter().map(|l| i64::from(*l)),
            )),
        ),
        ("pc1", Arc::new(part(0))),
        ("pc2", Arc::new(part(1))),
    ];
    Ok([
        (
            "results".to_owned(),
            tidy(task.params, &[result], &Default::default()),
        ),
        (
            "scatter".to_owned(),
            with_metadata(columns, Metadata::default()),
        ),
    ]
    .into())
}

impl Bags {
    fn new(rows: Vec<Vec<u32>>, vocabulary: usize) -> Bags {
        let mut mean = vec![0.0; vocabulary];
        for row in &rows {
            row.iter().for_each(|word| mean[*word as usize] += 1.0);
        }
        let n = rows.len() as f64;
        mean.iter_mut().for_each(|m| *m /= n);
        Bags { rows, mean }
    }

    /// `(X - 1 m') v`
    fn times(&self, v: &[f64]) -> Vec<f64> {
        let shift: f64 = self.mean.iter().zip(v).map(|(m, v)| m * v).sum();
        let product = |row: &Vec<u32>| row.iter().map(|w| v[*w as usize]).sum::<f64>() - shift;
        self.rows.iter().map(product).collect()
    }

    /// `(X - 1 m')' u`
    fn transposed(&self, u: &[f64]) -> Vec<f64> {
        let mut v = vec![0.0; self.mean.len()];
        for (row, u) in self.rows.iter().zip(u) {
            row.iter().for_each(|w| v[*w as usize] += u);
        }
        let sum: f64 = u.iter().sum();
        v.iter_mut()
            .zip(&self.mean)
            .for_each(|(v, m)| *v -= sum * m);
        v
    }

    /// The texts on the first two components. `go_on` is asked after every round.
    fn components(&self, go_on: impl Fn(u64) -> bool) -> Option<Vec<[f64; 2]>> {
        let centred = Centred {
            width: self.mean.len(),
            times: &|v| self.times(v),
            transposed: &|u| self.transposed(u),
        };
        two_components(&centred, go_on)
    }
}

/// The share of points whose nearest class mean is their own class's.
fn nearest_mean(points: &[[f64; 2]], labels: &[u32]) -> f64 {
    let classes = labels.iter().max().map_or(0, |most| *most as usize + 1);
    let mut means = vec![([0.0; 2], 0.0); classes];
    for (p, label) in points.iter().zip(labels) {
        let (sum, n) = &mut means[*label as usize];
        (sum[0], sum[1], *n) = (sum[0] + p[0], sum[1] + p[1], *n + 1.0);
    }
    let means: Vec<Option<[f64; 2]>> = means
        .iter()
        .map(|(sum, n)| (*n > 0.0).then(|| [sum[0] / n, sum[1] / n]))
        .collect();
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (p, label) in points.iter().zip(labels) {
        if let Some(m) = means[*label as usize] {
            let (x, y) = (p[0] - m[0], p[1] - m[1]);
            (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
        }
    }
    let distance = |p: &[f64; 2], m: [f64; 2]| {
        let (x, y) = (p[0] - m[0], p[1] - m[1]);
        // The inverse of the covariance; its determinant is the same for all.
        yy * x * x - 2.0 * xy * x * y + xx * y * y
    };
    let right = points.iter().zip(labels).filter(|(p, label)| {
        let nearest = means
            .iter()
            .enumerate()
            .filter_map(|(class, m)| m.map(|m| (distance(p, m), class)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        nearest.is_some_and(|(_, class)| class == **label as usize)
    });
    right.count() as f64 / points.len() as f64
}
