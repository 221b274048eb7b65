//! What is drawn: pinned, nested, and independent of the order of rows.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn rows(count: usize) -> Vec<Row> {
    let row = |n: usize| Row {
        id: format!("r{n}"),
        split: "train".into(),
        label: Some(n.is_multiple_of(3).into()),
    };
    (0..count).map(row).collect()
}

fn ids(rows: &[Row], plan: &Plan, seed: u64) -> BTreeSet<(String, String)> {
    let drawn = draw(rows, plan, seed).unwrap();
    drawn
        .into_iter()
        .map(|(row, split)| (rows[row].id.clone(), split))
        .collect()
}

fn sample(size: usize, balance: bool) -> Plan {
    Plan {
        balance,
        sample: [("train".to_owned(), size)].into(),
        ..Plan::default()
    }
}

#[test]
fn halves_in_order_are_halves_of_each_class() {
    let rows = rows(12);
    let step = Move {
        of: "train".into(),
        into: "dev".into(),
        part: Part::Share(0.5),
        in_order: true,
    };
    let plan = Plan {
        moves: vec![step],
        ..Plan::default()
    };
    let drawn = draw(&rows, &plan, 0).unwrap();
    let dev: Vec<usize> = drawn
        .iter()
        .filter(|(_, split)| split == "dev")
        .map(|(row, _)| *row)
        .collect();
    assert_eq!(dev, [0, 1, 2, 3, 4, 5], "4 of 8 and 2 of 4");
}

#[test]
fn the_choice_is_pinned() {
    let rows = rows(20);
    let drawn = draw(&rows, &sample(4, false), 7).unwrap();
    let drawn: Vec<usize> = drawn.into_iter().map(|(row, _)| row).collect();
    assert_eq!(drawn, [0, 1, 5, 17]);
    assert_ne!(
        ids(&rows, &sample(4, false), 7),
        ids(&rows, &sample(4, false), 8)
    );
}

#[test]
fn what_is_not_there_is_an_error() {
    let message = |plan: &Plan| draw(&rows(9), plan, 0).unwrap_err();
    let splits = Plan {
        splits: vec!["test".into()],
        ..Plan::default()
    };
    assert_eq!(message(&splits), "no row has the split `test`");
    let step = |of: &str, rows| Move {
        of: of.into(),
        into: "dev".into(),
        part: Part::Rows(rows),
        in_order: false,
    };
    let moves = |step| Plan {
        moves: vec![step],
        ..Plan::default()
    };
    assert_eq!(
        message(&moves(step("test", 0))),
        "no row has the split `test`"
    );
    assert_eq!(
        message(&moves(step("train", 10))),
        "the split `train` has only 9 rows, not 10"
    );
    let plan = Plan {
        sample: [("test".to_owned(), 3)].into(),
        ..Plan::default()
    };
    assert_eq!(message(&plan), "no row has the split `test`");
}

proptest! {
    #[test]
    fn a_bigger_sample_contains_the_smaller(count in 1usize..60, a in 0usize..60, b in 0usize..60, seed: u64, balance: bool) {
        let rows = rows(count);
        let (small, big) = (ids(&rows, &sample(a.min(b), balance), seed), ids(&rows, &sample(a.max(b), balance), seed));
        prop_assert!(small.is_subset(&big));
        if !balance {
            prop_assert_eq!(small.len(), a.min(b).min(count));
        }
    }

    #[test]
    fn the_order_of_rows_does_not_matter(count in 1usize..60, size in 0usize..60, rotate in 0usize..60, seed: u64, balance: bool) {
        let mut shuffled = rows(count);
        let moves = vec![Move { of: "train".into(), into: "dev".into(), part: Part::Share(0.3), in_order: false }];
        let plan = Plan { moves, ..sample(size, balance) };
        let before = ids(&shuffled, &plan, seed);
        shuffled.rotate_left(rotate % count);
        prop_assert_eq!(before, ids(&shuffled, &plan, seed));
    }

    #[test]
    fn balanced_classes_are_equal(count in 2usize..60, seed: u64) {
        let rows = rows(count);
        let plan = Plan { balance: true, ..Plan::default() };
        let drawn = draw(&rows, &plan, seed).unwrap();
        let ones = drawn.iter().filter(|(row, _)| rows[*row].label == Some(1)).count();
        prop_assert_eq!(ones * 2, drawn.len());
    }

    #[test]
    fn quotas_add_up(sizes in proptest::collection::vec(1usize..50, 1..6), share in 0.0f64..=1.0) {
        let all: usize = sizes.iter().sum();
        let total = (all as f64 * share).round() as usize;
        let quotas = quotas(&sizes, total);
        prop_assert_eq!(quotas.iter().sum::<usize>(), total);
        prop_assert!(quotas.iter().zip(&sizes).all(|(quota, size)| quota <= size));
    }

    #[test]
    fn a_larger_total_takes_nothing_back(sizes in proptest::collection::vec(1usize..60, 1..12)) {
        let all: usize = sizes.iter().sum();
        let mut before = vec![0; sizes.len()];
        for total in 1..=all {
            // One more for the class with the largest size / (2 had + 1), as plainly as it can be said.
            let weight = |n: usize| sizes[n] as f64 / (2 * before[n] + 1) as f64;
            let open = (0..sizes.len()).filter(|n| before[*n] < sizes[*n]);
            let next = open.reduce(|best, n| if weight(n) > weight(best) { n } else { best });
            before[next.unwrap()] += 1;
            prop_assert_eq!(&quotas(&sizes, total), &before);
        }
        prop_assert_eq!(before, sizes);
    }
}
