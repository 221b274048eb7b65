//! A real Slurm of three virtual nodes on loopback, whose daemons are children of the process that starts it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The daemons, and the folder with all that they write.
pub struct Cluster {
    folder: tempfile::TempDir,
    /// What names of nodes begin with.
    prefix: String,
    munged: Child,
    controller: Child,
    nodes: Vec<Child>,
}

/// How many nodes there are: n1, n2 and n3.
const NODES: usize = 3;

/// Where memory is limited, by control groups of version 1; of version 2 Slurm wants systemd to make them.
const MEMORY: &str = "/sys/fs/cgroup/memory";

/// How it is set up.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Tasks that an array may have.
    pub array: usize,
    /// Seconds for which ended jobs are remembered.
    pub remembered: usize,
    /// Processors of each node.
    pub cpus: usize,
    /// Whether the kernel ends jobs that take more memory than they asked for.
    pub memory: bool,
}

impl Cluster {
    /// A cluster without accounting. None where Slurm is not installed, or may not be started.
    pub fn start(limits: Limits) -> Option<Cluster> {
        let installed = ["munged", "slurmctld", "slurmd", "sbatch"]
            .iter()
            .all(|name| is_installed(name));
        if !installed || !is_root() {
            println!("skipped: Slurm and munge are not installed, or this is not root");
            return None;
        }
        if limits.memory && !can_limit_memory() {
            println!("skipped: memory cannot be limited by control groups of version 1 here");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("slurm").tempdir().unwrap();
        let at = folder.path();
        open_to_all(at);
        // Control groups have the names of nodes, and are there for the whole machine.
        let prefix = match limits.memory {
            true => format!("m{}n", std::process::id()),
            false => "n".to_owned(),
        };
        configure(at, limits, &prefix);
        let munged = munged(at);
        let mut cluster = Cluster {
            munged,
            controller: daemon(at, "slurmctld", &["-D"]),
            nodes: (1..=NODES).map(|n| node(at, &prefix, n)).collect(),
            prefix,
            folder,
        };
        cluster.wait_for_nodes();
        Some(cluster)
    }

    /// A program with this cluster in its environment.
    pub fn of(&self, mut command: Command) -> Command {
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf"));
        command
    }

    /// What a program of Slurm prints.
    pub fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = self.of(Command::new(program));
        let output = command.args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// kill -9 of the controller, and another one a second later.
    pub fn kill_controller(&mut self) {
        end(&mut self.controller);
        std::thread::sleep(Duration::from_secs(1));
        self.controller = daemon(self.folder.path(), "slurmctld", &["-D"]);
    }

    /// kill -9 of a node's daemon, by its number from 1, and another one a second later. Its jobs go on.
    pub fn kill_node(&mut self, number: usize) {
        end(&mut self.nodes[number - 1]);
        std::thread::sleep(Duration::from_secs(1));
        self.nodes[number - 1] = node(self.folder.path(), &self.prefix, number);
    }

    /// Waits until every node takes jobs.
    pub fn wait_for_nodes(&mut self) {
        let started = Instant::now();
        let all = format!("{}[1-{NODES}]", self.prefix);
        loop {
            let up = self.ask("sinfo", &["-h", "-N", "-t", "idle,mix,alloc", "-o", "%N"]);
            if up.lines().count() == NODES {
                return;
            }
            let waited = started.elapsed();
            assert!(waited < Duration::from_secs(60), "{}", self.words());
            if waited > Duration::from_secs(5) {
                self.ask(
                    "scontrol",
                    &["update", &format!("nodename={all}"), "state=resume"],
                );
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The last that the controller said.
    fn words(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("slurmctld.log"));
        let log = log.unwrap_or_default();
        let from = log.len().saturating_sub(2_000);
        log.get(from..).unwrap_or_default().to_owned()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.ask("scancel", &["--me", "--full"]);
        let gone = Instant::now() + Duration::from_secs(5);
        while !self.ask("squeue", &["-h"]).trim().is_empty() && Instant::now() < gone {
            std::thread::sleep(Duration::from_millis(100));
        }
        self.nodes.iter_mut().for_each(end);
        end(&mut self.controller);
        end(&mut self.munged);
        for number in 1..=NODES {
            let group = format!("{MEMORY}/slurm_{}{number}", self.prefix);
            remove_groups(Path::new(&group));
        }
    }
}

/// Control groups are removed from the innermost outwards; they have no files of their own.
fn remove_groups(group: &Path) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove_groups(&entry.path());
        }
    }
    let _ = std::fs::remove_dir(group);
}

