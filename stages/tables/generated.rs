//! The table `generated` of a test generation: a row for each input that was tried.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Builder, Float64Array, Int32Builder, Int64Array,
    ListBuilder, StringArray,
};
use arrow::datatypes::{Float32Type, Float64Type, Int32Type, Int64Type, Metadata};
use arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};

use super::schema::table;
use super::weights::with_metadata;

table!("generated", "rnn-test", "A row for each input that was tried, in their order.", {
    ID = "id": "string", "The id of the row, or SPLIT/N for the N-th window of a text.";
    GENERATED = "generated": "bool", "Whether an adversarial input was found.";
    BY = "by": "string", "`gradient`, `random`, or `fall-back` for a random replacement after the gradient had changed nothing; null if none was found.";
    POSITION = "position": "int64", "The position that was changed; that of the attempt if none was.";
    TRIED = "tried": "int64", "How many positions were tried: more than 1 only with a fall-back.";
    OLD = "old": "string", "The token at that position.";
    NEW = "new": "string", "The token there now; null if none was found.";
    SCALE = "scale": "float64", "The factor of the gradient; null unless it is by the gradient.";
    L2 = "l2": "float64", "The L2 norm of the scaled gradient at that position.";
    POINT = "point": "list of float32", "Embedding plus scaled gradient: `new` has the embedding nearest to it.";
    TEXT_BEFORE = "text_before": "string", "The input as it was, in words, without special tokens.";
    TEXT_AFTER = "text_after": "string", "The input with the new token, likewise.";
    ORIGINAL = "original": "list of int32", "The input as it was.";
    ADVERSARIAL = "adversarial": "list of int32", "The input with the new token.";
    TARGET = "target": "list of int32", "What the model should predict.";
    STEPS = "steps": "int64", "How many tokens that are.";
    LOSS_BEFORE = "loss_before": "float64", "The cross-entropy of the target given the original, summed over its tokens.";
    LOSS_AFTER = "loss_after": "float64", "The same given the adversarial input.";
    FORWARD = "forward": "int64", "Forward passes through the model.";
    BACKWARD = "backward": "int64", "Backward passes through the model.";
    PREDICTED_BEFORE = "predicted_before": "list of int32", "What the model makes of the original.", only "sequence-to-sequence models";
    PREDICTED_AFTER = "predicted_after": "list of int32", "What it makes of the adversarial input.", only "sequence-to-sequence models";
    WER_LEV_BEFORE = "wer_lev_before": "float64", "Character edits between prediction and target, before.", only "sequence-to-sequence models";
    WER_LEV_AFTER = "wer_lev_after": "float64", "The same after.", only "sequence-to-sequence models";
    WER_BEFORE = "wer_before": "float64", "Word edits between prediction and target per word of the target, before.", only "sequence-to-sequence models";
    WER_AFTER = "wer_after": "float64", "The same after.", only "sequence-to-sequence models";
    BLEU_BEFORE = "bleu_before": "float64", "BLEU-4 of characters, not smoothed, before.", only "sequence-to-sequence models";
    BLEU_AFTER = "bleu_after": "float64", "The same after.", only "sequence-to-sequence models";
    LOST = "lost": "bool", "Whether a correction that the model had made is missing from its new prediction.", only "sequence-to-sequence models";
    REAPPEARED = "reappeared": "bool", "Whether a misspelt word that it had corrected is in its new prediction.", only "sequence-to-sequence models";
});

/// Who chose the new token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// The nearest embedding along the gradient.
    Gradient,
    /// Drawn at random.
    Random,
    /// Drawn at random after the gradient had changed nothing.
    FallBack,
}

impl By {
    /// As the table has it.
    pub fn name(self) -> &'static str {
        match self {
            By::Gradient => "gradient",
            By::Random => "random",
            By::FallBack => "fall-back",
        }
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneratedRow {
    /// What names the input.
    pub id: String,
    /// Who chose the new token, if there is one.
    pub by: Option<By>,
    /// Where.
    pub position: usize,
    /// How many positions were tried.
    pub tried: usize,
    /// The factor of the gradient.
    pub scale: Option<f64>,
    /// The length of the scaled gradient.
    pub l2: Option<f64>,
    /// What the new token is nearest to.
    pub point: Option<Vec<f32>>,
    /// The input as it was.
    pub original: Vec<u32>,
    /// The input as it is.
    pub adversarial: Vec<u32>,
    /// What should be predicted.
    pub target: Vec<u32>,
    /// The summed loss of both.
    pub loss: [f64; 2],
    /// Forward and backward passes.
    pub passes: [u64; 2],
    /// What a sequence-to-sequence model made of both.
    pub predictions: Option<[PredictionRow; 2]>,
    /// Whether a correction was lost, and whether a misspelt word is back.
    pub undone: [bool; 2],
}

/// What a sequence-to-sequence model makes of an input, beside the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictionRow {
    /// The tokens.
    pub tokens: Vec<u32>,
    /// Character edits.
    pub wer_lev: f64,
    /// Word edits per word.
    pub wer: f64,
    /// BLEU of characters.
    pub bleu: f64,
}

