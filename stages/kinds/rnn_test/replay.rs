//! Takes a test generation at its word: what its tables say is worked out again from the inputs.
//!
//! The model is read from its weights and asked about every original and every changed input; that exactly one
//! position was changed, and to the token nearest to the recorded point, is looked for among all embeddings one by one.
//! Decides no result, so it is in no key.

use nn::batch::{Example, Sequence, Target};
use nn::coverage::{Coverage, CoverageSpec, CoverageValue};
use nn::victim::{Neural, Observed};

use super::generate::Item;
use super::nearest::squared;
use super::tested::{Input, Tested};
use crate::models::failure;
use crate::tables::generated::{
    ADVERSARIAL, By, GENERATED, Generated, ID, LOSS_AFTER, LOSS_BEFORE, NEW, OLD, ORIGINAL, POINT,
    POSITION, PREDICTED_AFTER, SCALE, TARGET,
};
use crate::tables::{coverage, generated};
use crate::{Disagreement, Failure, Outputs, Replayed, Task};

/// Recomputes what the tables say. `exact`: numbers must have the same bits, because they were computed on the same
/// instruction sets.
pub fn replay(task: &Task<'_>, outputs: &Outputs, exact: bool) -> Result<Replayed, Failure> {
    let tested = Tested::open(task)?;
    let (model, params) = tested.network()?;
    let victim = Neural::new(model, params).map_err(failure)?;
    let inputs = tested.inputs(task, &victim)?;
    let stored = Generated(&outputs["generated"]);
    let mut report = Report::default();
    if stored.0.num_rows() != inputs.len() {
        let (rows, inputs) = (stored.0.num_rows(), inputs.len());
        report.add(None, "", ID, rows, format!("{inputs} inputs"));
        return Ok(report.replayed(rows, 0, 0));
    }
    let span = model.layout().find("embedding");
    let span = span.ok_or_else(|| Failure::new("the victim has no embeddings"))?;
    let check = Check {
        tested: &tested,
        victim: &victim,
        embeddings: params.view(span),
        allowed: tested.allowed(),
        exact,
    };
    let steps = inputs
        .iter()
        .map(|input| input.item.input.len())
        .max()
        .unwrap_or(0);
    let spec = tested.settings().coverage;
    let mut covered = Coverage::new(CoverageSpec { steps, ..spec });
    let (mut values, mut found, mut asked) = (Vec::new(), 0, 0);
    for (n, input) in inputs.iter().enumerate() {
        let (now, queries) = check.row(&stored, n, &input.item, &mut report)?;
        asked += queries;
        if exact && report.list.is_empty() {
            check.predictions(&stored, n, input, &mut report)?;
        }
        if let Some(now) = now {
            found += 1;
            covered.record(&now.layers, &now.input).map_err(failure)?;
            values.push(covered.values());
        }
    }
    if exact && report.list.is_empty() {
        compare_coverage(&outputs["coverage"], &values, &mut report);
        compare_rates(&stored, outputs, &mut report);
    }
    Ok(report.replayed(inputs.len(), found, asked))
}

/// What does not agree.
#[derive(Default)]
struct Report {
    list: Vec<Disagreement>,
}

impl Report {
    fn add(
        &mut self,
        row: Option<usize>,
        id: &str,
        column: &str,
        stored: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) {
        self.list.push(Disagreement {
            row,
            id: id.to_owned(),
            column: column.to_owned(),
            stored: stored.to_string(),
            found: found.to_string(),
        });
    }

    fn replayed(self, rows: usize, successes: usize, asked: usize) -> Replayed {
        Replayed {
            rows,
            successes,
            asked,
            budget: "exactly 1 position".to_owned(),
            disagreements: self.list,
        }
    }
}

/// What rows are compared with.
struct Check<'a> {
    tested: &'a Tested,
    victim: &'a Neural<'a>,
    embeddings: ndarray::ArrayView2<'a, f32>,
    allowed: Vec<u32>,
    exact: bool,
}

