//! `ablate report`: one file with everything, from the store alone.

use serde_json::Value;

use crate::lab::{DEMO, Lab};

/// Tidy results of two seeds, with the paper's numbers beside them.
pub const RESULTS: &str = include_str!("pipelines/paper_results.toml");

/// A claim about them.
pub const CLAIM: &str = r#"
[claims]
tables = { results = "results" }

[claim.good]
level = "must"
text = "It is <good>."
query = "SELECT MAX(value) > 0.85 AS holds, MAX(value) AS best FROM results"
"#;

/// The data inside a page.
pub fn data(html: &str) -> Value {
    let start = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let text = &html[start..];
    serde_json::from_str(&text[..text.find("</script>").unwrap()]).unwrap()
}

/// Runs the report and reads it.
pub fn report(lab: &Lab, arguments: &[&str]) -> String {
    lab.ablate(&[&["report"], arguments].concat()).good();
    std::fs::read_to_string(lab.path("report.html")).unwrap()
}

#[test]
fn it_is_one_file_with_all_parts_and_says_so() {
    let lab = Lab::demo();
    lab.run();
    let printed = lab.ablate(&["report"]).good();
    let file = std::fs::metadata(lab.path("report.html")).unwrap().len();
    assert_eq!(
        printed.stdout,
        format!("run 1: report.html ({} kB)\n", file.div_ceil(1000))
    );
    assert_eq!(printed.stderr, "");
    let html = std::fs::read_to_string(lab.path("report.html")).unwrap();
    for part in ["summary", "results", "graph", "provenance"] {
        assert!(html.contains(&format!("<section id=\"{part}\"")), "{part}");
    }
    let data = data(&html);
    let labels: Vec<&str> = data["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["label"].as_str().unwrap())
        .collect();
    assert_eq!(
        labels,
        [
            "numbers",
            "scaled[scale=1]",
            "scaled[scale=2]",
            "scaled[scale=3]",
            "summary"
        ]
    );
    assert_eq!(data["steps"][4]["inputs"].as_array().unwrap().len(), 3);
    assert_eq!(
        data["stages"][1]["steps"],
        serde_json::json!([1, 2, 3]),
        "axes are folded"
    );
    assert!(html.contains("Content-Security-Policy"));
    // Nothing is loaded from anywhere.
    for far in ["http://", "https://", "src=\"//", "@import"] {
        let known = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!known.contains(far), "{far}");
    }
}

#[test]
fn programs_get_json_and_a_report_can_have_any_name() {
    let lab = Lab::demo();
    lab.run();
    let printed = lab
        .ablate(&["report", "--run", "1", "-o", "a.html", "--json"])
        .good();
    let printed: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(
        (&printed["run"], &printed["file"]),
        (&1.into(), &"a.html".into())
    );
    assert_eq!(
        printed["bytes"],
        std::fs::metadata(lab.path("a.html")).unwrap().len()
    );
    // No temporary name leaks out, whatever is wrong with the place.
    lab.write("file", "").write("folder/x", "");
    for (place, why) in [
        ("none/a.html", "no folder `none`"),
        ("file/a.html", "`file` is not a folder"),
        ("folder", "it is a folder"),
    ] {
        let printed = lab.ablate(&["report", "-o", place]);
        let expected = format!(
            "error: cannot write `{place}`: {why}\n |\n = help: -o names another file, in a folder that exists\n"
        );
        assert_eq!((printed.code, printed.stderr), (2, expected));
    }
}

