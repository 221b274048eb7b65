//! Claims about pre-trained weights: what training starts from is the file's, in any of its types and with any
//! prefix, and what does not fit is refused by name before anything is trained.

use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use store::Value;

use super::Train;
use crate::Failure;
use crate::tables::checkpoint;
use crate::tables::weights::{self, Numbers};
use crate::tests::trial::{reviews, run, text, tokens};

type Shapes = BTreeMap<String, Vec<usize>>;

/// Names and shapes of a BERT with one layer of two numbers, as the rows of tests need it.
fn shapes() -> Shapes {
    let mut shapes = Shapes::new();
    let mut add = |name: &str, shape: &[usize]| {
        shapes.insert(name.to_owned(), shape.to_vec());
    };
    add("embeddings.word_embeddings.weight", &[50, 4]);
    add("embeddings.position_embeddings.weight", &[20, 4]);
    add("embeddings.token_type_embeddings.weight", &[2, 4]);
    let at = "encoder.layer.0";
    for norm in [
        "embeddings.LayerNorm".to_owned(),
        format!("{at}.attention.output.LayerNorm"),
        format!("{at}.output.LayerNorm"),
    ] {
        add(&format!("{norm}.weight"), &[4]);
        add(&format!("{norm}.bias"), &[4]);
    }
    for part in ["self.query", "self.key", "self.value", "output.dense"] {
        add(&format!("{at}.attention.{part}.weight"), &[4, 4]);
        add(&format!("{at}.attention.{part}.bias"), &[4]);
    }
    add(&format!("{at}.intermediate.dense.weight"), &[6, 4]);
    add(&format!("{at}.intermediate.dense.bias"), &[6]);
    add(&format!("{at}.output.dense.weight"), &[4, 6]);
    add(&format!("{at}.output.dense.bias"), &[4]);
    shapes
}

/// The numbers of a tensor: all of them exact in 16 bits.
fn numbers(name: &str, count: usize) -> Vec<f32> {
    let of = name.len();
    (0..count)
        .map(|k| ((k * 3 + of) % 16) as f32 / 8.0 - 0.75)
        .collect()
}

/// A safetensors file.
fn file(shapes: &Shapes, prefix: &str, dtype: Dtype) -> Vec<u8> {
    let bytes = |name: &str, shape: &[usize]| -> Vec<u8> {
        let numbers = numbers(name, shape.iter().product());
        let half = |x: f32| {
            // Sign, five bits of exponent and ten of fraction, of numbers that need no more.
            let bits = x.to_bits();
            let exponent = ((bits >> 23) & 0xff) as i32 - 127;
            match x {
                0.0 => 0_u16,
                _ => {
                    ((bits >> 16) & 0x8000) as u16
                        | (((exponent + 15) as u16) << 10)
                        | ((bits >> 13) & 0x3ff) as u16
                }
            }
        };
        match dtype {
            Dtype::F16 => numbers
                .iter()
                .flat_map(|x| half(*x).to_le_bytes())
                .collect(),
            Dtype::BF16 => {
                let upper = |x: &f32| ((x.to_bits() >> 16) as u16).to_le_bytes();
                numbers.iter().flat_map(upper).collect()
            }
            Dtype::F64 => {
                let double = |x: &f32| f64::from(*x).to_le_bytes();
                numbers.iter().flat_map(double).collect()
            }
            _ => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    };
    let data: Vec<(String, Vec<usize>, Vec<u8>)> = shapes
        .iter()
        .map(|(name, shape)| (format!("{prefix}{name}"), shape.clone(), bytes(name, shape)))
        .collect();
    let views = data.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(dtype, shape.clone(), bytes).unwrap();
        (name.as_str(), view)
    });
    safetensors::serialize(views, None).unwrap()
}

/// Training by steps too small to see.
fn trained(bytes: &[u8], more: &[(&str, Value)]) -> Result<RecordBatch, Failure> {
    let table = checkpoint::from_safetensors(bytes)?;
    let mut given: BTreeMap<&str, Value> = BTreeMap::from([
        ("model", text("transformer")),
        ("layers", Value::Int(1)),
        ("dim", Value::Int(4)),
        ("heads", Value::Int(2)),
        ("inner", Value::Int(6)),
        ("positions", Value::Int(20)),
        ("epochs", Value::Int(1)),
        ("learning_rate", Value::Float(1e-12)),
    ]);
    given.extend(more.iter().cloned());
    let given: Vec<(&str, Value)> = given.into_iter().collect();
    let rows = tokens(&reviews());
    let inputs = [("rows", &rows), ("pretrained", &table)];
    run(&Train, &inputs, &given, 3).map(|outputs| outputs["weights"].clone())
}

