//! How our types look in a column of the database: digests and states as plain words,
//! collections as JSON. Knows nothing of which tables there are.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::run::{RunOutcome, Status};
use crate::digest::Digest;

/// A value that is stored as JSON.
pub(crate) struct Json<T>(pub T);

impl<T: Serialize> Json<T> {
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(&self.0).expect("our records have only string keys")
    }
}

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.text().into())
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let value = serde_json::from_str(value.as_str()?);
        value.map(Json).map_err(FromSqlError::other)
    }
}

impl ToSql for Digest {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.to_string().into())
    }
}

impl FromSql for Digest {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str()?.parse().map_err(FromSqlError::other)
    }
}

/// Stores an enum as one word for each of its values.
macro_rules! words {
    ($type:ty { $($word:literal = $value:path),+ }) => {
        impl ToSql for $type {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(match self { $($value => $word),+ }.into())
            }
        }

        impl FromSql for $type {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                match value.as_str()? {
                    $($word => Ok($value),)+
                    other => Err(FromSqlError::other(UnknownWord(other.to_owned()))),
                }
            }
        }
    };
}

words!(Status {
    "ran" = Status::Ran,
    "hit" = Status::Hit,
    "failed" = Status::Failed,
    "skipped" = Status::Skipped
});

words!(RunOutcome {
    "ok" = RunOutcome::Ok,
    "failed" = RunOutcome::Failed,
    "interrupted" = RunOutcome::Interrupted
});

#[derive(Debug, thiserror::Error)]
#[error("unknown state `{0}`")]
struct UnknownWord(String);
