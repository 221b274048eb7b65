//! What the parameters of `dataset` say, checked before anything runs.
//! Knows nothing of files or of rows.

use std::collections::BTreeMap;

use store::{Params, Value};

use super::catalogue::{self, Schema, Set};
use super::draw::{Move, Part, Plan};
use super::load::PAIRS;
use super::own::{self, Source};
use super::synthetic::{self, Options, Synthetic};
use super::text::{self, Encoding};
use crate::ParamError;
use crate::contract::expected::{Expected, ExpectedRows, TextSource};
use crate::contract::nearest::nearest;

/// Where rows come from.
pub enum Origin<'a> {
    /// The catalogue.
    Named(&'static Set),
    /// A generator.
    Made(&'static Synthetic, Options),
    /// The user's file.
    Own(Source<'a>),
}

impl Origin<'_> {
    /// Whether rows have labels.
    pub fn labelled(&self) -> bool {
        match self {
            Origin::Named(set) => set.schema.labelled(),
            Origin::Made(set, _) => set.schema.labelled(),
            Origin::Own(_) => true,
        }
    }

    /// The splits that it is known to have.
    fn splits(&self) -> Option<Vec<&str>> {
        match self {
            Origin::Named(set) => Some(set.split.iter().map(|split| split.name.as_str()).collect()),
            Origin::Made(set, _) => Some(set.splits.iter().map(|(split, _)| *split).collect()),
            Origin::Own(_) => None,
        }
    }
}

/// What is known of the rows before they are read.
pub fn expected(params: &Params) -> Option<Expected> {
    let (origin, plan) = (origin(params).ok()?, plan(params).ok()?);
    let (rows, pairs) = match &origin {
        Origin::Named(set) => (
            of_schema(set.schema),
            set.form
                .iter()
                .any(|form| PAIRS.contains(&form.loader.as_str())),
        ),
        Origin::Made(set, _) => (of_schema(set.schema), set.pairs),
        Origin::Own(source) if source.signals() => (Some(ExpectedRows::Signals), false),
        Origin::Own(source) => (Some(ExpectedRows::Texts), source.pairs()),
    };
    let splits = match &origin {
        Origin::Own(source) if !source.has_splits() => Some(vec!["train"]),
        origin => origin.splits(),
    };
    let splits = splits.map(|splits| {
        let moved = plan.moves.iter().map(|step| step.into.as_str());
        let kept = |split: &&str| plan.splits.is_empty() || plan.splits.iter().any(|s| s == split);
        let mut all: Vec<String> = Vec::new();
        for split in splits.into_iter().chain(moved).filter(kept) {
            if !all.iter().any(|known| known == split) {
                all.push(split.to_owned());
            }
        }
        all
    });
    let classes = match &origin {
        Origin::Named(set) => set.labels.len(),
        Origin::Made(set, _) => set.labels.len(),
        Origin::Own(_) => 0,
    };
    let data = match &origin {
        Origin::Named(set) => set.name.clone(),
        Origin::Made(set, _) => set.name.to_owned(),
        Origin::Own(source) => source.file.to_owned(),
    };
    Some(Expected {
        rows,
        splits,
        classes: (classes > 0).then_some(classes),
        second_text: pairs.then(|| "text_b".to_owned()),
        texts: Some(TextSource {
            data,
            lowercase: None,
        }),
        ..Expected::default()
    })
}

fn of_schema(schema: Schema) -> Option<ExpectedRows> {
    match schema {
        Schema::Text => Some(ExpectedRows::Texts),
        Schema::Sequence => Some(ExpectedRows::Signals),
        Schema::Pairs | Schema::Corpus | Schema::Vectors | Schema::Words | Schema::Weights => None,
    }
}

/// Checks everything that can be checked without looking at data.
pub fn params(params: &Params) -> Result<(), ParamError> {
    let origin = origin(params)?;
    let plan = plan(params)?;
    if !matches!(origin, Origin::Own(_)) && encoding(params) != Encoding::Utf8 {
        let message = "`encoding` is for your own files".to_owned();
        return Err(error(
            "encoding",
            message,
            "the encoding of a named data set is known",
        ));
    }
    if let Origin::Own(source) = &origin
        && source.binary()
        && encoding(params) != Encoding::Utf8
    {
        let message = "`encoding` is for text files, and a Parquet file needs none".to_owned();
        return Err(error("encoding", message, "leave it out"));
    }
    if encoding_name(params).is_some_and(|name| text::NAMES.iter().all(|(known, _)| *known != name))
    {
        let message = format!(
            "no encoding `{}`",
            encoding_name(params).unwrap_or_default()
        );
        return Err(error(
            "encoding",
            message,
            "use utf-8, utf-8-lossy, latin-1 or windows-1252",
        ));
    }
    if plan.balance && !origin.labelled() {
        return Err(error(
            "balance",
            "this set has no labels to balance".into(),
            "leave `balance` out",
        ));
    }
    known_splits(&origin, &plan)
}

/// Where rows come from.
pub fn origin(params: &Params) -> Result<Origin<'_>, ParamError> {
    let table = |name: &str| params.get(name).and_then(Value::as_table);
    match (params.get("name").and_then(Value::as_text), table("source")) {
        (Some(_), Some(_)) => Err(error(
            "source",
            "a data set has a `name` or a `source`, not both".into(),
            "remove one of them",
        )),
        (None, None) => Err(error(
            "name",
            "a data set needs a `name` or a `source`".into(),
            "see `ablate data list` for names",
        )),
        (None, Some(source)) => {
            no_options(table("generate"))?;
            own::parse(source)
                .map(Origin::Own)
                .map_err(|message| error("source", message, own::FORM))
        }
        (Some(name), None) => {
            if let Some(set) = synthetic::find(name) {
                let options = Options::new(set, table("generate"));
                let options = options.map_err(|message| {
                    error("generate", message, "see stages/kinds/dataset/README.md")
                })?;
                return Ok(Origin::Made(set, options));
            }
            no_options(table("generate"))?;
            catalogue::find(name).map(Origin::Named).ok_or_else(|| {
                let made = synthetic::SYNTHETIC.iter().map(|set| set.name);
                let known: Vec<&str> = catalogue::all().keys().copied().chain(made).collect();
                let help = match nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are {}", known.join(", ")),
                };
                error("name", format!("no data set `{name}`"), &help)
            })
        }
    }
}

