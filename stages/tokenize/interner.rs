//! Words to small numbers, in the order of their first appearance.
//!
//! Knows nothing of tokens. Written here because it is the inner loop of the kind: one arena,
//! no allocation for each word, and a hash that is the same in every process.

/// Distinct byte strings, numbered from 0.
#[derive(Debug)]
pub struct Interner {
    bytes: Vec<u8>,
    /// Where each string ends in `bytes`; it begins where the one before ends.
    ends: Vec<usize>,
    /// Open addressing: the upper half of the hash and the number, or [`EMPTY`].
    slots: Vec<(u32, u32)>,
}

const EMPTY: (u32, u32) = (0, u32::MAX);

impl Interner {
    /// Nothing yet.
    pub fn new() -> Interner {
        Interner {
            bytes: Vec::new(),
            ends: Vec::new(),
            slots: vec![EMPTY; 1 << 10],
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
        &self.bytes[start..self.ends[n]]
    }

    /// All strings, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len() as u32).map(|n| self.get(n))
    }

    /// The number of a string that may be new.
    #[inline]
    pub fn intern(&mut self, word: &[u8]) -> u32 {
        let hash = hash(word);
        match self.probe(word, hash) {
            Ok(number) => number,
            Err(slot) => self.add(word, hash, slot),
        }
    }

    /// The number of a string, if it is here.
    pub fn find(&self, word: &[u8]) -> Option<u32> {
        self.probe(word, hash(word)).ok()
    }

    /// The number, or the slot in which it would be.
    #[inline]
    fn probe(&self, word: &[u8], hash: u64) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let (tag, mut at) = ((hash >> 32) as u32, hash as usize & mask);
        loop {
            let (found, number) = self.slots[at];
            if number == EMPTY.1 {
                return Err(at);
            }
            if found == tag && self.get(number) == word {
                return Ok(number);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn add(&mut self, word: &[u8], hash: u64, slot: usize) -> u32 {
        let number = self.ends.len() as u32;
        assert!(
            number < u32::MAX - 1,
            "more than four thousand million words"
        );
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len());
        self.slots[slot] = ((hash >> 32) as u32, number);
        if self.ends.len() * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 2;
        let mut slots = vec![EMPTY; size];
        for number in 0..self.ends.len() as u32 {
            let hash = hash(self.get(number));
            let mut at = hash as usize & (size - 1);
            while slots[at].1 != EMPTY.1 {
                at = (at + 1) & (size - 1);
            }
            slots[at] = ((hash >> 32) as u32, number);
        }
        self.slots = slots;
    }
}

/// Eight bytes at a time, each folded in by a wide multiplication. It guards against nobody:
/// a text made to collide is slow to read, and gives the same result.
#[inline]
fn hash(word: &[u8]) -> u64 {
    const KEY: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |a: u64, b: u64| {
        let wide = u128::from(a) * u128::from(b);
        (wide as u64) ^ ((wide >> 64) as u64)
    };
    let mut state = KEY ^ word.len() as u64;
    let mut chunks = word.chunks_exact(8);
    for chunk in &mut chunks {
        let chunk = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        state = fold(state ^ chunk, KEY);
    }
    let rest = chunks.remainder();
    // Reads that overlap cover any length without a loop over single bytes.
    let last = match rest.len() {
        0 => 0,
        1..4 => {
            let (a, b, c) = (rest[0], rest[rest.len() / 2], rest[rest.len() - 1]);
            u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16
        }
        n => {
            let four = |at: usize| {
                u64::from(u32::from_le_bytes(
                    rest[at..at + 4].try_into().expect("four bytes"),
                ))
            };
            four(0) | four(n - 4) << 32
        }
    };
    fold(state ^ last, 0xe703_7ed1_a0b4_28db)
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
    fn words_of_every_length_hash_apart() {
        let word: Vec<u8> = (1..=40).collect();
        let mut hashes: Vec<u64> = (0..=40).map(|n| hash(&word[..n])).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 41);
    }
}
