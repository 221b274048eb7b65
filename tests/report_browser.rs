//! Reports in a real browser: what a person sees, clicks and types. Skipped, with a word, where
//! Chromium is not installed.

use std::path::Path;

use crate::browser::Browser;
use crate::lab::Lab;
use crate::report::{RESULTS, report};

/// The quick start of the repository, in its small profile or whole.
fn quick_start(arguments: &[&str]) -> Lab {
    let root = env!("CARGO_MANIFEST_DIR");
    let file = |name: &str| std::fs::read_to_string(format!("{root}/{name}")).unwrap();
    let lab = Lab::new(&file("pipeline.toml"));
    lab.write("claims.toml", &file("claims.toml"));
    lab.ablate(&[&["run"], arguments].concat()).good();
    lab
}

/// Copies a screenshot to docs, where somebody asked for it.
fn keep(name: &str) {
    if std::env::var_os("UPDATE_SCREENSHOTS").is_some() {
        let folder = match std::env::var_os("ABLATE_SCREENSHOTS") {
            Some(folder) => folder.into(),
            None => Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots"),
        };
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/screenshots");
        std::fs::create_dir_all(&docs).unwrap();
        let name = format!("{name}.png");
        std::fs::copy(folder.join(&name), docs.join(&name)).unwrap();
    }
}

