//! A large run: a chain of a thousand stages beside an attack with ten thousand examples.

use std::fmt::Write;

use crate::lab::Lab;

/// Runs it.
pub fn large() -> Lab {
    let mut pipeline = String::from(include_str!("pipelines/large.toml"));
    for n in 1..1000 {
        let before = n - 1;
        write!(pipeline, "\n[stage.link{n:04}]\nkind = \"sql\"\ninputs = {{ t = \"link{before:04}\" }}\nquery = \"SELECT x + 1 AS x FROM t\"\n").unwrap();
    }
    let mut rows = String::from("review,stars,split\n");
    for n in 0..11_000 {
        let split = if n < 10_000 { "test" } else { "train" };
        let (word, star) = if n % 2 == 0 { ("good", 1) } else { ("bad", 0) };
        let film = ["film", "plot", "cast", "score"][n % 4];
        writeln!(rows, "a {word} {film} with a {word} end and number{n} of some more words that say little about it,{star},{split}").unwrap();
    }
    let lab = Lab::new(&pipeline);
    lab.write("reviews.csv", &rows);
    lab.ablate(&["run", "--quiet"]).good();
    lab
}