#[test]
fn a_profile_and_settings_choose_the_run() {
    let lab = Lab::demo();
    lab.write(
        "pipeline.toml",
        &format!("{DEMO}\n[profile.small.stage.numbers]\nrows = [{{ x = 7 }}]\n"),
    );
    let set = ["--set", "numbers.rows=[{x = 9}]"];
    lab.run_with(&["--profile", "small"]);
    lab.run_with(&set);
    lab.run();
    let printed = |arguments: &[&str]| {
        let printed = lab.ablate(&[&["report"], arguments].concat());
        let size = printed.stdout.rfind(" (").unwrap_or(printed.stdout.len());
        (
            printed.code,
            printed.stdout[..size].to_owned() + &printed.stderr,
        )
    };
    let good = |text: &str| (0, format!("{text}: report.html"));
    assert_eq!(printed(&[]), good("run 3"));
    assert_eq!(
        printed(&["--profile", "small"]),
        good("run 1 (--profile small)")
    );
    let named = printed(&["-q", "--run", "1"]);
    assert_eq!(named, (0, String::new()), "a name needs no profile");
    assert_eq!(printed(&set), good("run 2 (--set numbers.rows=[{x = 9}])"));
    assert_eq!(
        printed(&["--run", "2", "--profile", "small"]),
        (
            2,
            "error: run 2 was made with --set numbers.rows=[{x = 9}], not with --profile small\n |\n \
             = help: a run that is named needs neither --profile nor --set\n"
                .to_owned()
        )
    );
    assert_eq!(
        printed(&["--run", "prev", "--profile", "small"]),
        (
            2,
            "error: the store has no second run of `pipeline.toml` made with --profile small\n |\n \
             = help: `ablate run --profile small` creates one\n \
             = help: `ablate runs` lists those that are there\n"
                .to_owned()
        )
    );
    // The same for what other tools get.
    let csv = |arguments: &[&str]| {
        let all = [&["export", "summary", "--csv"], arguments].concat();
        lab.ablate(&all)
    };
    assert_eq!(
        csv(&["--profile", "small"]).good().stdout,
        "scale,total\n1,7\n2,14\n3,21\n"
    );
    assert_eq!(csv(&set).good().stdout, "scale,total\n1,9\n2,18\n3,27\n");
    let none = csv(&["--set", "numbers.rows=[{x = 8}]"]);
    assert_eq!(
        (none.code, none.stderr.lines().next()),
        (
            2,
            Some(
                "error: the store has no run of `pipeline.toml` made with --set numbers.rows=[{x = 8}]"
            )
        )
    );
}

#[test]
fn axes_of_figures_are_named_and_classes_make_a_grid() {
    let lab = Lab::new(RESULTS);
    lab.run();
    let words = |html: &str| -> Vec<String> {
        let texts = html.split("<text").skip(1);
        let texts = texts.filter_map(|text| text.split(['>', '<']).nth(1));
        texts.map(|text| text.trim().to_owned()).collect()
    };
    let has = |html: &str, word: &str| words(html).iter().any(|found| found == word);
    let html = report(&lab, &[]);
    assert!(has(&html, "column") && has(&html, "share"), "bars");
    assert!(!has(&html, "row"));
    // Rows and columns of the same names: who was taken for whom.
    let mut rows = String::new();
    for row in ["cat", "dog", "bird"] {
        for col in ["cat", "dog", "bird", "any"] {
            rows.push_str(&format!(
                "{{ table = \"taken\", row = \"{row}\", col = \"{col}\", value = 0.25, n = 4 }},"
            ));
        }
    }
    let pipeline = format!(
        "[pipeline]\nname = \"taken\"\n\n[stage.taken]\nkind = \"table\"\nrows = [{rows}]\n"
    );
    let lab = Lab::new(&pipeline);
    lab.run();
    let html = report(&lab, &[]);
    assert!(has(&html, "column") && has(&html, "row"), "a grid");
    assert_eq!(
        words(&html).iter().filter(|word| *word == "0.25").count(),
        12
    );
}

#[test]
fn the_papers_numbers_are_never_taken_for_ours() {
    // The stage that reads them was not asked for, so that nothing in the run reads them.
    let lab = Lab::new(include_str!("pipelines/papers_numbers.toml"));
    lab.run_with(&["paper"]);
    let html = report(&lab, &[]);
    assert_eq!(data(&html)["cells"], serde_json::json!([]));
    assert!(html.contains("1 row · entered in the pipeline file"));
    lab.ablate(&["export", "--mlflow"]).good();
    let metrics = lab.files("../mlruns");
    assert!(
        metrics
            .iter()
            .all(|file| !file.to_string_lossy().contains("/metrics/")),
        "{metrics:?}"
    );
}

