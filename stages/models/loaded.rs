//! Trained models taken out of tables, ready to be asked. Knows nothing of attacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Float32Type;
use arrow::record_batch::RecordBatch;
use ndarray::ArrayView2;
use nn::autodiff::Params;
use nn::batch::{Example, Sequence, Target};
use nn::linear::{LinearSvm, NaiveBayes, Vectors};
use nn::models::Model;
use nn::numeric::argmax;
use nn::victim::{Neural, Victim};

use crate::Failure;
use crate::models::failure;
use crate::tables::weights;
use crate::tables::weights::{Card, Numbers, Tensor};

/// A model with its numbers.
pub struct Loaded {
    /// What it is.
    pub card: Card,
    body: Body,
}

enum Body {
    Network(Box<(Model, Params<f32>)>),
    Bayes(NaiveBayes),
    Svm(LinearSvm),
}

/// Vectors of words, from the output of an embed stage.
pub fn vectors(table: &RecordBatch) -> Result<Vectors, Failure> {
    let wrong = || {
        Failure::new("the input `vectors` has no column `v` of fixed lists of 32-bit floats")
            .help("connect the output `vectors` of an embed stage")
    };
    let column = table.column_by_name("v").ok_or_else(wrong)?;
    let lists = column.as_fixed_size_list_opt().ok_or_else(wrong)?;
    let values = lists.values().as_primitive_opt::<Float32Type>();
    let values = values.ok_or_else(wrong)?.values();
    let dim = lists.value_length() as usize;
    let from = lists.value_offset_at(0);
    if lists.null_count() > 0 || dim == 0 {
        return Err(wrong());
    }
    Ok(Vectors {
        dim,
        data: Arc::from(&values[from..from + lists.len() * dim]),
    })
}

impl Loaded {
    /// The model of a table of weights. `vectors` are those that it was trained with, if it
    /// keeps them outside its weights.
    pub fn open(table: &RecordBatch, vectors: Option<&Vectors>) -> Result<Loaded, Failure> {
        let (card, tensors) = weights::read(table)?;
        let needed = match &card {
            Card::Network { vectors, .. } | Card::Svm { vectors, .. } => vectors.as_deref(),
            Card::NaiveBayes { .. } => None,
        };
        let vectors = match (needed, vectors) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(Failure::new(
                    "this model reads word vectors that are not among its weights",
                )
                .help("connect the input `vectors` to what the train stage read"));
            }
            (Some(digest), Some(vectors)) if weights::digest(&vectors.data) == digest => {
                Some(vectors)
            }
            (Some(_), Some(_)) => {
                return Err(Failure::new(
                    "the connected vectors are not those that the model was trained with",
                )
                .help("connect the input `vectors` to what the train stage read"));
            }
        };
        let body = match &card {
            Card::Network { spec, .. } => {
                let model = Model::new(spec).map_err(failure)?;
                let params = network(&model, &tensors, vectors)?;
                Body::Network(Box::new((model, params)))
            }
            Card::NaiveBayes {
                vocabulary,
                classes,
                ..
            } => {
                let counts = doubles(&tensors, "counts")?;
                let counts = counts.iter().map(|c| *c as u64).collect();
                let bayes = NaiveBayes::from_counts(counts, *vocabulary, *classes);
                Body::Bayes(bayes.map_err(failure)?)
            }
            Card::Svm { spec, .. } => {
                let machines = tensors.len() / 2;
                let machine = |k: usize| {
                    let w = doubles(&tensors, &format!("machine.{k}.weights"))?;
                    let b = doubles(&tensors, &format!("machine.{k}.bias"))?;
                    Ok((w.to_vec(), b.first().copied().unwrap_or_default()))
                };
                let machines = (0..machines).map(machine).collect::<Result<_, Failure>>()?;
                let svm = LinearSvm::from_machines(machines, spec, vectors.cloned());
                Body::Svm(svm.map_err(failure)?)
            }
        };
        Ok(Loaded { card, body })
    }

    /// To be asked and attacked.
    pub fn subject(&self) -> Result<Subject<'_>, Failure> {
        Ok(match &self.body {
            Body::Network(parts) => {
                Subject::Network(Neural::new(&parts.0, &parts.1).map_err(failure)?)
            }
            Body::Bayes(bayes) => Subject::Machine(bayes),
            Body::Svm(svm) => Subject::Machine(svm),
        })
    }

    /// The network, if it is one.
    pub fn network(&self) -> Option<(&Model, &Params<f32>)> {
        match &self.body {
            Body::Network(parts) => Some((&parts.0, &parts.1)),
            _ => None,
        }
    }

    /// The counts, if it is naive Bayes.
    pub fn bayes(&self) -> Option<&NaiveBayes> {
        match &self.body {
            Body::Bayes(bayes) => Some(bayes),
            _ => None,
        }
    }
}

