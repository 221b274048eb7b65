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
use crate::starter::{self, Chosen, Columns, Data, Format, Meaning, Starter, Template, Whole};

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
    encoding: Option<&'static str>,
    whole: Whole,
}

/// Chooses columns by the first rows, and reads all of it as the stage will.
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
    if let Some(separator) = other_separator(format, &sample.names) {
        return Err(Diagnostic::new(format!(
            "cannot start from {shown}: its columns are separated by `{separator}`, and those of a .csv file by commas"
        ))
        .help("write it with commas, or with tabs as a .tsv file")
        .into());
    }
    let meaning = starter::choose(&sample, &told).map_err(|error| {
        Diagnostic::new(format!("cannot start from {shown}: {}", error.message)).help(error.help)
    })?;
    let name = file.file_name().and_then(|name| name.to_str());
    let data = Data::new(name.unwrap_or_default(), format, &meaning, sample.encoding);
    let whole = starter::whole(&data, file).map_err(|failure| {
        Diagnostic::new(format!("cannot start from {shown}: {}", failure.message))
            .maybe_help(failure.help)
    })?;
    Ok(Own {
        file,
        format,
        meaning,
        encoding: sample.encoding,
        whole,
    })
}

/// What separates the columns of a header that has no comma.
fn other_separator(format: Format, names: &[String]) -> Option<char> {
    match (format, names) {
        (Format::Csv, [only]) => [';', '\t', '|'].into_iter().find(|c| only.contains(*c)),
        _ => None,
    }
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
                data: self.data(name),
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
            data: self.data(name),
            linked: Some((name.to_owned(), real.display().to_string())),
        })
    }

    fn data(&self, name: &str) -> Data {
        let data = Data::new(name, self.format, &self.meaning, self.encoding);
        self.whole.counted(data)
    }

    /// What was chosen, for people.
    fn print(&self) -> Result<(), Exit> {
        let rows = plural(self.whole.rows, "row");
        let encoding = self
            .encoding
            .map(|name| format!(", as {name}: it is not UTF-8"));
        let encoding = encoding.unwrap_or_default();
        out!("read     {} ({rows}{encoding})", self.file.display());
        let line = |chosen: &Chosen| format!("{} ({})", chosen.name, chosen.why);
        let meaning = &self.meaning;
        let (count, classes) = (self.whole.classes.len(), self.whole.listed());
        out!("--text   {}", line(&meaning.text));
        out!(
            "--label  {}: {count} classes, {classes}",
            line(&meaning.label)
        );
        match &meaning.split {
            Some(split) => out!("--split  {}", line(split)),
            None => out!("--split  none: a fifth of the rows become test, a tenth of the rest dev"),
        }
        match (&meaning.id, &meaning.repeated_id) {
            (Some(id), _) => out!("--id     {}", line(id)),
            (None, Some(name)) => out!("--id     none: row numbers (`{name}` has a value twice)"),
            (None, None) => out!("--id     none: row numbers"),
        }
        if let Some(second) = &meaning.second_text {
            out!(
                "note     `{second}` looks like the second text of a pair and is not read; for pairs add text_b = \"{second}\" to `source`, and models of pairs"
            );
        }
        for note in self.whole.notes() {
            out!("note     {note}");
        }
        Ok(())
    }

    fn json(&self) -> serde_json::Value {
        let meaning = &self.meaning;
        let name = |chosen: &Option<Chosen>| chosen.as_ref().map(|chosen| chosen.name.clone());
        let classes = self.whole.classes.iter();
        let classes: Vec<&String> = classes.map(|(name, _)| name).collect();
        json!({
            "text": meaning.text.name, "label": meaning.label.name, "split": name(&meaning.split),
            "id": name(&meaning.id), "encoding": self.encoding, "classes": classes,
            "notes": self.whole.notes(),
        })
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
