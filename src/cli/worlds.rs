//! The options of a command, with the choices of a world taken; and whether every choice can be taken.

use super::exit::Exit;
use super::global::{Global, in_pipeline};
use crate::config::Pipeline;
use crate::plan;
use crate::publish::multiverse::{World, worlds};

/// The same options, with the choices of a world taken.
pub fn in_world(global: &Global, world: &World) -> Global {
    let mut own = global.clone();
    own.set.extend(world.settings());
    own.quiet |= !world.choices.is_empty() && global.json;
    own
}

/// Whether the options take a choice already.
pub fn takes_a_choice(global: &Global) -> bool {
    global.set.iter().any(|set| set.starts_with("choices."))
}

/// Plans the pipeline once with each of its choices: one that cannot be taken must not be found out after hours.
/// Without `--set`, which may be about what a choice sets too.
pub fn all_can_be_taken(global: &Global, pipeline: &Pipeline) -> Result<(), Exit> {
    let written = Global {
        set: Vec::new(),
        quiet: true,
        ..global.clone()
    };
    for world in worlds(pipeline, false).iter().skip(1) {
        let pipeline = in_world(&written, world).pipeline()?;
        in_pipeline(&pipeline, plan::build(&pipeline))?;
    }
    Ok(())
}
