//! Data of the button that stops an answer.

use uuid::Uuid;

const PREFIX: &str = "stop:";

/// Returns the data for the answer of an inbox row.
pub(crate) fn make(row: Uuid) -> String {
    format!("{PREFIX}{}", row.simple())
}

/// Parses the data of a press.
pub(crate) fn parse(data: &str) -> Option<Uuid> {
    Uuid::try_parse(data.strip_prefix(PREFIX)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_data_is_parsed_back() {
        let row = Uuid::from_u128(7);
        assert!(make(row).len() <= 64);
        assert_eq!(parse(&make(row)), Some(row));
        assert_eq!(parse("stop:"), None);
        assert_eq!(parse("q:1:2"), None);
    }
}
