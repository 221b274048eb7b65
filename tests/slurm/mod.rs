//! `--executor slurm` on a real Slurm: what comes out of it is what this machine gives, and nothing runs twice,
//! whoever is killed. `ABLATE_SOAK=50 cargo test --workspace --test pipelines slurm -- --nocapture` kills at random.

use std::process::{Child, Command};
use std::time::Duration;

use crate::daemons::slurm::{Cluster, Limits};
use crate::daemons::wait_until;
use crate::lab::{CommandOutput, Lab, Ran};
use crate::schedule::signal;

/// Jobs are soon forgotten, and an array takes few of them.
const LIMITS: Limits = Limits {
    array: 4,
    remembered: 2,
    cpus: 2,
    memory: false,
};

const SLURM: [&str; 2] = ["--executor", "slurm"];

/// Stages that say that they were executed, take their time, and are collected.
fn sweep(stages: usize, seconds: f64) -> Lab {
    let lab = Lab::loose();
    let log = lab.path("executed").display().to_string();
    let axis: Vec<String> = (1..=stages).map(|n| n.to_string()).collect();
    let pipeline = format!(
        "[axes]\nn = [{axis}]\n\n\
         [stage.a]\nkind = \"table\"\nrows = [{{ x = 1 }}, {{ x = 2 }}]\n\n\
         [stage.b]\nkind = \"sql\"\ninputs = {{ t = \"a\" }}\nquery = \"SELECT x * ${{n}} AS x FROM t\"\n\n\
         [stage.slow]\nkind = \"command\"\ninputs = {{ t = \"b\" }}\noutputs = [\"o\"]\n\
         run = [\"sh\", \"-c\", \"echo ${{n}} >> {log}; sleep {seconds}; cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\"]\n\n\
         [stage.all]\nkind = \"sql\"\ninputs = {{ t = \"slow.o\" }}\nover = [\"n\"]\n\
         query = \"SELECT n, sum(x) AS x FROM t GROUP BY n ORDER BY n\"\n\n\
         [executor.slurm]\ngrace = \"5s\"\npoll_every = \"1s\"\nin_flight = 300\n",
        axis = axis.join(", "),
    );
    lab.write("pipeline.toml", &pipeline);
    lab
}

/// How often commands were executed.
fn executed(lab: &Lab) -> usize {
    let log = std::fs::read_to_string(lab.path("executed"));
    log.unwrap_or_default().lines().count()
}

fn command(cluster: &Cluster, lab: &Lab, more: &[&str]) -> Command {
    cluster.of(lab.command(&[&["run", "--json"], &SLURM[..], more].concat()))
}

fn start(cluster: &Cluster, lab: &Lab) -> Child {
    let piped = std::process::Stdio::piped;
    let mut command = command(cluster, lab, &[]);
    command.stdout(piped()).stderr(piped()).spawn().unwrap()
}

fn end(child: Child) -> Ran {
    Ran::of(CommandOutput::of(child.wait_with_output().unwrap()))
}

fn run(cluster: &Cluster, lab: &Lab) -> Ran {
    end(start(cluster, lab))
}

/// What a run on this machine gives, in a store of its own, and the log begun anew.
fn here(lab: &Lab) -> std::collections::BTreeMap<String, String> {
    lab.run_with(&["--store", "here"]);
    let digests = lab
        .ablate(&["runs", "last", "--json", "--store", "here"])
        .good();
    let _ = std::fs::remove_file(lab.path("executed"));
    crate::lab::digests_of(&digests.stdout)
}

/// The processes of workers that are at work.
fn workers(lab: &Lab) -> Vec<u32> {
    let files = lab.files("jobs").into_iter();
    let started = files.filter(|path| path.ends_with("started.json"));
    let process = |path: std::path::PathBuf| {
        let value: serde_json::Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let process = value["process"].as_u64()? as u32;
        let lives = std::path::Path::new(&format!("/proc/{process}")).exists();
        lives.then_some(process)
    };
    started.filter_map(process).collect()
}

