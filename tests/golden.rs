//! Golden cases: every folder of `tests/golden` is a pipeline with the results that it must
//! give, digests included, so that a change of bytes anywhere is a failing test.
//! `UPDATE_GOLDEN=1 cargo test golden` writes them anew; read the difference before you commit it.

use std::path::Path;

use crate::lab::Lab;

#[test]
fn golden_folders_give_their_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut cases: Vec<_> = std::fs::read_dir(&root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    cases.sort();
    assert!(cases.len() >= 3);
    for case in cases {
        let lab = Lab::new(&std::fs::read_to_string(case.join("pipeline.toml")).unwrap());
        for entry in std::fs::read_dir(&case).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                std::fs::copy(&path, lab.path(path.file_name().unwrap().to_str().unwrap()))
                    .unwrap();
            }
        }
        let printed = lab.ablate(&["run"]);
        assert_eq!(printed.code, 0, "{}: {}", case.display(), printed.stderr);
        let expected = case.join("expected");
        std::fs::create_dir_all(&expected).unwrap();
        let results = std::fs::read_to_string(case.join("results")).unwrap();
        for result in results.split_whitespace() {
            let shown = lab.ablate(&["show", result]).good().stdout;
            let shown: String = shown
                .lines()
                .filter(|line| !line.starts_with("file "))
                .map(|line| format!("{}\n", line.trim_end()))
                .collect();
            let file = expected.join(format!("{result}.txt"));
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                std::fs::write(&file, &shown).unwrap();
            }
            let golden = std::fs::read_to_string(&file).unwrap_or_default();
            assert_eq!(shown, golden, "{}", file.display());
        }
    }
}
