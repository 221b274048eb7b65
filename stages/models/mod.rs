//! The models that stages train, by name: which parameters each takes, and its card.
//! To add one of `nn`: an entry in [`MODELS`] and an arm in [`card`].

pub mod loaded;
pub mod sway;

use std::collections::BTreeMap;

use crate::tables::networks::Spec;
use nn::linear::{Bag, Features, Steps, SvmSpec};
use nn::models::{CharCnnSpec, GRU, KimCnnSpec, LSTM, RNN, Reads, RecurrentSpec, TransformerSpec};
use store::Params;

use crate::contract::description::{Param, Presence, Type};
use crate::contract::expected::{ExpectedInputs, ExpectedModel, ExpectedRows, Mismatch};
use crate::params::settings;
use crate::params::settings::Settings;
use crate::tables::sequences::Form;
use crate::tables::weights::Card;
use crate::{Failure, ParamError};

/// A model by name.
pub struct Entry {
    /// The name after `model =`.
    pub name: &'static str,
    /// Its own parameters.
    pub params: &'static [Param],
}

const fn param(name: &'static str, ty: Type, help: &'static str) -> Param {
    Param {
        name,
        ty,
        presence: Presence::Optional,
        help,
    }
}

const UNITS: Param = param("units", Type::Int, "Hidden units of a layer (64).");
const LAYERS: Param = param("layers", Type::Int, "Layers on top of each other (1).");
const DROPOUT: Param = param(
    "dropout",
    Type::Float,
    "Share of numbers left out while training (0).",
);
const VECTORS: Param = param(
    "vectors",
    Type::Text,
    "What training does to connected word vectors: frozen (the default) or trained.",
);
const DIM: Param = param(
    "dim",
    Type::Int,
    "Numbers in a vector if none are connected (50; transformer: 64).",
);
const KERNELS: Param = param(
    "kernels",
    Type::Int,
    "Convolution kernels of each width (100).",
);

const BIDIRECTIONAL: Param = param(
    "bidirectional",
    Type::Bool,
    "Whether each layer also reads backward (false).",
);
const ATTENTION: Param = param(
    "attention",
    Type::Int,
    "Size of the attention's scores; 0 takes the last state (0).",
);
const HIDDEN: Param = param(
    "hidden",
    Type::Int,
    "Units of a ReLU layer before the logits; 0 for none (0).",
);
const LEARNED_STATE: Param = param(
    "learned_state",
    Type::Bool,
    "Whether initial states are learnt (false).",
);
const FORGET_BIAS: Param = param(
    "forget_bias",
    Type::Float,
    "For lstm: what the forget gate's bias starts at (1).",
);

const RECURRENT: &[Param] = &[
    UNITS,
    LAYERS,
    DROPOUT,
    VECTORS,
    DIM,
    BIDIRECTIONAL,
    ATTENTION,
    HIDDEN,
    LEARNED_STATE,
];
const LSTM_PARAMS: &[Param] = &[
    UNITS,
    LAYERS,
    DROPOUT,
    VECTORS,
    DIM,
    BIDIRECTIONAL,
    ATTENTION,
    HIDDEN,
    LEARNED_STATE,
    FORGET_BIAS,
];

/// Every model.
pub static MODELS: &[Entry] = &[
    // Long short-term memory; the last state to the logits.
    Entry {
        name: "lstm",
        params: LSTM_PARAMS,
    },
    // Gated recurrent units.
    Entry {
        name: "gru",
        params: RECURRENT,
    },
    // A vanilla recurrent network.
    Entry {
        name: "rnn",
        params: RECURRENT,
    },
    // Windows of words of several widths, the maximum over time.
    Entry {
        name: "kim-cnn",
        params: &[KERNELS, DROPOUT, VECTORS, DIM],
    },
    // Characters, windows, highways, then an LSTM over words.
    Entry {
        name: "char-cnn",
        params: &[KERNELS, UNITS, LAYERS, DROPOUT, DIM],
    },
    // A transformer encoder.
    Entry {
        name: "transformer",
        params: &[
            LAYERS,
            DROPOUT,
            DIM,
            param("heads", Type::Int, "Attention heads (4)."),
            param(
                "inner",
                Type::Int,
                "Units between the two maps of a block (4 x dim).",
            ),
            param(
                "positions",
                Type::Int,
                "The longest text that can be read (512).",
            ),
        ],
    },
    // Multinomial naive Bayes with Laplace's correction and no prior.
    Entry {
        name: "naive-bayes",
        params: &[],
    },
    // Linear machines trained by stochastic gradient descent on the hinge loss.
    Entry {
        name: "svm",
        params: &[
            param("alpha", Type::Float, "Weight of the norm (0.0001)."),
            param(
                "steps",
                Type::Text,
                "Step sizes: optimal (the default), pegasos or constant.",
            ),
            param(
                "features",
                Type::Text,
                "words (the default), mean or concatenated vectors.",
            ),
            param(
                "bag",
                Type::Text,
                "For words: binary (the default) or count.",
            ),
            param(
                "length",
                Type::Int,
                "For concatenated: how many words (250).",
            ),
        ],
    },
];

