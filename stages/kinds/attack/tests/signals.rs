//! Claims about attacks on signals: limits to the last bit, causality as equality, the same row in any
//! company, true successes.

use arrow::array::AsArray;
use arrow::datatypes::{Float32Type, Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use ndarray::{ArrayView1, Axis};
use nn::batch::Sequence;
use nn::numeric::argmax;
use store::Value;

use crate::kinds::attack::attacks::ATTACKS;
use crate::kinds::attack::entry::Changes;
use crate::kinds::attack::{AttackStage, AttackStream};
use crate::kinds::train::Train;
use crate::models::loaded::Loaded;
use crate::tests::trial::completed;
use crate::tests::trial::{Nobody, Signal, on_threads, params, run, signals, stored, text, waves};
use crate::{Stage, Task};

/// Every attack on signals, with all that changes what it does.
pub fn every_attack() -> Vec<(&'static str, Vec<(&'static str, Value)>)> {
    let float = |name, x| (name, Value::Float(x));
    let mut all = vec![
        ("gradient-sign", vec![float("alpha", 0.15)]),
        (
            "gradient-sign",
            vec![float("alpha", 0.3), ("target", Value::Int(0))],
        ),
        ("gradient-sign", vec![float("threshold", 0.9)]),
        ("fixed-point", vec![float("alpha", 0.5)]),
        (
            "fixed-point",
            vec![
                float("alpha", 4.0),
                float("eps", 0.1),
                ("target", Value::Int(2)),
            ],
        ),
        (
            "fixed-point",
            vec![float("alpha", 0.5), ("v", text("error"))],
        ),
        (
            "dynamic",
            vec![float("alpha", 0.5), float("rho", 0.5), float("start", 0.2)],
        ),
        (
            "dynamic",
            vec![
                float("rho", 2.0),
                ("substeps", Value::Int(4)),
                ("v", text("error")),
            ],
        ),
        (
            "optimal-control",
            vec![("iterations", Value::Int(20)), float("penalty", 1e-3)],
        ),
    ];
    for entry in ATTACKS.iter().map(|attack| attack.entry()) {
        let listed = all.iter().any(|(name, _)| *name == entry.name);
        if entry.changes == Changes::Numbers && !listed {
            all.push((entry.name, Vec::new()));
        }
    }
    all
}

fn trained(model: &str) -> RecordBatch {
    let given = [
        ("model", text(model)),
        ("epochs", Value::Int(12)),
        ("learning_rate", Value::Float(0.02)),
        ("units", Value::Int(8)),
        ("hidden", Value::Int(6)),
        ("learned_state", Value::Bool(true)),
    ];
    run(&Train, &[("rows", &signals(&waves()))], &given, 3).unwrap()["weights"].clone()
}

fn attack(
    weights: &RecordBatch,
    rows: &[Signal],
    name: &str,
    more: &[(&str, Value)],
) -> RecordBatch {
    let mut given = vec![("attack", text(name))];
    given.extend(more.iter().cloned());
    let rows = signals(rows);
    let inputs = [("victim", weights), ("rows", &rows)];
    run(&AttackStage, &inputs, &given, 9).unwrap()["examples"].clone()
}

/// One row of `examples`.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    id: String,
    label: i64,
    said: [i64; 2],
    success: bool,
    attacked: bool,
    original: Vec<f32>,
    adversarial: Vec<f32>,
    after: Vec<f32>,
    queries: [i64; 2],
    linf: f64,
    mean_l2: f64,
}

fn rows(table: &RecordBatch) -> Vec<Row> {
    let whole = |name: &str, i| table[name].as_primitive::<Int64Type>().value(i);
    let float = |name: &str, i| table[name].as_primitive::<Float64Type>().value(i);
    let list = |name: &str, i| {
        let list = table[name].as_list::<i32>().value(i);
        list.as_primitive::<Float32Type>().values().to_vec()
    };
    let row = |i| Row {
        id: table["id"].as_string::<i32>().value(i).to_owned(),
        label: whole("label", i),
        said: [whole("predicted_before", i), whole("predicted_after", i)],
        success: table["success"].as_boolean().value(i),
        attacked: table["attacked"].as_boolean().value(i),
        original: list("original", i),
        adversarial: list("adversarial", i),
        after: list("p_after", i),
        queries: [whole("forward", i), whole("backward", i)],
        linf: float("linf", i),
        mean_l2: float("mean_l2", i),
    };
    (0..table.num_rows()).map(row).collect()
}

