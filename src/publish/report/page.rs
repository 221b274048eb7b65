//! Templates to pages. One script and one style sheet, both our own and inside the page; a
//! content security policy lets nothing else run, load or be sent.

use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value, context, escape_formatter};
use sha2::{Digest, Sha256};

use crate::visible::visible;

const STYLE: &str = concat!(
    include_str!("pages/page.css"),
    include_str!("pages/parts.css"),
);
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("pages/base.js"),
    include_str!("pages/derivation.js"),
    include_str!("pages/examples.js"),
    include_str!("pages/graph.js"),
    include_str!("pages/tables.js"),
    include_str!("pages/live.js"),
    include_str!("pages/print.js"),
);

const TEMPLATES: [(&str, &str); 6] = [
    ("compare.html", include_str!("pages/compare.html")),
    ("problem.html", include_str!("pages/problem.html")),
    ("runs.html", include_str!("pages/runs.html")),
    ("frame.html", include_str!("pages/frame.html")),
    ("report.html", include_str!("pages/report.html")),
    ("parts.html", include_str!("pages/parts.html")),
];

static PAGES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut pages = Environment::new();
    // A name that is misspelt in a template is found by every test that renders it.
    pages.set_undefined_behavior(UndefinedBehavior::Strict);
    // Every value of every page goes through here; only our own drawings are marked safe.
    pages.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => {
            escape_formatter(out, state, &Value::from(visible(text).as_ref()))
        }
        _ => escape_formatter(out, state, value),
    });
    for (name, text) in TEMPLATES {
        pages
            .add_template(name, text)
            .expect("templates are written here");
    }
    pages
});

/// What a page may do: run our script, use our styles, show pictures that it carries itself.
/// A page that is served may also ask its server.
pub static POLICY: LazyLock<String> = LazyLock::new(|| policy("'none'"));

/// The same for pages that are served.
pub static SERVED_POLICY: LazyLock<String> = LazyLock::new(|| policy("'self'"));

fn policy(connect: &str) -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; \
         connect-src {connect}; base-uri 'none'; form-action {connect}",
        hash(SCRIPT),
        hash(STYLE)
    )
}

/// A value for a template.
pub fn value(value: impl serde::Serialize) -> Value {
    Value::from(Serde(value))
}

/// Renders a page. `data` is JSON that is safe to embed.
pub fn render(template: &str, data: &str, served: bool, parts: Value) -> String {
    let frame = context! {
        policy => if served { &*SERVED_POLICY } else { &*POLICY },
        style => Value::from_safe_string(STYLE.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        data => Value::from_safe_string(data.to_owned()),
        served => served,
        version => env!("CARGO_PKG_VERSION"),
        ..parts
    };
    let template = PAGES
        .get_template(template)
        .expect("templates are listed here");
    template
        .render(frame)
        .expect("a template gets what it names")
}