/// The results are those of this machine, each is recorded once, and nothing is left of the jobs.
fn assert_as_here(lab: &Lab, here: &std::collections::BTreeMap<String, String>) {
    assert_eq!(&lab.digests(), here);
    let left = lab.files("jobs");
    assert!(
        !lab.path(".ablate/jobs").exists(),
        "jobs are left: {left:?}"
    );
    lab.ablate(&["fsck"]).good();
    lab.ablate(&["challenge", "here"]).good();
}

#[test]
fn a_cluster_gives_what_this_machine_gives_whoever_is_killed() {
    let Some(mut cluster) = Cluster::start(LIMITS) else {
        return;
    };
    std::thread::scope(|threads| {
        // A minute is the least that Slurm limits: the others have time meanwhile.
        threads.spawn(|| a_time_limit(&cluster));
        undisturbed(&cluster);
        a_driver_is_killed(&cluster);
        a_worker_is_killed(&cluster);
        a_node_is_drained(&cluster);
        two_drivers(&cluster);
    });
    daemons_are_killed(&mut cluster);
    if let Some(times) = crate::soak::soak() {
        at_random(&mut cluster, times);
        a_paper(&cluster);
    }
}

/// A query that takes more memory than its job has gets twice as much; one that has not said how much it wants is told
/// to, and is not tried again.
#[test]
fn a_job_that_runs_out_of_memory_gets_more() {
    let limits = Limits {
        memory: true,
        ..LIMITS
    };
    let Some(cluster) = Cluster::start(limits) else {
        return;
    };
    let lab = Lab::loose();
    let digits: Vec<String> = (0..10).map(|x| format!("{{ x = {x} }}")).collect();
    let pipeline = format!(
        "[stage.ten]\nkind = \"table\"\nrows = [{}]\n\n\
         [stage.thousand]\nkind = \"sql\"\ninputs = {{ t = \"ten\" }}\n\
         query = \"SELECT a.x * 100 + b.x * 10 + c.x AS x FROM t AS a CROSS JOIN t AS b CROSS JOIN t AS c\"\n\n\
         [stage.hungry]\nkind = \"sql\"\ninputs = {{ t = \"thousand\", u = \"ten\" }}\n\
         resources = {{ memory = \"150MB\" }}\n\
         query = \"SELECT SUM(a.x + b.x + c.x) AS s FROM t AS a CROSS JOIN t AS b CROSS JOIN u AS c WHERE c.x < 4\"\n\n\
         [executor.slurm]\ngrace = \"5s\"\npoll_every = \"1s\"\nretries = 3\n",
        digits.join(", ")
    );
    lab.write("pipeline.toml", &pipeline);
    let expected = here(&lab);
    let ran = run(&cluster, &lab);
    let notes = ran.notes().join("\n");
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    assert!(notes.contains("`hungry` ran out of memory on "), "{notes}");
    assert!(
        notes.contains("with 150.0 MiB, and gets 300.0 MiB: it is submitted again"),
        "{notes}"
    );
    assert_as_here(&lab, &expected);
    // The cluster gives 500 MiB to who does not ask: no attempt would have more.
    lab.edit("resources = { memory = \"150MB\" }\n", "");
    lab.edit("u AS c WHERE c.x < 4", "u AS c CROSS JOIN u AS d");
    let ran = run(&cluster, &lab);
    assert_eq!(ran.printed.code, 1, "{:?}", ran.printed);
    assert!(!ran.printed.stdout.contains("submitted again"), "{ran:?}");
    let said = &ran.printed.stdout;
    assert!(said.contains("ran out of memory on "), "{said}");
    assert!(said.contains(": set `resources.memory`"), "{said}");
    a_program_runs_out_of_memory(&cluster);
}

