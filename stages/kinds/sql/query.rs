//! Reads a query before anything runs: is it SQL, is it one SELECT, can it give the same
//! answer twice, does it say in which order its rows come? Knows nothing of tables.

use std::cell::RefCell;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, ObjectNamePart, Query, SetExpr, Statement, TableFactor, Visit, Visitor,
    visit_expressions,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserError, ParserOptions};

use super::{limits, refused};
use crate::ParamError;

/// What must be known of a query besides its text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// Whether the outermost query has an ORDER BY.
    pub ordered: bool,
    /// The tables that it reads, in order of appearance: these must be inputs.
    pub tables: Vec<String>,
    /// Whether it can give no more than it reads: one table, once, and no function that makes
    /// something large out of something small.
    pub bounded: bool,
}

/// Functions of other dialects whose answer depends on when or how often they are asked.
/// polars has none of them today; this keeps it so, and says why.
const UNREPEATABLE: &[&str] = &[
    "current_date",
    "current_time",
    "current_timestamp",
    "gen_random_uuid",
    "getdate",
    "localtime",
    "localtimestamp",
    "now",
    "rand",
    "random",
    "setseed",
    "sysdate",
    "today",
    "uuid",
];

/// Parses the query as polars will.
pub fn parse(query: &str) -> Result<Parsed, ParamError> {
    thread_local! {
        /// A plan asks for the same query several times in a row, and parsing was half its time.
        static LAST: RefCell<Option<(String, Parsed)>> = const { RefCell::new(None) };
    }
    let last = LAST.with_borrow(|last| match last {
        Some((text, parsed)) if text == query => Some(parsed.clone()),
        _ => None,
    });
    if let Some(parsed) = last {
        return Ok(parsed);
    }
    let parsed = parse_anew(query)?;
    LAST.set(Some((query.to_owned(), parsed.clone())));
    Ok(parsed)
}

fn parse_anew(query: &str) -> Result<Parsed, ParamError> {
    if query.len() > LONGEST {
        return Err(wrong(
            format!(
                "the query is {} bytes long, and the limit is {LONGEST}",
                query.len()
            ),
            Some("put the values into a table and join it"),
        ));
    }
    limits::check(query)?;
    // The same dialect and options as `SQLContext::execute`.
    let options = ParserOptions {
        trailing_commas: true,
        ..Default::default()
    };
    let statements = Parser::new(&GenericDialect)
        .with_options(options)
        .try_with_sql(query)
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| wrong(syntax(error), None))?;
    let query = match statements.as_slice() {
        [Statement::Query(query)] => query,
        [] => {
            return Err(wrong(
                "the query is empty".into(),
                Some("write query = \"SELECT … FROM …\""),
            ));
        }
        [_] => {
            return Err(wrong(
                "the query is not a SELECT".into(),
                Some("a stage makes a table: use SELECT, or WITH … SELECT"),
            ));
        }
        more => {
            return Err(wrong(
                format!("{} statements in one query", more.len()),
                Some("use one stage for each, or WITH"),
            ));
        }
    };
    let depth = depth(query);
    if depth > DEEPEST {
        return Err(wrong(
            format!("the query is nested {depth} operators deep, and the limit is {DEEPEST}"),
            Some("write long chains of OR as x IN (…), or put the values into a table and join it"),
        ));
    }
    if let ControlFlow::Break(name) = visit_expressions(&statements, unrepeatable) {
        return Err(wrong(
            format!("{name}() gives a different result on every run"),
            Some("results must be repeatable: pass the value as a column of an input"),
        ));
    }
    refused::check(query)?;
    Ok(Parsed {
        ordered: is_ordered(query),
        tables: tables(query),
        bounded: is_bounded(query),
    })
}

/// How deep expressions may nest: polars walks them by recursion.
const DEEPEST: usize = 1000;

/// How long a query may be. The parser recurses too, and half of this many operators still fit
/// on the stack of any thread.
const LONGEST: usize = 64 * 1024;

/// How deep the deepest expression is.
fn depth(query: &Query) -> usize {
    #[derive(Default)]
    struct Depth {
        now: usize,
        most: usize,
    }
    impl Visitor for Depth {
        type Break = ();

        fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
            self.now += 1;
            self.most = self.most.max(self.now);
            ControlFlow::Continue(())
        }

        fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
            self.now -= 1;
            ControlFlow::Continue(())
        }
    }
    let mut depth = Depth::default();
    let _ = query.visit(&mut depth);
    depth.most
}

/// The plain names that the query reads from and does not define itself in a WITH. A name that
/// hides an input in one place and means it in another counts as defined: too few tables here
/// only means that a missing one is found when the stage runs.
fn tables(query: &Query) -> Vec<String> {
    let mut names = Names::default();
    let _ = query.visit(&mut names);
    names.read.retain(|name| !names.defined.contains(name));
    names.read
}

