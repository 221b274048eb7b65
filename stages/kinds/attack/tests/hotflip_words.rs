//! Claims about hotflip-words: exactly the definition, every rule kept and checked again, the same row in any
//! company, whole messages for inputs that do not fit.

use arrow::array::AsArray;
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use harper_brill::{Tagger, brill_tagger};
use nn::batch::{Example, Sequence, Target};
use nn::objectives::Objective;
use proptest::prelude::*;
use store::Value;

use super::words::{reviews, table, table_of_vectors, words};
use crate::kinds::attack::AttackStage;
use crate::kinds::attack::inputs::read_by;
use crate::kinds::train::Train;
use crate::models::loaded::Loaded;
use crate::tables::lemmas::tests::table as forms;
use crate::tables::vectors;
use crate::tests::trial::{
    Nobody, Text, completed, listed, on_threads, run, stored, text, worded_tokens,
};
use crate::{DataHome, Disagreement, ExpectedInputs, Outputs, Stage, Task};

/// Words of like meaning that are said to be forms of one word.
const FORMS: &[[&str; 3]] = &[
    ["n", "movie", "movie"],
    ["n", "film", "movie"],
    ["n", "plot", "movie"],
    ["n", "story", "movie"],
    ["n", "show", "movie"],
    ["a", "good", "good"],
    ["a", "great", "good"],
    ["a", "fine", "good"],
    ["a", "bad", "bad"],
    ["a", "awful", "bad"],
    ["a", "dull", "bad"],
];

pub fn lemmas() -> RecordBatch {
    forms(FORMS)
}

/// A Kim CNN that trained the vectors that it began with.
pub fn victim(rows: &RecordBatch, vectors: &RecordBatch) -> RecordBatch {
    let given = [
        ("model", text("kim-cnn")),
        ("kernels", Value::Int(4)),
        ("widths", Value::List(vec![Value::Int(2), Value::Int(3)])),
        ("vectors", text("trained")),
        ("epochs", Value::Int(6)),
        ("learning_rate", Value::Float(0.02)),
    ];
    let inputs = [("rows", rows), ("vectors", vectors)];
    run(&Train, &inputs, &given, 3).unwrap()["weights"].clone()
}

struct World {
    victim: RecordBatch,
    vectors: RecordBatch,
    vocab: RecordBatch,
    lemmas: RecordBatch,
}

impl World {
    fn new() -> World {
        let vectors = table_of_vectors();
        World {
            victim: victim(&table(&reviews()), &vectors),
            vocab: listed(words()),
            lemmas: lemmas(),
            vectors,
        }
    }

