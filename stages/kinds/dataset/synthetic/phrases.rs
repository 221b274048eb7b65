//! The set `phrases`: sentences about animals in English and in a made-up language, a toy translation task.
//!
//! Every word has one translation, an adjective follows its noun, and the verb goes to the end, behind place and
//! time: to translate is to learn a dictionary and a word order. A few adjectives translate by the animal they
//! stand beside, so that no dictionary alone is enough.

use arrow::record_batch::RecordBatch;

use super::options::{Options, Stream, Synthetic};
use crate::kinds::dataset::catalogue::Schema;
use crate::kinds::dataset::table::Columns;

const ANIMALS: &[[&str; 2]] = &[
    ["cat", "katu"],
    ["dog", "hundo"],
    ["horse", "rossa"],
    ["bird", "vogi"],
    ["cow", "kuha"],
    ["mouse", "mausi"],
];
const LOOKS: &[[&str; 2]] = &[
    ["small", "kleno"],
    ["black", "swarzo"],
    ["young", "jungo"],
    ["white", "weisso"],
    ["tired", "mudo"],
];
const ACTIVITIES: &[[&str; 2]] = &[
    ["sleeps", "slafet"],
    ["eats", "isset"],
    ["runs", "rennet"],
    ["drinks", "trinket"],
    ["hides", "verstekt"],
];
const PLACES: &[[&str; 2]] = &[
    ["in the garden", "im gardo"],
    ["near the house", "bei hauso"],
    ["behind the barn", "hinter skeuno"],
    ["on the road", "auf strasso"],
];
const TIMES: &[[&str; 2]] = &[
    ["today", "heuto"],
    ["at night", "nahto"],
    ["every day", "jedo tago"],
];

/// The entry in the list.
pub static PHRASES: Synthetic = Synthetic {
    name: "phrases",
    title: "Sentences about animals in English and in a made-up language, to be translated",
    schema: Schema::Pairs,
    pairs: false,
    labels: &[],
    file: "stages/kinds/dataset/synthetic/phrases.rs",
    splits: &[("train", 2_000), ("dev", 200), ("test", 200)],
    options: &[],
    make,
};

/// Each row from a random stream of its own, so that more rows begin with the same ones.
fn make(options: &Options, seed: u64) -> RecordBatch {
    let mut rows = Columns::new(&["id", "split", "source", "target"]);
    for (split, count) in options.splits() {
        for n in 0..count {
            let mut random = Stream::new("phrases", seed, split, n);
            let [source, target] = phrase(&mut random);
            rows.push([&format!("{split}/{n}"), split, &source, &target]);
        }
    }
    rows.finish()
}

fn phrase(random: &mut Stream) -> [String; 2] {
    let mut draw =
        |all: &'static [[&'static str; 2]]| all[(random.uniform() * all.len() as f64) as usize];
    let (look, animal, activity) = (draw(LOOKS), draw(ANIMALS), draw(ACTIVITIES));
    let (place, time) = (draw(PLACES), draw(TIMES));
    // A tired animal has the animal's own word for it.
    let looks = match look[0] {
        "tired" => format!("{}{}", look[1], &animal[1][..1]),
        _ => look[1].to_owned(),
    };
    let source = [time[0], "the", look[0], animal[0], activity[0], place[0]].join(" ");
    let target = [animal[1], &looks, time[1], place[1], activity[1]].join(" ");
    [source, target]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::dataset::table::content;

    #[test]
    fn the_verb_goes_to_the_end_and_adjectives_follow() {
        let mut tired = 0;
        for n in 0..200 {
            let [source, target] = phrase(&mut Stream::new("t", 1, "train", n));
            let ours: Vec<&str> = source.split(' ').collect();
            let theirs: Vec<&str> = target.split(' ').collect();
            let of = |all: &[[&'static str; 2]], words: &[&str]| {
                let known = all.iter().find(|word| words.contains(&word[0]));
                known.map(|word| word[1]).unwrap()
            };
            assert_eq!(theirs.last(), Some(&of(ACTIVITIES, &ours)), "{source}");
            assert_eq!(theirs[0], of(ANIMALS, &ours), "{source}");
            if ours.contains(&"tired") {
                assert!(theirs[1].ends_with(&theirs[0][..1]) && theirs[1].len() == 5);
                tired += 1;
            }
        }
        assert!(tired > 10);
    }

    /// If this fails, the set changed and with it every result on it.
    #[test]
    fn phrases_are_pinned() {
        let generate = [("train", 5), ("dev", 0), ("test", 0)];
        let generate = generate.map(|(split, rows)| (split.to_owned(), store::Value::Int(rows)));
        let options = Options::new(&PHRASES, Some(&generate.into())).unwrap();
        let table = make(&options, 7);
        assert_eq!(table.num_rows(), 5);
        assert_eq!(
            content(&table, "train").unwrap().to_string(),
            "258c34230772de20dbc00da561bb2355f6a6903ee8bdce7790bc1d78c006b3f7"
        );
    }
}
