//! The numbers that a metric looks at, layer by layer, with the bounds of its sections in the same units.

use crate::batch::Side;
use crate::layers::Direction;
use crate::objectives::{StateKind, StateTerm};
use crate::victim::LayerStates;
use ndarray::{Array2, CowArray, Ix2, s};

/// What is covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateMetric {
    /// HS: each hidden state, once it is the largest of its vector.
    Hidden,
    /// CS: each cell state, by sections of its tanh.
    Cell,
    /// G: each activation of a gate of an LSTM, by sections; `i`, `f`, `o`, or `n` for the new input.
    Gate(char),
    /// DX: each hidden state, once it is above a threshold after min-max scaling of its layer.
    DeepXplore,
}

impl StateMetric {
    /// All of them.
    pub const ALL: [StateMetric; 7] = [
        StateMetric::Hidden,
        StateMetric::Cell,
        StateMetric::Gate('i'),
        StateMetric::Gate('n'),
        StateMetric::Gate('f'),
        StateMetric::Gate('o'),
        StateMetric::DeepXplore,
    ];

    /// As tables have it.
    pub fn name(self) -> &'static str {
        match self {
            StateMetric::Hidden => "HS",
            StateMetric::Cell => "CS",
            StateMetric::Gate('i') => "G_i",
            StateMetric::Gate('n') => "G_n",
            StateMetric::Gate('f') => "G_f",
            StateMetric::Gate(_) => "G_o",
            StateMetric::DeepXplore => "DX",
        }
    }

    /// The number of sections; none for metrics without.
    pub fn sections(self) -> Option<usize> {
        matches!(self, StateMetric::Cell | StateMetric::Gate(_)).then_some(5)
    }
}

/// What a gate is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GateSource {
    /// The activation of the cell's gate.
    #[default]
    Real,
    /// A quarter of the vector `[x_t; h_(t-1)]` that the cell reads, without weights, as the authors' code has it: the
    /// quarters are i, n, f, o. For layers that read each other, all forward.
    Authors,
}

/// The numbers of one layer.
pub(super) struct Reading<'a> {
    /// (steps, numbers)
    pub values: CowArray<'a, f32, Ix2>,
    /// Where each column comes from.
    pub from: Columns,
}

/// Where the columns of a reading come from.
#[derive(Clone, Copy)]
pub(super) enum Columns {
    /// States of a layer.
    State(usize, StateKind),
    /// Columns of `[x_t; h_(t-1)]` of a layer, starting with the first; `width` is the size of x_t.
    Read {
        layer: usize,
        first: usize,
        input: usize,
    },
}

/// What an objective can add up.
pub(super) enum Source {
    /// A state.
    State(StateTerm),
    /// A number of the vectors that were read.
    Input { step: usize, unit: usize },
    /// A number that is always 0.
    Nothing,
}

impl Columns {
    /// The number in column `unit` at a step, with the weight 1.
    pub fn source(self, step: usize, unit: usize) -> Source {
        let state = |layer, kind, step, unit| {
            Source::State(StateTerm {
                layer,
                kind,
                step,
                unit: Some(unit),
                weight: 1.0,
            })
        };
        match self {
            Columns::State(layer, kind) => state(layer, kind, step, unit),
            Columns::Read {
                layer,
                first,
                input,
            } => match ((first + unit).checked_sub(input), layer, step) {
                (None, 0, _) => Source::Input {
                    step,
                    unit: first + unit,
                },
                (None, ..) => state(layer - 1, StateKind::Hidden, step, first + unit),
                (Some(_), _, 0) => Source::Nothing,
                (Some(unit), ..) => state(layer, StateKind::Hidden, step - 1, unit),
            },
        }
    }
}

/// Bounds between sections.
pub(super) type Bounds = [f64; 4];

/// The sections of recorded coverage. Those of gates are wider at the ends than what boosting aims at.
pub(super) fn recorded(metric: StateMetric, source: GateSource) -> Bounds {
    match metric {
        StateMetric::Gate('n') => read(source, true, [-0.75, -0.2, 0.2, 0.75]),
        StateMetric::Gate(_) => read(source, false, [0.2, 0.4, 0.6, 0.8]),
        _ => [-0.8, -0.2, 0.2, 0.8].map(libm::atanh),
    }
}

/// What boosting stays between: the boundary sections of the definition.
pub(super) fn boosted(metric: StateMetric, source: GateSource) -> [f64; 2] {
    let [low, _, _, high] = match metric {
        StateMetric::Gate('n') => read(source, true, [-0.8, -0.2, 0.2, 0.8]),
        StateMetric::Gate(_) => read(source, false, [0.1, 0.4, 0.6, 0.9]),
        _ => [-0.8, -0.2, 0.2, 0.8].map(libm::atanh),
    };
    [low, high]
}

/// Bounds of activations, in the units of what is read.
fn read(source: GateSource, tanh: bool, bounds: Bounds) -> Bounds {
    match (source, tanh) {
        (GateSource::Real, _) => bounds,
        (GateSource::Authors, true) => bounds.map(libm::atanh),
        (GateSource::Authors, false) => bounds.map(|p| libm::log(p / (1.0 - p))),
    }
}

/// What a metric looks at, layer by layer of what was read; nothing if the layers have no such states. `input`: the
/// vectors that were read.
pub(super) fn readings<'a>(
    metric: StateMetric,
    source: GateSource,
    layers: &'a [LayerStates],
    input: &'a Array2<f32>,
) -> Vec<Reading<'a>> {
    let own = layers.iter().enumerate();
    let own = own.filter(|(_, layer)| layer.side == Side::Source);
    if let (StateMetric::Gate(gate), GateSource::Authors) = (metric, source) {
        return own
            .filter(|(_, layer)| layer.direction == Direction::Forward && layer.c.is_some())
            .map(|(l, _)| quarter(gate, layers, input, l))
            .collect();
    }
    own.filter_map(|(l, layer)| {
        let (values, kind) = match metric {
            StateMetric::Hidden | StateMetric::DeepXplore => (&layer.h, StateKind::Hidden),
            StateMetric::Cell => (layer.c.as_ref()?, StateKind::Cell),
            StateMetric::Gate(gate) => {
                layer.c.as_ref()?;
                // The cell calls its new input `g`.
                let name = if gate == 'n' { 'g' } else { gate };
                let found = layer.gates.iter().find(|(known, _)| *known == name)?;
                (&found.1, StateKind::Gate(name))
            }
        };
        Some(Reading {
            values: values.view().into(),
            from: Columns::State(l, kind),
        })
    })
    .collect()
}

/// The quarter of `[x_t; h_(t-1)]` that stands for a gate.
fn quarter<'a>(
    gate: char,
    layers: &'a [LayerStates],
    input: &'a Array2<f32>,
    layer: usize,
) -> Reading<'a> {
    let x = if layer == 0 {
        input
    } else {
        &layers[layer - 1].h
    };
    let h = &layers[layer].h;
    let width = (x.ncols() + h.ncols()) / 4;
    let first = width * "info".find(gate).unwrap_or_default();
    let mut both = Array2::zeros((h.nrows(), x.ncols() + h.ncols()));
    both.slice_mut(s![.., ..x.ncols()]).assign(x);
    let before = h.slice(s![..h.nrows() - 1, ..]);
    both.slice_mut(s![1.., x.ncols()..]).assign(&before);
    let values = both.slice(s![.., first..first + width]).to_owned();
    Reading {
        values: values.into(),
        from: Columns::Read {
            layer,
            first,
            input: x.ncols(),
        },
    }
}
