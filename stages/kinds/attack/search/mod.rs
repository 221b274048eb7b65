//! How an attack looks for edits that reach its goal.
//!
//! | file | search |
//! |---|---|
//! | `greedy` | along the gradient, one word after the other |
//! | `beam` | the best sequences of edits by the sum of their scores |
//! | `exhaustive` | one edit after the other, each on the row as it came |
//! | `select_replace` | first the word that matters most, then what to put in its place |
//! | `word_importance` | what the model says without each word, or with another in its place |
//! | `ordered` | items in their order, with something carried from one to the next |
//!
//! `moves` is what a single step is made of.

pub mod beam;
pub mod exhaustive;
pub mod greedy;
pub mod moves;
pub mod ordered;
pub mod select_replace;
pub mod word_importance;
