//! The bytes of tables: pinned, the same whoever made them, and readable again.

use std::fs;
use std::sync::Arc;

use arrow::array::*;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float32Type, Int32Type, Schema, TimeUnit};
use proptest::prelude::*;

use super::tiny;
use crate::{Digest, Error, canonical, decode, encode, read_foreign, schema_text};

fn nested() -> RecordBatch {
    let words = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), None, Some(3)]),
        None,
        Some(vec![]),
    ]);
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        [
            Some(vec![Some(1.5), Some(-0.0)]),
            None,
            Some(vec![None, Some(f32::NAN)]),
        ],
        2,
    );
    let columns: [(&str, ArrayRef); 2] =
        [("words", Arc::new(words)), ("vectors", Arc::new(vectors))];
    let table = RecordBatch::try_from_iter(columns).unwrap();
    let metadata = [
        ("ablate.shape", "[3,2]"),
        ("ablate.dtype", "f32"),
        ("pandas", "{}"),
    ];
    let schema = table.schema().as_ref().clone().with_metadata(metadata);
    table.with_schema(Arc::new(schema)).unwrap()
}

/// If this fails, every digest in the world changes and every store goes cold. Should that be
/// wanted (a new version of the Parquet crate may leave no choice), say so in CHANGELOG.md.
#[test]
fn the_bytes_are_pinned() {
    let digest = |table: &RecordBatch| Digest::of(&encode(table).unwrap()).to_string();
    assert_eq!(
        digest(&tiny(1)),
        "5b88ba9a91dd386df98c30d47202f512f39152595f49237364fe0d82f4b709f3"
    );
    assert_eq!(
        digest(&nested()),
        "09079e313719e048aaba1e49819b1a7bd1f464952231fbbc11e99c288b8f4c36"
    );
}

#[test]
fn metadata_of_others_is_dropped_and_ours_is_kept() {
    let read = decode(encode(&nested()).unwrap().into()).unwrap();
    let keys: Vec<_> = read.schema_ref().metadata().keys().cloned().collect();
    assert_eq!(keys, ["ablate.dtype", "ablate.shape"]);
    assert_eq!(
        schema_text(read.schema_ref()),
        "words: List(Int32), vectors: FixedSizeList(Float32, 2)"
    );
    assert_eq!(read, canonical(&nested()).unwrap());
}

#[test]
fn a_table_without_rows_keeps_its_columns() {
    let empty = nested().slice(0, 0);
    let read = decode(encode(&empty).unwrap().into()).unwrap();
    assert_eq!(read, canonical(&empty).unwrap());
}

#[test]
fn types_of_other_programs_give_the_same_bytes() {
    let words = vec![Some("a"), None, Some("b"), Some("a")];
    let native: ArrayRef = Arc::new(StringArray::from(words.clone()));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1)]),
        None,
        Some(vec![]),
        Some(vec![Some(2), None]),
    ]));
    let named = |name: &str| Arc::new(Field::new(name, DataType::Int32, true));
    let text_types = [
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::LargeUtf8)),
        DataType::RunEndEncoded(
            Arc::new(Field::new("run_ends", DataType::Int32, false)),
            Arc::new(Field::new("values", DataType::Utf8, true)),
        ),
    ];
    let list_types = [
        DataType::LargeList(named("element")),
        DataType::ListView(named("l")),
        DataType::LargeListView(named("item")),
        DataType::List(named("array")),
    ];
    let bytes = |text: &ArrayRef, list: &ArrayRef| {
        encode(&RecordBatch::try_from_iter([("t", text.clone()), ("l", list.clone())]).unwrap())
            .unwrap()
    };
    for (text, list) in text_types.iter().zip(&list_types) {
        let foreign = bytes(&cast(&native, text).unwrap(), &cast(&lists, list).unwrap());
        assert!(foreign == bytes(&native, &lists), "{text} or {list}");
    }
}

#[test]
fn required_columns_give_the_same_bytes_as_optional_ones() {
    let x: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let table = |nullable| {
        encode(&RecordBatch::try_from_iter_with_nullable([("x", x.clone(), nullable)]).unwrap())
            .unwrap()
    };
    assert_eq!(table(true), table(false));
}

#[test]
fn structs_maps_and_times_read_back() {
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    map.keys().append_value("k");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(false).unwrap();
    let fields = vec![Field::new("a", DataType::LargeUtf8, false)];
    let a: ArrayRef = Arc::new(LargeStringArray::from(vec!["x", "y"]));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("map", Arc::new(map.finish())),
        (
            "struct",
            Arc::new(StructArray::new(fields.into(), vec![a], None)),
        ),
        (
            "seconds",
            Arc::new(TimestampSecondArray::from(vec![1, 2]).with_timezone("Europe/Zurich")),
        ),
        ("date", Arc::new(Date64Array::from(vec![86_400_000, 1]))),
        (
            "duration",
            Arc::new(DurationMicrosecondArray::from(vec![1, -1])),
        ),
        ("u", Arc::new(UInt64Array::from(vec![u64::MAX, 0]))),
        ("none", Arc::new(NullArray::new(2))),
        (
            "fixed",
            Arc::new(FixedSizeBinaryArray::try_from_iter([[1u8; 3], [2; 3]].iter()).unwrap()),
        ),
        (
            "decimal",
            Arc::new(
                Decimal128Array::from(vec![1, 2])
                    .with_precision_and_scale(20, 3)
                    .unwrap(),
            ),
        ),
    ];
    let table = RecordBatch::try_from_iter(columns).unwrap();
    let read = decode(encode(&table).unwrap().into()).unwrap();
    assert_eq!(read, canonical(&table).unwrap());
    let second = DataType::Timestamp(TimeUnit::Second, Some("Europe/Zurich".into()));
    assert_eq!(read.schema().field(2).data_type(), &second);
}

