//! Nesting of received JSON.

/// Maximum nesting of an event.
pub(crate) const MAX_NESTING: usize = 64;

/// Returns the nesting of JSON, without recursion. The number has no meaning for other input.
pub(crate) fn nesting(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::nesting;

    #[test]
    fn brackets_in_texts_do_not_nest() {
        assert_eq!(nesting(br#"{"a":"[[[[\"[[[","b":[1]}"#), 2);
        assert_eq!(nesting(br#"["\\",[["}"]]]"#), 3);
        assert_eq!(nesting(b"7"), 0);
        assert_eq!(nesting("[".repeat(1_000_000).as_bytes()), 1_000_000);
    }
}
