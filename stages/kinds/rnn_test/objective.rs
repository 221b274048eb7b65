//! What the gradient is of: an orientation, a coverage, or the sum of both.

use nn::Stream;
use nn::batch::Side;
use nn::coverage::Coverage;
use nn::layers::Direction;
use nn::objectives::{Objective, StateKind, StateTerm};
use nn::victim::{LayerStates, Observed};

use super::settings::{Orientation, TestSettings};

/// The objective of one input at a position. `cost`: the weight of the summed loss.
pub fn objective(
    settings: &TestSettings,
    seen: &Observed,
    position: usize,
    cost: f64,
    covered: &Coverage,
    stream: Stream,
) -> Objective {
    let mut parts = Vec::new();
    match settings.orientation {
        Orientation::None | Orientation::Random => {}
        Orientation::State => {
            let terms = states(&seen.layers, position, settings.swap_hc);
            parts.push((1.0, Objective::States(terms)));
        }
        Orientation::Cost => parts.push((cost, Objective::CrossEntropy)),
        Orientation::Decision => {
            let step = position.min(seen.losses.len() - 1);
            let last = settings.ranks;
            parts.push((1.0, Objective::Ranks { step, last }));
        }
    }
    if let Some(guidance) = settings.guidance {
        let guided = guidance.objective(&seen.layers, &seen.input, covered, stream);
        parts.push((1.0, guided.states));
    }
    Objective::Sum(parts)
}

/// What coverage adds to the gradient at a position where it looks at the input itself.
pub fn add_direct(
    settings: &TestSettings,
    seen: &Observed,
    position: usize,
    covered: &Coverage,
    stream: Stream,
    gradient: &mut [f32],
) {
    let Some(guidance) = settings.guidance else {
        return;
    };
    let guided = guidance.objective(&seen.layers, &seen.input, covered, stream);
    for (step, unit, weight) in guided.input {
        if step == position {
            gradient[unit] += weight as f32;
        }
    }
}

/// `h_(t-1) + c_t - h_t` of all layers that read the input, or `c_(t-1) + h_t - c_t`.
fn states(layers: &[LayerStates], position: usize, swapped: bool) -> Vec<StateTerm> {
    let (h, c) = match swapped {
        false => (StateKind::Hidden, StateKind::Cell),
        true => (StateKind::Cell, StateKind::Hidden),
    };
    let mut terms = Vec::new();
    let own = layers.iter().enumerate();
    for (layer, states) in own.filter(|(_, states)| states.side == Side::Source) {
        let before = match states.direction {
            Direction::Forward => position.checked_sub(1),
            Direction::Backward => Some(position + 1).filter(|at| *at < states.h.nrows()),
        };
        let mut add = |kind, step, weight| {
            terms.push(StateTerm {
                layer,
                kind,
                step,
                unit: None,
                weight,
            });
        };
        if let Some(before) = before {
            add(h, before, 1.0);
        }
        add(c, position, 1.0);
        add(h, position, -1.0);
    }
    terms
}
