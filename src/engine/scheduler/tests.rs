//! Pipelines made at random: whatever their shape, the results are those of plain arithmetic,
//! the same on any number of threads, and a second run finds them all.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use proptest::prelude::*;
use stages::{Description, Failure, Outputs, Ports, Stage, Task};
use store::{Digest, NewRun, Params, Status, Store, Work};

use super::{FindKind, RunRequest, run};
use crate::config;
use crate::engine::checkpoint::CheckpointTimes;
use crate::engine::progress::{Event, Quiet, Reporter, Tally};
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::plan::{self, Plan};

/// Stage `n` adds `n` to the sum of the stages that it reads.
fn pipeline(reads: &[Vec<usize>]) -> String {
    let mut text = String::new();
    for (n, reads) in reads.iter().enumerate() {
        if reads.is_empty() {
            writeln!(
                text,
                "[stage.s{n}]\nkind = \"table\"\nrows = [{{ x = {n} }}]"
            )
            .unwrap();
            continue;
        }
        let ports: Vec<String> = reads.iter().map(|m| format!("p{m} = \"s{m}\"")).collect();
        let terms: Vec<String> = reads.iter().map(|m| format!("p{m}.x")).collect();
        let from: Vec<String> = reads.iter().map(|m| format!("p{m}")).collect();
        writeln!(
            text,
            "[stage.s{n}]\nkind = \"sql\"\ninputs = {{ {} }}\nquery = \"SELECT {} + {n} AS x FROM {}\"",
            ports.join(", "),
            terms.join(" + "),
            from.join(" CROSS JOIN ")
        )
        .unwrap();
    }
    text
}

fn expected(reads: &[Vec<usize>]) -> Vec<i64> {
    let mut values: Vec<i64> = Vec::new();
    for (n, reads) in reads.iter().enumerate() {
        let sum: i64 = reads.iter().map(|m| values[*m]).sum();
        values.push(sum + n as i64);
    }
    values
}

fn run_all(plan: &Plan<'_>, store: &Store, jobs: usize) -> Tally {
    run_with(plan, store, jobs, stages::find, &Quiet)
}

fn run_with(
    plan: &Plan<'_>,
    store: &Store,
    jobs: usize,
    kinds: FindKind,
    reporter: &dyn Reporter,
) -> Tally {
    let wanted = vec![true; plan.instances.len()];
    let tally = run(&RunRequest {
        plan,
        wanted: &wanted,
        kinds,
        store,
        data: &stages::DataHome::nowhere(),
        run: store.begin_run(&NewRun::default()).unwrap(),
        environment: Default::default(),
        jobs,
        keep_going: false,
        stop: &AtomicBool::new(false),
        checkpoints: &CheckpointTimes {
            every: Duration::from_secs(3600),
            requests: Default::default(),
        },
        queue: None,
        remote: None,
        objects: &wanted,
        reporter,
    });
    tally.unwrap()
}

fn outputs(plan: &Plan<'_>, store: &Store) -> BTreeMap<String, Digest> {
    let wanted = vec![true; plan.instances.len()];
    let statuses = instance_statuses(plan, &wanted, Some(store));
    let cached = statuses.iter().zip(&plan.instances);
    cached
        .map(|(status, instance)| match status {
            InstanceStatus::Cached { outputs, .. } => (instance.label.clone(), outputs[0]),
            _ => panic!("{} is not cached", instance.label),
        })
        .collect()
}

/// For each stage, which of the earlier ones it reads: at most three.
fn graphs() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let stage = proptest::collection::vec(any::<prop::sample::Index>(), 0..4);
    proptest::collection::vec(stage, 1..25).prop_map(|stages| {
        let numbered = stages.into_iter().enumerate();
        numbered
            .map(|(n, picks)| {
                let picks = picks.into_iter().filter(|_| n > 0);
                let mut reads: Vec<usize> = picks.map(|pick| pick.index(n)).collect();
                reads.sort_unstable();
                reads.dedup();
                reads
            })
            .collect()
    })
}

/// The kind `table`, counting its rows.
struct Counting;

impl Stage for Counting {
    fn describe(&self) -> &'static Description {
        stages::kinds::table::Table.describe()
    }

    fn ports(&self, params: &Params) -> Ports {
        stages::kinds::table::Table.ports(params)
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let outputs = stages::kinds::table::Table.run(task)?;
        for table in outputs.values() {
            task.watch.work("items", table.num_rows() as u64);
        }
        Ok(outputs)
    }
}

/// Records the reported work of each stage.
#[derive(Default)]
struct Recorder(Mutex<Vec<(String, Status, Work)>>);

impl Reporter for Recorder {
    fn event(&self, event: Event<'_>) {
        if let Event::Stage {
            label,
            status,
            worked,
            ..
        } = event
        {
            let recorded = (label.to_owned(), status, worked.work.clone());
            self.0.lock().unwrap().push(recorded);
        }
    }
}

/// Follows how many stages run at once, and what is said beside.
#[derive(Default)]
struct AtOnce(Mutex<(usize, usize, Vec<String>)>);

impl Reporter for AtOnce {
    fn event(&self, event: Event<'_>) {
        let (now, most, notes) = &mut *self.0.lock().unwrap();
        match event {
            Event::Started(_) => *now += 1,
            Event::Stage { .. } => *now -= 1,
            Event::Note(note) => notes.push(note.to_owned()),
            _ => {}
        }
        *most = (*now).max(*most);
    }
}

