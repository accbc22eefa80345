//! Numbers for readers.

use std::time::Duration;

pub(super) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

pub(super) fn ratio(ours: f64, theirs: f64) -> String {
    if theirs > 0.0 {
        format!("x {:.2}", ours / theirs)
    } else {
        "-".to_owned()
    }
}

pub(super) fn time(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1000.0;
    match milliseconds {
        0.0..0.1 => format!("{:.1} µs", milliseconds * 1000.0),
        0.1..10.0 => format!("{milliseconds:.2} ms"),
        10.0..1000.0 => format!("{milliseconds:.0} ms"),
        _ => format!("{:.2} s", milliseconds / 1000.0),
    }
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_reading() {
        assert_eq!(count(1_234_567.4), "1,234,567");
        assert_eq!(count(999.0), "999");
        assert_eq!(time(Duration::from_micros(42)), "42.0 µs");
        assert_eq!(time(Duration::from_micros(1234)), "1.23 ms");
        assert_eq!(time(Duration::from_millis(45)), "45 ms");
        assert_eq!(time(Duration::from_millis(2040)), "2.04 s");
        assert_eq!(ratio(1.0, 4.0), "x 0.25");
        assert_eq!(ratio(1.0, 0.0), "-");
    }
}
