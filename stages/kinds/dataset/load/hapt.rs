//! UCI HAPT: true windows of 128 steps of 9 channels, cut from the raw stream as the makers of UCI HAR cut theirs.
//!
//! ```text
//! for each recording and channel:  x = low(20 Hz, median of three neighbours)
//! of the acceleration:             body = x - low(0.3 Hz, x),  total = x
//! for each activity without a gap: windows of 128 samples, every 64 samples
//! ```
//!
//! `low` is a Butterworth low-pass of the third order that knows only the past and starts settled at the first sample.
//! Filters run along a whole recording; windows stay inside one activity, and postural transitions (labels above 6)
//! have none. The recordings of nine users are HAR's test split.

use arrow::record_batch::RecordBatch;

use super::har::ACTIVITIES;
use super::opened::{bytes, unexpected, unpacked};
use crate::Failure;
use crate::kinds::dataset::fetch::Opened;
use crate::kinds::dataset::table::Sequences;
use crate::kinds::dataset::text::{decode, lines};

const HEADER: &str = "user,recording,label,ax,ay,az,gx,gy,gz";
const STEPS: usize = 128;
const HOP: usize = 64;
const HERTZ: f64 = 50.0;
const NOISE: f64 = 20.0;
const GRAVITY: f64 = 0.3;
const TEST_USERS: [u32; 9] = [2, 4, 9, 10, 12, 13, 18, 20, 24];

/// One recording of one user.
#[derive(Default)]
struct Recording {
    user: u32,
    number: u32,
    labels: Vec<i64>,
    /// Acceleration x y z, gyroscope x y z.
    channels: [Vec<f64>; 6],
}

/// Ordered by recording, and by time in each.
pub fn hapt(mut files: Vec<Opened<'_>>) -> Result<RecordBatch, Failure> {
    let file = &mut files[0];
    let packed = bytes(file)?;
    let text = unpacked(file, lzma_rust2::XzReader::new(&packed[..], false))?;
    let text = decode(text, file.entry.encoding, &file.entry.path)?;
    let mut rows = Sequences::new([STEPS, 9]);
    for recording in recordings(&text, &file.entry.path)? {
        let split = match TEST_USERS.contains(&recording.user) {
            true => "test",
            false => "train",
        };
        let channels = filtered(&recording.channels);
        for (activity, start) in windows(&recording.labels) {
            let step = |k: usize| channels.iter().map(move |channel| channel[k] as f32);
            let x: Vec<f32> = (start..start + STEPS).flat_map(step).collect();
            let (user, number) = (recording.user, recording.number);
            let name = ACTIVITIES[activity];
            let id = format!("{split}/{name}/{user}/{number}/{start}");
            rows.push(&id, split, activity as i64, &x);
        }
    }
    Ok(rows.finish())
}

fn recordings(text: &str, path: &str) -> Result<Vec<Recording>, Failure> {
    let mut lines = lines(text);
    if lines.next() != Some(HEADER) {
        return Err(unexpected(path, 0, "it has other columns"));
    }
    let mut all: Vec<Recording> = Vec::new();
    for (n, line) in lines.enumerate() {
        let wrong = || unexpected(path, n, "it is not nine numbers");
        let mut fields = line.split(',');
        let mut whole = || fields.next()?.parse::<i64>().ok();
        let (user, number, label) = (whole(), whole(), whole());
        let (user, number) = (user.ok_or_else(wrong)?, number.ok_or_else(wrong)?);
        let (user, number) = (user as u32, number as u32);
        if all.last().is_none_or(|last| last.number != number) {
            all.push(Recording {
                user,
                number,
                ..Recording::default()
            });
        }
        let last = all.last_mut().expect("one was pushed");
        last.labels.push(label.ok_or_else(wrong)?);
        for channel in &mut last.channels {
            let number = fields.next().and_then(|field| field.parse().ok());
            channel.push(number.ok_or_else(wrong)?);
        }
        if fields.next().is_some() {
            return Err(wrong());
        }
    }
    Ok(all)
}

/// Body acceleration, gyroscope and total acceleration, as the set `har` has them.
fn filtered(channels: &[Vec<f64>; 6]) -> Vec<Vec<f64>> {
    let clean: Vec<Vec<f64>> = channels.iter().map(|x| low(NOISE, &medians(x))).collect();
    let (total, gyroscope) = clean.split_at(3);
    let body = total.iter().map(|x| {
        let gravity = low(GRAVITY, x);
        x.iter()
            .zip(gravity)
            .map(|(x, gravity)| x - gravity)
            .collect()
    });
    body.chain(gyroscope.iter().cloned())
        .chain(total.iter().cloned())
        .collect()
}

