//! What a victim shows: vectors in place of tokens, every layer and position, losses per position, objectives per item.

use crate::common::easy::classifier;
use crate::common::{Case, cases};
use ndarray::{Array2, s};
use nn::autodiff::Params;
use nn::batch::{Example, Sequence, Side, Target};
use nn::linear::NaiveBayes;
use nn::models::{LSTM, Model};
use nn::objectives::Objective;
use nn::victim::{Neural, Victim};

fn vectors(rows: &Array2<f32>) -> Sequence {
    Sequence::Vectors(rows.clone())
}

fn open(e: &Example) -> Example {
    Example {
        input: e.input.clone(),
        target: Target::None,
    }
}

/// Rows of a word's characters side by side, as character models take them.
fn words(rows: Array2<f32>, steps: usize) -> Array2<f32> {
    let wide = rows.len() / steps;
    rows.into_shape_with_order((steps, wide)).unwrap()
}

#[test]
fn the_vectors_of_an_item_can_be_read_in_its_place() {
    for case in cases() {
        let (model, examples) = (case.model(), case.examples(6));
        let params: Params<f32> = model.init(3);
        let victim = Neural::new(&model, &params).unwrap();
        for e in &examples {
            let read = victim.embed(&[&e.input]).unwrap().remove(0);
            assert_eq!(read.ncols(), case.dim, "{}", case.name);
            let read = words(read, e.input.len());
            let replaced = Example {
                input: vectors(&read),
                target: e.target.clone(),
            };
            assert_eq!(
                victim.forced_logits(&[e]).unwrap(),
                victim.forced_logits(&[&replaced]).unwrap(),
                "{}",
                case.name
            );
        }
    }
}

/// A zero vector in place of a word is a word whose vector is zero.
#[test]
fn a_zero_vector_erases_a_word() {
    for case in cases().into_iter().filter(|c| c.name != "char cnn lstm") {
        let (model, examples) = (case.model(), case.examples(6));
        let params: Params<f32> = model.init(3);
        let Some(span) = model.layout().find("embedding") else {
            continue;
        };
        let (mut zeroed, mut table) = (params.clone(), params.view(span).to_owned());
        table.slice_mut(s![7, ..]).fill(0.0);
        zeroed.set(span, table.view()).unwrap();
        let (victim, without) = (
            Neural::new(&model, &params).unwrap(),
            Neural::new(&model, &zeroed).unwrap(),
        );
        for e in &examples {
            let Sequence::Tokens(tokens) = &e.input else {
                unreachable!()
            };
            let (mut erased, at) = (tokens.clone(), tokens.len() / 2);
            let mut read = victim.embed(&[&e.input]).unwrap().remove(0);
            read.row_mut(at).fill(0.0);
            // The other words must not be the one whose vector is zero.
            erased
                .iter_mut()
                .for_each(|w| *w = if *w == 7 { 6 } else { *w });
            for (t, word) in erased.iter().enumerate().filter(|(t, _)| *t != at) {
                let row = params.view(span).row(*word as usize).to_owned();
                read.row_mut(t).assign(&row);
            }
            erased[at] = 7;
            let of = |input: Sequence| Example {
                input,
                target: e.target.clone(),
            };
            assert_eq!(
                victim.forced_logits(&[&of(vectors(&read))]).unwrap(),
                without
                    .forced_logits(&[&of(Sequence::Tokens(erased))])
                    .unwrap(),
                "{}",
                case.name
            );
        }
    }
}

#[test]
fn losses_per_position_add_up_to_the_cross_entropy() {
    for case in cases() {
        let (model, examples) = (case.model(), case.examples(7));
        let params: Params<f32> = model.init(3);
        let victim = Neural::new(&model, &params).unwrap();
        let items: Vec<&Example> = examples.iter().collect();
        let losses = victim.losses(&items).unwrap();
        let values = victim.gradients(&items, &Objective::CrossEntropy).unwrap();
        for ((e, losses), whole) in items.iter().zip(losses).zip(values) {
            let steps = match &e.target {
                Target::Tokens(ids) => ids.len(),
                _ => 1,
            };
            assert_eq!(losses.len(), steps, "{}", case.name);
            assert_eq!(losses.iter().sum::<f64>(), whole.value, "{}", case.name);
        }
        let unlabelled = open(items[0]);
        if model.decoding().is_none() {
            assert!(victim.losses(&[&unlabelled]).is_err(), "{}", case.name);
        }
    }
}

#[test]
fn objectives_per_item_are_those_of_each_item_alone() {
    // An item that reads its padding depends on the batch.
    for case in cases().into_iter().filter(|c| c.model().ignores_padding()) {
        let (model, examples) = (case.model(), case.examples(9));
        let params: Params<f32> = model.init(3);
        let victim = Neural::new(&model, &params).unwrap();
        let items: Vec<&Example> = examples.iter().collect();
        let objectives = [
            Objective::CrossEntropy,
            Objective::Logit(1),
            Objective::Margin,
            Objective::Sum(vec![(0.5, Objective::Hinge), (-2.0, Objective::Logit(0))]),
        ];
        let each: Vec<&Objective> = objectives.iter().cycle().take(items.len()).collect();
        let together = victim.gradients_each(&items, &each).unwrap();
        for ((e, objective), got) in items.iter().zip(&each).zip(together) {
            let alone = victim.gradients(&[e], objective).unwrap().remove(0);
            assert_eq!(alone, got, "{} {objective:?}", case.name);
        }
        let error = victim.gradients_each(&items, &each[1..]).unwrap_err();
        assert_eq!(error.to_string(), "objectives: expected 9, got 8");
    }
}

