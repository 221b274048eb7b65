//! `adversarial-retrain`: a model trained again, on its own weaknesses too.
//!
//! Mixes adversarial rows into training and measures what that was worth: the accuracy of the old
//! and the new model on clean rows, and on rows that the attack made against each of them.
//! Attacks by the code of `attack`, trains by the code of `train`.

mod mixing;
mod noise;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use nn::batch::Example;
use nn::training::{FitSpec, Metric};
use store::Params;

use crate::contract::description::{Choice, Description, Inputs, Param, Port, Ports, Renamed};
use crate::contract::determinism::{Determinism, Within, within};
use crate::contract::expected::{Expected, ExpectedInputs, ExpectedOutputs, Mismatch};
use crate::contract::follow::Follow;
use crate::contract::role::Role;
use crate::fingerprint::Code;
use crate::kinds::attack;
use crate::kinds::attack::{Among, AttackInputs, Outcome, note_fewer};
use crate::models::loaded::Loaded;
use crate::params::complete::union;
use crate::params::settings;
use crate::params::settings::{Settings, failure};
use crate::tables::comparison::{self, ComparisonRow};
use crate::tables::estimates;
use crate::tables::history;
use crate::tables::model_card::ModelCard;
use crate::training::{Trained, TrainingData};
use crate::{
    Failure, Outputs, ParamError, Stage, Task, WithoutCheckpoints, fingerprint, models, training,
};
use mixing::{AdversarialMixer, Mix, adversarial};
use noise::EmbeddingNoise;

/// The kind `adversarial-retrain`.
pub struct AdversarialRetrain;

const MIXES: &[(&str, Mix)] = &[
    ("append", Mix::Append),
    ("batch", Mix::Batch),
    ("epoch", Mix::Epoch),
    ("noise", Mix::Noise),
];

static DESCRIPTION: LazyLock<Description> = LazyLock::new(|| {
    let names = format!("The attack to train against: {}.", attack::attacks::names());
    let own = [
        Param::text("attack", "", names.leak()).required(),
        Param::choice(
            "mix",
            &["append", "epoch", "batch", "noise"],
            "append (once, against the old model), epoch or batch (against the current model), or noise (perturbed embeddings in the loss, and no adversarial rows).",
        ),
        Param::int(
            "items",
            1000,
            0,
            "For append and epoch: training rows to attack, sampled by seed and id; 0 = all.",
        )
        .when("mix", &["append", "epoch"]),
        Param::float(
            "share",
            0.5,
            (1e-6, 1.0),
            "For batch: the fraction of a batch's rows that are attacked and added to it.",
        )
        .when("mix", &["batch"]),
        Param::float(
            "epsilon",
            1.0,
            (1e-9, 1e9),
            "For noise: the norm of the noise in the character embeddings of a word.",
        )
        .when("mix", &["noise"]),
        Param::choice(
            "scale",
            &["absolute", "embedding"],
            "For noise: whether `epsilon` is absolute, or relative to the norm of the word's embeddings.",
        )
        .when("mix", &["noise"]),
        Param::flag(
            "normalise",
            true,
            "For noise: whether every dimension of the embeddings has mean 0 and variance 1.",
        )
        .when("mix", &["noise"]),
        Param::choice(
            "from",
            &["scratch", "weights"],
            "scratch (new initial weights) or weights (fine-tune the old model).",
        ),
        Param::text(
            "test",
            "test",
            "The split that both models are evaluated on.",
        ),
        Param::int(
            "test_items",
            0,
            0,
            "How many of its rows are attacked; 0 = all.",
        ),
    ];
    let base: Vec<Param> = own
        .into_iter()
        .chain(training::PARAMS.iter().copied())
        .collect();
    Description {
        kind: "adversarial-retrain",
        summary: "A model trained again with adversarial rows, and its accuracies before and after.",
        params: union(&base, &attack::attacks::choices()),
        seeded: true,
        role: Role::Model,
    }
});

