//! `ablate remote` and `push`, and `run --remote`: results that machines share.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use store::{Execution, Store};

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use super::print::{note, out};
use crate::amounts::plural;
use crate::diagnostic::Diagnostic;
use crate::engine::executor::remote::RemoteRequest;
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::plan::{self, Plan};
use crate::remote::keys::{Keys, SigningKey};
use crate::remote::lookup::TrustedRemote;
use crate::remote::push::{GRACE, PushRequest, Pushed, push};
use crate::remote::{self, Remote, known, tidy};
use crate::results::find;
use crate::results::recall::Fault;
use stages::isolated::in_words as bytes;

/// `ablate remote …`.
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Remember a bucket or a folder under a name
    Add {
        /// What to call it
        name: String,
        /// s3://BUCKET/PREFIX, gs://…, az://CONTAINER/PREFIX or file:///FOLDER; credentials come from the environment or ~/.aws
        url: String,
    },
    /// Forget a remote; what is in it stays
    Remove {
        /// What it is called
        name: String,
    },
    /// List the remotes of this store
    List,
    /// Read everything in a remote and check digests and signatures
    Fsck {
        /// What it is called [default: the only one]
        name: Option<String>,
        /// Upload objects that are damaged or missing there again, from this store
        #[arg(long)]
        repair: bool,
    },
    /// Remove what nobody has pushed under a name and nothing names
    Gc {
        /// What it is called [default: the only one]
        name: Option<String>,
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
        /// Leave alone what is younger, in days
        #[arg(long, value_name = "DAYS", default_value_t = GRACE.as_secs() / 86_400)]
        grace: u64,
    },
}

/// `ablate push …`.
#[derive(Args)]
pub struct PushArguments {
    /// Stages to push, with all that they read [default: all]
    targets: Vec<String>,
    /// The remote [default: the only one]
    #[arg(long, value_name = "NAME")]
    remote: Option<String>,
}

/// What `run` takes for remotes.
#[derive(Args)]
pub struct RemoteOptions {
    /// Take what trusted people have pushed to this remote in place of executing it, and push what was executed
    #[arg(long, value_name = "NAME")]
    remote: Option<String>,
    /// Push nothing to the remote
    #[arg(long, requires = "remote")]
    read_only: bool,
    /// Execute nothing
    #[arg(long, requires = "remote", hide = true)]
    only_remote: bool,
    /// Fetch the objects of all results, also those that nothing reads
    #[arg(long, requires = "remote", hide = true)]
    pub whole: bool,
}

impl RemoteOptions {
    /// The remote that was asked for, before a run begins.
    pub fn open(&self, global: &Global) -> Result<Option<(Arc<Remote>, RemoteRequest)>, Exit> {
        let Some(name) = &self.remote else {
            return Ok(None);
        };
        let remote = opened(global, Some(name))?;
        let keys = Keys::open().map_err(failed)?;
        if !self.read_only && !self.only_remote {
            signing_key(&keys)?;
        }
        let trusted = keys.trusted().map_err(failed)?;
        if trusted.is_empty() {
            note!(
                "ablate: you trust nobody, so nothing of `{name}` is taken: ablate key trust KEY --name NAME"
            );
        }
        let remote = Arc::new(remote);
        let source = Box::new(TrustedRemote::new(remote.clone(), trusted));
        let only = self.only_remote;
        Ok(Some((remote, RemoteRequest { source, only })))
    }

    /// Whether something that should only be taken could not be: that is a failed `pull`, and what nobody has pushed is
    /// not.
    pub fn failed(&self, request: &RemoteRequest) -> bool {
        self.only_remote && request.source.failures() > 0
    }

    /// Pushes what is there after a run.
    pub fn push_after(
        &self,
        global: &Global,
        plan: &Plan<'_>,
        wanted: &[bool],
        store: &Store,
        remote: &Remote,
    ) -> Result<(), Exit> {
        if self.read_only || self.only_remote {
            return Ok(());
        }
        let key = signing_key(&Keys::open().map_err(failed)?)?;
        let executions = executions(plan, wanted, store)?;
        let request = PushRequest {
            executions: &executions,
            name: &tag_of(global, plan),
            all: wanted.iter().all(|wanted| *wanted),
        };
        let bar = bar(global);
        let told = |done, all| follow(&bar, done, all);
        let pushed = push(remote, store, &key, &request, &told);
        bar.finish_and_clear();
        pushed.map(drop).map_err(failed)
    }
}

