//! From what a claim says of the results, and of the results as they might have been, to a verdict. Knows no tables.

use statrs::distribution::{ContinuousCDF, Normal};

use super::evidence::{Evidence, Share};
use super::{Claim, Verdict};
use crate::results::statistics::share_at_least;

/// The share of draws, in percent, in which a claim must hold to be reproduced, or fail not to be.
const SURE: usize = 95;

/// The verdict. `plain` is what the query says of the results themselves.
pub fn grade(claim: &Claim, plain: &Verdict, evidence: &Evidence) -> Verdict {
    let holds = match plain {
        Verdict::Reproduced => true,
        Verdict::NotReproduced => false,
        other => return other.clone(),
    };
    if let Some(why) = too_little(claim, evidence) {
        return Verdict::Uncertain(why);
    }
    let share = toward(evidence.draws, holds);
    if evidence.draws.of == 0 || share_at_least(share.holds, share.of, SURE) {
        return plain.clone();
    }
    Verdict::Uncertain(would_decide(evidence, holds))
}

/// Draws that say the same as the results. One in which the query says neither says nothing for either verdict.
fn toward(share: Share, holds: bool) -> Share {
    match holds {
        true => share,
        false => Share {
            holds: share.of - share.holds - share.undefined,
            ..share
        },
    }
}

/// Why a claim cannot be more than uncertain, whatever the draws say.
fn too_little(claim: &Claim, evidence: &Evidence) -> Option<String> {
    if let Some(why) = &evidence.failure {
        return Some(format!("its draws could not be computed: {why}"));
    }
    if let Some(table) = &evidence.unknown {
        return Some(format!(
            "`{table}` depends on the seed and is not read through an evaluate stage: draws cannot vary its seeds"
        ));
    }
    let executions = evidence.executions?;
    match (executions, claim.seeds) {
        (have, Some(need)) if have < need => Some(format!(
            "judged on {have} of {need} executions: add seeds to the axis `seed`"
        )),
        (1, _) => Some(
            "one execution, and another seed may give something else: add seeds to the axis `seed`"
                .to_owned(),
        ),
        _ => None,
    }
}

/// What would decide an uncertain claim: more seeds or more items, and about how many.
///
/// The share of draws that agree with the results is taken for that of a normal number: its margin in standard
/// deviations is z = quantile(share), of items alone and of seeds alone likewise. Variances add, and shrink with the
/// number of items and of seeds.
fn would_decide(evidence: &Evidence, holds: bool) -> String {
    let sure = quantile(SURE as f64 / 100.0);
    let margin = margin(toward(evidence.draws, holds));
    if margin < 0.1 {
        return too_close();
    }
    // In units of the margin, which no draw changes.
    let deviation = |share: Option<Share>| match share {
        Some(share) => 1.0 / margin_of(share, holds).max(0.1),
        None => 0.0,
    };
    let (items, seeds) = (deviation(evidence.items), deviation(evidence.seeds));
    let most = 1.0 / (sure * sure);
    let (larger, smaller, other) = match seeds >= items {
        true => (seeds, items, "items"),
        false => (items, seeds, "seeds"),
    };
    let left = most - smaller * smaller;
    let factor = match left > 0.1 * most {
        true => larger * larger / left,
        false => larger * larger / (0.5 * most),
    };
    let both = match left > 0.1 * most {
        true => String::new(),
        false => format!(", with more {other} too"),
    };
    match (seeds >= items, evidence.executions) {
        _ if factor > MANY => too_close(),
        (true, Some(k)) => {
            let need = (k as f64 * factor).ceil().max(k as f64 + 1.0);
            format!("seeds vary more than items: about {need} seeds would decide it{both}")
        }
        (true, None) => format!("more seeds would decide it{both}"),
        (false, _) => {
            let factor = factor.max(1.1);
            format!(
                "items vary more than seeds: about {factor:.1} times as many items would decide it{both}"
            )
        }
    }
}

/// More times as many seeds or items nobody would ask for.
const MANY: f64 = 30.0;

fn too_close() -> String {
    format!(
        "so close to its boundary that more than {MANY} times as many seeds or items would be needed"
    )
}

fn margin_of(share: Share, holds: bool) -> f64 {
    margin(toward(share, holds))
}

