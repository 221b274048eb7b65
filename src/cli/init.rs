//! `ablate init`: a pipeline to start from, in a new or an existing folder, on the user's own file or on synthetic data.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::file;
use super::global::{Global, quoted};
use super::print::out;
use crate::amounts::plural;
use crate::diagnostic::Diagnostic;
use crate::starter::{self, Chosen, Columns, Data, Format, Meaning, Starter, Template};

/// What `init` takes.
#[derive(Args)]
pub struct Arguments {
    /// The folder, which is made if it does not exist
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Your own texts with labels: a .csv, .tsv, .jsonl or .parquet file [default: synthetic reviews]
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// What to start from
    #[arg(long, value_enum, default_value_t = Template::Attack)]
    template: Template,
    /// The column with the texts [default: guessed, and shown]
    #[arg(long, value_name = "COLUMN", requires = "from")]
    text: Option<String>,
    /// The column with the classes [default: guessed, and shown]
    #[arg(long, value_name = "COLUMN", requires = "from")]
    label: Option<String>,
    /// The column with train, dev or test [default: guessed; without one, rows are drawn]
    #[arg(long, value_name = "COLUMN", requires = "from")]
    split: Option<String>,
    /// The column with unique ids [default: guessed; without one, row numbers]
    #[arg(long, value_name = "COLUMN", requires = "from")]
    id: Option<String>,
}

/// Files that people have edited are never replaced.
const PRECIOUS: [&str; 2] = ["pipeline.toml", "claims.toml"];

/// Writes the pipeline, and says what it was made of.
pub fn init(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    let folder = &arguments.folder;
    if let Some(name) = PRECIOUS.iter().find(|name| folder.join(name).exists()) {
        let there = folder.join(name);
        return Err(
            Diagnostic::new(format!("{} already exists", there.display()))
                .help("name another folder: ablate init FOLDER")
                .into(),
        );
    }
    let own = arguments
        .from
        .as_ref()
        .map(|file| own_file(arguments, file))
        .transpose()?;
    std::fs::create_dir_all(folder).map_err(|error| {
        Diagnostic::new(format!(
            "cannot create the folder {}: {error}",
            folder.display()
        ))
    })?;
    let data = own.as_ref().map(|own| own.place(folder)).transpose()?;
    let starter = Starter {
        template: arguments.template,
        name: &name_of(folder),
        data: data.as_ref().map(|placed| &placed.data),
    };
    let mut written = Vec::new();
    let mut left = Vec::new();
    for (name, text) in starter.files() {
        let path = folder.join(name);
        if path.exists() {
            left.push(name);
            continue;
        }
        file::write_new(&path, text.as_bytes())
            .map_err(|error| Diagnostic::new(file::unwritten(&path, &error)))?;
        written.push(name);
    }
    let linked = data.and_then(|placed| placed.linked);
    if global.json {
        let columns = own.as_ref().map(|own| own.json());
        out!(
            "{}",
            json!({ "folder": folder, "written": written, "left": left, "linked": linked, "columns": columns })
        );
        return Ok(());
    }
    if let Some(own) = &own {
        own.print()?;
    }
    if let Some((link, target)) = &linked {
        out!("linked   {link} -> {target} (a pipeline only reads files in its own folder)");
    }
    out!("wrote    {}", written.join(", "));
    if !left.is_empty() {
        out!("left     {} as it was", left.join(", "));
    }
    let there = match folder.as_path() == Path::new(".") {
        true => String::new(),
        false => format!(" -C {}", quoted(&folder.display().to_string())),
    };
    out!("next     ablate{there} run");
    Ok(())
}

/// The user's file, with what its columns mean.
struct Own<'a> {
    file: &'a Path,
    format: Format,
    meaning: Meaning,
    rows: usize,
    whole: bool,
}