/// The models that are trained in one go: no batches, no optimiser, no weights to go on from.
pub const MACHINES: [&str; 2] = ["naive-bayes", "svm"];

/// The parameters of all models, for a kind that takes one.
pub fn params() -> Vec<&'static [Param]> {
    MODELS.iter().map(|model| model.params).collect()
}

/// Checks that the model exists and that the parameters given are its own.
pub fn check(params: &Params) -> Result<(), ParamError> {
    let name = Settings(params).text("model").unwrap_or_default();
    if MODELS.iter().all(|model| model.name != name) {
        let known = MODELS.iter().map(|model| model.name);
        return Err(settings::unknown("model", name, known));
    }
    let owners: BTreeMap<_, Vec<_>> = MODELS
        .iter()
        .map(|m| (m.name, m.params.iter().map(|p| p.name).collect()))
        .collect();
    settings::belongs(params, "model", name, &owners)?;
    // Any data will do to find a wrong number; what depends on data is found when it is there.
    let data = Data {
        form: match name {
            "char-cnn" => Form::Chars {
                vocabulary: 100,
                width: 20,
                words: String::new(),
            },
            _ => Form::Tokens {
                vocabulary: 100,
                pad: 0,
                unknown: 1,
                words: String::new(),
                filled: false,
            },
        },
        classes: 2,
        vectors: Some((50, String::new())),
        seed: 0,
        epochs: 1,
    };
    storable(&card(params, &data)?, params)
}

/// Numbers in one tensor, at most: a page of a stored table has less than 2 GiB.
const LARGEST: usize = 500_000_000;

/// Refuses a model that cannot be made, and one whose weights could not be stored once they are trained.
pub fn storable(card: &Card, params: &Params) -> Result<(), ParamError> {
    let Card::Network { spec, .. } = card else {
        return Ok(());
    };
    // Whoever wrote a size is told there.
    let sizes = [
        "units",
        "hidden",
        "inner",
        "attention",
        "dim",
        "kernels",
        "layers",
        "positions",
    ];
    let written = sizes.into_iter().filter(|size| params.contains_key(*size));
    let written: Vec<&'static str> = written.collect();
    let blamed = written.first().copied().unwrap_or("model");
    let help = match written.is_empty() {
        true => "choose a smaller model".to_owned(),
        false => format!("lower {}", written.join(", ")),
    };
    let model = nn::models::Model::new(spec).map_err(|error| match &error {
        nn::Error::Shape { what, got, .. } if *what == "the weights of a model" => {
            let message = format!("the model would have {got} weights, which are too many");
            settings::wrong(blamed, message, help.clone())
        }
        _ => settings::wrong("model", error.to_string(), "see the README of `train`"),
    })?;
    let mut tensors = model.layout().entries();
    match tensors.find(|(_, span)| span.len() > LARGEST) {
        Some((name, span)) => {
            let (rows, cols) = (span.rows, span.cols);
            let message = format!(
                "`{name}` of the model would be {rows} x {cols} numbers, which are too many to store"
            );
            Err(settings::wrong(blamed, message, help))
        }
        None => Ok(()),
    }
}

/// The models that read one step after the other.
pub const STEPPING: [&str; 3] = ["lstm", "gru", "rnn"];

/// Refuses parameters that the connected inputs leave without an effect, and features without their vectors.
/// `signals`: whether the rows are signals, as far as that is known.
pub fn check_inputs(params: &Params, signals: bool, vectors: bool) -> Result<(), ParamError> {
    let s = Settings(params);
    let name = s.text("model").unwrap_or_default();
    let given = |param: &str| params.contains_key(param);
    let no_effect = |param: &'static str, why: &str| {
        let message = format!("`{param}` would have no effect here");
        Err(settings::wrong(
            param,
            message,
            format!("leave it out: {why}"),
        ))
    };
    for param in ["vectors", "dim"] {
        if given(param) && signals {
            return no_effect(param, "signals are read as they are, without word vectors");
        }
    }
    if given("vectors") && !vectors {
        return no_effect(
            "vectors",
            "it is for connected word vectors, the input `vectors`",
        );
    }
    let own_dim = ["transformer", "char-cnn"].contains(&name);
    if given("dim") && vectors && !own_dim {
        return no_effect("dim", "the connected vectors have a dimension of their own");
    }
    let features = s.text("features").unwrap_or("words");
    if name == "svm" && features != "words" && !vectors {
        let message = format!("features = \"{features}\" needs the input `vectors`");
        let help = "connect it to an embed stage, or leave `features` out";
        return Err(settings::wrong("features", message, help));
    }
    Ok(())
}

