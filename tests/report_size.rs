//! A report of a large run holds all of it.

use crate::report::{data, report};
use crate::report_large::large;

#[test]
fn all_of_a_large_run_is_in_its_report() {
    let lab = large();
    let data = data(&report(&lab, &[]));
    assert_eq!(data["steps"].as_array().unwrap().len(), 1004);
    let table = &data["examples"]["tables"][0];
    assert_eq!(
        (
            table["total"].as_u64(),
            table["rows"].as_array().unwrap().len()
        ),
        (Some(10_000), 10_000)
    );
    // Fewer, if somebody asks: at equal distances.
    let data = crate::report::data(&report(&lab, &["--examples", "100"]));
    let rows = data["examples"]["tables"][0]["rows"].as_array().unwrap();
    assert_eq!((rows.len(), rows[1][0].as_str()), (100, Some("100")));
}
