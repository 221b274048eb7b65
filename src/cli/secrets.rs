//! Variables with secrets, looked for before anything runs: a token that is missing must not be found after hours.

use stages::programs::secrets::{HELP, missing, unset};
use store::Store;

use super::exit::Exit;
use crate::diagnostic::Diagnostic;
use crate::inspect::status::{InstanceStatus, instance_statuses};
use crate::plan::Plan;

/// Refuses to run if a variable has no value that a stage needs which is not cached: one that names it, or one that
/// starts the model of such a stage.
pub fn check(plan: &Plan<'_>, wanted: &[bool], store: &Store) -> Result<(), Exit> {
    let lacking: Vec<Option<String>> = (0..plan.instances.len())
        .map(|n| lacks(plan, n).filter(|_| wanted[n]))
        .collect();
    if lacking.iter().all(Option::is_none) {
        return Ok(());
    }
    let statuses = instance_statuses(plan, wanted, Some(store));
    for n in (0..plan.instances.len()).filter(|n| wanted[*n]) {
        let instance = &plan.instances[n];
        let mut read = instance.sources().map(|source| source.instance);
        let name = lacking[n]
            .clone()
            .or_else(|| read.find_map(|m| lacking[m].clone()));
        if let Some(name) = name.filter(|_| !matches!(statuses[n], InstanceStatus::Cached { .. })) {
            let message = format!("`{}`: {}", instance.label, missing(&name));
            return Err(Diagnostic::new(message).help(HELP).into());
        }
    }
    Ok(())
}

/// The variable that an instance needs and that has no value.
fn lacks(plan: &Plan<'_>, n: usize) -> Option<String> {
    let program = plan.decl(n).kind.program(&plan.instances[n].params)?;
    unset(&program.secrets).map(str::to_owned)
}
