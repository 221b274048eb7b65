//! Packages of the crate registry, from a registry on this machine.

use super::*;

/// A registry of one crate on this machine, as `cargo` reads it: an index and an archive.
fn local_registry(dir: &std::path::Path, files: &[(&str, &[u8])]) {
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::fast(),
    ));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        let path = format!("toy-data-1.2.3/{name}");
        builder.append_data(&mut header, path, *bytes).unwrap();
    }
    let packed = builder.into_inner().unwrap().finish().unwrap();
    let digest = sha256(&mut &packed[..]).unwrap();
    let registry = dir.join("registry");
    fs::create_dir_all(registry.join("index/to/y-")).unwrap();
    fs::write(registry.join("toy-data-1.2.3.crate"), packed).unwrap();
    let line = format!(
        "{{\"name\":\"toy-data\",\"vers\":\"1.2.3\",\"deps\":[],\"cksum\":\"{digest}\",\"features\":{{}},\"yanked\":false}}\n"
    );
    fs::write(registry.join("index/to/y-/toy-data"), line).unwrap();
    let config = format!(
        "[source.crates-io]\nreplace-with = \"here\"\n[source.here]\nlocal-registry = {:?}\n",
        registry.display().to_string()
    );
    fs::create_dir(dir.join("cargo")).unwrap();
    fs::write(dir.join("cargo/config.toml"), config).unwrap();
}

#[test]
fn a_crate_is_downloaded_and_opened_but_never_compiled() {
    let dir = tempfile::tempdir().unwrap();
    let ran = dir.path().join("ran");
    let build = format!(
        "fn main() {{ std::fs::write({:?}, \"\").unwrap(); }}",
        ran.display().to_string()
    );
    let manifest = b"[package]\nname = \"toy-data\"\nversion = \"1.2.3\"\nedition = \"2021\"\nbuild = \"build.rs\"\n";
    local_registry(
        dir.path(),
        &[
            ("Cargo.toml", manifest),
            ("build.rs", build.as_bytes()),
            ("src/lib.rs", b"compile_error!(\"never\");"),
            ("data/words.txt", BODY),
        ],
    );
    let rules = Rules {
        client_environment: vec![("CARGO_HOME", dir.path().join("cargo"))],
        ..Rules::default()
    };
    let form = |member: &str| Form {
        loader: "ptb".to_owned(),
        package: Some("crate:toy-data@1.2.3".to_owned()),
        package_size: None,
        files: vec![File {
            member: Some(member.to_owned()),
            ..entry(BODY)
        }],
    };
    let case = Case::new();
    let get = |form: &Form, version: &str| {
        let package = format!("crate:toy-data@{version}");
        package::get(&package, form, &case.home, &rules, &case.ears)
    };
    match get(&form("data/words.txt"), "1.2.3") {
        Err(why) if why.ends_with("cargo is not installed") => {
            return eprintln!("skipped: {why}");
        }
        got => got.unwrap(),
    }
    assert_eq!(case.cached().as_deref(), Some(BODY));
    assert!(!ran.exists(), "its build script was run");
    assert_eq!(
        get(&form("data/other.txt"), "1.2.3").unwrap_err(),
        "crate:toy-data@1.2.3 has no regular file `data/other.txt`"
    );
    assert_eq!(
        get(&form("src/lib.rs"), "1.2.3").unwrap_err(),
        "set/file.txt does not match its checksum in the catalogue"
    );
    let none = get(&form("data/words.txt"), "9.9.9").unwrap_err();
    assert!(
        none.starts_with("cannot fetch crate:toy-data@9.9.9: \"cargo\" failed: "),
        "{none}"
    );
    let climbs = get(&form("../../Cargo.toml"), "1.2.3").unwrap_err();
    assert!(climbs.contains("no regular file"), "{climbs}");
}
