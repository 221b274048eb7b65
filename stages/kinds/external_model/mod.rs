//! `external-model`: a model in a program of the user, to be attacked like any other.
//!
//! Its output `weights` has the program's files and how it is started; the stage starts it, tries it out ([`try_out`]),
//! and refuses a model that does not answer, or whose answers or gradients cannot be right.

#[cfg(test)]
mod tests;
mod try_out;

use std::collections::BTreeMap;

use store::{Digest, Params, Value};

use crate::contract::description::{Description, Inputs, Param, Port, Ports, Presence, Type};
use crate::contract::determinism::Determinism;
use crate::contract::expected::{
    Expected, ExpectedInputs, ExpectedModel, ExpectedOutputs, ExpectedRows, Mismatch,
};
use crate::contract::follow::{Follow, Takes};
use crate::contract::program::ProgramSpec;
use crate::contract::role::Role;
use crate::fingerprint::{self, Code};
use crate::models;
use crate::models::external::{self, ExternalSpec, Parts};
use crate::models::loaded::Loaded;
use crate::params::settings::{Settings, failure, wrong};
use crate::programs::{check, installed, params};
use crate::tables::sequences::SequenceTable;
use crate::tables::{vocabulary, weights};
use crate::{Failure, Outputs, ParamError, Stage, Task};

/// The kind `external-model`.
pub struct ExternalModel;

static DESCRIPTION: Description = Description {
    kind: "external-model",
    summary: "A model in a program of yours, in any language, to be attacked like any other.",
    params: &[
        params::RUN,
        params::FILES,
        Param::int("classes", 2, 2, "How many classes it predicts.").required(),
        Param::choice(
            "reads",
            &["text", "tokens"],
            "What it is sent: texts (words of the vocabulary, with spaces between them) or lists of token ids.",
        ),
        Param::flag(
            "gradients",
            false,
            "Whether it answers gradients by the vectors of its tokens, for attacks that follow them; with reads = \"tokens\".",
        ),
        Param::flag(
            "attention",
            false,
            "Whether it answers how much it attends to each token, for attacks that place by it; with reads = \"tokens\".",
        ),
        Param::flag(
            "states",
            false,
            "Whether it answers the states of its recurrent layers at each token, for `evaluate` with measure = \"coverage\"; with reads = \"tokens\".",
        ),
        Param::int("batch", 64, 1, "How many items are sent in one request."),
        params::ENV,
        params::SECRET_ENV,
        params::ENVIRONMENT,
        params::LOCK,
        params::NETWORK,
        Param {
            name: "memory",
            ty: Type::Float,
            presence: Presence::Optional,
            help: "Memory limit in GB; default: the memory of the machine.",
            ..Param::PLAIN
        },
        Param::int(
            "processes",
            4096,
            1,
            "Maximum number of processes and threads.",
        ),
        Param::float(
            "timeout",
            600.0,
            (0.001, 31_536_000.0),
            "Seconds for one answer, and for its start.",
        ),
    ],
    seeded: false,
    role: Role::Program,
};

impl Stage for ExternalModel {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn ports(&self, params: &Params) -> Ports {
        let port = |name: &str, holds, required| Port {
            name: name.to_owned(),
            holds,
            required,
        };
        let texts = Settings(params).text("reads") != Some("tokens");
        Ports {
            inputs: Inputs::Named(vec![
                port("rows", "tokens", true),
                port("vocab", "vocab", texts),
            ]),
            outputs: vec![port("weights", "weights", true)],
        }
    }

    fn check(&self, params: &Params) -> Result<(), ParamError> {
        check::program(params)?;
        let settings = Settings(params);
        if settings.text("reads") == Some("tokens") {
            return Ok(());
        }
        for (param, what) in [
            ("gradients", "`gradients` are by the vectors of tokens"),
            ("attention", "`attention` is to tokens"),
            ("states", "`states` are those at tokens"),
        ] {
            if settings.flag(param)? {
                let message = format!("{what}, and the model reads texts");
                let help = format!("set reads = \"tokens\", or leave `{param}` out");
                return Err(wrong(param, message, help));
            }
        }
        Ok(())
    }

