//! Tack-On Adversarial Word (P0): the first word of a text becomes one that speaks for another class.
//!
//! `x[0] = a word drawn evenly from the k that speak most for the other class`. It replaces; nothing
//! is put before the text. With more than two classes the other one is drawn evenly.

use super::parts::opposed::{Opposed, STRONGEST};
use super::scene::{Change, Item, Scene, Trace};
use super::{Attack, Changes, Entry, Ready, Victims};
use crate::Failure;
use crate::settings::Settings;

/// The attack.
pub struct TackOn;

struct Prepared<'a> {
    scene: &'a Scene<'a>,
    opposed: Opposed,
}

impl Attack for TackOn {
    fn entry(&self) -> Entry {
        Entry {
            name: "tack-on",
            file: "tack_on.rs",
            summary: "The first word becomes one of the strongest words of another class.",
            params: &[STRONGEST],
            changes: Changes::Words,
            victims: Victims::All,
            needs: &["bayes", "vocab"],
        }
    }

    fn draws(&self, _: Settings<'_>) -> bool {
        true
    }

    fn ready<'a>(&self, scene: &'a Scene<'a>) -> Result<Box<dyn Ready + 'a>, Failure> {
        let (opposed, _) = Opposed::new("tack-on", scene)?;
        Ok(Box::new(Prepared { scene, opposed }))
    }
}

impl Ready for Prepared<'_> {
    fn attack(&self, items: &[Item<'_>]) -> Result<Vec<Trace>, Failure> {
        let one = |item: &Item<'_>| {
            let stream = self.scene.stream("tack-on", item);
            let old = item.tokens()?[0];
            let text = old != self.scene.pad;
            let new = self.opposed.draw(item.label, &stream, 0).filter(|_| text);
            let change = new.map(|new| Change {
                position: 0,
                old,
                new,
            });
            Trace::of(item, change.into_iter().collect())
        };
        items.iter().map(one).collect()
    }
}
