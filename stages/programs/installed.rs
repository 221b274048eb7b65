//! What a program runs on and brings not with it: the interpreter that is found for it, and the packages that are
//! installed for that. All of it enters the key.
//!
//! A program counts by the bytes of its file, with links and the first line of a script followed. A Python distribution
//! counts by its version and by what its RECORD says of its files, compiled code left out; a declared lock file speaks
//! for the packages that it pins, see [`super::lock`]. What a shell starts is not known here. Runs nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use store::{Digest, Installed, Package};

use super::environment::Problem;
use super::lock::{self, normal};
use super::search::{Search, in_order, search_path};
use crate::Failure;
use crate::contract::program::ProgramSpec;

/// What a program runs on. `files` are those of its stage: the name of an environment ends with `/`.
pub fn find<'a>(
    program: &ProgramSpec,
    files: impl Iterator<Item = (&'a str, &'a Path)>,
) -> Result<Installed, Problem> {
    let (mut own, mut environments) = (BTreeMap::new(), BTreeMap::new());
    for (name, path) in files {
        match name.strip_suffix('/') {
            Some(name) => environments.insert(name.to_owned(), path.to_owned()),
            None => own.insert(name.to_owned(), path.to_owned()),
        };
    }
    let path = program.path.as_ref().map(OsString::from);
    let ordered = in_order(&program.environments, &environments);
    let search = Search {
        path: path.unwrap_or_else(|| search_path(ordered.iter().copied())),
        environments: &environments,
        own: &|name: &Path| match name.is_absolute() {
            true => name.is_file().then(|| name.to_owned()),
            false => own.get(&plain(name)?).cloned(),
        },
    };
    let mut installed = Installed::default();
    let mut sites = ordered.iter().flat_map(|root| sites_below(root)).collect();
    let first = program.run.first().map(String::as_str).unwrap_or_default();
    for path in search.chain(first) {
        // A file of the stage is in the key already.
        if !own.values().any(|own| *own == path) {
            add_program(&path, &mut installed.programs, &mut sites)?;
        }
    }
    installed.packages = packages(&sites);
    if let Some(name) = &program.lock {
        let path = own.get(&plain(Path::new(name)).unwrap_or_default());
        let text = path.map(fs::read_to_string).transpose();
        let text = text.map_err(|error| lock::unreadable(name, &error))?;
        let locked = lock::read(name, &text.unwrap_or_default())?;
        lock::agrees(name, &locked, &installed.packages)?;
        installed.packages.extend(locked.packages);
    }
    Ok(installed)
}

/// Refuses to go on with something else than what the key says.
pub fn check(keyed: &Installed, now: &Installed) -> Result<(), Failure> {
    let changes = keyed.changes(now);
    let Some(first) = changes.first() else {
        return Ok(());
    };
    let nothing = || "not there".to_owned();
    let more = match changes.len() {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    Err(Failure::new(format!(
        "what the program runs on has changed: {} was {} when the key was made, now {}{more}",
        first.name,
        first.was.clone().unwrap_or_else(nothing),
        first.now.clone().unwrap_or_else(nothing)
    ))
    .help(
        "run again, and what is installed now gets a new key; on another machine, install the same",
    )
    .at("run"))
}

/// `./a/b` as `a/b`.
fn plain(name: &Path) -> Option<String> {
    let parts = name.components().filter(|part| *part != Component::CurDir);
    parts.collect::<PathBuf>().to_str().map(str::to_owned)
}

/// Adds a program that was found, and for a Python what belongs to it.
fn add_program(
    path: &Path,
    programs: &mut BTreeMap<String, Digest>,
    sites: &mut Vec<PathBuf>,
) -> Result<(), Problem> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut add = |name: &Path, file: &Path| -> Result<(), Problem> {
        let name = name.file_name().unwrap_or_default().to_string_lossy();
        let digest = Digest::of_file(file).map_err(|error| Problem {
            message: format!("cannot read the program {}: {error}", file.display()),
            help: "what a program runs on enters the key, so it must be readable".to_owned(),
        })?;
        programs.insert(name.into_owned(), digest);
        Ok(())
    };
    add(path, &real)?;
    let Some(version) = python_version(&real).or_else(|| python_version(path)) else {
        return Ok(());
    };
    let above = |path: &Path| path.parent().and_then(Path::parent).map(Path::to_owned);
    let base = above(&real).unwrap_or_default();
    // Where most of a Python is that has so little in its program that upgrades leave it as it is.
    for library in entries(&base.join("lib")) {
        let name = library.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&format!("libpython{version}")) && library.is_file() {
            add(&library, &library)?;
        }
    }
    let root = above(path).unwrap_or_default();
    let settings = fs::read_to_string(root.join("pyvenv.cfg"));
    let is_open = settings.as_ref().is_ok_and(|text| sees_system(text));
    if settings.is_ok() {
        sites.extend(sites_below(&root));
    }
    if settings.is_err() || is_open {
        sites.extend(system_sites(&base, &version));
    }
    Ok(())
}