/// A loaded model that can be asked.
pub enum Subject<'a> {
    /// A network, which knows more tricks than others.
    Network(Neural<'a>),
    /// Anything else.
    Machine(&'a dyn Victim),
}

impl<'a> Subject<'a> {
    /// What all models answer.
    pub fn victim(&self) -> &(dyn Victim + 'a) {
        match self {
            Subject::Network(network) => network,
            Subject::Machine(machine) => *machine,
        }
    }
}

/// The probabilities of each class for each text, a few thousand at a time.
pub fn probabilities(victim: &dyn Victim, texts: &[&Sequence]) -> Result<Vec<Vec<f32>>, Failure> {
    let mut all = Vec::with_capacity(texts.len());
    for part in texts.chunks(4096) {
        let rows = victim.probabilities(part).map_err(failure)?;
        all.extend(rows.into_iter().map(|p| p.into_raw_vec_and_offset().0));
    }
    Ok(all)
}

/// The share of examples whose most likely class is their label.
pub fn accuracy(victim: &dyn Victim, examples: &[Example]) -> Result<f64, Failure> {
    let texts: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
    let said = probabilities(victim, &texts)?;
    let right = said
        .iter()
        .zip(examples)
        .filter(|(p, e)| matches!(e.target, Target::Class(label) if argmax(p) == label as usize));
    Ok(right.count() as f64 / examples.len().max(1) as f64)
}

fn network(
    model: &Model,
    tensors: &BTreeMap<String, Tensor>,
    vectors: Option<&Vectors>,
) -> Result<Params<f32>, Failure> {
    // All numbers are replaced: the seed does not matter.
    let mut params = model.init(0);
    for (name, span) in model.layout().entries() {
        if let (true, Some(vectors)) = (span.frozen(), vectors) {
            params.set(span, vectors.view()).map_err(failure)?;
            continue;
        }
        let tensor = tensors.get(name);
        let tensor = tensor.ok_or_else(|| Failure::new(format!("the weights lack `{name}`")))?;
        let Numbers::Single(numbers) = &tensor.numbers else {
            return Err(Failure::new(format!(
                "`{name}` does not hold 32-bit floats"
            )));
        };
        let values = ArrayView2::from_shape((span.rows, span.cols), numbers.as_slice());
        let values = values.map_err(|_| {
            let (rows, cols) = (span.rows, span.cols);
            let got = numbers.len();
            Failure::new(format!(
                "`{name}` has {got} numbers, expected {rows} x {cols}"
            ))
        })?;
        params.set(span, values).map_err(failure)?;
    }
    Ok(params)
}

fn doubles<'a>(tensors: &'a BTreeMap<String, Tensor>, name: &str) -> Result<&'a [f64], Failure> {
    match tensors.get(name).map(|t| &t.numbers) {
        Some(Numbers::Double(numbers)) => Ok(numbers),
        _ => Err(Failure::new(format!(
            "the weights have no tensor `{name}` of 64-bit floats"
        ))),
    }
}
