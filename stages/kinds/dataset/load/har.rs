//! UCI HAR: windows of 64 steps of 9 channels, from one table a subject and activity.

use arrow::record_batch::RecordBatch;

use super::opened::{limit, unexpected};
use crate::Failure;
use crate::kinds::dataset::archive;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::table::Sequences;
use crate::kinds::dataset::text::{Encoding, decode, lines};

const STEPS: usize = 64;

/// The activities in the order of the data set's own numbers.
pub(super) const ACTIVITIES: [&str; 6] = [
    "WALKING",
    "WALKING_UPSTAIRS",
    "WALKING_DOWNSTAIRS",
    "SITTING",
    "STANDING",
    "LAYING",
];

/// The files have total acceleration, body acceleration, gyroscope; rows have body
/// acceleration, gyroscope, total acceleration, as the data set's users name them.
const HEADER: &str =
    "accx,accy,accz,body_accx,body_accy,body_accz,body_gyrox,body_gyroy,body_gyroz";
const ORDER: [usize; 9] = [3, 4, 5, 6, 7, 8, 0, 1, 2];

/// `Combined/{Train,Test}/ACTIVITY/Subject_N.csv`: every 64 rows are one window. Ordered by
/// split (train first), activity, subject and place in the file.
pub fn har(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let file = &mut files[0];
    let (path, limit) = (&file.entry.path, limit(file));
    let mut tables: Vec<((usize, usize, u32), String)> = Vec::new();
    let unpacked = lzma_rust2::XzReader::new(std::io::BufReader::new(&mut file.file), false);
    archive::tar(
        unpacked,
        path,
        limit,
        |name| key(name).is_some(),
        |name, bytes| {
            tables.push((
                key(name).expect("only these are wanted"),
                decode(bytes.to_vec(), Encoding::Utf8, name)?,
            ));
            Ok(())
        },
    )?;
    tables.sort_unstable_by_key(|(key, _)| *key);
    let mut rows = Sequences::new([STEPS, ORDER.len()]);
    for ((split, activity, subject), table) in &tables {
        let split = ["train", "test"][*split];
        let name = format!("{split}/{}/{subject}", ACTIVITIES[*activity]);
        let mut lines = lines(table);
        if lines.next() != Some(HEADER) {
            return Err(unexpected(path, 0, &format!("{name} has other columns")));
        }
        let mut window: Vec<f32> = Vec::with_capacity(STEPS * ORDER.len());
        for (n, line) in lines.enumerate() {
            let step: Vec<f32> = line
                .split(',')
                .filter_map(|number| number.parse().ok())
                .collect();
            if step.len() != ORDER.len() {
                return Err(unexpected(
                    path,
                    n,
                    &format!("{name} has a row that is not nine numbers"),
                ));
            }
            window.extend(ORDER.map(|channel| step[channel]));
            if window.len() == STEPS * ORDER.len() {
                let id = format!("{name}/{}", n / STEPS);
                rows.push(&id, split, *activity as i64, &window);
                window.clear();
            }
        }
        if !window.is_empty() {
            return Err(unexpected(
                path,
                window.len(),
                &format!("{name} ends inside a window"),
            ));
        }
    }
    Ok(rows.finish())
}

/// The place of a table in the order, or nothing for other files.
fn key(name: &str) -> Option<(usize, usize, u32)> {
    let mut parts = name.strip_prefix("Combined/")?.split('/');
    let split = parts.next()?;
    let split = ["Train", "Test"].iter().position(|known| *known == split)?;
    let activity = parts.next()?;
    let activity = ACTIVITIES.iter().position(|known| *known == activity)?;
    let subject = parts
        .next()?
        .strip_prefix("Subject_")?
        .strip_suffix(".csv")?
        .parse()
        .ok()?;
    Some((split, activity, subject))
}
