//! Cells out of files of text: CSV, TSV and JSON lines. What is wrong says in which row.
//! Knows nothing of what the columns mean.

use crate::Failure;
use crate::kinds::dataset::text::lines;

/// Each row's wanted cells as text.
pub type Cells = Vec<Vec<String>>;

/// The cells of a file with a header, whose columns are separated by commas or tabs.
pub fn delimited(
    file: &str,
    text: &str,
    delimiter: u8,
    columns: &[&str],
) -> Result<Cells, Failure> {
    match delimiter {
        b',' => quotes(file, text)?,
        _ => returns(file, text)?,
    }
    let mut reader = csv::ReaderBuilder::new();
    // In tab-separated files a quotation mark is a quotation mark.
    reader.delimiter(delimiter).quoting(delimiter == b',');
    let mut reader = reader.from_reader(text.as_bytes());
    let broken = |n: usize, error: csv::Error| at(file, n, &error.to_string());
    let header = reader.headers().map_err(|error| broken(0, error))?.clone();
    let places = columns.iter().map(|column| {
        let mut places = (0..header.len()).filter(|place| &header[*place] == *column);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            (Some(_), Some(_)) => Err(Failure::new(format!("{file}: duplicate column `{column}`"))
                .help("give each column its own name")
                .at("source")),
            (None, _) => Err(no_column(file, column, &header.iter().collect::<Vec<_>>())),
        }
    });
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let mut cells = Vec::new();
    for (n, record) in reader.records().enumerate() {
        let record = record.map_err(|error| broken(n, error))?;
        cells.push(
            places
                .iter()
                .map(|place| record[*place].to_owned())
                .collect(),
        );
    }
    Ok(cells)
}

/// An error for a quotation mark that is not closed, or closed before its field ends. The reader takes the one for a
/// cell that goes on to the end of the file, with all rows that follow, and deletes the other.
fn quotes(file: &str, text: &str) -> Result<(), Failure> {
    let (bytes, mut at_byte, mut row) = (text.as_bytes(), 0, 0);
    let wrong = |row: usize, what: &str| {
        let place = match row {
            0 => "the header".to_owned(),
            row => format!("row {row}"),
        };
        Failure::new(format!("{file}, {place}: {what}"))
            .help("a cell with quotation marks is written \"so: \"\"like this\"\"\"; or use tsv or jsonl")
            .at("source")
    };
    let mut field_begins = true;
    while let Some(byte) = bytes.get(at_byte) {
        at_byte += 1;
        match byte {
            b'"' if field_begins => loop {
                let Some(end) = bytes[at_byte..].iter().position(|byte| *byte == b'"') else {
                    return Err(wrong(row, "unclosed quotation mark"));
                };
                at_byte += end + 1;
                match bytes.get(at_byte) {
                    Some(b'"') => at_byte += 1,
                    None | Some(b',' | b'\r' | b'\n') => break,
                    Some(_) => {
                        let what = "text after a closing quotation mark";
                        return Err(wrong(row, what));
                    }
                }
            },
            b'\r' if bytes.get(at_byte).is_some_and(|next| *next != b'\n') => {
                return Err(lone_return(file, text, at_byte - 1));
            }
            // Empty lines are not rows, and \r\n is one end.
            b'\n' | b'\r' if !field_begins || at_byte >= 2 && bytes[at_byte - 2] == b',' => {
                row += 1
            }
            _ => {}
        }
        field_begins = matches!(byte, b',' | b'\r' | b'\n');
    }
    Ok(())
}

/// An error for a carriage return inside of a line. The reader would take it for the end of a row.
fn returns(file: &str, text: &str) -> Result<(), Failure> {
    let mut ends = text.bytes().enumerate().zip(text.bytes().skip(1));
    let lone = ends.find(|((_, byte), next)| *byte == b'\r' && *next != b'\n');
    lone.map_or(Ok(()), |((at, _), _)| Err(lone_return(file, text, at)))
}

fn lone_return(file: &str, text: &str, at: usize) -> Failure {
    let line = 1 + text.as_bytes()[..at]
        .iter()
        .filter(|b| **b == b'\n')
        .count();
    Failure::new(format!(
        "{file}, line {line}: carriage return in the middle of a line"
    ))
    .help("end lines with \\n or \\r\\n; in CSV, quote a cell that contains one")
    .at("source")
}

