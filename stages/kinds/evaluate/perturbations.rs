//! Perturbations of embeddings on two principal components, and which other perturbation each is nearest to (RNN-Test,
//! figure 8).
//!
//! A perturbation is `point - embedding(old)` of a row of `generated`, scaled to length 1: lengths differ by a factor of
//! a million between methods, and would be all that is seen. The paper's figure is a t-SNE; the nearest neighbours,
//! which t-SNE is about, are here exact, by cosine, among the perturbations of other inputs.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, StringArray};
use arrow::datatypes::Metadata;
use ndarray::{Array2, Axis};
use nn::numeric::dot;
use rayon::prelude::*;
use store::Params;

use super::components::{Centred, two_components};
use crate::models::loaded::Loaded;
use crate::params::settings::{Settings, failure, wrong};
use crate::tables::generated::{self, Generated};
use crate::tables::weights::with_metadata;
use crate::{Failure, Outputs, ParamError, Task};

/// The columns of the output, beside the one that `by` names.
pub const COLUMNS: [&str; 4] = [generated::ID, "pc1", "pc2", "nearest"];

/// Perturbations that are looked at by default: every one is compared with every other.
const SAMPLES: usize = 2000;

/// The parameter `by`: the column of `generated` that names groups.
pub fn by(params: &Params) -> Result<&str, ParamError> {
    let named = Settings(params).text("by").filter(|by| !by.is_empty());
    named.ok_or_else(|| {
        let message = "measure = \"perturbations\" needs `by`".to_owned();
        let help = "name the axis that the stage collects with `over`: by = \"method\"";
        wrong("by", message, help)
    })
}

/// One row of the output.
struct Perturbation {
    id: String,
    group: String,
    direction: Vec<f32>,
}

/// `id, BY, pc1, pc2, nearest`.
pub fn run(task: &Task<'_>) -> Result<Outputs, Failure> {
    let settings = Settings(task.params);
    let by = by(task.params).map_err(failure)?;
    let most = settings.maybe_int("samples").unwrap_or(SAMPLES);
    let rows = perturbations(task, by)?;
    let rows = evenly(rows, most);
    let groups = rows.iter().map(|row| row.group.as_str());
    if rows.len() < 3 {
        let found = rows.len();
        return Err(
            Failure::new(format!("{found} perturbations are too few to be projected"))
                .help("connect the output `generated` of rnn-test stages that follow a gradient"),
        );
    }
    let width = rows[0].direction.len();
    let flat: Vec<f32> = rows
        .iter()
        .flat_map(|row| &row.direction)
        .copied()
        .collect();
    let all = Array2::from_shape_vec((rows.len(), width), flat)
        .map_err(|_| Failure::new("the points of `generated` differ in length"))?;
    let points = components(&all, |_| !task.watch.stopped());
    let points = points.ok_or_else(Failure::stopped)?;
    let nearest: Vec<Option<&str>> = (0..rows.len())
        .into_par_iter()
        .map(|n| nearest(&rows, &all, n))
        .collect();
    let part = |k: usize| Float64Array::from_iter_values(points.iter().map(|p| p[k]));
    let ids = rows.iter().map(|row| row.id.as_str());
    let columns: Vec<(&str, ArrayRef)> = vec![
        (COLUMNS[0], Arc::new(StringArray::from_iter_values(ids))),
        (by, Arc::new(StringArray::from_iter_values(groups))),
        (COLUMNS[1], Arc::new(part(0))),
        (COLUMNS[2], Arc::new(part(1))),
        (COLUMNS[3], Arc::new(StringArray::from(nearest))),
    ];
    let scatter = with_metadata(columns, Metadata::default());
    Ok([("scatter".to_owned(), scatter)].into())
}

/// The rows on two components of their directions.
fn components(all: &Array2<f32>, go_on: impl Fn(u64) -> bool) -> Option<Vec<[f64; 2]>> {
    let mut centred = all.mapv(f64::from);
    let mean = centred.mean_axis(Axis(0))?;
    centred -= &mean;
    let width = centred.ncols();
    let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let times = |v: &[f64]| -> Vec<f64> {
        let rows = centred.rows().into_iter();
        rows.map(|row| sum(row.as_slice().expect("rows are contiguous"), v))
            .collect()
    };
    let transposed = |u: &[f64]| -> Vec<f64> {
        let mut product = vec![0.0; width];
        for (row, u) in centred.rows().into_iter().zip(u) {
            product.iter_mut().zip(row).for_each(|(p, x)| *p += u * x);
        }
        product
    };
    let centred = Centred {
        width,
        times: &times,
        transposed: &transposed,
    };
    two_components(&centred, go_on)
}

