//! Replaces the operations on integers that wrap around by ones that fail.
//!
//! Works on polars' optimised plan, where the type of every expression is known: an operation
//! on floats stays what it was, bit for bit.

use std::collections::HashSet;

use polars::polars_utils::arena::{Arena, Node};
use polars::prelude::{Column, DataType, Field, PolarsResult, Schema};
use polars_plan::dsl::{BaseColumnUdf, new_column_udf};
use polars_plan::plans::expr_ir::ExprIR;
use polars_plan::plans::{
    AExpr, ArenaExprIter, IR, IRAggExpr, IRFunctionExpr, IRListFunction, IRPowFunction,
    ToFieldContext,
};
use polars_plan::prelude::{FunctionOptions, JoinTypeOptionsIR, Operator};

use super::arithmetic::{self, Op};

/// Makes every operation on integers below `root` checked.
pub fn check(root: Node, plan: &Arena<IR>, exprs: &mut Arena<AExpr>) -> PolarsResult<()> {
    let (mut todo, mut plans, mut seen) = (vec![root], HashSet::new(), HashSet::new());
    while let Some(node) = todo.pop() {
        if !plans.insert(node.0) {
            continue;
        }
        let ir = plan.get(node);
        let inputs: Vec<Node> = ir.inputs().collect();
        for (expr, schema) in expressions(ir, &inputs, plan) {
            check_below(expr, &schema, exprs, &mut seen)?;
        }
        todo.extend(inputs);
    }
    Ok(())
}

/// The expressions of one step of the plan, each with the columns that it reads.
fn expressions(ir: &IR, inputs: &[Node], plan: &Arena<IR>) -> Vec<(Node, Schema)> {
    let schema = |node: &Node| plan.get(*node).schema(plan).as_ref().as_ref().clone();
    let with = |exprs: &[ExprIR], schema: &Schema| -> Vec<(Node, Schema)> {
        let each = exprs.iter();
        each.map(|expr| (expr.node(), schema.clone())).collect()
    };
    if let IR::Join {
        input_left,
        input_right,
        left_on,
        right_on,
        options,
        ..
    } = ir
    {
        let mut found = with(left_on, &schema(input_left));
        found.extend(with(right_on, &schema(input_right)));
        if let Some(JoinTypeOptionsIR::CrossAndFilter { predicate }) = &options.options {
            let joined = ir.schema(plan).as_ref().as_ref().clone();
            found.push((predicate.node(), joined));
        }
        return found;
    }
    let read = match inputs.first() {
        Some(input) => schema(input),
        None => Schema::default(),
    };
    ir.exprs().map(|expr| (expr.node(), read.clone())).collect()
}

fn check_below(
    root: Node,
    schema: &Schema,
    exprs: &mut Arena<AExpr>,
    seen: &mut HashSet<usize>,
) -> PolarsResult<()> {
    let nodes: Vec<Node> = exprs.iter(root).map(|(node, _)| node).collect();
    for node in nodes {
        if seen.insert(node.0)
            && let Some(checked) = replacement(node, schema, exprs)?
        {
            exprs.replace(node, checked);
        }
    }
    Ok(())
}

/// What must stand in the place of an expression, if it could wrap around.
fn replacement(
    node: Node,
    schema: &Schema,
    exprs: &mut Arena<AExpr>,
) -> PolarsResult<Option<AExpr>> {
    let expr = exprs.get(node).clone();
    let (op, inputs) = match &expr {
        AExpr::BinaryExpr { left, op, right } => {
            let op = match op {
                Operator::Plus => Op::Add,
                Operator::Minus => Op::Subtract,
                Operator::Multiply => Op::Multiply,
                Operator::FloorDivide => Op::Divide,
                _ => return Ok(None),
            };
            (op, vec![*left, *right])
        }
        AExpr::Agg(IRAggExpr::Sum(input)) => (Op::Sum, vec![*input]),
        AExpr::Function {
            input, function, ..
        } => {
            let op = match function {
                IRFunctionExpr::Negate => Op::Negate,
                IRFunctionExpr::Abs => Op::Absolute,
                IRFunctionExpr::Pow(IRPowFunction::Generic) => Op::Power,
                IRFunctionExpr::CumSum { .. } => Op::Sum,
                IRFunctionExpr::ListExpr(IRListFunction::Sum) => Op::SumOfList,
                _ => return Ok(None),
            };
            (op, input.iter().map(ExprIR::node).collect())
        }
        _ => return Ok(None),
    };
    let context = ToFieldContext::new(exprs, schema);
    let ty = expr.to_dtype(&context)?;
    // The sum of booleans is a count: it cannot overflow, and has no bits to be split.
    let input = exprs.get(inputs[0]).to_dtype(&context)?;
    if !ty.is_integer() || !(input.is_integer() || matches!(op, Op::SumOfList)) {
        return Ok(None);
    }
    if !matches!(op, Op::Sum) {
        return Ok(Some(anonymous(op, inputs, ty, exprs)));
    }
    let halves = [Op::High, Op::Low].map(|half| {
        let bits = anonymous(half, inputs.clone(), DataType::Int64, exprs);
        let bits = exprs.add(bits);
        let sum = with_input(&expr, bits, exprs);
        exprs.add(sum)
    });
    Ok(Some(anonymous(Op::Sum, halves.to_vec(), ty, exprs)))
}

/// The same sum of another column.
fn with_input(sum: &AExpr, input: Node, exprs: &Arena<AExpr>) -> AExpr {
    match sum {
        AExpr::Function {
            function, options, ..
        } => AExpr::Function {
            input: vec![ExprIR::from_node(input, exprs)],
            function: function.clone(),
            options: *options,
        },
        _ => AExpr::Agg(IRAggExpr::Sum(input)),
    }
}

/// An expression that polars takes as it is: ours, item by item.
fn anonymous(op: Op, inputs: Vec<Node>, ty: DataType, exprs: &Arena<AExpr>) -> AExpr {
    let result = ty.clone();
    let compute = move |columns: &mut [Column]| arithmetic::compute(op, columns, &result);
    let field =
        move |_: &Schema, fields: &[Field]| Ok(Field::new(fields[0].name().clone(), ty.clone()));
    let inputs = inputs.into_iter();
    AExpr::AnonymousFunction {
        input: inputs.map(|node| ExprIR::from_node(node, exprs)).collect(),
        function: new_column_udf(BaseColumnUdf::new(compute, field)),
        options: FunctionOptions::elementwise(),
        fmt_str: Box::new("checked".into()),
    }
}
