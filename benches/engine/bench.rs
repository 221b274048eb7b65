//! One step of one tool: measure it, check what it made, note it in its row.
//! Knows nothing of what the cases are.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::dag::Dag;
use crate::measure::measure;
use crate::row::{Case, Row, Step};
use crate::tool::Tool;

/// Everything measured so far.
pub struct Bench {
    tools: Vec<Box<dyn Tool>>,
    /// How often to measure what is fast.
    pub rounds: u32,
    timeout: Duration,
    full: bool,
    /// Holds every folder to the end: a file system may be slow to make files just after many
    /// were removed, and that would fall on whoever comes next.
    place: TempDir,
    folders: usize,
    /// What was measured.
    pub rows: Vec<Row>,
    /// Whether a tool said that all went well and made something else than it should,
    /// or ablate failed.
    pub wrong: bool,
}

/// What takes longer than this is measured once.
const SLOW: Duration = Duration::from_secs(5);

/// So that a file written after a run is newer than its results for tools that compare times.
const TICK: Duration = Duration::from_millis(20);

/// A tool with its folder for one DAG.
pub struct Lane {
    tool: usize,
    /// Where the DAG is, once it is written.
    dag_dir: PathBuf,
    /// It failed, so nothing after that counts.
    pub out: bool,
    /// Once is enough.
    pub slow: bool,
}

impl Lane {
    /// Where the last command's words are.
    fn log(&self) -> PathBuf {
        self.dag_dir.with_extension("log")
    }
}

/// What must be true after a run.
pub struct Expected {
    /// What the last stage made.
    pub value: i64,
    /// How many stages every tool must have executed.
    pub ran: Option<usize>,
    /// How many ablate must have.
    pub ablate_ran: usize,
}

impl Bench {
    /// A bench of these tools, ablate first.
    pub fn new(tools: Vec<Box<dyn Tool>>, rounds: u32, timeout: Duration, full: bool) -> Bench {
        Bench {
            tools,
            rounds,
            timeout,
            full,
            place: TempDir::new().expect("a temporary folder can be made"),
            folders: 0,
            rows: Vec::new(),
            wrong: false,
        }
    }

    /// A lane for every tool that is not too slow, and a row for each of its steps.
    pub fn lanes(&mut self, dag: &Dag, steps: &[Step]) -> Vec<Lane> {
        let (shape, size) = (dag.shape, dag.size);
        eprintln!("measuring a {shape} of {size}");
        for step in steps {
            for tool in &self.tools {
                let slow = tool.too_slow_for(dag.nodes.len()) && !self.full;
                self.rows.push(Row {
                    case: Case {
                        shape,
                        size,
                        step: *step,
                    },
                    tool: tool.name(),
                    samples: Vec::new(),
                    ran: None,
                    trouble: slow.then(|| "too slow, only with --full".to_owned()),
                });
            }
        }
        let wanted = (0..self.tools.len())
            .filter(|n| self.full || !self.tools[*n].too_slow_for(dag.nodes.len()));
        let lane = |tool| Lane {
            tool,
            dag_dir: PathBuf::new(),
            out: false,
            slow: false,
        };
        wanted.map(lane).collect()
    }

    /// Starts again with a new folder that holds the DAG and no results.
    pub fn empty(&mut self, dag: &Dag, lane: &mut Lane, step: Step) {
        self.folders += 1;
        lane.dag_dir = self.place.path().join(self.folders.to_string());
        let made = std::fs::create_dir(&lane.dag_dir);
        let written = made.and_then(|()| self.tools[lane.tool].write(dag, &lane.dag_dir));
        if let Err(error) = written {
            self.fail(dag, lane, step, error.to_string());
        }
    }

    /// Makes everything without a row of its own; a failure goes to the row of `step`.
    pub fn prepare(&mut self, dag: &Dag, lane: &mut Lane, step: Step) {
        self.empty(dag, lane, step);
        if lane.out {
            return;
        }
        let tool = &self.tools[lane.tool];
        let made = measure(tool.run(), &lane.dag_dir, &lane.log(), self.timeout);
        let made = made.and_then(|_| tool.take_ran(&lane.dag_dir));
        if let Err(trouble) = made {
            self.fail(dag, lane, step, trouble);
        }
    }

