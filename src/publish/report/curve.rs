//! A specification curve: one number in every world, sorted, with its interval; below it which choices each world
//! takes. Knows nothing of claims beyond a verdict's name, by which a dot has its colour.

use std::fmt::Write;

use super::ablations::escaped;

/// A number in one world.
pub struct CurvePoint {
    /// The choices of the world; none as written.
    pub choices: Vec<String>,
    /// The number.
    pub value: f64,
    /// The ends of its interval.
    pub ends: Option<[f64; 2]>,
    /// What is said of the claim there.
    pub verdict: String,
}

impl CurvePoint {
    fn name(&self) -> String {
        match self.choices.is_empty() {
            true => "as written".to_owned(),
            false => self.choices.join(" + "),
        }
    }

    /// In words, for those who point at it or cannot see it.
    fn title(&self) -> String {
        let ends = self
            .ends
            .map(|[low, high]| format!(" [{low:.3}, {high:.3}]"));
        let (name, ends) = (self.name(), ends.unwrap_or_default());
        escaped(&format!(
            "{name}: {:.3}{ends}, {}",
            self.value, self.verdict
        ))
    }
}

/// Room for the names of choices, the height of the curve, and of a line of the matrix below it.
const NAMES: f64 = 190.0;
const CURVE: f64 = 170.0;
const LINE: f64 = 18.0;
/// Room above the curve, and between it and the matrix.
const GAP: f64 = 14.0;

/// The picture. Nothing where there is no number.
pub fn curve(points: &[CurvePoint]) -> String {
    let mut points: Vec<&CurvePoint> = points.iter().filter(|p| p.value.is_finite()).collect();
    points.sort_by(|a, b| a.value.total_cmp(&b.value));
    let Some((least, most)) = range(&points) else {
        return String::new();
    };
    let step = (420.0 / points.len() as f64).clamp(14.0, 60.0);
    let x = |n: usize| NAMES + step * (n as f64 + 0.5);
    let y = |value: f64| GAP + (most - value) / (most - least) * CURVE;
    let width = x(points.len()) + step / 2.0;
    let choices = all_choices(&points);
    let height = GAP + CURVE + GAP + LINE * choices.len() as f64 + GAP;
    let mut svg = format!(
        "<svg class=\"curve\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"the number in each world, sorted, with its 95% interval\">"
    );
    for (value, at) in [(most, GAP + 4.0), (least, GAP + CURVE)] {
        text(&mut svg, NAMES - 8.0, at, &format!("{value:.3}"));
    }
    if let Some(written) = points.iter().find(|point| point.choices.is_empty()) {
        let at = y(written.value);
        let _ = write!(
            svg,
            "<line class=\"written\" x1=\"{NAMES}\" y1=\"{at:.1}\" x2=\"{width:.1}\" y2=\"{at:.1}\"/>"
        );
        // Where it would stand on the number of an end, that end says enough.
        if at - GAP > 14.0 && GAP + CURVE - at > 14.0 {
            text(&mut svg, NAMES - 8.0, at + 4.0, "as written");
        }
    }
    for (n, point) in points.iter().enumerate() {
        dot(&mut svg, point, x(n), y);
    }
    matrix(&mut svg, &points, &choices, x);
    svg + "</svg>"
}

/// The least and the most that is drawn, with room between them.
fn range(points: &[&CurvePoint]) -> Option<(f64, f64)> {
    let all = points.iter().flat_map(|point| {
        let [low, high] = point.ends.unwrap_or([point.value; 2]);
        [point.value, low, high]
    });
    let all: Vec<f64> = all.filter(|value| value.is_finite()).collect();
    let least = all.iter().copied().reduce(f64::min)?;
    let most = all.iter().copied().reduce(f64::max)?;
    Some(match least < most {
        true => (least, most),
        false => (least - 0.5, most + 0.5),
    })
}

/// Every choice that some world takes, in the order of the worlds.
fn all_choices<'a>(points: &[&'a CurvePoint]) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for choice in points.iter().flat_map(|point| &point.choices) {
        if !found.contains(&choice.as_str()) {
            found.push(choice);
        }
    }
    found
}

fn dot(svg: &mut String, point: &CurvePoint, x: f64, y: impl Fn(f64) -> f64) {
    let class = point.verdict.replace(' ', "-");
    let _ = write!(
        svg,
        "<g class=\"dot {}\"><title>{}</title>",
        escaped(&class),
        point.title()
    );
    if let Some([low, high]) = point.ends {
        let (top, bottom) = (y(high), y(low));
        let _ = write!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>"
        );
    }
    let _ = write!(
        svg,
        "<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"4.5\"/></g>",
        y(point.value)
    );
}

/// A line for each choice, with a mark below the worlds that take it.
fn matrix(svg: &mut String, points: &[&CurvePoint], choices: &[&str], x: impl Fn(usize) -> f64) {
    for (n, choice) in choices.iter().enumerate() {
        let y = GAP + CURVE + GAP + LINE * (n as f64 + 0.5);
        text(svg, NAMES - 8.0, y + 4.0, choice);
        for (column, point) in points.iter().enumerate() {
            let takes = point.choices.iter().any(|taken| taken == choice);
            let (class, radius) = if takes { ("taken", 4.0) } else { ("left", 1.5) };
            let _ = write!(
                svg,
                "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>",
                x(column)
            );
        }
    }
}

fn text(svg: &mut String, x: f64, y: f64, text: &str) {
    let _ = write!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\" font-size=\"12\">{}</text>",
        escaped(text)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(choices: &[&str], value: f64, verdict: &str) -> CurvePoint {
        CurvePoint {
            choices: choices.iter().map(|name| (*name).to_owned()).collect(),
            value,
            ends: Some([value - 0.1, value + 0.1]),
            verdict: verdict.to_owned(),
        }
    }

    #[test]
    fn worlds_are_sorted_and_marked_by_what_they_choose() {
        let points = [
            point(&[], 0.5, "reproduced"),
            point(&["<b>"], 0.9, "not reproduced"),
            point(&["a"], 0.1, "uncertain"),
            point(&["a", "<b>"], 0.7, "uncertain"),
        ];
        let svg = curve(&points);
        let titles: Vec<&str> = svg.split("<title>").skip(1).collect();
        let order = [
            "a: 0.100",
            "as written: 0.500",
            "a + &lt;b&gt;: 0.700",
            "&lt;b&gt;: 0.900",
        ];
        for (title, start) in titles.iter().zip(order) {
            assert!(title.starts_with(start), "{title}");
        }
        assert_eq!(svg.matches("class=\"taken\"").count(), 4);
        assert_eq!(svg.matches("class=\"left\"").count(), 4);
        assert_eq!(svg.matches("class=\"dot not-reproduced\"").count(), 1);
        assert!(!svg.contains("<b>"));
    }

    #[test]
    fn equal_numbers_have_a_place_and_no_number_has_no_picture() {
        let one = CurvePoint {
            ends: None,
            ..point(&[], 2.0, "reproduced")
        };
        assert!(!curve(&[one]).contains("NaN"));
        assert_eq!(curve(&[point(&[], f64::NAN, "not run")]), "");
        assert_eq!(curve(&[]), "");
    }
}
