//! Training: the same bits on any number of threads and after a resume, and errors instead of silent damage.

mod common;

use common::cases;
use nn::batch::{Batch, Example, Sequence, Target};
use nn::checkpoint::Checkpoint;
use nn::fit::{Event, FitSpec, Fitted, Flow, Loss, Metric, fit};
use nn::model::{Model, Reads, Spec};
use nn::models::{CellKind, RecurrentSpec, Seq2seqSpec, TransformerSeq2seqSpec};
use nn::optimiser::{Clip, Optimiser};
use nn::schedule::Schedule;
use nn::simd::{Isa, isa};
use nn::victim::{Neural, Queries, Victim};
use nn::{Error, Stream};

fn spec() -> FitSpec {
    FitSpec {
        epochs: 3,
        batch: 20,
        optimiser: Optimiser::ADAM,
        rate: 0.01,
        schedule: Schedule::Constant,
        clip: Clip::Norm(5.0),
        loss: Loss::CrossEntropy,
        metric: Metric::Loss,
        patience: 0,
        window: 3,
        seed: 5,
        balanced: false,
        restarts: 0,
        accept: 0.0,
        probe: 0,
    }
}

fn go_on(_: &Event) -> Flow {
    Flow::Continue
}

fn run(model: &Model, train: &[Example], spec: &FitSpec, threads: usize) -> Fitted {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    let dev = &train[..train.len() / 4];
    pool.install(|| fit(model, model.init(1), train, dev, spec, None, &mut go_on))
        .unwrap()
}

fn digest(weights: &[f32]) -> String {
    let bytes: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
    blake3::hash(&bytes).to_hex()[..16].to_string()
}

/// Digests of the weights after a short run, on processors with fused multiply-add.
const PINNED: &[(&str, &str)] = &[
    ("rnn", "ee1a7e5427171951"),
    ("gru", "9ca2560adaeadb0d"),
    ("lstm", "f25267c2ea74bfa3"),
    ("lstm, two layers", "47e1032e6487004c"),
    ("bilstm with attention", "4b0b2b39ca21b3cb"),
    ("bigru, two layers", "60554242d3f650e0"),
    ("lstm through padding", "682d3471df0eeb02"),
    ("gru on signals", "f3d48a3cad41ace8"),
    ("kim cnn", "6bd6319aae90fa88"),
    ("char cnn lstm", "639892d0b25f6089"),
    ("transformer", "1432531c3804ce77"),
    ("language model", "a1f9465828a83bfa"),
    ("language model, tied", "9b6357c34365fd92"),
    ("seq2seq", "da3bfdd90c5f8dcd"),
    ("transformer seq2seq", "c9754051f1509bf0"),
];

#[test]
fn every_model_has_the_same_weights_on_1_2_and_8_threads_and_those_pinned() {
    let mut found = Vec::new();
    for case in cases() {
        let (model, train) = (case.model(), case.examples(70));
        let one = run(&model, &train, &spec(), 1);
        for threads in [1, 2, 8] {
            let again = run(&model, &train, &spec(), threads);
            assert_eq!(
                one.params, again.params,
                "{} on {threads} threads",
                case.name
            );
            assert_eq!(one.dev, again.dev, "{}", case.name);
        }
        found.push((case.name, digest(&one.checkpoint.trained)));
    }
    if isa() != Isa::Portable {
        let found: Vec<(&str, &str)> = found.iter().map(|(n, d)| (*n, d.as_str())).collect();
        assert_eq!(
            found, PINNED,
            "results changed: say so in the changelog, since every cached model is stale"
        );
    }
}

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

#[test]
fn a_run_with_restarts_may_be_stopped_in_any_attempt() {
    let (train, dev) = (easy(60, 20), easy(40, 20));
    let model = classifier(CellKind::Rnn);
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
    let model = classifier(CellKind::Lstm);
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
    let other = classifier(CellKind::Gru);
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
    let said = refuse(&model, &relabelled, &dev, &spec());
    assert!(said.contains("train: expected 40 with"), "{said}");
    assert!(refuse(&model, &train, &dev[1..], &spec()).contains("dev: expected 19"));
}

#[test]
fn balanced_batches_train_with_the_same_bits_on_any_number_of_threads() {
    // Three of four examples are of class 0; a batch of 8 holds 4 of each.
    let skewed: Vec<Example> = easy(400, 20)
        .into_iter()
        .enumerate()
        .filter(|(i, e)| e.target == Target::Class(0) || i % 3 == 0)
        .map(|(_, e)| e)
        .collect();
    let ones = skewed
        .iter()
        .filter(|e| e.target == Target::Class(1))
        .count();
    let spec = FitSpec {
        balanced: true,
        batch: 8,
        ..spec()
    };
    let model = classifier(CellKind::Gru);
    let one = run(&model, &skewed, &spec, 1);
    assert_eq!(one.steps, (3 * (ones / 4)) as u64);
    assert_eq!(one, run(&model, &skewed, &spec, 2));
    assert_eq!(one, run(&model, &skewed, &spec, 8));
    let plain = FitSpec {
        balanced: false,
        ..spec.clone()
    };
    assert_ne!(one.params, run(&model, &skewed, &plain, 2).params);
    let next = vec![Example {
        input: Sequence::Tokens(vec![1]),
        target: Target::None,
    }];
    let error = fit(&model, model.init(1), &next, &[], &spec, None, &mut go_on).unwrap_err();
    assert_eq!(
        error.to_string(),
        "target: expected a class for every example, since batches are balanced, got none, or tokens"
    );
}

