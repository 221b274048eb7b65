//! Where replacements come from: words of a class, synonyms, words that a language model expects, characters by the rules of
//! HotFlip and by what the gradient promises of them.

pub mod characters;
pub mod class_words;
pub mod estimates;
pub mod language_model;
pub mod synonyms;
pub mod words;