fn can_limit_memory() -> bool {
    let group = Path::new(MEMORY).join(format!("ablate-{}", std::process::id()));
    let made = std::fs::create_dir(&group).is_ok();
    let limited = made && std::fs::write(group.join("memory.limit_in_bytes"), "100000000").is_ok();
    limited & (!made || std::fs::remove_dir(&group).is_ok())
}

fn is_installed(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).exists())
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|mine| mine.uid() == 0)
}

/// Its daemons read it as other users.
fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn start(folder: &Path, program: &str, arguments: &[&str]) -> Child {
    let log = std::fs::File::create(folder.join(format!("{program}.out"))).unwrap();
    super::ends_with_this_thread(program)
        .args(arguments)
        .env("SLURM_CONF", folder.join("slurm.conf"))
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

fn daemon(folder: &Path, program: &str, arguments: &[&str]) -> Child {
    let conf = folder.join("slurm.conf").display().to_string();
    start(folder, program, &[arguments, &["-f", &conf]].concat())
}

fn node(folder: &Path, prefix: &str, number: usize) -> Child {
    daemon(
        folder,
        "slurmd",
        &["-D", "-N", &format!("{prefix}{number}")],
    )
}

/// Says who somebody is. Answers once its socket is there.
fn munged(folder: &Path) -> Child {
    let path = |name: &str| folder.join("munge").join(name);
    std::fs::create_dir(folder.join("munge")).unwrap();
    let key: Vec<u8> = (0..=127).collect();
    std::fs::write(path("key"), key).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path("key"), mode).unwrap();
    let option = |name: &str, file: &str| format!("--{name}={}", path(file).display());
    let options = [
        "--foreground".to_owned(),
        option("key-file", "key"),
        option("socket", "socket"),
        option("pid-file", "pid"),
        option("log-file", "log"),
        option("seed-file", "seed"),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let child = start(folder, "munged", &options);
    super::wait_until(|| path("socket").exists());
    child
}

/// Ports that nobody listens at.
fn ports() -> Vec<u16> {
    let held: Vec<std::net::TcpListener> = (0..=NODES)
        .map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    held.iter()
        .map(|it| it.local_addr().unwrap().port())
        .collect()
}

fn configure(folder: &Path, limits: Limits, prefix: &str) {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim().split('.').next().unwrap_or_default().to_owned();
    let ports = ports();
    let place = |name: &str| -> PathBuf { folder.join(name) };
    std::fs::create_dir(place("state")).unwrap();
    let mut text = format!(
        "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\nSlurmUser=root\nSlurmdUser=root\n\
         AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={at}/munge/socket\n\
         StateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool-%n\n\
         SlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/slurmd-%n.pid\n\
         SlurmctldLogFile={at}/slurmctld.log\nSlurmdLogFile={at}/slurmd-%n.log\n\
         CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\nProctrackType=proctrack/linuxproc\n\
         TaskPlugin={task}\nMpiDefault=none\nSwitchType=switch/none\n\
         JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nDefMemPerCPU=500\n\
         SchedulerType=sched/backfill\n\
         SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2\n\
         SlurmdParameters=config_overrides\nReturnToService=2\nSlurmdTimeout=10\nInactiveLimit=0\nKillWait=3\n\
         MinJobAge={remembered}\nMaxArraySize={array}\nMaxJobCount=5000\nJobRequeue=1\n",
        port = ports[0],
        task = match limits.memory {
            true => "task/cgroup",
            false => "task/none",
        },
        remembered = limits.remembered,
        array = limits.array,
        at = folder.display(),
    );
    for (n, port) in ports.iter().enumerate().skip(1) {
        std::fs::create_dir(place(&format!("spool-{prefix}{n}"))).unwrap();
        text += &format!(
            "NodeName={prefix}{n} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=4000 State=UNKNOWN\n",
            cpus = limits.cpus,
        );
    }
    text += "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
    std::fs::write(place("slurm.conf"), text).unwrap();
    if limits.memory {
        let text = "CgroupPlugin=cgroup/v1\nConstrainRAMSpace=yes\n";
        std::fs::write(place("cgroup.conf"), text).unwrap();
    }
}
