//! Widens whatever counts to a signed 64-bit integer, in the plan as polars' SQL wrote it.

use std::sync::Arc;

use polars::chunked_array::cast::CastOptions;
use polars::prelude::{DataType, DslPlan, Expr, FunctionExpr, NULL, Schema, lit, when};
use polars_plan::dsl::functions::int_range;
use polars_plan::dsl::{
    AggExpr, DataTypeExpr, ListFunction, RangeFunction, SpecialEq, StringFunction,
};

/// The same plan, in which counts, lengths, ranks and row numbers are signed.
pub fn widen(plan: &DslPlan) -> DslPlan {
    let mut plan = plan.clone();
    // What SQL asked about types on the way was answered for the plan as it was.
    while let DslPlan::IR { dsl, .. } = &plan {
        plan = (**dsl).clone();
    }
    match &mut plan {
        DslPlan::Filter { input, predicate } => {
            below(input);
            each(std::slice::from_mut(predicate), input);
        }
        DslPlan::Select { input, expr, .. } => {
            below(input);
            each(expr, input);
        }
        DslPlan::HStack { input, exprs, .. } => {
            below(input);
            each(exprs, input);
        }
        DslPlan::Sort {
            input, by_column, ..
        } => {
            below(input);
            each(by_column, input);
        }
        DslPlan::GroupBy {
            input,
            keys,
            predicates,
            aggs,
            ..
        } => {
            below(input);
            let lists = [keys, predicates, aggs].into_iter();
            lists.for_each(|exprs| each(exprs, input));
        }
        DslPlan::Join {
            input_left,
            input_right,
            left_on,
            right_on,
            predicates,
            ..
        } => {
            below(input_left);
            below(input_right);
            each(left_on, input_left);
            each(right_on, input_right);
            each(predicates, input_left);
        }
        DslPlan::Gather { input, idxs, .. } => {
            below(input);
            below(idxs);
        }
        DslPlan::Cache { input, .. }
        | DslPlan::Distinct { input, .. }
        | DslPlan::Slice { input, .. }
        | DslPlan::MapFunction { input, .. }
        | DslPlan::MatchToSchema { input, .. }
        | DslPlan::Sink { input, .. } => below(input),
        DslPlan::Union { inputs, .. }
        | DslPlan::HConcat { inputs, .. }
        | DslPlan::SinkMultiple { inputs } => all(inputs),
        DslPlan::ExtContext { input, contexts } => {
            below(input);
            all(contexts);
        }
        DslPlan::PipeWithSchema { input, .. } => *input = input.iter().map(widen).collect(),
        // Tables, and plans that polars' SQL does not write.
        _ => {}
    }
    plan
}

fn below(input: &mut Arc<DslPlan>) {
    *input = Arc::new(widen(input));
}

fn all(inputs: &mut [DslPlan]) {
    inputs.iter_mut().for_each(|input| *input = widen(input));
}

/// Widens in expressions that read these rows.
fn each(exprs: &mut [Expr], read: &DslPlan) {
    let sum = |expr: &Expr| matches!(expr, Expr::Agg(AggExpr::Sum(_)));
    let sums = exprs.iter().any(|expr| expr.into_iter().any(sum));
    // Types are only needed to tell the sums of booleans, which are counts, from other sums.
    let schema = sums.then(|| read.compute_schema().ok()).flatten();
    for expr in exprs {
        *expr = std::mem::replace(expr, Expr::Len).map_expr(|expr| match expr {
            Expr::SubPlan(plan, names) => {
                Expr::SubPlan(SpecialEq::new(Arc::new(widen(&plan))), names)
            }
            Expr::Agg(of) if of_constant(&of) => constant(of),
            Expr::Function {
                input,
                function: FunctionExpr::CumSum { reverse },
            } if is_constant(&input[0]) => input[0].clone() * so_far(reverse),
            Expr::Cast {
                expr,
                dtype: DataTypeExpr::Literal(ty),
                options,
            } if ty.is_integer() => Expr::Cast {
                expr,
                dtype: DataTypeExpr::Literal(DataType::Int64),
                options,
            },
            counts if counts_something(&counts) || counts_booleans(&counts, schema.as_deref()) => {
                Expr::Cast {
                    expr: Arc::new(counts),
                    dtype: DataTypeExpr::Literal(DataType::Int64),
                    options: CastOptions::Strict,
                }
            }
            other => other,
        });
    }
}

/// What an aggregate of a constant is in SQL. polars takes the constant to be a column of one row,
/// also where there are more rows or none: to it `SUM(1)` is 1.
fn constant(aggregate: AggExpr) -> Expr {
    match aggregate {
        AggExpr::Sum(of) => (*of).clone() * rows(),
        AggExpr::Count { input, .. } => {
            let counted = (*input).clone().is_not_null();
            when(counted).then(rows()).otherwise(lit(0_i64))
        }
        other => when(rows().gt(lit(0)))
            .then(Expr::Agg(other))
            .otherwise(lit(NULL)),
    }
}

fn of_constant(aggregate: &AggExpr) -> bool {
    Expr::Agg(aggregate.clone())
        .into_iter()
        .skip(1)
        .all(|part| !reads(part))
}

fn is_constant(expr: &Expr) -> bool {
    expr.into_iter().all(|part| !reads(part))
}

/// Whether it depends on rows.
fn reads(part: &Expr) -> bool {
    matches!(
        part,
        Expr::Column(_) | Expr::Selector(_) | Expr::Len | Expr::Agg(_) | Expr::SubPlan(..)
    )
}

/// How many rows there are.
fn rows() -> Expr {
    Expr::Len.cast(DataType::Int64)
}

/// How many rows there are up to each, or from each on.
fn so_far(reverse: bool) -> Expr {
    let before = int_range(lit(0_i64), Expr::Len, 1, DataType::Int64);
    match reverse {
        true => rows() - before,
        false => before + lit(1_i64),
    }
}

fn counts_booleans(expr: &Expr, schema: Option<&Schema>) -> bool {
    match (expr, schema) {
        (Expr::Agg(AggExpr::Sum(input)), Some(schema)) => {
            let field = input.to_field(schema);
            field.is_ok_and(|field| field.dtype().is_bool())
        }
        _ => false,
    }
}

/// Whether polars gives an unsigned integer for it. What is forgotten here is still checked for
/// overflow, in fewer bits, and widened in the result.
fn counts_something(expr: &Expr) -> bool {
    use FunctionExpr as F;
    match expr {
        Expr::Len => true,
        Expr::Agg(AggExpr::Count { .. } | AggExpr::NUnique(_)) => true,
        Expr::Function { function, .. } => match function {
            F::StringExpr(text) => matches!(
                text,
                StringFunction::LenBytes
                    | StringFunction::LenChars
                    | StringFunction::CountMatches(_)
                    | StringFunction::Find { .. }
            ),
            F::ListExpr(list) => matches!(list, ListFunction::Length),
            F::Range(range) => matches!(range, RangeFunction::IntRange { .. }),
            F::Rank { .. } | F::CumCount { .. } | F::NullCount => true,
            _ => false,
        },
        _ => false,
    }
}