    fn environments<'a>(&self, params: &'a Params) -> Vec<(&'static str, &'a str)> {
        params::environments(params)
    }

    fn program(&self, params: &Params) -> Option<ProgramSpec> {
        params::program(params)
    }

    fn limits(&self) -> &'static [&'static str] {
        // The others are in its card, with which it is started again.
        &["secret_env"]
    }

    fn follows(&self, params: &Params) -> Vec<Follow> {
        let vocab = Follow {
            port: "vocab",
            of: "rows",
            takes: Takes::Output("vocab"),
        };
        match Settings(params).text("reads") {
            Some("tokens") => Vec::new(),
            _ => vec![vocab],
        }
    }

    fn code(&self, _: &Params, _: &ExpectedInputs<'_>) -> Code {
        let own = models::find(external::NAME).map(|model| model.entry().file);
        fingerprint::with_chosen(DESCRIPTION.kind, &own.into_iter().collect::<Vec<_>>())
    }

    fn expect(
        &self,
        params: &Params,
        inputs: &ExpectedInputs<'_>,
    ) -> Result<ExpectedOutputs, Mismatch> {
        let tokens = |rows| matches!(rows, ExpectedRows::Tokens { .. });
        inputs.one_text("rows")?;
        inputs.hold("rows", "an external model", "tokens", tokens)?;
        inputs.same_texts("vocab")?;
        let model = ExpectedModel {
            name: external::NAME.to_owned(),
            outside_vectors: false,
            gradients: Settings(params).flag("gradients")?,
            attends: Settings(params).flag("attention")?,
            steps: false,
            states: Settings(params).flag("states")?,
            reads: inputs.of("rows").and_then(|rows| rows.rows),
            classes: Settings(params).maybe_int("classes"),
            stage: None,
        };
        Ok(vec![Expected {
            model: Some(model),
            ..Expected::default()
        }])
    }

    fn determinism(&self, _: &Params) -> Determinism {
        Determinism::Outside
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let spec = spec(task).map_err(failure)?;
        let rows = SequenceTable::read(&task.inputs["rows"])?;
        let words = task.inputs.get("vocab").filter(|_| spec.texts);
        let words = words.map(|table| vocabulary::words(table, "vocab"));
        let words = words.transpose()?;
        let listed = task.inputs.get("vocab").and_then(vocabulary::listed);
        vocabulary::agree(rows.form.words(), listed.as_deref(), "vocab")?;
        let words: Option<Vec<String>> =
            words.map(|words| words.iter().flatten().map(str::to_owned).collect());
        let mut parts = Parts {
            files: files(task)?,
            words,
            vocabulary: rows.form.words().map(str::to_owned),
            vectors: None,
        };
        let table = |parts: &Parts| {
            let (card, tensors) = external::stored(&spec, parts);
            weights::table(&card, &tensors)
        };
        try_out::classes(&rows, spec.classes)?;
        let loaded = Loaded::open(&table(&parts), None)?;
        let loaded = loaded.started(task).map_err(advised)?;
        {
            let subject = loaded.subject()?;
            let victim = subject.victim();
            try_out::answers(victim, &rows, spec.batch, task.watch).map_err(advised)?;
            try_out::labels(victim, &rows, spec.classes, task.watch)?;
        }
        parts.vectors = loaded.ask_vectors()?;
        loaded.finish(task.watch)?;
        if let Some(vectors) = &parts.vectors {
            try_out::vectors(vectors, &rows)?;
            // Started again: how long its vectors are is known only now.
            let loaded = Loaded::open(&table(&parts), None)?.started(task)?;
            let subject = loaded.subject()?;
            try_out::gradients(subject.victim(), &rows, vectors, spec.classes, task.watch)?;
            loaded.finish(task.watch)?;
        }
        Ok([("weights".to_owned(), table(&parts))].into())
    }
}

/// With the next step for what goes wrong most often.
fn advised(failure: Failure) -> Failure {
    let says = |text: &str| failure.message.contains(text);
    let help = match () {
        () if failure.help.is_some() => return failure,
        () if says("to standard output, which is for answers") => {
            "standard output is for answers: import ablate before anything is printed, and end with ablate.serve(predict=…)"
        }
        () if says("not between 0 and 1") || says("adds up to") => {
            "return probabilities: of scores or logits take the softmax (torch.softmax(x, dim=1), scipy.special.softmax(x, axis=1))"
        }
        () if says("did not answer within") => {
            "raise `timeout` if it only needs longer: the first answer waits for packages and weights to be loaded"
        }
        () => return failure,
    };
    failure.help(help)
}

/// How it is started, from checked parameters.
fn spec(task: &Task<'_>) -> Result<ExternalSpec, ParamError> {
    let settings = Settings(task.params);
    let env = task.params.get("env").and_then(Value::as_table);
    let env = env.into_iter().flatten().map(|(name, value)| {
        let value = value.as_text().unwrap_or_default();
        (name.clone(), value.to_owned())
    });
    let files = task.files.iter();
    let folders = files.clone().filter_map(|(name, file)| {
        let name = name.strip_suffix('/')?;
        Some((name.to_owned(), file.digest))
    });
    let folders: BTreeMap<String, Digest> = folders.collect();
    let mut in_order = params::texts(task.params, "environment");
    if in_order.is_sorted() {
        in_order.clear();
    }
    let executable = files.filter(|(name, file)| file.executable && !name.ends_with('/'));
    let program = params::program(task.params).unwrap_or_default();
    let own = task
        .files
        .iter()
        .map(|(name, file)| (name.as_str(), file.path));
    let installed = installed::find(&program, own).map_err(|problem| ParamError {
        param: "run",
        message: problem.message,
        help: Some(problem.help),
    })?;
    Ok(ExternalSpec {
        installed,
        lock: program.lock,
        secret_env: program.secrets,
        run: params::texts(task.params, "run"),
        env: env.collect(),
        environments: folders,
        environments_in_order: in_order,
        executable: executable.map(|(name, _)| name.clone()).collect(),
        network: settings.flag("network")?,
        memory: settings.maybe_float("memory"),
        processes: settings.int("processes")? as i64,
        timeout: settings.float("timeout")?,
        texts: settings.text("reads") != Some("tokens"),
        gradients: settings.flag("gradients")?,
        attention: settings.flag("attention")?,
        states: settings.flag("states")?,
        dim: None,
        classes: settings.int("classes")?,
        batch: settings.int("batch")?,
    })
}

/// The contents of declared files, which must be what the key says.
fn files(task: &Task<'_>) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut files = BTreeMap::new();
    for (name, file) in task.files.iter().filter(|(name, _)| !name.ends_with('/')) {
        files.insert(
            name.clone(),
            crate::programs::sandbox::verified(name, file)?,
        );
    }
    Ok(files.into_iter().collect())
}
