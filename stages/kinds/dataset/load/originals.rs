//! Sets as their authors pack them: one archive with all splits. No machine that this was written on could reach them,
//! so that readers are tested on small archives of the same layout.

use std::collections::BTreeMap;

use arrow::record_batch::RecordBatch;
use serde::Deserialize;

use super::opened::{bytes, limit, unexpected};
use crate::Failure;
use crate::kinds::dataset::archive;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::table::Texts;
use crate::kinds::dataset::text::{decode, lines};

/// A split and the member of the archive that has it.
type Member = (&'static str, &'static str);

/// Yelp's polarity: `"class","text"` in a compressed tar. Class 2 is positive.
pub fn yelp_polarity(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    const MEMBERS: [Member; 2] = [
        ("train", "yelp_review_polarity_csv/train.csv"),
        ("test", "yelp_review_polarity_csv/test.csv"),
    ];
    let file = &mut files[0];
    let texts = tar_members(file, &MEMBERS)?;
    let mut rows = Texts::default();
    for ((split, member), text) in MEMBERS.iter().zip(texts) {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(text.as_bytes());
        for (n, record) in reader.records().enumerate() {
            let record = record.map_err(|error| unexpected(member, n, &error.to_string()))?;
            let (label, text) = match (record.len(), record.get(0)) {
                (2, Some("1")) => (0, &record[1]),
                (2, Some("2")) => (1, &record[1]),
                _ => return Err(unexpected(member, n, "not a class and a text")),
            };
            // Line breaks are written as a backslash and an n.
            rows.push(
                &format!("{split}/{n}"),
                split,
                Some(label),
                &text.replace("\\n", "\n"),
            );
        }
    }
    Ok(rows.finish())
}

/// SNLI 1.0: objects of the zip's JSON lines.
pub fn snli_original(files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    pairs(
        files,
        &[
            ("train", "snli_1.0/snli_1.0_train.jsonl"),
            ("dev", "snli_1.0/snli_1.0_dev.jsonl"),
            ("test", "snli_1.0/snli_1.0_test.jsonl"),
        ],
    )
}

/// MultiNLI 1.0, of which the test sets are not public.
pub fn multinli(files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    pairs(
        files,
        &[
            ("train", "multinli_1.0/multinli_1.0_train.jsonl"),
            ("dev", "multinli_1.0/multinli_1.0_dev_matched.jsonl"),
            (
                "mismatched",
                "multinli_1.0/multinli_1.0_dev_mismatched.jsonl",
            ),
        ],
    )
}

/// What is read of an object; the rest are parses and single judgements.
#[derive(Deserialize)]
struct Judged {
    gold_label: String,
    sentence1: String,
    sentence2: String,
}

/// Premise, hypothesis and label; pairs that judges did not agree on have no label and are left out, but counted in
/// the ids.
fn pairs(mut files: Vec<Opened<'_>>, members: &[Member]) -> Result<RecordBatch, Failure> {
    let file = &mut files[0];
    let mut rows = Texts::pairs();
    for (split, member) in members {
        let text = zip_text(file, member)?;
        for (n, line) in lines(&text).enumerate() {
            let judged: Judged = serde_json::from_str(line)
                .map_err(|error| unexpected(member, n, &error.to_string()))?;
            let label = match judged.gold_label.as_str() {
                "entailment" => 0,
                "neutral" => 1,
                "contradiction" => 2,
                "-" => continue,
                other => return Err(unexpected(member, n, &format!("`{other}` is not a class"))),
            };
            rows.push_pair(
                &format!("{split}/{n}"),
                split,
                Some(label),
                [&judged.sentence1, &judged.sentence2],
            );
        }
    }
    Ok(rows.finish())
}

/// SST-2 of GLUE: `sentence<TAB>label` below a header line. Its test sentences have no labels and are left out.
pub fn sst2_glue(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let file = &mut files[0];
    let mut rows = Texts::default();
    for (split, member) in [("train", "SST-2/train.tsv"), ("dev", "SST-2/dev.tsv")] {
        let text = zip_text(file, member)?;
        for (n, line) in lines(&text).skip(1).enumerate() {
            let (text, label) = match line.split_once('\t') {
                Some((text, "0")) => (text, 0),
                Some((text, "1")) => (text, 1),
                _ => return Err(unexpected(member, n, "not a sentence and a label")),
            };
            rows.push(&format!("{split}/{n}"), split, Some(label), text.trim_end());
        }
    }
    Ok(rows.finish())
}

/// The text of a member of a zip.
fn zip_text(file: &mut Opened<'_>, member: &str) -> Result<String, Failure> {
    let most = limit(file);
    let bytes = archive::zip_member(&mut file.file, &file.entry.path, member, most)?;
    decode(bytes, file.entry.encoding, member)
}

