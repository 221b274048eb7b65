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

/// Those of the wanted instances that no other of them reads.
pub fn ends(plan: &Plan<'_>, wanted: &[bool]) -> Vec<bool> {
    let mut ends = wanted.to_vec();
    for n in (0..wanted.len()).filter(|n| wanted[*n]) {
        for source in plan.instances[n].sources() {
            ends[source.instance] = false;
        }
    }
    ends
}
