//! Heads of skills: what the rules of the format take is also read, and means the same.
#![no_main]

use harness::skills::frontmatter::{check, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let read = parse(text);
    if let Ok(head) = check(text) {
        assert_eq!(Ok(head), read);
    }
});
