//! Claims about models in programs: they answer, and whatever else they do is a failure with their last words.

use std::time::{Duration, Instant};

use arrow::record_batch::RecordBatch;
use nn::batch::Sequence;
use store::Value;

use super::ExternalModel;
use crate::kinds::attack::AttackStage;
use crate::models::loaded::{Loaded, probabilities};
use crate::tests::trial::{Nobody, completed, reviews, run, stored, text, tokens, vocab};
use crate::{DataHome, Failure, Place, Task};

/// What every model of these tests begins with: frames, in Perl.
const FRAMES: &str = r#"
binmode STDIN; binmode STDOUT; $| = 1;
sub frame { print pack("VQ<", length $_[0], 0), $_[0] }
sub asked { read(STDIN, my $l, 12) == 12 or exit; read(STDIN, my $t, unpack("V", $l)); $t }
"#;

/// The class of a text is whether it has the word at place 5 of the vocabulary more often than that at place 6.
const COUNTS: &str = r#"
frame('{"ablate":"model/1","format":"json"}');
print STDERR "ready\n";
while (my $t = asked()) {
    $t =~ s/.*"items":\[//s;
    my @rows = map { my $a = () = /\b5\b/g; my $b = () = /\b6\b/g; my $p = 1 / (1 + exp($b - $a));
                     sprintf("[%.9f,%.9f]", 1 - $p, $p) } $t =~ /\[([\d,]*)\]/g;
    frame('{"probabilities":[' . join(",", @rows) . ']}');
}
"#;

fn given(script: &str, more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let run = ["perl", "-e", &format!("{FRAMES}{script}")].map(text);
    let mut all = vec![
        ("run", Value::List(run.to_vec())),
        ("classes", Value::Int(2)),
        ("reads", text("tokens")),
        ("batch", Value::Int(7)),
        ("timeout", Value::Float(20.0)),
    ];
    for (name, value) in more {
        all.retain(|(known, _)| known != name);
        all.push((name, value.clone()));
    }
    all
}

fn made(script: &str, more: &[(&'static str, Value)]) -> Result<RecordBatch, Failure> {
    let (rows, vocab) = (tokens(&reviews()), vocab());
    let inputs = [("rows", &rows), ("vocab", &vocab)];
    let made = run(&ExternalModel, &inputs, &given(script, more), 0);
    made.map(|outputs| stored(&outputs["weights"]))
}

/// Whether there is Perl to write models in.
fn perl() -> bool {
    let found = std::process::Command::new("perl").arg("-v").output();
    let found = found.is_ok_and(|said| said.status.success());
    if !found {
        println!("skipped: there is no perl");
    }
    found
}

#[test]
fn it_answers_as_its_program_does_in_batches_of_any_size() {
    if !perl() {
        return;
    }
    let ask = |batch: i64| {
        let weights = made(COUNTS, &[("batch", Value::Int(batch))]).unwrap();
        let params = completed(&ExternalModel, &given(COUNTS, &[]));
        let task = Task {
            inputs: Default::default(),
            params: &params,
            seed: 0,
            files: Default::default(),
            data: &DataHome::nowhere(),
            place: &Place::default(),
            watch: &Nobody,
        };
        let loaded = Loaded::open(&weights, None).unwrap();
        assert!(loaded.subject().is_err(), "it has not been started");
        let loaded = loaded.started(&task).unwrap();
        let items = [vec![5, 5, 9], vec![6], vec![], vec![5, 6], vec![15, 56]];
        let items = items.map(Sequence::Tokens);
        let items: Vec<&Sequence> = items.iter().collect();
        let subject = loaded.subject().unwrap();
        let said = probabilities(subject.victim(), &items).unwrap();
        assert_eq!(subject.victim().queries().forwards, 5);
        said
    };
    let said = ask(2);
    let expected = [2.0f64, -1.0, 0.0, 0.0, 0.0].map(|z| 1.0 / (1.0 + (-z).exp()));
    for (row, expected) in said.iter().zip(expected) {
        assert!((f64::from(row[1]) - expected).abs() < 1e-6, "{row:?}");
    }
    assert_eq!(said, ask(64));
}

#[test]
fn attacks_that_only_ask_attack_it_and_those_with_gradients_are_refused() {
    if !perl() {
        return;
    }
    let weights = made(COUNTS, &[]).unwrap();
    let (rows, vocab) = (tokens(&reviews()), vocab());
    let inputs = [("victim", &weights), ("rows", &rows), ("vocab", &vocab)];
    let attacked = |name: &str, more: &[(&str, Value)]| {
        let given = [&[("attack", text(name)), ("split", text("train"))], more].concat();
        run(&AttackStage, &inputs, &given, 3)
    };
    let clean = attacked("none", &[]).unwrap();
    assert!(clean["examples"].num_rows() > 10);
    let random = [
        ("place", text("random")),
        ("max_candidates", Value::Int(20)),
    ];
    let replaced = attacked("replace-word", &random).unwrap();
    assert_eq!(
        replaced["examples"].num_rows(),
        clean["examples"].num_rows()
    );
    assert_eq!(
        replaced,
        attacked("replace-word", &random).unwrap(),
        "twice the same"
    );
    let refused = attacked("jsma", &[("max_words", Value::Int(2))]).unwrap_err();
    assert!(refused.message.contains("jsma"), "{}", refused.message);
}

/// The log odds of class 1 are the sum of the first numbers of its tokens' vectors.
const LINEAR: &str = r#"
frame('{"ablate":"model/1","format":"json","gradients":true}');
my @v = map { [$_ < 12 ? -0.5 : $_ < 22 ? 0.5 : 0.001 * $_, 0.01 * $_] } 0 .. 49;
sub p { my $z = 0; $z += $v[$_][0] for @_; 1 / (1 + exp(-$z)) }
while (my $t = asked()) {
    if ($t =~ /"vectors"/) { frame('{"vectors":[' . join(",", map { "[$$_[0],$$_[1]]" } @v) . ']}'); next }
    my @classes = $t =~ /"classes":\[([\d,]*)\]/ ? split(/,/, $1) : ();
    $t =~ s/.*"items":\[//s;
    my @items = map { [split /,/] } $t =~ /\[([\d,]*)\]/g;
    my @rows = map { my $p = p(@$_); sprintf("[%.9f,%.9f]", 1 - $p, $p) } @items;
    my @gradients;
    for my $n (0 .. $#classes) {
        my $p = p(@{$items[$n]});
        my $g = $classes[$n] ? 1 - $p : -$p;
        push @gradients, "[" . join(",", map { "[$g,0.0]" } @{$items[$n]}) . "]";
    }
    frame('{"probabilities":[' . join(",", @rows) . '],"gradients":[' . join(",", @gradients) . ']}');
}
"#;

#[test]
fn attacks_follow_the_gradients_that_it_answers() {
    if !perl() {
        return;
    }
    let weights = made(LINEAR, &[("gradients", Value::Bool(true))]).unwrap();
    let (rows, vocab) = (tokens(&reviews()), vocab());
    let inputs = [("victim", &weights), ("rows", &rows), ("vocab", &vocab)];
    let given = [
        ("attack", text("jsma")),
        ("max_words", Value::Int(4)),
        ("among", text("correct")),
    ];
    let attacked = run(&AttackStage, &inputs, &given, 3).unwrap();
    let examples = &attacked["examples"];
    let column = |name: &str| examples.column_by_name(name).unwrap().clone();
    let success = column("success");
    let success = arrow::array::AsArray::as_boolean(&success);
    let (rate, rows) = (success.true_count(), success.len());
    // Each word that speaks for a class can be replaced by one that speaks for the other.
    assert!(rate * 2 > rows, "{rate} of {rows}");
    let backward = column("backward");
    let backward = arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(&backward);
    assert!(backward.values().iter().sum::<i64>() as usize >= rows);
    assert_eq!(attacked, run(&AttackStage, &inputs, &given, 3).unwrap());
    let refused = made(COUNTS, &[("gradients", Value::Bool(true))]).unwrap_err();
    assert!(
        refused.message.contains("does not answer gradients"),
        "{}",
        refused.message
    );
}

#[test]
fn a_program_that_misbehaves_is_a_failure_with_its_last_words() {
    if !perl() {
        return;
    }
    let hello = "frame('{\"ablate\":\"model/1\",\"format\":\"json\"}');";
    let cases = [
        (
            "print STDERR \"no weights\\n\"; exit 3;".to_owned(),
            "ended: exit code 3\nits output:\n  no weights",
        ),
        (
            "print \"Loading, please wait a while\\n\"; sleep 60;".to_owned(),
            "printed \"Loading, please wait a while\" to standard output, which is for answers",
        ),
        (
            "frame('{\"ablate\":\"model/9\",\"format\":\"json\"}'); sleep 60;".to_owned(),
            "speaks the protocol model/9, and this version of ablate model/1\nit printed nothing",
        ),
        (
            format!("{hello} asked(); print STDERR \"bye\\n\"; kill 9, $$;"),
            "ended: killed by signal 9\nits output:\n  bye",
        ),
        (
            format!("{hello} asked(); frame('{{\"probabilities\":[[0.5,0.5]]}}'); sleep 60;"),
            "answered with 1 row, and was asked about 7 items\nit printed nothing",
        ),
        (
            format!("{hello} asked(); frame('{{\"probabilities\":[[NaN,0.5]]}}'); sleep 60;"),
            "answered with a header that is not JSON, which has no NaN: expected value at line 1 column 20\nit printed nothing",
        ),
        (
            format!("{hello} asked(); frame('{{\"error\":\"no such word\"}}'); sleep 60;"),
            "could not answer:\nno such word\nit printed nothing",
        ),
    ];
    for (script, expected) in cases {
        let failed = made(&script, &[]).unwrap_err();
        assert!(failed.message.ends_with(expected), "{}", failed.message);
    }
}

#[test]
fn a_program_that_hangs_is_stopped_after_its_timeout() {
    if !perl() {
        return;
    }
    let began = Instant::now();
    let failed = made("sleep 300;", &[("timeout", Value::Float(0.5))]).unwrap_err();
    assert!(
        failed
            .message
            .contains("did not answer within 0.5 s (`timeout`)"),
        "{}",
        failed.message
    );
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "its end is not waited for"
    );
}

#[test]
fn a_model_that_answers_differently_when_asked_again_is_refused() {
    if !perl() {
        return;
    }
    let moody = r#"
frame('{"ablate":"model/1","format":"json"}');
my $n = 0;
while (my $t = asked()) {
    $t =~ s/.*"items":\[//s;
    $n += 0.001;
    my @rows = map { sprintf("[%.6f,%.6f]", 0.5 - $n, 0.5 + $n) } $t =~ /\[([\d,]*)\]/g;
    frame('{"probabilities":[' . join(",", @rows) . ']}');
}
"#;
    let failed = made(moody, &[]).unwrap_err();
    assert!(
        failed.message.contains("when it is asked again"),
        "{}",
        failed.message
    );
    assert!(failed.help.unwrap().contains("model.eval()"));
}