fn limit(name: &str, more: &[(&str, Value)]) -> Option<f64> {
    let given = |wanted: &str| {
        let found = more.iter().find(|(name, _)| *name == wanted);
        found.and_then(|(_, value)| match value {
            Value::Float(x) => Some(*x),
            _ => None,
        })
    };
    match name {
        "gradient-sign" => given("alpha").or(Some(0.15)),
        "optimal-control" => given("eps").or(Some(0.15)),
        _ => given("eps"),
    }
}

/// A wider limit does not let gradient-sign go further than its own size.
#[test]
fn a_wider_limit_is_no_larger_step() {
    let weights = trained("gru");
    let more = [("alpha", Value::Float(0.15)), ("eps", Value::Float(0.3))];
    for row in rows(&attack(&weights, &waves(), "gradient-sign", &more)) {
        assert!(row.linf <= 0.15, "{}", row.linf);
    }
}

/// With a gain at which its map is not a contraction, fixed-point takes a smaller one, and rows say at how many samples.
#[test]
fn rows_say_how_often_alpha_was_halved() {
    let weights = trained("gru");
    let halved = |name, alpha| {
        let table = attack(&weights, &waves(), name, &[("alpha", Value::Float(alpha))]);
        let column = stored(&table)["halved"].clone();
        let column = column.as_primitive::<Int64Type>();
        column.iter().collect::<Vec<Option<i64>>>()
    };
    assert_eq!(halved("fixed-point", 1e-3), vec![Some(0); 45]);
    let large = halved("fixed-point", 1e4);
    assert!(large.iter().all(|n| n.is_some_and(|n| n > 0)), "{large:?}");
    assert_eq!(halved("dynamic", 1e-3), vec![None; 45]);
}

/// Sizes are measured on what is stored, and no number moves further than it may by any bit. Every
/// answer is that of the stored weights, read afresh.
#[test]
fn rows_keep_their_limits_and_tell_the_truth() {
    for model in ["rnn", "gru", "lstm"] {
        let weights = trained(model);
        let loaded = Loaded::open(&stored(&weights), None).unwrap();
        let subject = loaded.subject().unwrap();
        for (name, more) in every_attack() {
            let examples = rows(&stored(&attack(&weights, &waves(), name, &more)));
            assert_eq!(examples.len(), 45);
            let mut moved = 0;
            for row in examples {
                let pairs = row.original.iter().zip(&row.adversarial);
                let change: Vec<f64> = pairs.map(|(x, y)| f64::from(*y) - f64::from(*x)).collect();
                let linf = change.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
                assert_eq!(row.linf, linf, "{model} {name}");
                let steps = change.chunks(2).map(|d| d[0].hypot(d[1]));
                let mean = steps.sum::<f64>() / (change.len() / 2) as f64;
                assert!((row.mean_l2 - mean).abs() < 1e-12, "{model} {name}");
                if let Some(limit) = limit(name, &more) {
                    assert!(linf <= limit, "{model} {name}: {linf} > {limit}");
                }
                let data = row.adversarial.clone();
                let read = Sequence::of_rows(2, data);
                let p = subject.victim().probabilities(&[&read]).unwrap();
                let p = p[0].as_slice().unwrap();
                assert_eq!(p, row.after, "{model} {name}");
                assert_eq!(argmax(p) as i64, row.said[1]);
                let target = more.iter().find(|(name, _)| *name == "target");
                let won = match target.and_then(|(_, class)| class.as_int()) {
                    Some(class) => row.said[1] == class && row.label != class,
                    None => row.said[1] != row.label,
                };
                assert_eq!(row.success, won && row.said[0] == row.label, "{name}");
                moved += usize::from(linf > 0.0);
            }
            assert!(moved > 20, "{model} {name}: {moved} rows were moved");
        }
    }
}

