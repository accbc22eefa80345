//! Bar chart of the CPU time per run as SVG.

use std::fmt::Write as _;

/// Height of a line in pixels.
const LINE: usize = 24;
/// Left edge of the bars, after their names.
const LEFT: usize = 480;
/// Length of the longest bar.
const LONGEST: f64 = 400.0;

/// Draws one bar per name; its value is in milliseconds.
pub(super) fn svg(title: &str, bars: &[(String, f64)]) -> String {
    let largest = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let height = LINE * (bars.len() + 2);
    let width = LEFT + LONGEST as usize + 100;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n<text x=\"8\" y=\"{LINE}\" font-weight=\"bold\">{}</text>\n",
        escaped(title)
    );
    for (place, (name, value)) in bars.iter().enumerate() {
        let top = LINE * (place + 1) + LINE / 2;
        let base = top + 13;
        let length = if largest > 0.0 {
            value / largest * LONGEST
        } else {
            0.0
        };
        let end = LEFT as f64 + length + 6.0;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{base}\" text-anchor=\"end\">{}</text>\n<rect x=\"{LEFT}\" y=\"{top}\" width=\"{length:.1}\" height=\"16\" fill=\"#4878a8\"/>\n<text x=\"{end:.1}\" y=\"{base}\">{value:.3}</text>",
            LEFT - 8,
            escaped(name),
        );
    }
    text.push_str("</svg>\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_proportional_and_names_escaped() {
        let bars = [("a < b".to_owned(), 2.0), ("c".to_owned(), 0.5)];
        let text = svg("CPU", &bars);
        assert!(text.contains("a &lt; b"), "{text}");
        assert!(text.contains("width=\"400.0\"") && text.contains("width=\"100.0\""));
        assert!(text.ends_with("</svg>\n"));
        assert!(svg("empty", &[]).starts_with("<svg"));
    }
}
