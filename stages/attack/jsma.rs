//! JSMA for texts (P0, after Papernot et al. 2016): word by word from the end, each replaced by the
//! word of the whole dictionary that pushes the logit of the predicted class down most.
//!
//! ```text
//! y = argmax f(x);  i = last token, the one before, ...
//! while argmax f(x) == y and fewer than M words are changed:
//!     p = -sign(d z_y / d e_{x[i]})                    # or -gradient
//!     x[i] = argmax over z in D, z != x[i], of (e_z - e_{x[i]}) . p
//! ```
//!
//! Rows that the model gets wrong before are left alone: they count as errors already.

use super::parts::goal::Goal;
use super::parts::moves::{Direction, Steepest};
use super::parts::search::walk;
use super::scene::{Item, Scene, Trace};
use super::{Attack, Changes, Entry, Ready, Victims, param};
use crate::describe::{Param, Type};
use crate::settings::{Settings, failure};
use crate::{Failure, ParamError};

const PARAMS: &[Param] = &[
    param(
        "max_words",
        Type::Int,
        "For jsma: the most words that are changed (35).",
    ),
    param(
        "direction",
        Type::Text,
        "For jsma: sign (the default) or gradient.",
    ),
];

const DIRECTIONS: &[(&str, Direction)] =
    &[("sign", Direction::Sign), ("gradient", Direction::Gradient)];

/// The attack.
pub struct Jsma;

struct Prepared<'a> {
    scene: &'a Scene<'a>,
    steepest: Steepest,
    words: usize,
}

impl Attack for Jsma {
    fn entry(&self) -> Entry {
        Entry {
            name: "jsma",
            file: "jsma.rs",
            summary: "Word by word from the end, by the sign of the gradient and the whole dictionary.",
            params: PARAMS,
            changes: Changes::Words,
            victims: Victims::Networks,
            needs: &[],
        }
    }

    fn check(&self, settings: Settings<'_>) -> Result<(), ParamError> {
        settings.one_of("direction", DIRECTIONS).map(drop)
    }

    fn ready<'a>(&self, scene: &'a Scene<'a>) -> Result<Box<dyn Ready + 'a>, Failure> {
        let settings = scene.settings();
        let direction = settings.one_of("direction", DIRECTIONS).map_err(failure)?;
        scene.network("jsma")?;
        Ok(Box::new(Prepared {
            scene,
            steepest: Steepest::new(scene.vectors("jsma")?, direction, &scene.special)?,
            words: settings.whole("max_words", 35, 1).map_err(failure)?,
        }))
    }
}

impl Ready for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let right: Vec<Item<'_>> = items.iter().filter(|i| i.right()).cloned().collect();
        let text = |tokens: &[u32], place: &usize| tokens[*place] != self.scene.pad;
        let from_the_end = |tokens: &[u32]| {
            let places = (0..tokens.len()).rev();
            places.filter(|place| text(tokens, place)).collect()
        };
        let goal = |item: &Item<'_>| Goal::Leave(item.predicted());
        let walked = walk(
            self.scene,
            &right,
            goal,
            from_the_end,
            self.words,
            &self.steepest,
        )?;
        let mut walked = walked.into_iter();
        let trace = |item: &Item<'_>| match item.right() {
            true => walked.next().unwrap_or_else(|| Trace::untouched(item)),
            false => Trace::untouched(item),
        };
        Ok(items.iter().map(trace).collect())
    }
}
