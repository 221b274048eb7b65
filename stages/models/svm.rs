//! `model = "svm"`: linear support vector machines, one for two classes and otherwise one per class, trained by
//! stochastic gradient descent on the hinge loss.

use nn::batch::Example;
use nn::linear::{Features, LinearSvm, StepSize, SvmSpec, TermWeighting, Vectors};

use super::embedding::vocabulary;
use super::entry::{
    Data, LoadedModel, ModelEntry, ModelKind, ModelTask, Subject, Tensors, VectorUse, doubles,
    failure, not_a_model,
};
use crate::contract::description::Param;
use crate::contract::expected::ExpectedRows;
use crate::params::settings::Settings;
use crate::tables::model_card::{ModelCard, json};
use crate::tables::weights::{Numbers, Tensor};
use crate::{Failure, ParamError};

const ALPHA: Param = Param::float(
    "alpha",
    1e-4,
    (1e-12, 1e3),
    "The strength of the L2 regularisation.",
);
const STEPS: Param = Param::choice(
    "steps",
    &["optimal", "pegasos", "constant"],
    "The learning rate schedule: optimal, pegasos or constant.",
);
const FEATURES: Param = Param::choice(
    "features",
    &["words", "mean", "concatenated"],
    "A bag of words, or the mean or the concatenation of the words' vectors.",
);
const BAG: Param = Param::choice(
    "bag",
    &["binary", "count"],
    "With a bag of words: whether a word counts once or as often as it occurs.",
)
.when("features", &["words"]);
const LENGTH: Param = Param::int("length", 250, 1, "How many words are concatenated.")
    .when("features", &["concatenated"]);

/// The model.
pub struct Svm;

impl ModelKind for Svm {
    fn entry(&self) -> ModelEntry {
        ModelEntry {
            name: "svm",
            file: "stages/models/svm.rs",
            summary: "Linear support vector machines, trained by SGD on the hinge loss.",
            task: ModelTask::Classify,
            params: &[ALPHA, STEPS, FEATURES, BAG, LENGTH],
            reads: "tokens without padding",
            fits: |rows| rows == ExpectedRows::Tokens { padded: false },
            vectors: VectorUse::Own,
        }
    }

    fn card(&self, s: Settings<'_>, data: &Data) -> Result<ModelCard, ParamError> {
        let features = match s.text("features") {
            Some("mean") => Features::Mean,
            Some("concatenated") => Features::Concatenated {
                steps: s.int("length")?,
            },
            _ => Features::Words(s.one_of(
                "bag",
                &[
                    ("binary", TermWeighting::Binary),
                    ("count", TermWeighting::Count),
                ],
            )?),
        };
        let rate = s.float("learning_rate")?;
        let steps = [
            ("optimal", StepSize::Optimal),
            ("pegasos", StepSize::Pegasos),
            ("constant", StepSize::Constant(rate)),
        ];
        let reads_vectors = !matches!(features, Features::Words(_));
        let vectors = data.vectors.as_ref().filter(|_| reads_vectors);
        let spec = SvmSpec {
            vocabulary: vocabulary(data),
            classes: data.classes,
            alpha: s.float("alpha")?,
            steps: s.one_of("steps", &steps)?,
            epochs: data.epochs,
            features,
            seed: data.seed,
        };
        Ok(written(
            &spec,
            data.form.words(),
            vectors.map(|(_, digest)| digest.as_str()),
        ))
    }

    fn fit(
        &self,
        card: &ModelCard,
        train: &[Example],
        vectors: Option<&Vectors>,
    ) -> Result<(Vec<Tensor>, usize), Failure> {
        let spec: SvmSpec = card.spec().map_err(not_a_model)?;
        let svm = LinearSvm::fit(train, &spec, vectors.cloned()).map_err(failure)?;
        let tensor = |name: String, numbers: Vec<f64>| Tensor {
            name,
            shape: [1, numbers.len()],
            numbers: Numbers::Double(numbers),
        };
        let tensors = svm.machines().iter().enumerate().flat_map(|(k, (w, b))| {
            [
                tensor(format!("machine.{k}.bias"), vec![*b]),
                tensor(format!("machine.{k}.weights"), w.clone()),
            ]
        });
        Ok((tensors.collect(), spec.epochs))
    }

    fn load(
        &self,
        card: &ModelCard,
        tensors: &Tensors,
        vectors: Option<&Vectors>,
    ) -> Result<Box<dyn LoadedModel>, Failure> {
        let spec: SvmSpec = card.spec().map_err(not_a_model)?;
        let machine = |k: usize| {
            let w = doubles(tensors, &format!("machine.{k}.weights"))?;
            let b = doubles(tensors, &format!("machine.{k}.bias"))?;
            Ok((w.to_vec(), b.first().copied().unwrap_or_default()))
        };
        let machines = (0..tensors.len() / 2).map(machine);
        let machines = machines.collect::<Result<_, Failure>>()?;
        let svm = LinearSvm::from_machines(machines, &spec, vectors.cloned());
        Ok(Box::new(Loaded(svm.map_err(failure)?)))
    }

    fn keeps_vectors_outside(&self, settings: Settings<'_>, _: bool) -> bool {
        settings.text("features").is_some_and(|f| f != "words")
    }

    fn trains_with(&self, settings: Settings<'_>, param: &str) -> bool {
        match param {
            "train" | "dev" | "epochs" => true,
            "learning_rate" => settings.text("steps") == Some("constant"),
            _ => false,
        }
    }

    /// How long and in which order it was trained is part of its card, but not of parameters
    /// that train nothing.
    fn describes(&self, asked: &ModelCard, stored: &ModelCard) -> bool {
        let specs = (asked.spec::<SvmSpec>(), stored.spec::<SvmSpec>());
        let (Ok(asked_spec), Ok(stored_spec)) = specs else {
            return false;
        };
        let same = SvmSpec {
            epochs: stored_spec.epochs,
            seed: stored_spec.seed,
            ..asked_spec
        };
        written(&same, asked.words(), asked.vectors()) == *stored
    }

    fn by_gradient(&self) -> bool {
        false
    }
}

fn written(spec: &SvmSpec, words: Option<&str>, vectors: Option<&str>) -> ModelCard {
    ModelCard::written(
        "svm",
        &[
            ("spec", json(spec)),
            ("words", json(words)),
            ("vectors", json(vectors)),
        ],
    )
}

struct Loaded(LinearSvm);

impl LoadedModel for Loaded {
    fn victim(&self) -> Result<Subject<'_>, Failure> {
        Ok(Subject::Classifier(&self.0))
    }
}