#[test]
fn the_quick_start_can_be_seen_filtered_and_traced() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let lab = quick_start(&[]);
    report(&lab, &[]);
    browser.media("light", "screen");
    browser.open_file(&lab.path("report.html"));
    browser.screenshot("report-summary");
    keep("report-summary");

    // Tables and figures are there and take up room.
    let shown = "[...document.querySelectorAll('SELECTOR')].filter(e => e.getBoundingClientRect().width > 40 && e.getBoundingClientRect().height > 20).length";
    let count = |browser: &mut Browser, selector: &str| {
        browser.number(&shown.replace("SELECTOR", selector))
    };
    assert_eq!(count(&mut browser, ".claims tbody tr"), 6.0);
    assert!(count(&mut browser, "table.paper") >= 4.0);
    assert!(count(&mut browser, ".chart svg") >= 4.0);
    assert!(count(&mut browser, ".stage") >= 15.0, "stages of the graph");

    // A click on a cell shows how it was made, down to the data; Escape goes back to the cell.
    browser.click("button[data-cell='2']");
    browser.until("document.getElementById('panel').open");
    let title = browser.text("document.getElementById('panel-title').textContent");
    assert_eq!(title, "accuracy: lstm, swap-1");
    let body = browser.text("document.getElementById('panel-body').innerText");
    assert!(
        body.contains("accuracy of lstm-swap") && body.contains("lstm-swap[n=1]"),
        "{body}"
    );
    assert!(
        !body.contains("lstm-swap[n=3]") || body.contains("And put into the table by"),
        "{body}"
    );
    browser.screenshot("report-derivation");
    browser.press("Escape");
    browser.until(
        "!document.getElementById('panel').open && document.activeElement.dataset.cell === '2'",
    );

    // A filter changes the list, and so does the search.
    let found = "Number(document.getElementById('ex-count').textContent.split(' ')[0])";
    let all = browser.number(found);
    browser.set("#ex-outcome", "success");
    let fooled = browser.number(found);
    assert!(0.0 < fooled && fooled < all, "{fooled} of {all}");
    assert_eq!(
        browser.number("document.querySelectorAll('#ex-list .example').length"),
        fooled.min(20.0)
    );
    assert!(
        browser.number("document.querySelectorAll('#ex-list ins').length") > 0.0,
        "changed words are marked"
    );
    browser.ask("document.getElementById('examples').scrollIntoView()");
    browser.screenshot("report-examples");
    keep("report-examples");
    browser.set("#ex-search", "no review has this");
    assert_eq!(browser.number(found), 0.0);
    browser.set("#ex-search", "");
    browser.set("#ex-class", "0");
    let negative = browser.number(found);
    assert!(
        0.0 < negative && negative < fooled,
        "{negative} of {fooled}"
    );

    // The graph, by keyboard; a folded stage shows its instances.
    browser.ask("[...document.querySelectorAll('.stage')].find(e => e.getAttribute('aria-label').startsWith('svm-swap')).focus()");
    browser.press("Enter");
    browser.until("document.getElementById('panel').open");
    let title = browser.text("document.getElementById('panel-title').textContent");
    assert_eq!(title, "svm-swap: 3 instances");
    browser.press("Escape");
    browser.ask("document.getElementById('graph').scrollIntoView()");
    browser.screenshot("report-graph");
    browser.ask("document.getElementById('figures').scrollIntoView()");
    browser.screenshot("report-figures");

    // Provenance of any result.
    browser.set("#prov-name", "accuracy");
    browser.click("#prov-find button");
    browser.until("document.querySelectorAll('#prov-tree details').length > 1");

    // Dark, on a telephone, and on paper.
    browser.media("dark", "screen");
    let dark = browser.text("getComputedStyle(document.body).backgroundColor");
    assert_eq!(dark, "rgb(20, 23, 26)");
    browser.screenshot("report-dark");
    browser.resize(390, 800);
    // The page itself never scrolls sideways: what is wide scrolls inside it.
    let wide = browser.text("document.documentElement.scrollWidth <= document.documentElement.clientWidth ? '' : [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, .top nav, svg, dialog') && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 100)).join('\\n') || 'something'");
    assert_eq!(wide, "");
    browser.ask("scrollTo(0, 0)");
    browser.screenshot("report-narrow");
    browser.media("light", "print");
    assert_eq!(
        browser.text("getComputedStyle(document.querySelector('.top')).display"),
        "none"
    );
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
fn what_data_says_is_never_run() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let evil = "<script>document.title='owned'</script> <img src=x onerror=document.title='owned'>";
    let mut rows = String::from("review,stars\n");
    for n in 0..60 {
        let (word, star) = if n % 2 == 0 { ("good", 1) } else { ("bad", 0) };
        rows.push_str(&format!(
            "\"{evil} {word} {word} film number{n} \"\"quoted\"\" {word}\",{star}\n"
        ));
    }
    let lab = Lab::new(
        r#"
[pipeline]
name = "<b>hostile</b> \"pipeline\""

[axes]
name = ["it's \"quoted\" <i>", "</script><script>document.title='owned'</script>"]

[stage.reviews]
kind = "dataset"
source = { csv = "reviews.csv", text = "review", label = "stars" }
split = [{ of = "train", into = "test", share = 0.5 }]

[stage.tokens]
kind = "tokenize"
inputs = { rows = "reviews" }
scheme = "whitespace"

[stage.bayes]
kind = "train"
inputs = { rows = "tokens" }
model = "naive-bayes"

[stage.swap]
kind = "attack"
inputs = { weights = "bayes", rows = "tokens", vocab = "tokens.vocab", bayes = "bayes" }
attack = "swap"
n = 3

[stage.named]
kind = "table"
rows = [{ table = "${name}", row = "<u>r</u>", col = "c\"", value = 0.5, text = "${name}" }, { table = "${name}", row = "s", col = "d", value = 0.25, text = "x" }]
"#,
    );
    lab.write("reviews.csv", &rows);
    lab.ablate(&["run"]).good();
    let html = report(&lab, &[]);
    assert!(!html.contains("<script>document.title"), "it is escaped");
    browser.open_file(&lab.path("report.html"));
    let title = browser.text("document.title");
    assert_eq!(title, "<b>hostile</b> \"pipeline\", run 1");
    // Exactly our two scripts, and no picture that a review brought along.
    assert_eq!(browser.number("document.scripts.length"), 2.0);
    assert_eq!(
        browser.number("document.querySelectorAll('img, #main b script').length"),
        0.0
    );
    let first = browser.text("document.querySelector('#ex-list .example').innerText");
    assert!(
        first.contains("<script>document.title='owned'</script>"),
        "it is shown: {first}"
    );
    assert!(browser.number("document.querySelectorAll('#ex-list ins, #ex-list del').length") > 0.0);
    browser.ask("document.querySelector('.stage[aria-label^=named]').dispatchEvent(new MouseEvent('click', { bubbles: true }))");
    browser.until("document.getElementById('panel').open");
    let names = browser.text("document.getElementById('panel-body').innerText");
    assert!(
        names.contains("named[name=\"it's \\\"quoted\\\" <i>\"]"),
        "{names}"
    );
    browser.press("Escape");
    browser.click("button[data-cell='0']");
    browser.until("document.getElementById('panel').open");
    browser.screenshot("report-hostile");
    assert_eq!(browser.text("document.title"), title);
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
fn headings_labels_and_contrast_are_sound() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let lab = Lab::new(RESULTS);
    lab.run();
    report(&lab, &[]);
    for scheme in ["light", "dark"] {
        browser.media(scheme, "screen");
        browser.open_file(&lab.path("report.html"));
        let problems = browser.text(include_str!("browser/basics.js"));
        assert_eq!(problems, "", "{scheme}");
        assert_eq!(browser.errors(), Vec::<String>::new());
    }
}

#[test]
fn ten_thousand_examples_and_a_thousand_stages_stay_usable() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let lab = crate::report_large::large();
    report(&lab, &[]);
    browser.open_file(&lab.path("report.html"));
    browser.until("document.querySelectorAll('#ex-list .example').length === 20");
    let count = browser.text("document.getElementById('ex-count').textContent");
    assert!(
        count.starts_with("10000 of 10000 examples of attack"),
        "{count}"
    );
    browser.set("#ex-search", "9999");
    assert_eq!(
        browser.number("document.querySelectorAll('#ex-list .example').length"),
        1.0
    );
    assert!(browser.number("document.querySelectorAll('.stage').length") >= 1000.0);
    browser.set("#graph-name", "link0900");
    browser.click("#graph-find button");
    browser.until("document.activeElement.classList.contains('found')");
    browser.press("Enter");
    browser.until("document.getElementById('panel').open");
    browser.screenshot("report-large");
    assert_eq!(browser.errors(), Vec::<String>::new());
}
