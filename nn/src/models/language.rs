//! LSTM language model: tokens -> dropout -> LSTM layers, dropout after each -> logits of the next token at every step.
//!
//! As the "small" model of Zaremba et al. 2014, arXiv:1409.2329. States may be carried from batch to batch.

use crate::autodiff::{Init, Layout, Params, Tape};
use crate::batch::Batch;
use crate::error::{Result, setting};
use crate::layers::{Dense, Direction, Lstm, RecurrentCell, dropout};
use crate::models::network::{Forward, Network, NetworkInfo, NetworkSpec, StateSize, TargetKind};
use crate::models::output::{Hidden, Output};
use crate::models::reader::Reader;
use crate::models::recurrent::carried;
use crate::models::settings;
use crate::numeric::Real;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Parameters of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageSpec {
    /// Tokens.
    pub vocabulary: usize,
    /// Embedding dimension.
    pub dim: usize,
    /// Hidden units of each layer.
    pub units: usize,
    /// Layers.
    pub layers: usize,
    /// Dropout of the vectors and after each layer.
    #[serde(default)]
    pub dropout: f64,
    /// Whether all layers share one set of weights; `dim` must then equal `units`.
    #[serde(default)]
    pub tie_layers: bool,
    /// All weights start uniform in plus and minus this.
    pub init: f64,
}

/// The network.
#[derive(Clone, Debug)]
pub struct Language {
    spec: LanguageSpec,
    reader: Reader,
    cells: Vec<Lstm>,
    head: Dense,
}

impl NetworkSpec for LanguageSpec {
    fn build(&self, layout: &mut Layout) -> Result<Arc<dyn Network>> {
        let spec = self;
        settings::sizes(&[
            ("units", spec.units),
            ("layers", spec.layers),
            ("vocabulary", spec.vocabulary),
        ])?;
        setting("init", spec.init > 0.0, "above 0", spec.init)?;
        settings::dropout(spec.dropout)?;
        setting(
            "tie_layers",
            !spec.tie_layers || spec.dim == spec.units,
            "false, or dim equal to units",
            spec.tie_layers,
        )?;
        let init = Init::Uniform(spec.init);
        let reader = Reader::tokens(layout, spec.vocabulary, spec.dim, init)?;
        let mut cells: Vec<Lstm> = Vec::new();
        for k in 0..spec.layers {
            let fresh = k == 0 || !spec.tie_layers;
            let cell = if fresh {
                Lstm::new(
                    layout,
                    &format!("lstm.{k}"),
                    if k == 0 { spec.dim } else { spec.units },
                    spec.units,
                    init,
                )
            } else {
                cells[0]
            };
            cells.push(cell);
        }
        let head = Dense::new(layout, "head", spec.units, spec.vocabulary, init);
        Ok(Arc::new(Language {
            spec: spec.clone(),
            reader,
            cells,
            head,
        }))
    }
}

impl Network for Language {
    fn info(&self) -> NetworkInfo {
        let (spec, targets) = (&self.spec, TargetKind::NextTokens);
        let state = StateSize {
            units: spec.units,
            cell_state: true,
        };
        NetworkInfo {
            carried_states: vec![state; spec.layers],
            ..NetworkInfo::new("lstm_lm", spec, targets, spec.vocabulary)
        }
    }
}

impl<T: Real> Forward<T> for Language {
    fn forward(&self, tape: &mut Tape<T>, params: &Params<T>, batch: &Batch<T>) -> Result<Output> {
        let input = self.reader.read(tape, params, batch)?;
        let mut x = dropout(tape, input, self.spec.dropout);
        let mut states = Vec::new();
        for (k, cell) in self.cells.iter().enumerate() {
            let initial = carried(tape, batch, cell, k, self.cells.len())?;
            let s = cell.forward(tape, params, x, &batch.lens, initial, Direction::Forward);
            x = dropout(tape, s.h, self.spec.dropout);
            states.push(s);
        }
        let logits = self.head.forward(tape, params, x);
        Ok(Output {
            states,
            hidden: vec![Hidden::source(x)],
            ..Output::new(input, logits)
        })
    }
}