/// Lists, adds, removes, looks through and tidies remotes.
pub fn remote(global: &Global, arguments: &Arguments) -> Result<(), Exit> {
    match arguments.command.as_ref().unwrap_or(&Action::List) {
        Action::Add { name, url } => add(global, name, url),
        Action::Remove { name } => {
            let root = global.needed_store()?.root().to_owned();
            let mut all = known::read(&root).map_err(failed)?;
            match all.remove(name) {
                Some(_) => known::write(&root, &all).map_err(failed),
                None => Err(failed(format!("there is no remote `{name}`"))),
            }
        }
        Action::List => list(global),
        Action::Fsck { name, repair } => fsck(global, name.as_deref(), *repair),
        Action::Gc {
            name,
            dry_run,
            grace,
        } => gc(global, name.as_deref(), *dry_run, *grace),
    }
}

fn add(global: &Global, name: &str, url: &str) -> Result<(), Exit> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        let what = format!("`{name}` cannot name a remote: letters, digits, - and _ can");
        return Err(Diagnostic::new(what).into());
    }
    remote::check_url(url).map_err(|why| {
        let help = "credentials come from the environment or ~/.aws";
        Exit::from(Diagnostic::new(why).help(help))
    })?;
    let mut all: BTreeMap<String, String> = known::read(&global.store_path()).map_err(failed)?;
    if let Some(known) = all.get(name).filter(|known| *known != url) {
        let what = format!("this store has a remote `{name}` already: {known}");
        let help = global.command(&format!("remote remove {name}"));
        return Err(Diagnostic::new(what).help(help).into());
    }
    // Before it is written down: a misspelt URL is an error now.
    Remote::create(name, url).map_err(|why| Exit::from(Diagnostic::new(why)))?;
    let store = Store::open(&global.store_path())?;
    all.insert(name.to_owned(), url.to_owned());
    known::write(store.root(), &all).map_err(failed)?;
    if !global.quiet {
        out!("ablate: `{name}` is {url}");
    }
    Ok(())
}

fn list(global: &Global) -> Result<(), Exit> {
    for (name, url) in known::read(&global.store_path()).map_err(failed)? {
        match global.json {
            true => out!("{}", json!({ "name": name, "url": url })),
            false => out!("{name:<14} {url}"),
        }
    }
    Ok(())
}

fn fsck(global: &Global, name: Option<&str>, repair: bool) -> Result<(), Exit> {
    let remote = opened(global, name)?;
    let mut examined = tidy::fsck(&remote).map_err(failed)?;
    if repair && !examined.lost.is_empty() {
        let store = global.needed_store()?;
        let repaired = tidy::repair(&remote, &store, &examined.lost).map_err(failed)?;
        let (all, name) = (plural(examined.lost.len(), "object"), &remote.name);
        note!("ablate: {repaired} of {all} uploaded to `{name}` again; what is there now:");
        examined = tidy::fsck(&remote).map_err(failed)?;
    }
    let (objects, entries) = (examined.objects, examined.entries);
    if global.json {
        out!(
            "{}",
            json!({ "objects": objects, "entries": entries, "wrong": examined.wrong })
        );
    } else {
        for line in &examined.wrong {
            out!("{line}");
        }
        let (objects, entries) = (plural(objects, "object"), plural(entries, "entry"));
        let wrong = plural(examined.wrong.len(), "problem");
        out!("ablate: {objects} and {entries} are intact, {wrong} found");
        if !examined.lost.is_empty() && !repair {
            let command = global.command(&format!("remote fsck {} --repair", remote.name));
            note!("help: {command} uploads again what this store has of it");
        }
    }
    match examined.wrong.is_empty() {
        true => Ok(()),
        false => Err(Exit::Code(1)),
    }
}

fn gc(global: &Global, name: Option<&str>, dry_run: bool, grace: u64) -> Result<(), Exit> {
    let grace = Duration::from_secs(grace.saturating_mul(86_400));
    let removed = tidy::gc(&opened(global, name)?, grace, dry_run).map_err(failed)?;
    let (entries, objects, size) = (removed.entries, removed.objects, removed.bytes);
    let what = if dry_run {
        "would be removed"
    } else {
        "removed"
    };
    match global.json {
        true => out!(
            "{}",
            json!({ "entries": entries, "objects": objects, "bytes": size, "dry_run": dry_run })
        ),
        false => out!(
            "ablate: {} and {} ({}) {what}",
            plural(entries, "entry"),
            plural(objects, "object"),
            bytes(size)
        ),
    }
    Ok(())
}

