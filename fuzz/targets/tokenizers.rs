//! Any text is cut into words that are text again, and equal words get equal numbers.
#![no_main]
#![allow(dead_code)]

#[path = "../../stages/kinds/tokenize/basic.rs"]
mod basic;
#[path = "../../stages/kinds/tokenize/interner.rs"]
mod interner;
#[path = "../../stages/kinds/tokenize/numbers.rs"]
mod numbers;
#[path = "../../stages/tables/pages.rs"]
mod pages;
#[path = "../../stages/kinds/tokenize/split.rs"]
mod split;
#[path = "../../stages/kinds/tokenize/words.rs"]
mod words;

/// Modules name each other by their places in the crate.
mod tables {
    pub(crate) use crate::pages;
}

use std::collections::HashMap;

use interner::Interner;
use libfuzzer_sys::fuzz_target;

/// The rules of `words`, as plainly as they can be written.
fn plainly(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace("<br />", " ");
    let kept = lower
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == ' ');
    let kept: String = kept.collect();
    kept.split_whitespace().map(str::to_owned).collect()
}

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let (mut scratch, mut interner) = (Vec::new(), Interner::new());
    let mut numbers: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut seen = Vec::new();
    words::scan(&text, &mut scratch, |word| {
        let number = interner.intern_word(word);
        assert_eq!(interner.find(word.bytes), Some(number));
        seen.push(String::from_utf8(word.bytes.to_vec()).unwrap());
        assert_eq!(
            *numbers.entry(word.bytes.to_vec()).or_insert(number),
            number
        );
    });
    assert_eq!(seen, plainly(&text));
    let mut check = |word: &[u8]| {
        assert!(std::str::from_utf8(word).is_ok_and(|word| !word.is_empty()));
        let number = interner.intern(word);
        assert_eq!(interner.get(number), word);
        assert_eq!(*numbers.entry(word.to_vec()).or_insert(number), number);
    };
    for lowercase in [false, true] {
        for breaks in [false, true] {
            let rules = split::Rules { lowercase, breaks };
            split::scan(&text, rules, &mut scratch, &mut check);
        }
        split::whitespace(&text, lowercase, &mut scratch, &mut check);
        split::chars(&text, lowercase, &mut check);
        basic::scan(&text, lowercase, &mut scratch, &mut check);
    }
});
