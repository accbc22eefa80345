//! JSON pointers of bounded length.

/// Maximum bytes of a pointer.
pub(crate) const MAX_POINTER: usize = 1_000;

/// Appends a segment to a pointer, unless the pointer would become too long: it then remains that
/// of a value around the place.
pub(crate) fn push(pointer: &mut String, segment: &str) {
    if pointer.len() + segment.len() + 1 > MAX_POINTER {
        return;
    }
    pointer.push('/');
    if segment.contains(['~', '/']) {
        pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
    } else {
        pointer.push_str(segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_escaped_and_long_ones_left_out() {
        let mut pointer = String::new();
        push(&mut pointer, "a/b~c");
        push(&mut pointer, &"x".repeat(MAX_POINTER));
        push(&mut pointer, "0");
        assert_eq!(pointer, "/a~1b~0c/0");
    }
}
