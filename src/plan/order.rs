//! The order of stages: readers after what they read. Finds cycles. No recursion, so that
//! a chain of any length fits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::config::{Read, StageDecl};
use crate::diagnostic::Diagnostic;

/// The positions of the stages in an order that respects what they read,
/// as near to the order of the file as possible.
pub fn topological(stages: &[StageDecl]) -> Result<Vec<usize>, Vec<Diagnostic>> {
    let mut readers = vec![Vec::new(); stages.len()];
    let mut missing = vec![0_usize; stages.len()];
    for (n, stage) in stages.iter().enumerate() {
        for read in &stage.reads {
            readers[read.stage].push(n);
            missing[n] += 1;
        }
    }
    let ready = (0..stages.len()).filter(|n| missing[*n] == 0).map(Reverse);
    let mut ready: BinaryHeap<_> = ready.collect();
    let mut order = Vec::with_capacity(stages.len());
    while let Some(Reverse(n)) = ready.pop() {
        order.push(n);
        for reader in &readers[n] {
            missing[*reader] -= 1;
            if missing[*reader] == 0 {
                ready.push(Reverse(*reader));
            }
        }
    }
    if order.len() == stages.len() {
        Ok(order)
    } else {
        Err(vec![cycle(stages, &missing)])
    }
}

/// Follows unfinished reads from any unfinished stage until one comes round again.
fn cycle(stages: &[StageDecl], missing: &[usize]) -> Diagnostic {
    let mut seen_at = vec![usize::MAX; stages.len()];
    let mut path: Vec<(usize, &Read)> = Vec::new();
    let mut at = missing
        .iter()
        .position(|n| *n > 0)
        .expect("some stage is unfinished");
    while seen_at[at] == usize::MAX {
        seen_at[at] = path.len();
        let reads = &stages[at].reads;
        let read = reads
            .iter()
            .find(|read| missing[read.stage] > 0)
            .expect("an unfinished stage reads an unfinished one");
        path.push((at, read));
        at = read.stage;
    }
    let round = &path[seen_at[at]..];
    let shown = round.iter().take(8);
    let mut names: Vec<&str> = shown.map(|(n, _)| stages[*n].name.as_str()).collect();
    if round.len() > 8 {
        names.push("…");
    }
    names.push(&stages[at].name);
    let (last, back) = round[round.len() - 1];
    Diagnostic::new(format!("dependency cycle: {}", names.join(" <- ")))
        .at(
            back.span,
            format!("`{}` reads `{}` here", stages[last].name, stages[at].name),
        )
        .help("remove one of these inputs")
}
