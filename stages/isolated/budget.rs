//! How much memory a worker may have.

use std::fs;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(pub u64);

/// The default fraction of the machine's memory for one worker is 1 / SHARE. Two may run at
/// once, beside stages that need memory themselves.
const SHARE: u64 = 4;

impl Default for Budget {
    fn default() -> Budget {
        Budget(machine().unwrap_or(8 << 30) / SHARE)
    }
}

impl std::str::FromStr for Budget {
    type Err = String;

    /// `4GB`, `4G`, `512MB`, `1.5 GiB`, or a number of bytes.
    fn from_str(text: &str) -> Result<Budget, String> {
        let wrong = || format!("`{text}` is not a size: write 4GB or 512MB");
        let compact = text.trim().to_ascii_uppercase();
        let letters = compact.find(|c: char| c.is_ascii_alphabetic());
        let (number, unit) = compact.split_at(letters.unwrap_or(compact.len()));
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        let unit = match unit {
            "" | "B" => 1.0,
            "K" | "KB" | "KIB" => 1024.0,
            "M" | "MB" | "MIB" => 1024.0 * 1024.0,
            "G" | "GB" | "GIB" => 1024.0 * 1024.0 * 1024.0,
            _ => return Err(wrong()),
        };
        let bytes = number * unit;
        if !bytes.is_finite() || bytes < LEAST as f64 {
            return Err(format!(
                "`{text}` is too small: a worker needs at least {}",
                in_words(LEAST)
            ));
        }
        Ok(Budget(bytes as u64))
    }
}

/// What a worker takes before it does anything, several times over.
const LEAST: u64 = 64 << 20;

/// `1.5 GiB`.
pub fn in_words(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        ..1048576.0 => format!("{:.1} KiB", bytes / 1024.0),
        ..1073741824.0 => format!("{:.1} MiB", bytes / 1048576.0),
        _ => format!("{:.1} GiB", bytes / 1073741824.0),
    }
}

/// The memory of this machine, or of the group of processes that we are held in, if that is less.
fn machine() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    Some((kilobytes * 1024).min(group.unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let size = |text: &str| text.parse::<Budget>().map(|budget| budget.0);
        assert_eq!(size("4GB"), Ok(4 << 30));
        assert_eq!(size("4g"), Ok(4 << 30));
        assert_eq!(size("1.5 GiB"), Ok(3 << 29));
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("268435456"), Ok(256 << 20));
        assert_eq!(
            size("lots"),
            Err("`lots` is not a size: write 4GB or 512MB".to_owned())
        );
        assert_eq!(
            size("5"),
            Err("`5` is too small: a worker needs at least 64.0 MiB".to_owned())
        );
        for text in ["", "GB", "1e400G", "-4GB", "NaN"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
