//! Models that say a sequence, as victims: asked alone they show what they say, and company changes nothing.

use crate::common::cases;
use nn::autodiff::Params;
use nn::batch::{Example, Sequence, Target};
use nn::models::Model;
use nn::numeric::argmax;
use nn::objectives::Objective;
use nn::victim::{Neural, Queries, Victim, beam_search};

/// Every model that says a sequence, with weights that make it say something.
fn speaking() -> Vec<(&'static str, Model, Params<f32>, Vec<Example>)> {
    let all = cases()
        .into_iter()
        .filter(|c| c.model().decoding().is_some());
    let list: Vec<_> = all
        .map(|case| {
            let model = case.model();
            let mut params: Params<f32> = model.init(4);
            params.trained.iter_mut().for_each(|w| *w *= 3.0);
            (case.name, model, params, case.examples(20))
        })
        .collect();
    assert_eq!(list.len(), 3, "a new model that speaks joins this test");
    list
}

#[test]
fn logits_are_those_of_its_own_answer() {
    for (name, model, params, examples) in speaking() {
        let victim = Neural::new(&model, &params).unwrap();
        let items: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
        let logits = victim.logits(&items).unwrap();
        assert_eq!(
            victim.queries().forwards,
            40,
            "{name}: it answers, then shows"
        );
        let decoding = model.decoding().unwrap();
        let (eos, most) = (decoding.end, decoding.max_steps);
        let printed = victim.decode(&items, 28).unwrap();
        let mut lengths = std::collections::BTreeSet::new();
        for ((item, z), mut printed) in items.iter().zip(&logits).zip(printed) {
            let limit = (2 * item.len() + 10).min(most);
            printed.truncate(limit);
            if printed.len() < limit {
                printed.push(eos);
            }
            let rows = z.rows().into_iter();
            let shown: Vec<u32> = rows.map(|z| argmax(z.as_slice().unwrap()) as u32).collect();
            assert_eq!(shown, printed, "{name}");
            lengths.insert(printed.len());
            assert_eq!(victim.logits(&[item]).unwrap()[0], *z, "{name}: alone");
        }
        assert!(lengths.len() > 1, "{name}: the answers differ {lengths:?}");
        for (p, z) in victim.probabilities(&items).unwrap().iter().zip(&logits) {
            assert_eq!(p.len(), z.len());
            for p in p.rows() {
                assert!((p.sum() - 1.0).abs() < 1e-5, "{name}");
            }
        }
    }
}

#[test]
fn states_and_attention_have_the_steps_of_their_side() {
    for (name, model, params, examples) in speaking() {
        let victim = Neural::new(&model, &params).unwrap();
        let taught: Vec<&Example> = examples.iter().collect();
        let states = victim.states(&taught);
        if name.starts_with("transformer") {
            assert_eq!(
                states.unwrap_err().to_string(),
                "this model has no recurrent states"
            );
        } else {
            for (e, layers) in taught.iter().zip(states.unwrap()) {
                let (decoder, encoder) = layers.split_last().unwrap();
                let Target::Tokens(target) = &e.target else {
                    unreachable!()
                };
                assert_eq!(decoder.h.nrows(), target.len(), "{name}");
                assert!(encoder.iter().all(|s| s.h.nrows() == e.input.len()));
                assert!(layers.iter().all(|s| s.gates.len() == 4 && s.c.is_some()));
            }
        }
        for (e, layers) in taught.iter().zip(victim.attention(&taught).unwrap()) {
            let Target::Tokens(target) = &e.target else {
                unreachable!()
            };
            // The decoder looks at the source last, from every step that it says.
            let cross = layers.last().unwrap();
            let (_, queries, keys) = cross.weights.dim();
            assert_eq!((queries, keys), (target.len(), e.input.len()), "{name}");
            for row in layers.iter().flat_map(|layer| layer.weights.rows()) {
                assert!((row.sum() - 1.0).abs() < 1e-5, "{name} {row:?}");
            }
        }
        // Asked without a target, it shows its own answer.
        let open = |e: &Example| Example {
            input: e.input.clone(),
            target: Target::None,
        };
        let items: Vec<Example> = examples.iter().map(open).collect();
        let items: Vec<&Example> = items.iter().collect();
        let own = victim.attention(&items).unwrap();
        for (item, own) in items.iter().zip(&own) {
            assert_eq!(victim.attention(&[item]).unwrap()[0], *own, "{name}: alone");
        }
        let hidden = victim.hidden(&items).unwrap();
        assert!(hidden.iter().all(|layers| !layers.is_empty()), "{name}");
    }
}

