//! What a table says of itself beside its columns (which vocabulary its ids are of, the shape of a signal, a model's
//! card) is lost on the way through a data frame or a query. A table without such metadata gets that of the input whose
//! columns it has.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::RecordBatch;

/// The input whose metadata a table would get.
enum Parent<'a> {
    One(&'a str, &'a RecordBatch),
    /// Several, which say different things.
    Unclear(Vec<&'a str>),
    None,
}

/// The table with inherited metadata, and a line for the log if there is something to say.
pub fn inherit(
    name: &str,
    table: RecordBatch,
    inputs: &BTreeMap<String, RecordBatch>,
) -> (RecordBatch, Option<String>) {
    if !table.schema().metadata().is_empty() {
        return (table, None);
    }
    match parent(&table, inputs) {
        Parent::None => (table, None),
        Parent::Unclear(ports) => {
            let ports = ports.join("` and `");
            let line = format!(
                "ablate: `{name}` has the columns of `{ports}`, which have different metadata: it inherits none"
            );
            (table, Some(line))
        }
        Parent::One(port, input) => {
            let metadata = input.schema().metadata().clone();
            let schema = Schema::new(table.schema().fields().clone()).with_metadata(metadata);
            let table = table
                .with_schema(Arc::new(schema))
                .expect("the same columns");
            let line =
                format!("ablate: `{name}` has the columns of `{port}` and inherits its metadata");
            (table, Some(line))
        }
    }
}

fn parent<'a>(table: &RecordBatch, inputs: &'a BTreeMap<String, RecordBatch>) -> Parent<'a> {
    let said = inputs
        .iter()
        .filter(|(_, input)| !input.schema().metadata().is_empty() && has_columns(table, input));
    let found: Vec<(&str, &RecordBatch)> =
        said.map(|(port, input)| (port.as_str(), input)).collect();
    let Some((port, first)) = found.first() else {
        return Parent::None;
    };
    let same =
        |(_, input): &(&str, &RecordBatch)| input.schema().metadata() == first.schema().metadata();
    match found.iter().all(same) {
        true => Parent::One(port, first),
        false => Parent::Unclear(found.into_iter().map(|(port, _)| port).collect()),
    }
}

/// Whether a table has all columns of another: lists and bytes with their types, and the others by name, because a data
/// frame turns integers with a missing one into floats.
fn has_columns(table: &RecordBatch, input: &RecordBatch) -> bool {
    let (ours, theirs) = (table.schema(), input.schema());
    theirs.fields().iter().all(|field| {
        let found = ours.field_with_name(field.name());
        found.is_ok_and(|found| {
            let plain = !field.data_type().is_nested() && *field.data_type() != DataType::Binary;
            plain || same_elements(found.data_type(), field.data_type())
        })
    })
}

/// Whether two nested types hold the same. How wide the offsets of lists are, what they call their elements and whether
/// one could be null is not stored, or says nothing.
fn same_elements(ours: &DataType, theirs: &DataType) -> bool {
    match (ours, theirs) {
        (
            DataType::List(ours) | DataType::LargeList(ours),
            DataType::List(theirs) | DataType::LargeList(theirs),
        ) => same_elements(ours.data_type(), theirs.data_type()),
        _ => ours == theirs,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Float64Array, Int32Builder, Int64Array, ListArray, ListBuilder};
    use arrow::datatypes::Field;

    use super::super::weights::with_metadata;
    use super::*;

    fn ids() -> ArrayRef {
        Arc::new(finished(ListBuilder::new(Int32Builder::new())))
    }

    fn finished(mut list: ListBuilder<Int32Builder>) -> ListArray {
        list.append_value([Some(1)]);
        list.finish()
    }

    fn label() -> ArrayRef {
        Arc::new(Int64Array::from(vec![1]))
    }

    fn tokens(vocab: &str) -> RecordBatch {
        let said = [("ablate.vocab".to_owned(), vocab.to_owned())];
        with_metadata(
            vec![("ids", ids()), ("label", label())],
            said.into_iter().collect(),
        )
    }

    fn inherited(
        columns: Vec<(&str, ArrayRef)>,
        inputs: &[(&str, RecordBatch)],
    ) -> (Option<String>, Option<String>) {
        let table = with_metadata(columns, Default::default());
        let inputs = inputs
            .iter()
            .map(|(port, table)| ((*port).to_owned(), table.clone()));
        let (table, line) = inherit("out", table, &inputs.collect());
        let vocab = table
            .schema()
            .metadata()
            .get("ablate.vocab")
            .map(|v| v.to_string());
        (vocab, line)
    }

    #[test]
    fn a_table_with_the_columns_of_an_input_has_its_metadata() {
        let float: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
        let input = [("rows", tokens("ab"))];
        let with = |columns| inherited(columns, &input).0;
        assert_eq!(
            with(vec![("ids", ids()), ("label", label())]).as_deref(),
            Some("ab")
        );
        // Another order, another column, and an integer that became a float.
        let more = vec![("x", label()), ("label", float.clone()), ("ids", ids())];
        assert_eq!(with(more).as_deref(), Some("ab"));
        // A list whose elements have another name, and cannot be null.
        let element = Field::new("element", DataType::Int32, false);
        let list = ListBuilder::new(Int32Builder::new()).with_field(element);
        let list: ArrayRef = Arc::new(finished(list));
        assert_eq!(
            with(vec![("ids", list), ("label", label())]).as_deref(),
            Some("ab")
        );
        // A list of something else, and a column that is not there.
        assert_eq!(with(vec![("ids", float), ("label", label())]), None);
        assert_eq!(with(vec![("ids", ids())]), None);
    }

    #[test]
    fn two_inputs_that_say_different_things_are_not_chosen_between() {
        let columns = || vec![("ids", ids()), ("label", label())];
        let same = [("a", tokens("ab")), ("b", tokens("ab"))];
        assert_eq!(inherited(columns(), &same).0.as_deref(), Some("ab"));
        let different = [("a", tokens("ab")), ("b", tokens("cd"))];
        let (vocab, line) = inherited(columns(), &different);
        assert_eq!(vocab, None);
        assert_eq!(
            line.unwrap(),
            "ablate: `out` has the columns of `a` and `b`, which have different metadata: it inherits none"
        );
    }
}
