//! Fits that are stopped, written as bytes, read and resumed: the same bits at the end, or a refusal.

use crate::common::cases;
use crate::common::easy::{classifier, easy, go_on, spec};
use nn::batch::{Example, Target};
use nn::models::{GRU, LSTM, Model, RNN};
use nn::training::{Checkpoint, Event, FitSpec, Flow, Metric, Optimiser, Schedule, fit};

#[test]
fn a_run_that_was_stopped_and_resumed_ends_with_the_same_bits() {
    for optimiser in [
        Optimiser::ADAM,
        Optimiser::Sgd { momentum: 0.9 },
        Optimiser::Adadelta {
            rho: 0.95,
            eps: 1e-6,
        },
    ] {
        let list = cases();
        let case = list.iter().find(|c| c.name == "lstm").unwrap();
        let (model, train) = (case.model(), case.examples(70));
        let dev = &train[..20];
        let spec = FitSpec {
            optimiser,
            schedule: Schedule::Plateau { factor: 0.5 },
            ..spec()
        };
        let whole = fit(&model, model.init(1), &train, dev, &spec, None, &mut go_on).unwrap();
        for stop in [1, 3, 4, 7, 11] {
            let mut halt = |e: &Event| {
                if matches!(e, Event::Step { step, .. } if *step == stop) {
                    Flow::Stop
                } else {
                    Flow::Continue
                }
            };
            let part = fit(&model, model.init(1), &train, dev, &spec, None, &mut halt).unwrap();
            assert!(part.stopped && part.steps == stop);
            let kept = Checkpoint::from_bytes(&part.checkpoint.to_bytes()).unwrap();
            let rest = fit(
                &model,
                model.init(1),
                &train,
                dev,
                &spec,
                Some(kept),
                &mut go_on,
            )
            .unwrap();
            assert_eq!(rest, whole, "{optimiser:?} stopped after {stop}");
        }
    }
}

/// Also where patience ends it within an epoch, and at every step before and after a check.
#[test]
fn a_run_that_checks_within_epochs_may_be_stopped_anywhere() {
    let (train, dev) = (easy(120, 20), easy(100, 20));
    let model = classifier(&LSTM);
    let spec = FitSpec {
        epochs: 200,
        patience: 2,
        dev_checks: 3,
        rate: 0.05,
        ..spec()
    };
    let events = |from: Option<Checkpoint>, stop: u64| {
        let mut epochs = Vec::new();
        let mut watch = |e: &Event| {
            if let Event::Epoch {
                epoch, dev, loss, ..
            } = e
            {
                epochs.push((*epoch, *dev, *loss));
            }
            match e {
                Event::Step { step, .. } if *step == stop => Flow::Stop,
                _ => Flow::Continue,
            }
        };
        let fitted = fit(&model, model.init(1), &train, &dev, &spec, from, &mut watch).unwrap();
        (fitted, epochs)
    };
    let (whole, told) = events(None, u64::MAX);
    assert!(
        whole.steps % 6 != 0,
        "it ends within an epoch: {}",
        whole.steps
    );
    for stop in 1..=whole.steps {
        let (part, mut first) = events(None, stop);
        assert!(part.stopped && part.steps == stop);
        let kept = Checkpoint::from_bytes(&part.checkpoint.to_bytes()).unwrap();
        let (rest, second) = events(Some(kept), u64::MAX);
        first.extend(second);
        assert_eq!(rest, whole, "stopped after {stop}");
        assert_eq!(first, told, "stopped after {stop}");
    }
}

#[test]
fn a_run_with_restarts_may_be_stopped_in_any_attempt() {
    let (train, dev) = (easy(60, 20), easy(40, 20));
    let model = classifier(&RNN);
    let spec = FitSpec {
        epochs: 2,
        restarts: 2,
        accept: 1.1,
        metric: Metric::Accuracy,
        ..spec()
    };
    let whole = fit(&model, model.init(1), &train, &dev, &spec, None, &mut go_on).unwrap();
    // Three attempts of six steps; the events before the end are 18 steps, 6 epochs and 2 restarts.
    for stop in [1, 5, 8, 9, 10, 15, 20, 25] {
        let mut events = 0;
        let mut halt = |_: &Event| {
            events += 1;
            if events == stop {
                Flow::Stop
            } else {
                Flow::Continue
            }
        };
        let part = fit(&model, model.init(1), &train, &dev, &spec, None, &mut halt).unwrap();
        assert!(part.stopped, "{stop}");
        let kept = Checkpoint::from_bytes(&part.checkpoint.to_bytes()).unwrap();
        let rest = fit(
            &model,
            model.init(1),
            &train,
            &dev,
            &spec,
            Some(kept),
            &mut go_on,
        )
        .unwrap();
        assert_eq!(rest, whole, "stopped at event {stop}");
    }
}

#[test]
fn a_checkpoint_of_another_fit_is_refused_with_what_differs() {
    let (train, dev) = (easy(40, 20), easy(20, 20));
    let model = classifier(&LSTM);
    let mut halt = |_: &Event| Flow::Stop;
    let part = fit(
        &model,
        model.init(1),
        &train,
        &dev,
        &spec(),
        None,
        &mut halt,
    )
    .unwrap();
    let refuse = |model: &Model, train: &[Example], dev: &[Example], spec: &FitSpec| {
        let kept = Some(part.checkpoint.clone());
        fit(model, model.init(1), train, dev, spec, kept, &mut go_on)
            .unwrap_err()
            .to_string()
    };
    let faster = FitSpec {
        rate: 0.02,
        ..spec()
    };
    assert_eq!(
        refuse(&model, &train, &dev, &faster),
        "checkpoint of another fit: settings.rate: expected 0.02, got 0.01. Resume the fit it was made by, or start without it"
    );
    let other = classifier(&GRU);
    assert!(
        refuse(&other, &train, &dev, &spec())
            .contains("model.cell: expected \"gru\", got \"lstm\""),
    );
    let fewer = refuse(&model, &train[1..], &dev, &spec());
    assert!(
        fewer.contains("train: expected 39 with checksum") && fewer.contains("got 40 with"),
        "{fewer}"
    );
    let mut relabelled = train.clone();
    relabelled[7].target = Target::Class(0);
    relabelled[8].target = Target::Class(1);
    let printed = refuse(&model, &relabelled, &dev, &spec());
    assert!(printed.contains("train: expected 40 with"), "{printed}");
    assert!(refuse(&model, &train, &dev[1..], &spec()).contains("dev: expected 19"));
}
