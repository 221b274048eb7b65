//! Random grids: instances are the product of the axes less what is excluded, whatever the order of the file.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::build;
use crate::config::{PipelineRequest, read};

/// What decides the keys of an instance, but for digests: parameters, seed, code, and what each port reads.
type Identity = (String, Option<u64>, String, Vec<String>);

/// The instances of a pipeline by label; none if it is wrong.
fn planned(text: &str) -> Option<BTreeMap<String, Identity>> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pipeline.toml");
    std::fs::write(&file, text).unwrap();
    let request = PipelineRequest {
        file,
        ..PipelineRequest::default()
    };
    let pipeline = read(&request).ok()?;
    let plan = build(&pipeline).ok()?;
    let each = plan.instances.iter().enumerate().map(|(n, instance)| {
        let mut wires: Vec<String> = instance
            .wires
            .iter()
            .map(|wire| {
                let read: Vec<String> = wire.from.sources().map(|s| plan.source_label(s)).collect();
                format!("{} <- {}", wire.port, read.join(", "))
            })
            .collect();
        wires.sort();
        let params = format!("{:?}", instance.params);
        let code = plan.code(n).digest.to_string();
        (instance.label.clone(), (params, instance.seed, code, wires))
    });
    Some(each.collect())
}

/// A grid: how many values each axis has, which axes a stage mentions, and which combinations it does not have.
#[derive(Clone, Debug)]
struct RandomGrid {
    sizes: Vec<usize>,
    mentioned: Vec<bool>,
    excluded: Vec<Vec<Option<usize>>>,
}

impl RandomGrid {
    fn axes(&self) -> Vec<usize> {
        (0..self.sizes.len())
            .filter(|n| self.mentioned[*n])
            .collect()
    }

    fn is_excluded(&self, point: &[usize]) -> bool {
        let axes = self.axes();
        self.excluded.iter().any(|exclusion| {
            let mut named = axes
                .iter()
                .zip(point)
                .filter(|(axis, _)| exclusion[**axis].is_some());
            let any = axes.iter().any(|axis| exclusion[*axis].is_some());
            any && named.all(|(axis, value)| exclusion[*axis] == Some(*value))
        })
    }

    /// Every combination of values that is not excluded, by trying all.
    fn product(&self) -> BTreeSet<String> {
        let axes = self.axes();
        let mut points: Vec<Vec<usize>> = vec![Vec::new()];
        for axis in &axes {
            let longer = points.iter().flat_map(|point| {
                (0..self.sizes[*axis]).map(|value| [point.as_slice(), &[value]].concat())
            });
            points = longer.collect();
        }
        points.retain(|point| !self.is_excluded(point));
        let label = |point: &Vec<usize>| {
            let parts = axes
                .iter()
                .zip(point)
                .map(|(axis, value)| format!("x{axis}=v{value}"));
            let parts: Vec<String> = parts.collect();
            match parts.is_empty() {
                true => "s".to_owned(),
                false => format!("s[{}]", parts.join(",")),
            }
        };
        points.iter().map(label).collect()
    }

    fn exclusions(&self) -> String {
        let axes = self.axes();
        let each = self.excluded.iter().filter_map(|exclusion| {
            let parts = axes.iter().filter_map(|axis| {
                let value = exclusion[*axis]?;
                Some(format!("x{axis} = \"v{value}\""))
            });
            let parts: Vec<String> = parts.collect();
            (!parts.is_empty()).then(|| format!("{{ {} }}", parts.join(", ")))
        });
        let each: Vec<String> = each.collect();
        match each.is_empty() {
            true => String::new(),
            false => format!("except = [{}]\n", each.join(", ")),
        }
    }

