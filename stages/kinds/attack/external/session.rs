//! One run of a program of the user that attacks: started once for a stage, given items, and answered what it asks
//! about the victim, within its budget of queries. Judges nothing that it answers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use nn::batch::Sequence;
use serde_json::json;
use store::Digest;

use super::wire::{Rows, Said, Sent, greeted, plain};
use crate::models::external::MODULE;
use crate::models::loaded::probabilities;
use crate::programs::params::{texts, timeout};
use crate::programs::serving::{Frame, Serving};
use crate::{Failure, SourceFile, Task, Watch};
use nn::victim::Victim;

/// A program that attacks.
pub struct Session<'a> {
    running: Mutex<Option<Serving>>,
    rows: Rows<'a>,
    watch: &'a dyn Watch,
    /// Items for which it asked more often than it may.
    refused: AtomicU64,
    /// How many items it wants at once.
    pub batch: usize,
}

/// What a program made of an item, and what it cost.
pub struct Answered {
    /// The row; none if it stays as it is.
    pub row: Option<Vec<u32>>,
    /// How often the victim was asked.
    pub queries: u64,
}

impl<'a> Session<'a> {
    /// Starts the program that the parameters of a task name.
    pub fn start(task: &Task<'a>, rows: Rows<'a>, classes: usize) -> Result<Session<'a>, Failure> {
        let failed = |e: std::io::Error| Failure::new(format!("cannot write ablate.py: {e}"));
        let (name, module) = MODULE;
        let written = tempfile::NamedTempFile::new().map_err(failed)?;
        std::fs::write(written.path(), module).map_err(failed)?;
        let ours = SourceFile {
            path: written.path(),
            digest: Digest::of(module.as_bytes()),
            executable: false,
        };
        let mut files = BTreeMap::from([(name.to_owned(), ours)]);
        // A file of that name of the user's is theirs.
        files.extend(task.files.iter().map(|(name, file)| (name.clone(), *file)));
        // A victim that is a program has the other folder.
        let mut place = task.place.clone();
        place.scratch = place.scratch.map(|path| {
            let mut name = path.into_os_string();
            name.push("-attack");
            name.into()
        });
        let program = Task {
            inputs: BTreeMap::new(),
            params: task.params,
            seed: task.seed,
            files,
            data: task.data,
            place: &place,
            watch: task.watch,
        };
        let run = texts(task.params, "run");
        let started = Serving::start(&program, &run, timeout(task.params));
        let (mut serving, hello) = started.map_err(|failure| {
            match failure.message.contains("` ended: exit code 0\n") {
                true => failure.help("it must end with ablate.attack(…), which waits for items"),
                false => failure,
            }
        })?;
        let batch = greeted(&hello).map_err(|why| serving.failure(&why))?;
        let ready = serving.ask(&rows.start(classes))?;
        if ready.header.get("answer") != Some(&json!("ready")) {
            return Err(serving.failure("did not answer that it is ready"));
        }
        Ok(Session {
            running: Mutex::new(Some(serving)),
            rows,
            watch: task.watch,
            refused: AtomicU64::new(0),
            batch,
        })
    }

    /// What the program makes of items. The victim is asked about rows that `whole` has made of a program's.
    pub fn attack(
        &self,
        items: &[Sent<'_>],
        victim: &dyn Victim,
        whole: impl Fn(usize, Vec<u32>) -> Sequence,
    ) -> Result<Vec<Answered>, Failure> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let serving = running
            .as_mut()
            .ok_or_else(|| Failure::new("the program of the attack has ended"))?;
        let ids: Vec<&str> = items.iter().map(|item| item.id).collect();
        let mut queries = vec![0_u64; items.len()];
        let mut refused = vec![false; items.len()];
        let mut frame = serving.ask(&self.rows.attack(items))?;
        loop {
            // Questions may come without an end.
            if self.watch.stopped() {
                return Err(Failure::stopped());
            }
            let said = self.rows.said(&frame, &ids);
            let reply = match said.map_err(|why| serving.failure(&why))? {
                Said::Rows(rows) => {
                    let refused = refused.iter().filter(|refused| **refused).count();
                    self.refused.fetch_add(refused as u64, Ordering::Relaxed);
                    let each = rows.into_iter().zip(queries);
                    return Ok(each
                        .map(|(row, queries)| Answered { row, queries })
                        .collect());
                }
                Said::Asks(Err(why)) => plain(json!({ "error": why })),
                Said::Asks(Ok(asked)) => match beyond(items, &asked, &queries) {
                    Some((n, why)) => {
                        refused[n] = true;
                        plain(json!({ "refused": why }))
                    }
                    None => answer(asked, &mut queries, victim, &whole)?,
                },
            };
            frame = serving.ask(&reply)?;
        }
    }

    /// Ends it: what it used, and what it printed.
    pub fn finish(&self) -> Result<(), Failure> {
        let running = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match self.refused.load(Ordering::Relaxed) {
            0 => {}
            1 => self
                .watch
                .log("1 item was refused queries beyond max_queries"),
            n => self.watch.log(&format!(
                "{n} items were refused queries beyond max_queries"
            )),
        }
        running.map_or(Ok(()), |serving| serving.finish(self.watch))
    }
}

/// The first item whose budget these questions are beyond, and what the program is told.
fn beyond(
    items: &[Sent<'_>],
    asked: &[(usize, Vec<u32>)],
    queries: &[u64],
) -> Option<(usize, String)> {
    items.iter().enumerate().find_map(|(n, item)| {
        let more = asked.iter().filter(|(of, _)| *of == n).count() as u64;
        let (most, id, spent) = (item.queries?, item.id, queries[n]);
        (spent + more > most as u64).then(|| {
            let why = format!(
                "max_queries is {most}: `{id}` has used {spent} of them, and {more} more were asked for"
            );
            (n, why)
        })
    })
}

/// What the victim says of rows that are within the budgets of their items.
fn answer(
    asked: Vec<(usize, Vec<u32>)>,
    queries: &mut [u64],
    victim: &dyn Victim,
    whole: &impl Fn(usize, Vec<u32>) -> Sequence,
) -> Result<Frame, Failure> {
    for (item, _) in &asked {
        queries[*item] += 1;
    }
    let rows: Vec<Sequence> = asked
        .into_iter()
        .map(|(item, row)| whole(item, row))
        .collect();
    let rows: Vec<&Sequence> = rows.iter().collect();
    let answers = match rows.is_empty() {
        true => Vec::new(),
        false => probabilities(victim, &rows)?,
    };
    Ok(plain(json!({ "probabilities": answers })))
}
