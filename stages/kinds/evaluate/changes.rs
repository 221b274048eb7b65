//! What attacks do inside a model: how far the sentence's vector, every token's vector and the attention move, and
//! how much less likely the text becomes (Hsieh et al. 2019, section 7 and figures 1, 2 and 4).
//!
//! The model is asked afresh about both texts of each example that an attack changed. Knows no attack.

use arrow::array::{Array, StringArray};
use ndarray::{Array1, ArrayView1};
use nn::batch::{Example, Sequence, Target};
use nn::ngrams::KneserNey;
use nn::victim::{LayerAttention, LayerVectors, Victim};

use crate::models::failure as refused;
use crate::models::loaded::Loaded;
use crate::tables::changes::{self, ChangeRow};
use crate::tables::examples::{self, Examples};
use crate::tables::positions::{self, PositionRow};
use crate::tables::vocabulary::{self, SPECIAL};
use crate::tables::{ngrams, vectors};
use crate::{Failure, Outputs, Task};

/// Examples that the model is asked about at once.
const BATCH: usize = 64;

/// An example that an attack changed.
struct Changed<'a> {
    id: &'a str,
    success: bool,
    before: Vec<u32>,
    after: Vec<u32>,
}

/// `changes` and `positions`.
pub fn run(task: &Task<'_>) -> Result<Outputs, Failure> {
    let connected = task.inputs.get("vectors").map(vectors::read).transpose()?;
    let loaded = Loaded::open(&task.inputs["victim"], connected.as_ref())?;
    let words = vocabulary::words(&task.inputs["vocab"], "vocab")?;
    let listed = vocabulary::listed(&task.inputs["vocab"]);
    vocabulary::agreed("victim", loaded.card.words(), "vocab", listed.as_deref())?;
    let language = task.inputs.get("language").map(ngrams::read).transpose()?;
    let theirs = language.as_ref().map(|(_, words)| words.as_str());
    vocabulary::agreed("vocab", listed.as_deref(), "language", theirs)?;
    let changed = changed(&task.inputs["examples"], &words)?;
    let subject = loaded.subject()?;
    let measured = Measured {
        victim: subject.victim(),
        words: &words,
        language: language.as_ref().map(|(model, _)| model),
    };
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    for part in changed.chunks(BATCH) {
        measured.add(part, &mut rows, &mut places)?;
        task.watch.progress(rows.len() as u64, changed.len() as u64);
    }
    Ok(Outputs::from([
        ("changes".to_owned(), changes::write(&rows)),
        ("positions".to_owned(), positions::write(&places)),
    ]))
}

/// The rows of an attack that are not as they were. Words must have been replaced, and none inserted or deleted.
fn changed<'a>(
    table: &'a arrow::record_batch::RecordBatch,
    words: &StringArray,
) -> Result<Vec<Changed<'a>>, Failure> {
    let examples = Examples::read(table)?;
    let mut changed = Vec::new();
    for n in 0..examples.len() {
        let tokens = |column: &str| -> Option<Vec<u32>> {
            let ids = examples.ints(column, n)?;
            let known = |id: i32| {
                u32::try_from(id)
                    .ok()
                    .filter(|id| (*id as usize) < words.len())
            };
            ids.into_iter().map(known).collect()
        };
        let both = tokens(examples::ORIGINAL).zip(tokens(examples::ADVERSARIAL));
        let both = both.filter(|(before, after)| before.len() == after.len());
        let (before, after) = both.ok_or_else(|| {
            let id = examples.id(n);
            Failure::new(format!("the example {id} is not a text whose words were replaced"))
                .help("connect `examples` to an attack that replaces words, and `vocab` to that of its rows")
        })?;
        if before != after {
            changed.push(Changed {
                id: examples.id(n),
                success: examples.flag(examples::SUCCESS, n)?,
                before,
                after,
            });
        }
    }
    Ok(changed)
}

/// What examples are measured with.
struct Measured<'a> {
    victim: &'a dyn Victim,
    words: &'a StringArray,
    language: Option<&'a KneserNey>,
}

/// Both texts of an example, as the model sees them.
struct Seen {
    sentences: [Array1<f32>; 2],
    hidden: [Vec<LayerVectors>; 2],
    attention: [Vec<LayerAttention>; 2],
}

