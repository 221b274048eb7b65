//! The tokens of a source file in one canonical text, so that its digest changes when the
//! program may have changed and not when somebody reformats it or improves a comment.
//!
//! Left out: white space, comments, `#[doc]`, `#[cfg(test)]` items, and trailing commas that
//! mean nothing. When in doubt a token counts: a needless rerun is a pity, a stale result is
//! a lie. Included by the build script and by tests; knows nothing of files.

use std::fmt::Write;
use std::iter::Peekable;

use proc_macro2::{Delimiter, Group, LexError, Spacing, TokenStream, TokenTree};

/// What a source file says, as far as results are concerned.
pub struct Source {
    /// Every token that counts, in an unambiguous text.
    pub text: String,
    /// The same one by one: which crates and modules are mentioned is looked up here.
    pub tokens: Vec<String>,
    /// The items `pub use …;`, which are in neither.
    pub exports: Vec<Vec<String>>,
    /// Modules declared as `#[cfg(test)] mod name;`, whose files do not count.
    pub test_mods: Vec<String>,
}

/// Reads a source file. What only lists (`mod name;`, `pub use …;`, a registry) is kept out of the
/// text, so that a new module, name or entry leaves the digests of its neighbours alone.
pub fn read(source: &str) -> Result<Source, LexError> {
    let mut out = Source {
        text: String::new(),
        tokens: Vec::new(),
        exports: Vec::new(),
        test_mods: Vec::new(),
    };
    let tokens: Vec<_> = source.parse::<TokenStream>()?.into_iter().collect();
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        // First, or the `#[cfg(test)]` of a left-out module would swallow the item after it.
        if let Some(skipped) = out.attribute_to_skip(rest) {
            at += skipped;
        } else if let Some(export) = export(rest) {
            out.exports.push(flat(export)?);
            at += export.len();
        } else if is_listing(rest) {
            at += through_semicolon(rest);
        } else {
            kept.push(rest[0].clone());
            at += 1;
        }
    }
    out.write(&kept, Commas::Trim);
    Ok(out)
}

/// The tokens of a part of a file.
fn flat(tokens: &[TokenTree]) -> Result<Vec<String>, LexError> {
    let mut part = read("")?;
    part.write(tokens, Commas::Trim);
    Ok(part.tokens)
}

/// How many tokens `pub` or `pub(…)` takes here.
fn visibility(tokens: &[TokenTree]) -> usize {
    let public = is_ident(tokens.first(), "pub");
    let within = matches!(tokens.get(1), Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Parenthesis);
    usize::from(public) + usize::from(public && within)
}

/// The item `pub use …;` that starts here.
fn export(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    let public = visibility(tokens);
    let exports = public > 0 && is_ident(tokens.get(public), "use");
    exports.then(|| &tokens[..through_semicolon(tokens)])
}

/// Whether `mod name;` or a registry starts here: a `static` list of trait objects or of entries,
/// `&[&dyn Attack]` or `&[&Synthetic]`, of which the parameters of a stage choose one.
fn is_listing(tokens: &[TokenTree]) -> bool {
    let at = visibility(tokens);
    let ends = matches!(tokens.get(at + 2), Some(TokenTree::Punct(p)) if p.as_char() == ';');
    if is_ident(tokens.get(at), "mod") {
        return ends;
    }
    let list = match tokens.get(at + 4) {
        Some(TokenTree::Group(g)) => {
            let mut inner = g.stream().into_iter();
            let reference = inner.next().is_some_and(|token| token.to_string() == "&");
            let name = inner
                .next()
                .map(|token| token.to_string())
                .unwrap_or_default();
            reference && (name == "dyn" || name.starts_with(char::is_uppercase))
        }
        _ => false,
    };
    is_ident(tokens.get(at), "static") && list
}

/// What to do with trailing commas.
#[derive(Clone, Copy, PartialEq)]
enum Commas {
    /// Leave out those that mean nothing.
    Trim,
    /// Keep all: a macro that we do not know may tell `m!(a,)` from `m!(a)`.
    Keep,
}

/// Macros that take a trailing comma for nothing.
const KNOWN_MACROS: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "eprintln",
    "format",
    "matches",
    "panic",
    "print",
    "println",
    "todo",
    "unimplemented",
    "unreachable",
    "vec",
    "write",
    "writeln",
];

