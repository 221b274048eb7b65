//! No text makes the reader panic, whatever is in it.

use proptest::prelude::*;

use super::*;
use crate::plan;

/// Pieces that pipelines are made of, so that chance gets further than the first line.
const PIECES: &[&str] = &[
    "[stage.a]\n",
    "[stage.b]\n",
    "[axes]\n",
    "[pipeline]\n",
    "[profile.p.stage.a]\n",
    "kind = \"table\"\n",
    "kind = \"sql\"\n",
    "kind = \"command\"\n",
    "kind = 1\n",
    "rows = [{ x = 1 }]\n",
    "rows = [{ x = \"${k}\" }]\n",
    "rows = []\n",
    "k = [1, 2]\n",
    "k = [\"x\", 2]\n",
    "over = [\"k\"]\n",
    "inputs = { t = \"a\" }\n",
    "inputs = { t = \"b.rows\" }\n",
    "query = \"SELECT ${k} FROM t\"\n",
    "seed = 1\n",
    "[axes.p]\n",
    "[choices]\n",
    "base = {}\n",
    "u = { rows = [{ x = 2 }] }\n",
    "v = { \"a.rows\" = [{ x = 3 }] }\n",
    "w = { inputs.t = \"a\" }\n",
    "with = [\"p\"]\n",
    "except = [{ k = 1 }]\n",
    "except = [{ p = \"u\", k = [1, 2] }]\n",
    "like = \"a\"\n",
    "like = \"b\"\n",
    "pick = \"a\"\n",
    "inputs = { t = \"${k}\" }\n",
    "query = \"SELECT * FROM t\"\n",
    "run = [\"true\"]\n",
    "outputs = [\"o\"]\n",
    "select = { over = [\"k\"], metric = \"a\", column = \"x\", best = \"max\" }\n",
    "timeout = nan\n",
    "env = { A = 1 }\n",
    "files = [\"..\"]\n",
    "\u{feff}",
    "# ä\n",
    "= ]",
];

fn read_text(text: String, set: Option<String>) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pipeline.toml");
    std::fs::write(&file, text).unwrap();
    let request = PipelineRequest {
        file,
        profile: Some("p".to_owned()).filter(|_| set.is_some()),
        sets: set.into_iter().collect(),
    };
    match read(&request) {
        Ok(pipeline) => {
            if let Err(list) = plan::build(&pipeline) {
                crate::diagnostic::render(&pipeline.sources, &list);
            }
        }
        Err(problems) => {
            crate::diagnostic::render(&problems.sources, &problems.list);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}", set in proptest::option::of(".{0,40}")) {
        read_text(text, set);
    }

    #[test]
    fn no_mixture_of_pieces_makes_it_panic(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..14),
        set in proptest::option::of("(a|b|axes|pipeline)[.](k|rows|x[.]y)=.{0,20}"),
    ) {
        read_text(pieces.concat(), set);
    }
}
