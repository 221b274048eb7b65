//! The parameters of training, for the kinds `train` and `adversarial-retrain`.

use store::{Params, Value};

use crate::contract::description::Param;

/// The parameters of training, in either kind.
pub const PARAMS: &[Param] = &[
    Param::text("train", "train", "The split to train on."),
    Param::text(
        "dev",
        "dev",
        "The split that selects the best epoch; rows may lack it.",
    ),
    Param::int("epochs", 10, 0, "Maximum number of epochs."),
    Param::int("batch", 32, 1, "Batch size."),
    Param::flag(
        "balanced",
        false,
        "Whether each batch has equally many rows of each class.",
    ),
    Param::choice(
        "optimiser",
        &["adam", "sgd", "adadelta"],
        "adam, sgd or adadelta.",
    ),
    Param::float("learning_rate", 1e-3, (1e-12, 1e3), "Learning rate."),
    Param::float("momentum", 0.0, (0.0, 0.999), "Momentum, for sgd.").when("optimiser", &["sgd"]),
    Param::float(
        "adam_beta1",
        0.9,
        (0.0, 0.999_999),
        "For adam: decay rate of the mean gradient.",
    )
    .when("optimiser", &["adam"]),
    Param::float(
        "adam_beta2",
        0.999,
        (0.0, 0.999_999),
        "For adam: decay rate of the mean squared gradient.",
    )
    .when("optimiser", &["adam"]),
    Param::float(
        "adam_epsilon",
        1e-8,
        (1e-12, 1.0),
        "For adam: added to the denominator.",
    )
    .when("optimiser", &["adam"]),
    Param::float(
        "adadelta_rho",
        0.95,
        (0.0, 0.999_999),
        "For adadelta: decay rate of the mean squares.",
    )
    .when("optimiser", &["adadelta"]),
    Param::float(
        "adadelta_epsilon",
        1e-6,
        (1e-12, 1.0),
        "For adadelta: added to the mean squares.",
    )
    .when("optimiser", &["adadelta"]),
    Param::choice(
        "schedule",
        &["constant", "step", "exponential", "plateau", "linear"],
        "How the learning rate changes: constant, step (by `decay` after each epoch), exponential (to `final_rate`), plateau (by `decay` when dev does not improve) or linear (up over `warmup`, then down to 0). Implied by `decay` (step), `final_rate` (exponential) or `warmup` (linear).",
    )
    .implied(schedule),
    Param::float(
        "decay",
        0.5,
        (1e-3, 0.999_999),
        "For step and plateau: the factor that the learning rate is multiplied by.",
    )
    .when("schedule", &["step", "plateau"]),
    Param::int(
        "decay_after",
        1,
        1,
        "For step: the number of epochs at the full learning rate.",
    )
    .when("schedule", &["step"]),
    Param::float(
        "final_rate",
        1.0,
        (1e-12, 1e3),
        "For exponential: the learning rate of the last epoch.",
    )
    .optional()
    .when("schedule", &["exponential"]),
    Param::float(
        "warmup",
        0.1,
        (0.0, 0.999),
        "For linear: the fraction of all steps in which the learning rate rises from 0.",
    )
    .when("schedule", &["linear"]),
    Param::float(
        "weight_decay",
        0.01,
        (0.0, 0.999),
        "Decoupled weight decay (AdamW): every step multiplies all weights by 1 - learning rate x weight_decay; default: none.",
    )
    .optional(),
    Param::float(
        "clip_norm",
        0.0,
        (0.0, 1e9),
        "Maximum norm of the gradient; 0 = off.",
    ),
    Param::float(
        "clip_value",
        0.0,
        (0.0, 1e9),
        "Maximum absolute value in the gradient; 0 = off.",
    ),
    Param::choice(
        "best",
        &["accuracy", "loss"],
        "The dev metric that selects the best epoch, and that `patience` and plateau monitor; default: accuracy for classifiers, loss for other models.",
    )
    .optional(),
    Param::int(
        "patience",
        0,
        0,
        "Stop after this many evaluations on dev without improvement; 0 = never.",
    ),
    Param::int(
        "dev_checks",
        1,
        1,
        "Evaluations on dev per epoch, evenly spaced: `best`, `patience` and plateau go by all of them; default: one, at its end.",
    )
    .optional(),
    Param::choice(
        "keep",
        &["best", "last"],
        "The epoch whose weights are kept: the best on dev (the last one if there is no dev split), or the last.",
    )
    .optional(),
    Param::int(
        "restarts",
        0,
        0,
        "For networks: train again from new initial weights, up to this many times, while dev accuracy stays below `accept`.",
    ),
    Param::float(
        "accept",
        0.0,
        (0.0, 1.0),
        "The dev accuracy that makes a restart unnecessary.",
    )
    .optional(),
    Param::int(
        "probe",
        1000,
        0,
        "Training rows, evenly sampled, whose accuracy is recorded in the history.",
    ),
];

/// The schedule that other parameters imply: who writes its one parameter need not name it.
fn schedule(params: &Params) -> Value {
    let name = if params.contains_key("final_rate") {
        "exponential"
    } else if params.contains_key("warmup") {
        "linear"
    } else if params.contains_key("decay") {
        "step"
    } else {
        "constant"
    };
    Value::Text(name.to_owned())
}
