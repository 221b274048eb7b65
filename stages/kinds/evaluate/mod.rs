//! `evaluate`: from what models and attacks left to numbers a paper prints.
//!
//! `cells` turns tables into tidy results, one number per row ([`cells`]); `pca` projects texts on
//! two principal components ([`pca`]); `words` lists the strongest words of each class ([`words`]); `neighbours` the
//! words nearest to edited ones ([`neighbours`]); `coverage` how much of a network's states rows reach ([`coverage`]);
//! `perplexity` how well a language model predicts a text ([`perplexity`]); `changes` what attacks do inside a model
//! ([`changes`]); `attention-bound` is a theorem about attention by Monte Carlo ([`attention_bound`]); `translation` is
//! BLEU with and without typos ([`translation`]); `perturbations` are directions of embeddings on two principal
//! components ([`perturbations`]).

mod attention_bound;
mod bleu;
mod cells;
mod changes;
mod coded;
mod components;
mod coverage;
mod expect;
pub mod metrics;
mod neighbours;
mod pca;
mod perplexity;
mod perturbations;
mod template;
#[cfg(test)]
mod tests;
mod translation;
mod translation_attention;
mod words;

use store::{Params, Value};

use crate::contract::description::{Description, Inputs, Param, Port, Ports, Presence, Type};
use crate::contract::determinism::{Determinism, Within, within};
use crate::contract::expected::{ExpectedInputs, ExpectedOutputs, Mismatch};
use crate::contract::follow::{Follow, Takes};
use crate::contract::role::Role;
use crate::fingerprint::{self, Code};
use crate::params::settings;
use crate::params::settings::{Settings, failure};
use crate::{Failure, Outputs, ParamError, Stage, Task, models};

/// The kind `evaluate`.
pub struct Evaluate;

static DESCRIPTION: Description = Description {
    kind: "evaluate",
    summary: "Numbers as papers print them: accuracies, confusion matrices, rates, histograms, PCA.",
    params: &[
        Param {
            name: "measure",
            ty: Type::Text,
            presence: Presence::Default(|| Value::Text("cells".to_owned())),
            help: "cells (numbers from tables), pca (texts on two principal components), words (the strongest of each class), neighbours (the words nearest to edited ones), coverage (of a recurrent network's states, by rows), perplexity (of a text, by a language model), changes (what attacks do inside a model), attention-bound (a bound on attention scores, by Monte Carlo), translation (BLEU with and without typos) or perturbations (of embeddings, on two principal components).",
            ..Param::PLAIN
        },
        Param {
            name: "cells",
            ty: Type::Rows,
            presence: Presence::Default(|| Value::List(Vec::new())),
            help: "For cells: where each number comes from and where it goes.",
            ..Param::PLAIN
        },
        Param {
            name: "paper",
            ty: Type::Text,
            presence: Presence::Default(|| Value::Text(String::new())),
            help: "The paper that the results are about.",
            ..Param::PLAIN
        },
        Param {
            name: "profile",
            ty: Type::Text,
            presence: Presence::Default(|| Value::Text(String::new())),
            help: "The profile of the run, a column of the results.",
            ..Param::PLAIN
        },
        Param {
            name: "labels",
            ty: Type::Texts,
            presence: Presence::Default(|| Value::List(Vec::new())),
            help: "Names of the classes, in the order of their numbers.",
            ..Param::PLAIN
        },
        Param {
            name: "split",
            ty: Type::Text,
            presence: Presence::Default(|| Value::Text("train".to_owned())),
            help: "For pca: the texts to project; for coverage and perplexity: the rows; for translation: those to translate.",
            ..Param::PLAIN
        },
        Param {
            name: "table",
            ty: Type::Text,
            presence: Presence::Default(|| Value::Text("pca".to_owned())),
            help: "For pca: the table that its results belong to.",
            ..Param::PLAIN
        },
        Param::int(
            "strongest",
            5,
            1,
            "For words: how many per class; for neighbours: how many per word.",
        ),
        Param {
            name: "pairs",
            ty: Type::Rows,
            presence: Presence::Optional,
            help: "For neighbours: words with their edited forms.",
            ..Param::PLAIN
        },
        Param::float(
            "top_fraction",
            0.0,
            (0.0, 1.0),
            "For coverage: the share of a vector that counts as its maximum; at least one state; default: 0.",
        )
        .optional(),
        Param::float(
            "threshold",
            0.5,
            (0.0, 1.0),
            "For coverage: what a scaled hidden state must be above for DX; default: 0.5.",
        )
        .optional(),
        Param {
            name: "dims",
            ty: Type::Ints,
            presence: Presence::Optional,
            help: "For attention-bound: the dimensions to try.",
            ..Param::PLAIN
        },
        Param::int(
            "samples",
            1,
            1,
            "For attention-bound: how often vectors are drawn; default: 10,000. For translation: how many rows, from the first on; default: all. For perturbations: how many, evenly sampled; default: 2,000.",
        )
        .optional(),
        Param::int(
            "beam",
            1,
            1,
            "For translation: the width of the beam; default: 1, greedy decoding.",
        )
        .optional(),
        Param {
            name: "by",
            ty: Type::Text,
            presence: Presence::Optional,
            help: "For perturbations: the column that tells them apart, an axis that is collected.",
            ..Param::PLAIN
        },
    ],
    seeded: false,
    role: Role::Results,
};

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    Cells,
    Pca,
    Words,
    Neighbours,
    Coverage,
    Perplexity,
    Changes,
    AttentionBound,
    Translation,
    Perturbations,
}

