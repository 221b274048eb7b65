//! Takes the tables that a program left in its `out/` folder. Only regular files with the
//! declared names: a link could name anything, and would be read after it changed.

use std::fs;
use std::path::Path;

use crate::programs::log::Log;
use crate::tables::inherit::inherit;
use crate::{Failure, Outputs, Task};

/// Reads every declared output.
pub fn take(out: &Path, names: &[String], log: &Log, task: &Task<'_>) -> Result<Outputs, Failure> {
    let watch = task.watch;
    let found = list(out);
    let mut tables = Outputs::new();
    for name in names {
        let file = format!("{name}.parquet");
        let path = out.join(&file);
        let kind = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata.file_type(),
            Err(_) => return Err(missing(name, &found, log)),
        };
        if !kind.is_file() {
            let what = match (kind.is_symlink(), kind.is_dir()) {
                (true, _) => "a symbolic link",
                (_, true) => "a folder",
                _ => "not a regular file",
            };
            return Err(
                Failure::new(format!("the output $ABLATE_OUT/{file} is {what}"))
                    .help("write a regular Parquet file")
                    .at("outputs"),
            );
        }
        let table = crate::tables::foreign::read(&path, || watch.stopped()).map_err(|e| {
            if e.stopped {
                return e;
            }
            // The folder is gone by the time anyone reads this.
            let why = e
                .to_string()
                .replace(&format!("{}", out.display()), "$ABLATE_OUT");
            Failure::new(format!(
                "the output `{name}` is not a readable Parquet file\n{why}\n{}",
                log.tail()
            ))
            .help(format!(
                "the program must write a whole Parquet file to $ABLATE_OUT/{file}"
            ))
            .at("outputs")
        })?;
        let (table, line) = inherit(name, table, &task.inputs);
        line.iter().for_each(|line| watch.log(line));
        tables.insert(name.clone(), table);
    }
    let declared = |file: &String| {
        file.strip_suffix(".parquet")
            .is_some_and(|n| tables.contains_key(n))
    };
    for extra in found.iter().filter(|file| !declared(file)) {
        watch.log(&format!(
            "ablate: ignored $ABLATE_OUT/{extra}, which `outputs` does not name"
        ));
    }
    Ok(tables)
}

fn list(out: &Path) -> Vec<String> {
    // A program may have removed the folder: then nothing is there.
    let entries = fs::read_dir(out).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn missing(name: &str, found: &[String], log: &Log) -> Failure {
    let there = match found {
        [] => "$ABLATE_OUT is empty".to_owned(),
        _ => format!("$ABLATE_OUT holds {}", found.join(", ")),
    };
    let message = format!(
        "the program did not write its output `{name}`: {there}\n{}",
        log.tail()
    );
    let help = match crate::contract::nearest::nearest(
        &format!("{name}.parquet"),
        found.iter().map(String::as_str),
    ) {
        Some(near) => format!("did it mean {near} to be `{name}`?"),
        None => format!("it must write a Parquet file to $ABLATE_OUT/{name}.parquet"),
    };
    Failure::new(message).help(help).at("outputs")
}
