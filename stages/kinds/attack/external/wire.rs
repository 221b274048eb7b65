//! What travels between us and an attack in a program of the user, as headers of frames; bodies are empty.
//!
//! ```text
//! it says:     {"ablate": "attack/1", "batch": 1}
//! we ask:      {"ask": "start", "classes": 2, "vocabulary": ["[PAD]", …]}
//! it answers:  {"answer": "ready"}
//! we ask:      {"ask": "attack", "items": [{"id", "words" or "tokens", "label", "probabilities", "seed", "queries_left"}]}
//! it asks:     {"ask": "probabilities", "of": [0, 0], "rows": [["a", "word"], …]}     as often as it likes
//! we answer:   {"probabilities": [[…], …]}, {"refused": "…"} when the queries are used up, or {"error": "…"}
//! it answers:  {"answer": "rows", "rows": [{"id": "…", "row": ["a", "word"] or null}]}, or {"error": "…"}
//! ```
//! `of` says for which of the items a row is asked about. A row is a list of words, a text with spaces between them, or
//! a list of token ids.

use std::collections::HashMap;

use arrow::array::StringArray;
use serde_json::{Value, json};

use crate::programs::serving::Frame;

/// The protocol that this version speaks.
pub const PROTOCOL: &str = "attack/1";

/// Rows as a program writes them: words or ids.
pub struct Rows<'a> {
    words: &'a StringArray,
    ids: HashMap<&'a str, u32>,
    /// Whether it is sent words, or ids.
    texts: bool,
}

/// What a program says while it attacks.
#[derive(Debug, PartialEq)]
pub enum Said {
    /// It asks about rows, each of one of the items; or about what is not a row.
    Asks(Result<Vec<(usize, Vec<u32>)>, String>),
    /// Its last word on each item; none for an item that stays as it is.
    Rows(Vec<Option<Vec<u32>>>),
}

/// One item, as it is sent.
pub struct Sent<'a> {
    /// What names it.
    pub id: &'a str,
    /// Its tokens.
    pub tokens: &'a [u32],
    /// The true class.
    pub label: u32,
    /// The model's probabilities.
    pub probabilities: &'a [f32],
    /// For its random numbers.
    pub seed: u64,
    /// How often the model may be asked; none for as often as it likes.
    pub queries: Option<usize>,
}

/// How many items a program wants at once, by its first frame.
pub fn greeted(frame: &Frame) -> Result<usize, String> {
    let said = frame.header.get("ablate").and_then(Value::as_str);
    match said {
        Some(PROTOCOL) => {}
        Some("model/1") => {
            return Err("greets as a model: call ablate.attack(…), not ablate.serve(…)".to_owned());
        }
        Some(other) => {
            return Err(format!(
                "speaks the protocol {other}, and this version of ablate {PROTOCOL}"
            ));
        }
        None => return Err("does not greet as an attack: call ablate.attack(…)".to_owned()),
    }
    let batch = frame.header.get("batch").and_then(Value::as_u64);
    match batch.map(|batch| batch as usize) {
        Some(batch) if batch > 0 => Ok(batch),
        _ => Err("greets without a `batch` of at least 1".to_owned()),
    }
}

/// A frame without a body.
pub fn plain(header: Value) -> Frame {
    Frame {
        header,
        body: Vec::new(),
    }
}