/// `3.12` of `python3.12`, and nothing of `python` alone; none of other programs.
fn python_version(program: &Path) -> Option<String> {
    let name = program.file_name()?.to_str()?;
    let version = name.strip_prefix("python").or(name.strip_prefix("pypy"))?;
    let digits = version.chars().all(|c| c.is_ascii_digit() || c == '.');
    digits.then(|| version.to_owned())
}

/// Whether a virtual environment also sees the packages of the Python that it was made with.
fn sees_system(settings: &str) -> bool {
    let mut lines = settings.lines().filter_map(|line| line.split_once('='));
    lines.any(|(key, value)| {
        key.trim() == "include-system-site-packages" && value.trim().eq_ignore_ascii_case("true")
    })
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The folders of packages in an environment.
fn sites_below(root: &Path) -> Vec<PathBuf> {
    let libs = ["lib", "lib64"].map(|lib| root.join(lib));
    let libs = libs.iter().filter(|lib| !lib.is_symlink());
    let pythons = libs.flat_map(|lib| entries(lib));
    let sites = pythons.map(|python| python.join("site-packages"));
    sites.filter(|site| site.is_dir()).collect()
}

/// The folders of packages of a Python that lies in `base`, on Debian's layout too.
fn system_sites(base: &Path, version: &str) -> Vec<PathBuf> {
    let mut sites = Vec::new();
    for lib in ["local/lib", "lib", "lib64"].map(|lib| base.join(lib)) {
        for python in entries(&lib) {
            let name = python.file_name().unwrap_or_default().to_string_lossy();
            // `python3` is where Debian has the packages of all its Pythons.
            let fits = name.strip_prefix("python").is_some_and(|found| {
                found == version || found == "3" || version.len() < 3 && found.starts_with(version)
            });
            if fits {
                sites.extend(["site-packages", "dist-packages"].map(|site| python.join(site)));
            }
        }
    }
    sites.retain(|site| site.is_dir());
    sites
}

/// The distributions in these folders; the first of a name is the one that is imported.
fn packages(sites: &[PathBuf]) -> BTreeMap<String, Package> {
    let mut packages: BTreeMap<String, Package> = BTreeMap::new();
    for site in sites {
        let mut here: BTreeMap<String, Vec<Package>> = BTreeMap::new();
        for entry in entries(site) {
            if let Some((name, package)) = distribution(&entry) {
                here.entry(name).or_default().push(package);
            }
        }
        for (name, found) in here {
            packages.entry(name).or_insert_with(|| together(found));
        }
    }
    packages
}

/// What an upgrade that went wrong has left twice counts as both.
fn together(mut found: Vec<Package>) -> Package {
    if found.len() == 1 {
        return found.remove(0);
    }
    let versions: Vec<&str> = found.iter().map(|one| one.version.as_str()).collect();
    let digests: Vec<String> = found.iter().map(|one| one.digest.to_string()).collect();
    Package {
        version: versions.join(" and "),
        digest: Digest::of(digests.join("\n").as_bytes()),
    }
}

/// The distribution that a `name-1.0.dist-info` or `name-1.0.egg-info` tells of.
fn distribution(info: &Path) -> Option<(String, Package)> {
    let file = info.file_name()?.to_str()?;
    let (stem, described) = match file.rsplit_once('.')? {
        (stem, "dist-info") => (stem, info.join("METADATA")),
        (stem, "egg-info") if info.is_file() => (stem, info.to_owned()),
        (stem, "egg-info") => (stem, info.join("PKG-INFO")),
        _ => return None,
    };
    let record = fs::read_to_string(info.join("RECORD")).ok();
    let (name, version) = match stem.split_once('-') {
        Some((name, version)) => {
            let version = version
                .split_once("-py")
                .map_or(version, |(version, _)| version);
            (name.to_owned(), version.to_owned())
        }
        None => (stem.to_owned(), said_version(&described)),
    };
    let digest = match record {
        Some(record) => Digest::of(without_compiled(&record).as_bytes()),
        None => Digest::of(&fs::read(&described).unwrap_or_default()),
    };
    Some((normal(&name), Package { version, digest }))
}

fn said_version(described: &Path) -> String {
    let text = fs::read_to_string(described).unwrap_or_default();
    let found = text.lines().find_map(|line| line.strip_prefix("Version:"));
    found.unwrap_or("unknown").trim().to_owned()
}

/// The lines of a RECORD that tell of what was installed: not of what Python compiled from it, nor of who installed it
/// from where.
fn without_compiled(record: &str) -> String {
    let told = |line: &&str| {
        let file = line.split(',').next().unwrap_or_default();
        let by_installer = ["RECORD", "INSTALLER", "REQUESTED", "direct_url.json"];
        let by_installer = file
            .split_once(".dist-info/")
            .is_some_and(|(_, name)| by_installer.contains(&name));
        !file.is_empty() && !file.ends_with(".pyc") && !by_installer
    };
    let mut lines: Vec<&str> = record.lines().filter(told).collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A folder with a Python of one's own, and a virtual environment of it.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Machine {
            let machine = Machine(tempfile::tempdir().unwrap());
            machine.write("base/bin/python3.12", "an interpreter");
            machine.write("base/lib/libpython3.12.so.1.0", "a library");
            machine.write("venv/pyvenv.cfg", "home = somewhere\n");
            machine.link("base/bin/python3.12", "venv/bin/python3");
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(machine.path("base/bin/python3.12"), mode).unwrap();
            machine
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn link(&self, to: &str, name: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(self.path(to), path).unwrap();
        }

        /// Installs a distribution, as pip would.
        fn install(&self, lib: &str, name: &str, version: &str, record: &str) {
            let info = format!("{lib}/{name}-{version}.dist-info");
            self.write(
                &format!("{info}/METADATA"),
                &format!("Version: {version}\n"),
            );
            self.write(&format!("{info}/RECORD"), record);
        }

        fn venv(&self, run: &[&str], lock: Option<&str>) -> Result<Installed, Problem> {
            let program = ProgramSpec {
                run: run.iter().map(|word| (*word).to_owned()).collect(),
                lock: lock.map(str::to_owned),
                ..ProgramSpec::default()
            };
            let venv = self.path("venv");
            let own: Vec<(String, PathBuf)> = ["requirements.txt", "tool"]
                .map(|name| (name.to_owned(), self.path(name)))
                .to_vec();
            let own = own
                .iter()
                .map(|(name, path)| (name.as_str(), path.as_path()));
            find(&program, own.chain([("venv/", venv.as_path())]))
        }
    }

    const SITE: &str = "venv/lib/python3.12/site-packages";

    #[test]
    fn an_environment_counts_by_its_interpreter_and_its_packages() {
        let machine = Machine::new();
        machine.install(SITE, "Some_Package", "1.2.0", "p.py,sha256=a,1\n");
        let one = machine.venv(&["python3", "x.py"], None).unwrap();
        let programs: Vec<&String> = one.programs.keys().collect();
        assert_eq!(programs, ["libpython3.12.so.1.0", "python3"]);
        assert_eq!(one.packages["some-package"].version, "1.2.0");
        // The packages of the Python that it was made with are not its own, unless it says so.
        machine.install("base/lib/python3.12/site-packages", "base", "1", "b.py,,\n");
        assert_eq!(machine.venv(&["python3"], None).unwrap(), one);
        machine.write("venv/pyvenv.cfg", "include-system-site-packages = true\n");
        let more = machine.venv(&["python3"], None).unwrap();
        assert_eq!(more.packages["base"].version, "1");
        // Another interpreter, and another library of it.
        machine.write("base/bin/python3.12", "another interpreter");
        let two = machine.venv(&["python3"], None).unwrap();
        assert_eq!(more.changes(&two)[0].name, "python3");
        machine.write("base/lib/libpython3.12.so.1.0", "another library");
        let three = machine.venv(&["python3"], None).unwrap();
        assert_eq!(two.changes(&three)[0].name, "libpython3.12.so.1.0");
    }

    #[test]
    fn the_interpreter_of_a_script_is_found_and_the_script_is_a_file_of_the_stage() {
        let machine = Machine::new();
        machine.write("tool", "#!/usr/bin/env python3\n");
        let installed = machine.venv(&["./tool"], None).unwrap();
        let programs: Vec<&String> = installed.programs.keys().collect();
        assert_eq!(programs, ["libpython3.12.so.1.0", "python3"]);
        let nothing = machine.venv(&["no-such-program"], None).unwrap();
        assert!(nothing.programs.is_empty());
    }

    #[test]
    fn only_what_was_installed_counts_of_a_record() {
        let machine = Machine::new();
        let record = |more: &str| format!("m.py,sha256=a,1\nn.py,sha256=b,2\n{more}");
        machine.install(SITE, "m", "1", &record(""));
        let before = machine.venv(&["python3"], None).unwrap();
        let compiled = "__pycache__/m.cpython-312.pyc,,\nm-1.dist-info/INSTALLER,sha256=x,3\nm-1.dist-info/RECORD,,\n";
        machine.install(SITE, "m", "1", &record(compiled));
        assert_eq!(machine.venv(&["python3"], None).unwrap(), before);
        machine.install(SITE, "m", "1", "n.py,sha256=b,2\nm.py,sha256=a,1\n");
        assert_eq!(machine.venv(&["python3"], None).unwrap(), before);
        machine.install(SITE, "m", "1", "m.py,sha256=c,1\nn.py,sha256=b,2\n");
        let after = machine.venv(&["python3"], None).unwrap();
        let change = before.changes(&after).remove(0);
        assert!(change.was.unwrap().starts_with("1 ("), "the same version");
        // Left behind by an upgrade that went wrong, both count.
        machine.install(SITE, "m", "2", &record(""));
        let both = machine.venv(&["python3"], None).unwrap();
        assert_eq!(both.packages["m"].version, "1 and 2");
    }

    #[test]
    fn distributions_of_all_layouts_are_found() {
        let machine = Machine::new();
        let base = "base/lib/python3/dist-packages";
        machine.write(&format!("{base}/six-1.16.0.egg-info"), "Version: 1.16.0\n");
        machine.write(&format!("{base}/old-2.0-py3.12.egg-info/PKG-INFO"), "x");
        machine.write(&format!("{base}/dev.egg-info/PKG-INFO"), "Version: 0.1\n");
        machine.write(&format!("{base}/bare-3.dist-info/METADATA"), "no RECORD");
        machine.install("base/lib/python3.11/site-packages", "other", "1", "");
        let sites = system_sites(&machine.path("base"), "3.12");
        let found = packages(&sites);
        let versions: Vec<(&str, &str)> = found
            .iter()
            .map(|(name, package)| (name.as_str(), package.version.as_str()))
            .collect();
        assert_eq!(
            versions,
            [
                ("bare", "3"),
                ("dev", "0.1"),
                ("old", "2.0"),
                ("six", "1.16.0")
            ]
        );
    }

    #[test]
    fn a_lock_speaks_for_what_it_pins_and_must_be_true() {
        let machine = Machine::new();
        machine.install(SITE, "numpy", "1.2.0", "n.py,sha256=a,1\n");
        machine.install(SITE, "loose", "3", "l.py,sha256=a,1\n");
        machine.write("requirements.txt", "numpy==1.2.0\n");
        let lock = Some("requirements.txt");
        let locked = machine.venv(&["python3"], lock).unwrap();
        // Built elsewhere, it has other files and the same version.
        machine.install(SITE, "numpy", "1.2.0", "n.py,sha256=b,1\n");
        assert_eq!(machine.venv(&["python3"], lock).unwrap(), locked);
        // What it does not pin counts as it is installed.
        machine.install(SITE, "loose", "3", "l.py,sha256=b,1\n");
        assert_ne!(machine.venv(&["python3"], lock).unwrap(), locked);
        machine.write("requirements.txt", "numpy==1.3.0\n");
        let refused = machine.venv(&["python3"], lock).unwrap_err();
        assert_eq!(
            refused.message,
            "requirements.txt says numpy 1.3.0, and 1.2.0 is installed"
        );
        machine.write("requirements.txt", "numpy==1.2.0\nscipy==1.1\n");
        let refused = machine.venv(&["python3"], lock).unwrap_err();
        assert_eq!(
            refused.message,
            "requirements.txt says scipy 1.1, and it is not installed"
        );
        // Elsewhere it may be.
        let marked = "numpy==1.2.0\nscipy==1.1 ; sys_platform == \"win32\"\n";
        machine.write("requirements.txt", marked);
        machine.venv(&["python3"], lock).unwrap();
    }

    /// The time is printed and decides nothing.
    #[test]
    fn every_distribution_of_a_large_environment_is_listed() {
        let machine = Machine::new();
        let line = "package/module_with_a_long_name.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,12345\n";
        for n in 0..100 {
            machine.install(SITE, &format!("package{n}"), "1.0", &line.repeat(200));
        }
        let clock = std::time::Instant::now();
        let found = machine.venv(&["python3"], None).unwrap();
        let took = clock.elapsed();
        assert_eq!(found.packages.len(), 100);
        println!("100 distributions: {took:?}");
    }
}
