//! Words to small numbers, in the order of their first appearance.
//!
//! Knows nothing of tokens. Written here because it is the inner loop of the kind: one arena,
//! no allocation for each word, and a hash that is the same in every process.

use super::numbers::LIMIT;
use crate::pages::Pages;

/// Distinct byte strings, numbered from 0.
pub struct Interner {
    bytes: Vec<u8>,
    /// Where each string ends in `bytes`; it begins where the one before ends.
    ends: Vec<u32>,
    slots: Slots,
}

/// Open addressing: in each slot the key of a string and its number. Tables are large and short-lived, so that they
/// have memory of their own, which goes back at once.
struct Slots(Pages);

impl Slots {
    /// Bytes of a key and of a number and one more, which is 0 in an empty slot.
    const SIZE: usize = 20;

    /// So many empty slots.
    fn new(slots: usize) -> Slots {
        let pages = Pages::zeros(slots * Slots::SIZE);
        Slots(pages.expect("there is memory for a table of words"))
    }

    #[inline]
    fn all(&self) -> &[[u8; Slots::SIZE]] {
        self.0.all().as_chunks().0
    }

    #[inline]
    fn len(&self) -> usize {
        self.0.len() / Slots::SIZE
    }

    /// The key and the number in a slot.
    #[inline]
    fn get(&self, at: usize) -> Option<(Key, u32)> {
        read(&self.all()[at])
    }

    fn set(&mut self, at: usize, key: Key, number: u32) {
        let slot = &mut self.0.all_mut()[at * Slots::SIZE..(at + 1) * Slots::SIZE];
        slot[..8].copy_from_slice(&key.0.to_le_bytes());
        slot[8..16].copy_from_slice(&key.1.to_le_bytes());
        slot[16..].copy_from_slice(&(number + 1).to_le_bytes());
    }
}

#[inline]
fn read(slot: &[u8; Slots::SIZE]) -> Option<(Key, u32)> {
    let (first, rest) = slot.split_first_chunk::<8>().expect("twenty bytes");
    let (second, number) = rest.split_first_chunk::<8>().expect("twelve bytes");
    let number = u32::from_le_bytes(number.try_into().expect("four bytes"));
    let key = (u64::from_le_bytes(*first), u64::from_le_bytes(*second));
    Some((key, number.checked_sub(1)?))
}

/// The first eight bytes of a string; the next seven and above them its length.
type Key = (u64, u64);

/// Strings of up to this many bytes are their own key, so that finding one touches nothing
/// but its slot: nearly all words of a text are as short.
const SHORT: usize = 15;

/// Which bits of sixteen bytes belong to a short string of each length.
static MASKS: [Key; SHORT + 1] = masks();

const fn masks() -> [Key; SHORT + 1] {
    let (mut masks, mut length) = ([(0, 0); SHORT + 1], 0);
    while length <= SHORT {
        masks[length] = match length {
            0..8 => ((1 << (8 * length)) - 1, 0),
            _ => (u64::MAX, (1 << (8 * (length - 8))) - 1),
        };
        length += 1;
    }
    masks
}

/// A byte string and its key, for a loop that has the bytes at hand in a form from which the
/// key is cheap.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    key: Key,
}

impl<'a> Word<'a> {
    /// How many bytes a buffer goes on beyond a word, whatever they are.
    pub const BEYOND: usize = 16;

    /// The first `length` bytes of a buffer that goes on for [`Word::BEYOND`] more.
    #[inline]
    pub fn padded(buffer: &'a [u8], length: usize) -> Word<'a> {
        let bytes = &buffer[..length];
        let key = match MASKS.get(length) {
            Some(mask) => {
                let sixteen = buffer.first_chunk::<16>().expect("it goes on");
                let (first, second) = sixteen.split_at(8);
                let number = |eight: &[u8]| u64::from_le_bytes(eight.try_into().expect("eight"));
                (
                    number(first) & mask.0,
                    number(second) & mask.1 | (length as u64) << 56,
                )
            }
            None => key(bytes),
        };
        Word { bytes, key }
    }
}

impl Interner {
    /// Nothing yet.
    pub fn new() -> Interner {
        Interner {
            bytes: Vec::new(),
            ends: Vec::new(),
            slots: Slots::new(1 << 10),
        }
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The string with that number.
    pub fn get(&self, number: u32) -> &[u8] {
        let n = number as usize;
        let start = if n == 0 { 0 } else { self.ends[n - 1] };
        &self.bytes[start as usize..self.ends[n] as usize]
    }

    /// All strings, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len() as u32).map(|n| self.get(n))
    }

    /// The number of a string that may be new.
    #[inline]
    pub fn intern(&mut self, word: &[u8]) -> u32 {
        let key = key(word);
        match self.probe(word, key) {
            Ok(number) => number,
            Err(slot) => self.add(word, key, slot),
        }
    }

    /// The number of a string whose key is known.
    #[inline]
    pub fn intern_word(&mut self, word: Word<'_>) -> u32 {
        match self.probe(word.bytes, word.key) {
            Ok(number) => number,
            Err(slot) => self.add(word.bytes, word.key, slot),
        }
    }

    /// The number of a string, if it is here.
    pub fn find(&self, word: &[u8]) -> Option<u32> {
        self.probe(word, key(word)).ok()
    }