/// How many standard deviations lie between the results and the boundary, if this many draws stay on their side.
fn margin(share: Share) -> f64 {
    let of = share.of.max(1) as f64;
    quantile((share.holds as f64 / of).clamp(0.5 / of, 1.0 - 0.5 / of))
}

fn quantile(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}

#[cfg(test)]
mod tests {
    use super::super::{Level, test_claim};
    use super::*;

    fn share(holds: usize) -> Share {
        Share {
            holds,
            undefined: 0,
            of: 1000,
        }
    }

    fn evidence(both: usize, items: usize, seeds: usize) -> Evidence {
        Evidence {
            draws: share(both),
            items: Some(share(items)),
            seeds: Some(share(seeds)),
            executions: Some(3),
            ..Evidence::default()
        }
    }

    /// Without draws there is no saying how sure a verdict is.
    #[test]
    fn a_claim_whose_draws_failed_is_uncertain() {
        let failed = Evidence {
            failure: Some("no column `p_after`".to_owned()),
            ..Evidence::default()
        };
        for plain in [Verdict::Reproduced, Verdict::NotReproduced] {
            let why = "its draws could not be computed: no column `p_after`".to_owned();
            assert_eq!(graded(plain, &failed), Verdict::Uncertain(why));
        }
    }

    fn graded(plain: Verdict, evidence: &Evidence) -> Verdict {
        grade(&test_claim(Level::Must), &plain, evidence)
    }

    #[test]
    fn a_verdict_needs_its_draws() {
        let (yes, no) = (|| Verdict::Reproduced, || Verdict::NotReproduced);
        assert_eq!(graded(yes(), &evidence(950, 990, 960)), yes());
        assert_eq!(graded(no(), &evidence(50, 10, 40)), no());
        let name = |plain, both| graded(plain, &evidence(both, 990, 960)).name();
        assert_eq!(name(yes(), 949), "uncertain");
        assert_eq!(name(no(), 51), "uncertain");
        assert_eq!(name(yes(), 20), "uncertain");
        let reported = Verdict::Reported;
        assert_eq!(graded(reported, &evidence(0, 0, 0)), Verdict::Reported);
        assert_eq!(graded(yes(), &Evidence::default()), yes(), "nothing varies");
    }

    /// Draws in which the query says neither count for no verdict.
    #[test]
    fn undefined_draws_decide_nothing() {
        let mut undefined = evidence(40, 0, 0);
        undefined.draws.undefined = 20;
        assert_eq!(
            graded(Verdict::NotReproduced, &undefined).name(),
            "uncertain"
        );
        undefined.draws.undefined = 10;
        assert_eq!(
            graded(Verdict::NotReproduced, &undefined),
            Verdict::NotReproduced
        );
    }

    #[test]
    fn one_seed_is_never_enough_and_a_claim_may_want_more() {
        let mut claim = test_claim(Level::Must);
        let mut one = evidence(1000, 1000, 1000);
        one.executions = Some(1);
        assert_eq!(
            grade(&claim, &Verdict::Reproduced, &one),
            Verdict::Uncertain(
                "one execution, and another seed may give something else: add seeds to the axis `seed`".to_owned()
            )
        );
        claim.seeds = Some(5);
        assert_eq!(
            grade(&claim, &Verdict::NotReproduced, &evidence(0, 0, 0)),
            Verdict::Uncertain(
                "judged on 3 of 5 executions: add seeds to the axis `seed`".to_owned()
            )
        );
        claim.seeds = Some(3);
        let sure = evidence(1000, 1000, 1000);
        assert_eq!(
            grade(&claim, &Verdict::Reproduced, &sure),
            Verdict::Reproduced
        );
    }

    #[test]
    fn what_would_decide_it_follows_from_the_larger_variance() {
        let why = |evidence: &Evidence| match graded(Verdict::Reproduced, evidence) {
            Verdict::Uncertain(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            why(&evidence(841, 1000, 841)),
            "seeds vary more than items: about 11 seeds would decide it"
        );
        let mut items = evidence(841, 841, 1000);
        items.seeds = None;
        assert_eq!(
            why(&items),
            "items vary more than seeds: about 2.7 times as many items would decide it"
        );
        assert_eq!(
            why(&evidence(800, 880, 860)),
            "seeds vary more than items: about 14 seeds would decide it, with more items too"
        );
        assert_eq!(
            why(&evidence(510, 520, 510)),
            "so close to its boundary that more than 30 times as many seeds or items would be needed"
        );
    }
}
