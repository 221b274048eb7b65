//! The ablations of a pipeline file, by its text alone: for runs whose file may have changed since.

use super::axes::check_axes;
use super::axis_overlay::LeftOut;
use super::tree::{self, Raw, Table};
use crate::diagnostic::Sources;

/// Each axis whose points change other stages, with the name of its base. None of a text that is not a pipeline.
pub fn ablations(text: &str) -> Vec<(String, String)> {
    let mut sources = Sources::default();
    let source = sources.add("", text);
    let Ok(mut root) = tree::parse(&sources, source) else {
        return Vec::new();
    };
    let mut section = |key: &str| match root.take(key).map(|entry| entry.node.raw) {
        Some(Raw::Table(table)) => table,
        _ => Table::default(),
    };
    let (axes, stages) = (section("axes"), section("stage"));
    let axes = check_axes(axes, &LeftOut::new(), &stages, &mut Vec::new());
    let bases = axes.iter().filter_map(|axis| {
        let base = axis.values[axis.base()?].as_text()?;
        Some((axis.name.clone(), base.to_owned()))
    });
    bases.collect()
}
