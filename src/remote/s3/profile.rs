//! What other programs of S3 read too: `~/.aws/config` and `~/.aws/credentials`.

use std::collections::HashMap;

/// What the files `~/.aws/config` and `~/.aws/credentials` say of one profile.
pub struct Profile(HashMap<String, String>);

impl Profile {
    /// The profile that `AWS_PROFILE` names, or `default`.
    pub fn read() -> Profile {
        let named = std::env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_owned());
        let home = dirs::home_dir().unwrap_or_default().join(".aws");
        let place = |variable: &str, name: &str| {
            std::env::var_os(variable).map_or_else(|| home.join(name), Into::into)
        };
        let files = [
            place("AWS_CONFIG_FILE", "config"),
            place("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
        ];
        let mut values = HashMap::new();
        for path in files {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            values.extend(section(&text, &named));
        }
        Profile(values)
    }

    /// A value.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    /// Id, secret, and a token if there is one.
    pub fn credentials(&self) -> Option<(String, String, Option<String>)> {
        let (id, secret) = (
            self.get("aws_access_key_id")?,
            self.get("aws_secret_access_key")?,
        );
        Some((id, secret, self.get("aws_session_token")))
    }
}

/// The values of `[NAME]` or `[profile NAME]`.
fn section(text: &str, name: &str) -> HashMap<String, String> {
    let mut inside = false;
    let mut values = HashMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            let head = head.trim();
            inside = head == name || head.strip_prefix("profile ").map(str::trim) == Some(name);
        } else if let Some((key, value)) = line.split_once('=').filter(|_| inside) {
            values.insert(key.trim().to_owned(), value.trim().to_owned());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_found_in_either_spelling() {
        let text = "[default]\na = 1\n[profile lab]\na=2\nb = x=y\n";
        assert_eq!(section(text, "default")["a"], "1");
        assert_eq!(section(text, "lab")["b"], "x=y");
        assert!(section(text, "other").is_empty());
    }
}
