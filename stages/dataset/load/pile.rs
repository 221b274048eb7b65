//! Texts one after another, in memory that goes back to the system when they are dropped. An
//! allocator keeps what is freed for a while, and so the most that a process has at once grows.

use std::io;
use std::ops::Range;

use memmap2::MmapMut;

/// Texts in one piece.
pub struct Pile {
    bytes: MmapMut,
    used: usize,
}

impl Pile {
    /// With room for so many bytes; what is not used takes no memory.
    pub fn with_room(bytes: usize) -> io::Result<Pile> {
        Ok(Pile {
            bytes: memory(bytes.max(1))?,
            used: 0,
        })
    }

    /// Puts a text behind the others, and says where it is.
    pub fn push(&mut self, text: &str) -> io::Result<Range<usize>> {
        let end = self.used + text.len();
        if end > self.bytes.len() {
            let mut larger = memory(end * 2)?;
            larger[..self.used].copy_from_slice(&self.bytes[..self.used]);
            self.bytes = larger;
        }
        let place = self.used..end;
        self.bytes[place.clone()].copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(place)
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.used
    }

    /// The text at a place that `push` gave.
    pub fn text(&self, place: Range<usize>) -> &str {
        std::str::from_utf8(&self.bytes[place]).expect("a text was put there")
    }
}

fn memory(bytes: usize) -> io::Result<MmapMut> {
    let memory = MmapMut::map_anon(bytes)?;
    // In large pages where there are any: 16,000 small ones took a fifth of the reading.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::Pile;

    #[test]
    fn texts_come_back_also_when_there_was_no_room() {
        let mut pile = Pile::with_room(4).unwrap();
        let texts = ["né", "", "a longer text", "x"];
        let places = texts.map(|text| pile.push(text).unwrap());
        assert_eq!(places.map(|place| pile.text(place).to_owned()), texts);
        assert_eq!(pile.len(), 17);
    }
}