#[test]
fn a_row_is_the_same_alone_in_any_order_and_on_any_number_of_threads() {
    let weights = trained("gru");
    let test: Vec<Signal> = waves().into_iter().filter(|row| row.1 == "test").collect();
    let turned: Vec<Signal> = test.iter().rev().cloned().collect();
    for (name, more) in every_attack() {
        let all = on_threads(2, || attack(&weights, &test, name, &more));
        for threads in [1, 8] {
            let again = on_threads(threads, || attack(&weights, &test, name, &more));
            let same = store::encode(&again).unwrap() == store::encode(&all).unwrap();
            assert!(same, "{name} on {threads} threads");
        }
        let all = rows(&all);
        let mut again = rows(&attack(&weights, &turned, name, &more));
        again.reverse();
        assert_eq!(again, all, "{name}");
        for place in [0, 7, test.len() - 1] {
            let alone = rows(&attack(&weights, &test[place..=place], name, &more));
            assert_eq!(alone, [all[place].clone()], "{name}");
        }
    }
}

/// What is done to the first samples does not depend on the later ones, to the last bit; only
/// optimal control sees the future.
#[test]
fn nothing_that_arrives_later_changes_what_was_done() {
    for model in ["rnn", "gru", "lstm"] {
        let weights = trained(model);
        let test: Vec<Signal> = waves().into_iter().filter(|row| row.1 == "test").collect();
        let known = 5 * 2;
        let mut altered = test.clone();
        for row in &mut altered {
            row.3[known..].iter_mut().for_each(|x| *x = 0.7 - *x);
            row.3.extend([0.1, -0.4]);
        }
        for (name, more) in every_attack() {
            let before = rows(&attack(&weights, &test, name, &more));
            let after = rows(&attack(&weights, &altered, name, &more));
            let start = |rows: &[Row]| -> Vec<Vec<f32>> {
                let rows = rows.iter();
                rows.map(|row| row.adversarial[..known].to_vec()).collect()
            };
            let same = start(&before) == start(&after);
            assert_eq!(same, name != "optimal-control", "{model} {name}");
        }
    }
}

/// Whatever gradient-sign turns within a bound, optimal control turns too: it begins there, among other places.
#[test]
fn who_sees_the_future_does_not_lose() {
    let mut more_than_greedy = 0;
    for model in ["rnn", "gru", "lstm"] {
        let weights = trained(model);
        for eps in [0.05, 0.1, 0.2] {
            let eps = |name: &'static str| (name, Value::Float(eps));
            let greedy = rows(&attack(
                &weights,
                &waves(),
                "gradient-sign",
                &[eps("alpha")],
            ));
            let plan = [
                eps("eps"),
                ("penalty", Value::Float(1e-3)),
                ("iterations", Value::Int(20)),
            ];
            let optimal = rows(&attack(&weights, &waves(), "optimal-control", &plan));
            for (greedy, optimal) in greedy.iter().zip(&optimal) {
                assert!(optimal.success || !greedy.success, "{model} {}", greedy.id);
                more_than_greedy += usize::from(optimal.success && !greedy.success);
            }
        }
    }
    assert!(more_than_greedy > 0, "it sees the future and gains nothing");
}

