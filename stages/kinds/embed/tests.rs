//! Claims about the kind `embed`: what each source gives, and that skip-gram finds what
//! belongs together and makes the same bytes on any number of threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, ListArray, StringArray};
use arrow::datatypes::{Float32Type, Int32Type};
use arrow::record_batch::RecordBatch;
use store::{Digest, Params, Value, encode};

use super::Embed;
use super::draw::Stream;
use crate::{Failure, Inputs, SourceFile, Stage, Task, Usage, Watch};

struct Nobody;

impl Watch for Nobody {
    fn progress(&self, _: u64, _: u64) {}
    fn work(&self, _: &'static str, _: u64) {}

    fn log(&self, _: &str) {}
    fn child(&self, _: Usage) {}
    fn stopped(&self) -> bool {
        false
    }
}

fn params(source: &str, more: &[(&str, Value)]) -> Params {
    let mut params: Params = [("source".to_owned(), Value::Text(source.into()))].into();
    for (name, value) in more {
        params.insert((*name).to_owned(), value.clone());
    }
    params
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn run_with(
    params: &Params,
    inputs: &[(&str, &RecordBatch)],
    file: Option<(&str, &Path)>,
    seed: u64,
) -> Result<RecordBatch, Failure> {
    let files = file.map(|(name, path)| {
        let digest = Digest::of_file(path).unwrap();
        (
            name.to_owned(),
            SourceFile {
                path,
                digest,
                executable: false,
            },
        )
    });
    let inputs = inputs.iter();
    let task = Task {
        inputs: inputs
            .map(|(name, table)| ((*name).to_owned(), (*table).clone()))
            .collect(),
        params,
        seed,
        files: files.into_iter().collect::<BTreeMap<_, _>>(),
        data: &crate::DataHome::nowhere(),
        place: &crate::Place::default(),
        watch: &Nobody,
    };
    Ok(Embed.run(&task)?.remove("vectors").unwrap())
}

fn run(params: &Params, inputs: &[(&str, &RecordBatch)]) -> Result<RecordBatch, Failure> {
    run_with(params, inputs, None, 1)
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
        .unwrap()
}

fn vocab(tokens: &[&str], counts: Vec<i64>) -> RecordBatch {
    let ids = Int32Array::from_iter_values(0..tokens.len() as i32);
    batch(vec![
        ("id", Arc::new(ids)),
        ("token", Arc::new(StringArray::from(tokens.to_vec()))),
        ("count", Arc::new(Int64Array::from(counts))),
    ])
}

fn rows(table: &RecordBatch) -> Vec<Vec<f32>> {
    let lists = table["v"].as_fixed_size_list();
    let row = |n| {
        lists
            .value(n)
            .as_primitive::<Float32Type>()
            .values()
            .to_vec()
    };
    (0..lists.len()).map(row).collect()
}

fn norms(table: &RecordBatch) -> Vec<f32> {
    table["norm"]
        .as_primitive::<Float32Type>()
        .values()
        .to_vec()
}

#[test]
fn random_vectors_depend_on_the_seed_and_padding_is_zero() {
    let vocab = vocab(&["[PAD]", "[UNK]", "a"], vec![0, 0, 1]);
    let params = params(
        "random",
        &[("dim", Value::Int(3)), ("scale", Value::Float(0.5))],
    );
    let one = rows(&run(&params, &[("vocab", &vocab)]).unwrap());
    assert_eq!(one[0], [0.0; 3]);
    assert!(
        one[1..]
            .iter()
            .flatten()
            .all(|x| x.abs() <= 0.5 && *x != 0.0)
    );
    assert_ne!(one[1], one[2]);
    assert_eq!(one, rows(&run(&params, &[("vocab", &vocab)]).unwrap()));
    let other = run_with(&params, &[("vocab", &vocab)], None, 2).unwrap();
    assert_ne!(one, rows(&other));
}

#[test]
fn one_hot_by_hand() {
    let made = run(
        &params("one-hot", &[]),
        &[("vocab", &vocab(&["[PAD]", "[UNK]", "a"], vec![0, 0, 1]))],
    )
    .unwrap();
    assert_eq!(
        rows(&made),
        [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    );
    assert_eq!(norms(&made), [0.0, 1.0, 1.0]);
}

fn glove() -> RecordBatch {
    let lists = [[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]];
    let lists = lists.map(|row| Some(row.map(Some).to_vec()));
    batch(vec![
        (
            "word",
            Arc::new(StringArray::from(vec!["film", "the", "unk"])),
        ),
        (
            "v",
            Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(lists)),
        ),
    ])
}

#[test]
fn pretrained_vectors_whole_or_for_a_vocabulary() {
    let whole = run(&params("vectors", &[]), &[("vectors", &glove())]).unwrap();
    assert_eq!(whole["token"].as_string::<i32>().value(2), "unk");
    assert_eq!(norms(&whole), [5.0, 1.0, 2.0]);
    assert_eq!(whole["id"].as_primitive::<Int32Type>().values(), &[0, 1, 2]);

    let vocab = vocab(&["[PAD]", "[UNK]", "zzz", "film"], vec![0; 4]);
    let inputs = [("vectors", &glove()), ("vocab", &vocab)];
    let zero = params(
        "vectors",
        &[("unknown", text("unk")), ("missing", text("zero"))],
    );
    let made = run(&zero, &inputs).unwrap();
    assert_eq!(
        rows(&made),
        [[0.0, 0.0], [0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]
    );
    assert_eq!(made.schema().metadata()["ablate.missing"], "1");
    let unknown = params(
        "vectors",
        &[("unknown", text("unk")), ("missing", text("unknown"))],
    );
    assert_eq!(rows(&run(&unknown, &inputs).unwrap())[2], [0.0, 2.0]);
    let random = rows(&run(&params("vectors", &[]), &inputs).unwrap());
    assert!(random[2] != [0.0, 0.0] && random[1] != random[2] && random[0] == [0.0, 0.0]);
    // What one embed stage makes another can read.
    let again = run(&zero, &[("vectors", &whole), ("vocab", &vocab)]).unwrap();
    assert_eq!(rows(&again), rows(&made));
}

#[test]
fn vectors_from_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.txt");
    std::fs::write(&path, "film 3 4\nthe 1 0\n").unwrap();
    let params_of = |name: &str| params("vectors", &[("file", text(name))]);
    let made = run_with(&params_of("v.txt"), &[], Some(("v.txt", &path)), 1).unwrap();
    assert_eq!(rows(&made), [[3.0, 4.0], [1.0, 0.0]]);

    let values: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![2, 2], &values);
    let bytes = safetensors::serialize([("emb", view.unwrap())], None).unwrap();
    let path = dir.path().join("m.safetensors");
    std::fs::write(&path, bytes).unwrap();
    let two = vocab(&["a", "b"], vec![1, 1]);
    let file = Some(("m.safetensors", path.as_path()));
    let made = run_with(&params_of("m.safetensors"), &[("vocab", &two)], file, 1).unwrap();
    assert_eq!(rows(&made), [[1.0, 2.0], [3.0, 4.0]]);
    let three = vocab(&["a", "b", "c"], vec![1, 1, 1]);
    let failure = run_with(&params_of("m.safetensors"), &[("vocab", &three)], file, 1).unwrap_err();
    assert_eq!(
        failure.message,
        "m.safetensors has 2 rows, but the vocabulary has 3 tokens"
    );
}

/// A file whose first line is not like the others would give other vectors than it holds.
#[test]
fn vectors_of_another_width_and_promises_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.txt");
    let read = |contents: &str, words: &[&str]| {
        std::fs::write(&path, contents).unwrap();
        let vocab = vocab(words, vec![1; words.len()]);
        let params = params("vectors", &[("file", text("v.txt"))]);
        let made = run_with(&params, &[("vocab", &vocab)], Some(("v.txt", &path)), 1);
        made.map(|made| rows(&made))
            .map_err(|failure| failure.message)
    };
    let known = ["cat", "dog"];
    let expected = Ok(vec![vec![1.0, 2.0], vec![3.0, 4.0]]);
    assert_eq!(read("\u{feff}cat 1 2\ndog 3 4\n", &known), expected);
    assert_eq!(read("\u{feff}2 2\ncat 1 2\ndog 3 4\n", &known), expected);
    // Words of large collections have spaces inside.
    let spaced = read("cat 1 2\n. . 3 4\n", &["cat", ". ."]);
    assert_eq!(spaced, expected);
    for (contents, message) in [
        (
            "cat 1 2\ndog 3 4 5\n",
            "v.txt: line 2 has more than 2 numbers",
        ),
        (
            "<s> 1 2\ncat 1 2 3 4\n",
            "v.txt: line 2 has more than 2 numbers",
        ),
        (
            "1 4000000000000\ncat 1 2\n",
            "v.txt: line 1 says 4000000000000 numbers per word, and line 2 has 2",
        ),
        (
            "1 18446744073709551615\ncat 1 2\n",
            "v.txt: line 1 says 18446744073709551615 numbers per word, and line 2 has 2",
        ),
        (
            "0 5\n",
            "v.txt: line 1 says 5 numbers per word, and line 2 has 0",
        ),
        (
            "Cat 1 2\nDog 3 4\n",
            "none of the 2 tokens of the vocabulary has a vector",
        ),
    ] {
        assert_eq!(
            read(contents, &known),
            Err(message.to_owned()),
            "{contents}"
        );
    }
}