/// Pushes the results of the pipeline as it is now.
pub fn push_results(global: &Global, arguments: &PushArguments) -> Result<(), Exit> {
    let pipeline = global.pipeline()?;
    let plan = in_pipeline(&pipeline, plan::build(&pipeline))?;
    let wanted = in_pipeline(&pipeline, find::wanted(&plan, &arguments.targets))?;
    let remote = opened(global, arguments.remote.as_deref())?;
    let key = signing_key(&Keys::open().map_err(failed)?)?;
    let store = global.needed_store()?;
    let executions = executions(&plan, &wanted, &store)?;
    if executions.is_empty() {
        let what = Diagnostic::new("there are no results to push");
        return Err(Exit::Failed(what.help(global.command("run"))));
    }
    let request = PushRequest {
        executions: &executions,
        name: &tag_of(global, &plan),
        all: wanted.iter().all(|wanted| *wanted),
    };
    let bar = bar(global);
    let told = |done, all| follow(&bar, done, all);
    let pushed = push(&remote, &store, &key, &request, &told);
    bar.finish_and_clear();
    tell(global, &remote, &pushed.map_err(failed)?)?;
    let statuses = instance_statuses(&plan, &wanted, Some(&store));
    let is_absent = |status: &&InstanceStatus| {
        !matches!(
            status,
            InstanceStatus::Cached { .. }
                | InstanceStatus::NotTargeted
                | InstanceStatus::Unsound {
                    fault: Fault::Left { .. },
                    ..
                }
        )
    };
    match statuses.iter().filter(is_absent).count() {
        0 => {}
        1 => note!("ablate: 1 stage has no result here, so nothing of it was pushed"),
        n => note!("ablate: {n} stages have no result here, so nothing of them was pushed"),
    }
    Ok(())
}

/// A bar on a terminal.
fn bar(global: &Global) -> ProgressBar {
    let seen = !global.quiet && !global.json && std::io::stderr().is_terminal();
    let bar = match seen {
        true => ProgressBar::new(0),
        false => ProgressBar::hidden(),
    };
    let style = ProgressStyle::with_template("pushing [{bar:30}] {pos}/{len} {eta}");
    bar.with_style(style.expect("a template that parses"))
}

fn follow(bar: &ProgressBar, done: usize, all: usize) {
    bar.set_length(all as u64);
    bar.set_position(done as u64);
}

fn tell(global: &Global, remote: &Remote, pushed: &Pushed) -> Result<(), Exit> {
    let Pushed {
        entries,
        objects,
        bytes: size,
        of_others,
    } = pushed;
    if global.json {
        let told = json!({ "remote": remote.name, "entries": entries, "objects": objects, "bytes": size, "of_others": of_others });
        out!("{told}");
        return Ok(());
    }
    let others = match of_others {
        0 => String::new(),
        1 => "; 1 was signed by somebody else and is left to them".to_owned(),
        n => format!("; {n} were signed by others and are left to them"),
    };
    out!(
        "ablate: {} in `{}`: {}, {}{others}",
        plural(*entries, "result"),
        remote.name,
        plural(*objects, "new object"),
        bytes(*size)
    );
    Ok(())
}

/// The executions behind the results that the plan finds.
fn executions(plan: &Plan<'_>, wanted: &[bool], store: &Store) -> Result<Vec<Execution>, Exit> {
    let mut found = Vec::new();
    for status in instance_statuses(plan, wanted, Some(store)) {
        match status {
            InstanceStatus::Cached { execution, .. }
            // Of somebody else, who has its objects there: our list keeps them from gc.
            | InstanceStatus::Unsound {
                execution,
                fault: Fault::Left { .. },
                ..
            } => found.extend(store.execution(execution)?),
            _ => {}
        }
    }
    // Stages that compute the same share a key.
    found.sort_by_key(|it: &Execution| it.key_digest);
    found.dedup_by_key(|it| it.key_digest);
    Ok(found)
}

/// What is kept from gc together: the results of one pipeline with one profile.
fn tag_of(global: &Global, plan: &Plan<'_>) -> String {
    let profile = global.profile.as_deref().unwrap_or("default");
    format!("{}-{profile}", plan.pipeline.name)
}

/// The remote of this name; the only one if none is given.
pub fn opened(global: &Global, name: Option<&str>) -> Result<Remote, Exit> {
    let store: &Path = &global.store_path();
    known::open(store, name).map_err(failed)
}

fn signing_key(keys: &Keys) -> Result<SigningKey, Exit> {
    keys.signing().map_err(failed)?.ok_or_else(|| {
        let what = "what is pushed is signed, and you have no key";
        Exit::Failed(Diagnostic::new(what).help("ablate key new"))
    })
}

fn failed(why: String) -> Exit {
    Exit::Failed(Diagnostic::new(why))
}
