//! Training: the same bits on any number of threads and after a resume, and errors instead of silent damage.

use crate::common::cases;
use crate::common::easy::{classifier, easy, go_on, spec};
use nn::autodiff::{Params, Shard, Want, reduce};
use nn::batch::{Batch, Example, Sequence, Target};
use nn::models::{
    GRU, LSTM, LanguageSpec, Model, NetworkSpec, RNN, Reads, RecurrentSpec, Seq2seqSpec,
    TransformerSeq2seqSpec,
};
use nn::numeric::simd::{Isa, isa};
use nn::objectives::Objective;
use nn::training::{
    Clip, Event, ExtraExamples, FitSpec, Fitted, Flow, Keep, Loss, Memory, Metric, Optimiser,
    Trainer, fit, fit_with, shards,
};
use nn::victim::{Neural, Queries, Victim};
use nn::{Error, Stream};

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
    ("seq2seq, two layers", "269fab78d4f6b900"),
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
    let model = classifier(&GRU);
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

/// Examples whose classes are the wrong way round: the more is learnt, the worse it does on them.
fn contrary(examples: &[Example]) -> Vec<Example> {
    let flip = |e: &Example| Example {
        target: match e.target {
            Target::Class(class) => Target::Class(1 - class),
            ref other => other.clone(),
        },
        ..e.clone()
    };
    examples.iter().map(flip).collect()
}

#[test]
fn the_last_weights_are_kept_whatever_dev_says_if_that_is_asked_for() {
    let (train, model) = (easy(120, 20), classifier(&GRU));
    let dev = contrary(&train[..40]);
    let kept = |keep, dev: &[Example]| {
        let spec = FitSpec {
            epochs: 8,
            keep,
            ..spec()
        };
        fit(&model, model.init(1), &train, dev, &spec, None, &mut go_on).unwrap()
    };
    let (best, last) = (kept(Keep::Best, &dev), kept(Keep::Last, &dev));
    // Dev decides nothing but which weights are kept.
    assert_eq!(last.params, kept(Keep::Best, &[]).params);
    assert_ne!(last.params, best.params);
    assert!(last.dev.unwrap().loss > best.dev.unwrap().loss);
    let measured = nn::training::evaluate(&model, &last.params, &dev).unwrap();
    assert_eq!(last.dev, Some(measured));
    let both = FitSpec {
        keep: Keep::Last,
        restarts: 1,
        ..spec()
    };
    let error = fit(&model, model.init(1), &train, &dev, &both, None, &mut go_on).unwrap_err();
    assert_eq!(
        error.to_string(),
        "restarts is 1: expected 0 with keep = last"
    );
}

/// Notes the positions of every batch.
struct Noted(Vec<Vec<usize>>);

impl ExtraExamples for Noted {
    fn batch(&mut self, _: u64, _: &Params<f32>, batch: &[usize]) -> nn::Result<Vec<Example>> {
        self.0.push(batch.to_vec());
        Ok(Vec::new())
    }
}

#[test]
fn lessons_are_told_which_examples_a_batch_has() {
    let (train, model) = (easy(50, 20), classifier(&GRU));
    let mut noted = Noted(Vec::new());
    let spec = FitSpec {
        epochs: 1,
        ..spec()
    };
    let start = model.init(1);
    fit_with(
        &model,
        start,
        &train,
        &[],
        &spec,
        None,
        &mut noted,
        &mut go_on,
    )
    .unwrap();
    assert_eq!(noted.0.len(), 3);
    let mut all: Vec<usize> = noted.0.concat();
    all.sort_unstable();
    assert_eq!(all, (0..50).collect::<Vec<_>>());
}

#[test]
fn recurrent_models_learn_to_remember_the_first_token() {
    let (train, dev) = (easy(400, 20), &easy(600, 20)[400..]);
    for cell in [&RNN, &GRU, &LSTM] {
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
    let model = classifier(&LSTM);
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
        nn::training::evaluate(&model, &fitted.params, &dev).unwrap(),
        fitted.dev.unwrap()
    );
}