/// The median of each number and its two neighbours; the ends stay.
fn medians(x: &[f64]) -> Vec<f64> {
    let mut all = x.to_vec();
    for (k, three) in x.windows(3).enumerate() {
        let (a, b, c) = (three[0], three[1], three[2]);
        all[k + 1] = a.max(b).min(a.min(b).max(c));
    }
    all
}

/// Butterworth's low-pass of the third order: a section of the first order and one of the second, by the bilinear
/// transform, which meets the cutoff exactly.
fn low(cutoff: f64, x: &[f64]) -> Vec<f64> {
    let k = libm::tan(std::f64::consts::PI * cutoff / HERTZ);
    let first = [k, k, 0.0, (k - 1.0), 0.0].map(|c| c / (k + 1.0));
    let square = k * k;
    let second = [
        square,
        2.0 * square,
        square,
        2.0 * (square - 1.0),
        1.0 - k + square,
    ];
    let second = second.map(|c| c / (1.0 + k + square));
    section(second, &section(first, x))
}

/// `y[n] = b0 x[n] + b1 x[n-1] + b2 x[n-2] - a1 y[n-1] - a2 y[n-2]`, as if the first number had been there for ever.
fn section([b0, b1, b2, a1, a2]: [f64; 5], x: &[f64]) -> Vec<f64> {
    let first = x.first().copied().unwrap_or_default();
    let ([mut x1, mut x2], [mut y1, mut y2]) = ([first; 2], [first; 2]);
    let step = |x: &f64| {
        let y = b0 * x + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2;
        (x1, x2, y1, y2) = (*x, x1, y, y1);
        y
    };
    x.iter().map(step).collect()
}

/// The activity and the first sample of every window.
fn windows(labels: &[i64]) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    let mut from = 0;
    for stretch in labels.chunk_by(|a, b| a == b) {
        let activity = usize::try_from(stretch[0] - 1).ok();
        if let Some(activity) = activity.filter(|activity| *activity < ACTIVITIES.len()) {
            let last = stretch.len().checked_sub(STEPS);
            let starts = last.into_iter().flat_map(|last| (0..=last).step_by(HOP));
            all.extend(starts.map(|start| (activity, from + start)));
        }
        from += stretch.len();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_pass_lets_constants_through_and_halves_power_at_its_cutoff() {
        assert!(
            low(NOISE, &[0.7; 50])
                .iter()
                .all(|y| (y - 0.7).abs() < 1e-12)
        );
        for cutoff in [0.3, 5.0, 20.0] {
            let wave =
                |k: usize, hertz: f64| libm::sin(std::f64::consts::TAU * hertz * k as f64 / HERTZ);
            let gain = |hertz: f64| {
                let x: Vec<f64> = (0..20_000).map(|k| wave(k, hertz)).collect();
                let power = |x: &[f64]| x[10_000..].iter().map(|x| x * x).sum::<f64>();
                power(&low(cutoff, &x)) / power(&x)
            };
            assert!(
                (gain(cutoff) - 0.5).abs() < 1e-3,
                "{cutoff}: {}",
                gain(cutoff)
            );
            assert!(gain(0.2 * cutoff) > 0.99, "{cutoff}");
        }
        // Of the third order: far above the cutoff ten times the frequency is a millionth of the power.
        let x: Vec<f64> = (0..20_000)
            .map(|k| libm::sin(std::f64::consts::TAU * 3.0 * k as f64 / HERTZ))
            .collect();
        let y = low(0.3, &x);
        let top = y[10_000..].iter().fold(0.0f64, |top, y| top.max(y.abs()));
        assert!((5e-4..1.1e-3).contains(&top), "{top}");
    }

    #[test]
    fn windows_stay_inside_an_activity() {
        let labels = [
            vec![5; 200],
            vec![7; 300],
            vec![1; 127],
            vec![6; 128],
            vec![-1; 9],
        ]
        .concat();
        assert_eq!(windows(&labels), [(4, 0), (4, 64), (5, 627)]);
        assert_eq!(
            medians(&[1.0, 9.0, 2.0, 3.0, -5.0]),
            [1.0, 2.0, 3.0, 2.0, -5.0]
        );
    }
}
