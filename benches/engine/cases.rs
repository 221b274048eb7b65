//! The cases: what is done to a DAG, in which order, and what must come of it.
//! The tools take turns, so that a busy moment of the machine does not fall on one of them alone.

use crate::bench::{Bench, Expected, Lane};
use crate::dag::{DIAL, Dag};
use crate::row::Step;

impl Bench {
    /// Makes everything, then asks again.
    pub fn cold_and_noop(&mut self, dag: &Dag) {
        let mut lanes = self.lanes(dag, &[Step::Cold, Step::Noop]);
        for round in 0..self.rounds {
            for lane in &mut lanes {
                self.cold(dag, lane, round);
            }
        }
        for lane in &mut lanes {
            lane.slow = false;
        }
        let expected = Expected {
            value: dag.last_value(DIAL),
            ran: Some(0),
            ablate_ran: 0,
        };
        for round in 0..self.rounds {
            for lane in &mut lanes {
                self.run(dag, lane, Step::Noop, round, &expected);
            }
        }
    }

    /// Makes everything, then turns the dial to a number that was never seen, again and again.
    pub fn one_change(&mut self, dag: &Dag) {
        let mut lanes = self.lanes(dag, &[Step::PlanChange, Step::Change]);
        for lane in &mut lanes {
            self.prepare(dag, lane, Step::Change);
        }
        for round in 0..self.rounds {
            for lane in &mut lanes {
                let dial = unseen(round);
                self.turn(dag, lane, dial, round);
                self.plan(dag, lane, Step::PlanChange, round, dag.after_dial());
                let expected = Expected {
                    value: dag.last_value(dial),
                    ran: None,
                    ablate_ran: dag.after_dial(),
                };
                self.run(dag, lane, Step::Change, round, &expected);
            }
        }
    }

    /// Makes everything, then turns the dial and turns it back.
    pub fn sweep(&mut self, dag: &Dag) {
        let mut lanes = self.lanes(dag, &[Step::Cold, Step::Change, Step::Revert]);
        for lane in &mut lanes {
            self.cold(dag, lane, 0);
            lane.slow = false;
        }
        for round in 0..self.rounds {
            for lane in &mut lanes {
                let steps = [
                    (Step::Change, unseen(round), dag.after_dial()),
                    (Step::Revert, DIAL, 0),
                ];
                for (step, dial, ablate_ran) in steps {
                    self.turn(dag, lane, dial, round);
                    let expected = Expected {
                        value: dag.last_value(dial),
                        ran: None,
                        ablate_ran,
                    };
                    self.run(dag, lane, step, round, &expected);
                }
            }
        }
    }

    /// Only asks what would run.
    pub fn plan_only(&mut self, dag: &Dag) {
        let mut lanes = self.lanes(dag, &[Step::PlanCold]);
        for lane in &mut lanes {
            self.empty(dag, lane, Step::PlanCold);
        }
        for round in 0..self.rounds {
            for lane in &mut lanes {
                self.plan(dag, lane, Step::PlanCold, round, dag.nodes.len());
            }
        }
    }

    fn cold(&mut self, dag: &Dag, lane: &mut Lane, round: u32) {
        if lane.out || (round > 0 && lane.slow) {
            return;
        }
        self.empty(dag, lane, Step::Cold);
        let count = dag.nodes.len();
        let expected = Expected {
            value: dag.last_value(DIAL),
            ran: Some(count),
            ablate_ran: count,
        };
        self.run(dag, lane, Step::Cold, round, &expected);
    }
}

/// A number for the dial that makes no stage's input one that was ever seen. A small step would not
/// do: ablate knows inputs by content, so a chain shifted by one finds nearly all its results.
fn unseen(round: u32) -> i64 {
    DIAL + 1_000_000 * (1 + i64::from(round))
}
