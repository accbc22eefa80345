//! Decoding of chat-completions streams: complete, split and damaged ones.

#[path = "decode_robustness_tests.rs"]
mod robustness;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::http::wire_kit::{
    Decoder, GeneratedAnswer, check_robustness, check_round_trip, decoded as in_pieces,
    message_of_whole,
};
use deerflow_core::messages::{Message, MessageAccumulator, MessageChunk, MessageKind};

fn reader(dialect: Dialect) -> ChatCompletionsReader {
    ChatCompletionsReader::new("m1", dialect, "asked")
}

fn decoded_in(pieces: &[&[u8]]) -> (Vec<MessageChunk>, Option<DecodeError>) {
    let mut decoder = Decoder::new(reader(Dialect::OPENAI));
    let mut chunks = Vec::new();
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut chunks) {
            return (chunks, Some(error));
        }
    }
    let error = decoder.end(&mut chunks).err();
    (chunks, error)
}

fn decoded(stream: &str) -> (Vec<MessageChunk>, Option<DecodeError>) {
    decoded_in(&[stream.as_bytes()])
}

fn accumulated(chunks: &[MessageChunk]) -> Message {
    let mut accumulator = MessageAccumulator::new("m1");
    chunks.iter().for_each(|chunk| accumulator.push(chunk));
    accumulator.finish()
}

fn message(stream: &str) -> Message {
    let (chunks, error) = decoded(stream);
    assert_eq!(error, None);
    assert_eq!(
        chunks.last().and_then(|chunk| chunk.chunk_position),
        Some("last")
    );
    accumulated(&chunks)
}

/// Returns one event per delta of the first choice.
fn events(deltas: &[Value]) -> String {
    let event = |delta: &Value| {
        format!(
            "data: {}\n\n",
            json!({"choices": [{"index": 0, "delta": delta}]})
        )
    };
    deltas.iter().map(event).collect()
}

fn finished(deltas: &[Value]) -> String {
    events(deltas)
        + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
}

fn call(index: Option<u64>, id: Option<&str>, name: Option<&str>, args: &str) -> Value {
    json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": args}}]})
}

const RECORDED: &str = concat!(
    ": keep-alive\r\n\r\n",
    "data: {\"id\":\"c\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"Höm\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grüße \"}},{\"index\":1,\"delta\":{\"content\":\"other\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"世界 🦌\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"ls\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"pa\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"th\\\":1}\"}},{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"sh\",\"arguments\":\"{oops\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7,\"total_tokens\":18,\"prompt_tokens_details\":{\"cached_tokens\":3},\"completion_tokens_details\":{\"reasoning_tokens\":2}}}\n\n",
    "data: [DONE]\n\n",
);

#[test]
fn recorded_stream_decodes_to_its_message() {
    let message = message(RECORDED);
    assert_eq!(message.content.text(), "Grüße 世界 🦌");
    assert_eq!(message.additional_kwargs["reasoning_content"], "Höm");
    assert_eq!(
        json!(message.response_metadata),
        json!({"finish_reason": "tool_calls", "model_name": "gpt-x", "model_provider": "openai"})
    );
    assert_eq!(
        json!(message.usage()),
        json!({"input_tokens": 11, "output_tokens": 7, "total_tokens": 18,
            "input_token_details": {"cache_read": 3}, "output_token_details": {"reasoning": 2}})
    );
    let MessageKind::Ai {
        tool_calls,
        invalid_tool_calls,
        ..
    } = &message.kind
    else {
        panic!("not an answer")
    };
    assert_eq!(
        json!(tool_calls),
        json!([{"name": "ls", "args": {"path": 1}, "id": "a", "type": "tool_call"}])
    );
    assert_eq!(
        (
            invalid_tool_calls[0].id.as_deref(),
            invalid_tool_calls[0].args.as_deref()
        ),
        (Some("b"), Some("{oops"))
    );
}

