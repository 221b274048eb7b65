//! The project's targets for the engine, each held against what was measured.

use std::fmt::Write;
use std::time::Duration;

use crate::dag::Shape;
use crate::row::{Case, Row, Step};

/// A target's words, and whether it was met with the figures; nothing if it was not measured.
type Verdict = (String, Option<(bool, String)>);

/// One line for each target.
pub fn render(rows: &[Row]) -> String {
    let mut verdicts = Vec::new();
    for shape in [Shape::Chain, Shape::Fan] {
        verdicts.push(noop_in_50_ms(rows, shape));
        verdicts.push(noop_beside_ninja(rows, shape));
        verdicts.push(cold_in_2_ms_a_stage(rows, shape));
        verdicts.push(cold_beside_ninja(rows, shape));
        verdicts.push(cold_is_linear(rows, shape));
        verdicts.push(noop_in_100_mb(rows, shape));
    }
    verdicts.push(change_runs_51(rows));
    verdicts.push(change_planned_in_20_ms(rows));
    verdicts.push(revert_runs_nothing_in_100_ms(rows));
    verdicts.push(long_chain_planned_in_2_s(rows));
    verdicts.push(grid_planned_in_200_ms(rows));

    let mut text = "Targets, by medians\n".to_owned();
    for (target, verdict) in verdicts {
        let _ = match verdict {
            None => writeln!(text, "  not measured  {target}"),
            Some((true, figures)) => writeln!(text, "  met           {target}: {figures}"),
            Some((false, figures)) => writeln!(text, "  NOT MET       {target}: {figures}"),
        };
    }
    text
}

fn noop_in_50_ms(rows: &[Row], shape: Shape) -> Verdict {
    let target = format!("no-op, {shape} of 1,000: at most 50 ms");
    let wall = wall(rows, "ablate", shape, 1_000, Step::Noop);
    (target, wall.map(|wall| at_most(wall, 50.0)))
}

fn noop_beside_ninja(rows: &[Row], shape: Shape) -> Verdict {
    let target = format!("no-op, {shape} of 1,000: at most 5 x ninja");
    let ratio = |figure: fn(&Row) -> Option<Duration>| {
        let of = |tool| figure(find(rows, tool, shape, 1_000, Step::Noop)?);
        Some(of("ablate")?.as_secs_f64() / of("ninja")?.as_secs_f64())
    };
    let wall = ratio(|row| Some(row.wall()?.0));
    let both = wall.zip(ratio(Row::cpu));
    let verdict =
        both.map(|(wall, cpu)| (wall <= 5.0, format!("{wall:.1} x wall, {cpu:.1} x cpu")));
    (target, verdict)
}

fn cold_in_2_ms_a_stage(rows: &[Row], shape: Shape) -> Verdict {
    let target = format!("cold, {shape} of 1,000: at most 2 ms a stage");
    let each = wall(rows, "ablate", shape, 1_000, Step::Cold).map(|wall| wall / 1_000);
    (target, each.map(|each| at_most(each, 2.0)))
}

fn cold_beside_ninja(rows: &[Row], shape: Shape) -> Verdict {
    let target = format!("cold, {shape} of 1,000: at most 1.2 x ninja's wall time");
    let of = |tool| wall(rows, tool, shape, 1_000, Step::Cold);
    let both = of("ablate").zip(of("ninja"));
    let ratio = both.map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64());
    (
        target,
        ratio.map(|ratio| (ratio <= 1.2, format!("{ratio:.2} x"))),
    )
}

/// Linear: a stage among a thousand costs no more than one among a hundred, give or take noise.
fn cold_is_linear(rows: &[Row], shape: Shape) -> Verdict {
    let target = format!("cold, {shape}: a stage of 1,000 costs at most 1.25 x a stage of 100");
    let each = |size: u32| {
        let wall = wall(rows, "ablate", shape, size as usize, Step::Cold)?;
        Some(millis(wall / size))
    };
    let both = each(100).zip(each(1_000));
    let verdict = both.map(|(few, many)| {
        let figures = format!("{many:.2} ms beside {few:.2} ms");
        (many <= few * 1.25, figures)
    });
    (target, verdict)
}

fn noop_in_100_mb(rows: &[Row], shape: Shape) -> Verdict {
    let target = format!("no-op, {shape} of 1,000: at most 100 MB");
    let row = find(rows, "ablate", shape, 1_000, Step::Noop);
    let peak = row.and_then(Row::peak);
    let verdict = peak.map(|peak| {
        let figure = format!("{:.1} MB", peak as f64 / 1e6);
        (peak <= 100_000_000, figure)
    });
    (target, verdict)
}

fn change_runs_51(rows: &[Row]) -> Verdict {
    let target = "stage 50 of a chain of 100 changed: runs 51".to_owned();
    let row = find(rows, "ablate", Shape::Chain, 100, Step::Change);
    let ran = row.and_then(|row| row.ran);
    (target, ran.map(|ran| (ran == 51, format!("ran {ran}"))))
}

fn change_planned_in_20_ms(rows: &[Row]) -> Verdict {
    let target = "stage 50 of a chain of 100 changed: planned in at most 20 ms".to_owned();
    let wall = wall(rows, "ablate", Shape::Chain, 100, Step::PlanChange);
    (target, wall.map(|wall| at_most(wall, 20.0)))
}

fn revert_runs_nothing_in_100_ms(rows: &[Row]) -> Verdict {
    let target = "sweep of 100, base changed back: runs 0, at most 100 ms".to_owned();
    let row = find(rows, "ablate", Shape::Sweep, 100, Step::Revert);
    let verdict = row.and_then(|row| {
        let (fast, figure) = at_most(row.wall()?.0, 100.0);
        let ran = row.ran?;
        Some((fast && ran == 0, format!("ran {ran}, {figure}")))
    });
    (target, verdict)
}

fn long_chain_planned_in_2_s(rows: &[Row]) -> Verdict {
    let target = "chain of 100,000: planned in at most 2 s".to_owned();
    let wall = wall(rows, "ablate", Shape::Chain, 100_000, Step::PlanCold);
    (target, wall.map(|wall| at_most(wall, 2_000.0)))
}

fn grid_planned_in_200_ms(rows: &[Row]) -> Verdict {
    let target = "grid of 10,000: planned in at most 200 ms".to_owned();
    let wall = wall(rows, "ablate", Shape::Grid, 10_000, Step::PlanCold);
    (target, wall.map(|wall| at_most(wall, 200.0)))
}

fn find<'a>(rows: &'a [Row], tool: &str, shape: Shape, size: usize, step: Step) -> Option<&'a Row> {
    let case = Case { shape, size, step };
    rows.iter().find(|row| row.case == case && row.tool == tool)
}

fn wall(rows: &[Row], tool: &str, shape: Shape, size: usize, step: Step) -> Option<Duration> {
    Some(find(rows, tool, shape, size, step)?.wall()?.0)
}

fn at_most(time: Duration, limit: f64) -> (bool, String) {
    let time = millis(time);
    (time <= limit, format!("{time:.2} ms"))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
