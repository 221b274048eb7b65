//! Kim's CNN for sentences: vectors -> windows of several widths, maximum over time, ReLU -> dropout -> logits.
//!
//! Paper: Kim 2014, arXiv:1408.5882. Columns of the last weight keep a norm of at most `max_norm`.

use crate::autodiff::{Init, Layout, Params, Tape};
use crate::batch::Batch;
use crate::error::{Result, setting};
use crate::layers::{Activation, ConvMax, Dense, Windows, concat, dropout};
use crate::models::network::{Forward, Network, NetworkInfo, NetworkSpec, TargetKind};
use crate::models::output::Output;
use crate::models::reader::{Reader, Reads};
use crate::models::settings;
use crate::numeric::Real;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Parameters of Kim's CNN.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KimCnnSpec {
    /// What it reads.
    pub reads: Reads,
    /// Widths of the windows, in words.
    pub widths: Vec<usize>,
    /// Kernels of each width.
    pub kernels: usize,
    /// Rows of zeros at either end.
    #[serde(default)]
    pub padding: usize,
    /// Dropout before the logits.
    #[serde(default)]
    pub dropout: f64,
    /// Largest norm of a column of the last weight; 0 for none.
    #[serde(default)]
    pub max_norm: f64,
    /// Classes.
    pub classes: usize,
}

/// The network.
#[derive(Clone, Debug)]
pub struct KimCnn {
    spec: KimCnnSpec,
    reader: Reader,
    windows: Vec<ConvMax>,
    head: Dense,
}

impl NetworkSpec for KimCnnSpec {
    fn build(&self, layout: &mut Layout) -> Result<Arc<dyn Network>> {
        let spec = self;
        setting(
            "widths",
            !spec.widths.is_empty() && !spec.widths.contains(&0),
            "at least one width above 0",
            spec.widths.len(),
        )?;
        setting("kernels", spec.kernels > 0, "above 0", spec.kernels)?;
        settings::classes(spec.classes)?;
        settings::dropout(spec.dropout)?;
        let reader = Reader::new(layout, &spec.reads, Init::Uniform(0.25))?;
        let window = |&w: &usize| {
            ConvMax::new(
                layout,
                &format!("windows.{w}"),
                reader.dim(),
                w,
                spec.kernels,
                spec.padding,
                Activation::Relu,
                Init::Uniform(0.01),
            )
        };
        let windows: Vec<ConvMax> = spec.widths.iter().map(window).collect();
        let head = Dense::new(
            layout,
            "head",
            spec.kernels * windows.len(),
            spec.classes,
            Init::Glorot,
        );
        Ok(Arc::new(KimCnn {
            spec: spec.clone(),
            reader,
            windows,
            head,
        }))
    }
}

impl Network for KimCnn {
    fn info(&self) -> NetworkInfo {
        NetworkInfo::new("kim_cnn", &self.spec, TargetKind::Class, self.spec.classes)
    }
}

impl<T: Real> Forward<T> for KimCnn {
    fn forward(&self, tape: &mut Tape<T>, params: &Params<T>, batch: &Batch<T>) -> Result<Output> {
        let input = self.reader.read(tape, params, batch)?;
        let mut sentence = None;
        for window in &self.windows {
            let y = window.forward(tape, params, input, Windows::Items(batch.lens.clone()));
            sentence = Some(sentence.map_or(y, |s| concat(tape, s, y)));
        }
        let sentence = sentence.expect("at least one width");
        let y = dropout(tape, sentence, self.spec.dropout);
        let logits = self.head.forward(tape, params, y);
        Ok(Output {
            sentence: Some(sentence),
            ..Output::new(input, logits)
        })
    }

    /// Brings columns of the last weight back to the largest norm.
    fn constrain(&self, params: &mut Params<T>) {
        let (limit, cols) = (T::of(self.spec.max_norm), self.spec.classes);
        if self.spec.max_norm <= 0.0 {
            return;
        }
        let w = params.get_mut(self.head.weight);
        for k in 0..cols {
            let norm = w[k..]
                .iter()
                .step_by(cols)
                .map(|x| *x * *x)
                .sum::<T>()
                .sqrt();
            if norm > limit {
                w[k..]
                    .iter_mut()
                    .step_by(cols)
                    .for_each(|x| *x *= limit / norm);
            }
        }
    }
}
