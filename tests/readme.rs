//! The tour and the quick start are run: every `$ ablate …` of docs/tour.md and docs/quick-start.md prints what it says.
//! `UPDATE_README=1 cargo test readme` writes the output anew.

use std::path::Path;

use crate::lab::Lab;

#[test]
fn the_tour_prints_what_it_says() {
    let root = env!("CARGO_MANIFEST_DIR");
    let tour = std::fs::read_to_string(format!("{root}/docs/tour.md")).unwrap();
    let pipeline = std::fs::read_to_string(format!("{root}/docs/tour/pipeline.toml")).unwrap();
    let lab = Lab::new(&pipeline);
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_ablate"))
        .parent()
        .unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut commands = 0;
    let mut updated = tour.clone();
    for block in tour.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for step in block.split("$ ").skip(1) {
            let (command, expected) = step.split_once('\n').unwrap();
            let output = std::process::Command::new("sh")
                .args(["-c", &format!("{command} 2>&1")])
                .current_dir(lab.dir())
                .env("PATH", &path)
                .env("NO_COLOR", "1")
                .output()
                .unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            commands += 1;
            if std::env::var_os("UPDATE_README").is_some() {
                updated = updated.replace(step, &format!("{command}\n{printed}"));
                continue;
            }
            assert_eq!(lines(&printed), lines(expected), "$ {command}\n{printed}");
        }
    }
    if updated != tour {
        std::fs::write(format!("{root}/docs/tour.md"), updated).unwrap();
    }
    assert!(commands >= 7, "the tour has {commands} commands");
}

/// Lines in any order, because stages run side by side, and with times left out.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(without_times).collect();
    lines.sort();
    lines
}

fn without_times(line: &str) -> String {
    let words: Vec<&str> = line.trim_end().split(' ').collect();
    let mut kept = Vec::new();
    for (n, word) in words.iter().enumerate() {
        let unit = words
            .get(n + 1)
            .is_some_and(|next| *next == "ms" || *next == "s");
        kept.push(if unit && word.parse::<f64>().is_ok() {
            "[time]"
        } else {
            word
        });
    }
    kept.join(" ").replace("[time] s", "[time] ms")
}

/// The numbers of docs/quick-start.md are those that come out, up to what another family of
/// processors may round otherwise: 3 points. Its verdicts are the same, and a second run is cached.
#[test]
fn the_quick_start_prints_what_its_page_says() {
    let root = env!("CARGO_MANIFEST_DIR");
    let file = |name: &str| std::fs::read_to_string(format!("{root}/{name}")).unwrap();
    let lab = Lab::new(&file("pipeline.toml"));
    lab.write("claims.toml", &file("claims.toml"));
    assert_eq!(lab.ablate(&["run"]).code, 0);
    crate::lock::is_as_committed(&lab, &[], Path::new(root));
    let again = lab.ablate(&["run"]);
    assert!(again.stdout.contains("cached"), "{}", again.stdout);
    assert!(!again.stdout.contains("ran  "), "{}", again.stdout);
    let page = file("docs/quick-start.md");
    let block = page.split("```text\n").nth(1).unwrap();
    let block = block.split("```").next().unwrap();
    let mut commands = 0;
    for step in block.split("$ ablate ").skip(1) {
        let (command, expected) = step.split_once('\n').unwrap();
        let text = lab.ablate(&command.split(' ').collect::<Vec<_>>());
        let printed: Vec<&str> = text.stdout.split_whitespace().collect();
        let expected: Vec<&str> = expected.split_whitespace().collect();
        // `show` prints the table's columns, digest and file first.
        let printed = &printed[printed.len().saturating_sub(expected.len())..];
        assert_eq!(printed.len(), expected.len(), "{}", text.stdout);
        for (ours, written) in printed.iter().zip(&expected) {
            let number = |word: &str| {
                let bare = word.trim_matches(['[', ']', ',']);
                match bare.strip_suffix('%') {
                    Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
                    None => bare.parse(),
                }
            };
            let same = match (number(ours), number(written)) {
                (Ok(a), Ok(b)) => (a - b).abs() <= 0.03,
                _ => ours == written,
            };
            assert!(
                same,
                "{ours} is {written} in docs/quick-start.md\n{}",
                text.stdout
            );
        }
        commands += 1;
    }
    assert_eq!(commands, 2);
}
