//! Splits answers into messages: every part of every dialect is within its limit.
#![no_main]

use deerflow_channels::markup::{Dialect, counted_length, parts, preview};
use deerflow_channels::platform::{LengthUnit, TextLimit};
use libfuzzer_sys::fuzz_target;

const DIALECTS: [Dialect; 7] = [
    Dialect::Plain,
    Dialect::TelegramHtml,
    Dialect::SlackMrkdwn,
    Dialect::FeishuCard,
    Dialect::Discord,
    Dialect::DingTalk,
    Dialect::WeCom,
];

fuzz_target!(|text: &str| {
    for unit in [LengthUnit::Utf16, LengthUnit::Utf8Bytes, LengthUnit::JsonBytes] {
        for dialect in DIALECTS {
            let limit = TextLimit { unit, max: 60 };
            for part in parts(text, dialect, limit) {
                assert!(counted_length(&part.markup, dialect, unit) <= limit.max, "{part:?}");
                assert!(unit.length(&part.plain) <= limit.max, "{part:?}");
            }
            let shown = preview(text, dialect, limit);
            assert!(counted_length(&shown, dialect, unit) <= limit.max, "{shown}");
        }
    }
});
