//! Stores on file systems that other machines share: no WAL, one process at a time, or the database elsewhere.
//! With a real FUSE mount where `bindfs` is installed and may be used, and with a pretended NFS everywhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::daemons::wait_until;
use crate::lab::{CommandOutput, Lab};
use crate::schedule::{running_children, signal};

/// A stage that takes its time.
const SLOW: &str =
    "[stage.slow]\nkind = \"command\"\nrun = [\"sleep\", \"20\"]\noutputs = [\"o\"]\n";

/// A lab whose `shared` folder is taken for NFS.
struct Nfs(Lab);

impl Nfs {
    fn new(pipeline: &str) -> Nfs {
        let lab = Lab::new(pipeline);
        std::fs::create_dir(lab.path("shared")).unwrap();
        Nfs(lab)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let below = self.0.path("shared").canonicalize().unwrap();
        let store = ["--store", "shared/store"];
        let mut command = self.0.command(&[arguments, &store].concat());
        command.env("ABLATE_FILE_SYSTEM", format!("NFS@{}", below.display()));
        command
    }

    fn ablate(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::of(self.command(arguments).output().unwrap())
    }
}

/// `wal` or `delete`, as the file remembers.
fn journal(database: &Path) -> String {
    let connection = rusqlite::Connection::open(database).unwrap();
    let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get(0));
    mode.unwrap()
}

#[test]
fn a_store_on_nfs_has_no_wal_and_says_so() {
    let nfs = Nfs::new(crate::lab::DEMO);
    let database = nfs.0.path("shared/store/provenance.db");
    let run = nfs.ablate(&["run"]).good();
    assert_eq!(
        run.stderr,
        "ablate: the store lies on NFS: one process at a time may use it, and others are refused. \
         `--db DIR` keeps its database on a local disk, which several may use\n"
    );
    assert_eq!(journal(&database), "delete");
    assert!(!nfs.0.path("shared/store/driver.json").exists());
    for command in [
        &["run"][..],
        &["fsck"],
        &["gc", "--dry-run"],
        &["gc"],
        &["ls"],
        &["verify"],
    ] {
        nfs.ablate(command).good();
        assert_eq!(journal(&database), "delete", "{command:?}");
    }
    // Moved to a local disk it has a WAL, and back again it has none.
    let here = nfs.0.ablate(&["run", "--store", "shared/store"]).good();
    assert_eq!(
        (here.stderr.as_str(), journal(&database).as_str()),
        ("", "wal")
    );
    assert!(
        nfs.ablate(&["run"])
            .good()
            .stdout
            .contains("all 5 stages cached")
    );
    assert_eq!(journal(&database), "delete");
}

#[test]
fn a_second_process_is_refused_on_nfs_and_after_a_kill_the_next_one_is_not() {
    let nfs = Nfs::new(SLOW);
    let mut child = nfs.command(&["run", "--json"]).spawn().unwrap();
    wait_until(|| running_children(child.id()) > 0);
    for command in [&["run"][..], &["ls"], &["plan"], &["fsck"]] {
        let refused = nfs.ablate(command);
        assert_eq!(refused.code, 1, "{command:?}");
        assert_eq!(
            refused.stderr,
            format!(
                "error: the store `shared/store` lies on NFS, where SQLite cannot share its database, and another \
                 process uses it (process {}): wait until that has ended, or keep the database on a local disk with \
                 `ablate run --db DIR`\n",
                child.id()
            )
        );
    }
    signal(child.id(), "KILL");
    child.wait().unwrap();
    assert!(nfs.0.path("shared/store/driver.json").exists());
    nfs.ablate(&["ls"]).good();
    // A machine whose locks are not seen here has left a file, which is.
    let driver = nfs.0.path("shared/store/driver.json");
    std::fs::write(&driver, "{\"host\":\"n7\",\"process\":12}").unwrap();
    let refused = nfs.ablate(&["ls"]).stderr;
    let why = "(process 12 on n7; if that has ended, remove `shared/store/driver.json`)";
    assert!(refused.contains(why), "{refused}");
    std::fs::remove_file(driver).unwrap();
    nfs.ablate(&["ls"]).good();
}

