//! An attack in a program of the user, through the whole program.

use crate::lab::Lab;

const PIPELINE: &str = r#"
[pipeline]
name = "own-attack"
seed = 3

[stage.reviews]
kind = "dataset"
name = "reviews-grammar"
generate = { train = 200, dev = 20, test = 40 }

[stage.tokens]
kind = "tokenize"
inputs = { rows = "reviews" }
scheme = "words"

[stage.bayes]
kind = "train"
inputs = { rows = "tokens" }
model = "naive-bayes"

[stage.attacked]
kind = "attack"
inputs = { victim = "bayes" }
attack = "external"
run = ["/usr/bin/python3", "attack.py"]
files = ["attack.py"]
max_words = 3
max_queries = 60
"#;

/// Replaces a random word by the best of ten random ones, up to four times; says what it sees, and counts itself.
const ATTACK: &str = r#"
print("early")
import random
import ablate

calls = 0

def attack(item, predict):
    global calls
    calls += 1
    print("item", calls, item.id, item.label, item.seed, random.random(), item.random.random())
    words = list(item.words)
    assert words == item.text.split() and len(item.probabilities) == ablate.classes
    known = [word for word in ablate.vocabulary if not word.startswith("[")]
    for _ in range(3):
        place = random.randrange(len(words))
        tried = []
        for word in random.sample(known, 10):
            tried.append(words[:place] + [word] + words[place + 1:])
        answers = predict(tried)
        best = min(range(len(tried)), key=lambda n: answers[n][item.label])
        words = tried[best]
        if max(answers[best]) != answers[best][item.label]:
            return words
    return None

ablate.attack(attack)
"#;

fn lab() -> Option<Lab> {
    if !std::path::Path::new("/usr/bin/python3").is_file() {
        println!("skipped: there is no /usr/bin/python3");
        return None;
    }
    let lab = Lab::new(PIPELINE);
    lab.write("attack.py", ATTACK);
    Some(lab)
}

fn number(row: &serde_json::Value, column: &str) -> i64 {
    row[column].as_i64().unwrap_or(-1)
}

fn list(row: &serde_json::Value, column: &str) -> Vec<i64> {
    let list = row[column].as_array().unwrap();
    list.iter().map(|n| n.as_i64().unwrap()).collect()
}

#[test]
fn an_attack_in_python_is_judged_counted_and_replayed() {
    let Some(lab) = lab() else { return };
    lab.run().ran(["reviews", "tokens", "bayes", "attacked"]);
    let rows = lab.rows("attacked.examples");
    assert_eq!(rows.len(), 40);
    let mut won = 0;
    for row in &rows {
        let right = row["predicted_before"] == row["label"];
        assert_eq!(row["attacked"].as_bool(), Some(right), "{row}");
        let flipped = right && row["predicted_after"] != row["label"];
        assert_eq!(row["success"].as_bool(), Some(flipped), "{row}");
        if right {
            let queries = number(row, "queries");
            assert!(matches!(queries, 10 | 20 | 30), "{row}");
            assert_eq!(number(row, "forward"), queries);
            assert_eq!(number(row, "rejected"), 0);
        }
        let (old, new) = (list(row, "original"), list(row, "adversarial"));
        let changed = old.iter().zip(&new).filter(|(a, b)| a != b).count();
        assert_eq!(number(row, "words_changed"), changed as i64, "{row}");
        assert!(changed <= 3 && old.len() == new.len());
        won += i64::from(flipped);
    }
    assert!(won > 3, "{won}");
    let replayed = lab.ablate(&["replay"]).good().stdout;
    assert!(replayed.contains(" 0 mismatches"), "{replayed}");
    let log = lab.ablate(&["show", "attacked", "--log"]).good().stdout;
    assert!(log.contains("early\nitem 1 "), "{log}");
    lab.run().ran([]);
    // The program remembers how many items it has seen, and is seeded for each: the log has all of it.
    let first = lab.digests();
    for threads in ["1", "2", "8"] {
        let store = format!("store-{threads}");
        lab.run_with(&["--store", &store, "--jobs", threads]);
        let other = lab.ablate(&["runs", "last", "--json", "--store", &store]);
        let other = crate::lab::digests_of(&other.good().stdout);
        assert_eq!(other["attacked.examples"], first["attacked.examples"]);
        let again = lab.ablate(&["show", "attacked", "--log", "--store", &store]);
        let items = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| line.starts_with("item "));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(items(&again.good().stdout), items(&log));
    }
    // Another file is another key.
    lab.write("attack.py", &format!("{ATTACK}# the end\n"));
    lab.run().ran(["attacked"]);
    assert_eq!(
        lab.digests()["attacked.examples"],
        first["attacked.examples"]
    );
    // How long it may take is not in the key.
    lab.edit("max_queries = 60", "max_queries = 60\ntimeout = 30");
    lab.run().ran([]);
    lab.ablate(&["fsck"]).good();
}

