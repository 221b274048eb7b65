//! "Did you mean": the known name that is nearest to a mistyped one. Words errors only.

/// The nearest of the known names, if one is near enough to be what was meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance =
        |other: &str| strsim::damerau_levenshtein(&name.to_lowercase(), &other.to_lowercase());
    let (distance, best) = known
        .into_iter()
        .map(|other| (distance(other), other))
        .min()?;
    let length = name.chars().count().max(best.chars().count());
    (distance * 3 <= length).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["accuracy", "loss", "Epoch"];
        assert_eq!(nearest("acuracy", known), Some("accuracy"));
        assert_eq!(nearest("epoch", known), Some("Epoch"));
        assert_eq!(nearest("model", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
