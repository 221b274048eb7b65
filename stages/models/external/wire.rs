//! Requests to a model and its answers, as Arrow streams or as JSON: the program chooses when it starts.
//!
//! ```text
//! it starts:   {"ablate": "model/1", "format": "arrow" or "json", "gradients": true or false,
//!               "attention": true or false, "states": true or false}
//! we ask:      {"ask": "probabilities"} and a table with the column `items`, or "items" in the header
//! it answers:  a table with the column `probabilities`, or likewise in the header; {"error": "…"} if it cannot
//! we ask:      {"ask": "gradients"}, `items` and `classes`
//! it answers:  `probabilities` and `gradients`: of log p[class] by the vector of each token, one after the other
//! we ask:      {"ask": "vectors"}
//! it answers:  `vectors`: one for each token of the vocabulary
//! we ask:      {"ask": "attention"} and `items`
//! it answers:  `attention`: a weight for each token, which add up to 1
//! we ask:      {"ask": "states"} and `items`
//! it answers:  {"layers": [{"parts": ["h", "c", …], "units": N}, …]} and `states`: for each item layer after layer, part
//!              after part, token after token, N numbers
//! ```

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, Int32Builder, ListBuilder, PrimitiveArray, StringArray,
};
use arrow::datatypes::{ArrowPrimitiveType, Float32Type, Float64Type};
use arrow::record_batch::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use nn::linear::Vectors;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::programs::serving::Frame;

/// What a program is asked about.
#[derive(Clone, Debug, PartialEq)]
pub enum Items {
    /// Texts.
    Texts(Vec<String>),
    /// Ids of tokens.
    Tokens(Vec<Vec<u32>>),
}

/// How tables travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As Arrow streams.
    Arrow,
    /// As JSON.
    Json,
}

/// The protocol that this version speaks.
const PROTOCOL: &str = "model/1";

/// How far probabilities may be from adding up to 1.
const ROUNDING: f64 = 1e-3;

/// What a model answers beside probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Gradients by the vectors of its tokens, and those vectors.
    pub gradients: bool,
    /// How much it attends to each token.
    pub attention: bool,
    /// The states of its recurrent layers at each token.
    pub states: bool,
}

/// What a program chose, by its first frame. `needed`: what it must answer.
pub fn greeted(frame: &Frame, needed: Answers) -> Result<Format, String> {
    let said = |name: &str| frame.header.get(name).and_then(Value::as_str);
    let format = match (said("ablate"), said("format")) {
        (Some(PROTOCOL), Some("arrow")) => Format::Arrow,
        (Some(PROTOCOL), Some("json")) => Format::Json,
        (Some("attack/1"), _) => {
            return Err(
                "greets as an attack: call ablate.serve(predict=…), not ablate.attack(…)"
                    .to_owned(),
            );
        }
        (Some(other), _) if other != PROTOCOL => {
            return Err(format!(
                "speaks the protocol {other}, and this version of ablate {PROTOCOL}"
            ));
        }
        _ => return Err("does not greet as a model: call ablate.serve(predict=…)".to_owned()),
    };
    let all = [
        (needed.gradients, "gradients", "gradient=…, vectors=…"),
        (needed.attention, "attention", "attention=…"),
        (needed.states, "states", "states=…"),
    ];
    for (_, what, how) in all.into_iter().filter(|(needed, ..)| *needed) {
        if frame.header.get(what) != Some(&Value::Bool(true)) {
            return Err(format!(
                "does not answer {what}, and `{what}` is true: call ablate.serve(predict=…, {how})"
            ));
        }
    }
    Ok(format)
}

/// The question for the probabilities of items.
pub fn for_probabilities(items: &Items, format: Format) -> Frame {
    about("probabilities", items, format)
}

/// The question for the attention to the tokens of items.
pub fn for_attention(items: &Items, format: Format) -> Frame {
    about("attention", items, format)
}

/// The question for the recurrent states at the tokens of items.
pub fn for_states(items: &Items, format: Format) -> Frame {
    about("states", items, format)
}

fn about(what: &str, items: &Items, format: Format) -> Frame {
    match format {
        Format::Json => plain(json!({ "ask": what, "items": listed(items) })),
        Format::Arrow => Frame {
            header: json!({ "ask": what }),
            body: stream(vec![("items", column(items))]),
        },
    }
}

