//! Bytes one after another, in memory that goes back to the system when they are dropped. An
//! allocator keeps what is freed for a while, and so the most that a process has at once grows.

use std::io;
use std::ops::Range;

use memmap2::MmapMut;

/// Bytes in one piece.
pub struct Pages {
    bytes: MmapMut,
    used: usize,
    large: bool,
}

impl Pages {
    /// With capacity for this many bytes; unused capacity takes no memory.
    pub fn with_room(bytes: usize) -> io::Result<Pages> {
        Ok(Pages {
            bytes: memory(bytes.max(1), false)?,
            used: 0,
            large: false,
        })
    }

    /// The same for tens of megabytes, in large pages where there are any: 16,000 small ones took a
    /// fifth of the reading of a data set.
    pub fn with_large_room(bytes: usize) -> io::Result<Pages> {
        Ok(Pages {
            bytes: memory(bytes.max(1), true)?,
            used: 0,
            large: true,
        })
    }

    /// So many zeros; those that are never changed take no memory.
    pub fn zeros(bytes: usize) -> io::Result<Pages> {
        let mut pages = Pages::with_room(bytes)?;
        pages.used = bytes;
        Ok(pages)
    }

    /// Puts bytes behind the others, and says where they are.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<Range<usize>> {
        let end = self.used + bytes.len();
        if end > self.bytes.len() {
            self.grow(end * 2)?;
        }
        let place = self.used..end;
        self.bytes[place.clone()].copy_from_slice(bytes);
        self.used = end;
        Ok(place)
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.used
    }

    /// All of them.
    pub fn all(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// The same, to change them.
    pub fn all_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.used]
    }

    #[cold]
    fn grow(&mut self, room: usize) -> io::Result<()> {
        let mut larger = memory(room, self.large)?;
        larger[..self.used].copy_from_slice(self.all());
        self.bytes = larger;
        Ok(())
    }
}

fn memory(bytes: usize, large: bool) -> io::Result<MmapMut> {
    let memory = MmapMut::map_anon(bytes)?;
    #[cfg(target_os = "linux")]
    if large {
        let _ = memory.advise(memmap2::Advice::HugePage);
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::Pages;

    #[test]
    fn zeros_can_be_changed() {
        let mut pages = Pages::zeros(3).unwrap();
        assert_eq!(pages.all(), [0, 0, 0]);
        pages.all_mut()[1] = 7;
        pages.push(&[1, 2]).unwrap();
        assert_eq!(pages.all(), [0, 7, 0, 1, 2]);
        assert!(Pages::zeros(0).unwrap().all().is_empty());
    }

    #[test]
    fn bytes_come_back_also_when_there_was_no_room() {
        for mut pages in [
            Pages::with_room(4).unwrap(),
            Pages::with_large_room(0).unwrap(),
        ] {
            let texts = ["né", "", "a longer text", "x"];
            let places = texts.map(|text| pages.push(text.as_bytes()).unwrap());
            assert_eq!(
                places.map(|place| &pages.all()[place]),
                texts.map(str::as_bytes)
            );
            assert_eq!(pages.len(), 17);
        }
    }
}