/// Words that may stand before a parenthesis that opens a tuple, not the arguments of a call.
const KEYWORDS: &[&str] = &[
    "as", "await", "break", "const", "dyn", "else", "for", "if", "impl", "in", "let", "loop",
    "match", "move", "mut", "ref", "return", "static", "type", "unsafe", "where", "while", "yield",
];

/// Operators of more than one character, longest first, so that `x=-1` reads as `x = -1`.
const OPERATORS: &[&str] = &[
    "<<=", ">>=", "...", "..=", "::", "->", "=>", "==", "!=", "<=", ">=", "&&", "||", "+=", "-=",
    "*=", "/=", "%=", "^=", "&=", "|=", "<<", ">>", "..",
];

impl Source {
    fn write(&mut self, tokens: &[TokenTree], commas: Commas) {
        let mut at = 0;
        while at < tokens.len() {
            if let Some(skipped) = self.attribute_to_skip(&tokens[at..]) {
                at += skipped;
                continue;
            }
            match &tokens[at] {
                TokenTree::Group(group) => self.group(group, &tokens[..at], commas),
                TokenTree::Ident(ident) => {
                    let ident = ident.to_string();
                    let _ = writeln!(self.text, "i {ident}");
                    self.tokens.push(ident);
                }
                // A literal may hold line breaks: its length keeps the text unambiguous.
                TokenTree::Literal(literal) => {
                    let literal = literal.to_string();
                    let _ = writeln!(self.text, "l {} {literal}", literal.len());
                    self.tokens.push(literal);
                }
                TokenTree::Punct(_) => {
                    let (operator, length) = operator(&tokens[at..]);
                    let before_angle = commas == Commas::Trim
                        && operator == ","
                        && matches!(tokens.get(at + 1), Some(TokenTree::Punct(p)) if p.as_char() == '>');
                    if !before_angle {
                        let _ = writeln!(self.text, "p {operator}");
                        self.tokens.push(operator);
                    }
                    at += length;
                    continue;
                }
            }
            at += 1;
        }
    }

    fn group(&mut self, group: &Group, before: &[TokenTree], commas: Commas) {
        let inner: Vec<_> = group.stream().into_iter().collect();
        let commas = match macro_name(before) {
            Some(name) if !KNOWN_MACROS.contains(&name.as_str()) => Commas::Keep,
            _ => commas,
        };
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("<none", "none>"),
        };
        let _ = writeln!(self.text, "{open}");
        self.tokens.push(open.to_owned());
        let trailing = matches!(inner.last(), Some(TokenTree::Punct(p)) if p.as_char() == ',');
        let trim = trailing && commas == Commas::Trim && !may_be_one_tuple(group, &inner, before);
        self.write(&inner[..inner.len() - usize::from(trim)], commas);
        let _ = writeln!(self.text, "{close}");
        self.tokens.push(close.to_owned());
    }

    /// How many tokens a `#[doc…]` attribute or a `#[cfg(test)]` item takes, if one starts here.
    fn attribute_to_skip(&mut self, tokens: &[TokenTree]) -> Option<usize> {
        let (body, length) = attribute(tokens)?;
        let mut body = body.into_iter().peekable();
        match next_ident(&mut body)?.as_str() {
            "doc" => Some(length),
            "cfg" => {
                let Some(TokenTree::Group(condition)) = body.next() else {
                    return None;
                };
                if condition.stream().to_string() != "test" {
                    return None;
                }
                let item = &tokens[length..];
                let (taken, test_mod) = item_length(item)?;
                self.test_mods.extend(test_mod);
                Some(length + taken)
            }
            _ => None,
        }
    }
}

/// The tokens inside the brackets of an attribute that starts here, and how many it takes.
fn attribute(tokens: &[TokenTree]) -> Option<(TokenStream, usize)> {
    let is = |at: usize, c: char| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == c);
    if !is(0, '#') {
        return None;
    }
    let bracket = 1 + usize::from(is(1, '!'));
    match tokens.get(bracket)? {
        TokenTree::Group(g) if g.delimiter() == Delimiter::Bracket => {
            Some((g.stream(), bracket + 1))
        }
        _ => None,
    }
}