const MEASURES: &[(&str, Measure)] = &[
    ("cells", Measure::Cells),
    ("pca", Measure::Pca),
    ("words", Measure::Words),
    ("neighbours", Measure::Neighbours),
    ("coverage", Measure::Coverage),
    ("perplexity", Measure::Perplexity),
    ("changes", Measure::Changes),
    ("attention-bound", Measure::AttentionBound),
    ("translation", Measure::Translation),
    ("perturbations", Measure::Perturbations),
];

impl Stage for Evaluate {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn ports(&self, params: &Params) -> Ports {
        let port = |name: &'static str, holds| Port {
            name: name.to_owned(),
            holds,
            required: true,
        };
        match Settings(params).one_of("measure", MEASURES) {
            Ok(Measure::Pca) => Ports {
                inputs: Inputs::Named(vec![port("rows", "tokens")]),
                outputs: vec![port("results", "results"), port("scatter", "scatter")],
            },
            Ok(Measure::Words) => Ports {
                inputs: Inputs::Named(vec![port("bayes", "weights"), port("vocab", "vocab")]),
                outputs: vec![port("words", "words")],
            },
            Ok(Measure::Neighbours) => Ports {
                inputs: Inputs::Named(vec![
                    port("victim", "weights"),
                    port("vocab", "vocab"),
                    port("words", "vocab"),
                ]),
                outputs: vec![port("neighbours", "neighbours")],
            },
            Ok(Measure::Coverage) => {
                let vectors = Port {
                    required: false,
                    ..port("vectors", "vectors")
                };
                Ports {
                    inputs: Inputs::Named(vec![
                        port("victim", "weights"),
                        port("rows", "tokens"),
                        vectors,
                    ]),
                    outputs: vec![port("coverage", "coverage")],
                }
            }
            Ok(Measure::Perplexity) => Ports {
                inputs: Inputs::Named(vec![port("victim", "weights"), port("rows", "tokens")]),
                outputs: vec![port("perplexity", "perplexity")],
            },
            Ok(Measure::Changes) => {
                let optional = |name, holds| Port {
                    required: false,
                    ..port(name, holds)
                };
                Ports {
                    inputs: Inputs::Named(vec![
                        port("victim", "weights"),
                        port("examples", "examples"),
                        port("vocab", "vocab"),
                        optional("language", "ngrams"),
                        optional("vectors", "vectors"),
                    ]),
                    outputs: vec![port("changes", "changes"), port("positions", "positions")],
                }
            }
            Ok(Measure::Translation) => {
                let misspellings = Port {
                    required: false,
                    ..port("misspellings", "pairs")
                };
                Ports {
                    inputs: Inputs::Named(vec![
                        port("victim", "weights"),
                        port("rows", "tokens"),
                        port("vocab", "vocab"),
                        misspellings,
                    ]),
                    outputs: vec![
                        port("translations", "translations"),
                        port("bleu", "bleu"),
                        port("attention", "attention"),
                    ],
                }
            }
            Ok(Measure::Perturbations) => Ports {
                inputs: Inputs::Named(vec![
                    port("victim", "weights"),
                    port("generated", "generated"),
                ]),
                outputs: vec![port("scatter", "scatter")],
            },
            Ok(Measure::AttentionBound) => Ports {
                inputs: Inputs::Named(Vec::new()),
                outputs: vec![port("bound", "bound")],
            },
            _ => Ports {
                inputs: Inputs::Any(Vec::new()),
                outputs: vec![port("results", "results")],
            },
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        let measure = Settings(params).one_of("measure", MEASURES)?;
        let (name, read): (_, &[&str]) = match measure {
            Measure::Cells => ("cells", &["cells", "paper", "profile", "labels"]),
            Measure::Pca => ("pca", &["paper", "profile", "split", "table"]),
            Measure::Words => ("words", &["strongest"]),
            Measure::Neighbours => ("neighbours", &["strongest", "pairs"]),
            Measure::Coverage => ("coverage", &["split", "top_fraction", "threshold"]),
            Measure::Perplexity => ("perplexity", &["split"]),
            Measure::Changes => ("changes", &[]),
            Measure::AttentionBound => ("attention-bound", &["dims", "samples"]),
            Measure::Translation => ("translation", &["split", "samples", "beam"]),
            Measure::Perturbations => ("perturbations", &["by", "samples"]),
        };
        let idle = |param: &&Param| param.name != "measure" && !read.contains(&param.name);
        for param in DESCRIPTION.params.iter().filter(idle) {
            settings::idle(params, Some(param), || {
                format!("measure = \"{name}\" does not read it")
            })?;
        }
        match measure {
            Measure::Cells => cells::check(params),
            Measure::Neighbours => neighbours::pairs(params).map(drop),
            Measure::AttentionBound => attention_bound::dims(params).map(drop),
            Measure::Perturbations => perturbations::by(params).map(drop),
            _ => Ok(()),
        }
    }

