//! What is checked of `evaluate` before it runs: cells without an input, metrics and names that a table does not
//! have. Decides no result.

use store::Params;

use super::cells::{self, Cell};
use super::metrics;
use crate::ParamError;
use crate::contract::expected::{
    Blamed, EXTERNAL, Expected, ExpectedInputs, ExpectedOutputs, ExpectedRows, Mismatch,
};
use crate::contract::nearest::nearest;
use crate::models;
use crate::params::settings::{Settings, wrong};
use crate::tables::{self, changes, examples, positions, results};

/// For `measure = "cells"`.
pub fn cells(params: &Params, inputs: &ExpectedInputs<'_>) -> Result<ExpectedOutputs, Mismatch> {
    for (n, cell) in cells::read(params)?.iter().enumerate() {
        let Some(table) = inputs.of(&cell.from) else {
            let known = inputs.0.keys().copied().filter(|port| *port != "paper");
            return Err(cells::no_input(n, &cell.from, known).into());
        };
        check_where(n, cell, table)?;
        match table.examples {
            true => of_examples(cell, table)?,
            false => of_table(cell, table)?,
        }
    }
    if let Some(paper) = inputs.of("paper") {
        let needed = ["table", "row", "col", "value"];
        let missing = needed
            .into_iter()
            .find(|name| paper.has_column(name) == Some(false));
        if let Some(name) = missing {
            let message = format!("the input `paper` has no column `{name}`");
            let help = "it has the columns table, row, col and value";
            return Err(Mismatch::new(
                Blamed::Input("paper".to_owned()),
                message,
                help,
            ));
        }
    }
    Ok(vec![results::SCHEMA.expected()])
}

/// Refuses a `where` that no row can meet. A value that an overlay has left out is not a mistake: then the cell is empty.
fn check_where(n: usize, cell: &Cell, table: &Expected) -> Result<(), ParamError> {
    for (name, values) in &cell.only {
        let Some(axis) = table.axis_values.iter().find(|axis| axis.name == *name) else {
            let of_examples = examples::SCHEMA.has(name) || table.axes.contains(name);
            if table.has_column(name) == Some(false) || table.examples && !of_examples {
                let columns = table.columns.iter().flatten().chain(&table.axes);
                let columns: Vec<String> = columns.cloned().collect();
                return Err(no_column(cell, name, &columns));
            }
            continue;
        };
        let known = |value: &&String| axis.values.contains(value) || axis.left_out.contains(value);
        if let Some(value) = values.iter().find(|value| !known(value)) {
            let message = format!(
                "cell {} asks for {name} = \"{value}\", which axis `{name}` does not have",
                n + 1
            );
            let near = nearest(value, axis.values.iter().map(String::as_str));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its values: {}", axis.values.join(", ")),
            };
            return Err(wrong("cells", message, help));
        }
    }
    Ok(())
}

/// Numbers that are measured on the examples of an attack.
fn of_examples(cell: &Cell, table: &Expected) -> Result<(), ParamError> {
    let Some(metric) = metrics::find(&cell.metric) else {
        // A column of examples will do if there is one row for each cell.
        return match examples::SCHEMA.has(&cell.metric) {
            true => Ok(()),
            false => Err(cells::no_metric(cell, metrics::names())),
        };
    };
    let entry = metric.entry();
    let written = |name: &str| cell.placeholders().any(|written| written == name);
    if let Some(missing) = entry.placeholders.iter().find(|name| !written(name)) {
        let name = entry.name;
        let message = format!("the metric `{name}` has a number for each {{{missing}}}");
        let help = format!(
            "put {{{missing}}} into a name of the cell from `{}`",
            cell.from
        );
        return Err(wrong("cells", message, help));
    }
    let known = |name: &str| {
        entry.placeholders.contains(&name)
            || examples::SCHEMA.has(name)
            || table.axes.iter().any(|axis| axis == name)
    };
    if let Some(unknown) = cell.placeholders().find(|name| !known(name)) {
        return Err(no_column(cell, unknown, &table.axes));
    }
    let named = |axis: &&String| *axis == "seed" || written(axis) || cell.fixes(axis);
    match table.axes.iter().find(|axis| !named(axis)) {
        Some(axis) => {
            let message = format!(
                "`{}` was collected over `{axis}`, and the cell would mix its values",
                cell.from
            );
            Err(wrong(
                "cells",
                message,
                format!(
                    "put {{{axis}}} into a name of the cell, or choose one: where = {{ {axis} = \"VALUE\" }}"
                ),
            ))
        }
        None => Ok(()),
    }
}

/// Numbers that a table has already.
fn of_table(cell: &Cell, table: &Expected) -> Result<(), ParamError> {
    let columns = table.columns.iter().flatten().chain(&table.axes);
    if table.has_column(&cell.metric) == Some(false) {
        let known = table.columns.iter().flatten().map(String::as_str);
        return Err(cells::no_metric(cell, known));
    }
    if let Some(missing) = cell
        .placeholders()
        .find(|name| table.has_column(name) == Some(false))
    {
        let columns: Vec<String> = columns.cloned().collect();
        return Err(no_column(cell, missing, &columns));
    }
    let named = || cell.placeholders().any(|name| name == "n");
    if table.axes.iter().any(|axis| axis == "n") && !named() {
        let message = format!(
            "`{}` was collected over the axis `n`, which would be taken for a number of rows",
            cell.from
        );
        return Err(wrong("cells", message, "put {n} into a name of the cell"));
    }
    Ok(())
}