/// Every query beyond the budget is refused, and an attack that does not catch that has failed on the item.
#[test]
fn queries_are_limited_and_counted_here() {
    let Some(lab) = lab() else { return };
    lab.edit("max_queries = 60", "max_queries = 25");
    lab.write(
        "attack.py",
        &ATTACK.replace(
            "        answers = predict(tried)\n",
            "        assert item.queries_left % 10 == 5\n        answers = predict(tried)\n",
        ),
    );
    lab.run();
    let rows = lab.rows("attacked.examples");
    let tried = rows.iter().filter(|row| row["attacked"] == true);
    for row in tried {
        let queries = number(row, "queries");
        assert!(matches!(queries, 10 | 20), "{row}");
        if queries == 20 && row["success"] == false {
            assert_eq!(row["original"], row["adversarial"]);
        }
    }
    let says = "import ablate\n\
        def attack(item, predict):\n    \
            try:\n        predict([item.words] * 26)\n    \
            except ablate.OutOfQueries as error:\n        print('refused:', error)\n    \
            predict([item.text])\n    assert item.queries_left == 24\n    \
            return item.text\n\
        ablate.attack(attack)\n";
    lab.write("attack.py", says);
    lab.run();
    let log = lab.ablate(&["show", "attacked", "--log"]).good().stdout;
    assert!(
        log.contains("refused: max_queries is 25: `test/")
            && log.contains(" has used 0 of them, and 26 more were asked for")
            && log.contains(" items were refused queries beyond max_queries"),
        "{log}"
    );
    let rows = lab.rows("attacked.examples");
    let tried = rows.iter().filter(|row| row["attacked"] == true);
    for row in tried {
        assert_eq!(
            (number(row, "queries"), number(row, "words_changed")),
            (1, 0)
        );
    }
}

