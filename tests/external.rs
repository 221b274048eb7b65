//! A model in a program of the user, through the whole program.

use crate::daemons::wait_until;
use crate::lab::Lab;
use crate::schedule::{running_children, signal};

const PIPELINE: &str = r#"
[pipeline]
name = "own"
seed = 3

[stage.reviews]
kind = "dataset"
name = "reviews-grammar"
generate = { train = 120, dev = 20, test = 40 }

[stage.tokens]
kind = "tokenize"
inputs = { rows = "reviews" }
scheme = "words"

[stage.mine]
kind = "external-model"
inputs = { rows = "tokens" }
run = ["/usr/bin/python3", "model.py"]
files = ["model.py"]
classes = 2

[stage.bayes]
kind = "train"
inputs = { rows = "tokens" }
model = "naive-bayes"

[stage.attacked]
kind = "attack"
inputs = { victim = "mine", bayes = "bayes" }
attack = "swap"
n = 2
"#;

/// Prints a lot, and answers by counting letters: no package is needed.
const MODEL: &str = r#"
print("early")
import ablate
print("loading")

def predict(texts):
    print("asked about", len(texts))
    shares = [(1 + text.count("e")) / (2 + text.count("e") + text.count("a")) for text in texts]
    return [[1 - share, share] for share in shares]

ablate.serve(predict=predict)
"#;

fn lab() -> Option<Lab> {
    if !std::path::Path::new("/usr/bin/python3").is_file() {
        println!("skipped: there is no /usr/bin/python3");
        return None;
    }
    let lab = Lab::new(PIPELINE);
    lab.write("model.py", MODEL);
    Some(lab)
}

#[test]
fn a_python_model_is_attacked_replayed_and_keyed_by_its_files() {
    let Some(lab) = lab() else { return };
    let ran = lab.run();
    ran.ran(["reviews", "tokens", "mine", "bayes", "attacked"]);
    let log = lab.ablate(&["show", "attacked", "--log"]).good().stdout;
    assert!(log.contains("\nearly\nloading\nasked about "), "{log}");
    let first = lab.digests();
    let replayed = lab.ablate(&["replay"]).good().stdout;
    assert!(replayed.contains(" 0 mismatches"), "{replayed}");
    lab.run().ran([]);
    // Another comment is another file, and the same results.
    lab.write("model.py", &format!("{MODEL}# the end\n"));
    lab.run().ran(["mine", "attacked"]);
    assert_eq!(
        lab.digests()["attacked.examples"],
        first["attacked.examples"]
    );
    // On one thread, from nothing.
    lab.run_with(&["--store", "other", "--jobs", "1"]);
    let other = lab.ablate(&["runs", "last", "--json", "--store", "other"]);
    let other = crate::lab::digests_of(&other.good().stdout);
    assert_eq!(other["attacked.examples"], first["attacked.examples"]);
    lab.ablate(&["fsck"]).good();
}

#[test]
fn what_cannot_be_attacked_is_said_before_anything_runs() {
    let Some(lab) = lab() else { return };
    lab.edit(
        "attack = \"swap\"\nn = 2",
        "attack = \"jsma\"\nmax_words = 3",
    );
    lab.edit(", bayes = \"bayes\" }", " }");
    let refused = lab.ablate(&["plan"]);
    assert_eq!(refused.code, 2);
    insta::assert_snapshot!(refused.stderr);
}

#[test]
fn a_model_that_raises_or_dies_is_a_failed_stage_with_its_last_words() {
    let Some(lab) = lab() else { return };
    let broken = MODEL.replace("    shares =", "    shares = texts.shares\n    shares =");
    lab.write("model.py", &broken);
    let failed = lab.ablate(&["run", "mine"]);
    assert_eq!(failed.code, 1);
    for words in [
        "`/usr/bin/python3 model.py` could not answer:",
        "AttributeError: 'list' object has no attribute 'shares'",
        "  asked about ",
    ] {
        assert!(failed.stderr.contains(words), "{words}\n{}", failed.stderr);
    }
    // It answers the stage that tries it out with 64 rows, and dies when the 40 of the test split are attacked.
    let dies = "import os\n".to_owned()
        + &MODEL.replace(
            "    print(\"asked",
            "    if len(texts) == 40:\n        os._exit(7)\n    print(\"asked",
        );
    lab.write("model.py", &dies);
    lab.run_with(&["mine"]).ran(["mine"]);
    let failed = lab.ablate(&["run"]);
    assert_eq!(failed.code, 1);
    assert!(
        failed
            .stderr
            .contains("`/usr/bin/python3 model.py` ended: exit code 7"),
        "{}",
        failed.stderr
    );
    lab.write("model.py", MODEL);
    lab.run();
    lab.ablate(&["fsck"]).good();
}

