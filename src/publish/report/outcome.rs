//! How the attack on an example ended, in words. A changed prediction is not yet what an attack with a confidence or a
//! target class wanted.

use serde::{Serialize, Serializer};
use store::{Params, Value};

use crate::results::columns;

/// How it ended. In JSON its number in [`AttackOutcome::ALL`], because there are ten thousand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttackOutcome {
    /// A correct prediction became what was wanted.
    Succeeded,
    /// The prediction is wrong now, but not what was wanted.
    Changed,
    /// The prediction is still correct.
    Failed,
    /// The attack left it alone.
    NotAttacked,
    /// The prediction was wrong before.
    Misclassified,
}

impl AttackOutcome {
    /// All of them, in their order.
    pub const ALL: [AttackOutcome; 5] = [
        AttackOutcome::Succeeded,
        AttackOutcome::Changed,
        AttackOutcome::Failed,
        AttackOutcome::NotAttacked,
        AttackOutcome::Misclassified,
    ];

    /// From the true class and the predictions before and after, as far as they are known.
    pub fn of(
        [label, before, after]: [Option<i64>; 3],
        success: bool,
        attacked: bool,
    ) -> AttackOutcome {
        if success {
            AttackOutcome::Succeeded
        } else if before != label {
            AttackOutcome::Misclassified
        } else if after != label {
            AttackOutcome::Changed
        } else if attacked {
            AttackOutcome::Failed
        } else {
            AttackOutcome::NotAttacked
        }
    }

    /// In words, given the attack's parameters.
    pub fn text(self, params: &Params) -> String {
        match self {
            AttackOutcome::Succeeded => "attack succeeded".to_owned(),
            AttackOutcome::Changed => format!("prediction changed, but {}", missed(params)),
            AttackOutcome::Failed => "attack failed".to_owned(),
            AttackOutcome::NotAttacked => "not attacked".to_owned(),
            AttackOutcome::Misclassified => "misclassified before the attack".to_owned(),
        }
    }
}

/// What a changed prediction lacks.
fn missed(params: &Params) -> String {
    let confidence = match params.get("confidence") {
        Some(Value::Float(least)) if *least > 0.0 => Some(columns::short(*least)),
        _ => None,
    };
    match (confidence, params.contains_key("target")) {
        (Some(least), false) => format!("below the wanted confidence {least}"),
        (Some(least), true) => format!("not to the target class with confidence {least}"),
        (None, true) => "not to the target class".to_owned(),
        (None, false) => "not counted as a success".to_owned(),
    }
}

impl Serialize for AttackOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(classes: [i64; 3], success: bool, attacked: bool, params: &[(&str, Value)]) -> String {
        let params = params.iter().cloned();
        let params = params.map(|(name, value)| (name.to_owned(), value));
        let outcome = AttackOutcome::of(classes.map(Some), success, attacked);
        outcome.text(&params.collect())
    }

    #[test]
    fn a_changed_prediction_is_not_called_a_failed_attack() {
        let sure = ("confidence", Value::Float(0.9));
        let target = ("target", Value::Int(2));
        let changed = |params: &[(&str, Value)]| told([1, 1, 0], false, true, params);
        assert_eq!(
            changed(std::slice::from_ref(&sure)),
            "prediction changed, but below the wanted confidence 0.9"
        );
        assert_eq!(
            changed(std::slice::from_ref(&target)),
            "prediction changed, but not to the target class"
        );
        assert_eq!(
            changed(&[sure, target]),
            "prediction changed, but not to the target class with confidence 0.9"
        );
        // A table of somebody's own, or a confidence that is off.
        assert_eq!(
            changed(&[("confidence", Value::Float(0.0))]),
            "prediction changed, but not counted as a success"
        );
    }

    #[test]
    fn the_others_are_as_they_were_called() {
        assert_eq!(told([1, 1, 0], true, true, &[]), "attack succeeded");
        assert_eq!(told([1, 1, 1], false, true, &[]), "attack failed");
        assert_eq!(told([1, 1, 1], false, false, &[]), "not attacked");
        let wrong = told([1, 0, 0], false, true, &[]);
        assert_eq!(wrong, "misclassified before the attack");
    }

    #[test]
    fn the_number_of_an_outcome_is_its_place_in_the_list() {
        let numbers = AttackOutcome::ALL.map(|outcome| serde_json::to_value(outcome).unwrap());
        assert_eq!(serde_json::to_string(&numbers).unwrap(), "[0,1,2,3,4]");
    }
}
