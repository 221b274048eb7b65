//! Objectives that move elements towards what is not covered.
//!
//! Boosting takes those that are nearest to it in this input; the random strategy those that no input has covered.
//! - HS: `+h` of the smallest above 0.3; at random: of uncovered ones
//! - CS, G: `+` of those just below the highest section, `-` of those just above the lowest, half each; at random:
//!   half of those that are uncovered in the highest section, half of those in the lowest
//! - DX: `+h` of the largest that are not above the threshold; at random: of uncovered ones
//!
//! Where fewer are uncovered than wanted, the random strategy draws the rest from all others, as DeepXplore's code
//! does: without any it would have no gradient, and change nothing from there on.

use super::measure::{Coverage, ends};
use super::readings::{Reading, Source, StateMetric, boosted, readings};
use crate::numeric::Stream;
use crate::objectives::{Objective, StateTerm};
use crate::victim::LayerStates;
use ndarray::Array2;

/// How elements are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Those that are nearest to being covered.
    Boosting,
    /// Those that are not covered, at random.
    Random,
}

/// Which elements to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guidance {
    /// The metric whose coverage is to rise.
    pub metric: StateMetric,
    /// How elements are chosen.
    pub strategy: Strategy,
    /// How many.
    pub elements: usize,
    /// Whether the random strategy draws covered ones where too few are uncovered.
    pub refill: bool,
}

/// An objective on states, and on the vectors that were read.
#[derive(Clone, Debug, PartialEq)]
pub struct Guided {
    /// On states.
    pub states: Objective,
    /// (step, unit, weight) of the vectors that were read: their gradient is the weight itself.
    pub input: Vec<(usize, usize, f64)>,
}

/// What HS boosts is above this.
const ACTIVE: f64 = 0.3;

/// The random numbers of covered elements.
const COVERED: u64 = 0;

/// An element of a metric: its number, its place among all, and where it comes from.
struct Element {
    value: f64,
    at: usize,
    reading: usize,
    step: usize,
    unit: usize,
}

impl Guidance {
    /// The objective for an input that went through these states.
    pub fn objective(
        &self,
        layers: &[LayerStates],
        input: &Array2<f32>,
        covered: &Coverage,
        stream: Stream,
    ) -> Guided {
        let source = covered.spec().gate_source;
        let readings = readings(self.metric, source, layers, input);
        let elements = elements(&readings, covered.spec().steps);
        let chosen = match self.strategy {
            Strategy::Boosting => self.boosted(&elements, &readings, covered),
            Strategy::Random => self.uncovered(&elements, covered, stream),
        };
        let (mut terms, mut input) = (Vec::new(), Vec::new());
        for (n, weight) in chosen {
            let element = &elements[n];
            let from = readings[element.reading].from;
            match from.source(element.step, element.unit) {
                Source::State(term) => terms.push(StateTerm { weight, ..term }),
                Source::Input { step, unit } => input.push((step, unit, weight)),
                Source::Nothing => {}
            }
        }
        Guided {
            states: Objective::States(terms),
            input,
        }
    }

    /// The elements that are nearest to being covered, with their weights.
    fn boosted(
        &self,
        elements: &[Element],
        readings: &[Reading<'_>],
        covered: &Coverage,
    ) -> Vec<(usize, f64)> {
        let spec = covered.spec();
        match self.metric {
            StateMetric::Hidden => first(elements, self.elements, 1.0, |e| {
                (e.value > ACTIVE).then_some(e.value)
            }),
            StateMetric::DeepXplore => {
                let ends: Vec<[f64; 2]> = readings.iter().map(ends).collect();
                let below = |e: &Element| {
                    let [least, most] = ends[e.reading];
                    let scaled = (e.value - least) / (most - least);
                    (scaled <= spec.threshold).then_some(-scaled)
                };
                first(elements, self.elements, 1.0, below)
            }
            _ => {
                let [low, high] = boosted(self.metric, spec.gate_source);
                let half = self.elements / 2;
                let above = |e: &Element| (e.value > low).then_some(e.value);
                let below = |e: &Element| (e.value < high).then_some(-e.value);
                let mut chosen = first(elements, self.elements - half, 1.0, below);
                chosen.extend(first(elements, half, -1.0, above));
                chosen
            }
        }
    }

    /// Elements that are not covered, and covered ones where those are too few, with their weights.
    fn uncovered(
        &self,
        elements: &[Element],
        covered: &Coverage,
        stream: Stream,
    ) -> Vec<(usize, f64)> {
        let drawn = |section: Option<usize>, count: usize, weight: f64, stream: Stream| {
            let open = |n: &usize| !covered.covers(self.metric, section, elements[*n].at);
            let (mut drawn, mut rest): (Vec<usize>, Vec<usize>) =
                (0..elements.len()).partition(open);
            stream.shuffle(&mut drawn);
            if self.refill && drawn.len() < count {
                stream.item(COVERED).shuffle(&mut rest);
                drawn.extend(rest);
            }
            drawn.truncate(count);
            drawn
                .into_iter()
                .map(|n| (n, weight))
                .collect::<Vec<(usize, f64)>>()
        };
        let Some(sections) = self.metric.sections() else {
            return drawn(None, self.elements, 1.0, stream);
        };
        let half = self.elements / 2;
        let most = drawn(
            Some(sections - 1),
            self.elements - half,
            1.0,
            stream.item(0),
        );
        let least = drawn(Some(0), half, -1.0, stream.item(1));
        [most, least].concat()
    }
}

/// All elements, layer by layer, step by step: as coverage counts them.
fn elements(readings: &[Reading<'_>], steps: usize) -> Vec<Element> {
    let (mut all, mut from) = (Vec::new(), 0);
    for (n, reading) in readings.iter().enumerate() {
        let width = reading.values.ncols();
        let rows = reading.values.rows().into_iter().take(steps);
        for (at, value) in rows.flatten().enumerate() {
            all.push(Element {
                value: f64::from(*value),
                at: from + at,
                reading: n,
                step: at / width,
                unit: at % width,
            });
        }
        from += steps * width;
    }
    all
}

/// The first `count` elements by a rank, where they have one; the first of equals.
fn first(
    elements: &[Element],
    count: usize,
    weight: f64,
    rank: impl Fn(&Element) -> Option<f64>,
) -> Vec<(usize, f64)> {
    let ranked = elements.iter().enumerate();
    let mut ranked: Vec<(f64, usize)> = ranked
        .filter_map(|(n, element)| Some((rank(element)?, n)))
        .collect();
    let order = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if count < ranked.len() && count > 0 {
        ranked.select_nth_unstable_by(count - 1, order);
    }
    ranked.truncate(count);
    ranked.sort_unstable_by(order);
    ranked.into_iter().map(|(_, n)| (n, weight)).collect()
}
