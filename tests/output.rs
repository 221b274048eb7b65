//! What the program prints for people and for programs.

use crate::lab::Lab;

#[test]
fn events_have_the_documented_form() {
    let lab = Lab::demo();
    let ran = lab.run();
    let first = &ran.events[0];
    assert_eq!(first["event"], "stage");
    assert_eq!(first["stage"], "numbers");
    assert_eq!(first["status"], "ran");
    assert_eq!(first["key"].as_str().unwrap().len(), 64);
    assert!(first["ms"].as_f64().unwrap() >= 0.0);
    let done = ran.done();
    assert_eq!(done["event"], "done");
    for (field, count) in [("ran", 5), ("hits", 0), ("failed", 0), ("skipped", 0)] {
        assert_eq!(done[field], count, "{field}");
    }
    assert_eq!(ran.events.len(), 6);
    assert_eq!(lab.run().with("hit").len(), 5);
}

#[test]
fn lines_when_piped_and_silence_when_asked() {
    let lab = Lab::demo();
    let printed = lab.ablate(&["run"]).good();
    let first = printed.stdout.lines().next().unwrap();
    assert!(first.starts_with("ran  numbers  "), "{first}");
    assert!(
        printed
            .stdout
            .lines()
            .last()
            .unwrap()
            .starts_with("ablate: 5 ran in ")
    );
    assert_eq!(printed.stderr, "");
    lab.edit("{ x = 2 }", "{ x = 3 }");
    let printed = lab.ablate(&["run", "--quiet"]).good();
    assert_eq!((printed.stdout.as_str(), printed.stderr.as_str()), ("", ""));
}

#[test]
fn plan_and_explain_say_why() {
    let lab = Lab::demo();
    assert_eq!(
        lab.ablate(&["plan"]).good().stdout,
        "will run  numbers: never run before\n\
         waits on  scaled[scale=1]: numbers\n\
         waits on  scaled[scale=2]: numbers\n\
         waits on  scaled[scale=3]: numbers\n\
         waits on  summary: scaled[scale=1]\n\
         ablate: 0 cached, 1 to run, 4 waiting\n"
    );
    lab.run();
    lab.edit("x * ${scale} AS x", "x * ${scale} AS y");
    assert_eq!(
        lab.ablate(&["explain", "scaled[scale=2]"]).good().stdout,
        "scaled[scale=2] will run: params.query was \"SELECT x * 2 AS x FROM t\", \
         now \"SELECT x * 2 AS y FROM t\"\n"
    );
    assert_eq!(
        lab.ablate(&["explain", "summary"]).good().stdout,
        "summary waits on scaled[scale=1]: its key is known once scaled[scale=1] has run\n  \
         ablate explain 'scaled[scale=1]'\n"
    );
    let cached = lab.ablate(&["explain", "numbers"]).good().stdout;
    assert!(cached.starts_with("numbers is cached: key "), "{cached}");
    let json = lab
        .ablate(&["explain", "scaled[scale=1]", "--json"])
        .good()
        .stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["differences"][0]["field"], "params.query");
}

#[test]
fn graphs() {
    let lab = Lab::demo();
    assert_eq!(
        lab.ablate(&["graph"]).good().stdout,
        "summary (sql)\n\
         └─ scaled (sql, 3 instances)\n   \
         └─ numbers (table)\n"
    );
    insta::assert_snapshot!(lab.ablate(&["graph", "--dot"]).good().stdout);
    insta::assert_snapshot!(lab.ablate(&["graph", "--mermaid"]).good().stdout);
    let json = |arguments: &[&str]| -> serde_json::Value {
        let printed = lab.ablate(&[&["graph", "--json"], arguments].concat());
        serde_json::from_str(&printed.good().stdout).unwrap()
    };
    let dot = lab.ablate(&["graph", "--dot"]).good().stdout;
    assert_eq!(json(&["--dot"])["dot"], dot.trim_end());
    assert!(json(&["--mermaid"])["mermaid"].is_string());
    let scaled = serde_json::json!({
        "stage": "scaled", "kind": "sql", "instances": 3,
        "reads": [{ "stage": "numbers", "port": "t" }],
    });
    assert_eq!(json(&[])["stages"][1], scaled);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let lab = Lab::demo();
    lab.run();
    let bin = env!("CARGO_BIN_EXE_ablate");
    let shell = format!("{bin} plan | head -n 1; {bin} run --json | head -n 1");
    let output = std::process::Command::new("sh")
        .args(["-c", &shell])
        .current_dir(lab.dir())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

/// Names with many axes are long: the other columns begin at one place all the same.
#[test]
fn ls_aligns_long_names() {
    let value = "x".repeat(70);
    let lab = Lab::new(&format!(
        "[axes]\na_long_name_of_an_axis = [\"{value}\", \"y\"]\n\n\
         [stage.short]\nkind = \"table\"\nrows = [{{ x = 1 }}]\n\n\
         [stage.long]\nkind = \"sql\"\ninputs = {{ t = \"short\" }}\n\
         query = \"SELECT '${{a_long_name_of_an_axis}}' AS name FROM t\"\n"
    ));
    let places = |printed: &str| -> Vec<[usize; 2]> {
        let lines = printed.lines();
        let place = |line: &str| {
            let kind = line.find(" table ").or(line.find(" sql ")).unwrap();
            let state = line
                .find(" rows ")
                .or(line.find(" has not been run"))
                .unwrap();
            [kind, state]
        };
        lines.map(place).collect()
    };
    for run in [false, true] {
        if run {
            lab.run();
        }
        let printed = lab.ablate(&["ls"]).good().stdout;
        let places = places(&printed);
        assert_eq!(places.len(), 3, "{printed}");
        assert!(places.iter().all(|place| *place == places[0]), "{printed}");
    }
}