/// How many of six stages run at once on four places, and what is said.
fn at_once(resources: &str) -> (usize, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pipeline.toml");
    let stage = |n: usize| {
        format!("[stage.s{n}]\nkind = \"table\"\nrows = [{{ x = {n} }}]\nresources = {resources}\n")
    };
    std::fs::write(&file, (0..6).map(stage).collect::<String>()).unwrap();
    let request = config::PipelineRequest {
        file,
        ..Default::default()
    };
    let pipeline = config::read(&request).unwrap();
    let plan = plan::build(&pipeline).unwrap();
    let store = Store::open(&dir.path().join("store")).unwrap();
    let seen = AtOnce::default();
    assert_eq!(run_with(&plan, &store, 4, stages::find, &seen).ran, 6);
    let (_, most, notes) = seen.0.into_inner().unwrap();
    (most, notes)
}

/// The kind `table`; stage 0 has many small parts, and stage 1 ends only after stage 0.
struct Entwined;

static PARTS_DONE: AtomicBool = AtomicBool::new(false);

impl Stage for Entwined {
    fn describe(&self) -> &'static Description {
        stages::kinds::table::Table.describe()
    }

    fn ports(&self, params: &Params) -> Ports {
        stages::kinds::table::Table.ports(params)
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let outputs = stages::kinds::table::Table.run(task)?;
        let first = outputs.values().next().is_some_and(|t| t.num_rows() == 1);
        let pause = || std::thread::sleep(Duration::from_millis(2));
        if first {
            for _ in 0..50 {
                rayon::join(|| (), pause);
            }
            PARTS_DONE.store(true, Ordering::Relaxed);
        }
        for _ in 0..10_000 {
            if PARTS_DONE.load(Ordering::Relaxed) {
                return Ok(outputs);
            }
            pause();
        }
        Err(Failure::new("stage 0 waits for stage 1"))
    }
}

/// A thread that waits for a part of one stage does not take up another stage meanwhile.
#[test]
fn a_stage_does_not_wait_for_another_in_its_own_thread() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pipeline.toml");
    let text = "[stage.s0]\nkind = \"table\"\nrows = [{ x = 1 }]\n[stage.s1]\nkind = \"table\"\nrows = [{ x = 1 }, { x = 2 }]\n";
    std::fs::write(&file, text).unwrap();
    let request = config::PipelineRequest {
        file,
        ..Default::default()
    };
    let pipeline = config::read(&request).unwrap();
    let plan = plan::build(&pipeline).unwrap();
    let store = Store::open(&dir.path().join("store")).unwrap();
    let tally = run_with(&plan, &store, 2, |_| Some(&Entwined), &Quiet);
    assert_eq!((tally.ran, tally.failed), (2, 0));
}

#[test]
fn stages_run_beside_each_other_only_where_there_is_room() {
    assert_eq!(at_once("{ cpus = 1 }").0, 4);
    assert_eq!(at_once("{ cpus = 2 }").0, 2);
    assert_eq!(at_once("{ cpus = 9 }").0, 1);
    let third = crate::environment::machine_memory() / 3;
    assert_eq!(at_once(&format!("{{ memory = \"{third}\" }}")).0, 3);
    let (most, notes) = at_once("{ memory = \"100000GB\" }");
    assert_eq!((most, notes.len()), (1, 6));
    assert_eq!(
        notes[0],
        "`s0` asks for 100000.0 GiB, more than this machine has: it runs alone"
    );
}

#[test]
fn what_a_stage_counts_is_told_recorded_and_told_again_when_cached() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pipeline.toml");
    let text = "[stage.s]\nkind = \"table\"\nrows = [{ x = 1 }, { x = 2 }]\n[stage.twin]\nkind = \"table\"\nrows = [{ x = 1 }, { x = 2 }]";
    std::fs::write(&file, text).unwrap();
    let request = config::PipelineRequest {
        file,
        ..Default::default()
    };
    let mut pipeline = config::read(&request).unwrap();
    for stage in &mut pipeline.stages {
        stage.kind = &Counting;
    }
    let plan = plan::build(&pipeline).unwrap();
    let store = Store::open(&dir.path().join("store")).unwrap();
    let items = Work::from([("items".to_owned(), 2)]);
    for first in [Status::Ran, Status::Hit] {
        let recorder = Recorder::default();
        run_with(&plan, &store, 1, |_| Some(&Counting), &recorder);
        let recorded = recorder.0.into_inner().unwrap();
        let expected = [("s", first), ("twin", Status::Hit)]
            .map(|(label, status)| (label.to_owned(), status, items.clone()));
        assert_eq!(recorded, expected);
    }
    let used = &store.uses(store.runs(1).unwrap()[0].id).unwrap()[0];
    let execution = store.execution(used.execution.unwrap()).unwrap().unwrap();
    assert_eq!(execution.work, items);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_graph_gives_its_results_on_any_number_of_threads(reads in graphs()) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pipeline.toml");
        std::fs::write(&file, pipeline(&reads)).unwrap();
        let pipeline = config::read(&config::PipelineRequest { file, ..Default::default() }).unwrap();
        let plan = plan::build(&pipeline).unwrap();
        let mut all = Vec::new();
        for jobs in [1, 4] {
            let store = Store::open(&dir.path().join(format!("store{jobs}"))).unwrap();
            let first = run_all(&plan, &store, jobs);
            // Stages with equal keys are executed once.
            prop_assert_eq!(first.ran + first.hits, reads.len());
            let second = run_all(&plan, &store, jobs);
            prop_assert_eq!((second.ran, second.hits), (0, reads.len()));
            let made = outputs(&plan, &store);
            for (n, value) in expected(&reads).into_iter().enumerate() {
                let table = store.read(&made[&format!("s{n}")]).unwrap();
                prop_assert_eq!(table.column(0).as_primitive::<Int64Type>().values(), &[value]);
            }
            all.push(made);
        }
        prop_assert_eq!(&all[0], &all[1]);
    }
}
