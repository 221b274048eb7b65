//! Remotes: what one machine pushes another takes, if it trusts who signed it, and nothing else. In a folder
//! everywhere, and in a real S3 server where `ABLATE_S3` names a program that starts one.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lab::{CommandOutput, Lab, Ran};

/// Somebody with settings and a store of their own.
struct Person<'a> {
    lab: &'a Lab,
    name: &'static str,
    environment: Vec<(&'static str, String)>,
}

impl Person<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.lab.command(arguments);
        command.env(
            "ABLATE_CONFIG",
            self.lab.path(&format!("config-{}", self.name)),
        );
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        // What `key` has no use for.
        if arguments.first() != Some(&"key") {
            command.args(["--store", self.name]);
        }
        command
    }

    fn ablate(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::of(self.command(arguments).output().unwrap())
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.ablate(&[&["run", "--json"], arguments].concat()))
    }

    /// A key, and a remote called `shared`.
    fn set_up(&self, url: &str) -> String {
        let key = self.ablate(&["key", "new"]).good().stdout.trim().to_owned();
        self.ablate(&["remote", "add", "shared", url]).good();
        key
    }

    fn trusts(&self, key: &str, name: &str) {
        self.ablate(&["key", "trust", key, "--name", name]).good();
    }

    fn digests(&self) -> std::collections::BTreeMap<String, String> {
        crate::lab::digests_of(&self.ablate(&["runs", "last", "--json"]).stdout)
    }
}

fn person<'a>(lab: &'a Lab, name: &'static str) -> Person<'a> {
    Person {
        lab,
        name,
        environment: Vec::new(),
    }
}

fn folder(lab: &Lab) -> String {
    format!("file://{}", lab.path("remote").display())
}