#[test]
fn what_cannot_be_stored_says_why() {
    let x: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let field = Field::new("x", DataType::Int64, true);
    let schema = Arc::new(Schema::new(vec![field.clone(), field]));
    let twice = RecordBatch::try_new(schema, vec![x.clone(), x]).unwrap();
    assert_eq!(
        encode(&twice).unwrap_err().to_string(),
        "column `x` cannot be stored as a table: two columns have this name; rename one of them"
    );
    let none = RecordBatch::new_empty(Arc::new(Schema::empty()));
    assert!(matches!(encode(&none), Err(Error::NotATable { .. })));
    let union = UnionArray::try_new(
        [(0, Arc::new(Field::new("i", DataType::Int64, true)))]
            .into_iter()
            .collect(),
        vec![0i8].into(),
        None,
        vec![Arc::new(Int64Array::from(vec![1]))],
    );
    let table = RecordBatch::try_from_iter([("u", Arc::new(union.unwrap()) as ArrayRef)]).unwrap();
    assert!(matches!(encode(&table), Err(Error::NotATable { .. })));
}

#[test]
fn broken_files_of_others_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let whole = encode(&nested()).unwrap();
    let why = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let message = read_foreign(&path).unwrap_err().to_string();
        message.split_once("as a table: ").unwrap().1.to_owned()
    };
    assert_eq!(why(b""), "the file is empty");
    assert_eq!(
        why(b"x,y\n1,2\n3,4\n"),
        "it is not a Parquet file; write one, for example with `DataFrame.to_parquet`"
    );
    assert_eq!(
        why(&whole[..whole.len() - 1]),
        "the Parquet file is cut off; close it before the program ends"
    );
    fs::write(&path, &whole).unwrap();
    assert_eq!(read_foreign(&path).unwrap(), canonical(&nested()).unwrap());
    let absent = read_foreign(&dir.path().join("no")).unwrap_err();
    assert!(matches!(absent, Error::Io { .. }));
}

fn any_table() -> impl Strategy<Value = RecordBatch> {
    let row = (
        proptest::option::of(any::<i64>()),
        proptest::option::of(any::<u64>().prop_map(f64::from_bits)),
        proptest::option::of("[a-cü]{0,4}"),
        proptest::option::of(proptest::collection::vec(
            proptest::option::of(any::<i32>()),
            0..4,
        )),
        proptest::option::of(any::<[Option<f32>; 3]>()),
        any::<Option<bool>>(),
    );
    let rows = prop_oneof![
        proptest::collection::vec(row.clone(), 0..40),
        proptest::collection::vec(row, 1000..1100)
    ];
    rows.prop_map(|rows| {
        let lists = rows.iter().map(|row| row.3.clone());
        let arrays = rows.iter().map(|row| row.4);
        let columns: [(&str, ArrayRef); 6] = [
            (
                "i",
                Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
            ),
            (
                "f",
                Arc::new(rows.iter().map(|row| row.1).collect::<Float64Array>()),
            ),
            (
                "t",
                Arc::new(
                    rows.iter()
                        .map(|row| row.2.clone())
                        .collect::<StringArray>(),
                ),
            ),
            (
                "l",
                Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
            ),
            (
                "v",
                Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(arrays, 3)),
            ),
            (
                "b",
                Arc::new(rows.iter().map(|row| row.5).collect::<BooleanArray>()),
            ),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
            .unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_table_reads_back_equal(table in any_table()) {
        let read = decode(encode(&table).unwrap().into()).unwrap();
        prop_assert_eq!(read, canonical(&table).unwrap());
    }

    #[test]
    fn a_slice_gives_the_bytes_of_its_copy(table in any_table(), from in 0.0..1.0, to in 0.0..1.0) {
        let at = |part: f64| (part * table.num_rows() as f64) as usize;
        let (from, to) = (at(f64::min(from, to)), at(f64::max(from, to)));
        let slice = table.slice(from, to - from);
        let rows = (from..to).map(|row| row as u64).collect::<UInt64Array>();
        let copy = arrow::compute::take_record_batch(&table, &rows).unwrap();
        prop_assert!(encode(&slice).unwrap() == encode(&copy).unwrap());
    }

    #[test]
    fn no_broken_file_stops_the_program(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let mut bytes = encode(&nested()).unwrap();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        fs::write(&path, bytes).unwrap();
        // Either a table or an error, both are fine: the point is to come back.
        if let Ok(table) = read_foreign(&path) {
            prop_assert!(encode(&table).is_ok());
        }
    }
}
