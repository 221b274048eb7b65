//! Words to small numbers, in the order of their first appearance.
//!
//! Knows nothing of tokens. Written here because it is the inner loop of the kind: one arena,
//! no allocation for each word, and a hash that is the same in every process.

/// Distinct byte strings, numbered from 0.
#[derive(Debug)]
pub struct Interner {
    words: Words,
    /// Open addressing: the key of a string and its number, or [`EMPTY`].
    slots: Vec<(u64, u32)>,
}

/// Byte strings by their numbers.
#[derive(Debug, Default)]
pub struct Words {
    bytes: Vec<u8>,
    /// Where each string ends in `bytes`; it begins where the one before ends.
    ends: Vec<usize>,
}

impl Words {
    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The string with that number.
    pub fn get(&self, number: u32) -> &[u8] {
        let n = number as usize;
        let start = if n == 0 { 0 } else { self.ends[n - 1] };
        &self.bytes[start..self.ends[n]]
    }
}

const EMPTY: (u64, u32) = (0, u32::MAX);

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

/// Into how many parts strings are dealt.
pub const PARTS: usize = 16;

impl Interner {
    /// Nothing yet.
    pub fn new() -> Interner {
        Interner {
            words: Words::default(),
            slots: vec![EMPTY; 1 << 10],
        }
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// The string with that number.
    pub fn get(&self, number: u32) -> &[u8] {
        self.words.get(number)
    }

    /// All strings, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len() as u32).map(|n| self.get(n))
    }

    /// No more strings will come: all of them, and their numbers dealt to [`PARTS`] parts by
    /// what the strings are, so that equal ones of two interners are in the same part.
    pub fn deal(self) -> (Words, Vec<Vec<u32>>) {
        let mut parts = vec![Vec::new(); PARTS];
        for (key, number) in self.slots.iter().filter(|slot| slot.1 != EMPTY.1) {
            // From the top, because the place in the table is from the bottom.
            parts[(fold(*key) >> 60) as usize].push(*number);
        }
        (self.words, parts)
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
            let (found, number) = self.slots[at];
            if number == EMPTY.1 {
                return Err(at);
            }
            if found == key && (word.len() <= SHORT || self.get(number) == word) {
                return Ok(number);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn add(&mut self, word: &[u8], key: u64, slot: usize) -> u32 {
        let number = self.len() as u32;
        assert!(
            number < u32::MAX - 1,
            "more than four thousand million words"
        );
        self.words.bytes.extend_from_slice(word);
        self.words.ends.push(self.words.bytes.len());
        self.slots[slot] = (key, number);
        if self.len() * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 2;
        let mut slots = vec![EMPTY; size];
        for (key, number) in self.slots.iter().filter(|slot| slot.1 != EMPTY.1) {
            let mut at = spread(*key) & (size - 1);
            while slots[at].1 != EMPTY.1 {
                at = (at + 1) & (size - 1);
            }
            slots[at] = (*key, *number);
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

/// A wide multiplication whose halves are put together. It guards against nobody: a text made
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
