//! `misspell`: texts with misspellings beside the right ones, to train and test a spell checker.
//!
//! Each character is kept but for a share of them, of which a third each is swapped with the next one, preceded by a
//! random lower-case letter, or deleted (Currie's noise maker, as RNN-Test has it). A row depends on the seed and its
//! id alone. Knows nothing of models.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::record_batch::RecordBatch;
use nn::Stream;
use store::{Digest, Params};

use crate::contract::description::{Description, Inputs, Param, Port, Ports};
use crate::contract::expected::{Expected, ExpectedInputs, ExpectedOutputs, Mismatch};
use crate::contract::role::Role;
use crate::params::settings::{Settings, failure};
use crate::tables::sequences;
use crate::{Failure, Outputs, Stage, Task};

/// The kind `misspell`.
pub struct Misspell;

static DESCRIPTION: Description = Description {
    kind: "misspell",
    summary: "Texts with misspellings beside the right ones, drawn by the seed.",
    params: &[
        Param::text(
            "text",
            "text",
            "The text column; the right text has the same name with `_b`.",
        ),
        Param::float(
            "noise",
            0.05,
            (1e-6, 1.0),
            "The probability that a character is swapped, preceded by a letter, or deleted.",
        ),
    ],
    seeded: true,
    role: Role::Other,
};

impl Stage for Misspell {
    fn describe(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn ports(&self, _: &Params) -> Ports {
        let port = |name: &str| Port {
            name: name.to_owned(),
            holds: "table",
            required: true,
        };
        Ports {
            inputs: Inputs::Named(vec![port("rows")]),
            outputs: vec![port("rows")],
        }
    }

    fn expect(
        &self,
        params: &Params,
        inputs: &ExpectedInputs<'_>,
    ) -> Result<ExpectedOutputs, Mismatch> {
        let column = Settings(params).text("text").unwrap_or("text");
        let known = inputs.of("rows").cloned().unwrap_or_default();
        Ok(vec![Expected {
            columns: known.columns.map(|mut columns| {
                columns.push(format!("{column}_b"));
                columns
            }),
            second_text: Some(format!("{column}_b")),
            ..known
        }])
    }

    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure> {
        let settings = Settings(task.params);
        let name = settings.text("text").unwrap_or("text");
        let share = settings.float("noise").map_err(failure)?;
        let rows = &task.inputs["rows"];
        let place = rows.schema().index_of(name);
        let place = place.map_err(|_| {
            let schema = rows.schema();
            let known: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            Failure::new(format!("the rows have no column `{name}`"))
                .help(format!("their columns: {}", known.join(", ")))
                .at("text")
        })?;
        let second = format!("{name}_b");
        if rows.column_by_name(&second).is_some() {
            return Err(
                Failure::new(format!("the rows have a column `{second}` already"))
                    .help("the right text goes there: connect rows of single texts"),
            );
        }
        let texts = rows.column(place).as_string_opt::<i32>();
        let texts = texts
            .ok_or_else(|| Failure::new(format!("the column `{name}` is not text")).at("text"))?;
        let ids = ids(rows)?;
        let stream = Stream::new(task.seed, "misspell");
        let noisy = texts
            .iter()
            .zip(&ids)
            .map(|(text, id)| text.map(|text| misspelt(text, share, stream.item(number(id)))));
        let noisy: StringArray = noisy.collect();
        let mut columns = rows.columns().to_vec();
        let right = std::mem::replace(&mut columns[place], Arc::new(noisy) as ArrayRef);
        columns.push(right);
        let mut fields: Vec<Arc<Field>> = rows.schema().fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(second, DataType::Utf8, true)));
        let schema = Schema::new_with_metadata(fields, rows.schema().metadata().clone());
        let table = RecordBatch::try_new(Arc::new(schema), columns);
        let table = table.map_err(|error| Failure::new(error.to_string()))?;
        Ok([("rows".to_owned(), table)].into())
    }
}

/// What names each row.
fn ids(rows: &RecordBatch) -> Result<Vec<String>, Failure> {
    let column = rows.column_by_name(sequences::ID);
    let column = column.ok_or_else(|| {
        Failure::new("the rows have no column `id`")
            .help("misspellings are drawn by seed and id: add one in a sql stage")
    })?;
    let texts = column.as_string_opt::<i32>();
    let numbers = column.as_primitive_opt::<Int64Type>();
    Ok((0..column.len())
        .map(|n| match (texts, numbers) {
            (Some(texts), _) => texts.value(n).to_owned(),
            (_, Some(numbers)) => numbers.value(n).to_string(),
            _ => n.to_string(),
        })
        .collect())
}

/// A number for an id.
fn number(id: &str) -> u64 {
    let digest = Digest::of(id.as_bytes()).to_string();
    u64::from_str_radix(&digest[..16], 16).unwrap_or_default()
}

/// A text with misspellings.
fn misspelt(text: &str, share: f64, stream: Stream) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut noisy = String::with_capacity(text.len() + 8);
    let mut n = 0;
    while n < characters.len() {
        let own = stream.item(n as u64);
        if own.uniform(0) >= share {
            noisy.push(characters[n]);
        } else {
            match own.below(1, 3) {
                // The last character has none to be swapped with, and stays.
                0 => {
                    noisy.extend(characters.get(n + 1));
                    noisy.push(characters[n]);
                    n += 1;
                }
                1 => {
                    noisy.push((b'a' + own.below(2, 26) as u8) as char);
                    noisy.push(characters[n]);
                }
                _ => {}
            }
        }
        n += 1;
    }
    noisy
}

#[cfg(test)]
mod tests {
    use nn::Stream;

    use super::misspelt;

    #[test]
    fn a_share_of_characters_is_changed_in_three_ways() {
        let text = "abcdefghij".repeat(3000);
        let noisy = misspelt(&text, 0.05, Stream::new(1, "misspell"));
        let (before, after) = (text.len() as f64, noisy.len() as f64);
        // As many letters are inserted as deleted, up to chance.
        assert!((after / before - 1.0).abs() < 0.005, "{after}");
        assert_eq!(misspelt(&text, 1e-6, Stream::new(1, "misspell")), text);
        let whole = misspelt("ab", 1.0, Stream::new(1, "misspell"));
        let all = ["ba", "", "a", "b"];
        let inserted = |c: &str| whole.ends_with(c);
        assert!(
            all.contains(&whole.as_str()) || inserted("a") || inserted("b"),
            "{whole}"
        );
    }

    #[test]
    fn each_way_happens() {
        let made: Vec<String> = (0..300)
            .map(|n| misspelt("xy", 0.3, Stream::new(1, "misspell").item(n)))
            .collect();
        let seen = |text: &str| made.iter().any(|made| made == text);
        assert!(seen("xy") && seen("yx") && seen("x") && seen("y"));
        assert!(
            made.iter()
                .any(|made| made.len() == 3 && made.ends_with("xy"))
        );
    }
}