#[test]
fn chunks_have_the_shape_that_clients_expect() {
    let (chunks, _) = decoded(RECORDED);
    let first = chunks
        .iter()
        .find(|chunk| !chunk.tool_calls.is_empty())
        .unwrap();
    assert_eq!(
        json!(first.tool_calls),
        json!([{"name": "ls", "args": {}, "id": "a", "type": "tool_call"}])
    );
    assert_eq!(
        json!(first.tool_call_chunks),
        json!([{"name": "ls", "args": "", "id": "a", "index": 0, "type": "tool_call_chunk"}])
    );
    let later = chunks
        .iter()
        .flat_map(|chunk| &chunk.tool_call_chunks)
        .nth(1)
        .unwrap();
    assert_eq!(
        json!(later),
        json!({"name": null, "args": "{\"pa", "id": null, "index": 0, "type": "tool_call_chunk"})
    );
    let usage_at = chunks
        .iter()
        .position(|chunk| chunk.usage_metadata.is_some())
        .unwrap();
    assert_eq!(
        usage_at,
        chunks.len() - 2,
        "usage stands alone before the last chunk"
    );
    assert!(chunks.iter().all(|chunk| chunk.id == "m1"));
}

#[test]
fn malformed_tool_fragments_are_repaired() {
    let calls = |deltas: &[Value]| {
        let message = message(&finished(deltas));
        message
            .tool_calls()
            .iter()
            .map(|call| {
                (
                    call.id.clone(),
                    call.name.clone(),
                    json!(call.args).to_string(),
                )
            })
            .collect::<Vec<_>>()
    };
    let call_of =
        |id: &str, name: &str, args: &str| (id.to_owned(), name.to_owned(), args.to_owned());
    // id and name on every fragment
    let repeated = [
        call(Some(0), Some("a"), Some("f"), "{\"x\""),
        call(Some(0), Some("a"), Some("f"), ":1}"),
    ];
    assert_eq!(calls(&repeated), [call_of("a", "f", "{\"x\":1}")]);
    // no index at all
    let unnumbered = [
        call(None, Some("a"), Some("f"), "{"),
        call(None, None, None, "}"),
        call(None, Some("b"), Some("g"), ""),
        call(None, None, None, "{}"),
    ];
    assert_eq!(
        calls(&unnumbered),
        [call_of("a", "f", "{}"), call_of("b", "g", "{}")]
    );
    // every parallel call numbered 0
    assert_eq!(
        calls(&[
            call(Some(0), Some("a"), Some("f"), "{}"),
            call(Some(0), Some("b"), Some("f"), "{}")
        ]),
        [call_of("a", "f", "{}"), call_of("b", "f", "{}")]
    );
    // every parallel call with the same id
    assert_eq!(
        calls(&[
            call(Some(0), Some("a"), Some("f"), "{}"),
            call(Some(1), Some("a"), Some("g"), "{}"),
            call(Some(1), None, None, "")
        ]),
        [call_of("a", "f", "{}"), call_of("a_1", "g", "{}")]
    );
    // no id, empty names first, arguments before the name
    let delayed = [
        call(Some(3), Some(""), Some(""), "{\"y\""),
        call(Some(3), None, Some("f"), ":"),
        call(Some(3), None, None, "2}"),
    ];
    assert_eq!(calls(&delayed), [call_of("call_m1_0", "f", "{\"y\":2}")]);
    // a name that is never sent
    assert_eq!(
        calls(&[call(Some(0), Some("a"), None, "{}")]),
        [call_of("a", "", "{}")]
    );
    // arguments as an object
    let object =
        json!({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"z": 3}}}]});
    assert_eq!(calls(&[object]), [call_of("a", "f", "{\"z\":3}")]);
}

#[test]
fn call_extras_are_stored_by_call_id() {
    let signed = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}, "thought_signature": "s", "type": "function"}]});
    let message = message(&finished(&[signed]));
    assert_eq!(
        message.additional_kwargs["tool_call_extras"],
        json!({"a": {"thought_signature": "s"}})
    );
}

#[test]
fn truncated_and_complete_streams_are_distinguished() {
    let text = events(&[json!({"content": "hi"})]);
    assert_eq!(decoded(&text).1, Some(DecodeError::Truncated));
    assert_eq!(
        decoded(&format!("{text}data: {{\"choi")).1,
        Some(DecodeError::Truncated)
    );
    assert_eq!(decoded("").1, Some(DecodeError::Truncated));
    assert_eq!(decoded("data: [DONE]\n\n").1, Some(DecodeError::NoChoices));
    assert_eq!(
        message(&format!("{text}data: [DONE]\n\n")).response_metadata["finish_reason"],
        "stop"
    );
    let unterminated =
        format!("{text}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"length\"}}]}}");
    assert_eq!(
        message(&unterminated).response_metadata["finish_reason"],
        "length"
    );
    let (chunks, error) = decoded(&format!("{text}data: {{nope\n\n"));
    assert_eq!(
        (
            chunks.len(),
            matches!(error, Some(DecodeError::Malformed(_)))
        ),
        (1, true)
    );
    assert_eq!(
        message(&format!("{text}data: [DONE]\n\ndata: {{nope\n\n"))
            .content
            .text(),
        "hi"
    );
}

