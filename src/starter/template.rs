//! The templates: files with places that are filled in. What comes out is a pipeline that people go on editing, so
//! that it says in comments what each line is for.

use minijinja::{Environment, UndefinedBehavior, context};
use serde::Serialize;
use toml::Value;

use super::columns::Meaning;
use super::sample::Format;

/// What to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Template {
    /// Three classifiers with three seeds, and an ablation
    Classify,
    /// The same under attack
    Attack,
    /// The same beside a paper's numbers, with its choices and profiles
    Paper,
}

/// The user's file, as the pipeline reads it.
#[derive(Debug, Serialize)]
pub struct Data {
    /// What the columns were taken for.
    pub columns: String,
    /// `source` of the dataset stage.
    pub source: String,
    /// `split` of the dataset stage, if rows must be moved.
    pub split: Option<String>,
    /// `encoding` of the dataset stage, if it is not UTF-8.
    pub encoding: Option<String>,
    /// What a model reaches that always answers the commonest class.
    pub commonest: f64,
}

/// Of synthetic reviews.
const HALF: f64 = 0.5;

impl Data {
    /// What a file's columns come to. Its classes are not counted yet.
    pub fn new(
        file: &str,
        format: Format,
        meaning: &Meaning,
        encoding: Option<&'static str>,
    ) -> Data {
        let mut source = vec![(format.key(), file), ("text", &meaning.text.name)];
        source.push(("label", &meaning.label.name));
        source.extend(meaning.split.iter().map(|it| ("split", it.name.as_str())));
        source.extend(meaning.id.iter().map(|it| ("id", it.name.as_str())));
        let each = source
            .iter()
            .map(|(key, value)| format!("{key} = {}", Value::String((*value).to_owned())));
        let source = format!("{{ {} }}", each.collect::<Vec<_>>().join(", "));
        Data {
            columns: String::new(),
            source,
            split: moves(meaning),
            encoding: encoding.map(|name| format!("{name:?}")),
            commonest: HALF,
        }
    }
}

/// How rows come to be in train, dev and test.
fn moves(meaning: &Meaning) -> Option<String> {
    let has = |name: &str| meaning.splits.contains(name);
    let mut steps = Vec::new();
    if !has("test") {
        steps.push("{ of = \"train\", into = \"test\", share = 0.2 }".to_owned());
    }
    if !has("dev") {
        let named = ["valid", "validation", "val"]
            .into_iter()
            .find(|name| has(name));
        steps.push(match named {
            Some(name) => format!("{{ of = \"{name}\", into = \"dev\", share = 1.0 }}"),
            None => "{ of = \"train\", into = \"dev\", share = 0.1 }".to_owned(),
        });
    }
    (!steps.is_empty()).then(|| format!("[{}]", steps.join(", ")))
}

/// A pipeline to start from.
pub struct Starter<'a> {
    pub template: Template,
    /// The name of the pipeline.
    pub name: &'a str,
    /// The user's file, or synthetic data.
    pub data: Option<&'a Data>,
}

/// Files that others include, and those that are written.
const FILES: [(&str, &str); 9] = [
    ("data.toml", include_str!("templates/data.toml")),
    ("models.toml", include_str!("templates/models.toml")),
    ("variants.toml", include_str!("templates/variants.toml")),
    ("classify.toml", include_str!("templates/classify.toml")),
    ("attack.toml", include_str!("templates/attack.toml")),
    ("paper.toml", include_str!("templates/paper.toml")),
    (
        "claims-classify.toml",
        include_str!("templates/claims-classify.toml"),
    ),
    (
        "claims-attack.toml",
        include_str!("templates/claims-attack.toml"),
    ),
    ("README-paper.md", include_str!("templates/README-paper.md")),
];

impl Starter<'_> {
    /// The files, by name.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        let pipeline: &[&str] = match self.template {
            Template::Classify => &["classify.toml"],
            Template::Attack => &["attack.toml"],
            Template::Paper => &["attack.toml", "paper.toml"],
        };
        let claims = match self.template {
            Template::Classify => "claims-classify.toml",
            Template::Attack | Template::Paper => "claims-attack.toml",
        };
        let pipeline: Vec<String> = pipeline.iter().map(|name| self.filled(name)).collect();
        let mut files = vec![
            ("pipeline.toml", pipeline.join("\n")),
            ("claims.toml", self.filled(claims)),
            (".gitignore", ".ablate/\n".to_owned()),
        ];
        if self.template == Template::Paper {
            files.push(("README.md", self.filled("README-paper.md")));
        }
        files
    }

    fn filled(&self, name: &str) -> String {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        for (name, text) in FILES {
            environment
                .add_template(name, text)
                .expect("a template of ours");
        }
        let commonest = self.data.map_or(HALF, |data| data.commonest);
        let values = context! {
            name => self.name,
            data => minijinja::Value::from(minijinja::value::Serde(self.data)),
            paper => self.template == Template::Paper,
            commonest => format!("{commonest:.3}"),
        };
        let template = environment.get_template(name).expect("it was added");
        // The engine drops the line end of a file.
        template.render(values).expect("all places are filled in") + "\n"
    }
}
