//! What the gradient is of: an orientation, a coverage, or the sum of both.

use nn::Stream;
use nn::batch::Side;
use nn::coverage::{Coverage, Guidance, Guided};
use nn::layers::Direction;
use nn::objectives::{Objective, StateKind, StateTerm};
use nn::victim::{LayerStates, Observed};

use super::settings::{Orientation, TestSettings};

/// What coverage looks at in one input.
pub struct Guide<'a> {
    /// How it chooses, if coverage is to rise.
    pub guidance: Option<Guidance>,
    /// What earlier inputs have covered.
    pub covered: &'a Coverage,
    /// Random numbers.
    pub stream: Stream,
}

impl Guide<'_> {
    fn objective(&self, seen: &Observed) -> Option<Guided> {
        let guidance = self.guidance?;
        Some(guidance.objective(&seen.layers, &seen.input, self.covered, self.stream))
    }
}

/// The objective of one input at a position. `cost`: the weight of the summed loss.
pub fn objective(
    settings: &TestSettings,
    seen: &Observed,
    position: usize,
    cost: f64,
    guide: &Guide<'_>,
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
    parts.extend(guide.objective(seen).map(|guided| (1.0, guided.states)));
    Objective::Sum(parts)
}

/// What coverage adds to the gradient at a position where it looks at the input itself.
pub fn add_direct(guide: &Guide<'_>, seen: &Observed, position: usize, gradient: &mut [f32]) {
    let Some(guided) = guide.objective(seen) else {
        return;
    };
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
