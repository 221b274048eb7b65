//! GloVe vectors as one JSON object: `vectors` maps each word to its numbers, then its norm and its place.
//!
//! Read as a stream: only the table of vectors is ever in memory, never the JSON.

use std::fmt;
use std::io::{BufReader, Read};

use arrow::record_batch::RecordBatch;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::opened::{limit, unexpected};
use crate::Failure;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::table::Vectors;

const DIMENSION: usize = 100;

/// From the JSON file of a package.
pub fn json(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let opened = &mut files[0];
    let most = limit(opened);
    let text = BufReader::with_capacity(1 << 18, &mut opened.file);
    parse(text.take(most), &opened.entry.path)
}

fn parse(text: impl Read, path: &str) -> Result<RecordBatch, Failure> {
    let mut rows = Rows {
        vectors: Vectors::new(DIMENSION),
        count: 0,
    };
    let mut reader = serde_json::Deserializer::from_reader(text);
    let read = Object(&mut rows).deserialize(&mut reader);
    let read = read.and_then(|()| reader.end());
    read.map_err(|error| unexpected(path, rows.count, &error.to_string()))?;
    match rows.count {
        0 => Err(unexpected(path, 0, "there are no `vectors`")),
        _ => Ok(rows.vectors.finish()),
    }
}

struct Rows {
    vectors: Vectors,
    count: usize,
}

/// The whole file: everything but `vectors` is skipped.
struct Object<'a>(&'a mut Rows);

/// `{ "word": [numbers], … }`
struct Words<'a>(&'a mut Rows);

/// The numbers of one word.
struct Numbers<'a>(&'a mut [f32; DIMENSION], usize);

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `vectors`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "vectors" => map.next_value_seed(Words(self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Words<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Words<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers for each word")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut numbers = [0.0; DIMENSION];
        while let Some(word) = map.next_key::<String>()? {
            map.next_value_seed(Numbers(&mut numbers, self.0.count))?;
            self.0.vectors.push(&word, &numbers);
            self.0.count += 1;
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Numbers<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Numbers<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{DIMENSION} numbers, a norm and a place")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        use serde::de::Error;
        let short = |found| A::Error::invalid_length(found, &"100 numbers, a norm and a place");
        for (k, number) in self.0.iter_mut().enumerate() {
            *number = list.next_element()?.ok_or_else(|| short(k))?;
        }
        let _norm: f64 = list.next_element()?.ok_or_else(|| short(DIMENSION))?;
        let place: usize = list.next_element()?.ok_or_else(|| short(DIMENSION + 1))?;
        if place != self.1 {
            let what = format!("the word of place {place} stands at place {}", self.1);
            return Err(A::Error::custom(what));
        }
        match list.next_element::<IgnoredAny>()? {
            None => Ok(()),
            Some(_) => Err(short(DIMENSION + 3)),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::Float32Type;

    use super::*;

    fn vector(first: f32, more: &str) -> String {
        let rest = ",0.5".repeat(DIMENSION - 1);
        format!("[{first}{rest}{more}]")
    }

    fn message(text: &str) -> String {
        parse(text.as_bytes(), "v.json").unwrap_err().message
    }

    #[test]
    fn words_have_their_vectors_in_the_order_of_the_file() {
        let text = format!(
            r#"{{"size":2,"words":["a","b"],"vectors":{{"a":{},"b":{}}},"unkVector":[0,-1]}}"#,
            vector(0.25, ",4.9,0"),
            vector(-1.5, ",5.1,1"),
        );
        let table = parse(text.as_bytes(), "v.json").unwrap();
        assert_eq!(table["word"].as_string::<i32>().value(1), "b");
        let v = table["v"].as_fixed_size_list().value(1);
        let v = v.as_primitive::<Float32Type>().values();
        assert_eq!((v.len(), v[0], v[99]), (100, -1.5, 0.5));
    }

    #[test]
    fn mistakes_have_the_row() {
        let of = |a: String| format!(r#"{{"vectors":{{"a":{a}}}}}"#);
        assert_eq!(message("{}"), "v.json, row 0: there are no `vectors`");
        let short = message(&of("[1,2]".to_owned()));
        assert!(
            short.starts_with("v.json, row 0: invalid length 2, expected 100 numbers, a norm"),
            "{short}"
        );
        let moved = message(&of(vector(1.0, ",4.9,7")));
        assert!(
            moved.starts_with("v.json, row 0: the word of place 7 stands at place 0"),
            "{moved}"
        );
        let long = message(&of(vector(1.0, ",4.9,0,1")));
        assert!(long.contains("invalid length 103"), "{long}");
        assert!(message(r#"{"vectors":{"a":[1"#).contains("EOF while parsing"));
    }
}
