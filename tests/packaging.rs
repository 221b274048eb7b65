//! What installs the program without a compiler: the metadata fits the code, and a wheel that is there works in a fresh
//! virtual environment. Builds nothing: ABLATE_WHEEL names a wheel of `maturin build`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::Lab;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn toml(name: &str) -> toml::Table {
    read(name).parse().unwrap()
}

#[test]
fn the_wheel_has_the_program_and_the_module() {
    let (cargo, python) = (toml("Cargo.toml"), toml("pyproject.toml"));
    let (package, project) = (&cargo["package"], &python["project"]);
    assert_eq!(project["name"], package["name"]);
    assert_eq!(project["description"], package["description"]);
    assert_eq!(project["license"], cargo["workspace"]["package"]["license"]);
    // The version is Cargo's: there is no second one to forget.
    assert_eq!(project["dynamic"].to_string(), "[\"version\"]");
    let maturin = &python["tool"]["maturin"];
    assert_eq!(maturin["bindings"].as_str(), Some("bin"));
    let source = maturin["python-source"].as_str().unwrap();
    let module = maturin["module-name"].as_str().unwrap();
    for file in ["__init__.py", "py.typed"] {
        read(&format!("{source}/{module}/{file}"));
    }
    for licence in project["license-files"].as_array().unwrap() {
        read(licence.as_str().unwrap());
    }
    let profile = maturin["profile"].as_str().unwrap();
    assert!(cargo["profile"].get(profile).is_some(), "{profile}");
}

#[test]
fn all_that_release_leaves_unoptimised_is_optimised_in_what_is_given_to_others() {
    let profiles = &toml("Cargo.toml")["profile"];
    let (release, dist) = (&profiles["release"], &profiles["dist"]);
    assert_eq!(dist["inherits"].as_str(), Some("release"));
    assert_eq!(dist["lto"].as_str(), Some("thin"));
    for profile in [release, dist] {
        assert_eq!(profile["strip"].as_bool(), Some(true));
    }
    let lock = read("Cargo.lock");
    for (package, settings) in release["package"].as_table().unwrap() {
        let known = lock.contains(&format!("name = \"{package}\"\n"));
        assert!(
            known,
            "[profile.release.package.{package}] is of no dependency"
        );
        let given = dist["package"].get(package);
        let given = given.unwrap_or_else(|| panic!("write [profile.dist.package.{package}]"));
        let (ours, theirs) = (&settings["opt-level"], &given["opt-level"]);
        assert!(ours.as_integer().unwrap() < 2, "{package}");
        // For speed, or for size.
        let optimised = theirs.as_integer() == Some(2) || theirs.as_str() == Some("s");
        assert!(optimised, "{package}");
    }
}

#[test]
fn the_container_is_built_from_what_is_here() {
    let text = read("Dockerfile");
    let rust = toml("Cargo.toml")["workspace"]["package"]["rust-version"].clone();
    let image = format!("FROM rust:{}-", rust.as_str().unwrap());
    assert!(text.contains(&image), "{image}");
    let copied = text
        .lines()
        .filter_map(|line| line.strip_prefix("COPY --from=build /source/"));
    for path in copied.map(|line| line.split(' ').next().unwrap()) {
        match path.strip_prefix("target/") {
            Some(built) => assert_eq!(built, "dist/ablate"),
            None => assert!(
                Path::new(env!("CARGO_MANIFEST_DIR")).join(path).is_dir(),
                "{path}"
            ),
        }
    }
    assert!(text.contains("--profile dist"));
}

#[test]
fn the_citation_has_the_version_and_the_licences() {
    let text = read("CITATION.cff");
    let cargo = toml("Cargo.toml");
    let shared = &cargo["workspace"]["package"];
    let version = shared["version"].as_str().unwrap();
    assert!(text.contains(&format!("\nversion: {version}\n")), "{text}");
    for licence in shared["license"].as_str().unwrap().split(" OR ") {
        assert!(text.contains(&format!("\n  - {licence}\n")), "{licence}");
    }
}

/// The most bytes that are given to others. Of the program 80 million are wanted; it has 92.9.
const WHEEL: u64 = 40_000_000;
const PROGRAM: u64 = 95_000_000;

#[test]
fn a_wheel_works_in_a_fresh_virtual_environment() {
    let Some(wheel) = std::env::var_os("ABLATE_WHEEL").map(PathBuf::from) else {
        println!("skipped: ABLATE_WHEEL names no wheel");
        return;
    };
    let size = wheel.metadata().expect("the wheel is there").len();
    assert!(size <= WHEEL, "the wheel has {size} bytes");
    let lab = Lab::new("");
    let run = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(lab.dir());
        // Nothing of this checkout is to help.
        for name in ["PYTHONPATH", "ABLATE_PROGRAM"] {
            command.env_remove(name);
        }
        let printed = command.output().unwrap();
        let said = String::from_utf8_lossy(&printed.stderr);
        assert!(
            printed.status.success(),
            "{program:?} {arguments:?}\n{said}"
        );
        String::from_utf8(printed.stdout).unwrap()
    };
    let bin = lab.path("venv/bin");
    run(Path::new("python3"), &["-m", "venv", "venv"]);
    let install = [
        "install",
        "--no-index",
        "--no-deps",
        "-q",
        wheel.to_str().unwrap(),
    ];
    run(&bin.join("pip"), &install);
    let program = bin.join("ablate");
    let size = program.metadata().unwrap().len();
    assert!(size <= PROGRAM, "the program has {size} bytes");
    let version = concat!("ablate ", env!("CARGO_PKG_VERSION"));
    assert!(run(&program, &["--version"]).starts_with(version));
    lab.write("pipeline.toml", &read("pipeline.toml"));
    lab.write("claims.toml", &read("claims.toml"));
    run(&program, &["run"]);
    let read = "import ablate\n\
                lab = ablate.open('.')\n\
                assert any(row['stage'].startswith('results') for row in lab.stages()), lab.stages()\n\
                print(len(lab.runs()), ablate.__file__)";
    let printed = run(&bin.join("python"), &["-c", read]);
    assert!(
        printed.starts_with("1 ") && printed.contains("/venv/"),
        "{printed}"
    );
    // Tables need pyarrow, which a machine without a network cannot install.
    if let Some(python) = std::env::var_os("ABLATE_PYTHON") {
        let site = run(
            &bin.join("python"),
            &[
                "-c",
                "import sysconfig; print(sysconfig.get_path('purelib'))",
            ],
        );
        let code = format!(
            "import sys; sys.path.insert(0, {:?}); import ablate\n\
             lab = ablate.open('.', program={:?})\n\
             print(lab['results'].arrow().num_rows)",
            site.trim(),
            program.display().to_string()
        );
        let rows = run(Path::new(&python), &["-c", &code]);
        assert!(rows.trim().parse::<u64>().unwrap() > 0, "{rows}");
    }
}