/// Directions of all rows that were changed along a gradient.
fn perturbations(task: &Task<'_>, by: &str) -> Result<Vec<Perturbation>, Failure> {
    let loaded = Loaded::open(&task.inputs["victim"], None)?;
    let network = loaded.network();
    let (model, params) = network.ok_or_else(|| Failure::new("the victim is not a network"))?;
    let span = model.layout().find("embedding");
    let span = span.ok_or_else(|| Failure::new("the victim has no embeddings"))?;
    let embeddings = params.view(span);
    let table = &task.inputs["generated"];
    let groups = table
        .column_by_name(by)
        .and_then(|c| c.as_string_opt::<i32>());
    let groups = groups.ok_or_else(|| {
        Failure::new(format!(
            "the input `generated` has no column of strings `{by}`"
        ))
        .help("name an axis that the stage collects with `over`")
        .at("by")
    })?;
    let generated = Generated(table);
    let direction = |n: usize| {
        let point = generated.floats(generated::POINT, n)?;
        let position = usize::try_from(generated.int(generated::POSITION, n)?).ok()?;
        let old = *generated.tokens(generated::ORIGINAL, n)?.get(position)?;
        let known = (old as usize) < embeddings.nrows();
        let from = known.then(|| embeddings.row(old as usize))?;
        let moved: Vec<f32> = point.iter().zip(&from).map(|(p, e)| p - e).collect();
        let length = dot(&moved, &moved).sqrt();
        let whole = moved.len() == from.len() && length.is_finite() && length > 0.0;
        whole.then(|| moved.iter().map(|d| d / length).collect::<Vec<f32>>())
    };
    let row = |n: usize| {
        Some(Perturbation {
            id: generated.text(generated::ID, n)?,
            group: groups.value(n).to_owned(),
            direction: direction(n)?,
        })
    };
    Ok((0..table.num_rows()).filter_map(row).collect())
}

/// At most so many of them, evenly sampled.
fn evenly(rows: Vec<Perturbation>, most: usize) -> Vec<Perturbation> {
    let total = rows.len();
    let kept = |n: usize| total <= most || (n * most) / total != ((n + 1) * most) / total;
    let numbered = rows.into_iter().enumerate();
    numbered
        .filter(|(n, _)| kept(*n))
        .map(|(_, row)| row)
        .collect()
}

/// The group of the nearest perturbation of another input, by cosine; the first of equals.
fn nearest<'r>(rows: &'r [Perturbation], all: &Array2<f32>, n: usize) -> Option<&'r str> {
    let own = &rows[n].direction;
    let mut best: Option<(f32, usize)> = None;
    for (other, row) in all.axis_iter(Axis(0)).enumerate() {
        if rows[other].id == rows[n].id {
            continue;
        }
        let cosine = dot(own, row.to_slice().expect("rows are contiguous"));
        if best.is_none_or(|(most, _)| cosine > most) {
            best = Some((cosine, other));
        }
    }
    best.map(|(_, other)| rows[other].group.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, group: &str, angle: f64) -> Perturbation {
        Perturbation {
            id: id.to_owned(),
            group: group.to_owned(),
            direction: vec![angle.cos() as f32, angle.sin() as f32, 0.0],
        }
    }

    fn stacked(rows: &[Perturbation]) -> Array2<f32> {
        let flat: Vec<f32> = rows.iter().flat_map(|r| &r.direction).copied().collect();
        Array2::from_shape_vec((rows.len(), 3), flat).unwrap()
    }

    #[test]
    fn the_nearest_is_of_another_input_and_the_first_of_equals() {
        let rows = [
            row("a", "state", 0.0),
            row("a", "cost", 0.01),
            row("b", "decision", 0.3),
            row("c", "cost", 0.3),
            row("d", "state", 3.0),
        ];
        let all = stacked(&rows);
        let found: Vec<_> = (0..5).map(|n| nearest(&rows, &all, n)).collect();
        let wanted = ["decision", "decision", "cost", "decision", "decision"];
        assert_eq!(found, wanted.map(Some));
        let alone = &rows[..2];
        assert_eq!(nearest(alone, &stacked(alone), 0), None);
    }

    #[test]
    fn directions_in_a_plane_keep_their_distances() {
        let angles: Vec<f64> = (0..40).map(|n| f64::from(n) * 0.05).collect();
        let rows: Vec<Perturbation> = angles.iter().map(|a| row("x", "g", *a)).collect();
        let points = components(&stacked(&rows), |_| true).unwrap();
        for (i, j) in [(0, 39), (3, 20), (10, 11)] {
            let [x, y] = [0, 1].map(|k: usize| points[i][k] - points[j][k]);
            let chord = 2.0 * ((angles[i] - angles[j]).abs() / 2.0).sin();
            assert!((x.hypot(y) - chord).abs() < 1e-5, "{i} {j}");
        }
        assert_eq!(
            components(&stacked(&rows), |_| false),
            None,
            "it can be stopped"
        );
    }

    #[test]
    fn samples_are_even() {
        let rows = || (0..10).map(|n| row(&n.to_string(), "g", 0.0)).collect();
        let ids = |most| evenly(rows(), most).into_iter().map(|r| r.id);
        assert_eq!(ids(10).count(), 10);
        assert_eq!(ids(4).collect::<Vec<_>>(), ["2", "4", "7", "9"]);
    }
}