#[derive(Default)]
struct Names {
    defined: Vec<String>,
    read: Vec<String>,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.defined
            .extend(with.map(|cte| cte.alias.name.value.clone()));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        if let [ObjectNamePart::Identifier(part)] = name.0.as_slice()
            && !self.read.contains(&part.value)
        {
            self.read.push(part.value.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Functions that give one number for what they are given.
const SMALL: &[&str] = &[
    "abs",
    "avg",
    "ceil",
    "coalesce",
    "count",
    "floor",
    "ifnull",
    "length",
    "ln",
    "log",
    "max",
    "median",
    "min",
    "nullif",
    "pow",
    "rank",
    "round",
    "row_number",
    "sign",
    "sqrt",
    "stddev",
    "sum",
    "variance",
];

fn is_bounded(query: &Query) -> bool {
    #[derive(Default)]
    struct Bounds {
        relations: usize,
        queries: usize,
        large: bool,
    }
    impl Visitor for Bounds {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries += 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
            self.relations += 1;
            self.large |= !matches!(table, TableFactor::Table { args: None, .. });
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if let Expr::Function(function) = expr {
                let name = function.name.to_string().to_lowercase();
                self.large |= !SMALL.contains(&name.as_str());
            }
            ControlFlow::Continue(())
        }
    }
    let mut bounds = Bounds::default();
    let _ = query.visit(&mut bounds);
    bounds.relations <= 1 && bounds.queries == 1 && !bounds.large
}

fn unrepeatable(expr: &Expr) -> ControlFlow<String> {
    if let Expr::Function(function) = expr {
        let name = function.name.to_string();
        if UNREPEATABLE.contains(&name.to_lowercase().as_str()) {
            return ControlFlow::Break(name);
        }
    }
    ControlFlow::Continue(())
}

fn is_ordered(query: &Query) -> bool {
    query.order_by.is_some()
        || match &*query.body {
            SetExpr::Query(inner) => is_ordered(inner),
            _ => false,
        }
}

fn syntax(error: ParserError) -> String {
    match error {
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
            format!(
                "invalid SQL: {}",
                message.trim_start_matches("sql parser error: ")
            )
        }
        ParserError::RecursionLimitExceeded => "invalid SQL: it is nested too deeply".to_owned(),
    }
}

pub fn wrong(message: String, help: Option<&str>) -> ParamError {
    ParamError {
        param: "query",
        message,
        help: help.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(query: &str) -> String {
        parse(query).unwrap_err().message
    }

    #[test]
    fn mistakes_are_found_before_anything_runs() {
        assert_eq!(
            message("SELECT x FRM t WHERE"),
            "invalid SQL: Expected: end of statement, found: t at Line: 1, Column: 14"
        );
        assert!(message("SELECT 'x").starts_with("invalid SQL: Unterminated string literal"));
        assert_eq!(message(""), "the query is empty");
        assert_eq!(message("SELECT 1; SELECT 2"), "2 statements in one query");
        assert_eq!(message("DROP TABLE t"), "the query is not a SELECT");
        assert_eq!(message("SHOW TABLES"), "the query is not a SELECT");
    }

    #[test]
    fn what_would_overflow_a_stack_is_refused() {
        let sum = |terms: usize| format!("SELECT 1{} AS x", "+1".repeat(terms));
        assert!(parse(&sum(900)).is_ok());
        let deep = std::thread::Builder::new().stack_size(2 << 20);
        let deep = deep.spawn(move || message(&sum(32_000))).unwrap();
        assert_eq!(
            deep.join().unwrap(),
            "the query is nested 32001 operators deep, and the limit is 1000"
        );
        assert_eq!(
            message(&sum(40_000)),
            "the query is 80013 bytes long, and the limit is 65536"
        );
    }

    #[test]
    fn chance_and_clocks_are_refused_wherever_they_hide() {
        assert_eq!(
            message("SELECT RANDOM() AS r FROM t"),
            "RANDOM() gives a different result on every run"
        );
        assert_eq!(
            message("SELECT * FROM (SELECT x FROM t WHERE d < current_timestamp)"),
            "current_timestamp() gives a different result on every run"
        );
    }

    #[test]
    fn the_tables_that_a_query_reads_are_known() {
        let tables = |query| parse(query).unwrap().tables;
        assert_eq!(
            tables("SELECT a.x FROM t AS a JOIN u ON a.x = u.x"),
            ["t", "u"]
        );
        assert_eq!(
            tables("SELECT x FROM (SELECT x FROM t) AS s, t AS v"),
            ["t"]
        );
        assert_eq!(tables("WITH a AS (SELECT x FROM t) SELECT x FROM a"), ["t"]);
        assert_eq!(
            tables("SELECT x FROM t WHERE x IN (SELECT x FROM u)"),
            ["t", "u"]
        );
        assert_eq!(tables("SELECT 1 AS x"), Vec::<String>::new());
        assert_eq!(
            tables("SELECT x FROM t UNION SELECT x FROM \"A b\""),
            ["t", "A b"]
        );
    }

    #[test]
    fn what_can_grow_is_told_from_what_cannot() {
        let bounded = |query| parse(query).unwrap().bounded;
        assert!(bounded(
            "SELECT g, SUM(x) - 1 AS s FROM t WHERE x > 2 GROUP BY g ORDER BY g"
        ));
        assert!(bounded("SELECT 1 AS one"));
        for query in [
            "SELECT a.x FROM t AS a, t AS b",
            "SELECT a.x FROM t AS a CROSS JOIN t AS b",
            "SELECT x FROM t UNION ALL SELECT x FROM t",
            "WITH a AS (SELECT x FROM t) SELECT x FROM a",
            "SELECT x FROM (SELECT x FROM t)",
            "SELECT x FROM t WHERE x IN (SELECT x FROM u)",
            "SELECT UNNEST(l) AS x FROM t",
            "SELECT LPAD(s, 1000000000) AS s FROM t",
        ] {
            assert!(!bounded(query), "{query}");
        }
    }

    #[test]
    fn the_order_of_the_outermost_query_counts() {
        assert!(parse("SELECT x FROM t ORDER BY x LIMIT 3").unwrap().ordered);
        assert!(parse("(SELECT x FROM t ORDER BY x)").unwrap().ordered);
        assert!(
            parse("WITH a AS (SELECT 1 AS x) SELECT x FROM a ORDER BY x")
                .unwrap()
                .ordered
        );
        assert!(
            !parse("SELECT * FROM (SELECT x FROM t ORDER BY x)")
                .unwrap()
                .ordered
        );
        assert!(!parse("SELECT x FROM t").unwrap().ordered);
    }
}
