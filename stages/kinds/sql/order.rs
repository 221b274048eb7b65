//! Pins the order of rows, without which the same query gives other bytes on every run.
//!
//! Two halves. Inside the plan, everything that may list rows in the order of a hash table
//! (seeded by chance) is told to keep the order of its input. At the end, a query without
//! ORDER BY promises no order, so its rows are sorted by all columns, nulls first.

use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::compute::take;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use arrow::row::{RowConverter, SortField};
use polars::polars_utils::arena::{Arena, Node};
use polars_ops::frame::MaintainOrderJoin;
use polars_plan::plans::{AExpr, IR};

use crate::Failure;

/// Makes every node of an optimised plan keep order.
pub fn pin(plan: &mut Arena<IR>, expressions: &mut Arena<AExpr>) {
    for node in 0..plan.len() {
        match plan.get_mut(Node(node)) {
            IR::GroupBy { maintain_order, .. } => *maintain_order = true,
            IR::Distinct { options, .. } => options.maintain_order = true,
            // Equal keys keep the order of the input, so ties are broken the same way.
            IR::Sort { sort_options, .. } => sort_options.maintain_order = true,
            IR::Join { options, .. } => {
                let options = Arc::make_mut(options);
                if options.args.maintain_order == MaintainOrderJoin::None {
                    options.args.maintain_order = MaintainOrderJoin::LeftRight;
                }
            }
            _ => {}
        }
    }
    for node in 0..expressions.len() {
        if let AExpr::SortBy { sort_options, .. } = expressions.get_mut(Node(node)) {
            sort_options.maintain_order = true;
        }
    }
}

/// The rows sorted by all columns, from the first to the last: nulls first, NaN last.
pub fn sort_rows(table: &RecordBatch) -> Result<RecordBatch, Failure> {
    let schema = table.schema();
    let cannot = |e| {
        Failure::new(format!("the rows of the result cannot be sorted: {e}"))
            .help("add ORDER BY to the query")
            .at("query")
    };
    if table.num_rows() < 2 || table.num_columns() == 0 {
        return Ok(table.clone());
    }
    let fields = schema
        .fields()
        .iter()
        .map(|f| SortField::new(f.data_type().clone()));
    let converter = RowConverter::new(fields.collect()).map_err(cannot)?;
    let rows = converter.convert_columns(table.columns()).map_err(cannot)?;
    let mut order: Vec<u64> = (0..table.num_rows() as u64).collect();
    order.sort_by(|a, b| rows.row(*a as usize).cmp(&rows.row(*b as usize)));
    let order = UInt64Array::from(order);
    let columns = table
        .columns()
        .iter()
        .map(|column| take(column, &order, None));
    let columns = columns.collect::<Result<Vec<_>, _>>().map_err(cannot)?;
    let options = RecordBatchOptions::new().with_row_count(Some(table.num_rows()));
    RecordBatch::try_new_with_options(schema, columns, &options).map_err(cannot)
}
