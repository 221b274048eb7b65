//! Claims about coverage of recurrent states, and about objectives that raise it.

use std::collections::BTreeSet;

use nn::batch::{Example, Sequence, Target};
use nn::coverage::{Coverage, CoverageSpec, GateSource, Guidance, StateMetric, Strategy};
use nn::models::{LanguageSpec, Model};
use nn::objectives::Objective;
use nn::victim::{Neural, Victim};
use nn::{Stream, autodiff::Params};

fn language() -> (Model, Params<f32>) {
    let spec = LanguageSpec {
        vocabulary: 20,
        dim: 6,
        units: 6,
        layers: 2,
        dropout: 0.0,
        tie_layers: false,
        init: 0.9,
    };
    let model = Model::new(&spec).unwrap();
    let params = model.init(5);
    (model, params)
}

fn windows(count: u64) -> Vec<Example> {
    let stream = Stream::new(3, "windows");
    let window = |n: u64| {
        let ids: Vec<u32> = (0..8).map(|i| stream.item(n).below(i, 20) as u32).collect();
        Example {
            input: Sequence::Tokens(ids[..7].to_vec()),
            target: Target::Tokens(ids[1..].to_vec()),
        }
    };
    (0..count).map(window).collect()
}

const SPEC: CoverageSpec = CoverageSpec {
    steps: 7,
    top_fraction: 0.0,
    threshold: 0.5,
    gate_source: GateSource::Real,
};

fn covered(spec: CoverageSpec, items: &[Example]) -> Coverage {
    let (model, params) = language();
    let victim = Neural::new(&model, &params).unwrap();
    let mut coverage = Coverage::new(spec);
    for item in victim.observe(&items.iter().collect::<Vec<_>>()).unwrap() {
        coverage.record(&item.layers, &item.input).unwrap();
    }
    coverage
}

fn value(coverage: &Coverage, metric: StateMetric, section: Option<usize>) -> f64 {
    let values = coverage.values();
    let found = values
        .iter()
        .find(|v| (v.metric, v.section) == (metric, section));
    found.unwrap().value
}

#[test]
fn one_input_covers_what_can_be_counted_by_hand() {
    let one = covered(SPEC, &windows(1));
    // One of six units is the largest at each of 7 steps of 2 layers.
    assert_eq!(value(&one, StateMetric::Hidden, None), 14.0 / 84.0);
    let metrics = [
        StateMetric::Cell,
        StateMetric::Gate('i'),
        StateMetric::Gate('n'),
    ];
    for metric in metrics {
        // Each element is in one section.
        let sum: f64 = (0..5).map(|s| value(&one, metric, Some(s))).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{metric:?}");
    }
    let two = CoverageSpec {
        top_fraction: 0.34,
        ..SPEC
    };
    assert_eq!(
        value(&covered(two, &windows(1)), StateMetric::Hidden, None),
        28.0 / 84.0
    );
    let strict = CoverageSpec {
        threshold: 0.9,
        ..SPEC
    };
    let strict = value(&covered(strict, &windows(1)), StateMetric::DeepXplore, None);
    assert!(strict < value(&one, StateMetric::DeepXplore, None));
    let (model, params) = language();
    let victim = Neural::new(&model, &params).unwrap();
    let item = &windows(1)[0];
    let layers = victim.states(&[item]).unwrap().remove(0);
    let above = |l: usize| {
        let h: Vec<f32> = layers[l].h.iter().copied().collect();
        let least = h.iter().copied().fold(f32::INFINITY, f32::min);
        let most = h.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        h.iter()
            .filter(|x| f64::from((**x - least) / (most - least)) > 0.5)
            .count()
    };
    let by_hand = (above(0) + above(1)) as f64 / 84.0;
    assert_eq!(value(&one, StateMetric::DeepXplore, None), by_hand);
    let cells = layers.iter().flat_map(|l| l.c.as_ref().unwrap().iter());
    let last = cells.filter(|c| f64::from(**c).tanh() > 0.8).count() as f64 / 84.0;
    assert_eq!(value(&one, StateMetric::Cell, Some(4)), last);
}

#[test]
fn coverage_never_falls_and_halves_add_up_in_any_order() {
    for gate_source in [GateSource::Real, GateSource::Authors] {
        let spec = CoverageSpec {
            gate_source,
            ..SPEC
        };
        let items = windows(12);
        let mut before = covered(spec, &items[..1]).values();
        for n in 2..=12 {
            let now = covered(spec, &items[..n]).values();
            assert!(
                now.iter()
                    .zip(&before)
                    .all(|(now, before)| now.value >= before.value)
            );
            before = now;
        }
        let all = covered(spec, &items);
        let parts = [&items[..3], &items[3..4], &items[4..]].map(|part| covered(spec, part));
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let mut merged = Coverage::new(spec);
            for n in order {
                merged.merge(&parts[n]).unwrap();
            }
            assert_eq!(merged, all);
        }
        let mut right = parts[1].clone();
        right.merge(&parts[2]).unwrap();
        let mut associated = parts[0].clone();
        associated.merge(&right).unwrap();
        assert_eq!(associated, all);
    }
}