    /// The number, or the slot in which it would be.
    #[inline]
    fn probe(&self, word: &[u8], key: Key) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut at = spread(key) & mask;
        loop {
            let Some((found, number)) = self.slots.get(at) else {
                return Err(at);
            };
            if found == key && (word.len() <= SHORT || self.get(number) == word) {
                return Ok(number);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn add(&mut self, word: &[u8], key: Key, slot: usize) -> u32 {
        let number = self.len() as u32;
        assert!(number < LIMIT, "more than a thousand million words");
        self.bytes.extend_from_slice(word);
        let end = u32::try_from(self.bytes.len());
        self.ends
            .push(end.expect("less than four gigabytes of different words"));
        self.slots.set(slot, key, number);
        if self.len() * 4 > self.slots.len() * 3 {
            self.grow(self.slots.len() * 2);
        }
        number
    }

    /// Makes room for so many strings more.
    pub fn reserve(&mut self, strings: usize) {
        let size = ((self.len() + strings) * 4 / 3 + 1).next_power_of_two();
        self.ends.reserve(strings);
        // Rare words, which most are, have seven letters or so.
        self.bytes.reserve(8 * strings);
        if size > self.slots.len() {
            self.grow(size);
        }
    }

    fn grow(&mut self, size: usize) {
        let mut slots = Slots::new(size);
        for (key, number) in self.slots.all().iter().filter_map(read) {
            let mut at = spread(key) & (size - 1);
            while slots.get(at).is_some() {
                at = (at + 1) & (size - 1);
            }
            slots.set(at, key, number);
        }
        self.slots = slots;
    }
}

/// The bytes and the length of a short string, a hash of a long one. The two never meet: the
/// first byte from the top is at most [`SHORT`] for the one and 255 for the other.
#[inline]
fn key(word: &[u8]) -> Key {
    if word.len() <= SHORT {
        let (first, second) = word.split_at(word.len().min(8));
        return (packed(first), packed(second) | (word.len() as u64) << 56);
    }
    let mut state = word.len() as u64;
    let mut chunks = word.chunks_exact(8);
    for chunk in &mut chunks {
        let chunk = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        state = fold(state ^ chunk, FACTORS.1);
    }
    (
        fold(state ^ packed(chunks.remainder()), FACTORS.1),
        0xff << 56,
    )
}

/// Up to eight bytes as a number. Reads that overlap spare a loop over single bytes.
#[inline]
fn packed(bytes: &[u8]) -> u64 {
    let four = |at: usize| {
        let four = bytes[at..at + 4].try_into().expect("four bytes");
        u64::from(u32::from_le_bytes(four))
    };
    match bytes.len() {
        0 => 0,
        n @ 1..4 => {
            let (first, middle, last) = (bytes[0], bytes[n / 2], bytes[n - 1]);
            u64::from(first) | u64::from(middle) << (8 * (n / 2)) | u64::from(last) << (8 * (n - 1))
        }
        n => four(0) | four(n - 4) << (8 * (n - 4)),
    }
}

const FACTORS: Key = (0x9e37_79b9_7f4a_7c15, 0xe703_7ed1_a0b4_28db);

/// A wide multiplication whose halves are put together. It guards against nobody: a text made
/// to collide is slow to read, and gives the same result.
#[inline]
fn fold(x: u64, y: u64) -> u64 {
    let wide = u128::from(x ^ FACTORS.0) * u128::from(y);
    (wide as u64) ^ ((wide >> 64) as u64)
}

#[inline]
fn spread(key: Key) -> usize {
    fold(key.0, key.1 ^ FACTORS.1) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_in_order_of_appearance_and_stay() {
        let mut words = Interner::new();
        let all: Vec<String> = (0..5_000).map(|n| format!("w{n}")).collect();
        for (n, word) in all.iter().enumerate() {
            assert_eq!(words.intern(word.as_bytes()), n as u32);
        }
        for (n, word) in all.iter().enumerate() {
            assert_eq!(words.intern(word.as_bytes()), n as u32);
            assert_eq!(words.find(word.as_bytes()), Some(n as u32));
            assert_eq!(words.get(n as u32), word.as_bytes());
        }
        assert_eq!(words.find(b"other"), None);
        assert_eq!(words.intern(b""), 5_000);
        assert_eq!(words.get(5_000), b"");
    }

    #[test]
    fn words_of_every_length_have_keys_of_their_own() {
        let word: Vec<u8> = (1..=40).collect();
        let mut keys: Vec<Key> = (0..=40).map(|n| key(&word[..n])).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 41);
    }

    #[test]
    fn a_key_does_not_depend_on_what_follows_the_word() {
        let mut buffer: Vec<u8> = (180..=240).collect();
        for n in 0..=40 {
            assert_eq!(Word::padded(&buffer, n).key, key(&buffer[..n]), "{n}");
        }
        buffer[..16].fill(255);
        for n in 0..=SHORT {
            assert_eq!(Word::padded(&buffer, n).key, key(&[255; SHORT][..n]), "{n}");
        }
    }

    proptest! {
        #[test]
        fn short_words_are_their_own_keys(
            word in prop::collection::vec(prop::sample::select(&[0_u8, 1, b'a', 255][..]), 0..=SHORT),
            other in prop::collection::vec(prop::sample::select(&[0_u8, 1, b'a', 255][..]), 0..=SHORT),
            at in 0..SHORT,
        ) {
            prop_assert_eq!(key(&word) == key(&other), word == other);
            // Words that differ in one byte, or by a zero at the end.
            let mut near = word.clone();
            match near.get_mut(at) {
                Some(byte) => *byte ^= 1,
                None => near.push(0),
            }
            prop_assert_ne!(key(&word), key(&near));
        }
    }
}
