//! A stage's keys at one point of its axes: what is written, then what points set, then what is changed from outside.

use std::borrow::Cow;

use super::axis::Axis;
use super::input::Input;
use super::params::{Bindings, fill};
use super::renamed;
use super::stage::StageDecl;
use super::tree::{Entry, Node};

/// The keys of a stage at a point.
pub struct Effective {
    /// Parameters, as written.
    pub params: Vec<Entry>,
    /// The seed, as written.
    pub seed: Option<Node>,
    /// What the ports read, as written.
    pub inputs: Vec<Input>,
    /// Which of the stage's changes have an effect here.
    pub applied: Vec<usize>,
}

impl Effective {
    fn put(&mut self, entry: &Entry) {
        if entry.key == "seed" {
            self.seed = Some(entry.node.clone());
        } else if let Some(port) = entry.key.strip_prefix("inputs.") {
            let input = Input {
                port: port.to_owned(),
                span: entry.key_span,
                node: entry.node.clone(),
            };
            match self.inputs.iter_mut().find(|old| old.port == port) {
                Some(old) => *old = input,
                None => self.inputs.push(input),
            }
        } else {
            match self.params.iter_mut().find(|old| old.key == entry.key) {
                Some(old) => *old = entry.clone(),
                None => self.params.push(entry.clone()),
            }
        }
    }
}

impl StageDecl {
    /// Its keys where its axes (those that decide its keys, in order) have the values at these positions.
    pub fn at(&self, axes: &[Axis], own: &[usize]) -> Effective {
        let bindings = self.bindings(axes, own);
        let value = |axis: usize| {
            let at = self.axes.iter().position(|known| *known == axis);
            own[at.expect("an axis that sets keys decides them")]
        };
        let mut effective = Effective {
            params: self.params.clone(),
            seed: self.seed.clone(),
            inputs: self.inputs.clone(),
            applied: Vec::new(),
        };
        for (axis, _) in &self.with {
            let points = axes[*axis].points.as_ref();
            let point = points.and_then(|points| points.get(value(*axis)));
            for entry in point.into_iter().flat_map(|point| &point.own) {
                effective.put(&self.present(entry));
            }
        }
        for (n, change) in self.changes.iter().enumerate() {
            let here = change.point.is_none_or(|(axis, at)| value(axis) == at);
            let entry = self.present(&change.entry);
            if here && self.applies(&entry.key, &effective.params, &bindings) {
                effective.put(&entry);
                effective.applied.push(n);
            }
        }
        effective
    }

    /// A key that a point or a choice sets, by its present name.
    fn present<'a>(&self, entry: &'a Entry) -> Cow<'a, Entry> {
        renamed::current(self.kind, entry).map_or(Cow::Borrowed(entry), Cow::Owned)
    }

    /// The values of its axes, by name.
    pub fn bindings<'a>(&self, axes: &'a [Axis], own: &[usize]) -> Bindings<'a> {
        let values = self.axes.iter().zip(own);
        values
            .map(|(axis, at)| (axes[*axis].name.as_str(), &axes[*axis].values[*at]))
            .collect()
    }

    /// Whether a parameter is one of those that are in force with what the parameters choose: of an attack or a
    /// model. Others, wrong ones too, are.
    fn applies(&self, key: &str, params: &[Entry], bindings: &Bindings<'_>) -> bool {
        let choices = self.kind.choices();
        let has = |params: &[stages::Param]| params.iter().any(|param| param.name == key);
        let Some(owner) = choices.iter().find(|choice| has(choice.params)) else {
            return true;
        };
        let selector = params.iter().find(|entry| entry.key == owner.selector);
        let chosen = selector.map(|entry| fill(&entry.node, bindings));
        let chosen = chosen.as_ref().and_then(store::Value::as_text);
        let own = choices.iter().find(|choice| Some(choice.name) == chosen);
        own.is_none_or(|own| has(own.params))
    }
}
