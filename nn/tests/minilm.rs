//! The published MiniLM-L6 checkpoint against numbers of `reference/minilm.py`, which wrote the forward pass out anew.
//!
//! The weights are 90 MB and not ours to ship: the test runs when ABLATE_MINILM names the folder that holds
//! model.safetensors, and says so when it does not.

use nn::batch::{Example, Sequence, Target};
use nn::models::{Model, bert_spec, load_bert};
use nn::victim::{Neural, Victim};
use safetensors::SafeTensors;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    ids: Vec<u32>,
    /// The first three numbers of every step, layer by layer.
    hidden: Vec<Vec<f32>>,
    sentence: Vec<f32>,
}

#[test]
fn hidden_states_and_sentence_vectors_are_those_of_the_reference() {
    let Ok(folder) = std::env::var("ABLATE_MINILM") else {
        eprintln!("not compared: set ABLATE_MINILM to a folder with MiniLM's model.safetensors");
        return;
    };
    let bytes = std::fs::read(std::path::Path::new(&folder).join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let spec = bert_spec(&tensors, 12, 2, 0.0).unwrap();
    assert_eq!(
        (spec.vocabulary, spec.positions, spec.dim, spec.layers),
        (30_522, 512, 384, 6)
    );
    let model = Model::new(&spec).unwrap();
    let mut params = model.init(1);
    load_bert(&model, &mut params, &tensors).unwrap();
    let victim = Neural::new(&model, &params).unwrap();

    let cases: Vec<Case> = serde_json::from_str(include_str!("reference/minilm.json")).unwrap();
    let texts: Vec<Sequence> = cases
        .iter()
        .map(|c| Sequence::Tokens(c.ids.clone()))
        .collect();
    let texts: Vec<&Sequence> = texts.iter().collect();
    let examples: Vec<Example> = texts
        .iter()
        .map(|text| Example {
            input: (*text).clone(),
            target: Target::None,
        })
        .collect();
    let (hidden, means) = (
        victim.hidden(&examples.iter().collect::<Vec<_>>()).unwrap(),
        victim.mean_vectors(&texts).unwrap(),
    );
    let mut worst = (0.0f32, 0.0f32);
    for ((case, layers), mean) in cases.iter().zip(hidden).zip(means) {
        assert_eq!(layers.len(), 7);
        for (layer, expected) in layers.iter().zip(&case.hidden) {
            let got = layer.vectors.rows();
            let got = got
                .into_iter()
                .flat_map(|row| row.to_vec().into_iter().take(3));
            assert_eq!(layer.vectors.nrows() * 3, expected.len());
            for (got, expected) in got.zip(expected) {
                worst.0 = worst.0.max((got - expected).abs());
            }
        }
        let length = mean.iter().map(|x| x * x).sum::<f32>().sqrt();
        for (got, expected) in mean.iter().zip(&case.sentence) {
            worst.1 = worst.1.max((got / length - expected).abs());
        }
    }
    eprintln!(
        "largest difference: {:e} of a hidden state, {:e} of a unit sentence vector",
        worst.0, worst.1
    );
    assert!(worst.0 < 2e-5 && worst.1 < 1e-6, "{worst:?}");
    assert_eq!(victim.sentences(&texts[..1]).unwrap()[0].len(), 384);
}
