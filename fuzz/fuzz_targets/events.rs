//! Decodes streams of server-sent events and of lines.
#![no_main]

use harness::models::decoding_kit;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| decoding_kit::events(bytes));
