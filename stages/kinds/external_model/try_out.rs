//! What a model must do before anything is attacked: answer alike whenever it is asked and whatever else is in a request,
//! and have gradients that point where its answers go.

use nn::batch::{Example, Sequence, Target};
use nn::linear::Vectors;
use nn::numeric::argmax;
use nn::objectives::Objective;
use nn::victim::Victim;

use crate::contract::notice::NOTICE;
use crate::models::failure;
use crate::models::loaded::{accuracy, probabilities};
use crate::tables::sequences::{Form, SequenceTable};
use crate::{Failure, Watch};

/// Rows that are asked about one by one, and those whose gradients are compared.
const ROWS: usize = 8;

/// Words that are replaced in each of them.
const WORDS: usize = 8;

/// Words that are looked at for each, to find one nearby: a gradient promises little of what is far away.
const NEARBY: usize = 64;

/// How far an answer may hang on the rest of a request: libraries round by it. Replay allows as much.
const ROUNDING: f32 = 1e-4;

/// Gradients that agree less with answers than this point the wrong way.
const OPPOSITE: f64 = -0.2;

/// Those that agree less than this say little: random ones reach it once in forty times.
const WEAK: f64 = 0.25;

/// Rows, evenly spread, whose labels are compared with answers.
const LABELLED: usize = 128;

/// Refuses rows whose labels are classes that the model does not have.
pub fn classes(rows: &SequenceTable, classes: usize) -> Result<(), Failure> {
    let label = |example: &Example| match example.target {
        Target::Class(label) => Some(label as usize),
        _ => None,
    };
    let mut labels = rows.ids.iter().zip(rows.examples.iter().map(label));
    match labels.find_map(|(id, label)| Some((id, label.filter(|label| *label >= classes)?))) {
        Some((id, label)) => Err(Failure::new(format!(
            "the row {id} has the label {label}, and `classes` is {classes}"
        ))
        .help("classes are numbered from 0, in the order of the dataset's output `labels`: say how many the model predicts, or leave rows out")
        .at("classes")),
        None => Ok(()),
    }
}

/// Says so if a model is right less often than by guessing: most likely its classes are in another order than the labels.
pub fn labels(
    victim: &dyn Victim,
    rows: &SequenceTable,
    classes: usize,
    watch: &dyn Watch,
) -> Result<(), Failure> {
    let count = rows.ids.len().min(LABELLED);
    let places: Vec<usize> = (0..count).map(|n| n * rows.ids.len() / count).collect();
    let Ok(examples) = rows.examples(&places) else {
        return Ok(());
    };
    let texts: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
    let mut found = vec![(0_usize, 0_usize); classes];
    for (example, p) in examples.iter().zip(probabilities(victim, &texts)?) {
        if let Target::Class(label) = example.target {
            let (right, all) = &mut found[label as usize];
            *right += usize::from(argmax(&p) == label as usize);
            *all += 1;
        }
    }
    if let Some((right, all)) = below_chance(&found) {
        watch.log(&format!(
            "{NOTICE}the model is right on {right} of {all} rows, less often than by guessing: are its classes in the order of the dataset's output `labels`?"
        ));
    }
    Ok(())
}

/// How many of how many rows are right, if that is less than guessing reaches: in the mean over classes, so that a model
/// with one answer for all is as good as guessing.
fn below_chance(found: &[(usize, usize)]) -> Option<(usize, usize)> {
    let seen: Vec<&(usize, usize)> = found.iter().filter(|(_, all)| *all > 0).collect();
    let all: usize = seen.iter().map(|(_, all)| all).sum();
    let right: usize = seen.iter().map(|(right, _)| right).sum();
    let shares = seen.iter().map(|(right, all)| *right as f64 / *all as f64);
    let mean = shares.sum::<f64>() / seen.len().max(1) as f64;
    let chance = 1.0 / seen.len().max(1) as f64;
    let error = (chance * (1.0 - chance) / all.max(1) as f64).sqrt();
    (seen.len() > 1 && mean < chance - 4.0 * error).then_some((right, all))
}

