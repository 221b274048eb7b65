//! Hostile treatment in numbers, behind a flag: whatever is done to a store, the next run ends with
//! the digests of an undisturbed one, or somebody says what is wrong.
//!
//! `ABLATE_SOAK=1 cargo test --workspace --test pipelines soak -- --nocapture --test-threads 1`
//! prints the counts. `ABLATE_SOAK=10` does ten times as much. Bounded and local; the power cuts
//! need root, a loop device and ext4, and say so where they are skipped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rusqlite::Connection;

use crate::lab::{CommandOutput, DEMO, Lab};
use crate::schedule::signal;

/// How much is asked for: nothing without the flag.
pub fn soak() -> Option<u64> {
    let asked = std::env::var("ABLATE_SOAK").ok();
    if asked.is_none() {
        println!("skipped: set ABLATE_SOAK=1 to try it");
    }
    asked.map(|text| text.parse().unwrap_or(1).max(1))
}

/// Thirty-two stages in three layers.
fn pipeline() -> String {
    let axis: Vec<String> = (1..=30).map(|n| n.to_string()).collect();
    DEMO.replace("[1, 2, 3]", &format!("[{}]", axis.join(", ")))
}

fn undisturbed() -> BTreeMap<String, String> {
    let lab = Lab::new(&pipeline());
    lab.run();
    let digests = lab.digests();
    assert_eq!(digests.len(), 32);
    digests
}

/// Chance that is the same on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

fn start_over(lab: &Lab) {
    let _ = fs::remove_dir_all(lab.path(".ablate"));
}

#[test]
fn kills() {
    let Some(times) = soak() else { return };
    let (expected, lab) = (undisturbed(), Lab::new(&pipeline()));
    let (mut dice, mut in_time) = (Dice(7), 0);
    let kills = 250 * times;
    for n in 0..kills {
        let mut child = lab.start(&["--jobs", "2"]);
        std::thread::sleep(Duration::from_micros(dice.roll(120_000)));
        in_time += u64::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
        if n % 3 == 2 {
            let ran = lab.run();
            assert_eq!(ran.printed.code, 0, "{}", ran.printed.stderr);
            assert_eq!(lab.digests(), expected, "after {n} kills");
            start_over(&lab);
        }
    }
    println!("{kills} kills, {in_time} of them before the end: the same digests");
}

#[test]
fn flips() {
    let Some(times) = soak() else { return };
    let (expected, lab) = (undisturbed(), Lab::new(&pipeline()));
    lab.run();
    let (mut dice, mut rebuilt) = (Dice(11), 0);
    let flips = 250 * times;
    for n in 0..flips {
        let objects = lab.files("objects");
        let path = &objects[dice.roll(objects.len() as u64) as usize];
        let mut bytes = fs::read(path).unwrap();
        let bit = dice.roll(bytes.len() as u64 * 8);
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
        let found = lab.ablate(&["fsck"]);
        assert_eq!(found.code, 1, "flip {n} was not found: {}", found.stdout);
        // What is cached is not read; a stage that has to read it must notice.
        lab.ablate(&["fsck", "--repair"]);
        let ran = lab.run();
        assert_eq!(ran.printed.code, 0, "{}", ran.printed.stderr);
        rebuilt += ran.with("ran").len();
        assert_eq!(lab.digests(), expected, "after flip {n}");
    }
    println!("{flips} flipped bits: all found, {rebuilt} stages made again, the same digests");
}

/// A result that is somebody else's: a sound object, and a row that names it.
#[test]
fn forged_rows() {
    let Some(times) = soak() else { return };
    let (expected, mut dice) = (undisturbed(), Dice(13));
    let forgeries = 60 * times;
    for n in 0..forgeries {
        let lab = Lab::new(&pipeline());
        lab.run();
        let rows = Connection::open(lab.path(".ablate/provenance.db")).unwrap();
        let all: Vec<(i64, String, String)> = rows
            .prepare(
                "SELECT o.execution, x.instance, o.digest FROM outputs o
                 JOIN executions x ON x.id = o.execution ORDER BY o.execution",
            )
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let mut pick = || all[dice.roll(all.len() as u64) as usize].clone();
        let (victim, other) = loop {
            let (victim, other) = (pick(), pick());
            if victim.2 != other.2 {
                break (victim, other);
            }
        };
        let changed = rows
            .execute(
                "UPDATE outputs SET digest = ?1, bytes =
                     (SELECT bytes FROM outputs WHERE digest = ?1 LIMIT 1) WHERE execution = ?2",
                (&other.2, victim.0),
            )
            .unwrap();
        assert_eq!(changed, 1);
        drop(rows);
        for command in ["show", "audit"] {
            let printed = lab.ablate(&[command, &victim.1]);
            assert_eq!(
                printed.code, 1,
                "forgery {n}: {command} believed it: {}",
                printed.stdout
            );
        }
        let ran = lab.run();
        assert_eq!(ran.printed.code, 0, "{}", ran.printed.stderr);
        assert_eq!(lab.digests(), expected, "forgery {n}");
    }
    println!("{forgeries} forged rows: none was believed, the same digests");
}