/// The question for gradients of items, each of one class.
pub fn for_gradients(items: &Items, classes: &[usize], format: Format) -> Frame {
    match format {
        Format::Json => {
            plain(json!({ "ask": "gradients", "items": listed(items), "classes": classes }))
        }
        Format::Arrow => {
            let classes = classes.iter().map(|class| *class as i32);
            let classes = Arc::new(Int32Array::from_iter_values(classes));
            Frame {
                header: json!({ "ask": "gradients" }),
                body: stream(vec![("items", column(items)), ("classes", classes)]),
            }
        }
    }
}

/// The question for the vectors of all tokens.
pub fn for_vectors() -> impl FnOnce(Format) -> Frame {
    |_| plain(json!({ "ask": "vectors" }))
}

fn plain(header: Value) -> Frame {
    Frame {
        header,
        body: Vec::new(),
    }
}

fn listed(items: &Items) -> Value {
    match items {
        Items::Texts(texts) => json!(texts),
        Items::Tokens(rows) => json!(rows),
    }
}

fn column(items: &Items) -> ArrayRef {
    match items {
        Items::Texts(texts) => Arc::new(StringArray::from_iter_values(texts)),
        Items::Tokens(rows) => {
            let mut list = ListBuilder::new(Int32Builder::new());
            for row in rows {
                list.append_value(row.iter().map(|id| Some(*id as i32)));
            }
            Arc::new(list.finish())
        }
    }
}

fn stream(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let table = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut bytes = Vec::new();
    let writer = StreamWriter::try_new(&mut bytes, table.schema_ref());
    let mut writer = writer.expect("written to memory");
    writer.write(&table).expect("written to memory");
    writer.finish().expect("written to memory");
    drop(writer);
    bytes
}

/// An answer to the question for gradients, of one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// Of all classes.
    pub probabilities: Vec<f32>,
    /// Vector after vector.
    pub gradient: Vec<f32>,
}

/// The probabilities that a program answers with; or what is wrong with its answer.
pub fn probabilities(frame: &Frame, items: usize, classes: usize) -> Result<Vec<Vec<f32>>, String> {
    let rows = lists(frame, "probabilities")?;
    check(&rows, items, classes)?;
    Ok(rows.into_iter().map(single).collect())
}

/// The gradients of items of so many steps; or what is wrong with the answer.
pub fn gradients(
    frame: &Frame,
    steps: &[usize],
    dim: usize,
    classes: usize,
) -> Result<Vec<Answered>, String> {
    let predicted = probabilities(frame, steps.len(), classes)?;
    let rows = lists(frame, "gradients")?;
    if rows.len() != steps.len() {
        let (got, asked) = (counted(rows.len(), "item"), steps.len());
        return Err(format!(
            "answered with gradients of {got}, and was asked about {asked}"
        ));
    }
    for (n, (row, steps)) in rows.iter().zip(steps).enumerate() {
        if row.len() != steps * dim {
            let (got, steps) = (counted(row.len(), "number"), counted(*steps, "token"));
            return Err(format!(
                "answered with a gradient of which row {n} has {got}, and was asked about {steps} with vectors of {dim}"
            ));
        }
        if row.iter().any(|g| !g.is_finite()) {
            return Err(format!(
                "answered with a gradient of which row {n} has a number that is not finite"
            ));
        }
    }
    let rows = predicted.into_iter().zip(rows);
    Ok(rows
        .map(|(probabilities, gradient)| Answered {
            probabilities,
            gradient: single(gradient),
        })
        .collect())
}

/// The vectors of all tokens; or what is wrong with the answer.
pub fn vectors(frame: &Frame) -> Result<Vectors, String> {
    let rows = lists(frame, "vectors")?;
    let dim = rows.first().map_or(0, Vec::len);
    let same = rows.iter().all(|row| row.len() == dim);
    if dim == 0 || !same || rows.iter().flatten().any(|x| !x.is_finite()) {
        return Err(
            "answered with vectors that are not rows of equally many finite numbers".to_owned(),
        );
    }
    Ok(Vectors {
        dim,
        data: rows.into_iter().flat_map(single).collect(),
    })
}

/// The attention weight of each token, for items with these numbers of tokens; or what is wrong with the answer.
pub fn attention(frame: &Frame, steps: &[usize]) -> Result<Vec<Vec<f32>>, String> {
    let rows = lists(frame, "attention")?;
    if rows.len() != steps.len() {
        let (got, asked) = (counted(rows.len(), "item"), steps.len());
        return Err(format!(
            "answered with the attention of {got}, and was asked about {asked}"
        ));
    }
    for (n, (row, steps)) in rows.iter().zip(steps).enumerate() {
        let sum: f64 = row.iter().sum();
        let problem = match () {
            () if row.len() != *steps => {
                let (got, tokens) = (counted(row.len(), "number"), counted(*steps, "token"));
                format!("has {got}, and was asked about {tokens}")
            }
            // Also what is not finite.
            () if !row.iter().all(|w| (0.0..=1.0 + ROUNDING).contains(w)) => {
                "has a number that is not between 0 and 1".to_owned()
            }
            () if *steps > 0 && (sum - 1.0).abs() > ROUNDING => {
                format!("adds up to {sum:.4}, not to 1")
            }
            () => continue,
        };
        return Err(format!(
            "answered with attention of which row {n} {problem}"
        ));
    }
    Ok(rows.into_iter().map(single).collect())
}