impl Measured<'_> {
    fn add<'e>(
        &self,
        part: &'e [Changed<'_>],
        rows: &mut Vec<ChangeRow<'e>>,
        places: &mut Vec<PositionRow<'e>>,
    ) -> Result<(), Failure> {
        for (example, seen) in part.iter().zip(self.look(part)?) {
            let received = |side: usize, layer: usize| {
                let layer = seen.attention[side].get(layer);
                layer.map(|layer| layer.received(false))
            };
            let [before, after] = &seen.sentences;
            let moved = after - before;
            rows.push(ChangeRow {
                id: example.id,
                success: example.success,
                sentence_l1: moved.iter().map(|d| f64::from(d.abs())).sum(),
                relative_change: norm(moved.view()) / norm(before.view()),
                cosine: dot(before.view(), after.view())
                    / (norm(before.view()) * norm(after.view())),
                attention_change: received(0, 0)
                    .zip(received(1, 0))
                    .map(|(before, after)| total_variation(&before, &after)),
                perplexity: self.language.map(|language| {
                    [&example.before, &example.after].map(|text| self.perplexity(language, text))
                }),
            });
            self.positions(example, &seen, places);
        }
        Ok(())
    }

    fn look(&self, part: &[Changed<'_>]) -> Result<Vec<Seen>, Failure> {
        let example = |tokens: &Vec<u32>| Example {
            input: Sequence::Tokens(tokens.clone()),
            target: Target::None,
        };
        let texts: Vec<Example> = part
            .iter()
            .flat_map(|changed| [example(&changed.before), example(&changed.after)])
            .collect();
        let inputs: Vec<&Sequence> = texts.iter().map(|text| &text.input).collect();
        let texts: Vec<&Example> = texts.iter().collect();
        let mut sentences = self.victim.sentences(&inputs).map_err(refused)?.into_iter();
        let mut hidden = self.victim.hidden(&texts).map_err(refused)?.into_iter();
        // A model without attention has none to compare.
        let attention = self.victim.attention(&texts).unwrap_or_default();
        let mut attention = attention.into_iter();
        let mut seen = Vec::with_capacity(part.len());
        for _ in part {
            let mut vectors = || hidden.next().unwrap_or_default();
            let hidden = [vectors(), vectors()];
            let mut weights = || attention.next().unwrap_or_default();
            let attention = [weights(), weights()];
            let (Some(before), Some(after)) = (sentences.next(), sentences.next()) else {
                return Err(Failure::new("the model has no vector for a text"));
            };
            seen.push(Seen {
                sentences: [before, after],
                hidden,
                attention,
            });
        }
        Ok(seen)
    }

    fn positions<'e>(
        &self,
        example: &'e Changed<'_>,
        seen: &Seen,
        places: &mut Vec<PositionRow<'e>>,
    ) {
        let layers = seen.hidden[0].len();
        // A transformer also shows what its first layer reads, which nothing attends to yet.
        let attended = seen.attention[0].len();
        let first = if attended > 0 && layers > attended {
            0
        } else {
            1
        };
        for (k, (before, after)) in seen.hidden[0].iter().zip(&seen.hidden[1]).enumerate() {
            let (layer, steps) = (k + first, before.vectors.nrows());
            let change = |place: usize| {
                let moved = &after.vectors.row(place) - &before.vectors.row(place);
                norm(moved.view())
            };
            let replaced = |place: usize| example.before[place] != example.after[place];
            let largest = (0..steps).filter(|place| replaced(*place)).map(change);
            let largest = largest.fold(0.0, f64::max);
            let received = |side: usize| {
                let layer = layer.checked_sub(1)?;
                Some(seen.attention[side].get(layer)?.received(false))
            };
            let attention = received(0).zip(received(1));
            for place in 0..steps {
                let change = change(place);
                let word = |tokens: &[u32]| self.words.value(tokens[place] as usize).to_owned();
                places.push(PositionRow {
                    id: example.id,
                    success: example.success,
                    layer,
                    position: place,
                    words: [word(&example.before), word(&example.after)],
                    changed: replaced(place),
                    change,
                    share: if largest > 0.0 { change / largest } else { 0.0 },
                    attention: attention.as_ref().map(|(b, a)| [b[place], a[place]]),
                });
            }
        }
    }

    /// The perplexity of the words of a text, special tokens left out.
    fn perplexity(&self, language: &KneserNey, tokens: &[u32]) -> f64 {
        let word = |id: &u32| !SPECIAL.contains(&self.words.value(*id as usize));
        let text: Vec<u32> = tokens.iter().copied().filter(word).collect();
        let at = |k: usize| language.probabilities(&text[..k], &text[k..=k])[0];
        let surprise: f64 = (0..text.len()).map(|k| -libm::log(at(k))).sum();
        libm::exp(surprise / text.len().max(1) as f64)
    }
}

fn norm(v: ArrayView1<'_, f32>) -> f64 {
    dot(v, v).sqrt()
}

fn dot(a: ArrayView1<'_, f32>, b: ArrayView1<'_, f32>) -> f64 {
    let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
    products.sum()
}

/// Half the sum of absolute differences.
fn total_variation(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}