fn next_ident(tokens: &mut Peekable<impl Iterator<Item = TokenTree>>) -> Option<String> {
    match tokens.next()? {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

/// How many tokens the item that starts here takes, and its name if it is `mod name;`.
/// `None` for what is not plainly an item (a field, a match arm): it counts.
fn item_length(tokens: &[TokenTree]) -> Option<(usize, Option<String>)> {
    let mut at = 0;
    while let Some((_, length)) = attribute(&tokens[at..]) {
        at += length;
    }
    if is_ident(tokens.get(at), "pub") {
        at += 1;
        if matches!(tokens.get(at), Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Parenthesis)
        {
            at += 1;
        }
    }
    let TokenTree::Ident(keyword) = tokens.get(at)? else {
        return None;
    };
    let function = ["fn", "unsafe", "async", "extern"]
        .iter()
        .any(|word| is_ident(tokens.get(at + 1), word));
    match keyword.to_string().as_str() {
        "const" if function => Some((at + through_body(&tokens[at..]), None)),
        // These may hold braces before the semicolon that ends them.
        "use" | "const" | "static" | "type" => Some((at + through_semicolon(&tokens[at..]), None)),
        "mod" => {
            let length = through_body(&tokens[at..]);
            let declared =
                matches!(tokens.get(at + 2), Some(TokenTree::Punct(p)) if p.as_char() == ';');
            let name = declared.then(|| tokens[at + 1].to_string());
            Some((at + length, name))
        }
        "fn" | "struct" | "enum" | "trait" | "impl" | "unsafe" | "async" | "macro_rules" => {
            Some((at + through_body(&tokens[at..]), None))
        }
        _ => None,
    }
}

fn through_semicolon(tokens: &[TokenTree]) -> usize {
    let end = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ';');
    tokens.iter().position(end).map_or(tokens.len(), |n| n + 1)
}

fn through_body(tokens: &[TokenTree]) -> usize {
    let end = |t: &TokenTree| match t {
        TokenTree::Punct(p) => p.as_char() == ';',
        TokenTree::Group(g) => g.delimiter() == Delimiter::Brace,
        _ => false,
    };
    tokens.iter().position(end).map_or(tokens.len(), |n| n + 1)
}

fn is_ident(token: Option<&TokenTree>, name: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == name)
}

/// The longest operator that starts here, and how many tokens it takes.
fn operator(tokens: &[TokenTree]) -> (String, usize) {
    let mut run = String::new();
    for token in tokens {
        let TokenTree::Punct(punct) = token else {
            break;
        };
        run.push(punct.as_char());
        if punct.spacing() == Spacing::Alone {
            break;
        }
    }
    let longest = OPERATORS.iter().find(|o| run.starts_with(**o));
    let operator = longest.map_or_else(|| run[..1].to_owned(), |o| (*o).to_owned());
    let length = operator.len();
    (operator, length)
}

/// The macro whose input or definition follows `before`: `name!` or `macro_rules! name`.
fn macro_name(before: &[TokenTree]) -> Option<String> {
    let bang = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == '!');
    match before {
        [.., TokenTree::Ident(name), mark] if bang(mark) => Some(name.to_string()),
        [.., TokenTree::Ident(rules), mark, TokenTree::Ident(_)] if bang(mark) => {
            Some(rules.to_string())
        }
        _ => None,
    }
}

