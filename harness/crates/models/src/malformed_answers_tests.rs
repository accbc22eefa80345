//! Malformed parts of answers that every wire tolerates: invalid counts, split characters,
//! comments.

use serde_json::{Value, json};

use super::anthropic::Messages;
use super::decoding_kit::{decoded, entry};
use super::gemini::GenerateContent;
use super::http::{Chunks, DecodeError, Decoder, Wire};
use super::ollama::Chat;
use super::openai::{ChatCompletions, Dialect};
use super::responses::Responses;
use deerflow_core::messages::{Message, MessageAccumulator};

/// Wire, and how its provider encodes a text in pieces with these counts.
struct Provider {
    name: &'static str,
    /// Payloads of events. Their texts are already JSON-encoded.
    stream: fn(&[&str], &str) -> Vec<String>,
    /// Answer that is not streamed.
    whole: fn(&str, &str) -> String,
    /// `true` if each event is a line.
    lines: bool,
    decode: fn(&[u8], bool) -> (Chunks, Option<DecodeError>),
}

fn decode<W: Wire, E>(
    wire_and_endpoint: Result<(W, E), String>,
    answer: &[u8],
    streamed: bool,
) -> (Chunks, Option<DecodeError>) {
    let (wire, _) = wire_and_endpoint.expect("an entry with an address has an endpoint");
    if streamed {
        return decoded(|| wire.reader("m"), &[answer]);
    }
    let mut chunks = Chunks::new();
    let failure = Decoder::new(wire.reader("m"))
        .whole(answer, &mut chunks)
        .err();
    (chunks, failure)
}

