//! Queries that attacks make by the thousand: what they leave out or share changes no bit of an answer.

use crate::common::cases;
use crate::common::easy::{classifier, easy};
use nn::autodiff::{Params, Tape, Want};
use nn::batch::{Batch, Example, Sequence, Target};
use nn::models::{LSTM, Model, NetworkSpec, Reads, RecurrentSpec, TransformerSpec};
use nn::objectives::Objective;
use nn::training::{Clip, Optimiser, Trainer};
use nn::victim::{Neural, Victim};

fn transformer(layers: usize, pooler: bool, separator: Option<u32>) -> TransformerSpec {
    TransformerSpec {
        vocabulary: 30,
        positions: 16,
        dim: 8,
        heads: 2,
        inner: 12,
        layers,
        dropout: 0.0,
        pooler,
        classes: 3,
        separator,
    }
}

fn bilstm() -> RecurrentSpec {
    let reads = Reads::Tokens {
        vocabulary: 30,
        dim: 5,
        frozen: false,
    };
    RecurrentSpec {
        bidirectional: true,
        attention: 4,
        ..RecurrentSpec::new(&LSTM, reads, 6, 3)
    }
}

fn victims() -> Vec<(&'static str, Model)> {
    let specs: [(&str, Box<dyn NetworkSpec>); 5] = [
        ("one layer", Box::new(transformer(1, false, None))),
        ("three layers", Box::new(transformer(3, false, None))),
        ("pooler", Box::new(transformer(2, true, None))),
        ("pairs", Box::new(transformer(2, false, Some(9)))),
        ("bilstm", Box::new(bilstm())),
    ];
    let model = |(name, spec): (&'static str, Box<dyn NetworkSpec>)| {
        (name, Model::new(spec.as_ref()).unwrap())
    };
    specs.into_iter().map(model).collect()
}

/// Different tokens, among them 9, which separates the texts of pairs.
fn text(len: u32) -> Vec<u32> {
    (0..len).map(|i| (i * 7 + 2) % 30).collect()
}

#[test]
fn an_answer_has_the_bits_of_the_whole_pass() {
    for (name, model) in victims() {
        let params: Params<f32> = model.init(4);
        let items: Vec<Example> = [7, 3, 12, 1]
            .map(|len| Example {
                input: Sequence::Tokens(text(len)),
                target: Target::None,
            })
            .to_vec();
        let batch = Batch::new(&items.iter().collect::<Vec<_>>()).unwrap();
        let run = |whole: bool| {
            let mut tape = Tape::default();
            tape.reset(Want::NOTHING);
            let out = match whole {
                true => model.forward(&mut tape, &params, &batch).unwrap(),
                false => model.answer(&mut tape, &params, &batch).unwrap(),
            };
            let sentence = tape.get(out.sentence.unwrap()).to_vec();
            (tape.get(out.logits).to_vec(), sentence)
        };
        assert_eq!(run(true), run(false), "{name}");
    }
    // Every other model answers with its whole pass.
    for case in cases() {
        let (model, examples) = (case.model(), case.examples(4));
        let params: Params<f32> = model.init(3);
        let batch = Batch::new(&examples.iter().collect::<Vec<_>>()).unwrap();
        let mut tapes = [Tape::default(), Tape::default()];
        tapes.iter_mut().for_each(|tape| tape.reset(Want::NOTHING));
        let [whole, answer] = &mut tapes;
        let whole_out = model.forward(whole, &params, &batch).unwrap();
        let out = model.answer(answer, &params, &batch).unwrap();
        assert_eq!(
            whole.get(whole_out.logits),
            answer.get(out.logits),
            "{}",
            case.name
        );
    }
}

