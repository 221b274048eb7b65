//! A text that can be learnt, stopped anywhere and resumed, on any number of threads.

use super::fit::run;
use super::*;
use crate::autodiff::Params;
use crate::models::LanguageSpec;
use crate::models::Model;
use crate::training::*;

fn model() -> Model {
    Model::new(
        &(LanguageSpec {
            vocabulary: 8,
            dim: 6,
            units: 12,
            layers: 2,
            dropout: 0.1,
            tie_layers: false,
            init: 0.2,
        }),
    )
    .unwrap()
}

fn spec() -> StreamSpec {
    StreamSpec {
        epochs: 12,
        batch: 20,
        steps: 5,
        optimiser: Optimiser::ADAM,
        rate: 0.02,
        schedule: Schedule::Constant,
        clip: Clip::Norm(5.0),
        metric: Metric::Loss,
        patience: 0,
        keep: Keep::Best,
        seed: 1,
    }
}

/// 0 1 2 3 4 5 6 7, again and again: after the first tokens nothing is uncertain.
fn cycle(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| i % 8).collect()
}

#[test]
fn a_cycle_is_learnt_with_the_same_bits_on_any_number_of_threads() {
    let (model, text) = (model(), cycle(2000));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            fit_stream(
                &model,
                model.init(1),
                &text,
                &text[..200],
                &spec(),
                &mut |_| Flow::Continue,
            )
        })
        .unwrap()
    };
    let one = run(1);
    assert!(
        one.dev.last().unwrap().accuracy > 0.95 && one.dev.last().unwrap().loss < one.dev[0].loss,
        "{:?}",
        one.dev
    );
    assert_eq!(one, run(2));
    assert_eq!(one, run(8));
}

#[test]
fn a_run_that_was_stopped_and_resumed_ends_with_the_same_bits() {
    let (model, text) = (model(), cycle(700));
    let spec = StreamSpec {
        epochs: 3,
        batch: 18,
        schedule: Schedule::Plateau { factor: 0.5 },
        ..spec()
    };
    let from = |resume: Option<Checkpoint>, stop: usize| {
        let mut events = 0;
        let mut tell = |_: &Event| {
            events += 1;
            if events == stop {
                Flow::Stop
            } else {
                Flow::Continue
            }
        };
        let texts = [&text[..], &text[..50]];
        run(&model, model.init(1), texts, &spec, resume, &mut tell).unwrap()
    };
    let whole = from(None, usize::MAX);
    assert!(!whole.stopped && whole.dev.len() == 3);
    // An epoch is 8 windows and its own event.
    for stop in [1, 4, 8, 9, 10, 18, 20, 27] {
        let part = from(None, stop);
        assert!(part.stopped, "{stop}");
        let kept = Checkpoint::from_bytes(&part.checkpoint.to_bytes()).unwrap();
        assert_eq!(from(Some(kept), usize::MAX), whole, "stopped at {stop}");
    }
    let kept = from(None, 4).checkpoint;
    let other = &text[1..];
    let error = resume_stream(&model, model.init(1), other, &[], &spec, kept, &mut |_| {
        Flow::Continue
    })
    .unwrap_err();
    assert!(
        error.to_string().contains("text: expected 699 with"),
        "{error}"
    );
}

/// At this rate dev gets worse at times, and better again.
#[test]
fn the_best_weights_are_kept_and_patience_ends_the_fit() {
    let (model, text) = (model(), cycle(400));
    let fit = |keep: Keep, patience: u32| {
        let spec = StreamSpec {
            rate: 0.3,
            keep,
            patience,
            ..spec()
        };
        let dev = &text[..200];
        let go_on = &mut |_: &Event| Flow::Continue;
        fit_stream(&model, model.init(1), &text, dev, &spec, go_on).unwrap()
    };
    let (best, last) = (fit(Keep::Best, 0), fit(Keep::Last, 0));
    assert_eq!(best.dev, last.dev);
    let losses: Vec<f64> = best.dev.iter().map(|e| e.loss).collect();
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(least < losses[11], "{losses:?}");
    let measured = |fitted: &FittedStream| {
        let dev = evaluate_stream(&model, &fitted.params, &text[..200], 5);
        dev.unwrap().loss
    };
    assert_eq!((measured(&best), measured(&last)), (least, losses[11]));
    let worse = losses.windows(2).position(|pair| pair[1] >= pair[0]);
    assert_eq!(fit(Keep::Best, 1).dev.len(), worse.unwrap() + 2);
}

#[test]
fn windows_do_not_change_the_measure_because_states_are_carried() {
    let (model, text) = (model(), cycle(61));
    let params = model.init(1);
    let whole = evaluate_stream(&model, &params, &text, 60).unwrap();
    for steps in [1, 7, 60, 100] {
        let cut = evaluate_stream(&model, &params, &text, steps).unwrap();
        assert!(
            (cut.loss - whole.loss).abs() < 1e-12 && cut.count == 60,
            "{steps}"
        );
    }
}

#[test]
fn short_texts_and_other_models_are_errors() {
    let model = model();
    assert!(
        fit_stream(&model, model.init(1), &cycle(39), &[], &spec(), &mut |_| {
            Flow::Continue
        })
        .is_err()
    );
    assert!(evaluate_stream(&model, &model.init(1), &[1], 5).is_err());
    let mut spoilt: Params<f32> = model.init(1);
    spoilt.trained.fill(f32::NAN);
    assert_eq!(
        evaluate_stream(&model, &spoilt, &cycle(39), 5)
            .unwrap_err()
            .to_string(),
        "loss on the text holds NaN at index 0: expected a finite number"
    );
}
