//! Words to small numbers, in the order of their first appearance.
//!
//! Knows nothing of tokens. Written here because it is the inner loop of the kind: one arena,
//! no allocation for each word, and a hash that is the same in every process.

use super::numbers::LIMIT;
use crate::tables::pages::Pages;

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
    const SIZE: usize = 12;

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
    fn get(&self, at: usize) -> Option<(u64, u32)> {
        read(&self.all()[at])
    }

    fn set(&mut self, at: usize, key: u64, number: u32) {
        let slot = &mut self.0.all_mut()[at * Slots::SIZE..(at + 1) * Slots::SIZE];
        slot[..8].copy_from_slice(&key.to_le_bytes());
        slot[8..].copy_from_slice(&(number + 1).to_le_bytes());
    }
}

#[inline]
fn read(slot: &[u8; Slots::SIZE]) -> Option<(u64, u32)> {
    let (key, number) = slot.split_first_chunk::<8>().expect("twelve bytes");
    let number = u32::from_le_bytes(number.try_into().expect("four bytes"));
    Some((u64::from_le_bytes(*key), number.checked_sub(1)?))
}

/// Strings of up to this many bytes are their own key, so that finding one touches nothing
/// but its slot: most words of a text are as short.
const SHORT: usize = 7;

/// A byte string and its key, for a loop that has the bytes at hand in a form from which the
/// key is cheap.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    key: u64,
}

impl<'a> Word<'a> {
    /// The first `length` bytes of a buffer that goes on for eight more, whatever is there.
    #[inline]
    pub fn padded(buffer: &'a [u8], length: usize) -> Word<'a> {
        let bytes = &buffer[..length];
        let key = match length <= SHORT {
            true => {
                let eight = buffer[..8].try_into().expect("eight bytes");
                let mask = (1 << (8 * length)) - 1;
                u64::from_le_bytes(eight) & mask | (length as u64) << 56
            }
            false => key(bytes),
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
    fn probe(&self, word: &[u8], key: u64) -> Result<u32, usize> {
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
    fn add(&mut self, word: &[u8], key: u64, slot: usize) -> u32 {
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

    /// Reserves capacity for this many more strings.
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
fn key(word: &[u8]) -> u64 {
    if word.len() <= SHORT {
        return packed(word) | (word.len() as u64) << 56;
    }
    let mut state = word.len() as u64;
    let mut chunks = word.chunks_exact(8);
    for chunk in &mut chunks {
        let chunk = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        state = fold(state ^ chunk);
    }
    fold(state ^ packed(chunks.remainder())) | 0xff << 56
}

/// Up to seven bytes as a number. Reads that overlap spare a loop over single bytes.
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

/// A wide multiplication whose halves are put together. It is not meant to resist an adversary: a text made
/// to collide is slow to read, and gives the same result.
#[inline]
fn fold(x: u64) -> u64 {
    let wide = u128::from(x ^ 0x9e37_79b9_7f4a_7c15) * 0xe703_7ed1_a0b4_28db;
    (wide as u64) ^ ((wide >> 64) as u64)
}

#[inline]
fn spread(key: u64) -> usize {
    fold(key) as usize
}

#[cfg(test)]
mod tests {
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
        let mut keys: Vec<u64> = (0..=40).map(|n| key(&word[..n])).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 41);
    }

    #[test]
    fn a_key_does_not_depend_on_what_follows_the_word() {
        let mut buffer: Vec<u8> = (200..=250).collect();
        for n in 0..=40 {
            assert_eq!(Word::padded(&buffer, n).key, key(&buffer[..n]), "{n}");
        }
        buffer[..8].fill(255);
        assert_eq!(Word::padded(&buffer, 7).key, key(&[255; 7]));
    }

    #[test]
    fn short_words_are_their_own_keys() {
        let letters = [0_u8, 1, b'a', 255];
        let mut words = vec![Vec::new()];
        let mut keys = std::collections::BTreeSet::new();
        for _ in 0..=SHORT {
            words
                .iter()
                .for_each(|word| assert!(keys.insert(key(word))));
            let longer = words
                .iter()
                .flat_map(|word: &Vec<u8>| letters.map(|letter| [&word[..], &[letter]].concat()));
            words = longer.collect();
        }
        assert_eq!(
            keys.len(),
            (0..=SHORT as u32).map(|n| 4_usize.pow(n)).sum::<usize>()
        );
    }
}
