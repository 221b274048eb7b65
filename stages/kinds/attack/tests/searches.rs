//! Claims about searches, on a trained network: exactly what one finds who tries everything by hand.

use nn::batch::Sequence;
use nn::numeric::argmax;
use store::Params;

use super::trained;
use crate::kinds::attack::context::{AttackContext, Item};
use crate::kinds::attack::edit::Edit;
use crate::kinds::attack::goals::Goal;
use crate::kinds::attack::search::exhaustive::{first_success, replacements};
use crate::kinds::attack::search::select_replace::{Select, places, try_in_order};
use crate::kinds::attack::trace::Trace;
use crate::models::entry::Subject;
use crate::models::loaded::{Loaded, probabilities};
use crate::tables::examples::{FORWARD, QUERIES};
use crate::tables::sequences::SequenceTable;
use crate::tests::trial::{reviews, tokens};

const CANDIDATES: std::ops::Range<u32> = 2..40;

/// Calls `test` with every item that the model classifies correctly; gives what it says.
fn each(test: impl Fn(&AttackContext<'_>, &Item<'_>) -> Trace) -> Vec<Trace> {
    let loaded = Loaded::open(&trained("lstm"), None).unwrap();
    let subject = loaded.subject().unwrap();
    let rows = SequenceTable::read(&tokens(&reviews())).unwrap();
    let params = Params::new();
    let context = AttackContext {
        subject: &subject,
        params: &params,
        seed: 1,
        words: None,
        vectors: None,
        connected: None,
        lemmas: None,
        bayes: None,
        language: None,
        synonyms: None,
        candidates: None,
        known_words: None,
        special: rows.form.special().unwrap(),
        pad: 0,
        classes: 2,
        task: None,
    };
    let mut traces = Vec::new();
    for row in rows.split("test") {
        let input = &rows.examples[row].input;
        let item = Item {
            id: &rows.ids[row],
            input,
            label: rows.label(row).unwrap(),
            before: ask(&subject, input),
        };
        if item.right() {
            traces.push(test(&context, &item));
        }
    }
    traces
}

fn ask(subject: &Subject<'_>, row: &Sequence) -> Vec<f32> {
    probabilities(subject.victim(), &[row]).unwrap().remove(0)
}

/// The first of these replacements that changes the prediction, and how many were tried.
fn by_hand(context: &AttackContext<'_>, item: &Item<'_>, places: &[usize]) -> (Option<Edit>, u64) {
    let old = item.tokens().unwrap();
    let mut tried = 0;
    for place in places {
        for new in CANDIDATES.filter(|new| *new != old[*place]) {
            let mut text = old.to_vec();
            text[*place] = new;
            tried += 1;
            let after = ask(context.subject, &Sequence::Tokens(text));
            if argmax(&after) as u32 != item.label {
                return (Some(Edit::replace(*place, old[*place], new)), tried);
            }
        }
    }
    (None, tried)
}

#[test]
fn an_exhaustive_search_finds_the_first_edit_that_works() {
    let traces = each(|context, item| {
        let old = item.tokens().unwrap();
        let edits = replacements(old, 0..old.len(), |_| CANDIDATES.collect());
        let goal = Goal::untargeted(item.label);
        let trace = first_success(context, item, &goal, edits).unwrap();
        let places: Vec<usize> = (0..old.len()).collect();
        let (edit, tried) = by_hand(context, item, &places);
        assert_eq!(trace.edits.first().copied(), edit, "{}", item.id);
        assert_eq!(trace.counters.get(QUERIES).copied().unwrap_or(0), tried);
        assert!(trace.attacked && trace.edits.len() <= 1);
        assert!(trace.counters[FORWARD] >= tried);
        trace
    });
    let found = traces.iter().filter(|trace| !trace.edits.is_empty());
    let found = found.count();
    assert!(
        0 < found && found < traces.len(),
        "{found}: no example of either"
    );
}

#[test]
fn select_then_replace_changes_the_word_that_matters_most() {
    let traces = each(|context, item| {
        let goal = Goal::untargeted(item.label);
        let old = item.tokens().unwrap();
        let text = |place: &usize| !context.special.contains(&old[*place]);
        let words: Vec<usize> = (0..old.len()).filter(text).collect();
        let mut trace = Trace::untouched(item);
        let selected = places(context, item, Select::Importance, words, &mut trace).unwrap();
        let others = CANDIDATES.filter(|new| *new != old[selected[0]]);
        let others: Vec<u32> = others.collect();
        try_in_order(context, item, &goal, selected[0], &others, &mut trace).unwrap();
        let vectors = context.subject.victim().embed(&[item.input]).unwrap();
        let fall = |place: &usize| {
            let mut vectors = vectors[0].clone();
            vectors.row_mut(*place).fill(0.0);
            let after = ask(context.subject, &Sequence::Vectors(vectors));
            f64::from(item.before[item.label as usize]) - f64::from(after[item.label as usize])
        };
        let places: Vec<usize> = (0..old.len()).filter(text).collect();
        let falls: Vec<f64> = places.iter().map(fall).collect();
        let most = falls.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weakest = places[falls.iter().position(|fall| *fall == most).unwrap()];
        let (edit, tried) = by_hand(context, item, &[weakest]);
        assert_eq!(trace.edits.first().copied(), edit, "{}", item.id);
        assert_eq!(trace.counters[QUERIES], tried);
        trace
    });
    let found = traces.iter().any(|trace| !trace.edits.is_empty());
    assert!(found, "no attack succeeded: the places say nothing");
}