#[test]
fn what_one_stage_made_of_the_unknown_token_another_keeps() {
    let vocab = vocab(&["[PAD]", "[UNK]", "a"], vec![0, 0, 1]);
    let random = params("random", &[("dim", Value::Int(2))]);
    let made = run(&random, &[("vocab", &vocab)]).unwrap();
    let again = run(
        &params("vectors", &[]),
        &[("vocab", &vocab), ("vectors", &made)],
    );
    assert_eq!(rows(&again.unwrap()), rows(&made));
}

#[test]
fn skip_gram_refuses_tokens_of_another_vocabulary_and_numbers_that_run_away() {
    let (vocab, tokens) = clusters(200);
    let told = |name: &str| {
        let metadata = [(crate::tables::vocabulary::KEY.to_owned(), name.to_owned())];
        let schema = tokens.schema().as_ref().clone();
        let schema =
            schema.with_metadata(metadata.into_iter().collect::<arrow::datatypes::Metadata>());
        tokens.clone().with_schema(Arc::new(schema)).unwrap()
    };
    let skip_gram = params("skip-gram", &[("dim", Value::Int(8))]);
    let run = |tokens: &RecordBatch, params: &Params| {
        run(params, &[("vocab", &vocab), ("tokens", tokens)])
    };
    let own = crate::tables::vocabulary::listed(&vocab).unwrap();
    assert!(run(&told(&own), &skip_gram).is_ok());
    let failure = run(&told("0123456789abcdef"), &skip_gram).unwrap_err();
    let start =
        "`tokens` and `vocab` number their words by different vocabularies, 0123456789ab and ";
    assert!(failure.message.starts_with(start), "{failure}");
    let fast = params(
        "skip-gram",
        &[("dim", Value::Int(8)), ("learning_rate", Value::Float(1e6))],
    );
    let failure = run(&tokens, &fast).unwrap_err();
    assert_eq!(failure.param, Some("learning_rate"));
}

