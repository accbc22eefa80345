//! Property tests of the decoders: seeds of the fuzzers, and what becomes of them by changes.

use std::path::PathBuf;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::decoding::{decode_event, decode_feishu_frames};

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

/// Decodes a seed, whose first byte selects the platform.
fn decode(seed: &[u8]) -> usize {
    decode_event(usize::from(seed[0] - b'0'), &seed[1..])
}

#[test]
fn every_seed_is_an_event() {
    let seeds = seeds("channel_events");
    assert!(seeds.len() > 12);
    for seed in seeds {
        assert_ne!(decode(&seed), 0, "{}", String::from_utf8_lossy(&seed));
    }
    let frames: Vec<usize> = self::seeds("channel_feishu_frames")
        .iter()
        .map(|seed| decode_feishu_frames(seed))
        .collect();
    assert_eq!(frames, [1, 1, 0]);
}

#[test]
fn event_nested_too_deeply_has_no_effect() {
    let nested = format!("{}{}", "[".repeat(80), "]".repeat(80));
    let nested: Value = serde_json::from_str(&nested).unwrap();
    for seed in seeds("channel_events") {
        let mut event: Value = serde_json::from_slice(&seed[1..]).unwrap();
        let inner = match seed[0] {
            b'0' => &mut event["result"][0],
            b'1' => &mut event["payload"],
            b'2' => &mut event["d"],
            b'3' => &mut event["event"],
            b'4' => &mut event["headers"],
            _ => &mut event["body"],
        };
        inner["deep"] = nested.clone();
        let deep = [&seed[..1], event.to_string().as_bytes()].concat();
        assert!(decode(&deep) < decode(&seed), "{event}");
    }
}

/// Replaces one value within a JSON document, in a text with JSON too.
fn replace(document: &mut Value, at: Index, by: &Value) {
    fn visit(value: &mut Value, left: &mut usize, by: &Value) -> bool {
        if *left == 0 {
            value.clone_from(by);
            return true;
        }
        *left -= 1;
        match value {
            Value::Array(values) => values.iter_mut().any(|value| visit(value, left, by)),
            Value::Object(fields) => fields.values_mut().any(|value| visit(value, left, by)),
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(mut inner) if inner.is_object() => {
                    let is_done = visit(&mut inner, left, by);
                    *text = inner.to_string();
                    is_done
                }
                _ => false,
            },
            _ => false,
        }
    }
    let mut left = at.index(100);
    visit(document, &mut left, by);
}

fn replacement() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        Just(json!([])),
        Just(json!({})),
        Just(json!(-1)),
        Just(json!(i64::MAX)),
        Just(json!(1e300)),
        Just(json!("\u{0}\u{feff}\u{202e}")),
        Just(json!("😀".repeat(40_000))),
        any::<String>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
    ]
}

proptest! {
    #[test]
    fn replaced_values_do_not_panic(
        seed in any::<Index>(),
        changes in proptest::collection::vec((any::<Index>(), replacement()), 1..4),
    ) {
        let seeds = seeds("channel_events");
        let seed = seed.get(&seeds);
        let mut event: Value = serde_json::from_slice(&seed[1..]).unwrap();
        for (at, by) in &changes {
            replace(&mut event, *at, by);
        }
        decode(&[&seed[..1], event.to_string().as_bytes()].concat());
    }

    #[test]
    fn replaced_bytes_do_not_panic(
        seed in any::<Index>(),
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..9),
        end in any::<Index>(),
    ) {
        for target in ["channel_events", "channel_feishu_frames"] {
            let seeds = seeds(target);
            let mut input = seed.get(&seeds)[..].to_vec();
            for (at, byte) in &changes {
                let at = at.index(input.len());
                input[at] = *byte;
            }
            input.truncate(end.index(input.len() * 4) + 1);
            match target {
                "channel_events" => decode_event(usize::from(input[0]), &input[1..]),
                _ => decode_feishu_frames(&input),
            };
        }
    }
}
