//! What some instances need: all that they read, directly or through others.

use super::instance::Plan;

/// Adds all that the wanted instances read.
pub fn reach(plan: &Plan<'_>, wanted: &mut [bool]) {
    // Readers come after what they read, so one pass from the end reaches everything.
    for n in (0..wanted.len()).rev() {
        if wanted[n] {
            for source in plan.instances[n].sources() {
                wanted[source.instance] = true;
            }
        }
    }
}
