//! Names with holes: `swap{n}` becomes `swap3` where `n` is 3.

use std::collections::BTreeMap;

/// The names of the holes, in order.
pub fn holes(template: &str) -> Vec<&str> {
    let parts = template.split('{').skip(1);
    parts
        .filter_map(|part| Some(part.split_once('}')?.0))
        .collect()
}

/// The template with its holes filled.
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
    fn holes_are_found_and_filled() {
        assert_eq!(holes("swap{n} of {model}"), ["n", "model"]);
        assert!(holes("plain } {").is_empty());
        let values = [("n".to_owned(), "3".to_owned())].into();
        assert_eq!(fill("swap{n} {m}", &values), "swap3 {m}");
    }
}