    fn inputs<'a>(&'a self, rows: &'a RecordBatch) -> Vec<(&'static str, &'a RecordBatch)> {
        vec![
            ("victim", &self.victim),
            ("rows", rows),
            ("vectors", &self.vectors),
            ("vocab", &self.vocab),
            ("lemmas", &self.lemmas),
        ]
    }

    fn attack(&self, rows: &RecordBatch, more: &[(&'static str, Value)]) -> Outputs {
        run(&AttackStage, &self.inputs(rows), &given(more), 9).unwrap()
    }

    /// What a replay under these rules says of what was made under others.
    fn replay(
        &self,
        rows: &RecordBatch,
        more: &[(&'static str, Value)],
        made: &Outputs,
    ) -> Vec<Disagreement> {
        let params = completed(&AttackStage, &given(more));
        let inputs = self.inputs(rows).into_iter();
        let task = Task {
            inputs: inputs.map(|(n, t)| (n.to_owned(), t.clone())).collect(),
            params: &params,
            seed: 9,
            files: Default::default(),
            data: &DataHome::nowhere(),
            place: &crate::Place::default(),
            watch: &Nobody,
        };
        let outputs = made.iter().map(|(n, t)| (n.clone(), stored(t))).collect();
        let replayed = AttackStage.replay(&task, &outputs, true).unwrap().unwrap();
        replayed.disagreements
    }
}

fn given(more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let mut given = vec![("attack", text("hotflip-words"))];
    given.extend(more.iter().cloned());
    given
}

fn tests() -> Vec<Text> {
    let all = reviews().into_iter();
    all.filter(|(split, ..)| *split == "test").collect()
}

fn lists(table: &RecordBatch, name: &str) -> Vec<Vec<usize>> {
    let lists = table[name].as_list::<i32>();
    let list = |i| {
        let list = lists.value(i);
        let list = list.as_primitive::<Int32Type>().values();
        list.iter().map(|n| *n as usize).collect()
    };
    (0..table.num_rows()).map(list).collect()
}

fn flips(made: &Outputs) -> i64 {
    let changed = made["examples"]["words_changed"].as_primitive::<Int64Type>();
    changed.values().iter().sum()
}

const LOOSE: (&str, Value) = ("similarity", Value::Float(0.2));

fn off(rule: &'static str) -> (&'static str, Value) {
    (rule, Value::Bool(false))
}

/// Each first flip is the one that a look at every word in every place finds.
#[test]
fn the_first_flip_is_the_best_of_all_that_are_allowed() {
    let world = World::new();
    let rows = table(&tests());
    let made = world.attack(&rows, &[LOOSE, ("max_flips", Value::Int(1))]);
    let examples = &made["examples"];
    let connected = vectors::read(&world.vectors).unwrap();
    let loaded = Loaded::open(&world.victim, Some(&connected)).unwrap();
    let subject = loaded.subject().unwrap();
    let own = read_by(&loaded, Some(&connected)).unwrap();
    assert_ne!(own, connected, "they were trained");
    let of = |w: usize| &own.data[w * own.dim..(w + 1) * own.dim];
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let names = words();
    let base = |w: usize| {
        let form = FORMS.iter().find(|[_, form, _]| *form == names[w]);
        form.map_or(names[w].as_str(), |[_, _, base]| base)
    };
    let stops = stop_words::get("en");
    let tag = |sentence: &[usize], k: usize| {
        let sentence: Vec<String> = sentence.iter().map(|w| names[*w].clone()).collect();
        brill_tagger().tag_sentence(&sentence)[k]
    };
    let (old, new) = (lists(examples, "original"), lists(examples, "adversarial"));
    let labels = examples["label"].as_primitive::<Int64Type>().values();
    let attacked = examples["attacked"].as_boolean();
    let mut flipped = 0;
    for (row, (old, new)) in old.iter().zip(&new).enumerate() {
        let example = Example {
            input: Sequence::Tokens(old.iter().map(|w| *w as u32).collect()),
            target: Target::Class(labels[row] as u32),
        };
        let asked = subject
            .victim()
            .gradients(&[&example], &Objective::CrossEntropy);
        let gradient = &asked.unwrap()[0].input;
        let mut best = None;
        for k in 0..old.len() {
            for w in 2..names.len() {
                let mut changed = old.clone();
                changed[k] = w;
                let cosine = dot(of(w), of(old[k]))
                    / (dot(of(w), of(w)) * dot(of(old[k]), of(old[k]))).sqrt();
                let allowed = w != old[k]
                    && !stops.contains(&names[old[k]].as_str())
                    && base(w) != base(old[k])
                    && cosine > 0.2
                    && tag(old, k).is_some()
                    && tag(&changed, k) == tag(old, k);
                let g = gradient.row(k).to_vec();
                let score = dot(&g, of(w)) - dot(&g, of(old[k]));
                if allowed && best.as_ref().is_none_or(|(most, _)| score > *most) {
                    best = Some((score, changed));
                }
            }
        }
        let expected = match attacked.value(row) {
            true => best.map_or(old.clone(), |(_, changed)| changed),
            false => old.clone(),
        };
        assert_eq!(*new, expected, "row {row}");
        flipped += usize::from(new != old);
    }
    assert!(flipped > 20, "{flipped}");
}

/// Tables that were made without a rule are found out by a replay with it.
#[test]
fn every_rule_is_kept_and_checked_again() {
    let world = World::new();
    let rows = table(&tests());
    for (rule, told) in [
        (("similarity", Value::Float(-1.0)), "a cosine of "),
        (off("same_part_of_speech"), "parts of speech "),
        (off("keep_stop_words"), "a stop word was replaced"),
        (off("other_lexeme"), "both words are forms of `"),
    ] {
        let more = match rule.0 {
            "similarity" => vec![rule.clone()],
            _ => vec![LOOSE, rule.clone()],
        };
        let made = world.attack(&rows, &more);
        assert_eq!(world.replay(&rows, &more, &made), [], "{rule:?}");
        let strict = world.replay(&rows, &[LOOSE], &made);
        let broken = |lie: &&Disagreement| lie.column == "constraints";
        let lies: Vec<&Disagreement> = strict.iter().filter(broken).collect();
        assert!(!lies.is_empty(), "{rule:?}");
        assert!(
            lies.iter().all(|lie| lie.found.starts_with(told)),
            "{lies:?}"
        );
        assert!(lies[0].stored.contains(" -> "), "{lies:?}");
    }
    let strict = world.attack(&rows, &[LOOSE]);
    assert_eq!(world.replay(&rows, &[LOOSE], &strict), []);
    assert!(flips(&strict) > 20);
}

#[test]
fn a_row_is_the_same_alone_and_on_any_number_of_threads() {
    let world = World::new();
    let texts = tests();
    let rows = table(&texts);
    let all = on_threads(1, || world.attack(&rows, &[LOOSE]));
    for threads in [2, 8] {
        assert_eq!(all, on_threads(threads, || world.attack(&rows, &[LOOSE])));
    }
    for (row, one) in texts.iter().enumerate().take(12) {
        let same = |_| format!("text/{row}");
        let alone = worded_tokens(std::slice::from_ref(one), same, &words());
        let alone = world.attack(&alone, &[LOOSE]);
        let of = |made: &Outputs, row: usize| made["examples"].slice(row, 1);
        assert_eq!(of(&alone, 0), of(&all, row));
    }
}

/// Padding is not part of the sentence, and is never changed.
#[test]
fn padding_changes_nothing_but_what_the_model_reads() {
    let world = World::new();
    let padded = tests().into_iter().map(|(split, label, mut tokens)| {
        tokens.resize(24, 0);
        (split, label, tokens)
    });
    let rows = table(&padded.collect::<Vec<Text>>());
    let made = world.attack(&rows, &[LOOSE]);
    assert!(flips(&made) > 10);
    assert_eq!(world.replay(&rows, &[LOOSE], &made), []);
}

/// The messages for what does not fit, whole.
#[test]
fn what_does_not_fit_is_named() {
    let world = World::new();
    let rows = table(&tests());
    let said = |inputs: &[(&str, &RecordBatch)], more: &[(&'static str, Value)]| {
        let failure = run(&AttackStage, inputs, &given(more), 9).unwrap_err();
        (failure.message, failure.help.unwrap_or_default())
    };
    // Before anything runs: the lists of words.
    let ports = ["victim", "rows", "vocab"].map(|port| (port, Default::default()));
    let params = completed(&AttackStage, &given(&[]));
    let told = AttackStage.expect(&params, &ExpectedInputs(ports.into_iter().collect()));
    let told = told.err().unwrap();
    assert_eq!(
        (told.message.as_str(), told.help.unwrap().as_str()),
        (
            "the attack `hotflip-words` needs the input `lemmas`",
            "connect it to a dataset stage with name = \"wordnet-lemmas\": inputs = { lemmas = \"STAGE\" }"
        )
    );
    let ports = ["victim", "rows", "vocab"].map(|port| (port, Default::default()));
    let params = completed(&AttackStage, &given(&[off("other_lexeme")]));
    assert!(
        AttackStage
            .expect(&params, &ExpectedInputs(ports.into_iter().collect()))
            .is_ok()
    );
    // A vocabulary of another data set.
    let mut others = words();
    others.swap(4, 5);
    let another = listed(others);
    let mut inputs = world.inputs(&rows);
    inputs[3] = ("vocab", &another);
    let (message, help) = said(&inputs, &[]);
    assert!(
        message.starts_with("`rows` and `vocab` number their words by different vocabularies, "),
        "{message}"
    );
    assert_eq!(
        help,
        "make both from one tokenize stage, or connect its `vocab` to the other one"
    );
    // Vectors of another model: of fewer words, and of none of these.
    let fewer = world.vectors.slice(0, 9);
    let mut inputs = world.inputs(&rows);
    inputs[2] = ("vectors", &fewer);
    let (message, help) = said(&inputs, &[("cosine_of", text("pretrained"))]);
    assert_eq!(
        message,
        "there are vectors of 9 words, but the vocabulary has 32"
    );
    assert_eq!(help, "connect `vectors` and `vocab` of one tokenize stage");
    let none: Vec<(&str, &RecordBatch)> = world
        .inputs(&rows)
        .into_iter()
        .filter(|(port, _)| *port != "vectors")
        .collect();
    let (message, _) = said(&none, &[("cosine_of", text("pretrained"))]);
    assert_eq!(
        message,
        "cosine_of = \"pretrained\" needs the input `vectors`"
    );
    // Vectors that the model did not train are those that are connected.
    let frozen = [
        ("model", text("lstm")),
        ("units", Value::Int(3)),
        ("epochs", Value::Int(1)),
    ];
    let all = table(&reviews());
    let frozen = run(
        &Train,
        &[("rows", &all), ("vectors", &world.vectors)],
        &frozen,
        3,
    );
    let frozen = frozen.unwrap()["weights"].clone();
    let mut inputs = world.inputs(&rows);
    inputs[0] = ("victim", &frozen);
    let (message, _) = said(&inputs, &[("cosine_of", text("pretrained"))]);
    assert_eq!(
        message,
        "`cosine_of` would have no effect here: the model reads the connected vectors as they are"
    );
    // A list of words that is something else.
    let mut inputs = world.inputs(&rows);
    inputs[4] = ("lemmas", &world.vocab);
    let (message, _) = said(&inputs, &[]);
    assert_eq!(message, "the input `lemmas` has no column `pos` of strings");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the rules are, they are kept, and so is the budget.
    #[test]
    fn rules_and_budgets_are_kept(
        similarity in -1.0..0.95f64,
        flips in 1..5i64,
        rules in proptest::array::uniform3(any::<bool>()),
        pretrained in any::<bool>(),
    ) {
        static WORLD: std::sync::LazyLock<World> = std::sync::LazyLock::new(World::new);
        let rows = table(&tests()[..20]);
        let names = ["same_part_of_speech", "keep_stop_words", "other_lexeme"];
        let mut more: Vec<(&'static str, Value)> = names.into_iter().zip(rules.map(Value::Bool)).collect();
        more.push(("similarity", Value::Float(similarity)));
        more.push(("max_flips", Value::Int(flips)));
        more.push(("cosine_of", text(if pretrained { "pretrained" } else { "model" })));
        let made = WORLD.attack(&rows, &more);
        prop_assert_eq!(WORLD.replay(&rows, &more, &made), []);
        let changed = made["examples"]["words_changed"].as_primitive::<Int64Type>();
        prop_assert!(changed.values().iter().all(|n| *n <= flips));
    }
}