/// A recurrent layer, as a program describes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateLayer {
    /// `h`, and perhaps `c` and the gates `i`, `f`, `g`, `o`.
    pub parts: Vec<char>,
    /// Numbers in a state.
    pub units: usize,
}

/// What a state may be called.
const PARTS: &str = "hcifgo";

/// The layers, and the states of items with these numbers of tokens; or what is wrong with the answer.
pub fn states(frame: &Frame, steps: &[usize]) -> Result<(Vec<StateLayer>, Vec<Vec<f32>>), String> {
    let rows = lists(frame, "states")?;
    let layers = frame.header.get("layers").cloned().unwrap_or_default();
    let layers: Vec<StateLayer> = serde_json::from_value(layers).map_err(|error| {
        format!("answered with states and `layers` that cannot be read: {error}")
    })?;
    for (n, layer) in layers.iter().enumerate() {
        let problem = match () {
            () if !layer.parts.contains(&'h') => "has no hidden states, `h`".to_owned(),
            () if layer.units == 0 => "has no units".to_owned(),
            () => match layer.parts.iter().find(|part| !PARTS.contains(**part)) {
                Some(part) => format!("has `{part}`, and states are called h, c, i, f, g or o"),
                None => continue,
            },
        };
        return Err(format!("answered with states of which layer {n} {problem}"));
    }
    if layers.is_empty() {
        return Err("answered with states of no layer".to_owned());
    }
    if rows.len() != steps.len() {
        let (got, asked) = (counted(rows.len(), "item"), steps.len());
        return Err(format!(
            "answered with the states of {got}, and was asked about {asked}"
        ));
    }
    let width: usize = layers.iter().map(|l| l.parts.len() * l.units).sum();
    for (n, (row, steps)) in rows.iter().zip(steps).enumerate() {
        if row.len() != steps * width {
            let (got, tokens) = (counted(row.len(), "number"), counted(*steps, "token"));
            return Err(format!(
                "answered with states of which row {n} has {got}, and was asked about {tokens} with {width} numbers each"
            ));
        }
        if row.iter().any(|x| !x.is_finite()) {
            return Err(format!(
                "answered with states of which row {n} has a number that is not finite"
            ));
        }
    }
    Ok((layers, rows.into_iter().map(single).collect()))
}

fn single(row: Vec<f64>) -> Vec<f32> {
    row.into_iter().map(|x| x as f32).collect()
}

/// A list of floats for each row, from the header or from the table.
fn lists(frame: &Frame, name: &str) -> Result<Vec<Vec<f64>>, String> {
    if let Some(error) = frame.header.get("error").and_then(Value::as_str) {
        return Err(format!("could not answer:\n{}", error.trim_end()));
    }
    match frame.header.get(name) {
        Some(Value::Array(rows)) => rows.iter().map(|row| flat(row, name)).collect(),
        Some(_) => Err(not_lists(name)),
        None => table(&frame.body, name),
    }
}

fn not_lists(name: &str) -> String {
    format!("answered with `{name}` that are not lists of numbers")
}

/// The numbers of a list, or of a list of lists.
fn flat(row: &Value, name: &str) -> Result<Vec<f64>, String> {
    let mut numbers = Vec::new();
    for value in row.as_array().ok_or_else(|| not_lists(name))? {
        match value.as_f64() {
            Some(number) => numbers.push(number),
            None => numbers.extend(flat(value, name)?),
        }
    }
    Ok(numbers)
}

fn table(body: &[u8], name: &str) -> Result<Vec<Vec<f64>>, String> {
    let unreadable = |error: arrow::error::ArrowError| {
        format!("answered with a table that cannot be read: {error}")
    };
    let mut rows = Vec::new();
    for batch in StreamReader::try_new(body, None).map_err(unreadable)? {
        let batch = batch.map_err(unreadable)?;
        let column = batch.column_by_name(name);
        let column = column.ok_or_else(|| format!("answered without the column `{name}`"))?;
        for row in 0..column.len() {
            let numbers = list(column, row).as_deref().and_then(numbers);
            rows.push(numbers.ok_or_else(|| not_lists(name))?);
        }
    }
    Ok(rows)
}