/// Refuses vectors of other words than the vocabulary's: attacks look for words among them.
pub fn vectors(vectors: &Vectors, rows: &SequenceTable) -> Result<(), Failure> {
    let count = vectors.data.len() / vectors.dim.max(1);
    match &rows.form {
        Form::Tokens { vocabulary, .. } if *vocabulary != count => Err(Failure::new(format!(
            "the model has vectors of {count} words, and the vocabulary of its rows has {vocabulary}"
        ))
        .help("`vectors` has one for each word of the vocabulary, in the order of their ids: leave out those that stand for none, as in vectors=model.embedding.weight[:N]")
        .at("gradients")),
        _ => Ok(()),
    }
}

/// Asks about the first rows twice, then about some of them alone: the same row must have the same answer.
pub fn answers(
    victim: &dyn Victim,
    rows: &SequenceTable,
    batch: usize,
    watch: &dyn Watch,
) -> Result<(), Failure> {
    let Some(examples) = first(rows, batch) else {
        return Ok(());
    };
    let texts: Vec<&Sequence> = examples.iter().map(|e| &e.input).collect();
    let together = probabilities(victim, &texts)?;
    let again = probabilities(victim, &texts)?;
    if let Some(n) = (0..together.len()).find(|n| together[*n] != again[*n]) {
        return Err(Failure::new(format!(
            "the model answers {:?} for the row {}, and {:?} when it is asked again",
            together[n], rows.ids[n], again[n]
        ))
        .help("switch dropout and other randomness off (PyTorch: model.eval()), or seed it for each request"));
    }
    for (n, text) in texts.iter().enumerate().take(ROWS) {
        let alone = probabilities(victim, &[text])?.remove(0);
        let apart = together[n].iter().zip(&alone).map(|(a, b)| (a - b).abs());
        if apart.fold(0.0, f32::max) > ROUNDING {
            return Err(Failure::new(format!(
                "the model answers {:?} for the row {} among {} rows, and {alone:?} when it is asked about that row alone",
                together[n],
                rows.ids[n],
                texts.len()
            ))
            .help("an answer must not depend on what else is in a request: leave padding out of it, and use stored statistics for normalisation (PyTorch: model.eval())"));
        }
    }
    let share = accuracy(victim, &examples)?;
    let (count, first) = (examples.len(), &rows.ids[0]);
    watch.log(&format!(
        "accuracy on the first {count} rows, from {first} on: {share:.3}"
    ));
    Ok(())
}

/// Replaces words of the first rows by others nearby, and compares what the gradient promises with what the model answers.
pub fn gradients(
    victim: &dyn Victim,
    rows: &SequenceTable,
    vectors: &Vectors,
    classes: usize,
    watch: &dyn Watch,
) -> Result<(), Failure> {
    let Some(examples) = first(rows, ROWS) else {
        return Ok(());
    };
    let mut found = Promises::default();
    for (n, example) in examples.iter().enumerate() {
        let Sequence::Tokens(tokens) = &example.input else {
            continue;
        };
        // Classes take turns, so that one that the model is sure of does not hide the others.
        let class = n % classes;
        let objective = Objective::Logit(class);
        let gradient = victim.gradients_each(&[example], &[&objective]);
        let gradient = gradient.map_err(failure)?.remove(0);
        let changed = replaced(tokens, vectors);
        let texts: Vec<Sequence> = changed
            .iter()
            .map(|(place, word)| {
                let mut tokens = tokens.clone();
                tokens[*place] = *word;
                Sequence::Tokens(tokens)
            })
            .collect();
        let asked: Vec<&Sequence> = texts.iter().collect();
        let before = f64::from(gradient.logits[[0, class]]);
        let answers = probabilities(victim, &asked)?;
        for ((place, word), answer) in changed.iter().zip(answers) {
            let (old, new) = (vector(vectors, tokens[*place]), vector(vectors, *word));
            let slope = gradient.input.row(*place);
            let promised = slope.iter().zip(old.iter().zip(new));
            let promised: f64 = promised.map(|(g, (a, b))| f64::from(g * (b - a))).sum();
            let after = f64::from(answer[class].max(f32::MIN_POSITIVE)).ln();
            found.add(promised, after - before);
        }
    }
    found.judge(watch)
}