    fn follows(&self, params: &Params) -> Vec<Follow> {
        let trained_on = |port: &'static str| Follow {
            port,
            of: "victim",
            takes: Takes::Input(port),
        };
        match Settings(params).one_of("measure", MEASURES) {
            Ok(Measure::Coverage) => vec![trained_on("rows"), trained_on("vectors")],
            Ok(Measure::Perplexity) => vec![trained_on("rows")],
            _ => Vec::new(),
        }
    }

    fn reads_by_name(&self, params: &Params) -> Vec<(&'static str, String)> {
        cells::sources(params)
    }

    fn code(&self, params: &Params, inputs: &ExpectedInputs<'_>) -> Code {
        let mut chosen = models::files(inputs, &["bayes", "victim"]);
        let cells = cells::read(params).unwrap_or_default();
        let metrics = cells.iter().filter_map(|cell| metrics::find(&cell.metric));
        chosen.extend(metrics.map(|metric| metric.entry().file));
        chosen.sort_unstable();
        chosen.dedup();
        fingerprint::with_chosen(DESCRIPTION.kind, &chosen)
    }

    fn expect(
        &self,
        params: &Params,
        inputs: &ExpectedInputs<'_>,
    ) -> Result<ExpectedOutputs, Mismatch> {
        match Settings(params).one_of("measure", MEASURES)? {
            Measure::Cells => expect::cells(params, inputs),
            Measure::Pca => expect::pca(params, inputs),
            Measure::Words => expect::words(inputs),
            Measure::Neighbours => expect::neighbours(inputs),
            Measure::Coverage => expect::coverage(params, inputs),
            Measure::Perplexity => expect::perplexity(params, inputs),
            Measure::Changes => Ok(expect::changes()),
            Measure::AttentionBound => Ok(expect::attention_bound()),
            Measure::Translation => Ok(expect::translation()),
            Measure::Perturbations => expect::perturbations(params, inputs),
        }
    }

    fn determinism(&self, _: &Params) -> Determinism {
        const ROUNDED: &[Within] = &[
            within("results", "*", 3e-2),
            within("coverage", "*", 3e-2),
            within("perplexity", "*", 3e-2),
        ];
        Determinism::Rounding(ROUNDED)
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let measure = Settings(task.params).one_of("measure", MEASURES);
        match measure.map_err(failure)? {
            Measure::Cells => cells::run(task),
            Measure::Pca => pca::run(task),
            Measure::Words => words::run(task),
            Measure::Neighbours => neighbours::run(task),
            Measure::Coverage => coverage::run(task),
            Measure::Perplexity => perplexity::run(task),
            Measure::Changes => changes::run(task),
            Measure::AttentionBound => attention_bound::run(task),
            Measure::Translation => translation::run(task),
            Measure::Perturbations => perturbations::run(task),
        }
    }
}