/// How tokens are written in words.
pub struct Words<'a> {
    /// One of them.
    pub name: &'a dyn Fn(u32) -> String,
    /// A text.
    pub text: &'a dyn Fn(&[u32]) -> String,
}

/// The rows as a table.
pub fn write(rows: &[GeneratedRow], words: &Words<'_>) -> RecordBatch {
    let name = words.name;
    let float = |get: &dyn Fn(&GeneratedRow) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from_iter(rows.iter().map(get)))
    };
    let int = |get: &dyn Fn(&GeneratedRow) -> u64| -> ArrayRef {
        let ints = rows.iter().map(|row| get(row) as i64);
        Arc::new(Int64Array::from_iter_values(ints))
    };
    let flag = |get: &dyn Fn(&GeneratedRow) -> bool| -> ArrayRef {
        Arc::new(BooleanArray::from_iter(
            rows.iter().map(|row| Some(get(row))),
        ))
    };
    let text = |get: &dyn Fn(&GeneratedRow) -> Option<String>| -> ArrayRef {
        Arc::new(StringArray::from_iter(rows.iter().map(get)))
    };
    let tokens = |get: &dyn Fn(&GeneratedRow) -> Vec<u32>| -> ArrayRef {
        let mut list = ListBuilder::new(Int32Builder::new());
        for row in rows {
            list.append_value(get(row).into_iter().map(|id| Some(id as i32)));
        }
        Arc::new(list.finish())
    };
    let new = |row: &GeneratedRow| row.by.map(|_| name(row.adversarial[row.position]));
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        (ID, text(&|row| Some(row.id.clone()))),
        (GENERATED, flag(&|row| row.by.is_some())),
        (BY, text(&|row| row.by.map(|by| by.name().to_owned()))),
        (POSITION, int(&|row| row.position as u64)),
        (TRIED, int(&|row| row.tried as u64)),
        (OLD, text(&|row| Some(name(row.original[row.position])))),
        (NEW, text(&new)),
        (SCALE, float(&|row| row.scale)),
        (L2, float(&|row| row.l2)),
        (POINT, points(rows)),
        (TEXT_BEFORE, text(&|row| Some((words.text)(&row.original)))),
        (
            TEXT_AFTER,
            text(&|row| Some((words.text)(&row.adversarial))),
        ),
        (ORIGINAL, tokens(&|row| row.original.clone())),
        (ADVERSARIAL, tokens(&|row| row.adversarial.clone())),
        (TARGET, tokens(&|row| row.target.clone())),
        (STEPS, int(&|row| row.target.len() as u64)),
        (LOSS_BEFORE, float(&|row| Some(row.loss[0]))),
        (LOSS_AFTER, float(&|row| Some(row.loss[1]))),
        (FORWARD, int(&|row| row.passes[0])),
        (BACKWARD, int(&|row| row.passes[1])),
    ];
    if rows.first().is_some_and(|row| row.predictions.is_some()) {
        let of = |row: &GeneratedRow, k: usize| row.predictions.as_ref().map(|p| p[k].clone());
        let made = |k| tokens(&|row| of(row, k).map(|p| p.tokens).unwrap_or_default());
        let number = |k, get: fn(&PredictionRow) -> f64| float(&|row| of(row, k).map(|p| get(&p)));
        columns.extend([
            (PREDICTED_BEFORE, made(0)),
            (PREDICTED_AFTER, made(1)),
            (WER_LEV_BEFORE, number(0, |p| p.wer_lev)),
            (WER_LEV_AFTER, number(1, |p| p.wer_lev)),
            (WER_BEFORE, number(0, |p| p.wer)),
            (WER_AFTER, number(1, |p| p.wer)),
            (BLEU_BEFORE, number(0, |p| p.bleu)),
            (BLEU_AFTER, number(1, |p| p.bleu)),
            (LOST, flag(&|row| row.undone[0])),
            (REAPPEARED, flag(&|row| row.undone[1])),
        ]);
    }
    with_metadata(columns, Metadata::default())
}