#[test]
fn sixteen_processes() {
    let Some(times) = soak() else { return };
    let expected = undisturbed();
    let rounds = 6 * times;
    for round in 0..rounds {
        let lab = Lab::new(&pipeline());
        let mut children: Vec<_> = (0..16).map(|_| lab.start(&["--jobs", "2"])).collect();
        // One of them is killed in the middle; the others take its work over.
        std::thread::sleep(Duration::from_millis(40 * round));
        let victim = children.swap_remove((round % 16) as usize);
        signal(victim.id(), "KILL");
        let _ = victim.wait_with_output();
        for child in children {
            let printed = CommandOutput::of(child.wait_with_output().unwrap());
            assert_eq!(printed.code, 0, "round {round}: {}", printed.stderr);
        }
        let rows = Connection::open(lab.path(".ablate/provenance.db")).unwrap();
        let twice: i64 = rows
            .query_row(
                "SELECT count(*) FROM (SELECT key FROM executions WHERE ok = 1 GROUP BY key HAVING count(*) > 1)",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(twice, 0, "round {round}: stages that were executed twice");
        lab.run();
        assert_eq!(lab.digests(), expected);
        lab.ablate(&["fsck"]).good();
    }
    println!(
        "{rounds} rounds of 16 processes, one killed in each: the same digests, nothing twice"
    );
}

/// A disk in a file, mounted.
struct Disk {
    image: PathBuf,
    mounted: PathBuf,
}

impl Disk {
    /// `None` where that is not possible.
    fn mount(image: &Path, at: &Path) -> Option<Disk> {
        fs::create_dir_all(at).ok()?;
        let (image, at) = (image.to_owned(), at.to_owned());
        done(
            Command::new("mount")
                .args(["-o", "loop"])
                .arg(&image)
                .arg(&at),
        )?;
        Some(Disk { image, mounted: at })
    }

    fn new(folder: &Path) -> Option<Disk> {
        let image = folder.join("disk");
        fs::File::create(&image).ok()?.set_len(64 << 20).ok()?;
        done(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))?;
        Disk::mount(&image, &folder.join("mounted"))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mounted).status();
    }
}

fn done(command: &mut Command) -> Option<()> {
    let output = command.output().ok()?;
    output.status.success().then_some(())
}

/// A power cut leaves what the disk had: what was written and never synced is gone. The process is
/// held, so that the copy of the disk is of one moment.
#[test]
fn power_cuts() {
    let Some(times) = soak() else { return };
    let (expected, mut dice) = (undisturbed(), Dice(17));
    let (cuts, mut kept, mut torn) = (40 * times, 0, 0);
    for n in 0..cuts {
        let folder = tempfile::tempdir().unwrap();
        let Some(disk) = Disk::new(folder.path()) else {
            println!("skipped: power cuts need root, a loop device and mkfs.ext4");
            return;
        };
        let lab = Lab::new(&pipeline());
        let run = |store: &Path| {
            let mut command = lab.command(&["run", "--json", "--jobs", "2", "--store"]);
            command.arg(store);
            command
        };
        let store = disk.mounted.join("store");
        // Half of the cuts fall into a second run with something to lose.
        if n % 2 == 1 {
            assert!(
                run(&store)
                    .arg("numbers")
                    .output()
                    .unwrap()
                    .status
                    .success()
            );
        }
        let mut child = run(&store)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(dice.roll(250_000)));
        signal(child.id(), "STOP");
        let cut = folder.path().join("cut");
        fs::copy(&disk.image, &cut).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        drop(disk);
        // The journal is played back, as after a power cut. A copy that the kernel wrote into
        // meanwhile is of no moment, and proves nothing.
        if done(
            Command::new("e2fsck")
                .args(["-p", "-E", "journal_only"])
                .arg(&cut),
        )
        .is_none()
        {
            torn += 1;
            continue;
        }
        let Some(disk) = Disk::mount(&cut, &folder.path().join("again")) else {
            torn += 1;
            continue;
        };
        let store = disk.mounted.join("store");
        kept += usize::from(store.join("provenance.db").exists());
        let printed = CommandOutput::of(run(&store).output().unwrap());
        assert_eq!(printed.code, 0, "cut {n}: {}", printed.stderr);
        let store = store.to_str().unwrap();
        let listed = lab.ablate(&["runs", "last", "--json", "--store", store]);
        assert_eq!(crate::lab::digests_of(&listed.stdout), expected, "cut {n}");
        let checked = lab.ablate(&["fsck", "--store", store]);
        assert_eq!(
            checked.code, 0,
            "cut {n}: {}\n{}",
            checked.stdout, checked.stderr
        );
    }
    println!(
        "{cuts} power cuts, {kept} with something kept, {torn} copies of no moment: the same digests"
    );
}
