//! How far a sample may be moved: never by one unit in the last place more than allowed.

use crate::error::{Result, setting};
use crate::numeric::Real;

/// Limits on what the model reads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The largest change of a number.
    pub linf: Option<f64>,
    /// The smallest and the largest number, such as those of a pixel. A number that is outside before may stay there.
    pub range: Option<(f64, f64)>,
}

impl Limits {
    pub(super) fn check(&self) -> Result<()> {
        if let Some(linf) = self.linf {
            setting("largest change", linf >= 0.0, "at least 0", linf)?;
        }
        match self.range {
            Some((low, high)) => setting("range", low <= high, "from low to high", low),
            None => Ok(()),
        }
    }

    /// `x + d` of many numbers, or what is nearest to it within the limits.
    pub(super) fn all<T: Real>(&self, x: &[T], d: &[T]) -> Vec<T> {
        let linf = self.linf.unwrap_or(f64::INFINITY);
        let (low, high) = self.range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        let plain = |(x, d): (&T, &T)| T::of(x.to_f64() + d.to_f64().clamp(-linf, linf));
        let mut to: Vec<T> = x.iter().zip(d).map(plain).collect();
        // A step of exactly the limit is rounded too far half of the time, which no branch could guess.
        for (to, x) in to.iter_mut().zip(x) {
            *to = nearer(nearer(*to, *x, linf), *x, linf);
        }
        let within = to.iter().zip(x).fold(true, |all, (to, x)| {
            let (to, x) = (to.to_f64(), x.to_f64());
            all & ((to - x).abs() <= linf) & (low <= to) & (to <= high)
        });
        if !within {
            for (to, (x, d)) in to.iter_mut().zip(x.iter().zip(d)) {
                *to = self.moved(*x, *d);
            }
        }
        to
    }

    /// `x + d`, or what is nearest to it within the limits.
    pub fn moved<T: Real>(&self, x: T, d: T) -> T {
        let (from, mut d) = (x.to_f64(), d.to_f64());
        if let Some(linf) = self.linf {
            d = d.clamp(-linf, linf);
        }
        let mut to = T::of(from + d);
        if let Some((low, high)) = self.range {
            // A number that was outside may stay there, and may come nearer.
            let (low, high) = (low.min(from), high.max(from));
            if to.to_f64() < low {
                to = inside(low, T::next_up, |to| to >= low);
            } else if to.to_f64() > high {
                to = inside(high, T::next_down, |to| to <= high);
            }
        }
        if let Some(linf) = self.linf {
            // Rounding may have gone too far. At most twice: once for the sum, once for the limit itself.
            while (to.to_f64() - from).abs() > linf {
                to = if to.to_f64() > from {
                    to.next_down()
                } else {
                    to.next_up()
                };
            }
        }
        to
    }
}

/// `to`, or the number before it on the way from `x` if it is too far away; 0 stays.
#[inline(always)]
fn nearer<T: Real>(to: T, x: T, linf: f64) -> T {
    let far = ((to.to_f64() - x.to_f64()).abs() > linf) & (to != T::ZERO);
    if far { to.towards(x) } else { to }
}

/// The number nearest to `edge` that is not beyond it.
fn inside<T: Real>(edge: f64, back: fn(T) -> T, holds: impl Fn(f64) -> bool) -> T {
    let to = T::of(edge);
    if holds(to.to_f64()) { to } else { back(to) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Stream;

    #[test]
    fn no_number_moves_further_than_it_may_by_any_bit() {
        let s = Stream::new(5, "limits");
        for i in 0..200_000u64 {
            let linf = [0.15, 0.1, 0.3, 1e-3, 0.07][s.below(3 * i, 5)];
            let limits = Limits {
                linf: Some(linf),
                range: None,
            };
            let x = (s.normal(3 * i + 1) * 10f64.powi(s.below(i, 9) as i32 - 4)) as f32;
            let d = (s.normal(3 * i + 2) * linf) as f32;
            let to = limits.moved(x, d);
            assert!(
                (f64::from(to) - f64::from(x)).abs() <= linf,
                "{x} {d} {linf}"
            );
            assert_eq!(limits.all(&[x, x], &[d, d]), [to, to]);
            // Far from 0 the nearest float may be too far away already.
            let plain = (f64::from(x) + f64::from(d)) as f32;
            if (f64::from(plain) - f64::from(x)).abs() <= linf && f64::from(d.abs()) <= linf {
                assert_eq!(to, plain, "untouched inside");
            }
        }
    }

    #[test]
    fn pixels_stay_pixels_and_others_are_not_dragged() {
        let limits = Limits {
            linf: Some(0.3),
            range: Some((0.0, 1.0)),
        };
        assert_eq!(limits.moved(0.9f32, 0.3), 1.0);
        assert_eq!(limits.moved(0.1f32, -0.3), 0.0);
        assert_eq!(limits.moved(2.0f32, 0.1), 2.0);
        assert_eq!(limits.moved(2.0f32, -0.1), 1.9);
        let (x, d) = ([0.9f32, 0.1, 2.0, 2.0], [0.3, -0.3, 0.1, -0.1]);
        assert_eq!(limits.all(&x, &d), [1.0, 0.0, 2.0, 1.9]);
        assert_eq!(limits.all(&x[..1], &[-0.2]), [limits.moved(0.9, -0.2)]);
        assert_eq!(
            Limits::default().moved(0.9f32, 0.3),
            (0.9f32 as f64 + 0.3f32 as f64) as f32
        );
    }
}