/// Texts whose first token decides the class.
fn easy(n: usize, tokens: usize) -> Vec<Example> {
    let s = Stream::new(3, "easy");
    let text = |i: u64| {
        let ids: Vec<u32> = (0..2 + s.item(i).below(99, 7) as u64)
            .map(|t| s.item(i).below(t, tokens) as u32)
            .collect();
        let class = ids[0] % 2;
        Example {
            input: Sequence::Tokens(ids),
            target: Target::Class(class),
        }
    };
    (0..n as u64).map(text).collect()
}

fn classifier(cell: CellKind) -> Model {
    Model::new(&Spec::Recurrent(RecurrentSpec::new(
        cell,
        Reads::Tokens {
            vocabulary: 20,
            dim: 8,
            frozen: false,
        },
        16,
        2,
    )))
    .unwrap()
}

#[test]
fn recurrent_models_learn_to_remember_the_first_token() {
    let (train, dev) = (easy(400, 20), &easy(600, 20)[400..]);
    for cell in [CellKind::Rnn, CellKind::Gru, CellKind::Lstm] {
        for loss in [Loss::CrossEntropy, Loss::Hinge] {
            let model = classifier(cell);
            let spec = FitSpec {
                epochs: 30,
                metric: Metric::Accuracy,
                loss,
                patience: 6,
                ..spec()
            };
            let fitted = fit(&model, model.init(1), &train, dev, &spec, None, &mut go_on).unwrap();
            assert!(
                fitted.dev.unwrap().accuracy > 0.95,
                "{cell:?} {loss:?}: {:?}",
                fitted.dev
            );
        }
    }
}

#[test]
fn patience_ends_a_fit_and_the_best_weights_are_kept() {
    let (train, dev) = (easy(60, 20), easy(100, 20));
    let model = classifier(CellKind::Lstm);
    let (mut epochs, mut best) = (0, f64::INFINITY);
    let mut watch = |e: &Event| {
        if let Event::Epoch { dev: Some(d), .. } = e {
            epochs += 1;
            best = best.min(d.loss);
        }
        Flow::Continue
    };
    let spec = FitSpec {
        epochs: 200,
        patience: 3,
        rate: 0.05,
        ..spec()
    };
    let fitted = fit(&model, model.init(1), &train, &dev, &spec, None, &mut watch).unwrap();
    assert!(epochs < 200);
    assert_eq!(fitted.dev.unwrap().loss, best);
    assert_eq!(
        nn::evaluate::evaluate(&model, &fitted.params, &dev).unwrap(),
        fitted.dev.unwrap()
    );
}

#[test]
fn restarts_go_on_until_dev_is_accepted() {
    let (train, dev) = (easy(40, 20), easy(40, 20));
    let model = classifier(CellKind::Rnn);
    let mut restarts = 0;
    let mut count = |e: &Event| {
        restarts += u32::from(matches!(e, Event::Restart { .. }));
        Flow::Continue
    };
    let spec = FitSpec {
        epochs: 1,
        restarts: 3,
        accept: 1.1,
        ..spec()
    };
    let hopeless = fit(&model, model.init(1), &train, &dev, &spec, None, &mut count).unwrap();
    assert_eq!((restarts, hopeless.checkpoint.position.attempt), (3, 3));
    let easy_going = FitSpec {
        accept: 0.0,
        ..spec
    };
    assert_eq!(
        fit(
            &model,
            model.init(1),
            &train,
            &dev,
            &easy_going,
            None,
            &mut go_on
        )
        .unwrap()
        .checkpoint
        .position
        .attempt,
        0
    );
}

#[test]
fn divergence_is_an_error_with_the_step_and_the_last_good_loss() {
    let model = classifier(CellKind::Rnn);
    let mut params = model.init(1);
    let train = easy(40, 20);
    let spec = FitSpec {
        clip: Clip::No,
        optimiser: Optimiser::SGD,
        rate: 1e38,
        epochs: 50,
        ..spec()
    };
    match fit(&model, params.clone(), &train, &[], &spec, None, &mut go_on) {
        Err(Error::Diverged {
            step, last_good, ..
        }) => assert!(step > 0 && last_good.is_finite()),
        other => panic!("{other:?}"),
    }
    params.trained[0] = f32::NAN;
    let error = fit(&model, params, &easy(40, 1), &[], &spec, None, &mut go_on).unwrap_err();
    assert!(
        matches!(error, Error::Diverged { step: 0, last_good, .. } if last_good.is_nan()),
        "{error}"
    );
}

