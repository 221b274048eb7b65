//! Numbers of words in the order of a text, two bytes each where that will do: of a text that is read
//! once and turned into ids once, this is what has to be kept in between.

use std::io;

use crate::tables::pages::Pages;

/// A list of numbers below [`LIMIT`], and of empty places.
pub struct Numbers {
    /// A number and one more, 0 for an empty place, as codes of two bytes: below 2^15 as it is,
    /// otherwise two codes of fifteen bits, the first with its highest bit set.
    codes: Pages,
}

/// How many different numbers there can be.
pub const LIMIT: u32 = (1 << 30) - 1;

const MORE: u16 = 1 << 15;

impl Numbers {
    /// Empty, with capacity for this many small numbers; unused capacity takes no memory.
    pub fn with_room(numbers: usize) -> io::Result<Numbers> {
        let codes = Pages::with_room(2 * numbers)?;
        Ok(Numbers { codes })
    }

    /// Appends a number.
    #[inline]
    pub fn push(&mut self, number: u32) {
        let code = number + 1;
        if code < u32::from(MORE) {
            self.put(code as u16);
        } else {
            self.push_large(code);
        }
    }

    /// Numbers go up with first appearances, so that large ones are rare words.
    #[cold]
    fn push_large(&mut self, code: u32) {
        self.put((code >> 15) as u16 | MORE);
        self.put(code as u16 & !MORE);
    }

    /// Appends a place without a number.
    pub fn push_empty(&mut self) {
        self.put(0);
    }

    #[inline]
    fn put(&mut self, code: u16) {
        let put = self.codes.push(&code.to_le_bytes());
        put.expect("there is memory for the numbers of words");
    }

    /// From the first on.
    pub fn read(&self) -> Reading<'_> {
        let (codes, _) = self.codes.all().as_chunks();
        Reading { codes }
    }
}

/// What has not been read yet of a list.
pub struct Reading<'a> {
    codes: &'a [[u8; 2]],
}

impl Reading<'_> {
    /// Reads as many as there are slots. The first in the table is for empty places, then one for each number.
    ///
    /// # Panics
    /// If there are more slots than numbers, or a number is not in the table.
    #[inline]
    pub fn fill(&mut self, slots: &mut [i32], table: &[i32]) {
        let (codes, mut at) = (self.codes, 0);
        for slot in slots {
            let mut code = u32::from(u16::from_le_bytes(codes[at]));
            at += 1;
            if code >= u32::from(MORE) {
                let rest = u32::from(u16::from_le_bytes(codes[at]));
                code = (code & !u32::from(MORE)) << 15 | rest;
                at += 1;
            }
            *slot = table[code as usize];
        }
        self.codes = &codes[at..];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_numbers_come_back_in_pieces_of_any_size(
            numbers in prop::collection::vec(
                prop_oneof![
                    Just(None),
                    (0..70_000_u32).prop_map(Some),
                    (32_760..32_775_u32).prop_map(Some),
                ],
                0..200,
            ),
            cut in 0..200_usize,
        ) {
            let mut list = Numbers::with_room(1).unwrap();
            for number in &numbers {
                match number {
                    Some(number) => list.push(*number),
                    None => list.push_empty(),
                }
            }
            let table: Vec<i32> = (-1..70_000).collect();
            let mut read = vec![0; numbers.len()];
            let (first, second) = read.split_at_mut(cut.min(numbers.len()));
            let mut reading = list.read();
            reading.fill(first, &table);
            reading.fill(second, &table);
            let expected = numbers.iter().map(|number| number.map_or(-1, |n| n as i32));
            prop_assert_eq!(read, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_largest_number_has_codes_of_its_own() {
        let mut list = Numbers::with_room(1).unwrap();
        list.push(LIMIT - 1);
        assert_eq!(list.codes.all(), [0xff, 0xff, 0xff, 0x7f]);
    }
}
