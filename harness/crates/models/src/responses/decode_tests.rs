//! Decoding of responses streams.

use super::*;
use crate::http::wire_kit::{
    GeneratedAnswer, check_robustness, check_round_trip, decoded, invalid_calls, message,
    message_of_whole,
};

fn reader() -> ResponsesReader {
    ResponsesReader::new(
        "m1",
        Arc::new(ModelOrigin::new("openai", "h.test", "asked")),
    )
}

fn events(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect()
}

fn added(index: usize, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: usize, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn delta(kind: &str, index: usize, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta})
}

fn created() -> Value {
    json!({"type": "response.created", "response": {"id": "resp", "status": "in_progress", "model": "gpt-x", "usage": null}})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "model": "gpt-x-1", "error": null, "incomplete_details": null,
        "output": [], "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 17}}})
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Höm"}], "encrypted_content": "enc", "status": "x"})
}

fn recorded() -> String {
    let call = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "id": "fc", "call_id": id, "name": name, "arguments": arguments});
    events(&[
        created(),
        added(0, json!({"type": "reasoning", "id": "rs", "summary": []})),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0}),
        delta("reasoning_summary_text", 0, "Höm"),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1}),
        delta("reasoning_summary_text", 0, "世界"),
        done(0, reasoning()),
        added(
            1,
            json!({"type": "message", "role": "assistant", "content": []}),
        ),
        delta("output_text", 1, "Grüße "),
        delta("output_text", 1, "🦌"),
        json!({"type": "response.output_text.done", "output_index": 1, "text": "Grüße 🦌"}),
        done(
            1,
            json!({"type": "message", "content": [{"type": "output_text", "text": "Grüße 🦌"}]}),
        ),
        added(2, call("a", "ls", "")),
        added(3, call("b", "sh", "")),
        delta("function_call_arguments", 2, "{\"pa"),
        delta("function_call_arguments", 3, "{oops"),
        delta("function_call_arguments", 2, "th\":1}"),
        done(2, call("a", "ls", "{\"path\":1}")),
        done(3, call("b", "sh", "{oops")),
        completed(),
    ])
}

#[test]
fn recorded_stream_decodes_to_its_message() {
    let message = message(reader, &recorded());
    assert_eq!(message.content.text(), "Grüße 🦌");
    assert_eq!(
        message.additional_kwargs["reasoning_content"],
        "Höm\n\n世界"
    );
    assert_eq!(
        json!(message.tool_calls()),
        json!([{"name": "ls", "args": {"path": 1}, "id": "a", "type": "tool_call"}])
    );
    assert_eq!(invalid_calls(&message), 1);
    assert_eq!(
        json!(message.usage()),
        json!({"input_tokens": 10, "output_tokens": 7, "total_tokens": 17,
            "input_token_details": {"cache_read": 4}, "output_token_details": {"reasoning": 2}})
    );
    assert_eq!(
        json!(message.response_metadata),
        json!({"finish_reason": "tool_calls", "model_name": "gpt-x-1", "model_provider": "openai"})
    );
    assert_eq!(
        message.additional_kwargs["provider_parts"]["parts"][0]["value"],
        json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Höm"}], "encrypted_content": "enc"})
    );
}

#[test]
fn decoder_survives_splits_truncation_and_damage() {
    check_robustness(reader, &recorded());
}

fn encode(generated: &GeneratedAnswer) -> String {
    let mut log = vec![created()];
    let mut item = |head: Value, kind: &str, text: &str| {
        let index = log.len();
        log.push(added(index, head.clone()));
        log.extend(
            generated
                .pieces(text)
                .iter()
                .map(|piece| delta(kind, index, piece)),
        );
        log.push(done(index, head));
    };
    item(
        json!({"type": "reasoning", "summary": []}),
        "reasoning_summary_text",
        &generated.thought,
    );
    item(
        json!({"type": "message", "content": []}),
        "output_text",
        &generated.text,
    );
    for (at, (name, args)) in generated.calls.iter().enumerate() {
        let head = json!({"type": "function_call", "call_id": format!("c{at}"), "name": name});
        item(head, "function_call_arguments", &args.to_string());
    }
    log.push(completed());
    events(&log)
}

#[test]
fn encoded_answers_decode_to_themselves() {
    check_round_trip(reader, encode);
}

#[test]
fn items_without_deltas_and_whole_answers_are_decoded() {
    let text = json!({"type": "message", "content": [{"type": "output_text", "text": "so"}, {"type": "refusal", "refusal": " no"}]});
    let call =
        json!({"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{\"x\":1}"});
    let check = |message: deerflow_core::messages::Message| {
        assert_eq!(
            (
                message.content.text().as_str(),
                &message.additional_kwargs["reasoning_content"]
            ),
            ("so no", &json!("Höm"))
        );
        assert_eq!(json!(message.tool_calls()[0].args), json!({"x": 1}));
    };
    check(message(
        reader,
        &events(&[
            created(),
            done(0, reasoning()),
            done(1, text.clone()),
            done(2, call.clone()),
            completed(),
        ]),
    ));
    let body = json!({"object": "response", "status": "completed", "error": null, "output": [reasoning(), text, call], "usage": {}});
    check(message_of_whole(reader, &body));
}

#[test]
fn unannounced_text_and_reasoning_are_emitted_once() {
    let text = json!({"type": "message", "content": [{"type": "output_text", "text": "so"}]});
    let call = json!({"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"});
    let stream = |at: [usize; 3]| {
        let (thought, text_delta) = (
            delta("reasoning_summary_text", at[0], "Höm"),
            delta("output_text", at[1], "so"),
        );
        events(&[
            created(),
            thought,
            done(at[0], reasoning()),
            text_delta,
            done(at[1], text.clone()),
            done(at[2], call.clone()),
            completed(),
        ])
    };
    for at in [[0, 1, 2], [0, 0, 0]] {
        let message = message(reader, &stream(at));
        assert_eq!(
            (
                message.content.text().as_str(),
                &message.additional_kwargs["reasoning_content"]
            ),
            ("so", &json!("Höm")),
            "{at:?}"
        );
        assert_eq!(message.tool_calls().len(), 1, "{at:?}");
    }
}

#[test]
fn unsuccessful_ends_are_distinguished() {
    let ended = |kind: &str, response: Value| {
        events(&[created(), json!({"type": kind, "response": response})])
    };
    let long = ended(
        "response.incomplete",
        json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
    );
    assert_eq!(
        message(reader, &long).response_metadata["finish_reason"],
        "length"
    );
    let provider_error = |stream: String| match decoded(reader, &[stream.as_bytes()]).1 {
        Some(DecodeError::ProviderError(provider_error)) => {
            (provider_error.code, provider_error.message)
        }
        other => panic!("{other:?}"),
    };
    let failed = ended(
        "response.failed",
        json!({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow"}}),
    );
    assert_eq!(
        provider_error(failed),
        ("rate_limit_exceeded".to_owned(), "slow".to_owned())
    );
    let error = events(&[
        created(),
        json!({"type": "error", "code": "server_error", "message": "oops", "param": null}),
    ]);
    assert_eq!(
        provider_error(error),
        ("server_error".to_owned(), "oops".to_owned())
    );
}
