//! Holm's adjustment: of many tests, the chance that any rejects wrongly stays below the level.
//! S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).

/// The adjusted p values, in the order given.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]).then(a.cmp(b)));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, at) in order.iter().enumerate() {
        largest = largest.max(p[*at] * (p.len() - rank) as f64).min(1.0);
        adjusted[*at] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_values() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        let found = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in found.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{found}");
        }
        assert!(holm(&[]).is_empty());
    }

    proptest! {
        /// By its definition: tests are rejected from the smallest p on, until one is not.
        #[test]
        fn it_rejects_what_the_procedure_rejects(p in prop::collection::vec(0.0_f64..1.0, 1..12), level in 0.001_f64..0.5) {
            let adjusted = holm(&p);
            let mut order: Vec<usize> = (0..p.len()).collect();
            order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
            let mut still = true;
            for (rank, at) in order.into_iter().enumerate() {
                still &= p[at] <= level / (p.len() - rank) as f64;
                // At the level itself the two ways round differently.
                if (adjusted[at] - level).abs() > 1e-12 {
                    prop_assert_eq!(adjusted[at] <= level, still);
                }
                prop_assert!(adjusted[at] >= p[at] && adjusted[at] <= 1.0);
            }
        }
    }
}
