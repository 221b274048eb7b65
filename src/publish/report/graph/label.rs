//! How much text fits into a box. A browser knows its letters better, but only after the page is
//! drawn: these are widths of a wide font, so that what fits here fits everywhere.

/// The width of a text in pixels, rather too much than too little.
pub fn width_of(text: &str, size: usize) -> usize {
    let thousandths: usize = text.chars().map(thousandths).sum();
    (thousandths * size).div_ceil(1000)
}

/// As much of a text as fits, with `…` where some of it is missing.
pub fn clipped(text: &str, size: usize, room: usize) -> String {
    if width_of(text, size) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = thousandths('…') * size;
    for sign in text.chars() {
        used += thousandths(sign) * size;
        if used > room * 1000 {
            break;
        }
        short.push(sign);
    }
    short + "…"
}

/// Of the size of the letters.
fn thousandths(sign: char) -> usize {
    match sign {
        'i' | 'j' | 'l' | '|' | '.' | ',' | ':' | ';' | '\'' | '!' | ' ' => 340,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 430,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 1000,
        'A'..='Z' => 790,
        ' '..='~' => 650,
        '×' => 840,
        '…' => 1000,
        // Whatever else: a full square, and a little for signs that are written out.
        _ => 1100,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so_and_fits() {
        assert_eq!(clipped("lstm", 13, 100), "lstm");
        for text in ["W".repeat(40), "映画".repeat(20), "il".repeat(60)] {
            let short = clipped(&text, 13, 100);
            assert!(short.ends_with('…') && short.chars().count() > 3, "{short}");
            assert!(width_of(&short, 13) <= 100, "{short}");
        }
    }
}