    /// Turns the dial, a moment later than the last run.
    pub fn turn(&mut self, dag: &Dag, lane: &mut Lane, dial: i64, round: u32) {
        if lane.out || (round > 0 && lane.slow) {
            return;
        }
        std::thread::sleep(TICK);
        if let Err(error) = self.tools[lane.tool].turn(dag, &lane.dag_dir, dial) {
            self.fail(dag, lane, Step::Change, error.to_string());
        }
    }

    /// Asks what would run.
    pub fn plan(&mut self, dag: &Dag, lane: &mut Lane, step: Step, round: u32, expected: usize) {
        let command = self.tools[lane.tool].plan();
        if !self.sample(dag, lane, step, round, command) {
            return;
        }
        let words = std::fs::read_to_string(lane.log()).unwrap_or_default();
        let planned = self.tools[lane.tool].planned(&words);
        if let Some(planned) = planned.filter(|planned| *planned != expected) {
            self.wrong = true;
            self.fail(
                dag,
                lane,
                step,
                format!("planned {planned} stages, not {expected}"),
            );
        }
    }

    /// Runs, and checks what came of it.
    pub fn run(&mut self, dag: &Dag, lane: &mut Lane, step: Step, round: u32, expected: &Expected) {
        let command = self.tools[lane.tool].run();
        if self.sample(dag, lane, step, round, command) {
            self.check(dag, lane, step, expected);
        }
    }

    /// Measures a command once. Whether there is anything to check.
    fn sample(
        &mut self,
        dag: &Dag,
        lane: &mut Lane,
        step: Step,
        round: u32,
        command: Command,
    ) -> bool {
        if lane.out || (round > 0 && lane.slow) {
            return false;
        }
        match measure(command, &lane.dag_dir, &lane.log(), self.timeout) {
            Ok(sample) => {
                lane.slow |= sample.wall > SLOW;
                self.row(dag, lane, step).samples.push(sample);
                true
            }
            Err(trouble) => {
                self.fail(dag, lane, step, trouble);
                false
            }
        }
    }

    /// Whether the tool has really done the work.
    fn check(&mut self, dag: &Dag, lane: &mut Lane, step: Step, expected: &Expected) {
        let tool = &self.tools[lane.tool];
        let answers = tool
            .take_ran(&lane.dag_dir)
            .and_then(|ran| Ok((ran, tool.last_value(dag, &lane.dag_dir)?)));
        let wanted = match lane.tool {
            0 => Some(expected.ablate_ran),
            _ => expected.ran,
        };
        let problem = match answers {
            Err(trouble) => trouble,
            Ok((_, value)) if value != expected.value => {
                format!("made {value}, not {}", expected.value)
            }
            Ok((ran, _)) if wanted.is_some_and(|wanted| wanted != ran) => {
                format!("ran {ran} stages, not {}", wanted.unwrap_or_default())
            }
            Ok((ran, _)) => {
                self.row(dag, lane, step).ran = Some(ran);
                return;
            }
        };
        self.wrong = true;
        self.fail(dag, lane, step, problem);
    }

    fn fail(&mut self, dag: &Dag, lane: &mut Lane, step: Step, trouble: String) {
        // A peer may fail: that is a finding. ablate may not.
        self.wrong |= lane.tool == 0;
        lane.out = true;
        let row = self.row(dag, lane, step);
        eprintln!("{}: {} FAILED: {trouble}", row.case, row.tool);
        row.samples.clear();
        row.trouble = Some(format!("FAILED: {trouble}"));
    }

    fn row(&mut self, dag: &Dag, lane: &Lane, step: Step) -> &mut Row {
        let (shape, size) = (dag.shape, dag.size);
        let case = Case { shape, size, step };
        let tool = self.tools[lane.tool].name();
        let mut rows = self.rows.iter_mut();
        rows.find(|row| row.case == case && row.tool == tool)
            .expect("every lane has its rows")
    }
}