/// A program has a control group inside its job's. More memory for the job helps if the job's was used up, and not if the
/// program reached the limit that its stage sets.
fn a_program_runs_out_of_memory(cluster: &Cluster) {
    let lab = Lab::loose();
    // What has no end of line is kept until there is one.
    lab.write(
        "pipeline.toml",
        "[stage.one]\nkind = \"table\"\nrows = [{ x = 1 }]\n\n\
         [stage.hungry]\nkind = \"command\"\ninputs = { t = \"one\" }\noutputs = [\"o\"]\n\
         resources = { memory = \"200MB\" }\n\
         run = [\"sh\", \"-c\", \"head -c 300000000 /dev/zero | tail > shown && cp $ABLATE_IN/t.parquet $ABLATE_OUT/o.parquet\"]\n\n\
         [executor.slurm]\ngrace = \"5s\"\npoll_every = \"1s\"\nretries = 3\n",
    );
    let ran = run(cluster, &lab);
    let notes = ran.notes().join("\n");
    assert!(notes.contains("`hungry` ran out of memory on "), "{notes}");
    assert!(
        notes.contains("with 200.0 MiB, and gets 400.0 MiB: it is submitted again"),
        "{notes}"
    );
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);

    let own = "resources = { memory = \"2GB\" }\nmemory = 0.1\n";
    lab.edit("resources = { memory = \"200MB\" }\n", own);
    lab.edit("> shown", "> shown.txt");
    let ran = run(cluster, &lab);
    assert_eq!(ran.printed.code, 1, "{:?}", ran.printed);
    let said = format!("{}{}", ran.printed.stdout, ran.printed.stderr);
    assert!(!said.contains("submitted again"), "{said}");
    assert!(
        said.contains("its limit is 0.1 GB; raise `memory`"),
        "{said}"
    );
}

/// Thirty stages in arrays of four, of jobs that are forgotten after two seconds.
fn undisturbed(cluster: &Cluster) {
    let lab = sweep(10, 0.1);
    let expected = here(&lab);
    let ran = run(cluster, &lab);
    assert_eq!(ran.with("ran").len(), 22, "{}", ran.printed.stderr);
    assert_eq!(executed(&lab), 10);
    assert_as_here(&lab, &expected);
    run(cluster, &lab).ran([]);
}

fn a_driver_is_killed(cluster: &Cluster) {
    let lab = sweep(6, 2.0);
    let expected = here(&lab);
    let mut child = start(cluster, &lab);
    wait_until(|| executed(&lab) >= 2);
    signal(child.id(), "KILL");
    child.wait().unwrap();
    let plan = lab.ablate(&["plan"]).good().stdout;
    assert!(plan.contains("in the queue"), "{plan}");
    let ran = run(cluster, &lab);
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    assert_eq!(executed(&lab), 6, "nothing ran twice");
    assert_as_here(&lab, &expected);
}

fn a_worker_is_killed(cluster: &Cluster) {
    let lab = sweep(2, 2.0);
    let expected = here(&lab);
    let child = start(cluster, &lab);
    wait_until(|| executed(&lab) >= 1 && !workers(&lab).is_empty());
    let victim = workers(&lab)[0];
    signal(victim, "KILL");
    let ran = end(child);
    let notes = ran.notes().join("\n");
    assert!(notes.contains(": it is submitted again"), "{notes}");
    assert!(notes.contains(" on n"), "{notes}");
    assert_as_here(&lab, &expected);
}

/// Jobs outlive the daemon of their node, and results the controller's memory of them.
fn daemons_are_killed(cluster: &mut Cluster) {
    let lab = sweep(6, 1.5);
    let expected = here(&lab);
    let child = start(cluster, &lab);
    wait_until(|| executed(&lab) >= 1);
    cluster.kill_controller();
    cluster.kill_node(1);
    let ran = end(child);
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    assert_as_here(&lab, &expected);
    cluster.wait_for_nodes();
}

fn a_node_is_drained(cluster: &Cluster) {
    let lab = sweep(4, 0.1);
    let expected = here(&lab);
    cluster.ask(
        "scontrol",
        &["update", "nodename=n2", "state=drain", "reason=test"],
    );
    let ran = run(cluster, &lab);
    cluster.ask("scontrol", &["update", "nodename=n2", "state=resume"]);
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    assert_eq!(executed(&lab), 4);
    assert_as_here(&lab, &expected);
}