/// The texts of members of a compressed tar, in this order.
fn tar_members(file: &mut Opened<'_>, members: &[Member]) -> Result<Vec<String>, Failure> {
    let packed = bytes(file)?;
    let mut found = BTreeMap::new();
    archive::tar(
        flate2::read::MultiGzDecoder::new(&packed[..]),
        &file.entry.path,
        limit(file),
        |name| members.iter().any(|(_, member)| *member == name),
        |name, bytes| {
            found.insert(name.to_owned(), bytes.to_vec());
            Ok(())
        },
    )?;
    let text = |(_, member): &Member| {
        let text = found
            .remove(*member)
            .ok_or_else(|| Failure::new(format!("{} has no member `{member}`", file.entry.path)))?;
        decode(text, file.entry.encoding, member)
    };
    members.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Seek, Write};

    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;

    use super::*;
    use crate::kinds::dataset::catalogue::File;

    fn loaded(
        loader: fn(Vec<Opened<'_>>) -> Result<RecordBatch, Failure>,
        bytes: &[u8],
    ) -> Result<RecordBatch, Failure> {
        let entry = File {
            path: "archive".to_owned(),
            sha256: String::new(),
            size: bytes.len() as u64,
            unpacked: Some(10_000),
            https: None,
            member: None,
            split: None,
            role: None,
            encoding: Default::default(),
        };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        loader(vec![Opened {
            entry: &entry,
            file,
        }])
    }

    fn zip(members: &[(&str, &str)]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in members {
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(*name, options).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn columns(rows: &RecordBatch, names: &[&str]) -> Vec<String> {
        let label = rows["label"].as_primitive::<Int64Type>();
        let row = |n: usize| {
            let texts = names
                .iter()
                .map(|name| rows[*name].as_string::<i32>().value(n));
            format!("{} {}", texts.collect::<Vec<_>>().join("|"), label.value(n))
        };
        (0..rows.num_rows()).map(row).collect()
    }

    #[test]
    fn yelp_has_two_splits_and_its_line_breaks() {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, text) in [
            ("yelp_review_polarity_csv/readme.txt", "about"),
            (
                "yelp_review_polarity_csv/test.csv",
                "\"2\",\"good \"\"food\"\"\"\n",
            ),
            (
                "yelp_review_polarity_csv/train.csv",
                "\"1\",\"slow\\n\\nand dear\"\n",
            ),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        packed.write_all(&tar.into_inner().unwrap()).unwrap();
        let rows = loaded(yelp_polarity, &packed.finish().unwrap()).unwrap();
        let expected = ["train/0|slow\n\nand dear 0", "test/0|good \"food\" 1"];
        assert_eq!(columns(&rows, &["id", "text"]), expected);
    }

    #[test]
    fn pairs_without_a_label_are_left_out_and_counted() {
        let line = |label: &str, a: &str| {
            format!(
                "{{\"annotator_labels\": [], \"gold_label\": \"{label}\", \"sentence1\": \"{a}\", \"sentence2\": \"B.\"}}\n"
            )
        };
        let train = line("-", "A.") + &line("contradiction", "C.");
        let (dev, test) = (line("neutral", "D."), line("entailment", "E."));
        let whole = zip(&[
            ("snli_1.0/snli_1.0_train.jsonl", &train),
            ("snli_1.0/snli_1.0_dev.jsonl", &dev),
            ("snli_1.0/snli_1.0_test.jsonl", &test),
        ]);
        let rows = loaded(snli_original, &whole).unwrap();
        let expected = ["train/1|C.|B. 2", "dev/0|D.|B. 1", "test/0|E.|B. 0"];
        assert_eq!(columns(&rows, &["id", "text", "text_b"]), expected);
        let missing = loaded(multinli, &whole).unwrap_err();
        let wanted = "archive has no member `multinli_1.0/multinli_1.0_train.jsonl`";
        assert_eq!(missing.message, wanted);
    }

    #[test]
    fn glues_sentences_end_before_their_spaces() {
        let whole = zip(&[
            (
                "SST-2/train.tsv",
                "sentence\tlabel\nhide new secretions \t0\n",
            ),
            ("SST-2/dev.tsv", "sentence\tlabel\na charming film\t1\n"),
            ("SST-2/test.tsv", "index\tsentence\n0\tuneasy mishmash\n"),
        ]);
        let rows = loaded(sst2_glue, &whole).unwrap();
        let expected = ["train/0|hide new secretions 0", "dev/0|a charming film 1"];
        assert_eq!(columns(&rows, &["id", "text"]), expected);
    }
}
