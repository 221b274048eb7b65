//! Examples in the layout of TextAttack's CSV log: changed words in `[[ ]]`, scores as its
//! untargeted goal has them (one minus the probability of the true class), and its names for
//! how an attack ended.

use csv::{QuoteStyle, WriterBuilder};

use crate::publish::report::examples::{Examples, Row, Table};

const COLUMNS: [&str; 9] = [
    "original_text",
    "perturbed_text",
    "original_score",
    "perturbed_score",
    "original_output",
    "perturbed_output",
    "ground_truth_output",
    "num_queries",
    "result_type",
];

/// The examples of one attack. `queries` has how many each item cost.
pub fn csv(examples: &Examples, table: &Table, queries: &[i64]) -> Vec<u8> {
    let mut writer = WriterBuilder::new()
        .quote_style(QuoteStyle::NonNumeric)
        .from_writer(Vec::new());
    writer.write_record(COLUMNS).expect("memory takes it");
    for (row, queries) in table.rows.iter().zip(queries) {
        let [before, after] = texts(examples, table, row);
        let Row(_, [truth, was, now], success, attacked, .., p_before, p_after, _, _, _) = row;
        let score = |likely: &[f64]| {
            let place = truth.and_then(|truth| usize::try_from(truth).ok());
            let p = place.and_then(|place| likely.get(place));
            p.map_or(String::new(), |p| format!("{:.4}", 1.0 - p))
        };
        let class = |class: &Option<i64>| class.map_or(String::new(), |class| class.to_string());
        // TextAttack does not attack what is wrong before.
        let ended = match (success, *attacked && was == truth) {
            (true, _) => "Successful",
            (false, true) => "Failed",
            (false, false) => "Skipped",
        };
        let record = [
            before,
            after,
            score(p_before),
            score(p_after),
            class(was),
            class(now),
            class(truth),
            queries.to_string(),
            ended.to_owned(),
        ];
        writer.write_record(record).expect("memory takes it");
    }
    writer.into_inner().expect("memory takes it")
}

fn texts(examples: &Examples, table: &Table, row: &Row) -> [String; 2] {
    let word = |number: &u32| examples.words[*number as usize].as_str();
    let mut sides = [Vec::new(), Vec::new()];
    let mut at = 0;
    for (from, gone, put) in &row.6 {
        for side in &mut sides {
            side.extend(
                row.5[at..*from]
                    .iter()
                    .map(|number| word(number).to_owned()),
            );
        }
        let marked = |number: &u32| format!("[[{}]]", word(number));
        sides[0].extend(row.5[*from..from + gone].iter().map(marked));
        sides[1].extend(put.iter().map(marked));
        at = from + gone;
    }
    for side in &mut sides {
        side.extend(row.5[at..].iter().map(|number| word(number).to_owned()));
    }
    sides.map(|side| side.join(table.joiner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::report::outcome::AttackOutcome;

    #[test]
    fn rows_are_as_textattack_logs_them() {
        let words = ["a", "good", "film", "bad"].map(str::to_owned).to_vec();
        let row = |success, was, changes| {
            Row(
                "7".into(),
                [Some(1), Some(was), Some(0)],
                success,
                true,
                1,
                vec![0, 1, 2],
                changes,
                vec![0.1, 0.9],
                vec![0.75, 0.25],
                Vec::new(),
                Vec::new(),
                AttackOutcome::of([Some(1), Some(was), Some(0)], success, true),
            )
        };
        let table = Table {
            step: 0,
            name: "swap".to_owned(),
            total: 2,
            classes: Vec::new(),
            joiner: " ",
            outcomes: Vec::new(),
            rows: vec![row(true, 1, vec![(1, 1, vec![3])]), row(false, 0, vec![])],
        };
        let examples = Examples {
            words,
            tables: Vec::new(),
            drawings: Vec::new(),
        };
        let text = String::from_utf8(csv(&examples, &table, &[12, 0])).unwrap();
        assert_eq!(
            text,
            "\"original_text\",\"perturbed_text\",\"original_score\",\"perturbed_score\",\"original_output\",\
             \"perturbed_output\",\"ground_truth_output\",\"num_queries\",\"result_type\"\n\
             \"a [[good]] film\",\"a [[bad]] film\",0.1000,0.7500,1,0,1,12,\"Successful\"\n\
             \"a good film\",\"a good film\",0.1000,0.7500,0,0,1,0,\"Skipped\"\n"
        );
    }
}