/// The files of a remote folder whose names begin like this.
fn files(lab: &Lab, prefix: &str) -> Vec<std::path::PathBuf> {
    let root = lab.path("remote");
    let mut found = Vec::new();
    let mut folders = vec![root.join(prefix)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_one_pushes_another_takes_if_it_is_trusted() {
    let lab = Lab::demo();
    let (ada, bob) = (person(&lab, "ada"), person(&lab, "bob"));
    ada.run(&[]);
    let early = ada.ablate(&["push"]);
    assert_eq!(
        early.stderr,
        "error: this store has no remote: ablate remote add NAME URL\n"
    );
    let key = ada.set_up(&folder(&lab));
    let pushed = ada.ablate(&["push"]).good().stdout;
    assert!(
        pushed.starts_with("ablate: 5 results in `shared`: 4 new objects, "),
        "{pushed}"
    );
    // Once more: nothing is new.
    let pushed = ada.ablate(&["push"]).good().stdout;
    assert!(pushed.contains(": 0 new objects, "), "{pushed}");

    bob.set_up(&folder(&lab));
    let pulled = bob.ablate(&["pull"]).good();
    let lines: Vec<&str> = pulled.stdout.lines().collect();
    let strangers = "results of strangers are misses";
    assert_eq!(
        lines[0], "skip numbers: nobody you trust has pushed it",
        "{strangers}: {pulled:?}"
    );
    let reader = "skip scaled[scale=1]: reads `numbers`, which was skipped";
    assert!(lines.contains(&reader), "{pulled:?}");
    assert!(lines[5].starts_with("ablate: 5 skipped in "), "{pulled:?}");
    bob.trusts(&key, "ada");
    let pulled = bob.ablate(&["pull"]).good().stdout;
    let lines: Vec<&str> = pulled.lines().collect();
    assert!(lines.contains(&"took summary"), "{pulled}");
    let taken = "ablate: 5 taken from the remote in ";
    assert!(lines.iter().any(|line| line.starts_with(taken)), "{pulled}");
    assert_eq!(bob.digests(), ada.digests());
    bob.run(&[]).ran([]);
    let audit = bob.ablate(&["audit", "summary"]).good().stdout;
    assert!(
        audit.contains(&format!("ada, {key}: taken from a remote")),
        "{audit}"
    );
    bob.ablate(&["fsck"]).good();
    // What ada signed is not bob's to sign.
    let pushed = bob.ablate(&["push"]).good().stdout;
    assert!(
        pushed.contains("; 5 were signed by others and are left to them"),
        "{pushed}"
    );
    let examined = bob.ablate(&["remote", "fsck"]).good().stdout;
    assert_eq!(
        examined,
        "ablate: 4 objects and 5 entries are intact, 0 problems found\n"
    );
}

#[test]
fn a_run_takes_what_is_there_and_pushes_the_rest() {
    let lab = Lab::demo();
    let (ada, bob) = (person(&lab, "ada"), person(&lab, "bob"));
    let key = ada.set_up(&folder(&lab));
    ada.run(&["--remote", "shared", "scaled"]);
    bob.set_up(&folder(&lab));
    bob.trusts(&key, "ada");
    // Everything is recorded as what it is: four results of ada's, one of bob's.
    let ran = bob.run(&["--remote", "shared"]);
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    let entries = files(&lab, "ac").len();
    assert_eq!(entries, 5, "the fifth was pushed");
    let revoked = bob.ablate(&["key", "revoke", "ada"]);
    revoked.good();
    std::fs::remove_dir_all(lab.path("bob/objects")).unwrap();
    std::fs::remove_dir_all(lab.path("bob")).unwrap();
    bob.ablate(&["remote", "add", "shared", &folder(&lab)])
        .good();
    bob.ablate(&["pull"]).good();
    assert!(
        bob.digests().is_empty(),
        "nothing of a revoked key is taken"
    );
    let strangers = bob.run(&["--remote", "shared", "--read-only"]);
    assert_eq!(strangers.printed.code, 0);
    assert_eq!(files(&lab, "ac").len(), 5, "nothing was pushed");
}

#[test]
fn nothing_wrong_is_taken_as_right() {
    let lab = Lab::demo();
    let (ada, eve) = (person(&lab, "ada"), person(&lab, "eve"));
    let key = ada.set_up(&folder(&lab));
    ada.run(&["--remote", "shared"]);
    let expected = ada.digests();
    eve.set_up(&folder(&lab));
    eve.trusts(&key, "ada");
    type Harm = fn(&Path);
    let harms: [(&str, &str, Harm); 5] = [
        ("cas", "a truncated object", |path| {
            let bytes = std::fs::read(path).unwrap();
            std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("cas", "an object that is gone", |path| {
            std::fs::remove_file(path).unwrap();
        }),
        ("ac", "a forged entry", |path| {
            let text = std::fs::read_to_string(path).unwrap();
            std::fs::write(path, text.replace("\\\"rows\\\":", "\\\"rows\\\":9")).unwrap();
        }),
        ("ac", "an entry of another key", |path| {
            let other = path.parent().unwrap().parent().unwrap();
            let mut others: Vec<_> = std::fs::read_dir(other).unwrap().flatten().collect();
            others.sort_by_key(|it| it.path());
            let name = path.file_name().unwrap();
            let last = others.last().unwrap().path().join(name);
            std::fs::copy(last, path).unwrap();
        }),
        ("ac", "half an entry", |path| {
            let bytes = std::fs::read(path).unwrap();
            std::fs::write(path, &bytes[..100]).unwrap();
        }),
    ];
    for (where_, what, harm) in harms {
        // An object that is fetched: others are not looked at.
        let victim = match where_ {
            "cas" => lab.path("remote/cas").join(&expected["summary.rows"]),
            _ => files(&lab, where_)[0].clone(),
        };
        let kept = std::fs::read(&victim).unwrap();
        harm(&victim);
        let examined = eve.ablate(&["remote", "fsck"]);
        assert_eq!(examined.code, 1, "{what}: {}", examined.stdout);
        let _ = std::fs::remove_dir_all(lab.path("eve/objects"));
        let _ = std::fs::remove_dir_all(lab.path("eve"));
        eve.ablate(&["remote", "add", "shared", &folder(&lab)])
            .good();
        let ran = eve.run(&["--remote", "shared", "--read-only"]);
        assert_eq!(ran.printed.code, 0, "{what}: {:?}", ran.printed);
        assert!(!ran.notes().is_empty(), "{what} is told of");
        assert_eq!(eve.digests(), expected, "{what}");
        eve.ablate(&["fsck"]).good();
        std::fs::write(&victim, kept).unwrap();
    }
    eve.ablate(&["remote", "fsck"]).good();
}

#[test]
fn results_of_commands_need_a_word_of_their_own_and_urls_have_no_credentials() {
    let lab = Lab::new(
        "[stage.a]\nkind = \"table\"\nrows = [{ x = 1 }]\n\n\
         [stage.c]\nkind = \"command\"\ninputs = { t = \"a\" }\noutputs = [\"o\"]\n\
         run = [\"sh\", \"-c\", \"cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\"]\n",
    );
    let (ada, bob) = (person(&lab, "ada"), person(&lab, "bob"));
    let key = ada.set_up(&folder(&lab));
    ada.run(&["--remote", "shared"]);
    bob.set_up(&folder(&lab));
    bob.trusts(&key, "ada");
    bob.ablate(&["pull"]).good();
    assert_eq!(bob.digests().len(), 1, "only the table");
    let pulled = bob.ablate(&["pull"]).good().stdout;
    let why = "skip c: nobody whose results of commands you take has pushed it (`ablate key trust --commands`)\n";
    assert!(pulled.contains(why), "{pulled}");
    bob.ablate(&["key", "trust", &key, "--name", "ada", "--commands"])
        .good();
    bob.ablate(&["pull"]).good();
    assert_eq!(bob.digests().len(), 2);
    for (url, why) in [
        (
            "s3://me:secret@bucket/x",
            "the URL has credentials or options in it",
        ),
        (
            "ftp://x",
            "`ftp://x` is not s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER",
        ),
        ("file://x", "`file://x` has no absolute path"),
    ] {
        let printed = bob.ablate(&["remote", "add", "other", url]);
        assert_eq!(printed.code, 2);
        assert!(printed.stderr.contains(why), "{}", printed.stderr);
    }
    let other = bob.ablate(&["key", "trust", "ed25519:12", "--name", "x"]);
    assert_eq!(other.code, 2);
    let again = bob.ablate(&["key", "new"]);
    assert_eq!(again.code, 1);
    let less = bob.ablate(&["key", "trust", &key, "--name", "ada"]).good();
    assert_eq!(
        less.stdout,
        "ablate: results that ada has signed are taken, but not of commands: until now those of commands were taken too\n"
    );
    let own = bob.ablate(&["key", "list"]).good().stdout;
    let own = own
        .split_whitespace()
        .find(|word| word.starts_with("ed25519:"));
    let twice = bob.ablate(&["key", "trust", own.unwrap(), "--name", "ada"]);
    assert_eq!(
        (twice.code, twice.stderr),
        (
            2,
            format!(
                "error: you call the owner of another key `ada`: {key}\n |\n = help: choose another name\n"
            )
        )
    );
    assert_eq!(bob.ablate(&["key", "trust", &key, "--name", ""]).code, 2);
    let secret = std::fs::read_to_string(lab.path("config-bob/private-key")).unwrap();
    let listed = bob.ablate(&["key", "list"]).good().stdout;
    assert!(
        !listed.contains(secret.trim()) && listed.contains(&key),
        "{listed}"
    );
}

#[test]
fn gc_keeps_what_somebody_has_pushed_and_what_is_young() {
    let lab = Lab::demo();
    let ada = person(&lab, "ada");
    ada.set_up(&folder(&lab));
    ada.run(&["--remote", "shared"]);
    lab.edit("{ x = 2 }", "{ x = 4 }");
    ada.run(&["--remote", "shared"]);
    let all = files(&lab, "cas").len();
    let young = ada.ablate(&["remote", "gc"]).good().stdout;
    assert!(young.contains(": 0 entries and 0 objects"), "{young}");
    let dry = ada
        .ablate(&["remote", "gc", "--grace", "0", "--dry-run"])
        .good();
    assert!(dry.stdout.contains("5 entries and "), "{}", dry.stdout);
    assert_eq!(files(&lab, "cas").len(), all);
    ada.ablate(&["remote", "gc", "--grace", "0"]).good();
    let left = files(&lab, "cas").len();
    assert!(left < all && left > 0, "{left} of {all}");
    ada.ablate(&["remote", "fsck"]).good();
    assert_eq!(files(&lab, "ac").len(), 5);
}

/// What is damaged or lost there and whole here is uploaded again; what is not here is still told of.
#[test]
fn a_remote_is_repaired_from_a_store() {
    let lab = Lab::demo();
    let ada = person(&lab, "ada");
    ada.set_up(&folder(&lab));
    ada.run(&["--remote", "shared"]);
    let objects = files(&lab, "cas");
    let whole = objects.iter().map(|path| std::fs::read(path).unwrap());
    let whole: Vec<Vec<u8>> = whole.collect();
    // One of the same length, one cut, one gone, one that only the remote has.
    let mut other = whole[0].clone();
    other[20] ^= 1;
    std::fs::write(&objects[0], other).unwrap();
    std::fs::write(&objects[1], &whole[1][..9]).unwrap();
    std::fs::remove_file(&objects[2]).unwrap();
    let strange = lab.path("remote/cas").join("0".repeat(64));
    std::fs::write(&strange, "strange").unwrap();

    let examined = ada.ablate(&["remote", "fsck"]);
    assert_eq!(examined.code, 1);
    let help = "help: ablate remote fsck shared --repair --store ada uploads again what this store has of it\n";
    assert_eq!(examined.stderr, help);
    let repaired = ada.ablate(&["remote", "fsck", "--repair"]);
    assert_eq!(
        repaired.stderr,
        "ablate: 3 of 4 objects uploaded to `shared` again; what is there now:\n"
    );
    let zeros = "0".repeat(64);
    assert_eq!(
        (repaired.code, repaired.stdout),
        (
            1,
            format!(
                "cas/{zeros} has other bytes than its name says\n\
                 ablate: 4 objects and 5 entries are intact, 1 problem found\n"
            )
        )
    );
    for (path, bytes) in objects.iter().zip(&whole) {
        assert_eq!(std::fs::read(path).unwrap(), *bytes);
    }
}

/// Another URL under a known name took the place of the first without a word.
#[test]
fn a_remote_is_not_replaced_silently() {
    let lab = Lab::demo();
    let ada = person(&lab, "ada");
    ada.set_up(&folder(&lab));
    ada.ablate(&["remote", "add", "shared", &folder(&lab)])
        .good();
    let other = format!("{}-2", folder(&lab));
    let refused = ada.ablate(&["remote", "add", "shared", &other]);
    assert_eq!(refused.code, 2);
    assert_eq!(
        refused.stderr,
        format!(
            "error: this store has a remote `shared` already: {}\n |\n = help: ablate remote remove shared --store ada\n",
            folder(&lab)
        )
    );
    assert!(!lab.path("remote-2").exists());
}

/// A list of some stages took the place of the list of all, and gc removed the rest.
#[test]
fn gc_keeps_the_others_when_some_stages_are_pushed() {
    let lab = Lab::demo();
    let ada = person(&lab, "ada");
    ada.set_up(&folder(&lab));
    ada.run(&["--remote", "shared"]);
    for some in [
        &["push", "numbers"][..],
        &["run", "numbers", "--remote", "shared"],
    ] {
        ada.ablate(some).good();
        let removed = ada.ablate(&["remote", "gc", "--grace", "0"]).good().stdout;
        assert!(removed.contains(": 0 entries and 0 objects"), "{removed}");
    }
}

/// What a revoked key has signed is not taken, what was taken before is doubted, and one's own signs nothing more.
#[test]
fn a_revoked_key_is_doubted_everywhere() {
    let lab = Lab::demo();
    let (ada, bob) = (person(&lab, "ada"), person(&lab, "bob"));
    let key = ada.set_up(&folder(&lab));
    ada.run(&["--remote", "shared"]);
    ada.ablate(&["certify", "-o", "ada.json"]).good();
    bob.set_up(&folder(&lab));
    bob.trusts(&key, "ada");
    bob.ablate(&["pull"]).good();
    let refused = bob.ablate(&["certify"]);
    let help = "4 of them are in a remote: ablate pull --all --store bob";
    assert!(
        refused.code == 1 && refused.stderr.contains(help),
        "{refused:?}"
    );
    bob.ablate(&["pull", "--all"]).good();
    let check = ["certify", "--check", "ada.json"];
    let told = bob.ablate(&check).good().stdout;
    assert!(told.contains(&format!("signed by ada ({key})\n")), "{told}");
    let stranger = person(&lab, "stranger").ablate(&check);
    let unknown = "signed by somebody whom you do not trust (";
    assert!(
        stranger.code == 1 && stranger.stdout.contains(unknown),
        "{stranger:?}"
    );
    bob.ablate(&["key", "revoke", "ada"]).good();
    let audit = bob.ablate(&["audit", "summary"]);
    let doubt = "summary: taken from a remote, and you have revoked the key that signed it";
    assert!(audit.stdout.contains(doubt), "{audit:?}");
    let told = bob.ablate(&check);
    assert_eq!(told.code, 1);
    let signed = format!("signed by ada ({key}), whose key you have revoked\n");
    assert!(told.stdout.contains(&signed), "{}", told.stdout);
    let refused = bob.ablate(&["certify"]);
    let why = format!("was signed by {key}, whose key you have revoked: it cannot be certified");
    assert!(
        refused.code == 1 && refused.stderr.contains(&why),
        "{refused:?}"
    );

    ada.ablate(&["key", "revoke", &key]).good();
    for signs in [&["push"][..], &["certify"]] {
        let refused = ada.ablate(signs);
        assert_eq!(refused.code, 1);
        assert_eq!(
            refused.stderr,
            "error: your key is revoked: `ablate key new` makes another one\n"
        );
    }
    let other = ada.ablate(&["key", "new"]).good().stdout;
    assert_ne!(other.trim(), key);
    ada.ablate(&["push"]).good();
}

/// A disk that is not mounted was a remote without results, and a push wrote below its place.
#[test]
fn a_folder_that_is_gone_is_an_error() {
    let lab = Lab::demo();
    let ada = person(&lab, "ada");
    ada.set_up(&folder(&lab));
    ada.run(&["--remote", "shared"]);
    std::fs::remove_dir_all(lab.path("remote")).unwrap();
    for command in [&["pull"][..], &["push"], &["remote", "fsck"]] {
        let printed = ada.ablate(command);
        assert_eq!(printed.code, 1, "{command:?}");
        let why = "does not exist: is its disk mounted?";
        assert!(printed.stderr.contains(why), "{}", printed.stderr);
    }
    assert!(!lab.path("remote").exists());
}

/// An object without an end would fill the disk: it is read as far as its entry says and no further.
#[test]
fn an_object_is_read_no_further_than_its_entry_says() {
    let lab = Lab::demo();
    let (ada, bob) = (person(&lab, "ada"), person(&lab, "bob"));
    let key = ada.set_up(&folder(&lab));
    ada.run(&["--remote", "shared"]);
    for object in files(&lab, "cas") {
        let file = std::fs::OpenOptions::new().write(true).open(object);
        file.unwrap().set_len(1 << 43).unwrap();
    }
    bob.set_up(&folder(&lab));
    bob.trusts(&key, "ada");
    let pulled = bob.ablate(&["pull"]);
    assert_eq!(pulled.code, 1, "{pulled:?}");
    assert_eq!(objects(&lab, "bob"), 0);
}

/// The same for an input that is fetched when something reads it: its length is in the record by then.
#[test]
fn an_input_is_read_no_further_than_the_record_says() {
    let lab = Lab::demo();
    let (ada, bob) = (person(&lab, "ada"), person(&lab, "bob"));
    let key = ada.set_up(&folder(&lab));
    ada.run(&["--remote", "shared"]);
    bob.set_up(&folder(&lab));
    bob.trusts(&key, "ada");
    bob.ablate(&["pull"]).good();
    let endless = &ada.digests()["scaled[scale=2].rows"];
    let file = lab.path("remote/cas").join(endless);
    let file = std::fs::OpenOptions::new().write(true).open(file);
    file.unwrap().set_len(1 << 43).unwrap();
    lab.edit("SUM(x)", "MAX(x)");
    let ran = bob.run(&["--remote", "shared", "--read-only"]);
    let told = |note: &&str| note.contains("cannot be taken from `shared`");
    assert!(ran.notes().iter().any(told), "{ran:?}");
    ada.run(&[]);
    assert_eq!(bob.digests(), ada.digests());
}

/// The objects in somebody's store.
fn objects(lab: &Lab, who: &str) -> usize {
    let folders = std::fs::read_dir(lab.path(who).join("objects")).into_iter();
    let folders = folders.flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).unwrap());
    files.count()
}

const SCALED: [&str; 3] = ["scaled[scale=1]", "scaled[scale=2]", "scaled[scale=3]"];

/// What is only on the way to a result stays in the remote, and everybody says so.
#[test]
fn only_what_is_read_is_fetched() {
    let lab = Lab::demo();
    let (ada, bob) = (person(&lab, "ada"), person(&lab, "bob"));
    let key = ada.set_up(&folder(&lab));
    ada.run(&["--remote", "shared"]);
    bob.set_up(&folder(&lab));
    bob.trusts(&key, "ada");
    bob.ablate(&["pull"]).good();
    assert_eq!(bob.digests(), ada.digests());
    assert_eq!(objects(&lab, "bob"), 1, "the summary alone");

    bob.run(&[]).ran([]);
    let plan = bob.ablate(&["plan"]).good().stdout;
    let there = "cached    scaled[scale=2]: in a remote, until something reads it";
    assert!(plan.contains(there), "{plan}");
    assert!(plan.contains("5 cached, 0 to run"), "{plan}");
    let shown = bob.ablate(&["show", SCALED[1]]);
    let left = "the stored result of `scaled[scale=2]` is in a remote (output `rows`: the result was taken from there \
                without it; `ablate pull STAGE` fetches it)";
    assert!(shown.code != 0 && shown.stderr.contains(left), "{shown:?}");
    let examined = bob.ablate(&["fsck"]).good().stdout;
    let left =
        "missing  scaled[scale=2].rows of run 1: left in the remote that the result was taken from";
    assert!(examined.contains(left), "{examined}");
    let audit = bob.ablate(&["audit", "summary"]).good().stdout;
    assert!(audit.contains("not here: left in a remote"), "{audit}");
    let verified = bob.ablate(&["verify"]);
    assert!(verified.code != 0, "its inputs are not here: {verified:?}");
    bob.ablate(&["gc"]).good();
    let pushed = bob.ablate(&["push"]).good().stdout;
    assert!(pushed.contains("; 5 were signed by others"), "{pushed}");
    // What bob's list names is kept, also if it is not in his store.
    std::fs::remove_dir_all(lab.path("remote/tags").join(key.replace("ed25519:", ""))).unwrap();
    ada.ablate(&["remote", "gc", "--grace", "0"]).good();
    assert_eq!(files(&lab, "cas").len(), 4);

    // By name, and all of it.
    bob.ablate(&["pull", SCALED[1]]).good();
    assert_eq!(objects(&lab, "bob"), 2);
    assert_eq!(bob.ablate(&["show", SCALED[1]]).code, 0);
    let again = bob.ablate(&["pull", "--all"]).good();
    assert_eq!(objects(&lab, "bob"), 4, "{again:?}");
    bob.ablate(&["verify"]).good();
}

/// Whoever reads it later fetches it, and without the remote makes it again.
#[test]
fn what_was_left_in_a_remote_is_fetched_or_made_again_when_it_is_read() {
    let lab = Lab::demo();
    let ada = person(&lab, "ada");
    let key = ada.set_up(&folder(&lab));
    ada.run(&["--remote", "shared"]);
    let readers = ["bob", "carl", "dora"].map(|name| person(&lab, name));
    for reader in &readers {
        reader.set_up(&folder(&lab));
        reader.trusts(&key, "ada");
        reader.ablate(&["pull"]).good();
    }
    let [bob, carl, dora] = readers;
    let second = &ada.digests()["scaled[scale=2].rows"];
    lab.edit("SUM(x)", "MAX(x)");
    ada.run(&[]).ran(["summary"]);
    let expected = ada.digests();

    let ran = bob.run(&["--remote", "shared", "--read-only"]);
    ran.ran(["summary"]);
    assert_eq!(ran.notes(), Vec::<&str>::new());
    assert_eq!(bob.digests(), expected);
    assert_eq!(objects(&lab, "bob"), 5);
    bob.ablate(&["fsck"]).good();

    let ran = carl.run(&[]);
    // The first of the three has the bytes of `numbers`, so that it is here again when those are.
    ran.ran(["numbers", SCALED[1], SCALED[2], "summary"]);
    let why = "`scaled[scale=2]` is recomputed: its stored result is in a remote (";
    assert!(ran.notes().iter().any(|it| it.starts_with(why)), "{ran:?}");
    assert_eq!(carl.digests(), expected);
    carl.ablate(&["fsck"]).good();

    // One of them is damaged there: it is told of, and made here.
    std::fs::write(lab.path("remote/cas").join(second), "nonsense").unwrap();
    let ran = dora.run(&["--remote", "shared", "--read-only"]);
    assert!(
        ran.notes().iter().any(|it| it.contains("cannot be taken")),
        "{ran:?}"
    );
    assert_eq!(dora.digests(), expected);
    dora.ablate(&["fsck"]).good();
}

/// A server that is always too busy: how many requests there were, and its address.
fn busy() -> (Arc<AtomicUsize>, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::Relaxed);
            // All that a look-up sends fits.
            let _ = client.read(&mut [0; 8192]);
            let _ = client.write_all(
                b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
    });
    (connections, at)
}

