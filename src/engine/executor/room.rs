//! What running stages take of this machine: another one starts when what it asks for is free. Knows nothing of
//! stages.

use crate::config::Resources;

/// What there is, and what of it is taken.
pub struct Room {
    cpus: usize,
    memory: u64,
    taken_cpus: usize,
    taken_memory: u64,
}

impl Room {
    /// All of it free.
    pub fn new(cpus: usize, memory: u64) -> Room {
        Room {
            cpus,
            memory,
            taken_cpus: 0,
            taken_memory: 0,
        }
    }

    /// Whether a stage may start now. One that asks for more than there is starts when nothing else runs.
    pub fn has(&self, resources: Resources) -> bool {
        let cpus = self.taken_cpus.saturating_add(self.cpus_of(resources));
        let memory = self.taken_memory.saturating_add(resources.memory);
        self.taken_cpus == 0 || (cpus <= self.cpus && memory <= self.memory)
    }

    /// Whether not even one place is free.
    pub fn is_full(&self) -> bool {
        self.taken_cpus >= self.cpus
    }

    /// Whether a stage asks for more memory than there is.
    pub fn is_too_small_for(&self, resources: Resources) -> bool {
        resources.memory > self.memory
    }

    /// A stage has started.
    pub fn take(&mut self, resources: Resources) {
        self.taken_cpus += self.cpus_of(resources);
        self.taken_memory = self.taken_memory.saturating_add(resources.memory);
    }

    /// A stage has ended.
    pub fn give_back(&mut self, resources: Resources) {
        self.taken_cpus -= self.cpus_of(resources);
        self.taken_memory = self.taken_memory.saturating_sub(resources.memory);
    }

    /// A stage that wants more places than there are takes all.
    fn cpus_of(&self, resources: Resources) -> usize {
        resources.cpus.min(self.cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(cpus: usize, memory: u64) -> Resources {
        Resources {
            cpus,
            memory,
            ..Resources::default()
        }
    }

    #[test]
    fn what_does_not_fit_waits_and_what_never_fits_runs_alone() {
        let mut room = Room::new(4, 24);
        assert!(room.has(asks(1, 16)));
        room.take(asks(1, 16));
        assert!(!room.has(asks(1, 16)), "two of 16 on 24");
        assert!(room.has(asks(3, 8)) && !room.has(asks(4, 0)));
        assert!(!room.has(asks(1, 100)), "not beside another");
        room.give_back(asks(1, 16));
        assert!(room.has(asks(1, 100)) && room.is_too_small_for(asks(1, 100)));
        room.take(asks(9, 100));
        assert!(room.is_full() && !room.has(asks(1, 0)));
        room.give_back(asks(9, 100));
        assert!(!room.is_full());
    }
}
