//! The options of a command, with the choices of a world taken.

use super::global::Global;
use crate::publish::multiverse::World;

/// The same options, with the choices of a world taken.
pub fn in_world(global: &Global, world: &World) -> Global {
    let mut own = global.clone();
    own.set.extend(world.settings());
    own.quiet |= !world.choices.is_empty() && global.json;
    own
}
