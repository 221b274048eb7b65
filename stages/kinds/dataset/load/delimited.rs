//! Sets in tab- or comma-separated files. Tab-separated ones have no quoting: a quotation mark
//! in them is part of the text.

use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;

use super::opened::{bytes, limit, role, split, unexpected, unpacked, whole};
use crate::Failure;
use crate::kinds::dataset::archive;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::table::Texts;
use crate::kinds::dataset::text::{decode, lines};

/// SST-2: `sentence<TAB>label` below one header line.
pub fn sst2(files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    sentences(files, 1)
}

/// The same without a header line: SST-2 by sentences.
pub fn sst2_sentences(files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    sentences(files, 0)
}

fn sentences(mut files: Vec<Opened<'_>>, header: usize) -> Result<RecordBatch, Failure> {
    let mut rows = Texts::default();
    for file in &mut files {
        let (split, text) = (split(file), whole(file)?);
        for (n, line) in lines(&text).skip(header).enumerate() {
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

/// SNLI: `premise<TAB>hypothesis<TAB>label`; compressed if the file's role is `xz`.
pub fn snli(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Texts::pairs();
    for file in &mut files {
        let split = split(file);
        let text = match role(file) {
            "xz" => {
                let packed = bytes(file)?;
                let text = unpacked(file, lzma_rust2::XzReader::new(&packed[..], false))?;
                decode(text, file.entry.encoding, &file.entry.path)?
            }
            _ => whole(file)?,
        };
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

/// AG's news with titles: `label,text,source` for train, whose text has its title already; title and description,
/// with a space between them, for test.
pub fn ag_news_titles(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Texts::default();
    for file in &mut files {
        let split = split(file);
        if role(file) == "csv.gz" {
            let packed = bytes(file)?;
            let text = unpacked(file, flate2::read::MultiGzDecoder::new(&packed[..]))?;
            let text = decode(text, file.entry.encoding, &file.entry.path)?;
            for (n, record) in records(&text, true, file).enumerate() {
                let record = record?;
                let label = class(&record[0], &["0", "1", "2", "3"], file, n)?;
                rows.push(&format!("{split}/{n}"), split, Some(label), &record[1]);
            }
            continue;
        }
        let text = whole(file)?;
        titled(&mut rows, split, &text, file)?;
    }
    Ok(rows.finish())
}

/// AG's news as its authors pack it: `train.csv` and `test.csv` in one archive.
pub fn ag_news_archive(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let file = &mut files[0];
    let packed = bytes(file)?;
    let mut texts = BTreeMap::new();
    archive::tar(
        flate2::read::MultiGzDecoder::new(&packed[..]),
        &file.entry.path,
        limit(file),
        |name| AG_MEMBERS.iter().any(|(_, member)| *member == name),
        |name, bytes| {
            texts.insert(name.to_owned(), bytes.to_vec());
            Ok(())
        },
    )?;
    let mut rows = Texts::default();
    for (split, member) in AG_MEMBERS {
        let text = texts
            .remove(member)
            .ok_or_else(|| Failure::new(format!("{} has no member `{member}`", file.entry.path)))?;
        let text = decode(text, file.entry.encoding, member)?;
        titled(&mut rows, split, &text, file)?;
    }
    Ok(rows.finish())
}

const AG_MEMBERS: [(&str, &str); 2] = [
    ("train", "ag_news_csv/train.csv"),
    ("test", "ag_news_csv/test.csv"),
];

/// Rows of `"class 1-4","title","description"`: the text is title and description.
fn titled(rows: &mut Texts, split: &str, text: &str, file: &Opened<'_>) -> Result<(), Failure> {
    for (n, record) in records(text, false, file).enumerate() {
        let record = record?;
        let label = class(&record[0], &["1", "2", "3", "4"], file, n)?;
        let text = format!("{} {}", &record[1], &record[2]);
        rows.push(&format!("{split}/{n}"), split, Some(label), &text);
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;

    use super::*;
    use crate::kinds::dataset::catalogue::File;

    /// A file of the catalogue with these contents.
    fn entry(path: &str, split: Option<&str>, role: Option<&str>, size: usize) -> File {
        File {
            path: path.to_owned(),
            sha256: String::new(),
            size: size as u64,
            unpacked: Some(10_000),
            https: None,
            member: None,
            split: split.map(str::to_owned),
            role: role.map(str::to_owned),
            encoding: Default::default(),
        }
    }

    fn opened<'a>(entry: &'a File, bytes: &[u8]) -> Opened<'a> {
        use std::io::{Seek, Write};
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        Opened { entry, file }
    }

    fn gz(bytes: &[u8]) -> Vec<u8> {
        use std::io::Write;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn texts(rows: &RecordBatch) -> Vec<(&str, i64, &str)> {
        let text = |name: &str, n| rows[name].as_string::<i32>().value(n);
        let label = rows["label"].as_primitive::<Int64Type>();
        let row = |n| (text("id", n), label.value(n), text("text", n));
        (0..rows.num_rows()).map(row).collect()
    }

    const TITLED: &str = "\"3\",\"A title\",\"It says \"\"no\"\".\"\n\"1\",\"B\",\"c\"\n";

    #[test]
    fn title_and_description_are_one_text() {
        let train = gz(b"label,text,source\n2,\"Oil, up\",lst\n");
        let one = entry("a.csv.gz", Some("train"), Some("csv.gz"), train.len());
        let two = entry("b.csv", Some("test"), Some("csv"), TITLED.len());
        let files = vec![opened(&one, &train), opened(&two, TITLED.as_bytes())];
        let rows = ag_news_titles(files).unwrap();
        let expected = [
            ("train/0", 2, "Oil, up"),
            ("test/0", 2, "A title It says \"no\"."),
            ("test/1", 0, "B c"),
        ];
        assert_eq!(texts(&rows), expected);
    }

    #[test]
    fn the_original_archive_has_both_splits_in_order() {
        let archive = |members: &[(&str, &str)]| {
            let mut tar = tar::Builder::new(Vec::new());
            for (name, text) in members {
                let mut header = tar::Header::new_gnu();
                header.set_size(text.len() as u64);
                header.set_mode(0o644);
                tar.append_data(&mut header, name, text.as_bytes()).unwrap();
            }
            gz(&tar.into_inner().unwrap())
        };
        let (test, train) = (("ag_news_csv/test.csv", TITLED), "\"4\",\"X\",\"y\"\n");
        let whole = archive(&[
            ("ag_news_csv/classes.txt", "World"),
            test,
            ("ag_news_csv/train.csv", train),
        ]);
        let file = entry("ag.tar.gz", None, None, whole.len());
        let rows = ag_news_archive(vec![opened(&file, &whole)]).unwrap();
        let expected = [
            ("train/0", 3, "X y"),
            ("test/0", 2, "A title It says \"no\"."),
            ("test/1", 0, "B c"),
        ];
        assert_eq!(texts(&rows), expected);
        let half = archive(&[test]);
        let file = entry("ag.tar.gz", None, None, half.len());
        let failure = ag_news_archive(vec![opened(&file, &half)]).unwrap_err();
        assert_eq!(
            failure.message,
            "ag.tar.gz has no member `ag_news_csv/train.csv`"
        );
    }

    #[test]
    fn sentences_have_no_header_and_the_last_line_need_not_end() {
        let text = b"a film\t1\ndull\t0";
        let file = entry("s.tsv", Some("dev"), None, text.len());
        let rows = sst2_sentences(vec![opened(&file, text)]).unwrap();
        assert_eq!(texts(&rows), [("dev/0", 1, "a film"), ("dev/1", 0, "dull")]);
    }
}