    /// The pipeline, with its stages in the given order.
    fn text(&self, except: bool, backwards: bool) -> String {
        let axes = self.sizes.iter().enumerate().map(|(n, size)| {
            let values: Vec<String> = (0..*size).map(|v| format!("\"v{v}\"")).collect();
            format!("x{n} = [{}]\n", values.join(", "))
        });
        let mentions: Vec<String> = self
            .axes()
            .iter()
            .map(|n| format!("'${{x{n}}}' AS c{n}"))
            .collect();
        let columns = match mentions.is_empty() {
            true => "1 AS c".to_owned(),
            false => mentions.join(", "),
        };
        let all = (0..self.sizes.len()).map(|n| format!("'${{x{n}}}' AS c{n}"));
        let all: Vec<String> = all.collect();
        let exclusions = if except {
            self.exclusions()
        } else {
            String::new()
        };
        let mut stages = [
            "[stage.t]\nkind = \"table\"\nrows = [{ a = 1 }]\n".to_owned(),
            format!(
                "[stage.s]\nkind = \"sql\"\ninputs = {{ t = \"t\" }}\nquery = \"SELECT {columns} FROM t\"\n{exclusions}"
            ),
            "[stage.reader]\nkind = \"sql\"\ninputs = { s = \"s\" }\nquery = \"SELECT * FROM s\"\n"
                .to_owned(),
            format!(
                "[stage.apart]\nkind = \"sql\"\nquery = \"SELECT {} FROM t\"\ninputs = {{ t = \"t\" }}\n",
                all.join(", ")
            ),
        ];
        if backwards {
            stages.reverse();
        }
        format!("[axes]\n{}{}", axes.collect::<String>(), stages.concat())
    }
}

fn grids() -> impl Strategy<Value = RandomGrid> {
    let axes = 1..4_usize;
    axes.prop_flat_map(|axes| {
        let sizes = proptest::collection::vec(1..4_usize, axes);
        let mentioned = proptest::collection::vec(any::<bool>(), axes);
        let exclusion = proptest::collection::vec(proptest::option::of(0..3_usize), axes);
        let excluded = proptest::collection::vec(exclusion, 0..3);
        (sizes, mentioned, excluded).prop_map(|(sizes, mentioned, mut excluded)| {
            for exclusion in &mut excluded {
                for (value, size) in exclusion.iter_mut().zip(&sizes) {
                    *value = value.map(|value| value % size);
                }
            }
            RandomGrid {
                sizes,
                mentioned,
                excluded,
            }
        })
    })
}

fn of<'a>(plan: &'a BTreeMap<String, Identity>, stage: &str) -> BTreeMap<&'a String, &'a Identity> {
    let own = |label: &str| label.split('[').next() == Some(stage);
    plan.iter().filter(|(label, _)| own(label)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn instances_are_the_product_less_what_is_excluded(grid in grids()) {
        let whole = planned(&grid.text(false, false)).unwrap();
        let Some(plan) = planned(&grid.text(true, false)) else {
            // Refused: an exclusion left nothing out, or nothing of a value.
            return Ok(());
        };
        let labels: BTreeSet<String> = of(&plan, "s").into_keys().cloned().collect();
        prop_assert_eq!(labels, grid.product());
        // A reader has the instances whose inputs exist.
        prop_assert_eq!(of(&plan, "reader").len(), of(&plan, "s").len());
        // What remains, and what does not read it, is as it was.
        for (label, identity) in &plan {
            prop_assert_eq!(Some(identity), whole.get(label));
        }
        prop_assert_eq!(of(&plan, "apart"), of(&whole, "apart"));
    }

    #[test]
    fn the_order_of_stages_changes_nothing(grid in grids()) {
        prop_assert_eq!(planned(&grid.text(true, false)), planned(&grid.text(true, true)));
    }

    #[test]
    fn like_changes_no_key(grid in grids()) {
        let plain = grid.text(true, false);
        let Some(before) = planned(&plain) else { return Ok(()) };
        let after = planned(&format!("{plain}[stage.copy]\nlike = \"s\"\n")).unwrap();
        for (label, identity) in &before {
            prop_assert_eq!(Some(identity), after.get(label));
        }
        let copies = of(&after, "copy").into_values().cloned();
        let own = of(&before, "s").into_values().cloned();
        prop_assert_eq!(copies.collect::<Vec<_>>(), own.collect::<Vec<_>>());
    }
}
