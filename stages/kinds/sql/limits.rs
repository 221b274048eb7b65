//! What a query may not have, because the parser would take twice the time for each: it tries what
//! is in brackets, and what follows a point, more than once. Looks at the text alone.

use super::query::wrong;
use crate::ParamError;

/// How many brackets may stand inside each other.
const BRACKETS: usize = 16;

/// How many points a name may have: `table.column` has one.
const POINTS: usize = 8;

/// Refuses a query that would not be read in a lifetime.
pub fn check(query: &str) -> Result<(), ParamError> {
    let (brackets, points) = count(query);
    if brackets > BRACKETS {
        return Err(wrong(
            format!("the query has {brackets} nested parentheses, and the limit is {BRACKETS}"),
            Some("name parts of it: WITH part AS (SELECT …) SELECT …"),
        ));
    }
    if points > POINTS {
        return Err(wrong(
            format!("a name in the query has {points} dots, and the limit is {POINTS}"),
            Some("a column is `column` or `table.column`"),
        ));
    }
    Ok(())
}

/// The most brackets inside each other, and the most points in one name. What stands in quotes is
/// a part of a name or a text; white space parts names unless a point is on one of its sides.
fn count(query: &str) -> (usize, usize) {
    let (mut open, mut brackets, mut quote) = (0_usize, 0, None);
    let (mut now, mut points) = (0, 0);
    // What stands before: white space, a point.
    let (mut gap, mut point) = (false, false);
    for c in query.chars() {
        let word = c.is_alphanumeric() || matches!(c, '_' | '\'' | '"' | '`');
        match (quote, c) {
            (Some(end), c) => quote = Some(end).filter(|end| *end != c),
            (None, c) if c.is_whitespace() => gap = true,
            (None, c) if word => {
                if gap && !point {
                    now = 0;
                }
                (gap, point) = (false, false);
                quote = (!c.is_alphanumeric() && c != '_').then_some(c);
            }
            (None, '.') => {
                now += 1;
                points = points.max(now);
                (gap, point) = (false, true);
            }
            (None, c) => {
                match c {
                    '(' | '[' => open += 1,
                    ')' | ']' => open = open.saturating_sub(1),
                    _ => {}
                }
                brackets = brackets.max(open);
                (now, gap, point) = (0, false, false);
            }
        }
    }
    (brackets, points)
}

#[cfg(test)]
mod tests {
    use super::super::query::parse;
    use super::*;

    #[test]
    fn quotes_and_commas_part_names() {
        assert_eq!(count("SELECT 'a.b.c((' FROM t"), (0, 0));
        assert_eq!(count("SELECT ((t.a)), 0.5, 0.25 FROM t"), (2, 1));
        assert_eq!(count("a[b.c.d"), (1, 2));
        assert_eq!(
            count("WHERE t.a AND t.b AND \"t\".'c' OR t . d . e"),
            (0, 2)
        );
    }

    #[test]
    fn brackets_inside_brackets_have_a_limit_because_the_parser_takes_twice_the_time_for_each() {
        let nested = |depth: usize| {
            let (open, close) = ("ABS(".repeat(depth), ")".repeat(depth));
            parse(&format!(
                "SELECT {open}x{close} AS x, '((((((((((((((((((((' AS y FROM t"
            ))
            .map(drop)
        };
        assert!(nested(16).is_ok());
        assert_eq!(
            nested(17).unwrap_err().message,
            "the query has 17 nested parentheses, and the limit is 16"
        );
    }

    /// Found by the fuzzer: it was not read within a minute.
    #[test]
    fn points_have_a_limit_for_the_same_reason() {
        let query = format!("SELECT a FROM t WHERE na[{}", "stage.".repeat(60));
        assert_eq!(
            parse(&query).unwrap_err().message,
            "a name in the query has 60 dots, and the limit is 8"
        );
    }
}