/// Reads the first rows, and chooses columns.
fn own_file<'a>(arguments: &Arguments, file: &'a Path) -> Result<Own<'a>, Exit> {
    let shown = file.display();
    let format = Format::of(file).ok_or_else(|| {
        Diagnostic::new(format!("{shown} is not a file of a known format"))
            .help("its name must end in .csv, .tsv, .jsonl or .parquet")
    })?;
    let sample = starter::read(file, format).map_err(|why| {
        Diagnostic::new(format!("cannot read {shown}: {why}"))
            .help("--from names a file of texts with labels")
    })?;
    let told = Columns {
        text: arguments.text.clone(),
        label: arguments.label.clone(),
        split: arguments.split.clone(),
        id: arguments.id.clone(),
    };
    let meaning = starter::choose(&sample, &told).map_err(|error| {
        Diagnostic::new(format!("cannot start from {shown}: {}", error.message)).help(error.help)
    })?;
    Ok(Own {
        file,
        format,
        meaning,
        rows: sample.rows.len(),
        whole: sample.whole,
    })
}

/// What of the pipeline depends on the user's file.
struct Placed {
    data: Data,
    /// A link that was made, and where it leads.
    linked: Option<(String, String)>,
}

impl Own<'_> {
    /// The file as the pipeline names it: below its folder, or by a link there.
    fn place(&self, folder: &Path) -> Result<Placed, Exit> {
        let failed = |error: std::io::Error| {
            Exit::from(Diagnostic::new(format!(
                "cannot find {}: {error}",
                self.file.display()
            )))
        };
        let real = self.file.canonicalize().map_err(failed)?;
        let home = folder.canonicalize().map_err(failed)?;
        // A link that lies in the folder already is a file of the folder.
        let named = std::path::absolute(self.file).map_err(failed)?;
        let inside = [&real, &named]
            .into_iter()
            .find_map(|path| path.strip_prefix(&home).ok())
            .and_then(Path::to_str);
        if let Some(name) = inside {
            return Ok(Placed {
                data: Data::new(name, self.format, &self.meaning),
                linked: None,
            });
        }
        let name = self.file.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| {
            Diagnostic::new(format!("{} is not a UTF-8 name", self.file.display()))
                .help("rename the file")
        })?;
        let link = home.join(name);
        std::os::unix::fs::symlink(&real, &link).map_err(|error| {
            Diagnostic::new(format!("cannot link {}: {error}", link.display()))
                .help("copy or link the file into the folder, and name it there: --from FILE")
        })?;
        Ok(Placed {
            data: Data::new(name, self.format, &self.meaning),
            linked: Some((name.to_owned(), real.display().to_string())),
        })
    }

    /// What was chosen, for people.
    fn print(&self) -> Result<(), Exit> {
        let rows = match self.whole {
            true => plural(self.rows, "row"),
            false => format!("the first {} rows", self.rows),
        };
        out!("read     {} ({rows})", self.file.display());
        let line = |chosen: &Chosen| format!("{} ({})", chosen.name, chosen.why);
        let meaning = &self.meaning;
        let classes = amount(meaning.classes.len(), "class", "classes");
        out!("--text   {}", line(&meaning.text));
        out!("--label  {}: {classes}", line(&meaning.label));
        match &meaning.split {
            Some(split) => out!("--split  {}", line(split)),
            None => out!("--split  none: a fifth of the rows become test, a tenth of the rest dev"),
        }
        match &meaning.id {
            Some(id) => out!("--id     {}", line(id)),
            None => out!("--id     none: row numbers"),
        }
        if let Some(second) = &meaning.second_text {
            out!(
                "note     `{second}` looks like the second text of a pair and is not read; for pairs add text_b = \"{second}\" to `source`, and models of pairs"
            );
        }
        Ok(())
    }

    fn json(&self) -> serde_json::Value {
        let meaning = &self.meaning;
        let name = |chosen: &Option<Chosen>| chosen.as_ref().map(|chosen| chosen.name.clone());
        json!({
            "text": meaning.text.name, "label": meaning.label.name, "split": name(&meaning.split),
            "id": name(&meaning.id), "classes": meaning.classes,
        })
    }
}

fn amount(n: usize, one: &str, many: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        _ => format!("{n} {many}"),
    }
}

/// The folder's own name, as a pipeline may be called.
fn name_of(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_default();
    let name = whole.file_name().and_then(|name| name.to_str());
    let plain = |c: char| match c.is_ascii_alphanumeric() || "-_.".contains(c) {
        true => c,
        false => '-',
    };
    let name: String = name.unwrap_or_default().chars().map(plain).collect();
    match name.trim_matches('-') {
        "" => "study".to_owned(),
        name => name.to_owned(),
    }
}
