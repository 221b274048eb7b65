//! Memory that starts at a cache line: a wide vector that lies in two lines takes two reads.

/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;

/// Numbers that can be made more or fewer, from the start of a cache line on.
#[derive(Clone, Debug, Default)]
pub struct Lines<T> {
    data: Vec<T>,
    /// Where they begin in `data`. In a clone, which lies elsewhere, that need not be a line's start.
    start: usize,
    len: usize,
}

impl<T: Copy + Default> Lines<T> {
    /// Room for `len` numbers, with whatever the memory held before.
    pub fn room(&mut self, len: usize) -> &mut [T] {
        let spare = LINE / size_of::<T>();
        if self.data.len() < len + spare {
            self.data.resize(len + spare, T::default());
        }
        // Where nobody can tell, any start will do: no result depends on it.
        self.start = self.data.as_ptr().align_offset(LINE).min(spare);
        self.len = len;
        &mut self.data[self.start..][..len]
    }
}

impl<T> Lines<T> {
    /// The numbers.
    pub fn get(&self) -> &[T] {
        &self.data[self.start..][..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_start_at_a_line_and_a_clone_has_the_same() {
        let mut lines = Lines::<f32>::default();
        assert_eq!(lines.get(), [0.0; 0]);
        for len in [3, 1000, 5] {
            let room = lines.room(len);
            assert_eq!(room.len(), len);
            assert_eq!(room.as_ptr() as usize % LINE, 0);
            room.fill(len as f32);
            assert_eq!(lines.clone().get(), vec![len as f32; len]);
        }
    }
}
