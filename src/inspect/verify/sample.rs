//! Which instances are executed again when not all are: a draw by key, so that it can be repeated.

use std::str::FromStr;

use store::Digest;

/// How many: `20%` or `5`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// A share, in percent.
    Percent(f64),
    /// So many.
    Count(usize),
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let wrong = || format!("`{text}` is neither a share such as 20% nor a number such as 5");
        match text.strip_suffix('%') {
            Some(share) => match share.trim().parse::<f64>() {
                Ok(share) if share > 0.0 && share <= 100.0 => Ok(Size::Percent(share)),
                _ => Err(wrong()),
            },
            None => match text.parse() {
                Ok(count) if count > 0 => Ok(Size::Count(count)),
                _ => Err(wrong()),
            },
        }
    }
}

/// The drawn ones among some instances and their keys, in their order; at least one.
pub fn draw(all: &[(usize, Digest)], size: Size, seed: u64) -> Vec<usize> {
    let count = match size {
        Size::Percent(share) => (all.len() as f64 * share / 100.0).ceil() as usize,
        Size::Count(count) => count,
    };
    let mut order: Vec<(Digest, usize)> = all
        .iter()
        .map(|(n, key)| (Digest::of(format!("verify/{seed}/{key}").as_bytes()), *n))
        .collect();
    order.sort_unstable();
    order.truncate(count.max(1));
    let mut drawn: Vec<usize> = order.into_iter().map(|(_, n)| n).collect();
    drawn.sort_unstable();
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shares_or_numbers() {
        assert_eq!("20%".parse(), Ok(Size::Percent(20.0)));
        assert_eq!("3".parse(), Ok(Size::Count(3)));
        for wrong in ["", "0", "0%", "101%", "x", "-1"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_draw_repeats_and_a_larger_one_holds_it() {
        let all: Vec<(usize, Digest)> = (0..50).map(|n| (n, Digest::of(&[n as u8]))).collect();
        let small = draw(&all, Size::Percent(20.0), 0);
        assert_eq!(small.len(), 10);
        assert_eq!(small, draw(&all, Size::Count(10), 0));
        let large = draw(&all, Size::Percent(60.0), 0);
        assert!(small.iter().all(|n| large.contains(n)));
        assert_ne!(small, draw(&all, Size::Count(10), 1));
    }
}
