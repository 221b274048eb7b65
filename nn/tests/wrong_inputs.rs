//! Inputs that no model may take: every model against every mistake, each an error with what was expected and what came.

use crate::common::easy::{classifier, go_on};
use crate::common::{Case, Kind, cases};
use nn::autodiff::Params;
use nn::batch::{Batch, Example, Sequence, Target};
use nn::models::{LSTM, Model};
use nn::objectives::Objective;
use nn::training::{FitSpec, fit};
use nn::victim::{Neural, Victim};

/// What a model reads, for making sequences that are nearly right.
enum Reading {
    Tokens { vocabulary: usize, dim: usize },
    Vectors { dim: usize },
    Characters { dim: usize },
}

fn reading(case: &Case) -> Reading {
    let dim = case.dim;
    match case.kind {
        Kind::Classes { tokens: vocabulary }
        | Kind::Next { vocabulary }
        | Kind::Pairs {
            source: vocabulary, ..
        } => Reading::Tokens { vocabulary, dim },
        Kind::Signals { dim, .. } => Reading::Vectors { dim },
        Kind::Characters => Reading::Characters { dim },
    }
}

fn vectors(dim: usize, data: Vec<f32>) -> Sequence {
    Sequence::of_rows(dim, data)
}

/// The mistake, the sequence that makes it, and what must be printed.
fn mistakes(case: &Case) -> Vec<(&'static str, Sequence, String)> {
    let mut list = vec![(
        "zero length",
        Sequence::Tokens(vec![]),
        "sequence is empty: give at least one".to_string(),
    )];
    let (dim, slots) = match reading(case) {
        Reading::Tokens { vocabulary, dim } => {
            list.push((
                "token beyond the table",
                Sequence::Tokens(vec![1, vocabulary as u32, 1]),
                format!("token {vocabulary} at item 0: expected below {vocabulary}"),
            ));
            list.push((
                "characters",
                Sequence::Chars {
                    width: 2,
                    ids: vec![1; 4],
                },
                "input: expected tokens or vectors, got characters".into(),
            ));
            (dim, 1)
        }
        Reading::Vectors { dim } => {
            list.push((
                "tokens",
                Sequence::Tokens(vec![1]),
                "input: expected vectors, got ids".into(),
            ));
            (dim, 1)
        }
        Reading::Characters { dim } => {
            list.push((
                "character beyond the table",
                Sequence::Chars {
                    width: 2,
                    ids: vec![1, 1, 1, 9],
                },
                "character 9 at item 0: expected below 9".into(),
            ));
            list.push((
                "tokens",
                Sequence::Tokens(vec![1]),
                "input: expected characters, got tokens".into(),
            ));
            (dim, 2)
        }
    };
    let size = dim * slots;
    for (name, x, word) in [
        ("NaN", f32::NAN, "NaN"),
        ("infinity", f32::INFINITY, "inf"),
        ("minus infinity", f32::NEG_INFINITY, "-inf"),
    ] {
        let mut data = vec![0.5; 2 * size];
        data[size + 1] = x;
        list.push((
            name,
            vectors(size, data),
            format!(
                "input holds {word} at index {}: expected a finite number",
                size + 1
            ),
        ));
    }
    let printed = if slots == 1 {
        format!("values per step: expected {dim}, got {}", dim + 1)
    } else {
        format!(
            "values per word: expected a multiple of {dim}, got {}",
            size + 1
        )
    };
    list.push((
        "wrong width",
        vectors(size + 1, vec![0.5; size + 1]),
        printed,
    ));
    list
}

fn train(model: &Model, params: Params<f32>, examples: &[Example]) -> Result<(), String> {
    let spec = FitSpec::new(1, 8, 0.01);
    fit(model, params, examples, &[], &spec, None, &mut go_on)
        .map(|_| ())
        .map_err(|e| e.to_string())
}

#[test]
fn every_model_refuses_every_wrong_sequence() {
    for case in cases() {
        let (model, right) = (case.model(), case.examples(1).remove(0));
        let params: Params<f32> = model.init(1);
        let victim = Neural::new(&model, &params).unwrap();
        for (name, input, expected) in mistakes(&case) {
            let steps = input.len().max(1);
            let target = match &right.target {
                Target::Tokens(_) if model.decoding().is_none() => Target::Tokens(vec![0; steps]),
                other => other.clone(),
            };
            let wrong = Example { input, target };
            let at = format!("{}, {name}", case.name);
            let printed = victim.gradients(&[&wrong], &Objective::CrossEntropy);
            assert_eq!(
                printed.unwrap_err().to_string(),
                expected,
                "{at}: gradients"
            );
            let printed = victim.logits(&[&wrong.input]);
            assert_eq!(printed.unwrap_err().to_string(), expected, "{at}: logits");
            let printed = train(&model, params.clone(), &[wrong]);
            assert_eq!(printed.unwrap_err(), expected, "{at}: fit");
        }
        assert_eq!(
            victim.logits(&[]).unwrap_err().to_string(),
            "list of items is empty: give at least one",
            "{}",
            case.name
        );
        assert_eq!(
            train(&model, params.clone(), &[]).unwrap_err(),
            "list of training examples is empty: give at least one"
        );
    }
    assert_eq!(
        Batch::<f32>::new(&[]).unwrap_err().to_string(),
        "batch is empty: give at least one"
    );
}