impl Stage for AdversarialRetrain {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn attack<'p>(&self, params: &'p Params) -> Option<&'p str> {
        params.get("attack")?.as_text()
    }

    fn ports(&self, _: &Params) -> Ports {
        let port = |name: &'static str, holds, required| Port {
            name: name.to_owned(),
            holds,
            required,
        };
        Ports {
            inputs: Inputs::Named(vec![
                port("victim", "weights", true),
                port("rows", "tokens", true),
                port("vectors", "vectors", false),
                port("vocab", "vocab", false),
                port("bayes", "weights", false),
                port("language", "ngrams", false),
                port(attack::KNOWN_WORDS, "vocab", false),
                port("lemmas", "pairs", false),
                port("synonyms", "pairs", false),
                port("candidates", "vocab", false),
            ]),
            outputs: vec![
                port("weights", "weights", true),
                port("history", "history", true),
                port("model", "model", true),
                port("comparison", "comparison", true),
            ],
        }
    }

    fn choices(&self) -> Vec<Choice> {
        attack::attacks::choices()
    }

    fn renamed(&self) -> &'static [Renamed] {
        &[attack::VICTIM]
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        attack::attacks::check(params)?;
        let chosen = self.attack(params).and_then(attack::attacks::find);
        if chosen.is_some_and(|attack| attack.entry().program) {
            let message = "a program that attacks is not trained against".to_owned();
            let help = "attack the model with it in an attack stage, or choose another attack";
            return Err(settings::wrong("attack", message, help));
        }
        if chosen.is_some_and(|attack| attack.entry().needs.contains(&attack::TRANSFERRED)) {
            let message = "texts against another model are not made anew while this one is trained";
            let help = "choose the attack that made them, or attack the model with them in an attack stage";
            return Err(settings::wrong("attack", message.to_owned(), help));
        }
        if estimates::is_made(Settings(params)) {
            let message = "`probes` would have no effect here".to_owned();
            let help = "leave it out: the output `estimates` is one of attack stages";
            return Err(settings::wrong(estimates::PROBES, message, help));
        }
        if Settings(params).text("schedule") == Some("linear") {
            let message = "schedule = \"linear\", which `warmup` implies, is for train stages: it needs the number of steps, and adversarial rows come on the way".to_owned();
            return Err(settings::wrong(
                "schedule",
                message,
                "choose another schedule",
            ));
        }
        training::fit_spec(params, 0, Metric::Accuracy, None).map(drop)
    }

    fn expect(
        &self,
        params: &Params,
        inputs: &ExpectedInputs<'_>,
    ) -> Result<ExpectedOutputs, Mismatch> {
        attack::expect_inputs(params, inputs)?;
        training::expect_splits(params, inputs)?;
        let test = Settings(params).text("test").unwrap_or("test");
        inputs.has_split("rows", "test", test)?;
        let old = inputs
            .of("victim")
            .and_then(|weights| weights.model.clone());
        if let Some(old) = &old {
            check_model(params, &old.name)?;
        }
        let weights = Expected {
            model: old,
            ..Expected::default()
        };
        let [history, model] = training::expected();
        Ok(vec![weights, history, model, comparison::SCHEMA.expected()])
    }

    fn follows(&self, params: &Params) -> Vec<Follow> {
        attack::follows(params)
    }

    fn unread(&self, params: &Params, inputs: &ExpectedInputs<'_>) -> Vec<&'static str> {
        attack::unread(params, inputs)
    }

    fn code(&self, params: &Params, inputs: &ExpectedInputs<'_>) -> Code {
        fingerprint::with_chosen("adversarial-retrain", &attack::chosen(params, inputs))
    }

    fn determinism(&self, _: &Params) -> Determinism {
        const ROUNDED: &[Within] = &[within("weights", "values", 1e-2), within("*", "*", 3e-2)];
        Determinism::Rounding(ROUNDED)
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let old = AttackInputs::open(task)?;
        let plan = Retraining::read(task, &old)?;
        let attacking = WithoutCheckpoints(task.watch);
        let settings = Settings(task.params);
        let test = settings.text("test").unwrap_or("test");
        let limit = settings.int("test_items").map_err(failure)?;
        let chosen = old.select((test, "test"), limit, task.seed, Among::default())?;
        note_fewer(limit, "test_items", chosen.rows.len(), task.watch);
        let all = old.select((test, "test"), 0, task.seed, Among::default())?;
        let before = Side {
            name: "before",
            clean: old.accuracy(&all.rows)?,
            attacked: old.attack(&chosen, task, &attacking)?,
        };
        let trained = plan.train(task, &old)?;
        let new = Loaded::open(&trained.weights, old.connected.as_ref())?;
        let new = old.with_model(new);
        let after = Side {
            name: "after",
            clean: new.accuracy(&all.rows)?,
            attacked: new.attack(&chosen.of_another_model(), task, &attacking)?,
        };
        let data = TrainingData {
            train: &plan.train,
            dev: &[],
            vectors: None,
            pretrained: None,
            seed: task.seed,
        };
        Ok([
            (
                "comparison".to_owned(),
                comparison::write(&[before, after].map(|side| side.row(all.rows.len()))),
            ),
            ("history".to_owned(), history::write(&trained.history)),
            ("model".to_owned(), training::described(&trained, &data)),
            ("weights".to_owned(), trained.weights),
        ]
        .into())
    }
}