/// A chain, so that the remote is asked about one stage after the other.
fn chain(stages: usize) -> String {
    let mut text = "[stage.s0]\nkind = \"table\"\nrows = [{ x = 1 }]\n".to_owned();
    for n in 1..stages {
        let before = n - 1;
        text += &format!(
            "\n[stage.s{n}]\nkind = \"sql\"\ninputs = {{ t = \"s{before}\" }}\nquery = \"SELECT x + 1 AS x FROM t\"\n"
        );
    }
    text
}

/// It is told of once, and asked no more; a run goes on without it, and a pull has failed.
#[test]
fn a_remote_that_does_not_answer_is_not_asked_for_ever() {
    /// Questions, and how often each is put.
    const MOST: usize = 5 * 4;
    let (connections, at) = busy();
    let lab = Lab::new(&chain(9));
    let mut ada = person(&lab, "ada");
    ada.environment = vec![
        ("AWS_ENDPOINT_URL", at),
        ("AWS_ACCESS_KEY_ID", "ada".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
    ];
    let key = ada.set_up("s3://bucket/x");
    ada.trusts(&key, "ada");
    connections.store(0, Ordering::Relaxed);
    let ran = ada.run(&["--remote", "shared", "--read-only"]);
    ran.ran(
        (0..9)
            .map(|n| format!("s{n}"))
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str),
    );
    assert!(
        connections.load(Ordering::Relaxed) <= MOST,
        "{connections:?}"
    );
    let notes = ran.notes();
    let (refused, given_up) = (notes[0], notes[1]);
    assert!(
        refused.starts_with("`s0` cannot be looked up in `shared`: ")
            && refused.contains(" answered 503"),
        "{refused}"
    );
    assert_eq!(
        given_up,
        "`s5` is not looked up in `shared`, which failed to answer 5 times in a row and is not asked again in this run"
    );
    assert_eq!(notes.len(), 2, "{notes:?}");

    let mut bob = person(&lab, "bob");
    bob.environment = ada.environment.clone();
    bob.set_up("s3://bucket/x");
    bob.trusts(&key, "ada");
    let pulled = bob.ablate(&["pull"]);
    assert_eq!(pulled.code, 1, "{pulled:?}");
    // What nobody has pushed is not an error.
    let carl = person(&lab, "carl");
    carl.set_up(&folder(&lab));
    carl.trusts(&key, "ada");
    carl.ablate(&["pull"]).good();
}