#[test]
fn errors_inside_the_stream_are_read_in_every_form() {
    for (payload, expected) in [
        (
            json!({"error": {"message": "busy", "type": "overloaded_error", "code": null}}),
            ("overloaded_error", "busy", None),
        ),
        (
            json!({"error": {"message": "bad", "type": "t", "code": 429}}),
            ("t", "bad", Some(429)),
        ),
        (json!({"error": "plain words"}), ("", "plain words", None)),
        (
            json!({"object": "error", "message": "flat", "code": 500}),
            ("500", "flat", Some(500)),
        ),
        (
            json!({"error": {}}),
            ("", "the provider reported an error", None),
        ),
    ] {
        let (_, error) = decoded(&format!("data: {payload}\n\n"));
        let (code, message, status) = expected;
        assert_eq!(
            error,
            Some(DecodeError::ProviderError(ProviderError {
                code: code.to_owned(),
                message: message.to_owned(),
                status,
                retry_after: None
            })),
            "{payload}"
        );
    }
}

#[test]
fn content_parts_refusals_and_running_usage_are_decoded() {
    let stream = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"x\"}]}}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":null,\"refusal\":\"no\",\"reasoning\":\"r\",\"reasoning_content\":\"r\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n",
    );
    let message = message(stream);
    assert_eq!(message.content.text(), "ano");
    assert_eq!(message.additional_kwargs["reasoning_content"], "r");
    assert_eq!(message.usage().map(|usage| usage.total_tokens), Some(3));
}

#[test]
fn reasoning_in_details_and_text_is_split_by_dialect() {
    let stream = finished(&[
        json!({"reasoning_details": [{"type": "reasoning.text", "text": "one "}, {"index": 1}]}),
        json!({"content": "<think>two</th"}),
        json!({"content": "ink>\n\nanswer"}),
    ]);
    let mut decoder = Decoder::new(reader(Dialect::MINIMAX));
    let mut chunks = Vec::new();
    decoder.push(stream.as_bytes(), &mut chunks).unwrap();
    let parted = accumulated(&chunks);
    assert_eq!(
        (
            parted.content.text().as_str(),
            &parted.additional_kwargs["reasoning_content"]
        ),
        ("answer", &json!("one two"))
    );
    assert_eq!(
        message(&stream).content.text(),
        "<think>two</think>\n\nanswer"
    );
}

#[test]
fn text_calls_are_parsed_by_dialect() {
    let text =
        "Let me look. <tool_call>{\"name\":\"ls\",\"arguments\":{\"path\":\"/\"}}</tool_call>";
    let body =
        json!({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]});
    let called = message_of_whole(|| reader(Dialect::MINDIE), &body);
    assert_eq!(
        (
            called.content.text().as_str(),
            called.tool_calls()[0].name.as_str()
        ),
        ("Let me look.", "ls")
    );
    let plain = message_of_whole(|| reader(Dialect::OPENAI), &body);
    assert_eq!(plain.content.text(), text);
}

#[test]
fn reasoning_details_are_joined() {
    let detail = |text: &str| json!({"reasoning_details": [{"type": "reasoning.text", "text": text, "index": 0}]});
    let stream = finished(&[detail("a"), detail("b"), json!({"content": "so"})]);
    let (chunks, _) = in_pieces(|| reader(Dialect::OPENROUTER), &[stream.as_bytes()]);
    let joined = accumulated(&chunks);
    assert_eq!(joined.additional_kwargs["reasoning_content"], "ab");
    assert_eq!(
        joined.additional_kwargs["reasoning_details"],
        json!([{"type": "reasoning.text", "text": "ab", "index": 0}])
    );
    assert!(
        message(&stream)
            .additional_kwargs
            .get("reasoning_details")
            .is_none()
    );
}