#[test]
fn substitutes_have_the_bits_of_whole_texts_in_any_company() {
    for (name, model) in victims() {
        let params: Params<f32> = model.init(4);
        let victim = Neural::new(&model, &params).unwrap();
        let tokens = text(11);
        let candidates: Vec<u32> = (0..30).collect();
        for position in [0, 5, 10] {
            let all = victim.substituted(&tokens, position, &candidates).unwrap();
            for (candidate, found) in candidates.iter().zip(all) {
                let mut whole = tokens.clone();
                whole[position] = *candidate;
                let whole = Sequence::Tokens(whole);
                let logits = victim.logits(&[&whole]).unwrap().remove(0);
                assert_eq!(logits.row(0).to_vec(), found.logits, "{name} {position}");
                let sentence = victim.sentences(&[&whole]).unwrap().remove(0);
                assert_eq!(Some(sentence), found.sentence, "{name} {position}");
            }
        }
        assert!(
            victim.substituted(&tokens, 11, &candidates).is_err(),
            "{name}"
        );
    }
}

/// A token that occurs once: with its vector zero in the table, the text as it is gives the same logits.
#[test]
fn without_a_word_is_with_a_zero_vector_also_in_the_second_text_of_a_pair() {
    for (name, model) in victims() {
        let params: Params<f32> = model.init(4);
        let victim = Neural::new(&model, &params).unwrap();
        let tokens = text(11);
        let places: Vec<usize> = (0..tokens.len()).filter(|p| tokens[*p] != 9).collect();
        let found = victim.without(&tokens, &places).unwrap();
        let span = model.layout().find("embedding").unwrap();
        for (place, found) in places.iter().zip(found) {
            let mut zeroed = params.clone();
            zeroed
                .view_mut(span)
                .row_mut(tokens[*place] as usize)
                .fill(0.0);
            let other = Neural::new(&model, &zeroed).unwrap();
            let expected = other.logits(&[&Sequence::Tokens(tokens.clone())]).unwrap();
            assert_eq!(expected[0], found, "{name} {place}");
        }
        assert!(victim.without(&tokens, &[11]).is_err(), "{name}");
    }
}

#[test]
fn attention_received_is_the_mean_over_heads_and_adds_up_to_one() {
    for (name, model) in victims() {
        let params: Params<f32> = model.init(4);
        let victim = Neural::new(&model, &params).unwrap();
        let example = Example {
            input: Sequence::Tokens(text(6)),
            target: Target::None,
        };
        for layer in victim.attention(&[&example]).unwrap().remove(0) {
            for all in [false, true] {
                let received = layer.received(all);
                let sum: f64 = received.iter().sum();
                assert!(
                    received.len() == 6 && (sum - 1.0).abs() < 1e-6,
                    "{name} {sum}"
                );
            }
            let heads = layer.weights.dim().0;
            let first: f64 = (0..heads)
                .map(|h| f64::from(layer.weights[[h, 0, 2]]))
                .sum();
            assert_eq!(layer.received(false)[2], first / heads as f64, "{name}");
        }
    }
}

/// Decoupled weight decay: `w (1 - rate decay)` before the step, whatever the gradient.
#[test]
fn weight_decay_shrinks_all_weights_before_the_step() {
    let (model, examples) = (classifier(&LSTM), easy(20, 20));
    let step = |decay: f64| {
        let params = model.init(1);
        let mut trainer = Trainer::new(&model, params, Optimiser::SGD, Clip::No, 1).unwrap();
        trainer.weight_decay = decay;
        let batch = Batch::new(&examples.iter().collect::<Vec<_>>()).unwrap();
        trainer
            .step(&[batch], &Objective::CrossEntropy, 0.1)
            .unwrap();
        trainer.params.trained
    };
    let start: Params<f32> = model.init(1);
    let mut moved = 0;
    for ((start, plain), decayed) in start.trained.iter().zip(step(0.0)).zip(step(0.5)) {
        let expected = plain - 0.05 * start;
        assert!(
            (decayed - expected).abs() < 1e-6,
            "{start} {plain} {decayed}"
        );
        moved += usize::from(decayed != plain);
    }
    assert!(moved > 100, "{moved}: no weight is far from zero");
}
