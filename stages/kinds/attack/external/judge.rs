//! What a program gives back, judged: the edits that lead to it, and whether budget and constraints were kept. A row that
//! breaks them is rejected, and the item stays as it came. Knows nothing of programs.

use super::super::context::{AttackContext, Item};
use super::super::edit::{Change, Edit};
use super::super::trace::Trace;
use super::super::word_rules::WordRules;
use super::distance::{distance, script};
use crate::Failure;

/// What a row may be.
pub struct Judge<'a> {
    /// The words, among others.
    pub context: &'a AttackContext<'a>,
    /// Whether words may be inserted and deleted too.
    pub any_edit: bool,
    /// The maximum number of words that are changed.
    pub max_words: usize,
    /// The maximum number of characters that are changed.
    pub max_characters: usize,
    /// Rules for words in the places of others.
    pub rules: Option<WordRules<'a>>,
}

/// The text of a row between its padding, and where it begins.
pub fn text(tokens: &[u32], pad: u32) -> (usize, &[u32]) {
    let first = tokens.iter().position(|token| *token != pad);
    let last = tokens.iter().rposition(|token| *token != pad);
    match first.zip(last) {
        Some((first, last)) => (first, &tokens[first..=last]),
        None => (0, &tokens[..0]),
    }
}

/// The row with another text between its padding.
pub fn with_text(tokens: &[u32], pad: u32, new: &[u32]) -> Vec<u32> {
    let (start, old) = text(tokens, pad);
    [&tokens[..start], new, &tokens[start + old.len()..]].concat()
}

impl Judge<'_> {
    /// The edits that lead to a text; or why it is rejected.
    pub fn trace(&self, item: &Item<'_>, new: &[u32]) -> Result<Result<Trace, String>, Failure> {
        let tokens = item.tokens()?;
        let (start, old) = text(tokens, self.context.pad);
        let edits = match self.any_edit {
            true => script(old, new),
            false if old.len() != new.len() => {
                let (was, now) = (old.len(), new.len());
                return Ok(Err(format!(
                    "{now} words in place of {was}, and insert_and_delete is false"
                )));
            }
            false => Some(Edit::replacements(old, new)),
        };
        let Some(edits) = edits else {
            return Ok(Err("a text that is too different to be compared".to_owned()));
        };
        let edits: Vec<Edit> = edits.into_iter().map(|edit| moved(edit, start)).collect();
        if let Some(why) = self.broken(tokens, &edits) {
            return Ok(Err(why));
        }
        Trace::of(item, edits).map(Ok)
    }

    /// The first rule that edits of a row break.
    fn broken(&self, tokens: &[u32], edits: &[Edit]) -> Option<String> {
        if edits.len() > self.max_words {
            let (got, most) = (edits.len(), self.max_words);
            return Some(format!("{got} words changed, and max_words is {most}"));
        }
        let characters: usize = edits.iter().map(|edit| self.characters(edit)).sum();
        if characters > self.max_characters {
            let most = self.max_characters;
            return Some(format!(
                "{characters} characters changed, and max_characters is {most}"
            ));
        }
        let mut row = tokens.to_vec();
        for edit in edits {
            let Edit::Word { position, change } = edit else {
                continue;
            };
            if let Some(new) = change.after()
                && self.context.special.contains(&new)
            {
                return Some("padding or the unknown token was put in".to_owned());
            }
            let Change::Replace { new, .. } = change else {
                continue;
            };
            let rules = self.rules.as_ref();
            if let Some(why) = rules.and_then(|rules| rules.broken(&row, *position, *new)) {
                return Some(why);
            }
            if self.rules.is_some() {
                row[*position] = *new;
            }
        }
        None
    }

    /// How many characters an edit changes.
    fn characters(&self, edit: &Edit) -> usize {
        let Edit::Word { change, .. } = edit else {
            return 0;
        };
        let letters = |id: Option<u32>| -> Vec<char> {
            let words = self.context.words;
            let word = id
                .zip(words)
                .map(|(id, words)| words.value(id as usize).chars().collect());
            word.unwrap_or_default()
        };
        distance(&letters(change.before()), &letters(change.after()))
    }
}

/// The same edit, shifted to the right by this many words.
fn moved(edit: Edit, by: usize) -> Edit {
    match edit {
        Edit::Word { position, change } => Edit::Word {
            position: position + by,
            change,
        },
        edit => edit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_lies_between_padding() {
        assert_eq!(text(&[0, 0, 5, 0, 6, 0], 0), (2, &[5, 0, 6][..]));
        assert_eq!(text(&[0, 0], 0).1, &[0_u32; 0]);
        assert_eq!(with_text(&[0, 5, 6, 0], 0, &[7]), [0, 7, 0]);
        assert_eq!(with_text(&[5, 6], 0, &[7, 8, 9]), [7, 8, 9]);
    }
}