/// The gradient of a guided objective at a position is that of finite differences of the sum of chosen numbers.
#[test]
fn guided_gradients_are_those_of_finite_differences() {
    let (model, params) = language();
    let victim = Neural::new(&model, &params).unwrap();
    let item = &windows(1)[0];
    let embedded = victim.embed(&[&item.input]).unwrap().remove(0);
    for gate_source in [GateSource::Real, GateSource::Authors] {
        let empty = Coverage::new(CoverageSpec {
            gate_source,
            ..SPEC
        });
        for metric in StateMetric::ALL {
            for strategy in [Strategy::Boosting, Strategy::Random] {
                let guidance = Guidance {
                    metric,
                    strategy,
                    elements: 6,
                    refill: true,
                };
                let stream = Stream::new(1, "guidance");
                let seen = victim.observe(&[item]).unwrap().remove(0);
                let guided = guidance.objective(&seen.layers, &seen.input, &empty, stream);
                let Objective::States(terms) = &guided.states else {
                    panic!()
                };
                assert!(!terms.is_empty() || !guided.input.is_empty(), "{metric:?}");
                let of = |vectors: &ndarray::Array2<f32>| {
                    let example = Example {
                        input: Sequence::Vectors(vectors.clone()),
                        target: item.target.clone(),
                    };
                    let found = victim
                        .gradients(&[&example], &guided.states)
                        .unwrap()
                        .remove(0);
                    let direct = guided.input.iter();
                    let direct = direct.map(|(t, k, w)| w * f64::from(vectors[(*t, *k)]));
                    (found.value + direct.sum::<f64>(), found.input)
                };
                let (_, mut gradient) = of(&embedded);
                for (t, k, weight) in &guided.input {
                    gradient[(*t, *k)] += *weight as f32;
                }
                for (t, k) in [(0, 0), (2, 3), (6, 5)] {
                    let moved = |by: f32| {
                        let mut vectors = embedded.clone();
                        vectors[(t, k)] += by;
                        of(&vectors).0
                    };
                    let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
                    let found = f64::from(gradient[(t, k)]);
                    let wrong = (slope - found).abs() / (1.0 + slope.abs());
                    assert!(
                        wrong < 5e-3,
                        "{metric:?} {strategy:?} {gate_source:?}: {slope} {found}"
                    );
                }
            }
        }
    }
}

#[test]
fn random_guidance_takes_what_is_not_covered_and_then_the_rest() {
    let (model, params) = language();
    let victim = Neural::new(&model, &params).unwrap();
    let items = windows(5);
    let coverage = covered(SPEC, &items);
    let seen = victim.observe(&[&items[0]]).unwrap().remove(0);
    let all = Guidance {
        metric: StateMetric::Hidden,
        strategy: Strategy::Random,
        elements: 84,
        refill: false,
    };
    let guided = all.objective(&seen.layers, &seen.input, &coverage, Stream::new(1, "x"));
    let Objective::States(terms) = &guided.states else {
        panic!()
    };
    let open = 84.0 * (1.0 - value(&coverage, StateMetric::Hidden, None));
    assert_eq!(terms.len() as f64, open.round());
    let again = all.objective(&seen.layers, &seen.input, &coverage, Stream::new(2, "x"));
    assert_ne!(guided, again, "another seed, another order");
    let of = |guidance: Guidance, covered: &Coverage| {
        let guided = guidance.objective(&seen.layers, &seen.input, covered, Stream::new(1, "x"));
        match guided.states {
            Objective::States(terms) => terms,
            other => panic!("{other:?}"),
        }
    };
    let refilled = of(
        Guidance {
            refill: true,
            ..all
        },
        &coverage,
    );
    assert_eq!(refilled[..terms.len()], terms[..], "uncovered ones first");
    assert_eq!(refilled.len(), 84, "then the others, each once");
    let places: BTreeSet<_> = refilled.iter().map(|t| (t.layer, t.step, t.unit)).collect();
    assert_eq!(places.len(), 84);
    // DeepXplore's own rule: one state, any when all are covered.
    let everything = covered(
        CoverageSpec {
            threshold: 0.0,
            ..SPEC
        },
        &windows(40),
    );
    assert_eq!(value(&everything, StateMetric::DeepXplore, None), 1.0);
    let one = Guidance {
        metric: StateMetric::DeepXplore,
        elements: 1,
        ..all
    };
    assert_eq!(of(one, &everything), []);
    let one = Guidance {
        refill: true,
        ..one
    };
    assert_eq!(of(one, &everything).len(), 1);
}

#[test]
fn boosting_takes_what_is_nearest_to_the_ends() {
    let (model, params) = language();
    let victim = Neural::new(&model, &params).unwrap();
    let seen = victim.observe(&[&windows(1)[0]]).unwrap().remove(0);
    let guidance = Guidance {
        metric: StateMetric::Cell,
        strategy: Strategy::Boosting,
        elements: 2,
        refill: true,
    };
    let empty = Coverage::new(SPEC);
    let guided = guidance.objective(&seen.layers, &seen.input, &empty, Stream::new(1, "x"));
    let Objective::States(terms) = &guided.states else {
        panic!()
    };
    let cells: Vec<f64> = seen
        .layers
        .iter()
        .flat_map(|l| l.c.as_ref().unwrap().iter().map(|c| f64::from(*c)))
        .collect();
    let bound = 0.8_f64.atanh();
    let highest = cells
        .iter()
        .copied()
        .filter(|c| *c < bound)
        .fold(f64::NEG_INFINITY, f64::max);
    let lowest = cells
        .iter()
        .copied()
        .filter(|c| *c > -bound)
        .fold(f64::INFINITY, f64::min);
    let chosen: Vec<(f64, f64)> = terms
        .iter()
        .map(|t| {
            (
                f64::from(seen.layers[t.layer].c.as_ref().unwrap()[(t.step, t.unit.unwrap())]),
                t.weight,
            )
        })
        .collect();
    assert_eq!(chosen, [(highest, 1.0), (lowest, -1.0)]);
}
