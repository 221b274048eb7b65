//! Theorem 1 of Hsieh et al. 2019 by Monte Carlo: how much one perturbed key moves the scores of the others.
//!
//! With `s = x^T WQ WK^T y`, `x` uniform on the unit sphere of R^d, and `y` moved by `D` of length `delta`:
//! `E|s' - s| <= C delta / sqrt(d)` and `P(|s' - s| >= eps) <= C delta / (eps sqrt(d))`, `C = |WQ| |WK|` (spectral
//! norms). `WQ` and `WK` are drawn with standard normal entries divided by `sqrt(d)`. `D` is drawn in any direction, or
//! is the worst: the one that `WQ WK^T` stretches most, by power iteration, and for which, if `WQ` and `WK` share it,
//! the ratio tends to `sqrt(2 / pi)`: to see that, `WQ = WK` is the second pair of maps.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Metadata;
use ndarray::{Array1, Array2};
use nn::Stream;
use rayon::prelude::*;
use store::{Params, Value};

use crate::params::settings::{Settings, failure, wrong};
use crate::tables::weights::with_metadata;
use crate::{Failure, Outputs, ParamError, Task};

/// The columns of the output.
pub const COLUMNS: [&str; 6] = [
    "d",
    "maps",
    "perturbation",
    "samples",
    "mean_ratio",
    "tail_ratio",
];

/// Rounds of power iteration: the two largest singular values of a random map are close.
const ROUNDS: usize = 300;

/// The parameter `dims`.
pub fn dims(params: &Params) -> Result<Vec<usize>, ParamError> {
    let list = params.get("dims").and_then(Value::as_list).unwrap_or(&[]);
    let dim = |value: &Value| {
        let dim = value.as_int().filter(|d| (2..=4096).contains(d));
        dim.map(|d| d as usize)
    };
    let dims: Option<Vec<usize>> = list.iter().map(dim).collect();
    dims.filter(|dims| !dims.is_empty()).ok_or_else(|| {
        let message = "`dims` must be a list of dimensions from 2 to 4096".to_owned();
        wrong("dims", message, "write dims = [16, 64, 256, 1024]")
    })
}

/// Two linear maps of a space, and their product.
struct Maps {
    name: &'static str,
    product: Array2<f64>,
    /// The product of their spectral norms.
    bound: f64,
}

/// `d, maps, perturbation, samples, mean_ratio, tail_ratio`.
pub fn run(task: &Task<'_>) -> Result<Outputs, Failure> {
    let samples = Settings(task.params).maybe_int("samples").unwrap_or(10_000);
    let mut rows = Vec::new();
    for dim in dims(task.params).map_err(failure)? {
        for maps in [random(dim), shared(dim)] {
            for worst in [false, true] {
                let name = if worst { "worst" } else { "random" };
                let [mean, tail] = ratios(&maps, dim, worst, samples);
                rows.push((dim, maps.name, name, mean, tail));
            }
        }
    }
    let text = |get: fn(&(usize, &'static str, &'static str, f64, f64)) -> &'static str| {
        Arc::new(StringArray::from_iter_values(rows.iter().map(get))) as ArrayRef
    };
    let float = |get: fn(&(usize, &'static str, &'static str, f64, f64)) -> f64| {
        Arc::new(Float64Array::from_iter_values(rows.iter().map(get))) as ArrayRef
    };
    let dims = rows.iter().map(|row| row.0 as i64);
    let counts = vec![samples as i64; rows.len()];
    let arrays: [ArrayRef; 6] = [
        Arc::new(Int64Array::from_iter_values(dims)),
        text(|row| row.1),
        text(|row| row.2),
        Arc::new(Int64Array::from(counts)),
        float(|row| row.3),
        float(|row| row.4),
    ];
    let columns = COLUMNS.into_iter().zip(arrays).collect();
    let table = with_metadata(columns, Metadata::default());
    Ok(Outputs::from([("bound".to_owned(), table)]))
}

/// Two maps drawn by themselves.
fn random(dim: usize) -> Maps {
    let (query, key) = (drawn(dim, "query"), drawn(dim, "key"));
    Maps {
        name: "random",
        bound: stretch(&query).0 * stretch(&key).0,
        product: query.dot(&key.t()),
    }
}

/// The same map twice.
fn shared(dim: usize) -> Maps {
    let map = drawn(dim, "query");
    Maps {
        name: "shared",
        bound: stretch(&map).0.powi(2),
        product: map.dot(&map.t()),
    }
}

fn drawn(dim: usize, purpose: &str) -> Array2<f64> {
    let stream = Stream::new(dim as u64, purpose);
    let scale = (dim as f64).sqrt();
    let entry = |(row, column): (usize, usize)| stream.normal((row * dim + column) as u64) / scale;
    Array2::from_shape_fn((dim, dim), entry)
}

/// The spectral norm of a map, and the unit vector that it stretches by that much.
fn stretch(map: &Array2<f64>) -> (f64, Array1<f64>) {
    let stream = Stream::new(0, "power iteration");
    let mut v = Array1::from_shape_fn(map.ncols(), |k| stream.normal(k as u64));
    let mut norm = 0.0;
    for _ in 0..ROUNDS {
        v /= v.dot(&v).sqrt();
        let image = map.dot(&v);
        norm = image.dot(&image).sqrt();
        v = map.t().dot(&image);
    }
    v /= v.dot(&v).sqrt();
    (norm, v)
}

/// `E|s' - s| sqrt(d) / (C delta)`, and the largest of `P(|s' - s| >= eps) eps sqrt(d) / (C delta)` over `eps`. Both
/// are at most 1 if the theorem holds. The length of the perturbation cancels out.
fn ratios(maps: &Maps, dim: usize, worst: bool, samples: usize) -> [f64; 2] {
    let worst = worst.then(|| maps.product.dot(&stretch(&maps.product).1));
    let stream = Stream::new(dim as u64, "samples");
    let scale = (dim as f64).sqrt() / maps.bound;
    let sample = |n: usize| {
        let of = stream.item(n as u64);
        let x = unit(&of.item(0), dim);
        let moved = match &worst {
            Some(image) => x.dot(image),
            None => x.dot(&maps.product.dot(&unit(&of.item(1), dim))),
        };
        moved.abs() * scale
    };
    let mut moved: Vec<f64> = (0..samples).into_par_iter().map(sample).collect();
    let mean = moved.iter().sum::<f64>() / samples as f64;
    moved.sort_by(|a, b| b.total_cmp(a));
    let tails = moved.iter().enumerate();
    let tail = tails.map(|(n, eps)| (n + 1) as f64 / samples as f64 * eps);
    [mean, tail.fold(0.0, f64::max)]
}

/// A point of the unit sphere, evenly.
fn unit(stream: &Stream, dim: usize) -> Array1<f64> {
    let v = Array1::from_shape_fn(dim, |k| stream.normal(k as u64));
    let length = v.dot(&v).sqrt();
    v / length
}
