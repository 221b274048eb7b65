//! Published MiniLM checkpoints, L6 in 32 bits and L3 in 16, against what Hugging Face's transformers computed of 20
//! sentences in double precision (`reference/minilm.py`).
//!
//! The weights are not ours to ship: the tests run when ABLATE_MINILM names the folder that holds L6's model.safetensors,
//! and when ABLATE_MIRROR names a mirror that has L3, and say so when they do not.

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
    let worst = worst(&bytes, include_str!("reference/minilm.json"), 6);
    assert!(worst.0 < 2e-5 && worst.1 < 1e-6, "{worst:?}");
}

#[test]
fn sixteen_bits_are_read_as_the_reference_reads_them() {
    let file = std::env::var_os("ABLATE_MIRROR").map(|mirror| {
        std::path::Path::new(&mirror).join("minilm_l3/paraphrase-MiniLM-L3-v2.f16.safetensors")
    });
    let Some(bytes) = file.and_then(|file| std::fs::read(file).ok()) else {
        eprintln!("not compared: set ABLATE_MIRROR to a mirror that has MiniLM-L3");
        return;
    };
    let worst = worst(&bytes, include_str!("reference/minilm_l3.json"), 3);
    // The weights are exact in 32 bits: only the arithmetic differs.
    assert!(worst.0 < 1e-4 && worst.1 < 1e-5, "{worst:?}");
}

/// The largest differences of a hidden state and of a unit sentence vector.
fn worst(bytes: &[u8], reference: &str, layers: usize) -> (f32, f32) {
    let tensors = SafeTensors::deserialize(bytes).unwrap();
    let spec = bert_spec(&tensors, 12, 2, 0.0).unwrap();
    assert_eq!(
        (spec.vocabulary, spec.positions, spec.dim, spec.layers),
        (30_522, 512, 384, layers)
    );
    let model = Model::new(&spec).unwrap();
    let mut params = model.init(1);
    load_bert(&model, &mut params, &tensors).unwrap();
    let victim = Neural::new(&model, &params).unwrap();

    let cases: Vec<Case> = serde_json::from_str(reference).unwrap();
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
    for ((case, found), mean) in cases.iter().zip(hidden).zip(means) {
        assert_eq!(found.len(), layers + 1);
        for (layer, expected) in found.iter().zip(&case.hidden) {
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
    assert_eq!(victim.sentences(&texts[..1]).unwrap()[0].len(), 384);
    worst
}