/// Three classes: to leave one's own is another goal than to reach a certain one.
#[test]
fn targeted_and_untargeted_attacks_want_different_things() {
    let weights = trained("gru");
    let alpha = ("alpha", Value::Float(0.3));
    let plain = rows(&attack(
        &weights,
        &waves(),
        "gradient-sign",
        std::slice::from_ref(&alpha),
    ));
    let mut gained = 0;
    for class in 0..3 {
        let given = [alpha.clone(), ("target", Value::Int(class))];
        let aimed = rows(&attack(&weights, &waves(), "gradient-sign", &given));
        let reached = |rows: &[Row]| {
            let there = |row: &&Row| row.said[1] == class && row.label != class;
            rows.iter().filter(there).count()
        };
        // A class that every untargeted signal ends in anyway cannot be reached more often.
        assert!(reached(&aimed) >= reached(&plain), "class {class}");
        gained += reached(&aimed) - reached(&plain);
        let differ = aimed.iter().zip(&plain);
        let differ = differ.filter(|(a, b)| a.attacked && a.adversarial != b.adversarial);
        assert!(differ.count() > 0, "class {class}");
        for row in aimed.iter().filter(|row| row.label == class) {
            assert!(!row.attacked && !row.success && row.linf == 0.0);
            assert_eq!(row.queries, [0, 0]);
        }
    }
    assert!(gained > 0, "who aims at a class gets there more often");
    // With two classes there is one wrong one: both goals are the same then.
    let two: Vec<Signal> = waves().into_iter().filter(|row| row.2 < 2).collect();
    let given = [
        ("model", text("gru")),
        ("epochs", Value::Int(4)),
        ("units", Value::Int(4)),
    ];
    let rows_of_two = signals(&two);
    let outputs = run(&Train, &[("rows", &rows_of_two)], &given, 3).unwrap();
    let of = |rows: &[Row], class: i64| -> Vec<Vec<f32>> {
        let rows = rows.iter().filter(|row| row.label == class);
        rows.map(|row| row.adversarial.clone()).collect()
    };
    let plain = rows(&attack(&outputs["weights"], &two, "gradient-sign", &[]));
    let aimed = [("target", Value::Int(1))];
    let aimed = rows(&attack(&outputs["weights"], &two, "gradient-sign", &aimed));
    assert_eq!(of(&plain, 0), of(&aimed, 0));
}

/// A step costs what the paper's table says: one Jacobian product for gradient-sign, one mean over
/// the perturbation for dynamic, several for fixed-point.
#[test]
fn the_bill_is_that_of_the_paper() {
    let weights = trained("gru");
    let points = ("points", Value::Int(3));
    let bill = |name: &str, more: &[(&str, Value)]| {
        let rows = rows(&attack(&weights, &waves(), name, more));
        let a_step = |row: &Row| {
            let steps = (row.original.len() / 2) as f64;
            row.queries.map(|n| n as f64 / steps)
        };
        rows.iter().map(a_step).collect::<Vec<_>>()
    };
    // The head, the Jacobian and the step itself.
    assert!(bill("gradient-sign", &[]).iter().all(|b| *b == [3.0, 2.0]));
    let dynamic = bill("dynamic", std::slice::from_ref(&points));
    assert!(dynamic.iter().all(|b| *b == [5.0, 4.0]));
    let solved = bill("fixed-point", &[points]);
    assert!(solved.iter().all(|b| b[0] > 5.0 && b[1] > 4.0));
}

#[test]
fn repeats_are_drawn_anew_and_traces_end_where_the_model_does() {
    let weights = trained("gru");
    let rows = signals(&waves());
    let inputs = [("victim", &weights), ("rows", &rows)];
    let given = [
        ("attack", text("dynamic")),
        ("start", Value::Float(0.5)),
        ("label", Value::Int(1)),
        ("among", text("correct")),
        ("items", Value::Int(2)),
        ("repeats", Value::Int(3)),
        ("traces", Value::Int(4)),
    ];
    let made = run(&AttackStage, &inputs, &given, 9).unwrap();
    let examples = self::rows(&made["examples"]);
    let ids: Vec<&str> = examples.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids.len(), 6);
    assert!(ids[0].ends_with("#0") && ids[2].ends_with("#2"));
    assert_eq!(examples[0].original, examples[1].original);
    assert_ne!(examples[0].adversarial, examples[1].adversarial);
    assert!(
        examples
            .iter()
            .all(|row| row.label == 1 && row.said[0] == 1)
    );
    let traces = &made["traces"];
    let text = |name: &str, i| traces[name].as_string::<i32>().value(i).to_owned();
    let value = |i| traces["value"].as_primitive::<Float64Type>().value(i);
    let step = |i| traces["step"].as_primitive::<Int64Type>().value(i);
    let mut ends = 0;
    for row in &examples[..4] {
        let last = (row.original.len() / 2) as i64;
        let of = |series: &str, at: i64| -> Vec<f64> {
            let here = |i: &usize| {
                text("id", *i) == row.id
                    && text("run", *i) == "attacked"
                    && text("series", *i) == series
                    && step(*i) == at
            };
            (0..traces.num_rows()).filter(here).map(value).collect()
        };
        let after: Vec<f64> = row.after.iter().map(|p| f64::from(*p)).collect();
        assert_eq!(of("p", last), after);
        assert_eq!(of("x", 1)[0], f64::from(row.adversarial[0]));
        assert!(of("x", 0).is_empty());
        assert_eq!(of("state", 0).len(), 8);
        for at in 1..=last {
            let (error, bound) = (of("error", at)[0], of("bound", at)[0]);
            assert!(error <= bound * (1.0 + 1e-3) + 1e-6, "{error} {bound}");
        }
        ends += 1;
    }
    assert_eq!(ends, 4);
    assert!((0..traces.num_rows()).all(|i| text("id", i) != examples[4].id));
}