#[test]
fn settings_without_an_effect_are_refused() {
    let wrong = |source: &str, name: &'static str, value| {
        let error = Embed.check(&params(source, &[(name, value)])).unwrap_err();
        (error.param, error.message)
    };
    assert_eq!(
        wrong("vectors", "dim", Value::Int(300)),
        (
            "dim",
            "`dim` does not apply to source = \"vectors\"".to_owned()
        )
    );
    assert_eq!(wrong("random", "epochs", Value::Int(7)).0, "epochs");
    assert!(
        Embed
            .check(&params("vectors", &[("dim", Value::Int(50))]))
            .is_ok()
    );
}

const CLUSTERS: usize = 5;
const SIZE: usize = 12;

/// Sentences whose words all come from one of five clusters of twelve words, and function words
/// that are everywhere.
fn clusters(texts: usize) -> (RecordBatch, RecordBatch) {
    let tokens = 2 + 4 + CLUSTERS * SIZE;
    let names: Vec<String> = (0..tokens)
        .map(|n| match n {
            0 => "[PAD]".to_owned(),
            1 => "[UNK]".to_owned(),
            2..6 => format!("the{n}"),
            n => format!("c{}w{}", (n - 6) / SIZE, (n - 6) % SIZE),
        })
        .collect();
    let mut counts = vec![0; tokens];
    let lists: Vec<Option<Vec<Option<i32>>>> = (0..texts)
        .map(|n| {
            let mut stream = Stream::new(9, 0, n as u64);
            let cluster = stream.below(CLUSTERS as u32);
            let ids = (0..12).map(|_| {
                let id = match stream.below(3) {
                    0 => 2 + stream.below(4),
                    _ => 6 + cluster * SIZE as u32 + stream.below(SIZE as u32),
                };
                counts[id as usize] += 1;
                Some(id as i32)
            });
            Some(ids.collect())
        })
        .collect();
    let split = StringArray::from(vec!["train"; texts]);
    let tokens = batch(vec![
        ("split", Arc::new(split)),
        (
            "ids",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
        ),
    ]);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (vocab(&names, counts), tokens)
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// How many of each word's eleven nearest neighbours are of its own cluster.
fn purity(rows: &[Vec<f32>]) -> f64 {
    let words: Vec<usize> = (6..6 + CLUSTERS * SIZE).collect();
    let mut right = 0;
    for word in &words {
        let mut others: Vec<usize> = words.iter().copied().filter(|o| o != word).collect();
        others.sort_by(|a, b| {
            cosine(&rows[*word], &rows[*b]).total_cmp(&cosine(&rows[*word], &rows[*a]))
        });
        let same = |other: &&usize| (**other - 6) / SIZE == (word - 6) / SIZE;
        right += others.iter().take(SIZE - 1).filter(same).count();
    }
    right as f64 / (words.len() * (SIZE - 1)) as f64
}

#[test]
fn skip_gram_finds_what_belongs_together() {
    // Long enough for several rounds of several blocks.
    let (vocab, tokens) = clusters(15_000);
    let settings = [("dim", Value::Int(20)), ("epochs", Value::Int(3))];
    let inputs = [("vocab", &vocab), ("tokens", &tokens)];
    let made = run(&params("skip-gram", &settings), &inputs).unwrap();
    let found = purity(&rows(&made));
    assert!(found > 0.95, "{found}");
    assert_eq!(rows(&made)[0], [0.0; 20]);
    // Untrained vectors do not pass: the claim can fail.
    let random = run(&params("random", &settings[..1]), &[("vocab", &vocab)]).unwrap();
    assert!(purity(&rows(&random)) < 0.4);
}

#[test]
fn skip_gram_gives_the_same_bytes_on_any_number_of_threads() {
    let (vocab, tokens) = clusters(12_000);
    let settings = [("dim", Value::Int(10)), ("epochs", Value::Int(1))];
    let on = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let inputs = [("vocab", &vocab), ("tokens", &tokens)];
        let params = params("skip-gram", &settings);
        let made = pool
            .install(|| run_with(&params, &inputs, None, seed))
            .unwrap();
        encode(&made).unwrap()
    };
    let one = on(1, 1);
    assert!(one == on(2, 1) && one == on(8, 1));
    assert!(one != on(1, 2), "the seed counts");
}

