//! Word lists as pairs: misspellings, paraphrases, counter-fitted neighbours, WordNet.

use std::collections::{BTreeMap, HashMap};

use arrow::record_batch::RecordBatch;

use super::opened::{bytes, limit, role, unexpected, unpacked, whole};
use crate::Failure;
use crate::kinds::dataset::archive;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::table::Columns;
use crate::kinds::dataset::text::{decode, lines};

const PAIRS: &[&str] = &["id", "split", "relation", "source", "target"];

/// `correct wrong1 wrong2 …`: a row for each wrong spelling.
pub fn misspellings(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Columns::new(PAIRS);
    for (n, line) in lines(&whole(&mut files[0])?).enumerate() {
        let mut words = line.split_whitespace();
        let correct = words.next().unwrap_or_default();
        for (m, wrong) in words.enumerate() {
            rows.push([&format!("{n}/{m}"), "train", "misspelling", correct, wrong]);
        }
    }
    Ok(rows.finish())
}

/// Two words a line; the file's role is `SOURCE/RELATION`.
pub fn ppdb(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Columns::new(PAIRS);
    for file in &mut files {
        let (_, relation) = role(file).split_once('/').unwrap_or_default();
        for (n, line) in lines(&whole(file)?).enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [source, target] = words[..] else {
                return Err(unexpected(&file.entry.path, n, "not two words"));
            };
            rows.push([
                &format!("{}/{n}", role(file)),
                "train",
                relation,
                source,
                target,
            ]);
        }
    }
    Ok(rows.finish())
}

/// A JSON object of words, each with a list of synonyms, the nearest first: rows in the order of the words' bytes.
pub fn synonyms(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let file = &mut files[0];
    let packed = bytes(file)?;
    let text = unpacked(file, flate2::read::MultiGzDecoder::new(&packed[..]))?;
    let words: BTreeMap<String, Vec<String>> = serde_json::from_slice(&text)
        .map_err(|error| unexpected(&file.entry.path, 0, &error.to_string()))?;
    let mut rows = Columns::new(PAIRS);
    for (word, synonyms) in &words {
        for (n, synonym) in synonyms.iter().enumerate() {
            rows.push([&format!("{word}/{n}"), "train", "synonym", word, synonym]);
        }
    }
    Ok(rows.finish())
}

/// WordNet's data files: for each synset, in the order of the files, all ordered pairs of its
/// words as synonyms, then the antonyms of each word. The file's role is the part of speech.
pub fn wordnet(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut synsets = Vec::new();
    for file in &mut files {
        let pos = role(file);
        // The licence at the top of each file is indented.
        for (n, line) in lines(&whole(file)?)
            .enumerate()
            .filter(|(_, line)| !line.starts_with("  "))
        {
            let synset =
                synset(pos, line).ok_or_else(|| unexpected(&file.entry.path, n, "not a synset"))?;
            synsets.push(synset);
        }
    }
    let place = synsets
        .iter()
        .enumerate()
        .map(|(n, synset)| ((synset.pos, synset.offset.clone()), n));
    let place: HashMap<(&str, String), usize> = place.collect();
    let mut rows = Columns::new(&["id", "split", "relation", "pos", "source", "target"]);
    for synset in &synsets {
        let (pos, mut count) = (synset.pos, 0);
        let mut add = |relation: &str, source: &str, target: &str| {
            rows.push([
                &format!("{pos}/{}/{count}", synset.offset),
                "train",
                relation,
                pos,
                source,
                target,
            ]);
            count += 1;
        };
        for source in &synset.words {
            for target in synset.words.iter().filter(|other| *other != source) {
                add("synonym", source, target);
            }
        }
        for antonym in &synset.antonyms {
            let other = place
                .get(&(antonym.pos, antonym.offset.clone()))
                .map(|n| &synsets[*n]);
            let words = other.and_then(|other| {
                Some((
                    synset.words.get(antonym.from)?,
                    other.words.get(antonym.to)?,
                ))
            });
            let (source, target) = words.ok_or_else(|| {
                Failure::new(format!("{pos}/{}: dangling antonym", synset.offset))
            })?;
            add("antonym", source, target);
        }
    }
    Ok(rows.finish())
}

/// The base forms that WordNet's index lists, and its lists of irregular forms. The file's role is the part of
/// speech of a list, or `index` for the archive with the indexes.
pub fn wordnet_lemmas(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let mut rows = Columns::new(&["id", "split", "relation", "pos", "source", "target"]);
    for file in &mut files {
        match role(file) {
            "index" => base_forms(file, &mut rows)?,
            pos => irregular_forms(pos, file, &mut rows)?,
        }
    }
    Ok(rows.finish())
}

