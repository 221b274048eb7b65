//! Where replacements come from: words of a class, words that a language model expects.

pub mod class_words;
pub mod language_model;