#[test]
fn mistakes_say_what_to_do() {
    let (vocab, tokens) = clusters(2);
    let small = vocab.slice(0, 4);
    let failure = run(
        &params("skip-gram", &[]),
        &[("vocab", &small), ("tokens", &tokens)],
    )
    .unwrap_err();
    assert!(
        failure.message.contains("the vocabulary ends at 3"),
        "{failure}"
    );
    let wrong = |source: &str, more: &[(&str, Value)]| {
        run(&params(source, more), &[("vocab", &vocab)]).unwrap_err()
    };
    assert_eq!(
        wrong("skipgram", &[]).help.unwrap(),
        "did you mean `skip-gram`?"
    );
    assert_eq!(wrong("random", &[("file", text("x"))]).param, Some("file"));
    assert_eq!(
        wrong("vectors", &[("missing", text("unknown"))]).param,
        Some("missing")
    );
    assert_eq!(
        wrong("vectors", &[]).help.unwrap(),
        "connect the input `vectors`, or name a `file`"
    );
    assert_eq!(
        wrong("random", &[("dim", Value::Int(0))]).param,
        Some("dim")
    );
}

#[test]
fn packed_text_is_unpacked() {
    use std::io::Write;
    let text_of = b"film 3 4\nthe 1 0\n";
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(text_of).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text_of).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("v.txt", text_of.to_vec()),
        ("v.txt.bz2", bz2.finish().unwrap()),
        ("v.txt.gz", gz.finish().unwrap()),
    ] {
        let path = folder.path().join(name);
        let params = params("vectors", &[("file", text(name))]);
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            run_with(&params, &[], Some((name, &path)), 1)
        };
        assert_eq!(norms(&read(&bytes).unwrap()), [5.0, 1.0], "{name}");
        if name != "v.txt" {
            let failure = read(&bytes[..bytes.len() - 5]).unwrap_err();
            let start = format!("{name} cannot be unpacked: ");
            assert!(failure.message.starts_with(&start), "{}", failure.message);
        }
    }
}

#[test]
fn ports_are_those_of_the_source() {
    let ports = |source: &str| match Embed.ports(&params(source, &[])).inputs {
        Inputs::Named(ports) => ports
            .into_iter()
            .map(|p| (p.name, p.required))
            .collect::<Vec<_>>(),
        Inputs::Any(_) => panic!("named ports"),
    };
    let owned = |ports: &[(&str, bool)]| -> Vec<(String, bool)> {
        ports.iter().map(|(n, r)| ((*n).to_owned(), *r)).collect()
    };
    assert_eq!(ports("random"), owned(&[("vocab", true)]));
    assert_eq!(
        ports("skip-gram"),
        owned(&[("vocab", true), ("tokens", true)])
    );
    assert_eq!(
        ports("vectors"),
        owned(&[("vocab", false), ("vectors", false)])
    );
}
