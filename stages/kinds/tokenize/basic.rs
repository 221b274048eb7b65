//! BERT's basic tokeniser: the words that word-piece then cuts up.
//!
//! Control characters go, Chinese characters and punctuation stand alone, and for models
//! without case accents are stripped and letters put into lower case. The rules are those of
//! Devlin et al. (arXiv:1810.04805), `tokenization.py`. Knows nothing of the vocabulary.

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Calls `emit` with each word and each punctuation character.
pub fn scan(text: &str, uncased: bool, word: &mut Vec<u8>, emit: impl FnMut(&[u8])) {
    let clean = text.chars().filter_map(clean);
    if text.is_ascii() {
        // No accents and no Chinese: a text of bytes needs no normalisation.
        let lower = |c: char| match uncased {
            true => c.to_ascii_lowercase(),
            false => c,
        };
        cut(clean.map(lower), word, emit);
        return;
    }
    let spaced = clean.flat_map(|c| {
        let apart = is_chinese(c).then_some(' ');
        apart.into_iter().chain([c]).chain(apart)
    });
    if uncased {
        let bare = spaced
            .nfd()
            .filter(|c| c.general_category() != GeneralCategory::NonspacingMark);
        cut(bare.flat_map(char::to_lowercase), word, emit);
    } else {
        cut(spaced, word, emit);
    }
}

/// Words between spaces, with punctuation by itself.
fn cut(chars: impl Iterator<Item = char>, word: &mut Vec<u8>, mut emit: impl FnMut(&[u8])) {
    let mut space = [0; 4];
    word.clear();
    for c in chars {
        let alone = is_punctuation(c);
        if (alone || c.is_whitespace()) && !word.is_empty() {
            emit(word);
            word.clear();
        }
        let bytes = c.encode_utf8(&mut space).as_bytes();
        if alone {
            emit(bytes);
        } else if !c.is_whitespace() {
            word.extend_from_slice(bytes);
        }
    }
    if !word.is_empty() {
        emit(word);
    }
}

/// Nothing for a control character, a space for white space.
fn clean(c: char) -> Option<char> {
    match c {
        '\t' | '\n' | '\r' => Some(' '),
        ' '..='~' => Some(c),
        '\0' | '\u{fffd}' => None,
        _ if is_control(c) => None,
        _ if c.is_whitespace() => Some(' '),
        _ => Some(c),
    }
}

/// Unassigned code points are not.
fn is_control(c: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse};
    matches!(c.general_category(), Control | Format | PrivateUse)
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    c.general_category_group() == GeneralCategoryGroup::Punctuation
}

fn is_chinese(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2b73f}' | '\u{2b740}'..='\u{2b81f}' | '\u{2b820}'..='\u{2ceaf}'
        | '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}
