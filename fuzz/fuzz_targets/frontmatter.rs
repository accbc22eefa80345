//! Parses the front matter of skills: a head that the strict check accepts parses to the same
//! value.
#![no_main]

use harness::skills::frontmatter::{check, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let read = parse(text);
    if let Ok(head) = check(text) {
        assert_eq!(Ok(head), read);
    }
});
