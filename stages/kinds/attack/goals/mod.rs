//! What an attack wants of the model's output: when it may stop, and what a search makes smaller on the way.

use nn::numeric::{argmax, softmax};
use nn::objectives::Objective;

use crate::Failure;

/// What is wanted.
#[derive(Clone, Debug, PartialEq)]
pub enum Aim {
    /// Any class but this one.
    Untargeted(u32),
    /// This class.
    Targeted(u32),
    /// This token somewhere in what the model generates.
    Keyword(u32),
    /// A value of this objective above a threshold.
    Above(Objective, f64),
}

/// What is wanted, and how sure the model must be of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    aim: Aim,
    /// The least probability of the class that is predicted then; 0 = any.
    confidence: f32,
}

/// The confidences at which the first text is recorded on the way to a higher one.
const MILESTONES: [f32; 6] = [0.0, 0.5, 0.6, 0.7, 0.8, 0.9];

/// What a model gives.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// Of a classifier, before the softmax.
    Logits(&'a [f32]),
    /// Of a classifier.
    Probabilities(&'a [f32]),
    /// Of a model that generates.
    Tokens(&'a [u32]),
    /// Of an objective.
    Value(f64),
}

impl Goal {
    /// Any class but this one.
    pub fn untargeted(label: u32) -> Goal {
        Goal::to(Aim::Untargeted(label))
    }

    /// Any class but this one, with at least this probability.
    pub fn confident(label: u32, confidence: f32) -> Goal {
        Goal {
            confidence,
            ..Goal::untargeted(label)
        }
    }

    /// This class.
    pub fn targeted(class: u32) -> Goal {
        Goal::to(Aim::Targeted(class))
    }

    /// This token somewhere in what the model generates.
    pub fn keyword(token: u32) -> Goal {
        Goal::to(Aim::Keyword(token))
    }

    /// A value of the objective above a threshold.
    pub fn above(objective: Objective, threshold: f64) -> Goal {
        Goal::to(Aim::Above(objective, threshold))
    }

    fn to(aim: Aim) -> Goal {
        Goal {
            aim,
            confidence: 0.0,
        }
    }

    /// The same with at least this probability of the class that is predicted then. Keywords and objectives have
    /// no such probability: for them it is refused.
    pub fn with_confidence(self, confidence: f32) -> Result<Goal, Failure> {
        match self.aim {
            Aim::Untargeted(_) | Aim::Targeted(_) => Ok(Goal { confidence, ..self }),
            Aim::Keyword(_) | Aim::Above(..) => Err(Failure::new(
                "a confidence is the probability of a class, and this goal is not a class",
            )
            .help("leave it out, or choose a targeted or untargeted goal")),
        }
    }

    /// The probability that the predicted class must have; 0 = any.
    pub fn confidence(&self) -> f32 {
        self.confidence
    }

    /// The same with each lower confidence that is recorded on the way, from none upwards.
    pub fn milestones(&self) -> Vec<Goal> {
        let lower = MILESTONES.into_iter().filter(|c| *c < self.confidence);
        let same = |confidence| Goal {
            aim: self.aim.clone(),
            confidence,
        };
        lower.map(same).collect()
    }

    /// The class to reach, if only one will do.
    pub fn target(&self) -> Option<u32> {
        match self.aim {
            Aim::Targeted(class) => Some(class),
            _ => None,
        }
    }

    /// Whether the answer is as wanted. An answer of another kind is not.
    pub fn reached(&self, answer: Answer<'_>) -> bool {
        match (&self.aim, answer) {
            (Aim::Untargeted(label), Answer::Logits(z) | Answer::Probabilities(z)) => {
                argmax(z) != *label as usize && self.sure(answer)
            }
            (Aim::Targeted(class), Answer::Logits(z) | Answer::Probabilities(z)) => {
                argmax(z) == *class as usize && self.sure(answer)
            }
            (Aim::Keyword(token), Answer::Tokens(tokens)) => tokens.contains(token),
            (Aim::Above(_, threshold), Answer::Value(value)) => value > *threshold,
            _ => false,
        }
    }

    fn sure(&self, answer: Answer<'_>) -> bool {
        if self.confidence <= 0.0 {
            return true;
        }
        let most = |p: &[f32]| p.get(argmax(p)).copied().unwrap_or_default();
        match answer {
            Answer::Probabilities(p) => most(p) >= self.confidence,
            Answer::Logits(z) => {
                let mut p = z.to_vec();
                softmax(&mut p);
                most(&p) >= self.confidence
            }
            Answer::Tokens(_) | Answer::Value(_) => false,
        }
    }

    /// What a search makes smaller: the logit of the class to leave, or the negative of what is to grow. Goals with
    /// the same objective can share a batch of gradients.
    pub fn objective(&self) -> Objective {
        let negative = |objective| Objective::Sum(vec![(-1.0, objective)]);
        match &self.aim {
            Aim::Untargeted(label) => Objective::Logit(*label as usize),
            Aim::Targeted(class) => negative(Objective::Logit(*class as usize)),
            Aim::Keyword(token) => negative(Objective::Logit(*token as usize)),
            Aim::Above(objective, _) => negative(objective.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: Answer<'_> = Answer::Logits(&[0.0, 2.0, 1.0]);
    const PROBABILITIES: Answer<'_> = Answer::Probabilities(&[0.1, 0.7, 0.2]);

    #[test]
    fn classes_are_left_or_reached() {
        for answer in [LOGITS, PROBABILITIES] {
            assert!(Goal::untargeted(0).reached(answer));
            assert!(!Goal::untargeted(1).reached(answer));
            assert!(Goal::targeted(1).reached(answer));
            assert!(!Goal::targeted(2).reached(answer));
        }
        assert_eq!(Goal::targeted(2).target(), Some(2));
        assert_eq!(Goal::untargeted(2).target(), None);
    }

    #[test]
    fn confidence_is_that_of_the_predicted_class() {
        // softmax([0, 2, 1]) = [0.090, 0.665, 0.245]
        for (answer, least, most) in [(LOGITS, 0.66, 0.67), (PROBABILITIES, 0.7, 0.71)] {
            let sure = |goal: Goal, confidence: f32| {
                goal.with_confidence(confidence).unwrap().reached(answer)
            };
            assert!(sure(Goal::untargeted(0), least));
            assert!(!sure(Goal::untargeted(0), most));
            assert!(!sure(Goal::untargeted(1), 0.01));
        }
    }

    #[test]
    fn lower_confidences_are_passed_on_the_way() {
        let passed = |confidence: f32| {
            let goal = Goal::untargeted(0).with_confidence(confidence).unwrap();
            let passed = goal.milestones().into_iter().map(|goal| goal.confidence());
            passed.collect::<Vec<f32>>()
        };
        assert!(passed(0.0).is_empty());
        assert_eq!(passed(0.65), [0.0, 0.5, 0.6]);
        assert_eq!(passed(0.9), [0.0, 0.5, 0.6, 0.7, 0.8]);
    }

    #[test]
    fn only_classes_have_a_confidence() {
        assert!(Goal::targeted(1).with_confidence(0.5).is_ok());
        for goal in [Goal::keyword(7), Goal::above(Objective::CrossEntropy, 1.5)] {
            let refused = goal.with_confidence(0.5).unwrap_err();
            assert_eq!(
                refused.message,
                "a confidence is the probability of a class, and this goal is not a class"
            );
        }
    }

    #[test]
    fn keywords_are_of_texts_and_thresholds_of_values() {
        let keyword = Goal::keyword(7);
        assert!(keyword.reached(Answer::Tokens(&[3, 7])));
        assert!(!keyword.reached(Answer::Tokens(&[3, 8])));
        assert!(!keyword.reached(LOGITS), "a class is not a word");
        let above = Goal::above(Objective::CrossEntropy, 1.5);
        assert!(above.reached(Answer::Value(1.6)));
        assert!(!above.reached(Answer::Value(1.5)));
    }

    #[test]
    fn what_is_to_grow_has_a_negative_objective() {
        assert_eq!(Goal::untargeted(1).objective(), Objective::Logit(1));
        let sum = Objective::Sum(vec![(-1.0, Objective::Logit(2))]);
        assert_eq!(Goal::targeted(2).objective(), sum);
    }
}