/// What the file tells of the weights of the model that the parameters name; or which inputs do not fit it.
pub fn expect(params: &Params, inputs: &ExpectedInputs<'_>) -> Result<ExpectedModel, Mismatch> {
    use ExpectedRows::{Grid, Signals, Tokens};
    let s = Settings(params);
    let name = s.text("model").unwrap_or_default();
    let (reads, fits): (_, fn(ExpectedRows) -> bool) = match name {
        "char-cnn" => ("words of characters (char-grid)", |rows| rows == Grid),
        "naive-bayes" | "svm" => ("tokens without padding", |rows| {
            rows == Tokens { padded: false }
        }),
        "transformer" => ("tokens", |rows| matches!(rows, Tokens { .. })),
        _ => ("tokens or signals", |rows| {
            matches!(rows, Tokens { .. } | Signals)
        }),
    };
    inputs.one_text("rows")?;
    inputs.hold("rows", &format!("the model `{name}`"), reads, fits)?;
    let rows = inputs.of("rows").and_then(|rows| rows.rows);
    let (signals, vectors) = (rows == Some(Signals), inputs.has("vectors"));
    check_inputs(params, signals, vectors)?;
    let frozen = s.text("vectors").unwrap_or("frozen") == "frozen";
    let outside = match name {
        "svm" => s.text("features").unwrap_or("words") != "words",
        "naive-bayes" | "char-cnn" | "transformer" => false,
        _ => frozen && !signals,
    };
    let whole = s.flag("bidirectional", false) || s.whole("attention", 0, 0).unwrap_or(0) > 0;
    Ok(ExpectedModel {
        name: name.to_owned(),
        outside_vectors: vectors && outside,
        steps: STEPPING.contains(&name) && !whole,
        reads: rows,
    })
}

/// What a model's shape depends on besides its parameters.
pub struct Data {
    /// What rows hold.
    pub form: Form,
    /// How many classes there are.
    pub classes: usize,
    /// Connected vectors: numbers in each, and the digest of all.
    pub vectors: Option<(usize, String)>,
    /// Names the order of examples.
    pub seed: u64,
    /// Passes over the examples.
    pub epochs: usize,
}

/// The card of the model that the parameters name.
pub fn card(params: &Params, data: &Data) -> Result<Card, ParamError> {
    let s = Settings(params);
    let name = s.text("model").unwrap_or_default();
    let rate = |name| s.number(name, 0.0, 0.0, 0.999);
    // Heads share a vector: 64 can be cut into 4.
    let dim = s.whole("dim", if name == "transformer" { 64 } else { 50 }, 1)?;
    let vocabulary = match data.form {
        Form::Tokens { vocabulary, .. } | Form::Chars { vocabulary, .. } => vocabulary,
        Form::Signals { .. } => 0,
    };
    let frozen = s.one_of("vectors", &[("frozen", true), ("trained", false)])?;
    let reads = match (&data.form, &data.vectors) {
        (Form::Signals { channels }, _) => Reads::Vectors { dim: *channels },
        (_, Some((dim, _))) => Reads::Tokens {
            vocabulary,
            dim: *dim,
            frozen,
        },
        (_, None) => Reads::Tokens {
            vocabulary,
            dim,
            frozen: false,
        },
    };
    let bad = |what: &str| {
        let message = format!("the model `{name}` reads {what}");
        settings::wrong(
            "model",
            message,
            "tokenize with another scheme, or choose another model",
        )
    };

    let words = data.form.words().map(str::to_owned);
    let machine = MACHINES.contains(&name);
    if machine && matches!(data.form, Form::Tokens { filled: true, .. }) {
        let message = format!("`{name}` counts words, and would count the padding of these rows");
        let help = "connect rows of a tokenize stage without `fill`";
        return Err(settings::wrong("model", message, help));
    }
    let spec = match name {
        "lstm" | "gru" | "rnn" => {
            let cell = match name {
                "lstm" => &LSTM,
                "gru" => &GRU,
                _ => &RNN,
            };
            Spec::Recurrent(RecurrentSpec {
                layers: s.whole("layers", 1, 1)?,
                bidirectional: s.flag("bidirectional", false),
                attention: s.whole("attention", 0, 0)?,
                learned_state: s.flag("learned_state", false),
                dropout: rate("dropout")?,
                hidden: s.whole("hidden", 0, 0)?,
                forget_bias: s.number("forget_bias", 1.0, -10.0, 10.0)?,
                ..RecurrentSpec::new(cell, reads, s.whole("units", 64, 1)?, data.classes)
            })
        }
        "kim-cnn" => Spec::KimCnn(KimCnnSpec {
            reads,
            widths: vec![3, 4, 5],
            kernels: s.whole("kernels", 100, 1)?,
            padding: 4,
            dropout: rate("dropout")?,
            max_norm: 3.0,
            classes: data.classes,
        }),
        "char-cnn" => {
            let Form::Chars { vocabulary, .. } = data.form else {
                return Err(bad("a grid of characters"));
            };
            Spec::CharCnn(CharCnnSpec {
                characters: vocabulary,
                dim,
                width: 6,
                kernels: s.whole("kernels", 100, 1)?,
                highways: 2,
                units: s.whole("units", 64, 1)?,
                layers: s.whole("layers", 1, 1)?,
                dropout: rate("dropout")?,
                classes: data.classes,
            })
        }
        "transformer" => Spec::Transformer(TransformerSpec {
            vocabulary,
            positions: s.whole("positions", 512, 1)?,
            dim,
            heads: s.whole("heads", 4, 1)?,
            inner: s.whole("inner", 4 * dim as i64, 1)?,
            layers: s.whole("layers", 1, 1)?,
            dropout: rate("dropout")?,
            pooler: false,
            classes: data.classes,
        }),
        "naive-bayes" => {
            let Form::Tokens { vocabulary, .. } = data.form else {
                return Err(bad("tokens"));
            };
            return Ok(Card::NaiveBayes {
                words,
                vocabulary,
                classes: data.classes,
            });
        }
        _ => return svm(s, data).map_err(|e| e.unwrap_or_else(|| bad("tokens"))),
    };
    // A grid of characters is for the one model that knows words of characters.
    if matches!(data.form, Form::Chars { .. }) && name != "char-cnn" {
        return Err(bad("tokens or signals"));
    }
    let kept = match &spec {
        Spec::Recurrent(RecurrentSpec { reads, .. }) | Spec::KimCnn(KimCnnSpec { reads, .. }) => {
            matches!(reads, Reads::Tokens { frozen: true, .. })
        }
        _ => false,
    };
    let vectors = data.vectors.as_ref().filter(|_| kept);
    Ok(Card::Network {
        spec,
        words,
        vectors: vectors.map(|(_, digest)| digest.clone()),
    })
}

