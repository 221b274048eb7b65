//! Times as the database has them: microseconds, since 1970 where they are moments.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    micros(since.unwrap_or_default())
}

pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

pub(crate) fn duration(micros: i64) -> Duration {
    Duration::from_micros(micros.max(0) as u64)
}