/// What the new model learns from, and how. Read before anything is attacked: what is wrong with it must
/// not cost an attack to find out.
struct Retraining {
    train: Vec<Example>,
    dev: Vec<Example>,
    spec: FitSpec,
    mix: Mix,
    items: usize,
    share: f64,
    noise: Option<EmbeddingNoise>,
    /// What the new model is.
    card: ModelCard,
    goes_on: bool,
}

impl Retraining {
    fn read(task: &Task<'_>, old: &AttackInputs) -> Result<Retraining, Failure> {
        let settings = Settings(task.params);
        let split = |param: &'static str| settings.text(param).unwrap_or(param);
        let train = old.rows.examples(&old.rows.split(split("train")))?;
        if train.is_empty() {
            return Err(old.rows.no_split(split("train"), "train"));
        }
        let dev = old.rows.examples(&old.rows.split(split("dev")))?;
        if dev.is_empty() && split("dev") != "dev" {
            return Err(old.rows.no_split(split("dev"), "dev"));
        }
        training::needs_dev(task.params, !dev.is_empty(), split("dev")).map_err(failure)?;
        let model = old.card().model();
        check_model(task.params, &model).map_err(failure)?;
        let goes_on = settings.text("from") == Some("weights");
        let mix = settings.one_of("mix", MIXES).map_err(failure)?;
        Ok(Retraining {
            noise: embedding_noise(settings, mix)?,
            card: card(old.card(), settings, goes_on)?,
            train,
            dev,
            spec: training::fit_spec(task.params, task.seed, Metric::Accuracy, None)
                .map_err(failure)?,
            mix,
            items: settings.maybe_int("items").unwrap_or_default(),
            share: settings.maybe_float("share").unwrap_or_default(),
            goes_on,
        })
    }