impl Check<'_> {
    /// Compares a row: what the model goes through on the changed input, if there is one, and how often it was asked.
    fn row(
        &self,
        stored: &Generated<'_>,
        n: usize,
        item: &Item,
        report: &mut Report,
    ) -> Result<(Option<Observed>, usize), Failure> {
        let mut wrong = |column: &str, stored: String, found: String| {
            report.add(Some(n), &item.id, column, stored, found);
        };
        let id = stored.text(ID, n).unwrap_or_default();
        let original = stored.tokens(ORIGINAL, n).unwrap_or_default();
        let target = stored.tokens(TARGET, n).unwrap_or_default();
        if id != item.id || original != item.input || target != item.target {
            wrong(ID, id, format!("{}, the input at this place", item.id));
            return Ok((None, 0));
        }
        let adversarial = stored.tokens(ADVERSARIAL, n).unwrap_or_default();
        if adversarial.len() != original.len() {
            wrong(
                ADVERSARIAL,
                format!("{} tokens", adversarial.len()),
                original.len().to_string(),
            );
            return Ok((None, 0));
        }
        let places = 0..original.len();
        let changed: Vec<usize> = places
            .filter(|at| original[*at] != adversarial[*at])
            .collect();
        let generated = stored.flag(GENERATED, n).unwrap_or_default();
        let position = stored.int(POSITION, n).unwrap_or(-1);
        let expected: Vec<usize> = match generated {
            true => usize::try_from(position).into_iter().collect(),
            false => Vec::new(),
        };
        if changed != expected {
            wrong(
                POSITION,
                format!("{expected:?}"),
                format!("{changed:?} changed"),
            );
            return Ok((None, 0));
        }
        let ask = |input: &[u32]| self.ask(input, &item.target);
        let mut same = |column: &str, now: &Observed| {
            let (told, now) = (
                stored.float(column, n).unwrap_or(f64::NAN),
                now.losses.sum(),
            );
            let close = (told - now).abs() <= 1e-2 * now.abs();
            if (self.exact && told != now) || !close {
                wrong(column, told.to_string(), now.to_string());
            }
        };
        same(LOSS_BEFORE, &ask(&original)?);
        let now = match generated {
            true => Some(ask(&adversarial)?),
            false => None,
        };
        if let Some(now) = &now {
            same(LOSS_AFTER, now);
            self.replacement(
                stored,
                n,
                item,
                [original[changed[0]], adversarial[changed[0]]],
                report,
            );
        }
        let asked = 1 + usize::from(now.is_some());
        Ok((now, asked))
    }

    /// That what a sequence-to-sequence model makes of the row is what is stored.
    fn predictions(
        &self,
        stored: &Generated<'_>,
        n: usize,
        input: &Input,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let adversarial = stored.tokens(ADVERSARIAL, n).unwrap_or_default();
        let found = self.tested.predicted(self.victim, input, &adversarial)?;
        let row = stored.row(n);
        let told = row.map(|row| (row.predictions, row.undone));
        let same = match (&found, &told) {
            (None, Some((None, _))) => true,
            (Some(found), Some((Some(told), was))) => (&found.rows, &found.undone) == (told, was),
            _ => false,
        };
        if !same {
            let what = "another prediction of this input";
            report.add(
                Some(n),
                &input.item.id,
                PREDICTED_AFTER,
                "a prediction",
                what,
            );
        }
        Ok(())
    }

    fn ask(&self, input: &[u32], target: &[u32]) -> Result<Observed, Failure> {
        let example = Example {
            input: Sequence::Tokens(input.to_vec()),
            target: Target::Tokens(target.to_vec()),
        };
        let seen = self.victim.observe(&[&example]).map_err(failure)?;
        seen.into_iter()
            .next()
            .ok_or_else(|| Failure::new("no answer"))
    }

    /// That the tokens are those that are named, and that the new one is nearest to the recorded point.
    fn replacement(
        &self,
        stored: &Generated<'_>,
        n: usize,
        item: &Item,
        [old, new]: [u32; 2],
        report: &mut Report,
    ) {
        for (column, token) in [(OLD, old), (NEW, new)] {
            let told = stored.text(column, n).unwrap_or_default();
            let found = self.tested.name(token);
            if told != found {
                report.add(Some(n), &item.id, column, told, found);
            }
        }
        if !self.allowed.contains(&new) {
            let rule = "a token that may be put into an input";
            report.add(Some(n), &item.id, ADVERSARIAL, new, rule);
        }
        if stored.text(generated::BY, n).as_deref() != Some(By::Gradient.name()) {
            return;
        }
        let point = stored.floats(POINT, n).unwrap_or_default();
        let row = |token: &u32| self.embeddings.row(*token as usize);
        let distance = |token: &u32| squared(&row(token).to_vec(), &point);
        let nearest = self.allowed.iter().copied();
        let nearest = nearest.min_by(|a, b| distance(a).total_cmp(&distance(b)).then(a.cmp(b)));
        if point.len() != self.embeddings.ncols() || nearest != Some(new) {
            let found = nearest.map(|token| self.tested.name(token));
            let found = format!("{} is nearest", found.unwrap_or_default());
            report.add(Some(n), &item.id, POINT, self.tested.name(new), found);
        }
        let length = distance(&old).sqrt();
        let told = stored.float(generated::L2, n).unwrap_or(f64::NAN);
        let close = (told - length).abs() <= 1e-3 * (1.0 + length);
        if !close || stored.float(SCALE, n).is_none() {
            report.add(Some(n), &item.id, generated::L2, told, length);
        }
    }
}

/// That the coverage of the changed inputs, in their order, is what is stored.
fn compare_coverage(
    stored: &arrow::record_batch::RecordBatch,
    values: &[Vec<CoverageValue>],
    report: &mut Report,
) {
    if coverage::write(values) != *stored {
        let found = "another coverage of the inputs in their order";
        report.add(None, "", coverage::COVERED, "a table", found);
    }
}

/// That the rates are those of the rows.
fn compare_rates(stored: &Generated<'_>, outputs: &Outputs, report: &mut Report) {
    let rows: Option<Vec<_>> = (0..stored.0.num_rows()).map(|n| stored.row(n)).collect();
    let again = rows.map(|rows| crate::tables::rates::write(&rows));
    if again.as_ref() != outputs.get("rates") {
        report.add(None, "", "rates", "a row", "other rates of these rows");
    }
}