#[test]
fn claims_are_judged_by_their_own_pipeline() {
    let lab = Lab::new(RESULTS);
    lab.write("claims.toml", CLAIM).write("other.toml", DEMO);
    lab.ablate(&["-f", "other.toml", "run"]).good();
    let printed = lab.ablate(&["report"]);
    assert_eq!(
        (printed.code, printed.stderr.lines().next()),
        (2, Some("error: the store has no run of `pipeline.toml`"))
    );
    let printed = lab.ablate(&["report", "--run", "1"]).good();
    let why = "ablate: the claims cannot be judged: run 1 is of other.toml, not of pipeline.toml (-f names the file)\n";
    assert!(printed.stderr.ends_with(why), "{}", printed.stderr);
    let printed = lab.ablate(&["-f", "other.toml", "report"]).good();
    assert!(!printed.stderr.contains("not of"), "{}", printed.stderr);
}

#[test]
fn numbers_of_small_data_are_not_shaded() {
    let small = RESULTS
        .replace("\"paper_value\"]", "\"paper_value\", \"profile\"]")
        .replace(" },\n", ", profile = \"smoke\" },\n");
    let lab = Lab::new(&small);
    lab.run();
    let html = report(&lab, &[]);
    assert!(html.contains("<span class=\"difference\">+0.030</span>"));
    assert!(!html.contains("<td class=\"shade-"), "no colour");
    assert!(!html.contains("Differences from the paper's numbers: <span"));
    assert!(html.contains("Not the paper's data: the profile smoke"));
    assert!(html.contains("The profile smoke does not use the paper&#x27;s data."));
    let printed = lab.ablate(&["export", "results", "--markdown"]).good();
    let first = printed.stdout.lines().next();
    assert_eq!(
        first,
        Some(
            "**accuracy (P, profile smoke: not the paper's data, 95% intervals by Student's t over seeds)**"
        )
    );
    // A run that was asked for by that name is no other.
    let lab = Lab::new(&format!("{RESULTS}\n[profile.smoke]\n"));
    lab.run_with(&["--profile", "smoke"]);
    assert!(!report(&lab, &["--profile", "smoke"]).contains("<td class=\"shade-"));
    // Real data, less of it: the profile is named, and colours are back.
    let lab = Lab::new(&small.replace("\"smoke\"", "\"cpu\""));
    lab.run();
    let html = report(&lab, &[]);
    assert!(html.contains("<td class=\"shade-1\">") && html.contains("profile cpu"));
    assert!(html.contains("Differences from the paper's numbers: <span"));
}