/// Ctrl-C does not wait for a model that is at work, nor for one whose children outlive it.
#[test]
fn a_model_that_is_slow_is_not_waited_for() {
    let Some(lab) = lab() else { return };
    lab.run_with(&["tokens"]);
    lab.write("model.py", "import time\nimport ablate\ntime.sleep(300)\n");
    let mut child = lab.start(&["mine"]);
    wait_until(|| running_children(child.id()) > 0);
    signal(child.id(), "INT");
    wait_until(|| child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let orphan = "import os, sys, time\nimport ablate\nif os.fork() == 0:\n    time.sleep(300)\nsys.exit(\"gone\")\n";
    lab.write("model.py", orphan);
    let failed = lab.ablate(&["run", "mine"]);
    assert!(
        failed
            .stderr
            .contains("`/usr/bin/python3 model.py` ended: exit code 1"),
        "{}",
        failed.stderr
    );
    lab.write("model.py", "import ablate\n");
    let failed = lab.ablate(&["run", "mine"]);
    assert!(
        failed
            .stderr
            .contains("help: it must end with ablate.serve(predict=…)"),
        "{}",
        failed.stderr
    );
}

/// What a program does by mistake is said in words that name the mistake.
#[test]
fn answers_that_are_none_and_a_program_that_reads_its_standard_input_are_said() {
    let Some(lab) = lab() else { return };
    lab.run_with(&["tokens"]);
    // Without pyarrow answers are JSON, which has no NaN.
    let cases = [
        (
            "import ablate\nablate.pyarrow = None\nablate.serve(predict=lambda texts: [[float('nan'), 0.5] for _ in texts])\n",
            "ValueError: row 0 of probabilities has a number that is not finite: nan",
        ),
        (
            "import ablate\nablate.serve(predict=lambda texts: None)\n",
            "ValueError: nothing was returned: return a row of numbers for each item",
        ),
        (
            "import ablate\nablate.serve(predict=lambda texts: [None for _ in texts])\n",
            "ValueError: return a row of numbers for each item, as predict_proba does, not None",
        ),
        (
            "import ablate\nablate.serve(predict=lambda texts: [0.5 for _ in texts])\n",
            "ValueError: return a row of numbers for each item, as predict_proba does, not 0.5",
        ),
        (
            "import ablate\nname = input('which model? ')\n",
            "EOFError: EOF when reading a line",
        ),
    ];
    for (program, expected) in cases {
        lab.write("model.py", program);
        let failed = lab.ablate(&["run", "mine"]);
        assert_eq!(failed.code, 1, "{program}");
        assert!(
            failed.stderr.contains(expected),
            "{expected}\n{}",
            failed.stderr
        );
    }
    // A program that reads what is left of its standard input finds nothing, and answers.
    let reads = MODEL.replace(
        "print(\"loading\")",
        "import sys\nprint('read', len(sys.stdin.read()), 'bytes')",
    );
    lab.write("model.py", &reads);
    lab.run_with(&["mine"]);
    let log = lab.ablate(&["show", "mine", "--log"]).good().stdout;
    assert!(log.contains("read 0 bytes"), "{log}");
}

/// Answers gradients of a linear model in plain Python: no package is needed.
const WITH_GRADIENTS: &str = r#"
import math
import ablate

WORDS = 400
# Words of like meaning point the same way; the sign of the first number is the class that they speak for.
vectors = [[math.cos(n), math.sin(n), 1.0] for n in range(WORDS)]
direction = [2.0, -1.0, 0.05]

def value(item):
    return sum(sum(a * b for a, b in zip(vectors[n], direction)) for n in item)

def predict(items):
    p = [1 / (1 + math.exp(-max(-30, min(30, value(item))))) for item in items]
    return [[1 - p, p] for p in p]

def gradient(items, classes):
    # d log p[1] / d v = (1 - p) w, d log p[0] / d v = -p w
    rows = []
    for item, c, (_, p) in zip(items, classes, predict(items)):
        factor = 1 - p if c == 1 else -p
        rows.append([[factor * w for w in direction] for _ in item])
    return rows

ablate.serve(predict=predict, gradient=gradient, vectors=vectors)
"#;

/// As normalisation by the rest of a request does, or padding that is not masked: such a model has no answer of its own.
#[test]
fn a_model_whose_answers_hang_on_the_rest_of_a_request_is_refused() {
    let Some(lab) = lab() else { return };
    let mean = "    mean = sum(shares) / len(shares)\n    return [[0.5 - (s - mean) / 2, 0.5 + (s - mean) / 2] for s in shares]\n    return";
    lab.write("model.py", &MODEL.replacen("    return", mean, 1));
    let failed = lab.ablate(&["run", "mine"]);
    assert_eq!(failed.code, 1);
    for words in [
        "for the row ",
        " among 64 rows, and [0.5, 0.5] when it is asked about that row alone",
        "help: an answer must not depend on what else is in a request",
    ] {
        assert!(failed.stderr.contains(words), "{words}\n{}", failed.stderr);
    }
}

/// The commonest mistakes make a model look robust: the gradient of the loss, and a graph that was cut.
#[test]
fn gradients_that_point_the_wrong_way_or_nowhere_are_refused() {
    let Some(lab) = lab() else { return };
    lab.edit(
        "classes = 2\n",
        "classes = 2\nreads = \"tokens\"\ngradients = true\n",
    );
    lab.run_with(&["tokens"]);
    let words = lab.rows("tokens.vocab").len();
    let sized = WITH_GRADIENTS.replace("WORDS = 400", &format!("WORDS = {words}"));
    let ran = |factor: &str| {
        let changed = sized.replace("[factor * w for", &format!("[{factor} * w for"));
        lab.write("model.py", &changed);
        lab.ablate(&["run", "mine"])
    };
    let wrong = ran("-factor");
    assert_eq!(wrong.code, 1);
    let said = "the gradient points the wrong way: where it promises a higher probability, the model answers a lower one";
    assert!(wrong.stderr.contains(said), "{}", wrong.stderr);
    let zero = ran("0.0");
    assert_eq!(zero.code, 1);
    let said = "the gradient is zero everywhere, and yet the model's answers change";
    assert!(zero.stderr.contains(said), "{}", zero.stderr);
    let right = ran("factor");
    assert_eq!(right.code, 0, "{}", right.stderr);
    let log = lab.ablate(&["show", "mine", "--log"]).good().stdout;
    assert!(log.contains("cosine "), "{log}");
}

/// What `run` says of results, note by note.
fn notes(lab: &Lab) -> Vec<String> {
    let events = lab.run().events;
    let notes = events.iter().filter_map(|event| event["note"].as_str());
    notes.map(str::to_owned).collect()
}

/// An embedding of a model's own size: an attack would look for words that the vocabulary does not have.
#[test]
fn vectors_of_other_words_than_the_vocabularys_are_refused() {
    let Some(lab) = lab() else { return };
    lab.edit(
        "classes = 2\n",
        "classes = 2\nreads = \"tokens\"\ngradients = true\n",
    );
    lab.run_with(&["tokens"]);
    let words = lab.rows("tokens.vocab").len();
    for count in [words + 100, words - 1] {
        let sized = WITH_GRADIENTS
            .replace("WORDS = 400", &format!("WORDS = {}", words + 100))
            .replace("vectors=vectors)", &format!("vectors=vectors[:{count}])"));
        lab.write("model.py", &sized);
        let refused = lab.ablate(&["run", "mine"]);
        let said = format!(
            "the model has vectors of {count} words, and the vocabulary of its rows has {words}"
        );
        assert!(refused.stderr.contains(&said), "{}", refused.stderr);
    }
}

/// Such an attack finds little, and the model looks robust.
#[test]
fn a_gradient_that_says_nothing_of_answers_is_noted() {
    let Some(lab) = lab() else { return };
    lab.edit(
        "classes = 2\n",
        "classes = 2\nreads = \"tokens\"\ngradients = true\n",
    );
    lab.run_with(&["tokens"]);
    let words = lab.rows("tokens.vocab").len();
    let sized = WITH_GRADIENTS.replace("WORDS = 400", &format!("WORDS = {words}"));
    lab.write("model.py", &sized);
    let weak = "the gradient says little of what the model answers";
    assert!(notes(&lab).iter().all(|note| !note.contains(weak)));
    // Its direction is at a right angle to the one that decides.
    lab.write(
        "model.py",
        &sized.replace(
            "[factor * w for w in direction]",
            "[factor, 2.0 * factor, 0.0]",
        ),
    );
    let told = notes(&lab);
    assert!(
        told.iter()
            .any(|note| note.starts_with("`mine`: ") && note.contains(weak)),
        "{told:?}"
    );
}

/// Of a model of somebody else, whose classes have an order of their own.
#[test]
fn a_model_that_is_right_less_often_than_by_guessing_is_noted() {
    let Some(lab) = lab() else { return };
    lab.run_with(&["tokens"]);
    // How much each word speaks for class 1, by the rows themselves.
    let mut counts: std::collections::BTreeMap<String, [f64; 2]> = Default::default();
    for row in lab.rows("reviews") {
        let text = row["text"].as_str().unwrap().to_lowercase();
        let plain = text.replace(|c: char| !c.is_ascii_alphanumeric() && c != ' ', "");
        for word in plain.split_whitespace() {
            let [of_one, all] = counts.entry(word.to_owned()).or_default();
            *of_one += 2.0 * row["label"].as_f64().unwrap() - 1.0;
            *all += 1.0;
        }
    }
    let scores = counts
        .iter()
        .map(|(word, [of_one, all])| (word, of_one / all));
    let scores: std::collections::BTreeMap<&String, f64> = scores.collect();
    let scores = serde_json::to_string(&scores).unwrap();
    let told_by = |order: &str| {
        let script = format!(
            "import ablate\n\
             scores = {scores}\n\
             def one(text):\n    \
                 p = 0.9 if sum(scores.get(word, 0) for word in text.split()) > 0 else 0.1\n    \
                 return [1 - p, p]{order}\n\
             ablate.serve(predict=lambda texts: [one(text) for text in texts])\n"
        );
        lab.write("model.py", &script);
        notes(&lab)
    };
    let said = "rows, less often than by guessing: are its classes in the order of the dataset's output `labels`?";
    let told = told_by("");
    assert!(told.iter().all(|note| !note.contains(said)), "{told:?}");
    let told = told_by("[::-1]");
    assert!(
        told.iter()
            .any(|note| note.starts_with("`mine`: the model is right on ") && note.ends_with(said)),
        "{told:?}"
    );
}

#[test]
fn classes_that_do_not_fit_are_said_with_a_next_step() {
    let Some(lab) = lab() else { return };
    lab.edit("classes = 2", "classes = 3");
    let refused = lab.ablate(&["plan"]);
    assert_eq!(refused.code, 2);
    let said = "`mine` predicts 3 classes, and `bayes` has counted words of 2";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    // Of a user's own file the classes are known only once it has been read.
    let rows: String = (0..12)
        .map(|n| {
            format!(
                "the film number {n},{},{}\n",
                2 - n % 3,
                ["train", "test"][n / 6]
            )
        })
        .collect();
    lab.write("rows.csv", &format!("text,label,split\n{rows}"));
    lab.edit("classes = 3", "classes = 2");
    lab.edit(
        "name = \"reviews-grammar\"\ngenerate = { train = 120, dev = 20, test = 40 }",
        "source = { csv = \"rows.csv\", text = \"text\", label = \"label\", split = \"split\" }",
    );
    let refused = lab.ablate(&["run", "mine"]).stderr;
    assert!(
        refused.contains("the row 0 has the label 2, and `classes` is 2"),
        "{refused}"
    );
}

#[test]
fn what_programs_most_often_do_wrong_has_a_next_step() {
    let Some(lab) = lab() else { return };
    for (script, help) in [
        ("print('trained')\n", "end with ablate.serve(predict=…)"),
        (
            "import ablate\nablate.serve(predict=lambda texts: [[2.5, -1.0] for _ in texts])\n",
            "of scores or logits take the softmax",
        ),
        (
            "import ablate\nablate.serve(predict=lambda texts: [[0.5, 0.9] for _ in texts])\n",
            "of scores or logits take the softmax",
        ),
    ] {
        lab.write("model.py", script);
        let failed = lab.ablate(&["run", "mine"]);
        assert_eq!(failed.code, 1);
        assert!(failed.stderr.contains(help), "{}", failed.stderr);
    }
}

/// Naive Bayes counts the classes of the user's rows, which are known only then.
#[test]
fn classes_that_naive_bayes_has_not_counted_are_an_error_and_no_panic() {
    let Some(lab) = lab() else { return };
    let rows: String = (0..60)
        .map(|n| {
            let (word, split) = (["good", "bad"][n % 2], ["train", "dev", "test"][n % 3]);
            format!("the film number {n} was {word},{},{split}\n", n % 2)
        })
        .collect();
    lab.write("rows.csv", &format!("text,label,split\n{rows}"));
    lab.edit(
        "name = \"reviews-grammar\"\ngenerate = { train = 120, dev = 20, test = 40 }",
        "source = { csv = \"rows.csv\", text = \"text\", label = \"label\", split = \"split\" }",
    );
    lab.edit("classes = 2", "classes = 3");
    lab.write(
        "model.py",
        "import ablate\nablate.serve(predict=lambda texts: [[0.2, 0.7, 0.1] if 'good' in t else [0.7, 0.2, 0.1] for t in texts])\n",
    );
    let failed = lab.ablate(&["run"]).stderr;
    let said = "the model predicts 3 classes, and `bayes` has counted words of 2";
    assert!(
        failed.contains(said) && !failed.contains("panicked"),
        "{failed}"
    );
}

/// A text is sent as words of a vocabulary, in which a misspelt word is unknown.
#[test]
fn attacks_on_characters_are_refused_with_others_to_choose() {
    let Some(lab) = lab() else { return };
    lab.edit(
        "inputs = { victim = \"mine\", bayes = \"bayes\" }\nattack = \"swap\"\nn = 2",
        "inputs = { victim = \"mine\" }\nattack = \"deepwordbug\"",
    );
    let refused = lab.ablate(&["plan"]).stderr;
    let help = "inputs = { known_words = \"STAGE.vocab\" }";
    assert!(refused.contains(help), "{refused}");
    lab.edit(
        "inputs = { victim = \"mine\" }",
        "inputs = { victim = \"mine\", known_words = \"tokens.vocab\" }",
    );
    let refused = lab.ablate(&["plan"]).stderr;
    let said = "`mine` is sent the words of a vocabulary, in which every misspelt word is [UNK]";
    assert!(
        refused.contains(said) && refused.contains("help: choose tack-on, swap,"),
        "{refused}"
    );
}

#[test]
fn hotflip_words_follows_the_gradients_of_a_model_in_python() {
    let Some(lab) = lab() else { return };
    lab.write("model.py", WITH_GRADIENTS);
    lab.edit(
        "classes = 2\n",
        "classes = 2\nreads = \"tokens\"\ngradients = true\n",
    );
    lab.edit(
        "{ victim = \"mine\", bayes = \"bayes\" }",
        "{ victim = \"mine\" }",
    );
    lab.edit(
        "attack = \"swap\"\nn = 2",
        "attack = \"hotflip-words\"\nmax_flips = 3\nsimilarity = 0.5\nsame_part_of_speech = false\nother_lexeme = false",
    );
    lab.run_with(&["tokens"]);
    let words = lab.rows("tokens.vocab").len();
    let sized = WITH_GRADIENTS.replace("WORDS = 400", &format!("WORDS = {words}"));
    lab.write("model.py", &sized);
    lab.run();
    let rows = lab.rows("attacked.examples");
    let won = rows.iter().filter(|row| row["success"] == true).count();
    assert!(won > 0, "{won} of {}", rows.len());
    for row in rows.iter().filter(|row| row["attacked"] == true) {
        assert!(row["words_changed"].as_i64().unwrap() <= 3);
        assert!(row["backward"].as_i64().unwrap() > 0);
    }
    let replayed = lab.ablate(&["replay"]).good().stdout;
    assert!(replayed.contains(" 0 mismatches"), "{replayed}");
}

/// Answers for a batch of 40 texts, which is what an attack asks first, are off by SHIFT: libraries round by what else is
/// in a batch, and `replay` asks in other batches.
const BY_BATCH: &str = r#"
import ablate

def predict(texts):
    shift = SHIFT if len(texts) == 40 else 0.0
    shares = [SHARE + shift for text in texts]
    return [[1 - share, share] for share in shares]

ablate.serve(predict=predict)
"#;

#[test]
fn replay_accepts_rounding_by_batches_and_no_other_prediction() {
    let Some(lab) = lab() else { return };
    // Rows that the model gets wrong are not asked about again.
    lab.edit("n = 2", "n = 2\namong = \"correct\"");
    let share = "(1.3 + text.count('e')) / (3 + text.count('e') + text.count('a'))";
    let replayed = |share: &str, shift: &str| {
        let model = BY_BATCH.replace("SHARE", share).replace("SHIFT", shift);
        lab.write("model.py", &model);
        lab.run();
        let rows = lab.rows("attacked.examples").len();
        assert!(0 < rows && rows < 40, "{rows}: the batches are the same");
        (lab.ablate(&["replay"]), rows)
    };
    let (same, rows) = replayed(share, "0.00005");
    let said = format!("ablate: all confirmed: 1 stage, {rows} rows, 0 mismatches\n");
    assert!(same.good().stdout.ends_with(&said));
    let (other, rows) = replayed(share, "0.0005");
    let said = format!("ablate: NOT confirmed: 1 stage, {rows} rows, {rows} mismatches\n");
    assert_eq!(other.code, 1);
    assert!(
        other.stdout.contains(", p_before: stored ["),
        "{}",
        other.stdout
    );
    assert!(other.stdout.ends_with(&said), "{}", other.stdout);
    // Within the tolerance, and yet another class: the prediction and the success are mismatches.
    let (turned, rows) = replayed("0.49998", "0.00004");
    let said = format!(
        "ablate: NOT confirmed: 1 stage, {rows} rows, {} mismatches\n",
        2 * rows
    );
    assert_eq!(turned.code, 1);
    assert!(
        turned
            .stdout
            .contains(", predicted_before: stored 1, found 0\n"),
        "{}",
        turned.stdout
    );
    assert!(
        turned
            .stdout
            .contains(", success: stored true, found false\n"),
        "{}",
        turned.stdout
    );
    assert!(turned.stdout.ends_with(&said), "{}", turned.stdout);
}

/// Attends to a token by its id, and lets the first token decide the class.
const WITH_ATTENTION: &str = r#"
import ablate

def predict(items):
    return [[0.9, 0.1] if sum(item) % 2 else [0.1, 0.9] for item in items]

def attention(items):
    return [[token / sum(item) for token in item] for item in items]

ablate.serve(predict=predict, attention=attention)
"#;

#[test]
fn a_word_is_replaced_where_a_model_in_python_attends_most() {
    let Some(lab) = lab() else { return };
    lab.write("model.py", WITH_ATTENTION);
    lab.edit(
        "classes = 2\n",
        "classes = 2\nreads = \"tokens\"\nattention = true\n",
    );
    lab.edit(
        "{ victim = \"mine\", bayes = \"bayes\" }",
        "{ victim = \"mine\" }",
    );
    lab.edit(
        "attack = \"swap\"\nn = 2",
        "attack = \"replace-word\"\nplace = \"attention-max\"",
    );
    lab.run();
    let rows = lab.rows("attacked.examples");
    let attacked: Vec<_> = rows.iter().filter(|row| row["attacked"] == true).collect();
    assert!(attacked.len() > 10, "{}", attacked.len());
    for row in attacked {
        let ids = row["original"].as_array().unwrap().iter();
        let ids: Vec<i64> = ids.map(|id| id.as_i64().unwrap()).collect();
        let most = *ids.iter().max().unwrap();
        let first = ids.iter().position(|id| *id == most).unwrap();
        assert_eq!(row["positions"], serde_json::json!([first]), "{row}");
        assert_eq!(
            row["success"], true,
            "every other word of another parity will do"
        );
        // One pass for the attention, and one for each candidate that was asked about.
        let (passes, queries) = (row["forward"].as_i64(), row["queries"].as_i64());
        assert!(passes > queries, "{row}");
    }
    let replayed = lab.ablate(&["replay"]).good().stdout;
    assert!(replayed.ends_with(" rows, 0 mismatches\n"), "{replayed}");
    // It must be declared, and what is declared must be there.
    lab.edit("attention = true\n", "");
    let refused = lab.ablate(&["run"]);
    assert_eq!(refused.code, 2);
    for words in [
        "error: place = \"attention-max\" looks at attention, and `mine` has none",
        "help: serve attention and set attention = true in the external-model stage, or choose another `place`",
    ] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    lab.edit(
        "reads = \"tokens\"\n",
        "reads = \"tokens\"\nattention = true\n",
    );
    lab.write(
        "model.py",
        &WITH_ATTENTION.replace(", attention=attention", ""),
    );
    let refused = lab.ablate(&["run", "mine"]);
    assert_eq!(refused.code, 1);
    let words = "`/usr/bin/python3 model.py` does not answer attention, and `attention` is true: call ablate.serve(predict=…, attention=…)\n";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    lab.edit("reads = \"tokens\"\n", "reads = \"text\"\n");
    let refused = lab.ablate(&["plan"]);
    assert_eq!(refused.code, 2);
    let words = "error: `attention` is to tokens, and the model reads texts\n";
    assert!(refused.stderr.starts_with(words), "{}", refused.stderr);
}

/// Its largest hidden state tells the token, its cell states are zero.
const WITH_STATES: &str = r#"
import ablate

def predict(items):
    return [[0.9, 0.1] if sum(item) % 2 else [0.1, 0.9] for item in items]

def states(items):
    hot = lambda token: [1.0 if unit == token % 4 else 0.0 for unit in range(4)]
    return [{"h": [hot(token) for token in item], "c": [[0.0] * 4 for _ in item]} for item in items]

ablate.serve(predict=predict, states=states)
"#;

#[test]
fn coverage_of_a_model_in_python_is_that_of_the_states_it_answers() {
    let Some(lab) = lab() else { return };
    lab.write("model.py", WITH_STATES);
    lab.edit(
        "classes = 2\n",
        "classes = 2\nreads = \"tokens\"\nstates = true\nbatch = 7\n",
    );
    let pipeline = std::fs::read_to_string(lab.path("pipeline.toml")).unwrap();
    lab.write(
        "pipeline.toml",
        &format!(
            "{pipeline}\n[stage.reached]\nkind = \"evaluate\"\nmeasure = \"coverage\"\nsplit = \"test\"\n\
             inputs = {{ victim = \"mine\", rows = \"tokens\" }}\n"
        ),
    );
    lab.ablate(&["run", "reached"]).good();
    let rows = lab.rows("tokens");
    let rows = rows.iter().filter(|row| row["split"] == "test");
    let rows: Vec<Vec<u64>> = rows
        .map(|row| {
            let ids = row["ids"].as_array().unwrap().iter();
            ids.map(|id| id.as_u64().unwrap()).collect()
        })
        .collect();
    let steps = rows.iter().map(Vec::len).max().unwrap();
    let (mut seen, mut longest) = (std::collections::BTreeSet::new(), 0);
    let covered = lab.rows("reached.coverage");
    for (n, row) in rows.iter().enumerate() {
        seen.extend(row.iter().map(|id| id % 4).enumerate());
        longest = longest.max(row.len());
        let value = |metric: &str, section: serde_json::Value| {
            let found = covered.iter().find(|row| {
                row["input"] == n as i64 + 1 && row["metric"] == metric && row["section"] == section
            });
            found.unwrap()["covered"].as_f64().unwrap()
        };
        let hidden = seen.len() as f64 / (4 * steps) as f64;
        assert_eq!(value("HS", serde_json::Value::Null), hidden, "row {n}");
        let cells = longest as f64 / steps as f64;
        assert_eq!(value("CS", 2.into()), cells, "row {n}");
        assert_eq!(value("CS", 4.into()), 0.0, "row {n}");
    }
    // What answers no gates has no coverage of gates.
    assert!(covered.iter().all(|row| row["metric"] != "G_i"));
    // It must be declared, and what is declared must be there.
    lab.edit("states = true\n", "");
    let refused = lab.ablate(&["plan"]);
    assert_eq!(refused.code, 2);
    for words in [
        "the model `mine` has no recurrent states to cover",
        "answer them with ablate.serve(predict=…, states=…), and set states = true in its stage",
    ] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    lab.edit(
        "reads = \"tokens\"\n",
        "reads = \"tokens\"\nstates = true\n",
    );
    lab.write(
        "model.py",
        &WITH_STATES.replace("[[0.0] * 4 for _ in item]", "[[0.0] * 3 for _ in item]"),
    );
    let refused = lab.ablate(&["run", "reached"]);
    assert_eq!(refused.code, 1);
    let words = "states of one layer have [3, 4] units";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
}

/// All models in programs have one name; a message names the stage.
#[test]
fn messages_name_the_stage_of_an_external_model() {
    let Some(lab) = lab() else { return };
    let pipeline = std::fs::read_to_string(lab.path("pipeline.toml")).unwrap();
    for (stage, expected) in [
        (
            "kind = \"evaluate\"\nmeasure = \"coverage\"\ninputs = { victim = \"mine\", rows = \"tokens\" }",
            "the model `mine` has no recurrent states to cover",
        ),
        (
            "kind = \"attack\"\nattack = \"swap\"\ninputs = { victim = \"bayes\", bayes = \"mine\" }",
            "the input `bayes` is the model `mine`",
        ),
        (
            "kind = \"rnn-test\"\norientation = \"random\"\ninputs = { victim = \"mine\", rows = \"tokens\" }",
            "`rnn-test` is for recurrent models of sequences, and `victim` is `mine`",
        ),
    ] {
        lab.write(
            "pipeline.toml",
            &format!("{pipeline}\n[stage.last]\n{stage}\n"),
        );
        let refused = lab.ablate(&["plan"]);
        assert_eq!(refused.code, 2, "{stage}");
        let said = format!("error: {expected}\n");
        assert!(refused.stderr.starts_with(&said), "{}", refused.stderr);
    }
}

/// Looks whether the next request is there when an answer is ready.
const LOOKS: &str = r#"
import select
import ablate

def predict(texts):
    ahead = select.select([ablate._REQUESTS.fileno()], [], [], 2)[0]
    print("next request is", "there" if ahead else "missing")
    return [[0.4, 0.6] if len(text) % 2 else [0.6, 0.4] for text in texts]

ablate.serve(predict=predict)
"#;

#[test]
fn a_program_does_not_wait_for_its_next_request() {
    let Some(lab) = lab() else { return };
    lab.write("model.py", LOOKS);
    lab.edit("classes = 2\n", "classes = 2\nbatch = 4\n");
    // 40 rows before and 40 after, in tens: after the last of each nothing is asked. It waits for as long as a very busy
    // machine may take.
    lab.run();
    let log = lab.ablate(&["show", "attacked", "--log"]).good().stdout;
    let count = |what: &str| {
        let line = format!("next request is {what}");
        log.lines().filter(|said| *said == line).count()
    };
    assert_eq!(count("there") + count("missing"), 20, "{log}");
    assert!(count("there") >= 10, "{log}");
}