#[test]
fn every_model_refuses_every_wrong_target() {
    for case in cases() {
        let (model, right) = (case.model(), case.examples(1).remove(0));
        let (params, outputs) = (model.init(1), model.outputs());
        let say = |target: Target| {
            let wrong = Example {
                target,
                ..right.clone()
            };
            train(&model, params.clone(), &[wrong]).unwrap_err()
        };
        let at = case.name;
        if matches!(right.target, Target::Class(_)) {
            assert_eq!(
                say(Target::Class(outputs as u32)),
                format!("target {outputs} at item 0: expected below {outputs}"),
                "{at}"
            );
            assert_eq!(
                say(Target::Tokens(vec![0])),
                "target: expected a class, got tokens",
                "{at}"
            );
            assert_eq!(say(Target::None), "this model has no target", "{at}");
        } else {
            assert_eq!(
                say(Target::Class(0)),
                "target: expected tokens, got a class",
                "{at}"
            );
            assert_eq!(
                say(Target::Tokens(vec![])),
                "target sequence is empty: give at least one",
                "{at}"
            );
            let steps = right.input.len();
            let beyond = say(Target::Tokens(vec![outputs as u32; steps]));
            assert!(
                beyond.ends_with(&format!("{outputs} at item 0: expected below {outputs}")),
                "{at}: {beyond}"
            );
            if model.decoding().is_none() {
                assert_eq!(
                    say(Target::Tokens(vec![0; steps + 1])),
                    format!("tokens in a target: expected {steps}, got {}", steps + 1),
                    "{at}"
                );
            }
            let missing = say(Target::None);
            assert!(
                [
                    "this model has no target",
                    "this model has no target sequence"
                ]
                .contains(&missing.as_str()),
                "{at}: {missing}"
            );
        }
    }
}

#[test]
fn a_nan_in_any_weight_of_any_model_is_noticed() {
    for case in cases() {
        let (model, examples) = (case.model(), case.examples(8));
        let fresh: Params<f32> = model.init(1);
        let items: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
        for (name, span) in model.layout().entries() {
            let mut params = fresh.clone();
            params.view_mut(span).fill(f32::NAN);
            let at = format!("{}, {name}", case.name);
            let printed = train(&model, params.clone(), &examples).unwrap_err();
            assert!(
                printed.starts_with("training stopped at step 0: the"),
                "{at}: {printed}"
            );
            let victim = Neural::new(&model, &params).unwrap();
            let printed = victim.logits(&items).unwrap_err().to_string();
            assert!(
                printed.starts_with("logits holds NaN at index"),
                "{at}: {printed}"
            );
            let evaluated = nn::training::evaluate(&model, &params, &examples);
            assert_eq!(
                evaluated.unwrap_err().to_string(),
                "loss on the examples holds NaN at index 0: expected a finite number",
                "{at}"
            );
        }
        let mut short = fresh.clone();
        short.trained.pop();
        assert_eq!(
            train(&model, short, &examples).unwrap_err(),
            format!(
                "trained weights: expected {}, got {}",
                fresh.trained.len(),
                fresh.trained.len() - 1
            )
        );
    }
}

#[test]
fn a_batch_has_one_kind_of_sequence_and_settings_have_their_ranges() {
    let model = classifier(&LSTM);
    let text = Example {
        input: Sequence::Tokens(vec![1]),
        target: Target::Class(0),
    };
    let signal = Example {
        input: vectors(8, vec![0.0; 8]),
        target: Target::Class(0),
    };
    assert_eq!(
        train(&model, model.init(1), &[text.clone(), signal]).unwrap_err(),
        "kind of sequence: expected one kind in a batch, got several"
    );
    let say = |spec: FitSpec| {
        fit(
            &model,
            model.init(1),
            std::slice::from_ref(&text),
            &[],
            &spec,
            None,
            &mut go_on,
        )
        .unwrap_err()
        .to_string()
    };
    assert_eq!(say(FitSpec::new(1, 8, 0.0)), "rate is 0: expected above 0");
    assert_eq!(
        say(FitSpec::new(0, 8, 0.1)),
        "epochs is 0: expected above 0"
    );
    assert_eq!(say(FitSpec::new(1, 0, 0.1)), "batch is 0: expected above 0");
    assert_eq!(
        say(FitSpec::new(1, 8, f64::NAN)),
        "rate is NaN: expected above 0"
    );
}
