use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Int64Type};
use store::Value;

use super::*;
use crate::tests::trial;

#[test]
fn what_is_stored_is_the_model_that_was_counted() {
    let rows = trial::tokens(&trial::reviews());
    let inputs = [("rows", &rows)];
    let order = [("order", Value::Int(3))];
    let made = trial::run(&Ngrams, &inputs, &order, 0).unwrap();
    let (model, words) = ngrams::read(&trial::stored(&made["ngrams"])).unwrap();
    let labelled = SequenceTable::read(&rows).unwrap();
    assert_eq!(Some(words.as_str()), labelled.form.words());
    let train = labelled.split("train");
    let texts = train
        .iter()
        .map(|row| text(&labelled.examples[*row].input, 0));
    let texts: Vec<&[u32]> = texts.collect();
    let counted = KneserNey::fit(&texts, trial::vocabulary().len(), 0, 3, 1).unwrap();
    assert_eq!(model, counted);
}

#[test]
fn texts_that_were_not_counted_are_less_of_a_surprise_than_any_word_would_be() {
    let rows = trial::tokens(&trial::reviews());
    // Words of the trial are drawn one by one: longer contexts could only mislead.
    let order = [("order", Value::Int(1))];
    let made = trial::run(&Ngrams, &[("rows", &rows)], &order, 0).unwrap();
    let stats = &made["stats"];
    let splits: Vec<_> = stats["split"].as_string::<i32>().iter().flatten().collect();
    assert_eq!(splits, ["dev", "test", "train"]);
    let texts = stats["texts"].as_primitive::<Int64Type>();
    assert_eq!(texts.values(), &[40, 40, 160]);
    let perplexity = stats["perplexity"].as_primitive::<Float64Type>();
    let said: Vec<Option<f64>> = perplexity.iter().collect();
    let any = trial::vocabulary().len() as f64;
    assert!(said[0].unwrap() < any && said[1].unwrap() < any && said[2].is_none());
}

#[test]
fn padding_is_no_word() {
    let short = [("train", 0, vec![2, 3, 4]), ("train", 1, vec![5, 6])];
    let filled = [
        ("train", 0, vec![2, 3, 4, 0, 0]),
        ("train", 1, vec![5, 6, 0, 0, 0]),
    ];
    let made = |texts: &[trial::Text]| {
        let rows = trial::tokens(texts);
        trial::run(&Ngrams, &[("rows", &rows)], &[], 0).unwrap()["ngrams"].clone()
    };
    assert_eq!(made(&short), made(&filled));
}