#[test]
fn training_starts_from_the_file_in_any_type_and_with_any_prefix() {
    let mut with_integers = shapes();
    with_integers.insert("classifier.bias".to_owned(), vec![2]);
    let files = [
        file(&shapes(), "", Dtype::F32),
        file(&shapes(), "", Dtype::F16),
        file(&shapes(), "bert.", Dtype::BF16),
        file(&with_integers, "bert.", Dtype::F32),
    ];
    for bytes in files {
        let (_, tensors) = weights::read(&trained(&bytes, &[]).unwrap()).unwrap();
        let Numbers::Single(embedding) = &tensors["embedding"].numbers else {
            panic!("another type")
        };
        let expected = numbers("embeddings.word_embeddings.weight", 200);
        let far = embedding.iter().zip(&expected);
        let far = far.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(far < 1e-6, "{far}");
        // Linear maps are stored the other way round.
        let Numbers::Single(up) = &tensors["block.0.up.weight"].numbers else {
            panic!("another type")
        };
        let theirs = numbers("encoder.layer.0.intermediate.dense.weight", 24);
        assert!((up[1] - theirs[4]).abs() < 1e-6 && tensors["block.0.up.weight"].shape == [4, 6]);
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let whole = file(&shapes(), "", Dtype::F32);
    let say = |bytes: &[u8], more: &[(&str, Value)]| {
        let error = trained(bytes, more).unwrap_err();
        (error.param, error.message)
    };
    let sizes = [
        ("dim", 6, "`dim` is 6, but the pre-trained weights have 4"),
        (
            "inner",
            8,
            "`inner` is 8, but the pre-trained weights have 6",
        ),
        (
            "layers",
            2,
            "`layers` is 2, but the pre-trained weights have 1",
        ),
        (
            "positions",
            30,
            "`positions` is 30, but the pre-trained weights have 20",
        ),
    ];
    for (param, size, message) in sizes {
        let told = say(&whole, &[(param, Value::Int(size))]);
        assert_eq!(told, (Some(param), message.to_owned()));
    }
    let (param, message) = say(&whole, &[("pooler", Value::Bool(true))]);
    assert_eq!(
        (param, message.as_str()),
        (
            Some("pooler"),
            "`pooler` is true, but the pre-trained weights have no pooler"
        )
    );
    let mut short = shapes();
    short.insert("embeddings.word_embeddings.weight".to_owned(), vec![49, 4]);
    let (_, message) = say(&file(&short, "", Dtype::F32), &[]);
    assert_eq!(
        message,
        "the rows have a vocabulary of 50 tokens, but the pre-trained weights have 49"
    );
    let mut missing = shapes();
    missing.remove("encoder.layer.0.attention.self.key.bias");
    let (param, message) = say(&file(&missing, "", Dtype::F32), &[]);
    assert_eq!(param, Some("pretrained"));
    assert!(
        message.contains("encoder.layer.0.attention.self.key.bias"),
        "{message}"
    );
    let mut wrong = shapes();
    wrong.insert("encoder.layer.0.output.dense.weight".to_owned(), vec![4, 5]);
    let (_, message) = say(&file(&wrong, "", Dtype::F32), &[]);
    assert!(
        message.contains("encoder.layer.0.output.dense.weight"),
        "{message}"
    );
    let (_, message) = say(&file(&shapes(), "", Dtype::F64), &[]);
    assert!(
        message.contains("type F64, expected F32, F16 or BF16"),
        "{message}"
    );
    let (_, message) = say(b"not a file", &[]);
    assert!(
        message.starts_with("not a safetensors file of weights"),
        "{message}"
    );
}

#[test]
fn other_models_do_not_take_them() {
    let params = [
        ("model", text("lstm")),
        ("pretrained", text("x.safetensors")),
    ];
    let params = crate::tests::trial::params(&params);
    let error = crate::complete(&Train, &params).unwrap_err();
    assert_eq!(
        error.message,
        "`pretrained` is for model = \"transformer\", not `lstm`"
    );
}
