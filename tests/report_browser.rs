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
    assert!(count(&mut browser, ".stage") >= 13.0, "stages of the graph");

    let first = browser.text("document.querySelector('.figures .chart').textContent");
    assert!(
        first.split_whitespace().any(|word| word == "adversary"),
        "{first}"
    );

    // A click on a cell shows how it was made, down to the data; Escape goes back to the cell.
    browser.click("button[data-cell='2']");
    browser.until("document.getElementById('panel').open");
    let title = browser.text("document.getElementById('panel-title').textContent");
    assert_eq!(title, "accuracy: lstm, swap-1");
    let body = browser.text("document.getElementById('panel-body').innerText");
    assert!(
        body.contains("accuracy of attacked") && body.contains("model=lstm,adversary=swap-1"),
        "{body}"
    );
    assert!(
        !body.contains("model=lstm,adversary=swap-3") || body.contains("Put into the table by"),
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
    browser.set("#ex-outcome", "0");
    let fooled = browser.number(found);
    assert!(0.0 < fooled && fooled < all, "{fooled} of {all}");
    assert_eq!(
        browser.text("[...new Set([...document.querySelectorAll('#ex-list .verdict')].map(e => e.innerText))].join()"),
        "attack succeeded"
    );
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
    browser.ask("[...document.querySelectorAll('.stage')].find(e => e.getAttribute('aria-label').startsWith('waves-attacked')).focus()");
    browser.press("Enter");
    browser.until("document.getElementById('panel').open");
    let title = browser.text("document.getElementById('panel-title').textContent");
    assert_eq!(title, "waves-attacked: 8 instances");
    browser.press("Escape");
    // Tab stops at one stage; arrows go on from there.
    let stops = "document.querySelectorAll('.stage[tabindex=\"0\"]').length";
    assert_eq!(browser.number(stops), 1.0);
    browser.ask("[...document.querySelectorAll('.stage')].find(e => e.getAttribute('aria-label').startsWith('reviews')).focus()");
    let focused = "document.activeElement.getAttribute('aria-label').split(',')[0]";
    browser.press("ArrowRight");
    assert_eq!(browser.text(focused), "tokens");
    browser.press("ArrowLeft");
    assert_eq!(browser.text(focused), "reviews");
    assert_eq!(browser.number(stops), 1.0);
    browser.ask("document.getElementById('graph').scrollIntoView()");
    browser.screenshot("report-graph");
    browser.ask("document.getElementById('figures').scrollIntoView()");
    browser.screenshot("report-figures");

    // What an auditor looks at first, on a page with everything.
    assert_eq!(browser.text(include_str!("browser/basics.js")), "");

    // Provenance of any result.
    browser.set("#prov-name", "accuracy[variant=base]");
    browser.click("#prov-find button");
    browser.until("document.querySelectorAll('#prov-tree details').length > 1");

    // Dark, on a telephone, and on paper.
    browser.media("dark", "screen");
    let dark = browser.text("getComputedStyle(document.body).backgroundColor");
    assert_eq!(dark, "rgb(20, 23, 26)");
    assert_eq!(browser.text(include_str!("browser/basics.js")), "");
    browser.screenshot("report-dark");
    browser.resize(390, 800);
    // The page itself never scrolls sideways: what is wide scrolls inside it.
    let wide = browser.text("document.documentElement.scrollWidth <= document.documentElement.clientWidth ? '' : [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, .top nav, svg, dialog') && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 100)).join('\\n') || 'something'");
    assert_eq!(wide, "");
    browser.ask("scrollTo(0, 0)");
    browser.screenshot("report-narrow");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
fn on_paper_nothing_is_cut_in_silence() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    // Without the variants of its ablation: of more than 200 steps a page prints the first 200, and says so.
    let small = ["--profile", "smoke", "--set", "axes.variant=[\"base\"]"];
    let lab = quick_start(&small);
    report(&lab, &small);
    browser.media("dark", "print");
    browser.resize(700, 1000);
    browser.open_file(&lab.path("report.html"));
    browser.ask("window.dispatchEvent(new Event('beforeprint'))");
    let display =
        |selector: &str| format!("getComputedStyle(document.querySelector({selector:?})).display");
    assert_eq!(browser.text(&display(".top")), "none");
    let paper = browser.text("getComputedStyle(document.body).backgroundColor");
    assert_eq!(paper, "rgb(255, 255, 255)", "also of a dark page");
    // Every stage of the graph is on a sheet that fits the page, whole.
    let stages = browser.number("document.querySelectorAll('#graph-view .stage').length");
    assert_eq!(
        browser.number("new Set([...document.querySelectorAll('.sheet .stage')].filter(e => { const s = e.closest('svg').getBoundingClientRect(), r = e.querySelector('rect').getBoundingClientRect(); return s.right <= innerWidth && r.left >= s.left && r.right <= s.right + 1 && r.top >= s.top && r.bottom <= s.bottom + 1; }).map(e => e.dataset.stage)).size"),
        stages
    );
    // So is the provenance, with whole digests.
    let steps = browser.number("document.querySelectorAll('#prov-printed li').length");
    assert_eq!(steps, browser.number("data.steps.length"));
    assert!(
        browser
            .ask("data.steps.every(s => s.outputs.every(o => document.getElementById('prov-printed').textContent.includes(o.digest)))")
            .as_bool()
            .unwrap()
    );
    // Of examples there is a page, and it says so.
    let printed = browser.text("document.getElementById('ex-printed').innerText");
    let found = browser.text("document.getElementById('ex-count').textContent");
    let found = found.split(' ').next().unwrap();
    let attacks = browser.number("data.examples.tables.length");
    assert_eq!(
        printed,
        format!(
            "Examples 1 to 20 of {found} are printed, of one attack of {attacks}; the page has them all."
        )
    );
    let wide = browser.text("[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll') && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 100)).join('\\n')");
    assert_eq!(wide, "", "nothing runs off the paper");
    for part in ["summary", "figures", "examples", "graph", "provenance"] {
        browser.ask(&format!(
            "document.getElementById('{part}').scrollIntoView()"
        ));
        browser.screenshot(&format!("paper-{part}"));
    }
    browser.print("report-printed");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
fn names_fit_their_boxes_and_lines_go_round_them() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let mut pipeline = String::from("[pipeline]\nname = \"wide\"\n\n[axes]\nn = [1, 2, 3]\n");
    let names = ["W".repeat(60), "il_".repeat(30), "m".repeat(21)];
    for name in &names {
        pipeline.push_str(&format!(
            "\n[stage.{name}]\nkind = \"table\"\nrows = [{{ x = 1 }}]\n"
        ));
    }
    for n in 0..8 {
        let before = if n == 0 {
            &names[1]
        } else {
            &format!("s{}", n - 1)
        };
        pipeline.push_str(&format!(
            "\n[stage.s{n}]\nkind = \"sql\"\ninputs = {{ t = \"{before}\", far = \"{}\" }}\nquery = \"SELECT t.x + ${{n}} AS x FROM t JOIN far ON far.x < t.x + 100\"\n",
            names[0]
        ));
    }
    let lab = Lab::new(&pipeline);
    lab.ablate(&["run"]).good();
    report(&lab, &[]);
    browser.open_file(&lab.path("report.html"));
    let over = browser.text("[...document.querySelectorAll('.stage text')].filter(t => t.getBBox().x + t.getBBox().width > t.parentNode.querySelector('rect').width.baseVal.value - 4).map(t => t.textContent).join('\\n')");
    assert_eq!(over, "", "text stays inside");
    // Points along every line, against every box.
    let through = browser.text("(() => { const boxes = [...document.querySelectorAll('.stage rect')].map(r => r.getBoundingClientRect()); const bad = []; \
        for (const path of document.querySelectorAll('#graph-view .edges path')) { const m = path.getScreenCTM(); const long = path.getTotalLength(); \
        for (let k = 1; k < 50; k++) { const p = path.getPointAtLength(long * k / 50).matrixTransform(m); \
        if (boxes.some(b => b.left + 1 < p.x && p.x < b.right - 1 && b.top + 1 < p.y && p.y < b.bottom - 1)) bad.push(path.getAttribute('d')); } } return bad.join('\\n'); })()");
    assert_eq!(through, "", "no line runs through a box");
    browser.ask("document.getElementById('graph').scrollIntoView()");
    browser.screenshot("report-graph-wide");
    // The stage that is looked at shows its lines.
    browser.ask("document.querySelector('.stage').focus()");
    assert!(browser.number("document.querySelectorAll('.edges .lit').length") > 0.0);
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
fn what_data_says_is_never_run() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    // Also signs that turn text around or cannot be seen.
    let evil = "<script>document.title='owned'</script> <img src=x onerror=document.title='owned'> \u{202E}gpj\u{200B}.exe";
    let mut rows = String::from("review,stars\n");
    for n in 0..60 {
        let (word, star) = if n % 2 == 0 { ("good", 1) } else { ("bad", 0) };
        rows.push_str(&format!(
            "\"{evil} {word} {word} film number{n} \"\"quoted\"\" {word}\",{star}\n"
        ));
    }
    let lab = Lab::new(include_str!("pipelines/hostile.toml"));
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
    assert!(
        first.contains("⟨U+202E⟩gpj⟨U+200B⟩.exe"),
        "so is what turns text: {first}"
    );
    assert_eq!(
        browser.text("getComputedStyle(document.querySelector('#ex-list bdi')).unicodeBidi"),
        "isolate"
    );
    let turned = "/[\\u202a-\\u202e\\u2066-\\u2069\\u200b]/.test(document.body.innerText)";
    assert!(
        !browser.ask(turned).as_bool().unwrap(),
        "nowhere on the page"
    );
    assert!(browser.number("document.querySelectorAll('#ex-list ins, #ex-list del').length") > 0.0);
    browser.ask("document.querySelector('.stage[aria-label^=named]').dispatchEvent(new MouseEvent('click', { bubbles: true }))");
    browser.until("document.getElementById('panel').open");
    let names = browser.text("document.getElementById('panel-body').innerText");
    assert!(
        names.contains("named[name=\"it's \\\"quoted\\\" <i>⟨U+202E⟩\"]"),
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

/// How sure a number is can be seen: differences of an ablation, and a claim in every world, in a file and served.
#[test]
fn intervals_of_ablations_and_worlds_are_drawn() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let lab = Lab::new(include_str!("pipelines/worlds.toml"));
    lab.write("claims.toml", include_str!("pipelines/worlds.claims.toml"));
    lab.ablate(&["multiverse", "--quiet"]).good();
    // As written last, so that it is the run that is shown.
    lab.run();
    lab.ablate(&["ablation"]).good();
    report(&lab, &[]);
    browser.media("light", "screen");
    browser.open_file(&lab.path("report.html"));
    let look = |browser: &mut Browser| {
        let count = |browser: &mut Browser, selector: &str| {
            browser.number(&format!("document.querySelectorAll('{selector}').length"))
        };
        // One number differs between the variants: a dot for each, an interval for those that are not the base.
        assert_eq!(count(browser, "#ablations svg.intervals circle"), 3.0);
        assert_eq!(
            count(
                browser,
                "#ablations svg.intervals line:not([stroke-dasharray])"
            ),
            2.0
        );
        // Below, which is as written, above: from left to right, higher and higher, each in its colour.
        let dots = "[...document.querySelectorAll('#worlds svg.curve .dot')]";
        let titles = browser.text(&format!(
            "{dots}.map(e => e.querySelector('title').textContent.split(':')[0]).join()"
        ));
        assert_eq!(titles, "low,as written,high");
        let places = |browser: &mut Browser, at: &str| {
            browser.ask(&format!(
                "{dots}.map(e => Number(e.querySelector('circle').getAttribute('{at}')))"
            ))
        };
        let (x, y) = (places(browser, "cx"), places(browser, "cy"));
        let numbers = |v: &serde_json::Value| -> Vec<f64> {
            v.as_array()
                .unwrap()
                .iter()
                .map(|v| v.as_f64().unwrap())
                .collect()
        };
        assert!(numbers(&x).is_sorted() && numbers(&y).iter().rev().is_sorted());
        let colour =
            |n: usize| format!("getComputedStyle({dots}[{n}].querySelector('circle')).fill");
        let colours: Vec<String> = (0..3).map(|n| browser.text(&colour(n))).collect();
        assert!(
            colours[0] != colours[1] && colours[1] == colours[2],
            "{colours:?}"
        );
        assert_eq!(count(browser, "#worlds svg.curve .taken"), 2.0);
        assert_eq!(browser.errors(), Vec::<String>::new());
    };
    look(&mut browser);
    browser.ask("document.getElementById('worlds').scrollIntoView()");
    browser.screenshot("report-worlds");
    let server = crate::serve::Server::start(&lab);
    let last = lab
        .ablate(&["runs", "--limit", "1", "--json"])
        .good()
        .stdout;
    let last: serde_json::Value = serde_json::from_str(last.trim()).unwrap();
    browser.open(&format!("http://{}/run/{}", server.host, last["run"]));
    look(&mut browser);
}