#[test]
fn a_past_run_is_shown_as_it_was() {
    let lab = Lab::demo();
    lab.run();
    lab.edit("{ x = 2 }", "{ x = 5 }");
    lab.run();
    let data = data(&report(&lab, &["--run", "1"]));
    let rows = data["steps"][0]["params"]["rows"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(rows, "[{ x = 1 }, { x = 2 }]");
    // A pipeline file that is gone or broken takes the claims with it, and nothing else.
    lab.write("pipeline.toml", "[stage");
    let printed = lab.ablate(&["report", "--run", "2", "-q"]).good();
    assert!(
        printed
            .stderr
            .starts_with("ablate: the claims cannot be judged: not valid TOML"),
        "{}",
        printed.stderr
    );
    let printed = lab.ablate(&["report", "--run", "7"]);
    assert_eq!(
        (printed.code, printed.stderr.lines().next()),
        (2, Some("error: no run `7`"))
    );
}

#[test]
fn seeds_are_mean_and_interval_and_the_papers_number_is_beside() {
    let lab = Lab::new(RESULTS);
    lab.run();
    let html = report(&lab, &[]);
    let data = data(&html);
    let cell = &data["cells"][0];
    assert_eq!(
        (&cell["row"], &cell["col"]),
        (&"lstm".into(), &"clean".into())
    );
    assert!((cell["mean"].as_f64().unwrap() - 0.85).abs() < 1e-12);
    assert_eq!(cell["values"].as_array().unwrap().len(), 2);
    assert_eq!(cell["executions"], 2);
    assert_eq!(cell["method"], "Student's t over seeds");
    assert!(html.contains("95% intervals by Student&#x27;s t over seeds"));
    assert!(
        html.contains("0.850 <span class=\"sd\">[0.215, 1.485]</span>"),
        "mean and interval"
    );
    assert!(
        html.contains("<td class=\"shade-1\"><button"),
        "3 points off is shaded"
    );
    assert!(html.contains("<span class=\"difference\">+0.030</span>"));
    assert!(
        html.contains("<td class=\"shade-0\"><button"),
        "as the paper says"
    );
    assert!(
        html.contains("<td class=\"none\">"),
        "a cell that nobody measured"
    );
    assert!(
        html.contains("the paper&#x27;s number") || html.contains("the paper's number"),
        "a figure with strokes"
    );
}

#[test]
fn figures_are_drawn_as_the_file_asks() {
    let lab = Lab::new(DEMO);
    lab.run();
    lab.write(
        "figures.toml",
        r#"
[figure.totals]
table = "summary"
kind = "lines"
x = "scale"
y = "total"
title = "Totals <by> scale"

[figure.all]
table = "scaled"
kind = "bars"
query = "SELECT scale, SUM(x) AS x FROM t GROUP BY scale ORDER BY scale"
x = "scale"
y = "x"

[figure.gone]
table = "nothing"
kind = "histogram"
x = "x"

[figure.wrong]
table = "summary"
kind = "points"
x = "scale"
y = "totals"
"#,
    );
    let printed = lab.ablate(&["report"]).good();
    assert_eq!(
        printed.stderr,
        "ablate: figure `gone` is not drawn: run 1 has no stage `nothing`\n\
         ablate: figure `wrong` is not drawn: its table has no column `totals` of numbers; it has scale, total\n"
    );
    let html = std::fs::read_to_string(lab.path("report.html")).unwrap();
    assert!(html.contains("<figcaption>Totals &lt;by&gt; scale</figcaption>"));
    assert_eq!(html.matches("class=\"chart scroll\"").count(), 2);
    assert!(html.contains("<summary>2 requested figures are not drawn</summary>"));
    assert!(html.contains("run 1 has no stage `nothing`</li>"));
    // Many are not all named on the terminal, and one that is for another profile is not missed.
    let mut many = String::from(
        "[figure.other]\ntable = \"gone\"\nkind = \"histogram\"\nx = \"x\"\nprofiles = [\"cpu\"]\n",
    );
    for n in 0..6 {
        many.push_str(&format!(
            "\n[figure.f{n}]\ntable = \"gone\"\nkind = \"histogram\"\nx = \"x\"\n"
        ));
    }
    lab.write("figures.toml", &many);
    let printed = lab.ablate(&["report"]).good();
    let last = printed.stderr.lines().next_back();
    assert_eq!(printed.stderr.lines().count(), 5, "{}", printed.stderr);
    assert_eq!(
        last,
        Some("ablate: 2 more figures are not drawn: the page says why")
    );
}

#[test]
fn mistakes_in_the_figures_are_shown_where_they_are() {
    let lab = Lab::demo();
    lab.run();
    lab.write(
        "figures.toml",
        "[figure.a]\ntable = \"summary\"\nkind = \"line\"\nx = 3\n\n[figure.b]\ntable = \"summary\"\nkind = \"images\"\ncolumns = [\"x\"]\n\n[figures]\n",
    );
    let printed = lab.ablate(&["report"]);
    assert_eq!(printed.code, 2);
    insta::assert_snapshot!(printed.stderr);
}