/// What breaks a budget or a constraint is rejected, and said.
#[test]
fn rows_that_break_the_rules_are_rejected() {
    let Some(lab) = lab() else { return };
    let always = |body: &str| {
        let text = format!(
            "import ablate\ndef attack(item, predict):\n    words = list(item.words)\n{body}\nablate.attack(attack)\n"
        );
        lab.write("attack.py", &text);
        lab.run();
        let rows = lab.rows("attacked.examples");
        let tried: Vec<_> = rows
            .into_iter()
            .filter(|row| row["attacked"] == true)
            .collect();
        let rejected = tried.iter().filter(|row| number(row, "rejected") == 1);
        let rejected = rejected.count();
        for row in tried.iter().filter(|row| number(row, "rejected") == 1) {
            assert_eq!(row["original"], row["adversarial"]);
            assert_eq!(row["success"], false);
        }
        let replayed = lab.ablate(&["replay"]).good().stdout;
        assert!(replayed.contains(" 0 mismatches"), "{replayed}");
        let log = lab.ablate(&["show", "attacked", "--log"]).good().stdout;
        (rejected, tried.len(), log)
    };
    let (rejected, all, log) = always("    return ['the'] * len(words)");
    assert!(rejected > 0, "{rejected} {all}");
    assert!(log.contains("words changed, and max_words is 3"), "{log}");
    let (rejected, all, log) = always("    return words[1:]");
    assert_eq!(rejected, all);
    assert!(log.contains("and insert_and_delete is false"), "{log}");
    let (rejected, all, log) = always("    return words[:-1] + ['[UNK]']");
    // Some texts end in a word that the vocabulary does not have.
    assert!(rejected > all / 2, "{rejected} {all}");
    assert!(
        log.contains("padding or the unknown token was put in"),
        "{log}"
    );
    lab.edit("max_words = 3", "max_words = 3\nkeep_stop_words = true");
    let (rejected, all, log) = always(
        "    words = ['film' if word == 'the' else word for word in words]\n    return words",
    );
    assert!(rejected > 0 && rejected <= all, "{rejected}");
    assert!(log.contains(": a stop word"), "{log}");
    lab.edit("keep_stop_words = true", "max_characters = 1");
    let (rejected, all, _) = always("    words[0] = 'generous'\n    return words");
    assert_eq!(rejected, all);
    lab.edit("max_characters = 1", "insert_and_delete = true");
    let (rejected, _, _) = always("    return words[1:]");
    assert_eq!(rejected, 0);
    let rows = lab.rows("attacked.examples");
    let tried = rows.iter().filter(|row| row["attacked"] == true);
    for row in tried {
        assert_eq!(row["operations"], serde_json::json!(["delete"]));
    }
    lab.edit(
        "insert_and_delete = true",
        "insert_and_delete = true\nkeep_stop_words = true",
    );
    let refused = lab.ablate(&["plan"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .stderr
            .contains("the constraints compare a word with the one in whose place it stands"),
        "{}",
        refused.stderr
    );
}

/// Each is a failed stage with its last words, and leaves a store in order.
#[test]
fn a_program_that_misbehaves_is_a_failed_stage_with_its_last_words() {
    let Some(lab) = lab() else { return };
    lab.run_with(&["bayes"]);
    let attack = |body: &str| {
        format!(
            "import os, sys, time\nimport ablate\ndef attack(item, predict):\n    {body}\nablate.attack(attack)\n"
        )
    };
    // Frames by hand: the module would not send these.
    let raw = |answer: &str| {
        format!(
            r#"
import json, struct, sys
def send(text):
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    sys.stdout.buffer.write(struct.pack("<IQ", len(text), 0) + text)
    sys.stdout.buffer.flush()
def receive():
    header, body = struct.unpack("<IQ", sys.stdin.buffer.read(12))
    return json.loads(sys.stdin.buffer.read(header))
send({{"ablate": "attack/1", "batch": 2}})
receive()
send({{"answer": "ready"}})
items = receive()["items"]
send({answer})
receive()
"#
        )
    };
    let cases = [
        (
            attack("print('I am done'); os._exit(7)"),
            "`/usr/bin/python3 attack.py` ended: exit code 7",
        ),
        (
            attack("print('I am done'); raise KeyError('no')"),
            "could not attack:",
        ),
        (
            attack("time.sleep(300)"),
            "did not answer within 0.7 s (`timeout`)",
        ),
        (
            attack("return [word + 'x' for word in item.words]"),
            "is not a word of the vocabulary",
        ),
        (
            attack("predict(['nosuchword'])"),
            "ValueError: `nosuchword` is not a word of the vocabulary",
        ),
        (
            attack("predict('one text')"),
            "TypeError: predict gets a list of texts: predict([text])",
        ),
        (
            attack("return [1, 2]"),
            "a row is a text or a list of words, and 1 is in it",
        ),
        (attack("return []"), "a row has at least one word"),
        (
            attack("sys.stderr.write('x' * (64 << 20)); os._exit(3)"),
            "ended: exit code 3",
        ),
        (
            "import ablate\n".to_owned(),
            "it must end with ablate.attack(…), which waits for items",
        ),
        (
            "import ablate\nablate.serve(predict=lambda texts: texts)\n".to_owned(),
            "greets as a model: call ablate.attack(…), not ablate.serve(…)",
        ),
        (
            raw("b'\\xff\\xfe{'"),
            "answered with something that is not a frame",
        ),
        (
            raw(r#"{"answer": "rows", "rows": [{"id": "x"}, {"id": "y"}]}"#),
            "answered with the row `x` where `test/",
        ),
        (
            raw(r#"{"answer": "rows", "rows": []}"#),
            "answered with 0 rows, and was given 2",
        ),
        (
            raw(r#"{"answer": "what?"}"#),
            "answered with neither rows nor a question",
        ),
    ];
    for (program, expected) in cases {
        lab.write("attack.py", &program);
        let limit = if expected.contains("0.7 s") {
            "timeout = 0.7"
        } else {
            "timeout = 60"
        };
        let text = PIPELINE.replace("max_words = 3", &format!("max_words = 3\n{limit}"));
        lab.write("pipeline.toml", &text);
        let failed = lab.ablate(&["run"]);
        assert_eq!(failed.code, 1, "{program}");
        assert!(
            failed.stderr.contains(expected),
            "{expected}\n{}",
            failed.stderr
        );
        if program.contains("I am done") {
            assert!(failed.stderr.contains("I am done"), "{}", failed.stderr);
        }
        // A flood is cut, and its end is kept.
        assert!(failed.stderr.len() < 100_000);
    }
    lab.write("attack.py", ATTACK);
    lab.run();
    lab.ablate(&["fsck"]).good();
}

/// A network, an SVM and a model in a program of its own are asked like naive Bayes is; also in batches, by ids.
#[test]
fn any_victim_can_be_asked() {
    let Some(lab) = lab() else { return };
    let more = r#"
[axes]
victim = ["lstm", "svm", "mine", "bayes"]

[stage.lstm]
kind = "train"
inputs = { rows = "tokens" }
model = "lstm"
units = 4
epochs = 1

[stage.svm]
kind = "train"
inputs = { rows = "tokens" }
model = "svm"

[stage.mine]
kind = "external-model"
inputs = { rows = "tokens" }
run = ["/usr/bin/python3", "model.py"]
files = ["model.py"]
classes = 2
"#;
    lab.write("pipeline.toml", &format!("{PIPELINE}{more}"));
    lab.edit("{ victim = \"bayes\" }", "{ victim = \"${victim}\" }");
    lab.edit("max_queries = 60", "max_queries = 60\nreads = \"tokens\"");
    let model = "import ablate\ndef predict(texts):\n    \
        p = [(1 + t.count('e')) / (2 + t.count('e') + t.count('a')) for t in texts]\n    \
        return [[1 - p, p] for p in p]\nablate.serve(predict=predict)\n";
    lab.write("model.py", model);
    let batches = "import ablate\n\
        def attack(items, predict):\n    \
            assert 1 <= len(items) <= 7\n    \
            tried = [[5] + list(item.tokens[1:]) for item in items]\n    \
            answers = predict(zip(items, tried))\n    \
            return [row if max(p) != p[item.label] else None for item, row, p in zip(items, tried, answers)]\n\
        ablate.attack(attack, batch=7)\n";
    lab.write("attack.py", batches);
    lab.run();
    for victim in ["lstm", "svm", "mine", "bayes"] {
        let rows = lab.rows(&format!("attacked[victim={victim}].examples"));
        let tried = rows.iter().filter(|row| row["attacked"] == true);
        let tried: Vec<_> = tried.collect();
        assert!(!tried.is_empty(), "{victim}");
        for row in tried {
            assert_eq!(number(row, "queries"), 1, "{victim}");
            let changed = number(row, "words_changed") == 1;
            assert_eq!(row["success"].as_bool(), Some(changed), "{victim} {row}");
        }
    }
    let replayed = lab.ablate(&["replay"]).good().stdout;
    assert!(!replayed.contains(" 1 mismatch"), "{replayed}");
}

#[test]
fn what_cannot_be_is_said_before_anything_runs() {
    let Some(lab) = lab() else { return };
    lab.edit("kind = \"attack\"", "kind = \"external-attack\"");
    let refused = lab.ablate(&["plan"]);
    assert!(
        refused
            .stderr
            .contains("kind = \"attack\", attack = \"external\""),
        "{}",
        refused.stderr
    );
    lab.edit("kind = \"external-attack\"", "kind = \"attack\"");
    lab.edit("run = [\"/usr/bin/python3\", \"attack.py\"]\n", "");
    let refused = lab.ablate(&["plan"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("no program to run"),
        "{}",
        refused.stderr
    );
    let retrain = PIPELINE.replace("kind = \"attack\"", "kind = \"adversarial-retrain\"");
    lab.write("pipeline.toml", &retrain);
    let refused = lab.ablate(&["plan"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .stderr
            .contains("a program that attacks is not trained against"),
        "{}",
        refused.stderr
    );
}

/// examples/own-attack, as it is but for the place of Python.
#[test]
fn the_example_runs_and_its_attack_beats_a_random_word() {
    let Some(lab) = lab() else { return };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/own-attack");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let pipeline = read("pipeline.toml");
    assert!(pipeline.contains("[\"python3\", \"attack.py\"]"));
    lab.write(
        "pipeline.toml",
        &pipeline.replace("[\"python3\",", "[\"/usr/bin/python3\","),
    );
    lab.write("attack.py", &read("attack.py"));
    lab.run();
    let success = |adversary: &str| {
        let rows = lab.rows(&format!(
            "attacked[victim=lstm,adversary={adversary}].examples"
        ));
        let won = rows.iter().filter(|row| row["success"] == true);
        won.count()
    };
    let (random, mine) = (success("random-word"), success("mine"));
    assert!(mine > random, "{mine} > {random}");
    let replayed = lab.ablate(&["replay"]).good().stdout;
    assert!(replayed.contains(" 0 mismatches"), "{replayed}");
}

/// Whoever reads the rate of success must know that rows were thrown away.
#[test]
fn rows_that_break_a_budget_are_noted_by_the_run() {
    let Some(lab) = lab() else { return };
    lab.write(
        "attack.py",
        "import ablate\nablate.attack(lambda item, predict: [\"film\"] * len(item.words))\n",
    );
    let notes = lab.run().events;
    let notes: Vec<&str> = notes
        .iter()
        .filter_map(|event| event["note"].as_str())
        .collect();
    let said = "attacked rows were rejected, because they broke the budget or a constraint, and stay as they were";
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("`attacked`: ") && note.contains(said)),
        "{notes:?}"
    );
}
