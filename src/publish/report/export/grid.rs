//! Rows of words as Markdown and LaTeX. Whatever is in them stays text.

/// A table in words.
pub struct Grid {
    /// What it is called.
    pub title: String,
    /// Names of the columns.
    pub head: Vec<String>,
    /// Whether a column holds numbers.
    pub numbers: Vec<bool>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
    /// Cells in bold: the row and the column of each.
    pub bold: Vec<(usize, usize)>,
}

impl Grid {
    /// As Markdown has tables.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells = cells.iter().map(|cell| format!(" {cell} |"));
            format!("|{}\n", cells.collect::<String>())
        };
        let head: Vec<String> = self.head.iter().map(|cell| in_markdown(cell)).collect();
        let rule = self
            .numbers
            .iter()
            .map(|number| if *number { "---:|" } else { "---|" });
        let rows = self.written(in_markdown, |cell| format!("**{cell}**"));
        let rows: String = rows.iter().map(|row| line(row)).collect();
        format!(
            "**{}**\n\n{}|{}\n{rows}",
            in_markdown(&self.title),
            line(&head),
            rule.collect::<String>()
        )
    }

    /// As LaTeX with the package `booktabs` has them.
    pub fn latex(&self) -> String {
        let line = |cells: &[String]| format!("{} \\\\\n", cells.join(" & "));
        let head: Vec<String> = self.head.iter().map(|cell| in_latex(cell)).collect();
        let sides = self
            .numbers
            .iter()
            .map(|number| if *number { 'r' } else { 'l' });
        let rows = self.written(in_latex, |cell| format!("\\textbf{{{cell}}}"));
        let rows: String = rows.iter().map(|row| line(row)).collect();
        format!(
            "% {}\n\\begin{{tabular}}{{{}}}\n\\toprule\n{}\\midrule\n{rows}\\bottomrule\n\\end{{tabular}}\n",
            self.title.replace(['\n', '\r'], " "),
            sides.collect::<String>(),
            line(&head)
        )
    }

    /// The rows, each cell escaped, and in bold if it is.
    fn written(&self, escape: fn(&str) -> String, bold: fn(String) -> String) -> Vec<Vec<String>> {
        let row = |(n, row): (usize, &Vec<String>)| {
            let cells = row
                .iter()
                .enumerate()
                .map(|(k, cell)| match self.bold.contains(&(n, k)) {
                    true => bold(escape(cell)),
                    false => escape(cell),
                });
            cells.collect()
        };
        self.rows.iter().enumerate().map(row).collect()
    }
}

fn in_markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\n' | '\r' => safe.push(' '),
            '<' => safe.push_str("&lt;"),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' => safe.extend(['\\', sign]),
            _ => safe.push(sign),
        }
    }
    safe
}

/// Text that LaTeX prints as it is.
pub fn in_latex(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\n' | '\r' => safe.push(' '),
            '\\' => safe.push_str("\\textbackslash{}"),
            '~' => safe.push_str("\\textasciitilde{}"),
            '^' => safe.push_str("\\textasciicircum{}"),
            '<' => safe.push_str("\\textless{}"),
            '>' => safe.push_str("\\textgreater{}"),
            '±' => safe.push_str("$\\pm$"),
            '−' => safe.push_str("$-$"),
            '–' => safe.push_str("--"),
            '#' | '$' | '%' | '&' | '_' | '{' | '}' => safe.extend(['\\', sign]),
            _ => safe.push(sign),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        Grid {
            title: "a\nb".to_owned(),
            head: words(&["", "50%_x"]),
            numbers: vec![false, true],
            rows: vec![
                words(&["a|b\\", "0.5 ± 0.1"]),
                words(&["<i>", "\\input{x}"]),
            ],
            bold: Vec::new(),
        }
    }

    #[test]
    fn markdown_keeps_its_columns() {
        assert_eq!(
            grid().markdown(),
            "**a b**\n\n|  | 50%\\_x |\n|---|---:|\n| a\\|b\\\\ | 0.5 ± 0.1 |\n| &lt;i> | \\\\input{x} |\n"
        );
    }

    #[test]
    fn latex_runs_no_command_of_the_data() {
        assert_eq!(
            grid().latex(),
            "% a b\n\\begin{tabular}{lr}\n\\toprule\n & 50\\%\\_x \\\\\n\\midrule\n\
             a|b\\textbackslash{} & 0.5 $\\pm$ 0.1 \\\\\n\
             \\textless{}i\\textgreater{} & \\textbackslash{}input\\{x\\} \\\\\n\\bottomrule\n\\end{tabular}\n"
        );
    }
}
