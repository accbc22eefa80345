//! Decodes and joins the binary frames of Feishu's long connection.
#![no_main]

use deerflow_channels::testkit::decoding::decode_feishu_frames;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    decode_feishu_frames(bytes);
});