/// Every sequence of up to `most` tokens that ends, and every one of `most` tokens that does not.
fn every_sequence(tokens: u32, end: u32, most: usize) -> Vec<Vec<u32>> {
    let (mut done, mut open) = (Vec::new(), vec![Vec::new()]);
    for _ in 0..most {
        let mut longer: Vec<Vec<u32>> = Vec::new();
        for start in &open {
            for token in 0..tokens {
                let mut next: Vec<u32> = start.clone();
                next.push(token);
                match token == end {
                    true => done.push(next),
                    false => longer.push(next),
                }
            }
        }
        open = longer;
    }
    done.extend(open);
    done
}

#[test]
fn beam_search_finds_the_likeliest_of_all_sequences_and_width_1_is_greedy() {
    const MOST: usize = 3;
    for (name, model, params, examples) in speaking() {
        let items: Vec<&Sequence> = examples.iter().take(6).map(|e| &e.input).collect();
        let (end, tokens) = (model.decoding().unwrap().end, model.outputs() as u32);
        let all = every_sequence(tokens, end, MOST);
        let mut others = 0;
        // Sure of what comes next, and not.
        for scale in [1.0, 0.3] {
            let mut params = params.clone();
            params.trained.iter_mut().for_each(|w| *w *= scale);
            let victim = Neural::new(&model, &params).unwrap();
            let greedy = victim.decode(&items, MOST).unwrap();
            let search =
                |items: &[&Sequence], width| beam_search(&victim, items, end, MOST, width).unwrap();
            assert_eq!(search(&items, 1), greedy, "{name}");
            let found = search(&items, all.len());
            for ((item, found), greedy) in items.iter().zip(&found).zip(&greedy) {
                let example = |target: &Vec<u32>| Example {
                    input: (*item).clone(),
                    target: Target::Tokens(target.clone()),
                };
                let taught: Vec<Example> = all.iter().map(example).collect();
                let losses = victim.losses(&taught.iter().collect::<Vec<_>>()).unwrap();
                let losses: Vec<f64> = losses.iter().map(|steps| steps.sum()).collect();
                let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
                let place = losses.iter().position(|loss| *loss == least).unwrap();
                let mut likeliest = all[place].clone();
                likeliest.retain(|token| *token != end);
                assert_eq!(*found, likeliest, "{name}");
                assert_eq!(search(&[item], all.len())[0], *found, "{name}: alone");
                others += usize::from(found != greedy);
            }
        }
        assert!(others > 0, "{name}: greedy decoding finds all of them too");
        let victim = Neural::new(&model, &params).unwrap();
        let error = beam_search(&victim, &items, end, MOST, 0).unwrap_err();
        assert_eq!(error.to_string(), "beam width is 0: expected at least 1");
    }
}

#[test]
fn an_objective_over_all_steps_does_not_see_padding() {
    for (name, model, params, examples) in speaking() {
        let victim = Neural::new(&model, &params).unwrap();
        let all: Vec<&Example> = examples.iter().collect();
        for objective in [
            Objective::Logit(2),
            Objective::CrossEntropy,
            Objective::Ranks { step: 0, last: 3 },
        ] {
            let together = victim.gradients(&all, &objective).unwrap();
            for (e, g) in all.iter().zip(&together) {
                let alone = victim.gradients(&[e], &objective).unwrap();
                assert_eq!(alone[0], *g, "{name} {objective:?}");
            }
        }
        assert_eq!(
            victim.queries(),
            Queries {
                forwards: 120,
                backwards: 120
            },
            "{name}"
        );
        let late = Objective::Ranks { step: 3, last: 3 };
        let error = victim.gradients(&all, &late).unwrap_err().to_string();
        assert!(error.starts_with("step 3 at item"), "{name}: {error}");
        let none = Objective::Ranks { step: 0, last: 0 };
        assert_eq!(
            victim.gradients(&all, &none).unwrap_err().to_string(),
            "rank is 0: expected above 0"
        );
    }
}
