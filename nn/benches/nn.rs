//! Our time beside PyTorch's, in one run: `cargo bench -p nn -- [--threads N] [--python PATH] [workloads]`.
//!
//! Rounds are interleaved (ours, theirs, ours, ...), so that whatever else the machine does
//! falls on both. Ratios are ours over theirs: of median wall times, of the best ones (which say most on a
//! busy machine), and of CPU times.
//! Without PyTorch (`pip install torch` into a virtual environment, then `--python venv/bin/python`) only our times appear.

mod workloads;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use workloads::{WORKLOADS, Workload};

const ROUNDS: usize = 15;

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| a != "--bench");
    let (mut threads, mut python, mut chosen) = (2usize, "python3".to_string(), Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--threads" => {
                threads = args
                    .next()
                    .and_then(|n| n.parse().ok())
                    .expect("--threads needs a number")
            }
            "--python" => python = args.next().expect("--python needs a path"),
            name => chosen.push(name.to_string()),
        }
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("a thread pool");
    let mut torch = Torch::start(&python, threads);
    println!(
        "{threads} threads, {:?}; {}",
        nn::numeric::simd::isa(),
        torch.as_ref().map_or(
            "PyTorch not found: pip install torch, then --python".into(),
            |t| t.version.clone()
        )
    );
    println!(
        "{:12} {:>9} {:>9} {:>17} {:>9} {:>8} {:>8} {:>8}",
        "workload", "ours ms", "torch ms", "spread of ours", "GFLOP/s", "median", "best", "cpu"
    );
    let mut peak = 0.0;
    for workload in WORKLOADS
        .iter()
        .filter(|w| chosen.is_empty() || chosen.iter().any(|c| c == w.name))
    {
        row(workload, &pool, torch.as_mut(), &mut peak);
    }
}

fn row(
    workload: &Workload,
    pool: &rayon::ThreadPool,
    mut torch: Option<&mut Torch>,
    peak: &mut f64,
) {
    let mut step = pool.install(|| (workload.make)());
    (0..3).for_each(|_| pool.install(&mut step));
    let (mut ours, mut theirs, mut cpu_ours, mut cpu_theirs) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        (0..workload.repeats).for_each(|_| pool.install(&mut step));
        let n = workload.repeats as f64;
        ours.push(wall.elapsed().as_secs_f64() / n);
        cpu_ours.push((cpu_seconds() - cpu) / n);
        if let Some((wall, cpu)) = torch.as_mut().and_then(|t| t.time(workload)) {
            theirs.push(wall);
            cpu_theirs.push(cpu);
        }
    }
    let (mine, other) = (median(&mut ours), median(&mut theirs));
    let rate = workload.flops / mine / 1e9;
    if workload.name == "GEMM" {
        // The faster of the two: what the machine can do, whoever does it.
        *peak = workload.flops / mine.min(other) / 1e9;
    }
    let share = if *peak > 0.0 && workload.flops > 0.0 {
        format!(" ({:.0}% of peak GEMM)", 100.0 * rate / *peak)
    } else {
        String::new()
    };
    let spread = format!("{:.2}..{:.2}", ours[0] * 1e3, ours[ours.len() - 1] * 1e3);
    println!(
        "{:12} {:9.3} {:9.3} {:>17} {:9.1} {:8.3} {:8.3} {:8.3}{share}",
        workload.name,
        mine * 1e3,
        other * 1e3,
        spread,
        rate,
        mine / other,
        ours[0] / theirs.first().unwrap_or(&f64::NAN),
        median(&mut cpu_ours) / median(&mut cpu_theirs)
    );
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Seconds that all threads of this process ran, from the kernel's accounts; NaN where there are none.
fn cpu_seconds() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return f64::NAN;
    };
    let run = |task: std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("schedstat"))
            .ok()?
            .split(' ')
            .next()?
            .parse::<f64>()
            .ok()
    };
    tasks.flatten().filter_map(run).sum::<f64>() / 1e9
}

struct Torch {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    version: String,
}

impl Torch {
    fn start(python: &str, threads: usize) -> Option<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../benches/nn/side.py");
        let mut command = Command::new(python);
        command
            .arg(script)
            .arg(threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let mut answers = BufReader::new(child.stdout.take()?);
        let mut version = String::new();
        answers.read_line(&mut version).ok()?;
        (!version.is_empty()).then(|| Torch {
            child,
            answers,
            version: version.trim().into(),
        })
    }

    fn time(&mut self, workload: &Workload) -> Option<(f64, f64)> {
        writeln!(
            self.child.stdin.as_mut()?,
            "{} {}",
            workload.name,
            workload.repeats
        )
        .ok()?;
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        let (wall, cpu) = line.trim().split_once(' ')?;
        Some((wall.parse().ok()?, cpu.parse().ok()?))
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends with its input; nothing is left to do if it did not.
        let _ = self.child.wait();
    }
}