/// With three checks per epoch a fit may end within one, with the weights of the best check.
#[test]
fn checks_within_an_epoch_count_for_patience() {
    let (train, dev) = (easy(120, 20), easy(100, 20));
    let model = classifier(&LSTM);
    let fitted = |checks: u32| {
        let (mut epochs, mut losses) = (0, Vec::new());
        let mut watch = |e: &Event| {
            if let Event::Epoch { dev: Some(d), .. } = e {
                epochs += 1;
                losses.push(d.loss);
            }
            Flow::Continue
        };
        let spec = FitSpec {
            epochs: 200,
            patience: 3,
            dev_checks: checks,
            rate: 0.05,
            ..spec()
        };
        let fitted = fit(&model, model.init(1), &train, &dev, &spec, None, &mut watch).unwrap();
        (fitted, epochs, losses)
    };
    let (once, epochs, _) = fitted(1);
    assert_eq!(
        once.steps,
        epochs * 6,
        "six batches each, all of them whole"
    );
    let (often, told, losses) = fitted(3);
    assert_eq!(often.steps % 2, 0, "a check comes after every second batch");
    assert_eq!(
        told,
        often.steps.div_ceil(6),
        "an epoch that was cut short is told of too"
    );
    assert!(often.steps < once.steps, "{} {}", often.steps, once.steps);
    let best = often.dev.unwrap();
    assert!(losses.iter().all(|loss| *loss >= best.loss));
    assert_eq!(
        nn::training::evaluate(&model, &often.params, &dev).unwrap(),
        best
    );
}