/// Each key is executed by one of them.
fn two_drivers(cluster: &Cluster) {
    let lab = sweep(6, 0.5);
    let expected = here(&lab);
    let both = [start(cluster, &lab), start(cluster, &lab)];
    for child in both {
        let ran = end(child);
        assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    }
    assert_eq!(executed(&lab), 6, "nothing ran twice");
    assert_as_here(&lab, &expected);
}

/// A sweep of 200 stages, of which somebody is killed again and again; drivers are started again.
fn at_random(cluster: &mut Cluster, times: u64) {
    let lab = sweep(99, 0.3);
    let expected = here(&lab);
    let mut child = start(cluster, &lab);
    let mut runs = 1;
    for time in 0..times {
        std::thread::sleep(Duration::from_millis(300 + time * 7919 % 1500));
        match time * 5 % 7 {
            0 | 1 => {
                let _ = child.kill();
                child.wait().unwrap();
                child = start(cluster, &lab);
                runs += 1;
            }
            2 | 3 => cluster.kill_node(1 + time as usize % 3),
            4 => cluster.kill_controller(),
            _ => {
                if let Some(victim) = workers(&lab).first() {
                    // It may have ended meanwhile.
                    let _ = Command::new("kill")
                        .args(["-9", &victim.to_string()])
                        .status();
                }
            }
        }
        if child.try_wait().unwrap().is_some() {
            std::fs::remove_dir_all(lab.path(".ablate")).unwrap();
            child = start(cluster, &lab);
            runs += 1;
        }
    }
    let ran = end(child);
    println!(
        "{times} kills, {runs} runs; notes of the last: {:?}",
        ran.notes()
    );
    let last = if ran.printed.code == 0 {
        ran
    } else {
        run(cluster, &lab)
    };
    assert_eq!(last.printed.code, 0, "{:?}", last.printed);
    assert_as_here(&lab, &expected);
    cluster.wait_for_nodes();
}

/// The first attempt takes longer than its minute, the second one has two.
fn a_time_limit(cluster: &Cluster) {
    let lab = sweep(1, 300.0);
    let expected = {
        // Nobody waits for five minutes here.
        lab.edit("sleep 300", "sleep 0");
        let expected = here(&lab);
        lab.edit("sleep 0", "sleep 300");
        expected
    };
    lab.edit(
        "outputs = [\"o\"]",
        "outputs = [\"o\"]\nresources = { time = \"1m\" }",
    );
    // The second attempt finds what the first one wrote down.
    let log = lab.path("executed").display().to_string();
    let again = format!("[ $(wc -l < {log}) -gt 1 ] || sleep 300");
    lab.edit("sleep 300", &again);
    let ran = run(cluster, &lab);
    let notes = ran.notes().join("\n");
    assert!(notes.contains("ran out of time on n"), "{notes}");
    assert!(notes.contains("after 60 s, and gets 120 s"), "{notes}");
    assert_eq!(ran.printed.code, 0, "{:?}", ran.printed);
    assert_eq!(executed(&lab), 2);
    assert_eq!(lab.digests(), expected);
}

/// P1 `smoke` gives what its lock says.
fn a_paper(cluster: &Cluster) {
    let store = tempfile::tempdir().unwrap();
    let paper = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/papers/p1_dynamic_perturbations"
    );
    let lab = Lab::loose();
    let place = store.path().join("store").display().to_string();
    let options = [
        "-C",
        paper,
        "--store",
        &place,
        "run",
        "--profile",
        "smoke",
        "--locked",
    ];
    let mut command = cluster.of(lab.command(&[&options[..], &SLURM].concat()));
    let printed = CommandOutput::of(command.output().unwrap()).good();
    println!("{}", printed.stdout.lines().last().unwrap_or_default());
}
