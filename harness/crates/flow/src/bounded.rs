//! Texts of limited length.

/// Returns the first bytes of a text, at most `max`, cut between characters.
pub(crate) fn prefix(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_ends_between_characters() {
        assert_eq!(prefix("aé", 3), "aé");
        assert_eq!(prefix("aé", 2), "a");
        assert_eq!(prefix("é", 0), "");
        assert_eq!(prefix("ab", 9), "ab");
    }
}
