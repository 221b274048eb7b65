//! Damage, loss and sudden death.

use std::collections::BTreeMap;

use crate::lab::{DEMO, Lab};
use crate::schedule::signal;

#[test]
fn a_damaged_object_is_set_aside_and_made_again() {
    let lab = Lab::demo();
    lab.run();
    let digests = lab.digests();
    let object = lab.object("scaled[scale=2]");
    let sound = std::fs::read(&object).unwrap();
    let mut bytes = sound.clone();
    let at = bytes.len() / 2;
    bytes[at] ^= 1; // same size
    let time = std::fs::metadata(&object).unwrap().modified().unwrap();
    overwrite(&object, &bytes);
    let file = std::fs::File::options().write(true).open(&object).unwrap();
    file.set_modified(time).unwrap(); // same time
    let fsck = lab.ablate(&["fsck"]);
    assert_eq!(fsck.code, 1);
    assert!(fsck.stdout.contains("damaged"), "{}", fsck.stdout);

    // A reader that must run finds it out, and the whole ends as if nothing had happened.
    lab.edit("SUM(x) AS total", "MAX(x) AS total");
    let ran = lab.run();
    ran.ran(["scaled[scale=2]", "summary"]);
    let note = ran
        .events
        .iter()
        .find(|event| event["event"] == "note")
        .unwrap();
    let note = note["note"].as_str().unwrap();
    assert!(
        note.starts_with("`scaled[scale=2]` is made again: object"),
        "{note}"
    );
    assert_eq!(std::fs::read(&object).unwrap(), sound);
    assert_eq!(lab.files("damaged").len(), 1);
    lab.edit("MAX(x) AS total", "SUM(x) AS total").run().ran([]);
    assert_eq!(lab.digests(), digests);
    lab.ablate(&["fsck"]).good();
}

#[test]
fn a_lost_object_is_made_again() {
    let lab = Lab::demo();
    lab.run();
    std::fs::remove_file(lab.object("numbers")).unwrap();
    let plan = lab.ablate(&["plan"]).good().stdout;
    assert!(
        plan.contains("will run  numbers: its output is no longer in the store"),
        "{plan}"
    );
    lab.run().ran(["numbers"]);
}

/// Kills the program at many moments of a run; the next run always ends with the same digests.
#[test]
fn killed_at_any_moment_the_next_run_ends_the_same() {
    let expected = {
        let lab = Lab::new(&many());
        lab.run();
        lab.digests()
    };
    assert_eq!(expected.len(), 32);
    let lab = Lab::new(&many());
    for moment in 0..12 {
        let mut child = lab.start(&["--jobs", "2"]);
        std::thread::sleep(std::time::Duration::from_millis(8 * moment));
        signal(child.id(), "KILL");
        child.wait().unwrap();
        if moment % 3 == 2 {
            // Now and then start over, so that early moments are hit too.
            let ran = lab.run();
            assert_eq!(ran.said.code, 0, "{}", ran.said.stderr);
            assert_eq!(lab.digests(), expected);
            std::fs::remove_dir_all(lab.path(".ablate")).unwrap();
        }
    }
    lab.run();
    assert_eq!(lab.digests(), expected);
    lab.ablate(&["fsck"]).good();
}

fn many() -> String {
    let axis: Vec<String> = (1..=30).map(|n| n.to_string()).collect();
    DEMO.replace("[1, 2, 3]", &format!("[{}]", axis.join(", ")))
}

#[test]
fn a_store_that_cannot_be_written_is_an_error_and_loses_nothing() {
    let lab = Lab::demo();
    lab.write("blocked", "a file where a folder should be");
    let said = lab.ablate(&["run", "--store", "blocked"]);
    assert_eq!(said.code, 1);
    assert!(said.stderr.starts_with("error: cannot "), "{}", said.stderr);
    assert_eq!(
        std::fs::read(lab.path("blocked")).unwrap(),
        b"a file where a folder should be"
    );
}

#[test]
fn commands_that_only_look_make_no_store() {
    let lab = Lab::demo();
    lab.ablate(&["plan"]).good();
    lab.ablate(&["graph"]).good();
    for looking in [&["show", "numbers"][..], &["runs"], &["fsck"], &["gc"]] {
        let said = lab.ablate(looking);
        assert_eq!(said.code, 1, "{looking:?}");
        assert_eq!(
            said.stderr,
            "error: there is no store at `.ablate`: `ablate run` makes one\n"
        );
    }
    assert!(!lab.path(".ablate").exists());
}

/// The store's files are made read-only; a test that damages one must lift that first.
fn overwrite(path: &std::path::Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn object_names_are_what_b3sum_says() {
    let lab = Lab::demo();
    lab.run();
    let mut seen = BTreeMap::new();
    for path in lab.files("objects") {
        let digest = blake3::hash(&std::fs::read(&path).unwrap()).to_hex();
        let folder = path
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(format!("{folder}{name}"), format!("{digest}.parquet"));
        seen.insert(digest.to_string(), ());
    }
    assert!(
        lab.digests()
            .values()
            .all(|digest| seen.contains_key(digest))
    );
}