    /// Trains the old model's architecture on clean and adversarial rows.
    fn train(&self, task: &Task<'_>, old: &AttackInputs) -> Result<Trained, Failure> {
        let data = |train| TrainingData {
            train,
            dev: &self.dev,
            vectors: old.connected.as_ref(),
            pretrained: None,
            seed: task.seed,
        };
        note_fewer(self.items, "items", self.train.len(), task.watch);
        let start = self.goes_on.then_some(old.loaded());
        if self.mix != Mix::Append {
            let (items, share) = (self.items, self.share);
            let mut mixing = AdversarialMixer::new(task, old, self.mix, items, share, self.noise)?;
            let trained = training::adversarial::train(
                &self.card,
                &data(&self.train),
                &self.spec,
                start,
                &mut mixing,
                training::Pause::Epochs,
                task.watch,
            );
            return trained.map_err(|failure| mixing.blame(failure));
        }
        let split = Settings(task.params).text("train").unwrap_or("train");
        let chosen = old.select((split, "train"), self.items, task.seed, Among::default())?;
        let attacking = WithoutCheckpoints(task.watch);
        let outcomes = old.attack(&chosen, task, &attacking)?;
        let mut train = self.train.clone();
        train.extend(outcomes.into_iter().map(adversarial));
        training::classify::train(old.card(), &data(&train), &self.spec, start, task.watch)
    }
}

/// The noise that is added, if any.
fn embedding_noise(s: Settings<'_>, mix: Mix) -> Result<Option<EmbeddingNoise>, Failure> {
    if mix != Mix::Noise {
        return Ok(None);
    }
    Ok(Some(EmbeddingNoise {
        epsilon: s.float("epsilon").map_err(failure)?,
        relative: s.text("scale") == Some("embedding"),
    }))
}

/// The card of the new model: the old one's, perhaps with normalised embeddings.
fn card(old: &ModelCard, s: Settings<'_>, goes_on: bool) -> Result<ModelCard, Failure> {
    if s.flag("normalise").ok() != Some(true) {
        return Ok(old.clone());
    }
    let new = models::of(old)?.normalised(old).transpose();
    let new = new.map_err(Failure::new)?.unwrap_or_else(|| old.clone());
    match goes_on && new != *old {
        true => Err(Failure::new(
            "`normalise` would change the weights that training is to continue from",
        )
        .help("write normalise = false, or from = \"scratch\"")
        .at("normalise")),
        false => Ok(new),
    }
}

/// Refuses settings that the model has no use for.
fn check_model(params: &Params, model: &str) -> Result<(), ParamError> {
    let Some(kind) = models::find(model) else {
        return Ok(());
    };
    let s = Settings(params);
    if s.one_of("mix", MIXES)? == Mix::Noise && !kind.takes_noise() {
        let message = format!("`{model}` has no character embeddings to add noise to");
        let help = "choose another `mix`, or retrain a \"char-cnn\"";
        return Err(settings::wrong("mix", message, help));
    }
    if kind.by_gradient() {
        return training::idle(params, kind);
    }
    if s.one_of("mix", MIXES)? != Mix::Append {
        let message = format!("`{model}` is fitted in one call, not batch by batch");
        return Err(settings::wrong("mix", message, "choose mix = \"append\""));
    }
    if s.text("from") == Some("weights") {
        let message = format!("`{model}` is fitted in one call, and cannot continue from weights");
        return Err(settings::wrong(
            "from",
            message,
            "choose from = \"scratch\"",
        ));
    }
    let why = format!("`{model}` is trained again with the settings that it had");
    let epochs = training::PARAMS.iter().find(|param| param.name == "epochs");
    settings::idle(params, epochs, || why.clone())?;
    training::idle_all(params, &why)
}

/// One model's numbers.
struct Side {
    name: &'static str,
    clean: f64,
    attacked: Vec<Outcome>,
}

impl Side {
    fn row(&self, clean_items: usize) -> ComparisonRow {
        let count = |test: fn(&Outcome) -> bool| self.attacked.iter().filter(|o| test(o)).count();
        let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
        ComparisonRow {
            model: self.name,
            clean_accuracy: self.clean,
            clean_items,
            attacked_accuracy: share(count(Outcome::correct_after), self.attacked.len()),
            success_rate: share(count(Outcome::success), count(Outcome::tried)),
            items: self.attacked.len(),
        }
    }
}
