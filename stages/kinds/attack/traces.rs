//! Runs of a recurrent network step by step, for pictures: a row for each number of each step.
//!
//! `nominal` is the run over the row as it was, `attacked` the run over what the attack left; both
//! are computed afresh from the stored sequences, whatever the attack itself saw.

use arrow::record_batch::RecordBatch;
use ndarray::{ArrayView1, ArrayView2, Axis};
use nn::batch::Sequence;
use nn::stepping::{Envelope, Stepper, contraction, example_1};
use rayon::prelude::*;

use super::outcome::Outcome;
use crate::Failure;
use crate::models::failure;
use crate::models::loaded::Loaded;
use crate::tables::traces::{self, TraceNumber};

/// The table. Series: `x` (the sample that was read), `d` (what
/// was added to it), `state`, `p` (what the classifier would say now); of the nominal run `measure` (below
/// 0 nearby states part at this step) and, for a vanilla network of one layer, `slack` (above 0 Example 1's
/// condition holds); of the attacked run `error` (how far the states are apart) and `bound` (how far they
/// can be at most).
pub fn table(loaded: &Loaded, outcomes: &[Outcome]) -> Result<RecordBatch, Failure> {
    let numbers = |outcome: &Outcome| -> Result<Vec<TraceNumber>, Failure> {
        let (model, params) = loaded
            .network()
            .ok_or_else(|| Failure::new("only recurrent networks have traces"))?;
        let (Sequence::Vectors(original), Sequence::Vectors(moved)) =
            (&outcome.original, &outcome.trace.input)
        else {
            return Err(Failure::new("only signals have traces")
                .help("leave `traces` out, or connect a data set of signals")
                .at("traces"));
        };
        let mut all = Vec::new();
        for (run, read) in [("nominal", original), ("attacked", moved)] {
            let mut stepper = Stepper::new(model, params).map_err(failure)?;
            let mut state = stepper.start();
            let samples = read.outer_iter().zip(original.outer_iter());
            let samples = std::iter::once(None).chain(samples.map(Some));
            for (step, sample) in samples.enumerate() {
                let mut push = |series, values: &mut dyn Iterator<Item = f64>| {
                    all.extend(values.enumerate().map(|(channel, value)| TraceNumber {
                        run,
                        step,
                        series,
                        channel,
                        value,
                    }));
                };
                if let Some((x, before)) = &sample {
                    if run == "nominal" {
                        let measure = contraction(&mut stepper, state.view(), *x);
                        push("measure", &mut std::iter::once(measure.map_err(failure)?));
                        // Only a vanilla network of one layer has it.
                        if let Ok(slack) = example_1(model, params, *x) {
                            let least = slack.into_iter().fold(f64::INFINITY, f64::min);
                            push("slack", &mut std::iter::once(least));
                        }
                    }
                    let next = stepper.step(row(state.view()), row(*x)).map_err(failure)?;
                    state = next.row(0).to_owned();
                    let d = x.iter().zip(before);
                    push("x", &mut x.iter().map(|x| f64::from(*x)));
                    push("d", &mut d.map(|(x, y)| f64::from(*x) - f64::from(*y)));
                }
                push("state", &mut state.iter().map(|h| f64::from(*h)));
                let p = stepper.probabilities(row(state.view())).map_err(failure)?;
                push("p", &mut p.iter().map(|p| f64::from(*p)));
            }
        }
        let mut envelope = Envelope::new(model, params, 4).map_err(failure)?;
        let pairs = original.outer_iter().zip(moved.outer_iter());
        for (k, (x, moved)) in pairs.enumerate() {
            let (bound, error) = envelope.push(x, moved).map_err(failure)?;
            let number = |series, value| TraceNumber {
                run: "attacked",
                step: k + 1,
                series,
                channel: 0,
                value,
            };
            all.extend([number("error", error), number("bound", bound)]);
        }
        Ok(all)
    };
    let all: Vec<Vec<TraceNumber>> = outcomes.par_iter().map(numbers).collect::<Result<_, _>>()?;
    let items = outcomes.iter().zip(all);
    let items = items.map(|(outcome, numbers)| (outcome.id.as_str(), outcome.label, numbers));
    Ok(traces::write(&items.collect::<Vec<_>>()))
}

/// One item, as the only row.
fn row(item: ArrayView1<'_, f32>) -> ArrayView2<'_, f32> {
    item.insert_axis(Axis(0))
}
