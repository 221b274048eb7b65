//! What classifiers of bags of words share: texts as tokens inside a vocabulary, with their classes.

use crate::batch::{Example, Sequence, Target};
use crate::error::{Error, Result, setting};

/// The tokens and the class of every training example.
pub(super) fn labelled(
    examples: &[Example],
    vocabulary: usize,
    classes: usize,
) -> Result<Vec<(&[u32], usize)>> {
    setting("classes", classes > 1, "above 1", classes)?;
    setting("vocabulary", vocabulary > 0, "above 0", vocabulary)?;
    if examples.is_empty() {
        return Err(Error::Empty {
            what: "list of training examples",
        });
    }
    let mut texts = Vec::with_capacity(examples.len());
    for (item, e) in examples.iter().enumerate() {
        let Target::Class(y) = e.target else {
            return Err(Error::Missing {
                what: "class of a training example",
            });
        };
        if y as usize >= classes {
            return Err(Error::Range {
                what: "class",
                item,
                got: y as usize,
                below: classes,
            });
        }
        texts.push((tokens_of(&e.input, item, vocabulary)?, y as usize));
    }
    Ok(texts)
}

/// The tokens of a text, all inside the vocabulary.
pub(super) fn tokens_of(text: &Sequence, item: usize, vocabulary: usize) -> Result<&[u32]> {
    let Sequence::Tokens(ids) = text else {
        return Err(Error::Shape {
            what: "input",
            expected: "tokens".into(),
            got: "vectors or characters".into(),
        });
    };
    match ids.iter().find(|w| **w as usize >= vocabulary) {
        None => Ok(ids),
        Some(w) => Err(Error::Range {
            what: "token",
            item,
            got: *w as usize,
            below: vocabulary,
        }),
    }
}