/// The cells of a file with a JSON object a line.
pub fn jsonl(file: &str, text: &str, columns: &[&str]) -> Result<Cells, Failure> {
    let mut cells = Vec::new();
    for (n, line) in lines(text)
        .filter(|line| !line.trim().is_empty())
        .enumerate()
    {
        let row: serde_json::Value =
            serde_json::from_str(line).map_err(|error| at(file, n, &error.to_string()))?;
        let cell = |column: &&str| match row.get(*column) {
            Some(serde_json::Value::String(text)) => Ok(text.clone()),
            // Beyond this a number is not what was written.
            Some(serde_json::Value::Number(number))
                if number.is_f64() && number.as_f64().is_none_or(|x| x.abs() >= 2f64.powi(53)) =>
            {
                let what = format!("`{column}` is a number with too many digits");
                Err(at(file, n, &what).help("write it in quotation marks"))
            }
            Some(value @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => {
                Ok(value.to_string())
            }
            Some(_) => Err(at(
                file,
                n,
                &format!("`{column}` is neither a string nor a number"),
            )),
            None => Err(at(file, n, &format!("`{column}` is missing"))),
        };
        cells.push(columns.iter().map(cell).collect::<Result<_, _>>()?);
    }
    Ok(cells)
}

/// A column that is not there.
pub fn no_column(file: &str, column: &str, known: &[&str]) -> Failure {
    Failure::new(format!("{} has no column `{column}`", file))
        .help(format!("its columns: {}", known.join(", ")))
        .at("source")
}

/// What is wrong with a row, counted from 0 here and from 1 by people.
pub fn at(file: &str, row: usize, what: &str) -> Failure {
    Failure::new(format!("{}, row {}: {what}", file, row + 1)).at("source")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Cells, String> {
        delimited("f.csv", text, b',', &["stars", "review"]).map_err(|failure| failure.message)
    }

    #[test]
    fn quotation_marks_that_would_swallow_rows_are_told() {
        let never = "f.csv, row 2: unclosed quotation mark";
        for text in [
            "stars,review\n5,fine\n5,\"good\n1,bad\n2,fine\n",
            "stars,review\r\n5,fine\r\n5,\"good\r\n1,bad\r\n",
            "stars,review\n\n5,\n5,\"good\"\"\n",
        ] {
            assert_eq!(read(text).unwrap_err(), never, "{text}");
        }
        assert_eq!(
            read("stars,review\n5,\"good\" film\n").unwrap_err(),
            "f.csv, row 1: text after a closing quotation mark"
        );
        assert_eq!(
            read("stars,\"review\n5,good\n").unwrap_err(),
            "f.csv, the header: unclosed quotation mark"
        );
    }

    #[test]
    fn a_return_that_would_end_a_row_is_told() {
        let lone =
            |line: usize| format!("f.csv, line {line}: carriage return in the middle of a line");
        assert_eq!(read("stars,review\n5,a\rb\n").unwrap_err(), lone(2));
        assert_eq!(read("stars,review\r5,a\r").unwrap_err(), lone(1));
        assert_eq!(
            read("stars,review\r\n5,\"a\rb\"\r\n").unwrap(),
            [["5", "a\rb"]]
        );
        let tabs = |text| delimited("f.tsv", text, b'\t', &["review"]).map_err(|f| f.message);
        assert_eq!(
            tabs("review\na\rb\n").unwrap_err(),
            lone(2).replace("csv", "tsv")
        );
        assert_eq!(tabs("review\r\nab\r\n").unwrap(), [["ab"]]);
    }

    #[test]
    fn columns_that_cannot_be_told_apart_are_refused() {
        let twice = read("stars,review,review\n5,a,b\n").unwrap_err();
        assert_eq!(twice, "f.csv: duplicate column `review`");
    }

    #[test]
    fn numbers_of_json_are_kept_or_refused() {
        let read = |text| jsonl("f.jsonl", text, &["a"]).map_err(|failure| failure.message);
        let long = "f.jsonl, row 1: `a` is a number with too many digits";
        assert_eq!(read("{\"a\": 12345678901234567890123}").unwrap_err(), long);
        assert_eq!(
            read("{\"a\": 12345678901234567890}").unwrap(),
            [["12345678901234567890"]]
        );
        assert_eq!(read("{\"a\": 0.5}").unwrap(), [["0.5"]]);
    }

    #[test]
    fn quotation_marks_as_they_should_be_are_read() {
        let text = "stars,review\n5,\"a, \"\"b\"\"\nc\"\r\n\"1\",\n2,5\" disc\n3,\"\"";
        let cells = read(text).unwrap();
        let expected = [
            ["5", "a, \"b\"\nc"],
            ["1", ""],
            ["2", "5\" disc"],
            ["3", ""],
        ];
        assert_eq!(cells, expected);
    }
}
