//! A run as lines of text, or as errors alone.

use store::Status;

use super::event::{Event, Reporter};
use super::summary::{claims, stage_line, summary};
use crate::visible::on_terminal as shown;

/// One line for each stage that ran, and a summary.
pub struct Lines;

impl Reporter for Lines {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Stage {
                label,
                status,
                wall,
                worked,
                error,
                why,
                ..
            } => match (status, error) {
                (Status::Hit, _) => {}
                (_, Some((text, _))) => eprint!("{text}"),
                _ => println!("{}", shown(&stage_line(label, status, wall, worked, why))),
            },
            Event::Waiting(label) => {
                println!("wait {}: running in another process", shown(label));
            }
            Event::Note(note) => eprintln!("ablate: {}", shown(note)),
            Event::Done(tally) => println!("{}", summary(tally)),
            Event::Claims(counts) => println!("{}", claims(counts)),
            _ => {}
        }
    }
}

/// Nothing but errors.
pub struct Quiet;

impl Reporter for Quiet {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Stage {
                error: Some((text, _)),
                ..
            } => eprint!("{text}"),
            Event::Note(note) => eprintln!("ablate: {}", shown(note)),
            _ => {}
        }
    }
}