/// The gradient per item against differences of its own objective, through the vectors that it was read as.
#[test]
fn the_gradient_of_each_item_is_the_slope_of_its_objective() {
    // A maximum has no slope where it changes hands, and an item that reads its padding depends on the batch.
    let smooth = |c: &Case| c.name != "kim cnn" && c.model().ignores_padding();
    for case in cases().into_iter().filter(smooth) {
        let (model, examples) = (case.model(), case.examples(3));
        let mut params: Params<f32> = model.init(3);
        params.trained.iter_mut().for_each(|w| *w *= 2.0);
        let victim = Neural::new(&model, &params).unwrap();
        let items: Vec<&Example> = examples.iter().collect();
        let objectives = [
            Objective::CrossEntropy,
            Objective::Logit(1),
            Objective::Margin,
        ];
        let each: Vec<&Objective> = objectives.iter().collect();
        let gradients = victim.gradients_each(&items, &each).unwrap();
        for ((e, objective), gradient) in items.iter().zip(&each).zip(gradients) {
            let read = victim.embed(&[&e.input]).unwrap().remove(0);
            let largest = gradient.input.indexed_iter();
            let largest = largest.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
            let (at, slope) = largest.map(|(at, slope)| (at, *slope)).unwrap();
            let value = |by: f32| {
                let mut moved = read.clone();
                moved[at] += by;
                let input = vectors(&words(moved, e.input.len()));
                let moved = Example {
                    input,
                    target: e.target.clone(),
                };
                victim.gradients(&[&moved], objective).unwrap()[0].value
            };
            let slope = f64::from(slope);
            let central = |h: f32| (value(h) - value(-h)) / f64::from(2.0 * h);
            // Richardson's extrapolation: layers that normalise small vectors bend strongly.
            let difference = (4.0 * central(5e-4) - central(1e-3)) / 3.0;
            assert!(
                (difference - slope).abs() < 2e-2 * (slope.abs() + 0.05),
                "{} {objective:?}: {slope} {difference}",
                case.name
            );
        }
    }
}

#[test]
fn vectors_of_every_layer_have_the_positions_of_their_side() {
    for case in cases() {
        let (model, examples) = (case.model(), case.examples(5));
        let params: Params<f32> = model.init(3);
        let victim = Neural::new(&model, &params).unwrap();
        let items: Vec<&Example> = examples.iter().collect();
        if case.name == "kim cnn" {
            let error = victim.hidden(&items).unwrap_err().to_string();
            assert_eq!(error, "this model has no vectors at every position");
            continue;
        }
        for (e, layers) in items.iter().zip(victim.hidden(&items).unwrap()) {
            for layer in layers {
                let steps = match (layer.side, &e.target) {
                    (Side::Target, Target::Tokens(ids)) => ids.len(),
                    _ => e.input.len(),
                };
                assert_eq!(layer.vectors.nrows(), steps, "{}", case.name);
            }
        }
    }
}

#[test]
fn what_a_model_has_not_got_is_an_error_that_says_so() {
    let text = |ids: &[u32], y| Example {
        input: Sequence::Tokens(ids.to_vec()),
        target: Target::Class(y),
    };
    let examples = [text(&[0, 0, 1], 0), text(&[1, 2], 1)];
    let bayes = NaiveBayes::fit(&examples, 3, 2).unwrap();
    let items: Vec<&Example> = examples.iter().collect();
    let inputs: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
    let says = |error: nn::Error, what: &str| {
        assert_eq!(error.to_string(), format!("this model has no {what}"));
    };
    says(bayes.losses(&items).unwrap_err(), "teacher forcing");
    says(bayes.decode(&inputs, 3).unwrap_err(), "decoder");
    says(bayes.embed(&inputs).unwrap_err(), "input vectors");
    says(bayes.states(&items).unwrap_err(), "recurrent states");
    says(bayes.attention(&items).unwrap_err(), "attention");
    says(bayes.sentences(&inputs).unwrap_err(), "sentence vector");
    let gradients = bayes.gradients(&items, &Objective::Margin);
    says(gradients.unwrap_err(), "input gradient");
    let case = cases().remove(0);
    let model: Model = case.model();
    let params = model.init(1);
    let victim = Neural::new(&model, &params).unwrap();
    let input = case.examples(1).remove(0).input;
    says(victim.decode(&[&input], 3).unwrap_err(), "decoder");
}

/// Memory was kept for every length, as groups come from the shortest to the longest.
#[test]
fn texts_of_many_lengths_hold_little_more_memory_than_the_longest() {
    let model = classifier(&LSTM);
    let params: Params<f32> = model.init(3);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.unwrap();
    let held = |lengths: std::ops::RangeInclusive<usize>| {
        let victim = Neural::new(&model, &params).unwrap();
        let texts: Vec<Sequence> = lengths
            .flat_map(|n| vec![Sequence::Tokens(vec![1; n]); 16])
            .collect();
        let texts: Vec<&Sequence> = texts.iter().collect();
        pool.install(|| victim.logits(&texts)).unwrap();
        victim.held()
    };
    let (longest, all) = (held(64..=64), held(1..=64));
    assert!(longest > 0);
    assert!(
        all <= 3 * longest,
        "{all} numbers, {longest} for the longest"
    );
}