#[test]
fn a_database_elsewhere_is_remembered_and_several_may_use_it() {
    let nfs = Nfs::new(crate::lab::DEMO);
    nfs.ablate(&["run"]).good();
    // Moved with its history.
    let run = nfs.ablate(&["run", "--db", "local/db"]).good();
    assert_eq!(run.stderr, "");
    assert!(run.stdout.contains("all 5 stages cached"), "{}", run.stdout);
    let database = nfs.0.path("local/db/provenance.db");
    assert_eq!(journal(&database), "wal");
    assert!(!nfs.0.path("shared/store/provenance.db").exists());
    nfs.0.write("pipeline.toml", SLOW);
    let mut child = nfs.command(&["run", "--json"]).spawn().unwrap();
    wait_until(|| running_children(child.id()) > 0);
    let runs = nfs.ablate(&["runs", "--json"]).good().stdout;
    assert_eq!(runs.lines().count(), 3, "{runs}");
    let busy = nfs.ablate(&["gc"]);
    assert!(
        busy.stderr.contains("is in use by a run"),
        "{}",
        busy.stderr
    );
    signal(child.id(), "INT");
    child.wait().unwrap();
    nfs.ablate(&["fsck"]).good();
    nfs.ablate(&["gc"]).good();
    // Not another one, not one on NFS, not that of another store.
    let other = nfs.ablate(&["run", "--db", "local/other"]);
    assert!(
        other.stderr.contains("cannot be moved to"),
        "{}",
        other.stderr
    );
    let shared = nfs.ablate(&["run", "--db", "shared/db"]);
    assert!(
        shared
            .stderr
            .contains("lies on NFS: name a folder on a local disk for the database"),
        "{}",
        shared.stderr
    );
    let mut second = nfs
        .0
        .command(&["run", "--store", "second", "--db", "local/db"]);
    let second = CommandOutput::of(second.output().unwrap());
    assert!(
        second.stderr.contains("cannot be moved to"),
        "{}",
        second.stderr
    );
    // On a machine that does not have the folder, nothing is begun anew.
    std::fs::rename(nfs.0.path("local"), nfs.0.path("gone")).unwrap();
    for command in [&["run"][..], &["ls"], &["gc"]] {
        let lost = nfs.ablate(command);
        assert_eq!(lost.code, 1);
        assert!(
            lost.stderr.contains("is not to be found there now"),
            "{}",
            lost.stderr
        );
    }
    assert!(!nfs.0.path("shared/store/provenance.db").exists());
}

/// A folder seen through a FUSE mount, until it is dropped; none where that is not possible.
struct Fuse(PathBuf);

impl Fuse {
    fn mount(of: &Path, at: PathBuf) -> Option<Fuse> {
        std::fs::create_dir_all(&at).ok()?;
        let mounted = Command::new("bindfs").arg(of).arg(&at).status();
        mounted
            .is_ok_and(|status| status.success())
            .then_some(Fuse(at))
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_store_on_a_real_fuse_mount() {
    let lab = Lab::demo();
    std::fs::create_dir(lab.path("behind")).unwrap();
    let Some(mount) = Fuse::mount(&lab.path("behind"), lab.path("fuse")) else {
        eprintln!("skipped: bindfs is not installed, or may not mount");
        return;
    };
    let store = mount.0.join("store");
    let store = ["--store", store.to_str().unwrap()];
    let ablate = |arguments: &[&str]| lab.ablate(&[arguments, &store].concat());
    let run = ablate(&["run"]).good();
    assert!(
        run.stderr.starts_with("ablate: the store lies on FUSE: "),
        "{}",
        run.stderr
    );
    assert_eq!(journal(&lab.path("behind/store/provenance.db")), "delete");
    ablate(&["fsck"]).good();
    ablate(&["verify"]).good();
    ablate(&["run", "--db", "here"]).good();
    assert_eq!(journal(&lab.path("here/provenance.db")), "wal");
    ablate(&["fsck"]).good();
    ablate(&["gc"]).good();
    assert!(
        ablate(&["run"])
            .good()
            .stdout
            .contains("all 5 stages cached")
    );
}
