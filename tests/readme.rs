//! The tour is run: every `$ ablate …` of docs/tour.md prints what it says.
//! `UPDATE_README=1 cargo test readme` writes the output anew.

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
