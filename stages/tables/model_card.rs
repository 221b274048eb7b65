//! The card of a model: everything about it but its numbers, as JSON in the metadata of its weights.
//! Knows no model by name.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Everything about a model but its numbers. Stored byte for byte as it was written.
#[derive(Clone, Debug)]
pub struct ModelCard {
    text: String,
    fields: Map<String, Value>,
}

impl PartialEq for ModelCard {
    fn eq(&self, other: &ModelCard) -> bool {
        self.fields == other.fields
    }
}

impl ModelCard {
    /// The card of a network: its specification as JSON, the digest of the vocabulary that its tokens are
    /// numbered by, and that of the word vectors that it reads and that are not among its weights.
    pub fn network(spec: &str, words: Option<&str>, vectors: Option<&str>) -> ModelCard {
        ModelCard::written(
            "network",
            &[
                ("spec", spec.to_owned()),
                ("words", json(words)),
                ("vectors", json(vectors)),
            ],
        )
    }

    /// The same for a model of pairs of texts, which this token separates.
    pub fn of_pairs(self, separator: Option<u32>) -> ModelCard {
        let Some(separator) = separator else {
            return self;
        };
        let text = self.text.strip_suffix('}').unwrap_or(&self.text);
        let text = format!("{text},\"separator\":{separator}}}");
        ModelCard::parse(&text).expect("a field more")
    }

    /// What separates the two texts that the model reads, if it reads pairs.
    pub fn separator(&self) -> Option<u32> {
        let separator = self.fields.get("separator").and_then(Value::as_u64);
        separator.and_then(|id| u32::try_from(id).ok())
    }

    /// A card with fields of its family's own, each as JSON, in this order.
    pub fn written(family: &str, fields: &[(&str, String)]) -> ModelCard {
        let mut text = format!("{{\"family\":\"{family}\"");
        for (name, value) in fields {
            text.push_str(&format!(",\"{name}\":{value}"));
        }
        text.push('}');
        ModelCard::parse(&text).expect("fields are JSON")
    }

    /// A stored card.
    pub fn parse(text: &str) -> Result<ModelCard, String> {
        let fields: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let card = ModelCard {
            text: text.to_owned(),
            fields,
        };
        match card.field("family") {
            Some(_) => Ok(card),
            None => Err("missing field `family`".to_owned()),
        }
    }

    /// As it is stored.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The model's name in `model = "…"`: that of its recurrent layer, its network or its family.
    pub fn model(&self) -> String {
        let spec = self.fields.get("spec").and_then(Value::as_object);
        let of_spec = |name: &str| spec.and_then(|spec| spec.get(name)).and_then(Value::as_str);
        let name = of_spec("cell").or(of_spec("name"));
        let name = name.or(self.field("family"));
        name.unwrap_or_default().replace('_', "-")
    }

    /// The digest of the vocabulary that the model's tokens are numbered by.
    pub fn words(&self) -> Option<&str> {
        self.field("words")
    }

    /// The digest of the word vectors that it reads and that are not among its weights.
    pub fn vectors(&self) -> Option<&str> {
        self.field("vectors")
    }

    /// The specification, without the names that chose its type.
    pub fn spec<T: DeserializeOwned>(&self) -> Result<T, String> {
        let spec = self.fields.get("spec").and_then(Value::as_object);
        let mut spec = spec.cloned().ok_or("missing field `spec`")?;
        spec.remove("name");
        spec.remove("cell");
        serde_json::from_value(Value::Object(spec)).map_err(|error| error.to_string())
    }

    /// A size among its fields.
    pub fn size(&self, name: &str) -> Result<usize, String> {
        let size = self.fields.get(name).and_then(Value::as_u64);
        let size = size.and_then(|size| usize::try_from(size).ok());
        size.ok_or_else(|| format!("missing field `{name}`"))
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str)
    }
}

/// A value as JSON.
pub fn json(value: impl serde::Serialize) -> String {
    serde_json::to_string(&value).expect("plain fields")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored models carry these very bytes.
    #[test]
    fn cards_are_written_as_they_always_were_and_read_back() {
        let spec = r#"{"name":"recurrent","cell":"gru","units":4}"#;
        let card = ModelCard::network(spec, Some("ab"), None);
        let text = r#"{"family":"network","spec":{"name":"recurrent","cell":"gru","units":4},"words":"ab","vectors":null}"#;
        assert_eq!(card.text(), text);
        assert_eq!(card.model(), "gru");
        assert_eq!((card.words(), card.vectors()), (Some("ab"), None));
        assert_eq!(ModelCard::parse(text).unwrap(), card);
        assert_eq!(
            (card.separator(), card.clone().of_pairs(None).text()),
            (None, text)
        );
        let pairs = card.of_pairs(Some(3));
        assert!(pairs.text().ends_with(r#""vectors":null,"separator":3}"#));
        assert_eq!(pairs.separator(), Some(3));
        let bayes = [("words", json("ab")), ("vocabulary", json(5))];
        let bayes = ModelCard::written("naive_bayes", &bayes);
        assert_eq!(bayes.model(), "naive-bayes");
        assert_eq!(bayes.size("vocabulary"), Ok(5));
        assert_eq!(
            bayes.size("classes"),
            Err("missing field `classes`".to_owned())
        );
    }

    #[test]
    fn what_is_not_a_card_is_refused() {
        assert_eq!(
            ModelCard::parse("{}").unwrap_err(),
            "missing field `family`"
        );
        assert!(ModelCard::parse("[").is_err());
    }
}
