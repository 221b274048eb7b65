//! Spelling mistakes as people make them. Knows nothing of grammars.

use super::dice::Dice;

/// Misspells words of four letters or more as people do: letters swapped, dropped, doubled, or
/// the key beside the right one.
pub fn misspell(text: &str, rate: f64, dice: &mut Dice) -> String {
    let words = text.split(' ').map(|word| {
        let letters: Vec<char> = word.chars().collect();
        let long = letters
            .iter()
            .take_while(|c| c.is_ascii_alphabetic())
            .count();
        if dice.unit() >= rate || long < 4 {
            return word.to_owned();
        }
        let mut letters = letters;
        // The first letter is hardly ever wrong.
        let at = 1 + dice.below(long as u64 - 2) as usize;
        match dice.below(4) {
            0 => letters.swap(at, at + 1),
            1 => drop(letters.remove(at)),
            2 => letters.insert(at, letters[at]),
            _ => letters[at] = beside(letters[at], dice),
        }
        letters.into_iter().collect()
    });
    words.collect::<Vec<String>>().join(" ")
}

/// A key beside this one.
fn beside(letter: char, dice: &mut Dice) -> char {
    const KEYS: [&str; 3] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];
    let lower = letter.to_ascii_lowercase();
    let Some((row, at)) = KEYS
        .iter()
        .find_map(|row| Some((row.as_bytes(), row.find(lower)?)))
    else {
        return letter;
    };
    let at = match dice.below(2) {
        0 if at > 0 => at - 1,
        _ if at + 1 < row.len() => at + 1,
        _ => at - 1,
    };
    char::from(row[at])
}