fn list(column: &ArrayRef, row: usize) -> Option<ArrayRef> {
    let small = column.as_list_opt::<i32>().map(|lists| lists.value(row));
    let large = || column.as_list_opt::<i64>().map(|lists| lists.value(row));
    let fixed = || {
        column
            .as_fixed_size_list_opt()
            .map(|lists| lists.value(row))
    };
    small.or_else(large).or_else(fixed)
}

fn numbers(list: &dyn Array) -> Option<Vec<f64>> {
    fn all<T: ArrowPrimitiveType>(list: &PrimitiveArray<T>) -> Option<Vec<f64>>
    where
        T::Native: Into<f64>,
    {
        (list.null_count() == 0).then(|| list.values().iter().map(|p| (*p).into()).collect())
    }
    let single = list.as_primitive_opt::<Float32Type>().and_then(all);
    single.or_else(|| list.as_primitive_opt::<Float64Type>().and_then(all))
}

/// "1 row", "2 rows".
fn counted(n: usize, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    }
}

/// Refuses what are not probabilities of the classes.
fn check(rows: &[Vec<f64>], items: usize, classes: usize) -> Result<(), String> {
    if rows.len() != items {
        let (got, items) = (counted(rows.len(), "row"), counted(items, "item"));
        return Err(format!("answered with {got}, and was asked about {items}"));
    }
    for (n, row) in rows.iter().enumerate() {
        let sum: f64 = row.iter().sum();
        let outside = row
            .iter()
            .find(|p| !(-ROUNDING..=1.0 + ROUNDING).contains(*p));
        let outside = outside.map(|p| format!("has {p}, which is not between 0 and 1"));
        let problem = match () {
            () if row.len() != classes => {
                let got = counted(row.len(), "number");
                format!("has {got}, and `classes` is {classes}")
            }
            () if row.iter().any(|p| !p.is_finite()) => {
                "has a number that is not finite".to_owned()
            }
            () if outside.is_some() => outside.unwrap_or_default(),
            () if (sum - 1.0).abs() > ROUNDING => format!("adds up to {sum:.4}, not to 1"),
            () => continue,
        };
        return Err(format!(
            "answered with probabilities of which row {n} {problem}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(header: Value) -> Frame {
        Frame {
            header,
            body: Vec::new(),
        }
    }

    #[test]
    fn a_program_says_what_it_speaks() {
        let arrow = said(json!({ "ablate": "model/1", "format": "arrow" }));
        let none = Answers::default();
        assert_eq!(greeted(&arrow, none), Ok(Format::Arrow));
        let gradients = Answers {
            gradients: true,
            ..none
        };
        assert_eq!(
            greeted(&arrow, gradients).unwrap_err(),
            "does not answer gradients, and `gradients` is true: call ablate.serve(predict=…, gradient=…, vectors=…)"
        );
        let attention = Answers {
            attention: true,
            ..none
        };
        assert_eq!(
            greeted(&arrow, attention).unwrap_err(),
            "does not answer attention, and `attention` is true: call ablate.serve(predict=…, attention=…)"
        );
        let later = said(json!({ "ablate": "model/2", "format": "arrow" }));
        assert_eq!(
            greeted(&later, none).unwrap_err(),
            "speaks the protocol model/2, and this version of ablate model/1"
        );
        assert!(
            greeted(&said(json!({})), none)
                .unwrap_err()
                .contains("ablate.serve")
        );
    }

    #[test]
    fn answers_are_probabilities_or_refused() {
        let rows = |rows: Value| probabilities(&said(json!({ "probabilities": rows })), 1, 2);
        assert_eq!(rows(json!([[0.25, 0.75]])), Ok(vec![vec![0.25, 0.75]]));
        let wrong = [
            (
                json!([]),
                "answered with 0 rows, and was asked about 1 item",
            ),
            (json!([[1.0]]), "row 0 has 1 number, and `classes` is 2"),
            (json!([[0.5, 0.6]]), "row 0 adds up to 1.1000, not to 1"),
            (
                json!([[-1.0, 2.0]]),
                "row 0 has -1, which is not between 0 and 1",
            ),
            (
                json!("x"),
                "answered with `probabilities` that are not lists of numbers",
            ),
        ];
        for (given, expected) in wrong {
            let why = rows(given).unwrap_err();
            assert!(why.ends_with(expected), "{why}");
        }
        let failed = probabilities(&said(json!({ "error": "Traceback\nNameError\n" })), 1, 2);
        assert_eq!(
            failed.unwrap_err(),
            "could not answer:\nTraceback\nNameError"
        );
    }

    #[test]
    fn arrow_tables_arrive_as_they_were_sent() {
        let asked = for_probabilities(&Items::Tokens(vec![vec![3, 1], vec![]]), Format::Arrow);
        let mut reader = StreamReader::try_new(asked.body.as_slice(), None).unwrap();
        let batch = reader.next().unwrap().unwrap();
        let lists = batch.column(0).as_list::<i32>();
        assert_eq!(
            lists
                .value(0)
                .as_primitive::<arrow::datatypes::Int32Type>()
                .values(),
            &[3, 1]
        );
        assert_eq!((lists.len(), lists.value(1).len()), (2, 0));
        let mut list = ListBuilder::new(arrow::array::Float32Builder::new());
        list.append_value([Some(0.5), Some(f32::NAN)]);
        let nan = Frame {
            header: json!({}),
            body: stream(vec![("probabilities", Arc::new(list.finish()))]),
        };
        let why = probabilities(&nan, 1, 2).unwrap_err();
        assert!(
            why.ends_with("row 0 has a number that is not finite"),
            "{why}"
        );
    }

    #[test]
    fn attention_is_a_weight_for_each_token() {
        let said = |rows: Value| attention(&said(json!({ "attention": rows })), &[2, 0]);
        assert_eq!(
            said(json!([[0.25, 0.75], []])),
            Ok(vec![vec![0.25, 0.75], vec![]])
        );
        let wrong = [
            (
                json!([[0.25, 0.75]]),
                "answered with the attention of 1 item, and was asked about 2",
            ),
            (
                json!([[1.0], []]),
                "answered with attention of which row 0 has 1 number, and was asked about 2 tokens",
            ),
            (
                json!([[0.5, 0.6], []]),
                "answered with attention of which row 0 adds up to 1.1000, not to 1",
            ),
            (
                json!([[-0.5, 1.5], []]),
                "answered with attention of which row 0 has a number that is not between 0 and 1",
            ),
        ];
        for (given, expected) in wrong {
            assert_eq!(said(given).unwrap_err(), expected);
        }
    }

    #[test]
    fn states_are_those_of_every_layer_at_every_token() {
        let layers = json!([{ "parts": ["h", "c"], "units": 2 }]);
        let said = |layers: &Value, rows: Value| {
            states(&said(json!({ "layers": layers, "states": rows })), &[1])
        };
        let (read, rows) = said(&layers, json!([[1.0, 2.0, 3.0, 4.0]])).unwrap();
        assert_eq!(
            (read[0].units, &rows[0][..]),
            (2, &[1.0, 2.0, 3.0, 4.0][..])
        );
        let row = json!([[1.0, 2.0, 3.0, 4.0]]);
        let wrong = [
            (
                layers.clone(),
                json!([]),
                "answered with the states of 0 items, and was asked about 1",
            ),
            (
                layers.clone(),
                json!([[1.0]]),
                "answered with states of which row 0 has 1 number, and was asked about 1 token with 4 numbers each",
            ),
            (json!([]), row.clone(), "answered with states of no layer"),
            (
                json!([{ "parts": ["c"], "units": 4 }]),
                row.clone(),
                "answered with states of which layer 0 has no hidden states, `h`",
            ),
            (
                json!([{ "parts": ["h", "x"], "units": 2 }]),
                row,
                "answered with states of which layer 0 has `x`, and states are called h, c, i, f, g or o",
            ),
        ];
        for (layers, rows, expected) in wrong {
            assert_eq!(said(&layers, rows).unwrap_err(), expected);
        }
    }

    #[test]
    fn gradients_have_the_shape_of_what_was_asked() {
        let said = |gradients: Value| {
            let header = json!({ "probabilities": [[0.5, 0.5]], "gradients": gradients });
            gradients_of(&said(header))
        };
        fn gradients_of(frame: &Frame) -> Result<Vec<Answered>, String> {
            gradients(frame, &[2], 3, 2)
        }
        let nested = said(json!([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]])).unwrap();
        assert_eq!(
            nested,
            said(json!([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])).unwrap()
        );
        assert_eq!(nested[0].gradient, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(
            said(json!([[1.0]])).unwrap_err(),
            "answered with a gradient of which row 0 has 1 number, and was asked about 2 tokens with vectors of 3"
        );
        assert!(
            said(json!([]))
                .unwrap_err()
                .contains("gradients of 0 items")
        );
    }
}
