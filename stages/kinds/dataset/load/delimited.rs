//! Sets in tab- or comma-separated files. Tab-separated ones have no quoting: a quotation mark
//! in them is part of the text.

use arrow::record_batch::RecordBatch;

use super::opened::{role, split, unexpected, whole};
use crate::Failure;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::table::Texts;
use crate::kinds::dataset::text::lines;

/// SST-2: `sentence<TAB>label` below one header line.
pub fn sst2(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Texts::default();
    for file in &mut files {
        let (split, text) = (split(file), whole(file)?);
        for (n, line) in lines(&text).skip(1).enumerate() {
            let [text, label] = fields(line, file, n)?;
            rows.push(
                &format!("{split}/{n}"),
                split,
                Some(class(label, &["0", "1"], file, n)?),
                text,
            );
        }
    }
    Ok(rows.finish())
}

/// SNLI: `premise<TAB>hypothesis<TAB>label`.
pub fn snli(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Texts::pairs();
    for file in &mut files {
        let (split, text) = (split(file), whole(file)?);
        for (n, line) in lines(&text).enumerate() {
            let [premise, hypothesis, label] = fields(line, file, n)?;
            let label = class(label, &["0", "1", "2"], file, n)?;
            rows.push_pair(
                &format!("{split}/{n}"),
                split,
                Some(label),
                [premise, hypothesis],
            );
        }
    }
    Ok(rows.finish())
}

/// SICK: five columns with a header; the judgement becomes the label.
pub fn sick(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Texts::pairs();
    let file = &mut files[0];
    let text = whole(file)?;
    for (n, line) in lines(&text).skip(1).enumerate() {
        let [id, a, b, _, judgement] = fields(line, file, n)?;
        let label = class(
            judgement,
            &["ENTAILMENT", "NEUTRAL", "CONTRADICTION"],
            file,
            n,
        )?;
        rows.push_pair(id, "train", Some(label), [a, b]);
    }
    Ok(rows.finish())
}

/// AG's news: `text<TAB>class name` for train, `"class","title","description"` for test, of
/// which the description is taken, because the sample of train has no titles.
pub fn ag_news(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let names = ["World", "Sports", "Business", "Sci/Tech"];
    let mut rows = Texts::default();
    for file in &mut files {
        let (split, text) = (split(file), whole(file)?);
        if role(file) == "tsv" {
            for (n, line) in lines(&text).enumerate() {
                let [text, label] = fields(line, file, n)?;
                rows.push(
                    &format!("{split}/{n}"),
                    split,
                    Some(class(label, &names, file, n)?),
                    text,
                );
            }
            continue;
        }
        for (n, record) in records(&text, false, file).enumerate() {
            let record = record?;
            let label = class(&record[0], &["1", "2", "3", "4"], file, n)?;
            rows.push(&format!("{split}/{n}"), split, Some(label), &record[2]);
        }
    }
    Ok(rows.finish())
}

/// Yelp: stars become polarity, and three stars are neither.
pub fn yelp(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Texts::default();
    for file in &mut files {
        let (part, text) = (role(file), whole(file)?);
        for (n, record) in records(&text, true, file).enumerate() {
            let record = record?;
            let label = match &record[2] {
                "Review Stars: 1.0" | "Review Stars: 2.0" => 0,
                "Review Stars: 4.0" | "Review Stars: 5.0" => 1,
                "Review Stars: 3.0" => continue,
                other => {
                    return Err(unexpected(
                        &file.entry.path,
                        n,
                        &format!("`{other}` is not a star rating"),
                    ));
                }
            };
            rows.push(&format!("{part}/{n}"), "train", Some(label), &record[0]);
        }
    }
    Ok(rows.finish())
}

/// The train half of IMDb as a package has it: `text,label,source`, in the order of its file.
pub fn imdb_csv(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Texts::default();
    let file = &mut files[0];
    let text = whole(file)?;
    for (n, record) in records(&text, true, file).enumerate() {
        let record = record?;
        if &record[2] == "imdb" {
            let label = class(&record[1], &["0", "1"], file, n)?;
            rows.push(&format!("train/{n}"), "train", Some(label), &record[0]);
        }
    }
    Ok(rows.finish())
}

/// The fields of a tab-separated line, which must be as many.
fn fields<'a, const N: usize>(
    line: &'a str,
    file: &Opened<'_>,
    row: usize,
) -> Result<[&'a str; N], Failure> {
    let fields: Vec<&str> = line.split('\t').collect();
    let found = fields.len();
    fields
        .try_into()
        .map_err(|_| unexpected(&file.entry.path, row, &format!("{found} fields, not {N}")))
}

/// The position of a class's name.
fn class(name: &str, known: &[&str], file: &Opened<'_>, row: usize) -> Result<i64, Failure> {
    let at = known.iter().position(|other| *other == name);
    let at =
        at.ok_or_else(|| unexpected(&file.entry.path, row, &format!("`{name}` is not a class")))?;
    Ok(at as i64)
}

/// Comma-separated records of three fields.
fn records<'a>(
    text: &'a str,
    header: bool,
    file: &'a Opened<'_>,
) -> impl Iterator<Item = Result<csv::StringRecord, Failure>> + 'a {
    let reader = csv::ReaderBuilder::new()
        .has_headers(header)
        .from_reader(text.as_bytes());
    reader.into_records().enumerate().map(move |(n, record)| {
        let record = record.map_err(|error| unexpected(&file.entry.path, n, &error.to_string()))?;
        match record.len() {
            3 => Ok(record),
            found => Err(unexpected(
                &file.entry.path,
                n,
                &format!("{found} fields, not 3"),
            )),
        }
    })
}