fn svm(s: Settings<'_>, data: &Data) -> Result<Card, Option<ParamError>> {
    let Form::Tokens { vocabulary, .. } = data.form else {
        return Err(None);
    };
    let bag = s.one_of("bag", &[("binary", Bag::Binary), ("count", Bag::Count)])?;
    let steps = s.whole("length", 250, 1)?;
    let features = [
        ("words", Features::Words(bag)),
        ("mean", Features::Mean),
        ("concatenated", Features::Concatenated { steps }),
    ];
    let features = s.one_of("features", &features)?;
    for (param, of, used) in [
        ("bag", "words", matches!(features, Features::Words(_))),
        (
            "length",
            "concatenated",
            matches!(features, Features::Concatenated { .. }),
        ),
    ] {
        if s.0.contains_key(param) && !used {
            let message = format!("`{param}` would have no effect here");
            let help = format!("leave it out: it is for features = \"{of}\"");
            return Err(Some(settings::wrong(param, message, help)));
        }
    }
    let rate = s.number("learning_rate", 1e-4, 0.0, 1e3)?;
    let steps = [
        ("optimal", Steps::Optimal),
        ("pegasos", Steps::Pegasos),
        ("constant", Steps::Constant(rate)),
    ];
    let reads_vectors = !matches!(features, Features::Words(_));
    let vectors = data.vectors.as_ref().filter(|_| reads_vectors);
    Ok(Card::Svm {
        spec: SvmSpec {
            vocabulary,
            classes: data.classes,
            alpha: s.number("alpha", 1e-4, 1e-12, 1e3)?,
            steps: s.one_of("steps", &steps)?,
            epochs: data.epochs,
            features,
            seed: data.seed,
        },
        words: data.form.words().map(str::to_owned),
        vectors: vectors.map(|(_, digest)| digest.clone()),
    })
}

/// The same parameters for a model that was trained before: what `adversarial-retrain` leaves out.
pub fn named(card: &Card) -> &'static str {
    match card {
        Card::Network { spec, .. } => match spec {
            Spec::Recurrent(r) => r.cell.name,
            Spec::KimCnn(_) => "kim-cnn",
            Spec::CharCnn(_) => "char-cnn",
            Spec::Transformer(_) => "transformer",
            Spec::Language(_) => "language",
            Spec::Seq2seq(_) => "seq2seq",
            Spec::TransformerSeq2seq(_) => "transformer-seq2seq",
        },
        Card::NaiveBayes { .. } => "naive-bayes",
        Card::Svm { .. } => "svm",
    }
}

/// A model error, pointed at the parameter.
pub fn failure(error: nn::Error) -> Failure {
    Failure::new(error.to_string())
}
