//! Which run a command means: by name, or the newest that was made with the profile and the
//! settings that were given. Results of another overlay are never shown in their place.

use store::{Run, Store};

use super::{Exit, Global, history};
use crate::diagnostic::Diagnostic;

/// The run of this name (number, tag, `last` or `prev`) among those made with `--profile` and
/// `--set`, if any of these was given.
pub fn run(global: &Global, store: &Store, name: &str) -> Result<Run, Exit> {
    if global.profile.is_none() && global.set.is_empty() {
        return history::find(store, name);
    }
    let asked = overlay(global.profile.as_deref(), &global.set);
    let back = match name {
        "last" => 0,
        "prev" => 1,
        _ => {
            let run = history::find(store, name)?;
            if fits(global, &run) {
                return Ok(run);
            }
            let was = match overlay(run.profile.as_deref(), &settings(&run)) {
                overlay if overlay.is_empty() => "without a profile or settings".to_owned(),
                overlay => format!("with {overlay}"),
            };
            let wrong = Diagnostic::new(format!("run {} was made {was}, not with {asked}", run.id));
            return Err(wrong
                .help("a run that is named needs neither --profile nor --set")
                .into());
        }
    };
    let runs = store.runs(usize::MAX)?;
    let mut fitting = runs.into_iter().filter(|run| fits(global, run));
    fitting.nth(back).ok_or_else(|| {
        let which = if back == 0 { "no run" } else { "no second run" };
        Diagnostic::new(format!("{which} was made with {asked}"))
            .help(format!("`ablate run {asked}` makes one"))
            .help("`ablate runs` lists those that are there")
            .into()
    })
}

fn fits(global: &Global, run: &Run) -> bool {
    // The order of settings matters only to a value that is set twice.
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    run.profile == global.profile && sorted(settings(run)) == sorted(global.set.clone())
}

fn settings(run: &Run) -> Vec<String> {
    serde_json::from_str(&run.settings).unwrap_or_default()
}

/// As it is typed.
fn overlay(profile: Option<&str>, sets: &[String]) -> String {
    let profile = profile.map(|profile| format!("--profile {profile}"));
    let sets = sets.iter().map(|set| format!("--set {set}"));
    profile
        .into_iter()
        .chain(sets)
        .collect::<Vec<_>>()
        .join(" ")
}