/// Whether a trailing comma may be what makes this a tuple of one: `(a,)` is not `(a)`.
fn may_be_one_tuple(group: &Group, inner: &[TokenTree], before: &[TokenTree]) -> bool {
    if group.delimiter() != Delimiter::Parenthesis {
        return false;
    }
    let call = match before.last() {
        Some(TokenTree::Ident(name)) => !KEYWORDS.contains(&name.to_string().as_str()),
        Some(TokenTree::Punct(p)) => p.as_char() == '!' && macro_name(before).is_some(),
        _ => false,
    };
    let punct =
        |c: char| move |t: &&TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == c);
    // Commas between angle brackets are at this level too, and say nothing about a tuple.
    let several = inner.iter().filter(punct(',')).count() > 1;
    let angles = inner.iter().any(|t| punct('<')(&t));
    !call && (!several || angles)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> String {
        read(source).unwrap().text
    }

    #[track_caller]
    fn same(a: &str, b: &str) {
        assert_eq!(text(a), text(b), "these mean the same:\n{a}\n{b}");
    }

    #[track_caller]
    fn differ(a: &str, b: &str) {
        assert_ne!(text(a), text(b), "these differ:\n{a}\n{b}");
    }

    #[test]
    fn comments_docs_and_white_space_do_not_count() {
        same(
            "fn f() { 1 }",
            "//! What.\n/// Does.\nfn f() {\n    // Why.\n    1 /* one */\n}",
        );
        same("fn f() {}", "#![doc = \"x\"]\n#[doc(hidden)]\nfn f() {}");
        same("x=-1;", "x = -1;");
        same("a&&!b", "a && !b");
    }

    #[test]
    fn literals_names_operators_and_attributes_count() {
        differ("fn f() { 1 }", "fn f() { 2 }");
        differ("fn f() {}", "fn g() {}");
        differ("a - b", "a + b");
        differ("a == b", "a = = b");
        differ("\"a\"", "\"a \"");
        differ("#[inline] fn f() {}", "fn f() {}");
        differ("#[cfg(unix)] fn f() {}", "fn f() {}");
        differ("{ a } b", "{ a b }");
        // The text of a literal cannot be mistaken for the tokens around it.
        differ("\"x\ni y\"", "\"x\" y");
    }

    #[test]
    fn tests_do_not_count() {
        same(
            "fn f() {}",
            "fn f() {}\n#[cfg(test)]\nmod tests { fn g() { 1 } }",
        );
        same("fn f() {}", "#[cfg(test)]\nuse a::{b, c};\nfn f() {}");
        same(
            "fn f() {}",
            "#[cfg(test)]\n#[derive(A)]\npub(crate) struct S { x: u8 }\nfn f() {}",
        );
        same(
            "fn f() {}",
            "#[cfg(test)] const S: A = A { x: 1 }; fn f() {}",
        );
        same(
            "fn f() {}",
            "#[cfg(test)] const fn g() -> u8 { 1 } fn f() {}",
        );
        same("fn f() { a; }", "fn f() { #[cfg(test)] fn g() { 1 } a; }");
        differ("fn f() {}", "#[cfg(not(test))] fn g() {} fn f() {}");
        assert_eq!(
            read("#[cfg(test)] mod tests;").unwrap().test_mods,
            ["tests"]
        );
    }

    #[test]
    fn a_test_only_field_counts_since_its_end_is_not_plain() {
        differ(
            "struct S { y: u8 }",
            "struct S { #[cfg(test)] x: u8, y: u8 }",
        );
    }

    #[test]
    fn trailing_commas_do_not_count_where_they_mean_nothing() {
        same("f(a, b)", "f(\n    a,\n    b,\n)");
        same("f(a)", "f(\n    a,\n)");
        same("[a]", "[a,]");
        same("S { a: 1 }", "S { a: 1, }");
        same("let (a, b) = x;", "let (a, b,) = x;");
        same("format!(\"x\", a)", "format!(\"x\", a,)");
        same("HashMap<A, B>", "HashMap<A, B,>");
    }

    #[test]
    fn crates_are_found_by_their_names() {
        let source = read("use arrow::array as a; #[cfg(test)] use proptest::x;").unwrap();
        assert!(source.tokens.iter().any(|token| token == "arrow"));
        assert!(!source.tokens.iter().any(|token| token == "proptest"));
    }

    #[test]
    fn the_comma_of_a_one_tuple_counts() {
        differ("(a,)", "(a)");
        differ("return (a,)", "return (a)");
        differ("-> (Map<A, B>,)", "-> (Map<A, B>)");
        differ("= (a,);", "= (a);");
        // A macro of our own may tell them apart.
        differ("ours!(a,)", "ours!(a)");
        differ(
            "macro_rules! m { ([a,]) => {} }",
            "macro_rules! m { ([a]) => {} }",
        );
    }

    #[test]
    fn a_new_module_export_or_entry_changes_nothing() {
        let before = "mod a;\npub static STAGES: &[&dyn S] = &[&a::A];\npub fn f() { 1 }";
        let after = "mod a;\npub mod b;\npub(crate) mod c;\npub use b::B;\n\
                     pub static STAGES: &[&dyn S] = &[&a::A, &b::B];\npub fn f() { 1 }";
        same(before, after);
        same(
            before,
            "mod a;\n#[cfg(test)]\npub mod b;\npub static STAGES: &[&dyn S] = &[];\npub fn f() { 1 }",
        );
        differ(before, "mod a;\npub fn f() { 2 }");
        differ("pub mod a { fn f() {} }", "");
        differ("pub static A: &[u8] = &[1];", "pub static A: &[u8] = &[2];");
        differ("use a::b;", "use a::c;");
        let exports = read("pub use a::{b, c};\npub(crate) use d;")
            .unwrap()
            .exports;
        assert_eq!(exports[0].join(" "), "pub use a :: { b , c } ;");
        assert_eq!(exports.len(), 2);
    }
}
