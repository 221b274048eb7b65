//! The set `relations`: pairs of sentences, of which the second follows from the first, contradicts it or
//! does neither.
//!
//! The first sentence says what an animal does, the second what the same animal or another one does: the same
//! animal and activity is an entailment, another activity of the same animal a contradiction, and what another
//! animal does is neutral. Each sentence by itself says nothing of the label, so that a model that reads one of
//! the two cannot beat chance. The label is drawn first.

use arrow::record_batch::RecordBatch;

use super::options::{Options, Stream, Synthetic};
use crate::kinds::dataset::catalogue::Schema;
use crate::kinds::dataset::table::Texts;

const ANIMALS: &[&str] = &["cat", "dog", "horse", "bird", "cow", "mouse"];
const ACTIVITIES: &[&str] = &["sleeps", "eats", "runs", "drinks", "hides"];
const LOOKS: &[&str] = &["small", "black", "young", "white", "tired", "big"];
const PLACES: &[&str] = &[
    "in the garden",
    "near the house",
    "behind the barn",
    "on the road",
    "by the river",
];

/// The entry in the list.
pub static RELATIONS: Synthetic = Synthetic {
    name: "relations",
    title: "Pairs of sentences about animals: entailment, neutral or contradiction",
    schema: Schema::Text,
    pairs: true,
    labels: &["entailment", "neutral", "contradiction"],
    file: "stages/kinds/dataset/synthetic/relations.rs",
    splits: &[("train", 3_000), ("dev", 600), ("test", 600)],
    options: &[],
    make,
};

/// Rows of the classes in turn, each from a random stream of its own, so that more rows begin with the same
/// ones.
fn make(options: &Options, seed: u64) -> RecordBatch {
    let mut rows = Texts::pairs();
    for (split, count) in options.splits() {
        for n in 0..count {
            let label = (n % 3) as i64;
            let mut random = Stream::new("relations", seed, split, n);
            let [first, second] = pair(label, &mut random);
            let id = format!("{split}/{n}");
            rows.push_pair(&id, split, Some(label), [&first, &second]);
        }
    }
    rows.finish()
}

fn pair(label: i64, random: &mut Stream) -> [String; 2] {
    let animal = draw(ANIMALS, random);
    let activity = draw(ACTIVITIES, random);
    let (look, place) = (draw(LOOKS, random), draw(PLACES, random));
    let (other, else_does) = match label {
        0 => (animal, activity),
        1 => (another(ANIMALS, animal, random), draw(ACTIVITIES, random)),
        _ => (animal, another(ACTIVITIES, activity, random)),
    };
    let first = format!(
        "a {} {} {} {}",
        LOOKS[look], ANIMALS[animal], ACTIVITIES[activity], PLACES[place]
    );
    [
        first,
        format!("the {} {}", ANIMALS[other], ACTIVITIES[else_does]),
    ]
}

fn draw(all: &[&str], random: &mut Stream) -> usize {
    (random.uniform() * all.len() as f64) as usize
}

/// Any but one.
fn another(all: &[&str], not: usize, random: &mut Stream) -> usize {
    let shift = 1 + (random.uniform() * (all.len() - 1) as f64) as usize;
    (not + shift) % all.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::dataset::table::content;

    fn words(text: &str) -> (usize, usize) {
        let place = |all: &[&str]| all.iter().position(|w| text.split(' ').any(|t| t == *w));
        (place(ANIMALS).unwrap(), place(ACTIVITIES).unwrap())
    }

    #[test]
    fn labels_say_how_the_sentences_relate() {
        for n in 0..300 {
            let label = n % 3;
            let mut random = Stream::new("t", 1, "train", n as usize);
            let [first, second] = pair(label, &mut random);
            let ((animal, activity), (other, does)) = (words(&first), words(&second));
            let expected = match (animal == other, activity == does) {
                (true, true) => 0,
                (false, _) => 1,
                (true, false) => 2,
            };
            assert_eq!(label, expected, "{first} / {second}");
        }
    }

    /// The second sentence alone is as frequent in every class, up to chance.
    #[test]
    fn one_sentence_says_nothing_of_the_label() {
        let mut counts = [[0_i32; 3]; 30];
        for n in 0..9_000 {
            let label = n % 3;
            let mut random = Stream::new("t", 2, "train", n as usize);
            let (animal, does) = words(&pair(label, &mut random)[1]);
            counts[animal * ACTIVITIES.len() + does][label as usize] += 1;
        }
        // 100 of each are expected, with a standard deviation of 10.
        let far = counts.iter().flatten().filter(|n| (**n - 100).abs() > 40);
        assert_eq!(far.count(), 0, "{counts:?}");
    }

    /// If this fails, the set changed and with it every result on it.
    #[test]
    fn relations_are_pinned() {
        let generate = [("train", 5), ("dev", 0), ("test", 0)];
        let generate = generate.map(|(split, rows)| (split.to_owned(), store::Value::Int(rows)));
        let options = Options::new(&RELATIONS, Some(&generate.into())).unwrap();
        let table = make(&options, 7);
        assert_eq!(table.num_rows(), 5);
        assert_eq!(
            content(&table, "train").unwrap().to_string(),
            "38ac7b833fda10f6f912487b45e7eb09aad2b22db7abd1127dbed808dcd86c62"
        );
    }
}