#[test]
fn wrong_inputs_are_errors_that_say_what_was_expected() {
    let model = classifier(CellKind::Lstm);
    let text = |ids: &[u32]| Example {
        input: Sequence::Tokens(ids.to_vec()),
        target: Target::Class(0),
    };
    let vectors = |dim: usize, data: &[f32]| Example {
        input: Sequence::Vectors {
            dim,
            data: data.to_vec(),
        },
        target: Target::Class(0),
    };
    let say = |examples: &[Example]| {
        fit(
            &model,
            model.init(1),
            examples,
            &[],
            &spec(),
            None,
            &mut go_on,
        )
        .unwrap_err()
        .to_string()
    };
    assert_eq!(
        say(&[]),
        "list of training examples is empty: give at least one"
    );
    assert_eq!(say(&[text(&[])]), "sequence is empty: give at least one");
    assert_eq!(
        say(&[text(&[1, 20])]),
        "token 20 at item 0: expected below 20"
    );
    assert_eq!(
        say(&[vectors(3, &[0.0; 6])]),
        "numbers in a step: expected 8, got 3"
    );
    assert_eq!(
        say(&[vectors(8, &[0.0; 9])]),
        "numbers in a sequence: expected 8, got 9"
    );
    assert_eq!(
        say(&[text(&[1]), vectors(8, &[0.0; 8])]),
        "kind of sequence: expected one kind in a batch, got several"
    );
    assert_eq!(
        say(&[vectors(8, &[0.0, f32::NAN, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])]),
        "input holds NaN at index 1: expected a finite number"
    );
    assert_eq!(
        say(&[vectors(8, &[f32::INFINITY; 8])]),
        "input holds inf at index 0: expected a finite number"
    );
    assert_eq!(
        say(&[Example {
            target: Target::Class(2),
            ..text(&[1])
        }]),
        "target 2 at item 0: expected below 2"
    );
    assert_eq!(
        say(&[Example {
            target: Target::None,
            ..text(&[1])
        }]),
        "this model has no target"
    );
    assert!(Batch::<f32>::new(&[]).is_err());
    let zero = FitSpec {
        rate: 0.0,
        ..spec()
    };
    let error = fit(
        &model,
        model.init(1),
        &[text(&[1])],
        &[],
        &zero,
        None,
        &mut go_on,
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "rate is 0: expected above 0");
    let mut short = model.init(1);
    short.trained.pop();
    assert!(fit(&model, short, &[text(&[1])], &[], &spec(), None, &mut go_on).is_err());
}

#[test]
fn decoders_learn_to_say_the_first_token_and_stop_whatever_the_company() {
    let lstm = Seq2seqSpec {
        source: 8,
        target: 8,
        go: 0,
        eos: 1,
        dim: 8,
        units: 16,
        attention: 8,
        dropout: 0.0,
    };
    let transformer = TransformerSeq2seqSpec {
        source: 8,
        target: 8,
        go: 0,
        eos: 1,
        positions: 9,
        dim: 16,
        heads: 2,
        inner: 32,
        layers: 1,
        dropout: 0.0,
    };
    let pair = |e: Example| {
        let Sequence::Tokens(mut ids) = e.input else {
            unreachable!()
        };
        ids.iter_mut().for_each(|id| *id = 2 + *id % 6);
        Example {
            target: Target::Tokens(vec![ids[0], 1]),
            input: Sequence::Tokens(ids),
        }
    };
    let (train, test): (Vec<Example>, Vec<Example>) = (
        easy(300, 20).into_iter().map(pair).collect(),
        easy(340, 20).into_iter().skip(300).map(pair).collect(),
    );
    for spec in [Spec::Seq2seq(lstm), Spec::TransformerSeq2seq(transformer)] {
        let model = Model::new(&spec).unwrap();
        let fitted = fit(
            &model,
            model.init(1),
            &train,
            &[],
            &FitSpec {
                epochs: 25,
                ..self::spec()
            },
            None,
            &mut go_on,
        )
        .unwrap();
        let victim = Neural::new(&model, &fitted.params).unwrap();
        let items: Vec<&Sequence> = test.iter().map(|e| &e.input).collect();
        let together = victim.answers(&items, 5).unwrap();
        let right = together
            .iter()
            .zip(&test)
            .filter(|(said, e)| e.target == Target::Tokens([said.as_slice(), &[1]].concat()))
            .count();
        assert!(right >= 38, "{right} of 40 right: {spec:?}");
        for (item, said) in items.iter().zip(together) {
            assert_eq!(victim.answers(&[item], 5).unwrap()[0], said);
        }
        assert_eq!(
            victim.queries(),
            Queries {
                forwards: 80,
                backwards: 0
            }
        );
    }
}
