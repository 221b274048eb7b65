//! Whether a kind gives the same bytes again. Decides no result: it says how two results are compared.

/// What a kind promises when it is executed again with the same key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Determinism {
    /// The same bytes on every machine and any number of threads.
    Exact,
    /// The same bytes on processors with the same instruction sets, on any number of threads;
    /// on others these columns may differ by rounding, and no other column may differ.
    Rounding(&'static [Within]),
    /// An outside program decides: nothing is promised.
    Outside,
}

/// How much the numbers of a column may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Within {
    /// The output, or `*` for all.
    pub output: &'static str,
    /// The column, or `*` for all that hold floats.
    pub column: &'static str,
    /// The largest difference, or this share of the larger number if that is more.
    pub tolerance: f64,
}

impl Determinism {
    /// As it is recorded.
    pub fn name(&self) -> &'static str {
        match self {
            Determinism::Exact => "bit-identical",
            Determinism::Rounding(_) => "within-tolerance",
            Determinism::Outside => "outside-program",
        }
    }

    /// How far a column of floats may be off on another instruction set. Zero: not at all.
    pub fn tolerance(&self, output: &str, column: &str) -> f64 {
        let Determinism::Rounding(list) = self else {
            return 0.0;
        };
        let matches = |pattern: &str, name: &str| pattern == "*" || pattern == name;
        let mut list = list.iter();
        let found = list.find(|w| matches(w.output, output) && matches(w.column, column));
        found.map_or(0.0, |within| within.tolerance)
    }
}

/// An entry of a kind's list.
pub const fn within(output: &'static str, column: &'static str, tolerance: f64) -> Within {
    Within {
        output,
        column,
        tolerance,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::STAGES;

    #[test]
    fn the_first_entry_that_matches_counts() {
        let list: &'static [Within] = const { &[within("w", "v", 0.5), within("*", "*", 0.1)] };
        let rounding = Determinism::Rounding(list);
        assert_eq!(rounding.tolerance("w", "v"), 0.5);
        assert_eq!(rounding.tolerance("w", "other"), 0.1);
        assert_eq!(Determinism::Exact.tolerance("w", "v"), 0.0);
    }

    /// A program of the user's promises nothing, and all else promises something.
    #[test]
    fn only_programs_of_the_user_depend_on_the_outside() {
        for stage in STAGES {
            let kind = stage.describe().kind;
            let promise = stage.determinism(&store::Params::new());
            let of_the_user = matches!(kind, "command" | "external-model");
            assert_eq!(promise == Determinism::Outside, of_the_user, "{kind}");
            if let Determinism::Rounding(list) = promise {
                assert!(list.iter().all(|w| w.tolerance > 0.0), "{kind}");
            }
        }
    }
}