#[test]
fn restarts_go_on_until_dev_is_accepted() {
    let (train, dev) = (easy(40, 20), easy(40, 20));
    let model = classifier(&RNN);
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
    let model = classifier(&RNN);
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
fn decoders_learn_to_say_the_first_token_and_stop_whatever_the_company() {
    let lstm = Seq2seqSpec {
        source: 8,
        target: 8,
        go: 0,
        eos: 1,
        dim: 8,
        units: 16,
        layers: 1,
        attention: 8,
        dropout: 0.0,
        reversed: false,
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
    let specs: [&dyn NetworkSpec; 2] = [&lstm, &transformer];
    for spec in specs {
        let model = Model::new(spec).unwrap();
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
        let together = victim.decode(&items, 5).unwrap();
        let right = together
            .iter()
            .zip(&test)
            .filter(|(printed, e)| e.target == Target::Tokens([printed.as_slice(), &[1]].concat()))
            .count();
        assert!(right >= 38, "{right} of 40 right: {spec:?}");
        for (item, printed) in items.iter().zip(together) {
            assert_eq!(victim.decode(&[item], 5).unwrap()[0], printed);
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

/// Weights so large that they are packed once for all shards, and their gradients made from all shards at once.
#[test]
fn shards_that_share_packed_weights_get_the_bits_of_shards_that_do_not() {
    let spec = LanguageSpec {
        vocabulary: 1100,
        dim: 130,
        units: 130,
        layers: 1,
        dropout: 0.0,
        tie_layers: false,
        init: 0.1,
    };
    let model = Model::new(&spec).unwrap();
    let s = Stream::new(1, "large");
    let ids = |k: u64| -> Vec<u32> { (0..3).map(|t| s.item(k).below(t, 1100) as u32).collect() };
    let examples: Vec<Example> = (0..40)
        .map(|k| Example {
            input: Sequence::Tokens(ids(k)),
            target: Target::Tokens(ids(1000 + k)),
        })
        .collect();
    let start: Params<f32> = model.init(1);
    let mut trainer = Trainer::new(&model, start.clone(), Optimiser::SGD, Clip::No, 1).unwrap();
    let (mut alone, mut memory) = (start, Memory::new(&Optimiser::SGD, 0));
    // Two steps on different batches: the second must not see rows that the first one touched.
    for part in [&examples[..20], &examples[20..]] {
        let part: Vec<&Example> = part.iter().collect();
        trainer.step_on(&part, &Objective::Margin, 0.5).unwrap();
        let pieces: Vec<Shard<f32>> = shards(part.len())
            .into_iter()
            .map(|items| {
                let (batch, mut shard) = (Batch::new(&part[items]).unwrap(), Shard::default());
                shard.tape.reset(Want::WEIGHTS);
                shard.grads.reset(model.layout());
                let out = model.forward(&mut shard.tape, &alone, &batch).unwrap();
                let scale = 1.0 / part.len() as f64;
                Objective::Margin
                    .apply(&mut shard.tape, &out, &batch, scale)
                    .unwrap();
                shard.tape.backward(&alone, &mut shard.grads);
                shard
            })
            .collect();
        assert!(pieces.len() > 1);
        let mut total = Vec::new();
        reduce(&pieces, model.layout(), &mut total).unwrap();
        memory.update(
            &Optimiser::SGD,
            Clip::No,
            0.5,
            1.0,
            &mut alone.trained,
            &total,
        );
        assert!(trainer.params.trained == alone.trained);
    }
}

/// Follows gradients of the current weights in every step, and adds nothing.
struct Attacked<'m>(&'m Model, &'m [Example]);

impl ExtraExamples for Attacked<'_> {
    fn batch(&mut self, _: u64, params: &Params<f32>, batch: &[usize]) -> nn::Result<Vec<Example>> {
        let network = Neural::new(self.0, params)?;
        let examples: Vec<&Example> = batch.iter().map(|n| &self.1[*n]).collect();
        let gradients = network.gradients(&examples, &Objective::CrossEntropy)?;
        assert!(gradients.iter().all(|g| g.input.iter().any(|x| *x != 0.0)));
        Ok(Vec::new())
    }
}

/// Attacks inside training read the weights and change nothing: neither them, nor the optimiser, nor the dropout.
#[test]
fn attacks_inside_training_leave_its_state_untouched() {
    let train = easy(60, 20);
    let spec_of = RecurrentSpec {
        dropout: 0.3,
        ..RecurrentSpec::new(
            &LSTM,
            Reads::Tokens {
                vocabulary: 20,
                dim: 6,
                frozen: false,
            },
            5,
            2,
        )
    };
    let model = Model::new(&spec_of).unwrap();
    let start = || model.init(1);
    let alone = fit(&model, start(), &train, &[], &spec(), None, &mut go_on).unwrap();
    let mut attacked = Attacked(&model, &train);
    let beside = fit_with(
        &model,
        start(),
        &train,
        &[],
        &spec(),
        None,
        &mut attacked,
        &mut go_on,
    );
    assert_eq!(alone, beside.unwrap());
}

/// A copy with noise learns as the vectors that it is read as, and the embeddings learn from it.
#[test]
fn noise_is_added_to_embeddings_and_they_learn_from_it() {
    struct Noise(f32);
    impl ExtraExamples for Noise {
        fn noise(
            &mut self,
            _: u64,
            _: &Params<f32>,
            batch: &[&Example],
        ) -> nn::Result<Vec<ndarray::Array2<f32>>> {
            let shape = |e: &&Example| (e.input.len() * 3, 4);
            Ok(batch
                .iter()
                .map(|e| ndarray::Array2::from_elem(shape(e), self.0))
                .collect())
        }
    }
    let spelt = |n: usize| Example {
        input: Sequence::Chars {
            width: 3,
            ids: vec![1 + (n % 4) as u32, 2, 0, 3, 1 + (n % 3) as u32, 0],
        },
        target: Target::Class((n % 2) as u32),
    };
    let train: Vec<Example> = (0..24).map(spelt).collect();
    let network = nn::models::CharCnnSpec {
        characters: 6,
        dim: 4,
        width: 2,
        kernels: 5,
        highways: 1,
        units: 4,
        layers: 1,
        dropout: 0.0,
        classes: 2,
        init: 0.05,
        forget_bias: 0.0,
        normalise: false,
    };
    let model = Model::new(&network).unwrap();
    let fitted = |noise: Option<f32>| {
        let start = model.init(1);
        let fitted = match noise {
            None => fit(&model, start, &train, &[], &spec(), None, &mut go_on),
            Some(size) => fit_with(
                &model,
                start,
                &train,
                &[],
                &spec(),
                None,
                &mut Noise(size),
                &mut go_on,
            ),
        };
        fitted.unwrap().params
    };
    let size = |params: &Params<f32>| {
        let table = params.view(model.layout().find("characters").unwrap());
        table.iter().map(|x| f64::from(x * x)).sum::<f64>()
    };
    // Copies without noise weigh as much as the rows themselves: the mean is the same up to rounding.
    let (plain, twice) = (fitted(None), fitted(Some(0.0)));
    assert!((size(&plain) - size(&twice)).abs() < 1e-3 * size(&plain));
    assert!((size(&plain) - size(&fitted(Some(2.0)))).abs() > 1e-3 * size(&plain));
    // A model that cannot take it says so.
    let other = classifier(&GRU);
    let error = fit_with(
        &other,
        other.init(1),
        &easy(40, 20),
        &[],
        &spec(),
        None,
        &mut Noise(1.0),
        &mut go_on,
    );
    assert!(error.is_err());
}

/// Memory of a pass goes back to where it came from: an epoch of HotFlip's victim once held ten gigabytes.
#[test]
fn training_holds_no_more_memory_after_many_steps_than_after_a_few() {
    for case in cases() {
        let model = case.model();
        let examples = case.examples(5);
        let batch: Vec<&Example> = examples.iter().collect();
        let mut trainer = Trainer::new(&model, model.init(1), Optimiser::SGD, Clip::No, 1).unwrap();
        let mut step = || {
            trainer
                .step_on(&batch, &Objective::CrossEntropy, 1e-3)
                .unwrap();
            trainer.held()
        };
        let few = (0..3).map(|_| step()).last();
        let many = (0..10).map(|_| step()).last();
        assert_eq!(few, many, "{}", case.name);
    }
}