fn no_column(cell: &Cell, name: &str, known: &[String]) -> ParamError {
    let message = format!("`{}` has no column `{name}`", cell.from);
    let help = match known.is_empty() {
        true => "{name} in a cell stands for the value of an axis that the input is collected over: add it to `over`".to_owned(),
        false => format!("{{name}} in a cell stands for one of {}", known.join(", ")),
    };
    wrong("cells", message, help)
}

/// For `measure = "pca"`.
pub fn pca(params: &Params, inputs: &ExpectedInputs<'_>) -> Result<ExpectedOutputs, Mismatch> {
    inputs.one_text("rows")?;
    let words = |rows| matches!(rows, ExpectedRows::Tokens { .. });
    inputs.hold("rows", "measure = \"pca\"", "tokens", words)?;
    inputs.has_split(
        "rows",
        "split",
        Settings(params).text("split").unwrap_or("train"),
    )?;
    let scatter = Expected::of_columns(&["id", "label", "pc1", "pc2"]);
    Ok(vec![results::SCHEMA.expected(), scatter])
}

/// For `measure = "neighbours"`.
pub fn neighbours(inputs: &ExpectedInputs<'_>) -> Result<ExpectedOutputs, Mismatch> {
    let victim = inputs
        .of("victim")
        .and_then(|weights| weights.model.as_ref());
    if let Some(other) = victim.filter(|model| model.name != "char-cnn") {
        let message = format!("the input `victim` is the model `{}`", other.called());
        let help = "connect a train stage with model = \"char-cnn\"";
        let at = Blamed::Input("victim".to_owned());
        return Err(Mismatch::new(at, message, help));
    }
    Ok(vec![Expected::of_columns(&super::neighbours::COLUMNS)])
}

/// For `measure = "changes"`.
pub fn changes() -> ExpectedOutputs {
    vec![changes::SCHEMA.expected(), positions::SCHEMA.expected()]
}

/// For `measure = "perturbations"`.
pub fn perturbations(
    params: &Params,
    inputs: &ExpectedInputs<'_>,
) -> Result<ExpectedOutputs, Mismatch> {
    let by = super::perturbations::by(params)?;
    let generated = inputs.of("generated");
    if let Some(table) = generated.filter(|table| table.has_column(by) == Some(false)) {
        let message = format!("the input `generated` has no column `{by}`");
        let help = match nearest(by, table.axes.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("collect the axis: over = [\"{by}\"]"),
        };
        return Err(wrong("by", message, help).into());
    }
    let [id, first, second, nearest] = super::perturbations::COLUMNS;
    let columns = [id, by, first, second, nearest];
    Ok(vec![Expected::of_columns(&columns)])
}

/// For `measure = "attention-bound"`.
pub fn attention_bound() -> ExpectedOutputs {
    vec![Expected::of_columns(&super::attention_bound::COLUMNS)]
}

/// For `measure = "translation"`.
pub fn translation() -> ExpectedOutputs {
    let columns: [&[&str]; 3] = [
        &super::translation::COLUMNS,
        &super::translation::SCORES,
        &super::translation_attention::COLUMNS,
    ];
    columns.map(Expected::of_columns).to_vec()
}

/// For `measure = "words"`.
pub fn words(inputs: &ExpectedInputs<'_>) -> Result<ExpectedOutputs, Mismatch> {
    let bayes = inputs
        .of("bayes")
        .and_then(|weights| weights.model.as_ref());
    if let Some(other) = bayes.filter(|model| model.name != "naive-bayes") {
        let message = format!("the input `bayes` is the model `{}`", other.called());
        let help = "connect a train stage with model = \"naive-bayes\"";
        return Err(Mismatch::new(
            Blamed::Input("bayes".to_owned()),
            message,
            help,
        ));
    }
    let words = ["label", "rank", "token", "count", "other"];
    Ok(vec![Expected::of_columns(&words)])
}

/// For `measure = "coverage"`.
pub fn coverage(params: &Params, inputs: &ExpectedInputs<'_>) -> Result<ExpectedOutputs, Mismatch> {
    let victim = inputs
        .of("victim")
        .and_then(|weights| weights.model.as_ref());
    if let Some(other) = victim.filter(|model| !model.states) {
        let message = format!(
            "the model `{}` has no recurrent states to cover",
            other.called()
        );
        let recurrent = models::MODELS.iter().filter(|model| model.recurrent());
        let recurrent: Vec<&str> = recurrent.map(|model| model.entry().name).collect();
        let help = match other.name == EXTERNAL {
            true => "answer them with ablate.serve(predict=…, states=…), and set states = true in its stage".to_owned(),
            false => format!("connect a train stage with one of {}", recurrent.join(", ")),
        };
        let at = Blamed::Input("victim".to_owned());
        return Err(Mismatch::new(at, message, help));
    }
    inputs.has_split("rows", "split", split(params))?;
    Ok(vec![tables::coverage::SCHEMA.expected()])
}

/// For `measure = "perplexity"`.
pub fn perplexity(
    params: &Params,
    inputs: &ExpectedInputs<'_>,
) -> Result<ExpectedOutputs, Mismatch> {
    let victim = inputs
        .of("victim")
        .and_then(|weights| weights.model.as_ref());
    if let Some(other) = victim.filter(|model| model.name != "lstm-lm") {
        let message = format!("the model `{}` is not a language model", other.called());
        let help = "connect a train stage with model = \"lstm-lm\"";
        let at = Blamed::Input("victim".to_owned());
        return Err(Mismatch::new(at, message, help));
    }
    inputs.has_split("rows", "split", split(params))?;
    Ok(vec![Expected::of_columns(&super::perplexity::COLUMNS)])
}

fn split(params: &Params) -> &str {
    Settings(params).text("split").unwrap_or("train")
}