/// Rows of the class that is to be reached are left alone: they can be neither won nor lost. Signals have
/// no words. A replay counts the same way.
#[test]
fn a_rate_is_over_the_rows_that_were_attacked() {
    let weights = trained("gru");
    let rows = signals(&waves());
    let inputs = [("victim", &weights), ("rows", &rows)];
    for (target, more) in [
        (Some(0), "gradient-sign"),
        (None, "gradient-sign"),
        (None, "none"),
    ] {
        let mut given = vec![("attack", text(more)), ("split", text("test"))];
        given.extend(target.map(|class| ("target", Value::Int(class))));
        let made = run(&AttackStage, &inputs, &given, 9).unwrap();
        let all = self::rows(&made["examples"]);
        let right = |row: &&Row| row.said[0] == row.label;
        let tried = all.iter().filter(right).filter(|row| row.attacked).count();
        let won = all.iter().filter(|row| row.success).count();
        let summary = &made["summary"];
        let float = |name: &str| {
            let column = summary[name].as_primitive::<Float64Type>();
            column.iter().next().flatten()
        };
        let rate = (tried > 0).then(|| won as f64 / tried as f64);
        assert_eq!(float("success_rate"), rate);
        assert_eq!((float("median_words"), float("mean_words")), (None, None));
        let right = all.iter().filter(right).count();
        assert_eq!(tried < right, target.is_some() || more == "none");
        let params = completed(&AttackStage, &given);
        let task = Task {
            inputs: inputs.map(|(n, t)| (n.to_owned(), t.clone())).into(),
            params: &params,
            seed: 9,
            files: Default::default(),
            data: &crate::DataHome::nowhere(),
            place: &crate::Place::default(),
            watch: &Nobody,
        };
        let replayed = AttackStage.replay(&task, &made, true).unwrap().unwrap();
        assert_eq!(replayed.disagreements, []);
    }
}

/// The measure and Example 1's slack of a vanilla network are those of its Jacobians and weights.
#[test]
fn traces_of_a_vanilla_network_have_what_theory_asks() {
    let given = [
        ("model", text("rnn")),
        ("epochs", Value::Int(1)),
        ("units", Value::Int(4)),
    ];
    let rows = signals(&waves());
    let weights = run(&Train, &[("rows", &rows)], &given, 3).unwrap()["weights"].clone();
    let inputs = [("victim", &weights), ("rows", &rows)];
    let given = [("attack", text("none")), ("traces", Value::Int(2))];
    let made = run(&AttackStage, &inputs, &given, 9).unwrap();
    let traces = &made["traces"];
    let loaded = Loaded::open(&weights, None).unwrap();
    let (model, params) = loaded.network().unwrap();
    let mut stepper = nn::stepping::Stepper::new(model, params).unwrap();
    let first = &self::rows(&made["examples"])[0];
    let mut state = stepper.start();
    let of = |series: &str, step: usize| -> Vec<f64> {
        let here = |i: &usize| {
            traces["id"].as_string::<i32>().value(*i) == first.id
                && traces["series"].as_string::<i32>().value(*i) == series
                && traces["step"].as_primitive::<Int64Type>().value(*i) == step as i64
        };
        let values = traces["value"].as_primitive::<Float64Type>();
        (0..traces.num_rows())
            .filter(here)
            .map(|i| values.value(i))
            .collect()
    };
    for (k, x) in first.original.chunks(2).enumerate() {
        let measure = nn::stepping::contraction(&mut stepper, state.view(), x.into()).unwrap();
        let slack = nn::stepping::example_1(model, params, x.into()).unwrap();
        let least = slack.into_iter().fold(f64::INFINITY, f64::min);
        assert_eq!(of("measure", k + 1), [measure]);
        assert_eq!(of("slack", k + 1), [least]);
        let (state_row, x) = (state.view().insert_axis(Axis(0)), ArrayView1::from(x));
        let next = stepper.step(state_row, x.insert_axis(Axis(0)));
        state = next.unwrap().row(0).to_owned();
    }
    assert!(of("measure", 0).is_empty());
}

