//! Which elements inputs have covered so far, by metric and section.
//!
//! Marks are only ever set, so coverage never falls, and two halves of the inputs add up to the same as all of them
//! one after the other. Its memory depends on the network and the number of steps, not on the number of inputs.

use super::readings::{GateSource, Reading, StateMetric, readings, recorded};
use crate::error::{Result, same};
use crate::victim::LayerStates;
use ndarray::Array2;

/// What counts as covered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoverageSpec {
    /// Steps that count; later ones are not looked at.
    pub steps: usize,
    /// HS: the share of a vector that counts as its maximum; always at least one element.
    pub top_fraction: f64,
    /// DX: what a scaled state must be above.
    pub threshold: f64,
    /// G: what a gate is.
    pub gate_source: GateSource,
}

/// How much one metric has covered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoverageValue {
    /// The metric.
    pub metric: StateMetric,
    /// Its section, if it has sections.
    pub section: Option<usize>,
    /// Covered elements by all elements.
    pub value: f64,
}

/// The elements of one metric and section, layer by layer, step by step.
#[derive(Clone, Debug, PartialEq)]
struct Marks {
    metric: StateMetric,
    section: Option<usize>,
    covered: Vec<bool>,
    count: usize,
}

impl Marks {
    fn mark(&mut self, at: usize) {
        self.count += usize::from(!self.covered[at]);
        self.covered[at] = true;
    }
}

/// What inputs have covered so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    spec: CoverageSpec,
    /// Empty before the first input: its layers say how many elements there are.
    marks: Vec<Marks>,
}

impl Coverage {
    /// Nothing is covered yet.
    pub fn new(spec: CoverageSpec) -> Self {
        let marks = Vec::new();
        Coverage { spec, marks }
    }

    /// What counts as covered.
    pub fn spec(&self) -> &CoverageSpec {
        &self.spec
    }

    /// Adds an input by the states it went through and the vectors that were read.
    pub fn record(&mut self, layers: &[LayerStates], input: &Array2<f32>) -> Result<()> {
        let spec = self.spec;
        if self.marks.is_empty() {
            self.marks = fresh(&spec, layers, input);
        }
        for metric in StateMetric::ALL {
            let all = readings(metric, spec.gate_source, layers, input);
            let own = self.marks.iter_mut().filter(|m| m.metric == metric);
            let mut own: Vec<&mut Marks> = own.collect();
            let Some(first) = own.first() else { continue };
            same("elements", first.covered.len(), elements(&spec, &all))?;
            let mut from = 0;
            for reading in &all {
                match metric {
                    StateMetric::Hidden => largest(&spec, reading, from, own[0]),
                    StateMetric::DeepXplore => above(&spec, reading, from, own[0]),
                    _ => sections(&spec, metric, reading, from, &mut own),
                }
                from += spec.steps * reading.values.ncols();
            }
        }
        Ok(())
    }

    /// Adds what other inputs have covered.
    pub fn merge(&mut self, other: &Coverage) -> Result<()> {
        if self.marks.is_empty() {
            self.marks.clone_from(&other.marks);
            return Ok(());
        }
        for (own, more) in self.marks.iter_mut().zip(&other.marks) {
            same("elements", own.covered.len(), more.covered.len())?;
            let new = (0..more.covered.len()).filter(|at| more.covered[*at]);
            new.for_each(|at| own.mark(at));
        }
        Ok(())
    }

    /// How much is covered, by metric and section.
    pub fn values(&self) -> Vec<CoverageValue> {
        let value = |marks: &Marks| CoverageValue {
            metric: marks.metric,
            section: marks.section,
            value: marks.count as f64 / marks.covered.len() as f64,
        };
        self.marks.iter().map(value).collect()
    }

    /// Whether an element is covered: the `at`-th of a metric, layer by layer, step by step.
    pub(super) fn covers(&self, metric: StateMetric, section: Option<usize>, at: usize) -> bool {
        let own = |marks: &&Marks| marks.metric == metric && marks.section == section;
        let marks = self.marks.iter().find(own);
        marks.is_some_and(|marks| marks.covered.get(at) == Some(&true))
    }
}

/// Elements of all layers.
fn elements(spec: &CoverageSpec, readings: &[Reading<'_>]) -> usize {
    let widths = readings.iter().map(|reading| reading.values.ncols());
    widths.sum::<usize>() * spec.steps
}

/// No marks, for the metrics that the layers have.
fn fresh(spec: &CoverageSpec, layers: &[LayerStates], input: &Array2<f32>) -> Vec<Marks> {
    let mut all = Vec::new();
    for metric in StateMetric::ALL {
        let readings = readings(metric, spec.gate_source, layers, input);
        let size = elements(spec, &readings);
        let sections: Vec<Option<usize>> = match metric.sections() {
            _ if size == 0 => Vec::new(),
            None => vec![None],
            Some(sections) => (0..sections).map(Some).collect(),
        };
        all.extend(sections.into_iter().map(|section| Marks {
            metric,
            section,
            covered: vec![false; size],
            count: 0,
        }));
    }
    all
}

/// HS: the largest elements of each vector; the first of equals.
fn largest(spec: &CoverageSpec, reading: &Reading<'_>, from: usize, marks: &mut Marks) {
    let width = reading.values.ncols();
    let count = (spec.top_fraction * width as f64) as usize;
    for (step, row) in reading
        .values
        .rows()
        .into_iter()
        .take(spec.steps)
        .enumerate()
    {
        let mut order: Vec<usize> = (0..width).collect();
        let descending = |a: &usize, b: &usize| row[*b].total_cmp(&row[*a]).then(a.cmp(b));
        if count > 1 {
            order.sort_unstable_by(descending);
        } else if let Some(best) = order.iter().copied().min_by(descending) {
            order = vec![best];
        }
        for unit in order.into_iter().take(count.max(1)) {
            marks.mark(from + step * width + unit);
        }
    }
}

/// DX: elements above the threshold, scaled by the smallest and the largest of the layer.
fn above(spec: &CoverageSpec, reading: &Reading<'_>, from: usize, marks: &mut Marks) {
    let [least, most] = ends(reading);
    let bound = least + spec.threshold * (most - least);
    let rows = reading.values.rows().into_iter().take(spec.steps);
    for (at, value) in rows.flatten().enumerate() {
        if f64::from(*value) > bound {
            marks.mark(from + at);
        }
    }
}

/// The smallest and the largest number.
pub(super) fn ends(reading: &Reading<'_>) -> [f64; 2] {
    let all = reading.values.iter().map(|value| f64::from(*value));
    all.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], x| {
        [least.min(x), most.max(x)]
    })
}

/// CS and G: the section that each element fell into.
fn sections(
    spec: &CoverageSpec,
    metric: StateMetric,
    reading: &Reading<'_>,
    from: usize,
    marks: &mut [&mut Marks],
) {
    let bounds = recorded(metric, spec.gate_source);
    let rows = reading.values.rows().into_iter().take(spec.steps);
    for (at, value) in rows.flatten().enumerate() {
        let section = bounds.iter().filter(|b| f64::from(*value) > **b).count();
        marks[section].mark(from + at);
    }
}