fn points(rows: &[GeneratedRow]) -> ArrayRef {
    let mut list = ListBuilder::new(Float32Builder::new());
    for row in rows {
        match &row.point {
            Some(point) => list.append_value(point.iter().copied().map(Some)),
            None => list.append_null(),
        }
    }
    Arc::new(list.finish())
}

/// The table as it is stored: every cell may be missing or of another type.
pub struct Generated<'a>(pub &'a RecordBatch);

impl Generated<'_> {
    fn column(&self, name: &str, n: usize) -> Option<&ArrayRef> {
        let column = self.0.column_by_name(name)?;
        (n < column.len() && column.is_valid(n)).then_some(column)
    }

    /// A text.
    pub fn text(&self, name: &str, n: usize) -> Option<String> {
        let texts = self.column(name, n)?.as_string_opt::<i32>()?;
        Some(texts.value(n).to_owned())
    }

    /// An integer.
    pub fn int(&self, name: &str, n: usize) -> Option<i64> {
        Some(
            self.column(name, n)?
                .as_primitive_opt::<Int64Type>()?
                .value(n),
        )
    }

    /// A float.
    pub fn float(&self, name: &str, n: usize) -> Option<f64> {
        let floats = self.column(name, n)?.as_primitive_opt::<Float64Type>()?;
        Some(floats.value(n))
    }

    /// A boolean.
    pub fn flag(&self, name: &str, n: usize) -> Option<bool> {
        Some(self.column(name, n)?.as_boolean_opt()?.value(n))
    }

    /// A list of tokens.
    pub fn tokens(&self, name: &str, n: usize) -> Option<Vec<u32>> {
        let list = self.column(name, n)?.as_list_opt::<i32>()?.value(n);
        let ids = list.as_primitive_opt::<Int32Type>()?;
        ids.values()
            .iter()
            .map(|id| u32::try_from(*id).ok())
            .collect()
    }

    /// A whole row, if all of it is there.
    pub fn row(&self, n: usize) -> Option<GeneratedRow> {
        let by = self.text(BY, n);
        let known = [By::Gradient, By::Random, By::FallBack];
        let by = known
            .into_iter()
            .find(|known| by.as_deref() == Some(known.name()));
        let passes = |name| Some(self.int(name, n)? as u64);
        Some(GeneratedRow {
            id: self.text(ID, n)?,
            by: by.filter(|_| self.flag(GENERATED, n) == Some(true)),
            position: self.int(POSITION, n)? as usize,
            tried: self.int(TRIED, n)? as usize,
            scale: self.float(SCALE, n),
            l2: self.float(L2, n),
            point: self.floats(POINT, n),
            original: self.tokens(ORIGINAL, n)?,
            adversarial: self.tokens(ADVERSARIAL, n)?,
            target: self.tokens(TARGET, n)?,
            loss: [self.float(LOSS_BEFORE, n)?, self.float(LOSS_AFTER, n)?],
            passes: [passes(FORWARD)?, passes(BACKWARD)?],
            predictions: self.predictions(n),
            undone: [LOST, REAPPEARED].map(|name| self.flag(name, n).unwrap_or_default()),
        })
    }

    fn predictions(&self, n: usize) -> Option<[PredictionRow; 2]> {
        let row = |tokens, wer_lev, wer, bleu| {
            Some(PredictionRow {
                tokens: self.tokens(tokens, n)?,
                wer_lev: self.float(wer_lev, n)?,
                wer: self.float(wer, n)?,
                bleu: self.float(bleu, n)?,
            })
        };
        Some([
            row(PREDICTED_BEFORE, WER_LEV_BEFORE, WER_BEFORE, BLEU_BEFORE)?,
            row(PREDICTED_AFTER, WER_LEV_AFTER, WER_AFTER, BLEU_AFTER)?,
        ])
    }

    /// A list of floats.
    pub fn floats(&self, name: &str, n: usize) -> Option<Vec<f32>> {
        let list = self.column(name, n)?.as_list_opt::<i32>()?.value(n);
        Some(list.as_primitive_opt::<Float32Type>()?.values().to_vec())
    }
}
