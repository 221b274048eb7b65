//! What a table is made of, for docs and checks.

use crate::contract::expected::Expected;

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values, in words.
    pub ty: &'static str,
    /// What it holds, in one line.
    pub help: &'static str,
    /// What has it, if not every table of that name does.
    pub only: Option<&'static str>,
}

impl Column {
    /// A column.
    pub const fn new(name: &'static str, ty: &'static str, help: &'static str) -> Column {
        Column {
            name,
            ty,
            help,
            only: None,
        }
    }

    /// The same, of some tables only.
    pub const fn only(self, which: &'static str) -> Column {
        Column {
            only: Some(which),
            ..self
        }
    }
}

/// A table that stages hand to each other.
#[derive(Debug)]
pub struct TableSchema {
    /// What ports call it.
    pub name: &'static str,
    /// The kinds that make it.
    pub made_by: &'static str,
    /// What a row is, in one line.
    pub summary: &'static str,
    /// Its columns in order.
    pub columns: &'static [Column],
}

impl TableSchema {
    /// The names of its columns, of every such table.
    pub fn names(&self) -> Vec<&'static str> {
        let always = self.columns.iter().filter(|column| column.only.is_none());
        always.map(|column| column.name).collect()
    }

    /// What is known of such a table before it is made.
    pub fn expected(&self) -> Expected {
        Expected::of_columns(&self.names())
    }
}

impl TableSchema {
    /// Whether it has a column of that name.
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }
}

/// A table's columns: a constant for the name of each, and `SCHEMA`.
macro_rules! table {
    ($name:literal, $made_by:literal, $summary:literal, {
        $($constant:ident = $column:literal: $ty:literal, $help:literal $(, only $only:literal)?;)*
    }) => {
        $(
            #[doc = $help]
            pub const $constant: &str = $column;
        )*

        /// The columns.
        pub static SCHEMA: $crate::tables::schema::TableSchema = $crate::tables::schema::TableSchema {
            name: $name,
            made_by: $made_by,
            summary: $summary,
            columns: &[
                $($crate::tables::schema::Column::new($constant, $ty, $help)$(.only($only))?,)*
            ],
        };
    };
}
pub(crate) use table;