const INDEXES: [(&str, &str); 4] = [
    ("n", "dict/index.noun"),
    ("v", "dict/index.verb"),
    ("a", "dict/index.adj"),
    ("r", "dict/index.adv"),
];

fn base_forms(file: &mut Opened<'_>, rows: &mut Columns) -> Result<(), Failure> {
    let packed = bytes(file)?;
    let mut texts = HashMap::new();
    archive::tar(
        flate2::read::MultiGzDecoder::new(&packed[..]),
        &file.entry.path,
        limit(file),
        |name| INDEXES.iter().any(|(_, member)| *member == name),
        |name, bytes| {
            let text = decode(bytes.to_vec(), file.entry.encoding, name)?;
            texts.insert(name.to_owned(), text);
            Ok(())
        },
    )?;
    for (pos, member) in INDEXES {
        let text = texts
            .get(member)
            .ok_or_else(|| Failure::new(format!("{} has no member `{member}`", file.entry.path)))?;
        // The licence at the top is indented.
        let entries = lines(text).filter(|line| !line.starts_with("  "));
        for (n, line) in entries.enumerate() {
            let base = word(line.split(' ').next().unwrap_or_default());
            let id = format!("{pos}/lemma/{n}");
            rows.push([&id, "train", "lemma", pos, &base, &base]);
        }
    }
    Ok(())
}

/// `form base base …` a line.
fn irregular_forms(pos: &str, file: &mut Opened<'_>, rows: &mut Columns) -> Result<(), Failure> {
    for (n, line) in lines(&whole(file)?).enumerate() {
        let mut words = line.split_whitespace().map(word);
        let form = words.next().unwrap_or_default();
        for (k, base) in words.enumerate() {
            let id = format!("{pos}/exception/{n}/{k}");
            rows.push([&id, "train", "exception", pos, &form, &base]);
        }
    }
    Ok(())
}

struct Synset<'a> {
    pos: &'a str,
    offset: String,
    words: Vec<String>,
    antonyms: Vec<Antonym>,
}

struct Antonym {
    pos: &'static str,
    offset: String,
    from: usize,
    to: usize,
}

/// `offset lex_file type w_cnt word lex_id … p_cnt symbol offset pos source/target … | gloss`.
fn synset<'a>(pos: &'a str, line: &str) -> Option<Synset<'a>> {
    let mut parts = line.split(' ');
    let offset = parts.next()?.to_owned();
    let (_, _) = (parts.next()?, parts.next()?);
    let count = usize::from_str_radix(parts.next()?, 16).ok()?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        words.push(word(parts.next()?));
        parts.next()?;
    }
    let mut antonyms = Vec::new();
    for _ in 0..parts.next()?.parse::<usize>().ok()? {
        let (symbol, offset, pos, ends) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if symbol == "!" {
            let end = |hex: &str| usize::from_str_radix(hex, 16).ok()?.checked_sub(1);
            let pos = match pos {
                "n" => "n",
                "v" => "v",
                "a" | "s" => "a",
                "r" => "r",
                _ => return None,
            };
            let (from, to) = (end(ends.get(..2)?)?, end(ends.get(2..)?)?);
            antonyms.push(Antonym {
                pos,
                offset: offset.to_owned(),
                from,
                to,
            });
        }
    }
    Some(Synset {
        pos,
        offset,
        words,
        antonyms,
    })
}

/// A word as people write it: spaces for underscores, without the marker of an adjective's place.
fn word(lemma: &str) -> String {
    let plain = ["(a)", "(p)", "(ip)"]
        .iter()
        .find_map(|marker| lemma.strip_suffix(marker));
    plain.unwrap_or(lemma).replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_synset_is_its_words_and_the_antonyms_among_its_pointers() {
        let line = "00002618 00 a 02 abaxial 0 dorsal(a) 4 002 ;c 06066555 n 0000 ! 00002872 a 0101 | facing away";
        let synset = synset("a", line).unwrap();
        assert_eq!(synset.words, ["abaxial", "dorsal"]);
        let [antonym] = &synset.antonyms[..] else {
            panic!("one antonym")
        };
        assert_eq!(
            (
                antonym.pos,
                antonym.offset.as_str(),
                antonym.from,
                antonym.to
            ),
            ("a", "00002872", 0, 0)
        );
        assert_eq!(word("Ode_to_a_Nightingale"), "Ode to a Nightingale");
        assert!(
            super::synset("n", "00001740 03 n 01 entity 0 003 ~ 00001930").is_none(),
            "cut off"
        );
    }
}
