//! What goes through the pipes between us and a worker: a line of JSON, then tables as Arrow
//! streams, which say themselves where they end.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;

use arrow::array::new_empty_array;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::request::Request;
use crate::Failure;

/// What a worker is sent first.
#[derive(Serialize, Deserialize)]
pub struct Asked {
    /// What to do.
    pub request: Request,
    /// The names of the tables that follow.
    pub tables: Vec<String>,
}

/// What it answers first; a table follows if nothing failed.
#[derive(Serialize, Deserialize)]
pub struct Answered {
    /// Why there is no table.
    pub failed: Option<Failed>,
    /// Whether it can take another request.
    pub stays: bool,
}

/// A failure that can be sent.
#[derive(Serialize, Deserialize)]
pub struct Failed {
    pub message: String,
    pub help: Option<String>,
    pub param: Option<String>,
}

impl From<&Failure> for Failed {
    fn from(failure: &Failure) -> Failed {
        Failed {
            message: failure.message.clone(),
            help: failure.help.clone(),
            param: failure.param.map(str::to_owned),
        }
    }
}

/// Sends one line.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    // JSON writes line breaks inside texts as `\n`.
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Receives one line; `None` at the end.
pub fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    match from.read_until(b'\n', &mut line)? {
        0 => Ok(None),
        _ => Ok(Some(serde_json::from_slice(&line)?)),
    }
}

/// Sends a table.
pub fn send_table(to: &mut impl Write, table: &RecordBatch) -> io::Result<()> {
    let mut writer = StreamWriter::try_new(to, table.schema_ref()).map_err(io::Error::other)?;
    writer.write(table).map_err(io::Error::other)?;
    writer.finish().map_err(io::Error::other)
}

/// Receives a table.
pub fn receive_table(from: &mut impl Read) -> io::Result<RecordBatch> {
    let mut reader = StreamReader::try_new(from, None).map_err(io::Error::other)?;
    let schema = reader.schema();
    let table = reader.next().transpose().map_err(io::Error::other)?;
    // The end-of-stream marker must be read from the pipe too.
    while reader
        .next()
        .transpose()
        .map_err(io::Error::other)?
        .is_some()
    {}
    match table {
        Some(table) => Ok(table),
        None => {
            let fields = schema.fields().iter();
            let columns = fields.map(|field| new_empty_array(field.data_type()));
            let options = RecordBatchOptions::new().with_row_count(Some(0));
            RecordBatch::try_new_with_options(Arc::clone(&schema), columns.collect(), &options)
                .map_err(io::Error::other)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::io::BufReader;

    use arrow::array::{ArrayRef, Float32Array, ListArray, NullArray, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn messages_and_tables_follow_each_other() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "text",
                Arc::new(StringArray::from(vec![Some("a\nb"), None])),
            ),
            ("x", Arc::new(Float32Array::from(vec![f32::NAN, -0.0]))),
            ("none", Arc::new(NullArray::new(2))),
            (
                "list",
                Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([
                    Some(vec![Some(1)]),
                    None,
                ])),
            ),
        ];
        let table = RecordBatch::try_from_iter(columns).unwrap();
        let schema = table.schema().as_ref().clone();
        let schema = schema.with_metadata(HashMap::from([(
            "ablate.shape".to_owned(),
            "[*,9]".to_owned(),
        )]));
        let table = table.with_schema(Arc::new(schema)).unwrap();
        let tables = [table.clone(), table.slice(1, 1), table.slice(0, 0)];
        let mut pipe = Vec::new();
        send(&mut pipe, &"first\nline").unwrap();
        for table in &tables {
            send_table(&mut pipe, table).unwrap();
        }
        send(&mut pipe, &"last").unwrap();
        let mut pipe = BufReader::new(&pipe[..]);
        assert_eq!(
            receive::<String>(&mut pipe).unwrap().unwrap(),
            "first\nline"
        );
        for table in &tables {
            let found = receive_table(&mut pipe).unwrap();
            assert_eq!(format!("{found:?}"), format!("{table:?}"));
        }
        assert_eq!(receive::<String>(&mut pipe).unwrap().unwrap(), "last");
        assert!(receive::<String>(&mut pipe).unwrap().is_none());
    }
}