fn no_options(generate: Option<&BTreeMap<String, Value>>) -> Result<(), ParamError> {
    match generate {
        None => Ok(()),
        Some(_) => Err(error(
            "generate",
            "only synthetic data sets take `generate`".into(),
            "leave it out",
        )),
    }
}

/// What to draw.
pub fn plan(params: &Params) -> Result<Plan, ParamError> {
    let list = |name: &str| {
        params
            .get(name)
            .and_then(Value::as_list)
            .unwrap_or_default()
    };
    let splits = list("splits")
        .iter()
        .filter_map(Value::as_text)
        .map(str::to_owned)
        .collect();
    let steps = list("split").iter().filter_map(Value::as_table);
    let moves = steps
        .map(|step| step_of(step).map_err(|message| error("split", message, STEP)))
        .collect::<Result<_, _>>()?;
    let mut sample = BTreeMap::new();
    for (split, value) in params
        .get("sample")
        .and_then(Value::as_table)
        .into_iter()
        .flatten()
    {
        match value.as_int().map(usize::try_from) {
            Some(Ok(rows)) if rows > 0 => drop(sample.insert(split.clone(), rows)),
            _ => {
                let message =
                    format!("`sample` of `{split}` must be a number of rows, not {value}");
                return Err(error("sample", message, "write sample = { train = 1000 }"));
            }
        }
    }
    let balance = params.get("balance") == Some(&Value::Bool(true));
    Ok(Plan {
        splits,
        moves,
        balance,
        sample,
    })
}

const STEP: &str = "write { of = \"test\", into = \"dev\", share = 0.5 }, or rows = 1000; by = \"order\" takes the first of each class instead of drawing";

fn step_of(step: &BTreeMap<String, Value>) -> Result<Move, String> {
    for key in step.keys() {
        if !["of", "into", "share", "rows", "by"].contains(&key.as_str()) {
            return Err(format!("unknown key `{key}`"));
        }
    }
    let name = |key: &str| {
        step.get(key)
            .and_then(Value::as_text)
            .filter(|name| !name.is_empty())
    };
    let split = |key: &str| {
        name(key)
            .map(str::to_owned)
            .ok_or_else(|| format!("`{key}` must name a split"))
    };
    let part = match (step.get("share"), step.get("rows")) {
        (Some(Value::Float(share)), None) if *share > 0.0 && *share <= 1.0 => Part::Share(*share),
        (Some(Value::Int(1)), None) => Part::Share(1.0),
        (None, Some(Value::Int(rows))) if *rows > 0 => {
            Part::Rows(usize::try_from(*rows).unwrap_or(usize::MAX))
        }
        _ => {
            return Err("give `share`, above 0 and at most 1, or `rows`".to_owned());
        }
    };
    let in_order = match step.get("by").map(Value::as_text) {
        None | Some(Some("hash")) => false,
        Some(Some("order")) => true,
        _ => return Err("`by` must be \"hash\" or \"order\"".to_owned()),
    };
    let (of, into) = (split("of")?, split("into")?);
    match of == into {
        true => Err(format!("rows of `{of}` cannot move into `{of}`")),
        false => Ok(Move {
            of,
            into,
            part,
            in_order,
        }),
    }
}

/// Every split that is named exists, or is made by a step before.
fn known_splits(origin: &Origin<'_>, plan: &Plan) -> Result<(), ParamError> {
    let Some(mut known) = origin.splits() else {
        return Ok(());
    };
    let check = |param, split: &str, known: &[&str]| match known.contains(&split) {
        true => Ok(()),
        false => Err(error(
            param,
            format!("no split `{split}`"),
            &format!("there are {}", known.join(", ")),
        )),
    };
    for step in &plan.moves {
        check("split", &step.of, &known)?;
        if !known.contains(&step.into.as_str()) {
            known.push(&step.into);
        }
    }
    plan.splits
        .iter()
        .try_for_each(|split| check("splits", split, &known))?;
    plan.sample
        .keys()
        .try_for_each(|split| check("sample", split, &known))
}

fn encoding_name(params: &Params) -> Option<&str> {
    params.get("encoding").and_then(Value::as_text)
}

/// How the user's file is encoded.
pub fn encoding(params: &Params) -> Encoding {
    let name = encoding_name(params).unwrap_or("utf-8");
    let known = text::NAMES.iter().find(|(known, _)| *known == name);
    known.map_or(Encoding::Utf8, |(_, encoding)| *encoding)
}

fn error(param: &'static str, message: String, help: &str) -> ParamError {
    ParamError {
        param,
        message,
        help: Some(help.to_owned()),
    }
}
