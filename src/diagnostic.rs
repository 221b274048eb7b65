//! Errors about what the user wrote: the place, the value, the next step.
//! Everything that points into the pipeline file or a `--set` goes through here.

use std::fmt::Write;
use std::io::IsTerminal;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::visible::{in_place, on_terminal};

/// The texts that spans point into: the pipeline file first, then every `--set`.
#[derive(Debug, Default)]
pub struct Sources {
    texts: Vec<(String, String)>,
}

impl Sources {
    /// Adds a text under the name that messages show.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> u16 {
        self.texts.push((name.into(), text.into()));
        u16::try_from(self.texts.len() - 1).expect("fewer than 65,536 sources")
    }

    /// The text of a source.
    pub fn text(&self, source: u16) -> &str {
        &self.texts[usize::from(source)].1
    }
}

/// A place in one of the [`Sources`], in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which source.
    pub source: u16,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A span in a source.
    pub fn new(source: u16, range: Range<usize>) -> Span {
        let bound = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span {
            source,
            start: bound(range.start),
            end: bound(range.end),
        }
    }
}

/// One error or warning, ready to be shown.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    title: String,
    warning: bool,
    places: Vec<(Span, String)>,
    help: Vec<String>,
}

impl Diagnostic {
    /// An error with a headline alone.
    pub fn new(title: impl Into<String>) -> Diagnostic {
        Diagnostic {
            title: title.into(),
            warning: false,
            places: Vec::new(),
            help: Vec::new(),
        }
    }

    /// A warning: what follows goes on.
    pub fn warning(title: impl Into<String>) -> Diagnostic {
        Diagnostic {
            warning: true,
            ..Diagnostic::new(title)
        }
    }

    /// Points at a place. The first place is the main one.
    pub fn at(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.places.push((span, label.into()));
        self
    }

    /// Says what to do next.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help.push(help.into());
        self
    }

    /// Says what to do next, if there is something to say.
    pub fn maybe_help(mut self, help: Option<impl Into<String>>) -> Diagnostic {
        self.help.extend(help.map(Into::into));
        self
    }

    /// The headline, for machines.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What to do about it.
    pub fn helps(&self) -> &[String] {
        &self.help
    }

    /// What was written by others, in files, logs and tables, is shown and never obeyed.
    fn render(&self, sources: &Sources, renderer: &Renderer) -> String {
        // The renderer takes the headline apart at line ends; what follows becomes notes.
        let title = on_terminal(&self.title);
        let (headline, rest) = title.split_once('\n').unwrap_or((&title, ""));
        let level = if self.warning {
            Level::WARNING
        } else {
            Level::ERROR
        };
        let mut group = Group::with_title(level.primary_title(headline));
        for (n, (span, label)) in self.places.iter().enumerate() {
            let (name, text) = &sources.texts[usize::from(span.source)];
            let kind = match n {
                0 => AnnotationKind::Primary,
                _ => AnnotationKind::Context,
            };
            let end = (span.end as usize).min(text.len());
            let mut annotation = kind.span((span.start as usize).min(end)..end);
            if !label.is_empty() {
                annotation = annotation.label(on_terminal(label));
            }
            group = group.element(
                Snippet::source(in_place(text))
                    .path(on_terminal(name))
                    .annotation(annotation),
            );
        }
        if !rest.is_empty() {
            group = group.element(Level::NOTE.message(rest));
        }
        for help in &self.help {
            group = group.element(Level::HELP.message(on_terminal(help)));
        }
        renderer.render(&[group])
    }
}

/// One or more errors together with the texts that they point into.
#[derive(Debug)]
pub struct Problems {
    /// The texts.
    pub sources: Sources,
    /// The errors, in order of discovery.
    pub list: Vec<Diagnostic>,
}

impl Problems {
    /// A single error that points nowhere.
    pub fn plain(diagnostic: Diagnostic) -> Problems {
        Problems {
            sources: Sources::default(),
            list: vec![diagnostic],
        }
    }
}

/// Renders errors for the terminal, in colour where standard error is one.
pub fn render(sources: &Sources, list: &[Diagnostic]) -> String {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let mut text = String::new();
    for (n, diagnostic) in list.iter().enumerate() {
        let gap = if n == 0 { "" } else { "\n" };
        writeln!(text, "{gap}{}", diagnostic.render(sources, &renderer)).expect("strings grow");
    }
    text
}

/// The known name nearest to a misspelt one, as a hint: "did you mean `train`?".
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known
        .into_iter()
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .filter(|(distance, candidate)| {
            // Near enough, and not merely as short: `u` is not a slip for `s`.
            let longest = candidate.chars().count().max(name.chars().count());
            *distance <= longest.div_ceil(3) && *distance < longest
        })
        // Of equals the one that begins like it: `unit` is meant to be `units` and not `init`.
        .min_by_key(|(distance, candidate)| {
            let alike = name.chars().zip(candidate.chars());
            let alike = alike.take_while(|(a, b)| a == b).count();
            (*distance, std::cmp::Reverse(alike), *candidate)
        })
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn of_names_that_are_equally_near_the_one_that_begins_alike_is_meant() {
        let meant = |name| nearest(name, ["init", "units", "until"]);
        assert_eq!(meant("unit").as_deref(), Some("did you mean `units`?"));
        assert_eq!(meant("inti").as_deref(), Some("did you mean `init`?"));
        assert_eq!(meant("epochs"), None);
    }
}