/// What gradients promised, beside what models answered.
#[derive(Default)]
struct Promises {
    count: usize,
    together: f64,
    promised: f64,
    found: f64,
}

impl Promises {
    fn add(&mut self, promised: f64, found: f64) {
        self.count += 1;
        self.together += promised * found;
        self.promised += promised * promised;
        self.found += found * found;
    }

    fn judge(&self, watch: &dyn Watch) -> Result<(), Failure> {
        let replaced = format!("{} words replaced in the first rows", self.count);
        // A model that never changes its mind says nothing of its gradient.
        if self.found < 1e-12 {
            return Ok(());
        }
        if self.promised == 0.0 {
            return Err(Failure::new(format!(
                "the gradient is zero everywhere, and yet the model's answers change ({replaced})"
            ))
            .help("PyTorch: embed the tokens, call requires_grad_() on their vectors, and leave torch.no_grad() out"));
        }
        let cosine = self.together / (self.promised * self.found).sqrt();
        if self.count >= ROWS && cosine < OPPOSITE {
            return Err(Failure::new(format!(
                "the gradient points the wrong way: where it promises a higher probability, the model answers a lower one ({replaced}, cosine {cosine:.2})"
            ))
            .help("return the gradient of the logarithm of the probability of the class that is asked for, not of the loss, which has the opposite sign"));
        }
        watch.log(&format!(
            "what gradients promise and what the model answers: cosine {cosine:.2} ({replaced})"
        ));
        if cosine < WEAK {
            watch.log(&format!(
                "{NOTICE}the gradient says little of what the model answers ({replaced}, cosine {cosine:.2}; 1 would be all): attacks that follow it may be no better than chance, and then the model only looks robust"
            ));
        }
        Ok(())
    }
}

/// The first rows, if they are texts that it can be asked about.
fn first(rows: &SequenceTable, most: usize) -> Option<Vec<Example>> {
    let places: Vec<usize> = (0..rows.ids.len().min(most)).collect();
    let examples = rows.examples(&places).ok()?;
    (!examples.is_empty()).then_some(examples)
}

/// Places of a text, evenly spread, each with a word whose vector is near that of the word there.
fn replaced(tokens: &[u32], vectors: &Vectors) -> Vec<(usize, u32)> {
    let words = vectors.data.len() / vectors.dim.max(1);
    let most = WORDS.min(tokens.len());
    let places = (0..most).map(|n| n * tokens.len() / most);
    let found = places.filter_map(|place| {
        let own = tokens[place];
        let far = |word: &u32| -> f64 {
            let pairs = vector(vectors, own).iter().zip(vector(vectors, *word));
            pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum()
        };
        let candidates = (0..NEARBY.min(words)).map(|n| (n * words / NEARBY.min(words)) as u32);
        let others = candidates.filter(|word| far(word) > 0.0);
        let nearest = others.min_by(|a, b| far(a).total_cmp(&far(b)))?;
        Some((place, nearest))
    });
    found.collect()
}

fn vector(vectors: &Vectors, word: u32) -> &[f32] {
    let from = word as usize * vectors.dim;
    vectors.data.get(from..from + vectors.dim).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_in_another_order_are_below_chance_and_one_class_for_all_is_not() {
        assert_eq!(below_chance(&[(2, 60), (1, 40)]), Some((3, 100)));
        assert_eq!(below_chance(&[(60, 60), (0, 40)]), None);
        assert_eq!(below_chance(&[(0, 95), (5, 5)]), None);
        // Rows of one class, and few rows, say nothing.
        assert_eq!(below_chance(&[(0, 60), (0, 0)]), None);
        assert_eq!(below_chance(&[(1, 3), (1, 4)]), None);
        // Three classes that were turned by one.
        assert_eq!(below_chance(&[(1, 40), (2, 40), (0, 40)]), Some((3, 120)));
    }
}