const PROVIDERS: [Provider; 5] = [
    Provider {
        name: "chat completions",
        stream: |texts, count| {
            let payloads = texts.iter().map(|text| {
                format!(r#"{{"choices":[{{"index":0,"delta":{{"content":{text}}}}}]}}"#)
            });
            let usage = format!(
                r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":{count},"completion_tokens":{count},"total_tokens":{count},"prompt_tokens_details":{{"cached_tokens":{count}}}}}}}"#
            );
            payloads.chain([usage, "[DONE]".to_owned()]).collect()
        },
        whole: |text, count| {
            format!(
                r#"{{"choices":[{{"index":0,"message":{{"content":{text}}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":{count},"completion_tokens":{count}}}}}"#
            )
        },
        lines: false,
        decode: |answer, streamed| {
            decode(
                ChatCompletions::of(&entry(), Dialect::OPENAI),
                answer,
                streamed,
            )
        },
    },
    Provider {
        name: "responses",
        stream: |texts, count| {
            let payloads = texts.iter().map(|text| {
                format!(
                    r#"{{"type":"response.output_text.delta","output_index":0,"delta":{text}}}"#
                )
            });
            let end = format!(
                r#"{{"type":"response.completed","response":{{"status":"completed","usage":{{"input_tokens":{count},"output_tokens":{count},"total_tokens":{count},"output_tokens_details":{{"reasoning_tokens":{count}}}}}}}}}"#
            );
            payloads.chain([end]).collect()
        },
        whole: |text, count| {
            format!(
                r#"{{"status":"completed","output":[{{"type":"message","content":[{{"type":"output_text","text":{text}}}]}}],"usage":{{"input_tokens":{count},"output_tokens":{count}}}}}"#
            )
        },
        lines: false,
        decode: |answer, streamed| {
            decode(
                Responses::of(&entry(), Dialect::OPENAI.defaults),
                answer,
                streamed,
            )
        },
    },
    Provider {
        name: "anthropic",
        stream: |texts, count| {
            let begin = [
                format!(r#"{{"type":"message_start","message":{{"usage":{{"input_tokens":{count},"cache_read_input_tokens":{count}}}}}}}"#),
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.to_owned(),
            ];
            let payloads = texts
                .iter()
                .map(|text| format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{text}}}}}"#));
            let end = [
                r#"{"type":"content_block_stop","index":0}"#.to_owned(),
                format!(
                    r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{{"output_tokens":{count}}}}}"#
                ),
                r#"{"type":"message_stop"}"#.to_owned(),
            ];
            begin.into_iter().chain(payloads).chain(end).collect()
        },
        whole: |text, count| {
            format!(
                r#"{{"type":"message","content":[{{"type":"text","text":{text}}}],"stop_reason":"end_turn","usage":{{"input_tokens":{count},"output_tokens":{count}}}}}"#
            )
        },
        lines: false,
        decode: |answer, streamed| decode(Messages::of(&entry(), false), answer, streamed),
    },
    Provider {
        name: "gemini",
        stream: |texts, count| {
            let payloads = texts.iter().map(|text| {
                format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":{text}}}]}}}}]}}"#)
            });
            let end = format!(
                r#"{{"candidates":[{{"finishReason":"STOP"}}],"usageMetadata":{{"promptTokenCount":{count},"candidatesTokenCount":{count},"totalTokenCount":{count},"cachedContentTokenCount":{count}}}}}"#
            );
            payloads.chain([end]).collect()
        },
        whole: |text, count| {
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"text":{text}}}]}},"finishReason":"STOP"}}],"usageMetadata":{{"promptTokenCount":{count},"candidatesTokenCount":{count}}}}}"#
            )
        },
        lines: false,
        decode: |answer, streamed| decode(GenerateContent::of(&entry()), answer, streamed),
    },
    Provider {
        name: "ollama",
        stream: |texts, count| {
            let payloads = texts
                .iter()
                .map(|text| format!(r#"{{"message":{{"content":{text}}},"done":false}}"#));
            let end = format!(
                r#"{{"message":{{"content":""}},"done":true,"done_reason":"stop","prompt_eval_count":{count},"eval_count":{count}}}"#
            );
            payloads.chain([end]).collect()
        },
        whole: |text, count| {
            format!(
                r#"{{"message":{{"content":{text}}},"done":true,"done_reason":"stop","prompt_eval_count":{count},"eval_count":{count}}}"#
            )
        },
        lines: true,
        decode: |answer, streamed| decode(Chat::of(&entry()), answer, streamed),
    },
];

impl Provider {
    /// Returns the message of a stream of these events, with a comment before each.
    fn streamed(&self, texts: &[&str], count: &str) -> Message {
        let payloads = (self.stream)(texts, count).into_iter();
        let event = |payload: String| {
            if self.lines {
                format!(": ping\n{payload}\n")
            } else {
                format!(": ping\n\ndata: {payload}\n: ping\n\n")
            }
        };
        self.message(
            (self.decode)(payloads.map(event).collect::<String>().as_bytes(), true),
            count,
        )
    }

    fn whole(&self, text: &str, count: &str) -> Message {
        self.message(
            (self.decode)((self.whole)(text, count).as_bytes(), false),
            count,
        )
    }

    fn message(&self, (chunks, failure): (Chunks, Option<DecodeError>), count: &str) -> Message {
        assert_eq!(failure, None, "{} with {count}", self.name);
        let mut accumulator = MessageAccumulator::new("m");
        chunks.iter().for_each(|chunk| accumulator.push(chunk));
        accumulator.finish()
    }
}

#[test]
fn invalid_counts_are_tolerated() {
    let digits = "9".repeat(400);
    let counts = [
        "-5",
        "7.5",
        "\"7\"",
        "\"many\"",
        "null",
        "true",
        "[]",
        "{}",
        "1e30",
        "1e999",
        "-1e999",
        "18446744073709551616",
        &digits,
    ];
    for provider in &PROVIDERS {
        for count in counts {
            assert_eq!(
                provider.streamed(&["\"Hi\""], count).content.text(),
                "Hi",
                "{} {count}",
                provider.name
            );
            assert_eq!(
                provider.whole("\"Hi\"", count).content.text(),
                "Hi",
                "{} {count}",
                provider.name
            );
        }
        let usage = |count: &str| {
            provider
                .streamed(&["\"Hi\""], count)
                .usage()
                .map(|usage| usage.output_tokens)
        };
        assert_eq!(
            (usage("7.6"), usage("\"7\"")),
            (Some(8), Some(7)),
            "{}",
            provider.name
        );
    }
}

#[test]
fn invalid_usage_is_tolerated() {
    for provider in &PROVIDERS[..4] {
        for usage in [json!(5), json!("much"), json!([1]), Value::Null] {
            let payloads = (provider.stream)(&["\"Hi\""], "0")
                .into_iter()
                .map(|payload| {
                    let Ok(mut event) = serde_json::from_str::<Value>(&payload) else {
                        return payload;
                    };
                    for field in [
                        "/usage",
                        "/usageMetadata",
                        "/response/usage",
                        "/message/usage",
                    ] {
                        event
                            .pointer_mut(field)
                            .into_iter()
                            .for_each(|field| *field = usage.clone());
                    }
                    event.to_string()
                });
            let stream: String = payloads
                .map(|payload| format!("data: {payload}\n\n"))
                .collect();
            let message = provider.message(
                (provider.decode)(stream.as_bytes(), true),
                &usage.to_string(),
            );
            assert_eq!(message.content.text(), "Hi", "{} {usage}", provider.name);
        }
    }
}

#[test]
fn split_character_is_joined() {
    for provider in &PROVIDERS {
        for (texts, expected) in [
            (&[r#""a\ud83d""#, r#""\ude00b""#][..], "a😀b"),
            (&[r#""\ud83d""#, r#""""#, r#""\ude00""#], "😀"),
            (&[r#""\uD83D\uDE00""#], "😀"),
            (&[r#""a\ud83db""#, r#""c\ude00d""#], "a\u{fffd}bc\u{fffd}d"),
            (&[r#""\ude00a""#], "\u{fffd}a"),
            (&[r#""a\ud83d""#, r#""b""#], "ab"),
        ] {
            assert_eq!(
                provider.streamed(texts, "1").content.text(),
                expected,
                "{} {texts:?}",
                provider.name
            );
        }
        assert_eq!(
            provider.whole(r#""a\ud83db\ud83d""#, "1").content.text(),
            "a\u{fffd}b\u{fffd}",
            "{}",
            provider.name
        );
    }
}
