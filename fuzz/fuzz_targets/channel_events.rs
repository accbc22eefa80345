//! Decodes what chat platforms send; the first byte selects the platform.
#![no_main]

use deerflow_channels::testkit::decoding::decode_event;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((platform, input)) = bytes.split_first() {
        decode_event(usize::from(platform.wrapping_sub(b'0')), input);
    }
});
