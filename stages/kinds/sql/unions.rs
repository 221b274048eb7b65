//! Long chains of UNION ALL as trees: the parser hangs each part below all that stand before it, and
//! polars works out the columns of everything below at every step, which takes the cube of the parts.
//! Half the parts on either side give the same rows in the same order.

use std::borrow::Cow;
use std::ops::ControlFlow;

use sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier, VisitMut, VisitorMut};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserOptions};

/// Chains of up to this many parts stay as they are written.
const SHORT: usize = 8;

/// The query with its long chains as trees.
pub fn balanced(query: &str) -> Cow<'_, str> {
    let options = ParserOptions {
        trailing_commas: true,
        ..Default::default()
    };
    let parsed = Parser::new(&GenericDialect)
        .with_options(options)
        .try_with_sql(query)
        .and_then(|mut parser| parser.parse_statements());
    let Ok(mut statements) = parsed else {
        return Cow::Borrowed(query);
    };
    let mut balance = Balance { changed: false };
    let _ = statements.visit(&mut balance);
    match (balance.changed, statements.as_slice()) {
        (true, [statement]) => Cow::Owned(statement.to_string()),
        _ => Cow::Borrowed(query),
    }
}

struct Balance {
    changed: bool,
}

impl VisitorMut for Balance {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if length(&query.body) > SHORT {
            let body = std::mem::replace(&mut *query.body, nothing());
            *query.body = tree(parts(body));
            self.changed = true;
        }
        ControlFlow::Continue(())
    }
}

/// How many parts a chain has.
fn length(mut body: &SetExpr) -> usize {
    let mut length = 1;
    while let SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        left,
        ..
    } = body
    {
        length += 1;
        body = left;
    }
    length
}

/// The parts of a chain in their order.
fn parts(mut body: SetExpr) -> Vec<SetExpr> {
    let mut parts = Vec::new();
    loop {
        match body {
            SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier: SetQuantifier::All,
                left,
                right,
            } => {
                parts.push(*right);
                body = *left;
            }
            first => {
                parts.push(first);
                parts.reverse();
                return parts;
            }
        }
    }
}

/// All parts as one, each half in brackets.
fn tree(mut parts: Vec<SetExpr>) -> SetExpr {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let right = parts.split_off(parts.len().div_ceil(2));
    SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        left: Box::new(half(parts)),
        right: Box::new(half(right)),
    }
}

fn half(parts: Vec<SetExpr>) -> SetExpr {
    match parts.len() {
        1 => tree(parts),
        _ => SetExpr::Query(Box::new(Query {
            body: Box::new(tree(parts)),
            ..empty()
        })),
    }
}

fn nothing() -> SetExpr {
    SetExpr::Values(sqlparser::ast::Values {
        explicit_row: false,
        value_keyword: false,
        rows: Vec::new(),
    })
}

/// A query that says nothing but its body.
fn empty() -> Query {
    Query {
        with: None,
        body: Box::new(nothing()),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(parts: usize) -> String {
        let parts = (0..parts).map(|n| format!("SELECT {n} AS x"));
        parts.collect::<Vec<_>>().join(" UNION ALL ")
    }

    /// How many set operations stand inside each other.
    fn depth(body: &SetExpr) -> usize {
        match body {
            SetExpr::SetOperation { left, right, .. } => 1 + depth(left).max(depth(right)),
            SetExpr::Query(query) => depth(&query.body),
            _ => 0,
        }
    }

    fn parsed(query: &str) -> SetExpr {
        let mut statements = Parser::parse_sql(&GenericDialect, query).unwrap();
        match statements.remove(0) {
            sqlparser::ast::Statement::Query(query) => *query.body,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_long_chain_is_as_deep_as_its_logarithm() {
        assert_eq!(depth(&parsed(&chain(1000))), 999, "as the parser has it");
        assert_eq!(depth(&parsed(&balanced(&chain(1000)))), 10);
    }

    #[test]
    fn the_parts_stay_in_their_order() {
        let query = balanced(&chain(9)).into_owned();
        let numbers: Vec<&str> = query.split("SELECT ").skip(1).collect();
        let numbers: Vec<char> = numbers.iter().filter_map(|n| n.chars().next()).collect();
        assert_eq!(numbers, ('0'..='8').collect::<Vec<_>>());
    }

    #[test]
    fn whatever_is_short_or_not_a_chain_stays_as_it_is_written() {
        let distinct = chain(20).replace(" ALL", "");
        for query in [&chain(8), &distinct, "SELECT 'a  b' FROM  t", "SELEC"] {
            assert!(matches!(balanced(query), Cow::Borrowed(same) if same == query));
        }
    }

    #[test]
    fn chains_inside_a_query_are_found() {
        let query = format!("WITH a AS ({}) SELECT x FROM a ORDER BY x", chain(20));
        let written = balanced(&query);
        assert!(
            written.starts_with("WITH a AS (((((SELECT 0 AS x"),
            "{written}"
        );
        assert!(written.ends_with("SELECT x FROM a ORDER BY x"), "{written}");
    }
}
