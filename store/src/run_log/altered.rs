//! Whether records are still what the log sealed: all of them, some executions, or a run; and notes of faults.

use std::collections::{BTreeSet, HashSet};

use super::check::check;
use super::contents::{execution, note, run};
use super::entry::{EntryKind, LogWriter};
use super::fault::{Beginning, changed, unlogged_execution};
use super::related_rows::{beside, code_fault, environment_faults};
use super::report::LogReport;
use super::sealed::{is_sealed, sealed};
use crate::error::Error;
use crate::records::time::now;
use crate::records::{Execution, Run};
use crate::store::Store;

impl Store {
    /// Tests every seal, and every entry against the row that it is about, all as they were at
    /// one moment: others may be writing.
    pub fn check_log(&self) -> Result<LogReport, Error> {
        let _one_moment = self.snapshot();
        self.query("check the log in", check)
    }

    /// What was changed, after it was recorded, of these executions and of their runs.
    pub fn altered<'a>(
        &self,
        executions: impl Iterator<Item = &'a Execution>,
    ) -> Result<Vec<String>, Error> {
        self.query("check the log in", |rows| {
            let mut found = Vec::new();
            let begins = Beginning::of(rows)?;
            let (mut runs, mut codes) = (HashSet::new(), BTreeSet::new());
            for it in executions {
                let beside = beside(rows, it)?;
                match beside.sealed {
                    Some(was) if was != execution(it) => found.push(changed("execution", it.id)),
                    None if !begins.is_older(it.run.0) => {
                        found.push(unlogged_execution(it.id, &it.instance));
                    }
                    _ => {}
                }
                found.extend(beside.misfit);
                let id = it.run.0;
                codes.insert(it.key.code);
                if runs.insert(id)
                    && let Some(was) = sealed(rows, EntryKind::Run, id)?
                    && run(rows, id)? != Some(was)
                {
                    found.push(changed("run", id));
                }
            }
            for code in codes {
                found.extend(code_fault(rows, &code)?);
            }
            for (id, fault) in environment_faults(rows)? {
                let used = rows
                    .prepare_cached("SELECT id FROM runs WHERE environment = ?1")?
                    .query_map([id], |row| row.get::<_, i64>(0))?
                    .collect::<rusqlite::Result<Vec<_>>>()?;
                found.extend(used.iter().any(|run| runs.contains(run)).then_some(fault));
            }
            Ok(found)
        })
    }

    /// Notes the faults that somebody was told and that are there still, so that they are told
    /// apart from new ones: how many.
    pub(crate) fn note_faults(&self, told: &LogReport) -> Result<usize, Error> {
        if told.news.is_empty() {
            return Ok(0);
        }
        let told: HashSet<&String> = told.news.iter().collect();
        self.transaction("note faults in", |rows| {
            let there = check(rows)?.news;
            let mut log = LogWriter::new(rows)?;
            let mut noted = 0;
            for fault in there.iter().filter(|fault| told.contains(fault)) {
                let added = rows.execute(
                    "INSERT OR IGNORE INTO noted (fault, at) VALUES (?1, ?2)",
                    rusqlite::params![fault, now()],
                )?;
                noted += 1;
                // Two entries may say the same.
                if added == 0 {
                    continue;
                }
                let id = rows.last_insert_rowid();
                let content = note(rows, id)?.expect("just inserted");
                log.add(EntryKind::Note, id, content)?;
            }
            Ok(noted)
        })
    }
}

impl Store {
    /// What was changed of a run's own record after it was sealed, if anything: what it was told,
    /// how it ended, or which executions it used.
    pub fn altered_run(&self, run: &Run) -> Result<Option<String>, Error> {
        let id = run.id.0;
        self.query("check the log in", |rows| {
            if Beginning::of(rows)?.is_older(id) {
                return Ok(None);
            }
            Ok(match () {
                () if !is_sealed(rows, EntryKind::Run, id)? => Some(changed("run", id)),
                () if run.ended.is_some() && !is_sealed(rows, EntryKind::End, id)? => {
                    Some(changed("the end of run", id))
                }
                () => None,
            })
        })
    }
}
