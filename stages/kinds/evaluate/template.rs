//! Names with placeholders: `swap{n}` becomes `swap3` where `n` is 3.

use std::collections::BTreeMap;

/// The names of the placeholders, in order.
pub fn placeholders(template: &str) -> Vec<&str> {
    let parts = template.split('{').skip(1);
    parts
        .filter_map(|part| Some(part.split_once('}')?.0))
        .collect()
}

/// The template with its placeholders replaced.
pub fn fill(template: &str, values: &BTreeMap<String, String>) -> String {
    let mut filled = template.to_owned();
    for (name, value) in values {
        filled = filled.replace(&format!("{{{name}}}"), value);
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_and_replaced() {
        assert_eq!(placeholders("swap{n} of {model}"), ["n", "model"]);
        assert!(placeholders("plain } {").is_empty());
        let values = [("n".to_owned(), "3".to_owned())].into();
        assert_eq!(fill("swap{n} {m}", &values), "swap3 {m}");
    }
}