impl<'a> Rows<'a> {
    /// Of a vocabulary.
    pub fn new(words: &'a StringArray, texts: bool) -> Rows<'a> {
        let ids = words.iter().zip(0_u32..);
        Rows {
            words,
            ids: ids.filter_map(|(word, id)| Some((word?, id))).collect(),
            texts,
        }
    }

    /// What is sent before all items.
    pub fn start(&self, classes: usize) -> Frame {
        let words: Vec<&str> = self.words.iter().map(Option::unwrap_or_default).collect();
        plain(json!({ "ask": "start", "classes": classes, "vocabulary": words }))
    }

    /// The question for adversarial rows.
    pub fn attack(&self, items: &[Sent<'_>]) -> Frame {
        let items: Vec<Value> = items.iter().map(|item| self.item(item)).collect();
        plain(json!({ "ask": "attack", "items": items }))
    }

    fn item(&self, item: &Sent<'_>) -> Value {
        let mut sent = json!({
            "id": item.id,
            "label": item.label,
            "probabilities": item.probabilities,
            "seed": item.seed,
            "queries_left": item.queries,
        });
        match self.texts {
            true => {
                let word = |id: &u32| self.words.value(*id as usize);
                sent["words"] = json!(item.tokens.iter().map(word).collect::<Vec<_>>());
            }
            false => sent["tokens"] = json!(item.tokens),
        }
        sent
    }

    /// What a program says of items with these ids; or what is wrong with it.
    pub fn said(&self, frame: &Frame, ids: &[&str]) -> Result<Said, String> {
        let header = &frame.header;
        if let Some(error) = header.get("error").and_then(Value::as_str) {
            return Err(format!("could not attack:\n{}", error.trim_end()));
        }
        let word = |name: &str| header.get(name).and_then(Value::as_str);
        match (word("ask"), word("answer")) {
            (Some("probabilities"), _) => Ok(Said::Asks(self.asked(header, ids.len()))),
            (_, Some("rows")) => self.answered(header, ids).map(Said::Rows),
            _ => Err("answered with neither rows nor a question".to_owned()),
        }
    }

    fn asked(&self, header: &Value, items: usize) -> Result<Vec<(usize, Vec<u32>)>, String> {
        let list = |name: &str| header.get(name).and_then(Value::as_array);
        let (Some(of), Some(rows)) = (list("of"), list("rows")) else {
            return Err("a question has the lists `of` and `rows`".to_owned());
        };
        if of.len() != rows.len() {
            let (of, rows) = (of.len(), rows.len());
            return Err(format!("`of` has {of} items, and `rows` has {rows}"));
        }
        let one = |(of, row): (&Value, &Value)| {
            let item = of.as_u64().map(|n| n as usize).filter(|n| *n < items);
            let item = item.ok_or_else(|| format!("`of` has {of}, which is not an item"))?;
            Ok((item, self.row(row)?))
        };
        of.iter().zip(rows).map(one).collect()
    }

    fn answered(&self, header: &Value, ids: &[&str]) -> Result<Vec<Option<Vec<u32>>>, String> {
        let rows = header.get("rows").and_then(Value::as_array);
        let rows = rows.ok_or("answered without the list `rows`")?;
        if rows.len() != ids.len() {
            let (got, asked) = (rows.len(), ids.len());
            return Err(format!("answered with {got} rows, and was given {asked}"));
        }
        let one = |(row, id): (&Value, &&str)| {
            let named = row.get("id").and_then(Value::as_str).unwrap_or_default();
            if named != *id {
                return Err(format!(
                    "answered with the row `{named}` where `{id}` was given"
                ));
            }
            match row.get("row") {
                None | Some(Value::Null) => Ok(None),
                Some(row) => {
                    let row = self.row(row);
                    let row = row.map_err(|why| format!("answered for the row `{id}`: {why}"))?;
                    Ok(Some(row))
                }
            }
        };
        rows.iter().zip(ids).map(one).collect()
    }

    /// The tokens of a row.
    fn row(&self, row: &Value) -> Result<Vec<u32>, String> {
        let what = match self.texts {
            true => "a text or a list of words",
            false => "a list of token ids",
        };
        let tokens: Vec<u32> = match row {
            Value::String(text) if self.texts => {
                let words = text.split_whitespace();
                words.map(|word| self.id(word)).collect::<Result<_, _>>()?
            }
            Value::Array(row) => {
                let each = row.iter().map(|token| match (token, self.texts) {
                    (Value::String(word), true) => self.id(word),
                    (Value::Number(id), false) => self.known(id),
                    _ => Err(format!("a row is {what}, and {token} is in it")),
                });
                each.collect::<Result<_, _>>()?
            }
            _ => return Err(format!("a row is {what}")),
        };
        match tokens.is_empty() {
            true => Err("a row has at least one word".to_owned()),
            false => Ok(tokens),
        }
    }

    fn id(&self, word: &str) -> Result<u32, String> {
        let id = self.ids.get(word).copied();
        id.ok_or_else(|| format!("`{word}` is not a word of the vocabulary"))
    }

    fn known(&self, id: &serde_json::Number) -> Result<u32, String> {
        use arrow::array::Array;
        let found = id.as_u64().filter(|id| *id < self.words.len() as u64);
        found.map(|id| id as u32).ok_or_else(|| {
            let last = self.words.len() - 1;
            format!("{id} is not a token: ids are 0 to {last}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_words_or_ids_of_the_vocabulary_for_the_items_that_were_sent() {
        let words = StringArray::from(vec!["[PAD]", "[UNK]", "good", "bad"]);
        let (texts, tokens) = (Rows::new(&words, true), Rows::new(&words, false));
        let rows = |rows: &Rows<'_>, sent: Value| {
            let frame = plain(json!({ "answer": "rows", "rows": sent }));
            rows.said(&frame, &["a"])
        };
        let one = Said::Rows(vec![Some(vec![2, 3])]);
        let given = json!([{ "id": "a", "row": ["good", "bad"] }]);
        assert_eq!(rows(&texts, given).unwrap(), one);
        let given = json!([{ "id": "a", "row": " good  bad" }]);
        assert_eq!(rows(&texts, given).unwrap(), one);
        let given = json!([{ "id": "a", "row": [2, 3] }]);
        assert_eq!(rows(&tokens, given).unwrap(), one);
        let given = json!([{ "id": "a" }]);
        assert_eq!(rows(&texts, given).unwrap(), Said::Rows(vec![None]));
        let wrong = [
            (&texts, json!([]), "answered with 0 rows, and was given 1"),
            (
                &texts,
                json!([{ "id": "b" }]),
                "answered with the row `b` where `a` was given",
            ),
            (
                &texts,
                json!([{ "id": "a", "row": "goood" }]),
                "answered for the row `a`: `goood` is not a word of the vocabulary",
            ),
            (
                &texts,
                json!([{ "id": "a", "row": [2] }]),
                "answered for the row `a`: a row is a text or a list of words, and 2 is in it",
            ),
            (
                &tokens,
                json!([{ "id": "a", "row": [4] }]),
                "answered for the row `a`: 4 is not a token: ids are 0 to 3",
            ),
            (
                &tokens,
                json!([{ "id": "a", "row": [] }]),
                "answered for the row `a`: a row has at least one word",
            ),
        ];
        for (form, given, expected) in wrong {
            assert_eq!(rows(form, given).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_question_names_the_item_that_it_is_about() {
        let words = StringArray::from(vec!["[PAD]", "[UNK]", "good"]);
        let rows = Rows::new(&words, true);
        let asked = |of: Value, sent: Value| {
            let frame = plain(json!({ "ask": "probabilities", "of": of, "rows": sent }));
            rows.said(&frame, &["a", "b"]).unwrap()
        };
        assert_eq!(
            asked(json!([1, 0]), json!(["good", ["good", "good"]])),
            Said::Asks(Ok(vec![(1, vec![2]), (0, vec![2, 2])]))
        );
        let why = |said: Said| match said {
            Said::Asks(Err(why)) => why,
            said => panic!("{said:?}"),
        };
        assert_eq!(
            why(asked(json!([2]), json!(["good"]))),
            "`of` has 2, which is not an item"
        );
        assert_eq!(
            why(asked(json!([0, 0]), json!(["good"]))),
            "`of` has 2 items, and `rows` has 1"
        );
        assert_eq!(
            why(asked(json!([0]), json!(["x"]))),
            "`x` is not a word of the vocabulary"
        );
    }

    #[test]
    fn a_program_says_that_it_is_an_attack() {
        let hello = |header| greeted(&plain(header));
        assert_eq!(hello(json!({ "ablate": "attack/1", "batch": 16 })), Ok(16));
        assert_eq!(
            hello(json!({ "ablate": "model/1" })).unwrap_err(),
            "greets as a model: call ablate.attack(…), not ablate.serve(…)"
        );
        assert!(hello(json!({})).unwrap_err().contains("ablate.attack"));
        assert!(hello(json!({ "ablate": "attack/1", "batch": 0 })).is_err());
    }
}