/// The streaming form gives the bits of the stage.
#[test]
fn a_sequence_that_arrives_is_perturbed_as_in_the_table() {
    for (name, more) in every_attack() {
        let random = more.iter().any(|(name, _)| *name == "start");
        if random || name == "optimal-control" {
            continue;
        }
        let weights = trained("lstm");
        let mut given = vec![("attack", text(name))];
        given.extend(more.clone());
        let live = AttackStream::open(&weights, completed(&AttackStage, &given)).unwrap();
        let examples = rows(&attack(&weights, &waves(), name, &more));
        for row in examples.iter().filter(|row| row.attacked).take(5) {
            let mut run = live.start(Some(row.label as u32)).unwrap();
            let mut said = Vec::new();
            for sample in row.original.chunks(run.width()) {
                said.extend(run.push(sample).unwrap());
            }
            assert_eq!(said, row.adversarial, "{name}");
            assert_eq!(run.probabilities().unwrap(), row.after, "{name}");
        }
    }
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let weights = trained("gru");
    let rows = signals(&waves());
    let fail = |given: &[(&str, Value)]| {
        let inputs = [("victim", &weights), ("rows", &rows)];
        let failure = run(&AttackStage, &inputs, given, 1).unwrap_err();
        format!("{} ({})", failure.message, failure.help.unwrap_or_default())
    };
    assert_eq!(
        fail(&[("attack", text("gradient-sign")), ("target", Value::Int(3))]),
        "the target class is 3, but the model has 3 classes (`target` is at most 2)"
    );
    assert_eq!(
        fail(&[("attack", text("none")), ("label", Value::Int(7))]),
        "the split `test` has no row of class 7: there is nothing to attack (sample from other rows: see `split`, `label` and `among`)"
    );
    let check = |given: &[(&str, Value)]| {
        let error = crate::complete(&AttackStage, &params(given)).unwrap_err();
        format!("{} ({})", error.message, error.help.unwrap_or_default())
    };
    assert_eq!(
        check(&[("attack", text("dynamic")), ("rho", Value::Float(1.5))]),
        "`rho` is 1.5, and a step would go past the fixed point (it must be at most 1, or take more `substeps`)"
    );
    assert_eq!(
        check(&[("attack", text("fixed-point")), ("points", Value::Int(17))]),
        "`points` is 17 (it must be at most 16)"
    );
    assert_eq!(
        check(&[("attack", text("fixed-point")), ("v", text("e"))]),
        "`v` cannot be `e` (expected one of: gradient, error)"
    );
    assert_eq!(
        check(&[
            ("attack", text("gradient-sign")),
            ("rho", Value::Float(1.0))
        ]),
        "`rho` does not apply to attack = \"gradient-sign\" (remove it: it is a parameter of dynamic)"
    );
    let jsma = AttackStream::open(
        &weights,
        completed(&AttackStage, &[("attack", text("jsma"))]),
    );
    assert_eq!(
        jsma.err().unwrap().message,
        "the attack `jsma` does not perturb samples as they arrive"
    );
    let live = AttackStream::open(
        &weights,
        completed(&AttackStage, &[("attack", text("dynamic"))]),
    )
    .unwrap();
    assert_eq!(
        live.start(None).err().unwrap().message,
        "there is no goal: neither a label nor a target class is given"
    );
}
