//! Decoding of Ollama streams.

use super::*;
use crate::http::wire_kit::{
    GeneratedAnswer, check_robustness, check_round_trip, decoded, message, message_of_whole,
};

fn reader() -> ChatReader {
    ChatReader::new("m1", "asked")
}

fn line(message: &Value) -> String {
    format!(
        "{}\n",
        json!({"model": "qwen", "created_at": "now", "message": message, "done": false})
    )
}

const END: &str = "{\"model\":\"qwen\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":10,\"eval_count\":4}\n";

fn call(name: &str, args: &Value) -> Value {
    json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": name, "arguments": args}}]})
}

fn recorded() -> String {
    [
        line(&json!({"content": "", "thinking": "Höm"})),
        line(&json!({"content": "Grüße "})),
        line(&json!({"content": "世界 🦌"})),
        line(&call("ls", &json!({"path": "/ü"}))),
        line(&call("ls", &json!({}))),
        END.to_owned(),
    ]
    .concat()
}

#[test]
fn recorded_stream_decodes_to_its_message() {
    let message = message(reader, &recorded());
    assert_eq!(message.content.text(), "Grüße 世界 🦌");
    assert_eq!(message.additional_kwargs["reasoning_content"], "Höm");
    assert_eq!(
        json!(message.tool_calls()),
        json!([{"name": "ls", "args": {"path": "/ü"}, "id": "call_m1_0", "type": "tool_call"},
            {"name": "ls", "args": {}, "id": "call_m1_1", "type": "tool_call"}])
    );
    assert_eq!(
        message
            .usage()
            .map(|usage| (usage.input_tokens, usage.output_tokens, usage.total_tokens)),
        Some((10, 4, 14))
    );
    assert_eq!(
        json!(message.response_metadata),
        json!({"done_reason": "stop", "model_name": "qwen", "model_provider": "ollama"})
    );
}

#[test]
fn decoder_survives_splits_truncation_and_damage() {
    check_robustness(reader, &recorded());
}

fn encode(generated: &GeneratedAnswer) -> String {
    let mut log: String = generated
        .pieces(&generated.thought)
        .iter()
        .map(|piece| line(&json!({"thinking": piece})))
        .collect();
    log.extend(
        generated
            .pieces(&generated.text)
            .iter()
            .map(|piece| line(&json!({"content": piece}))),
    );
    log.extend(
        generated
            .calls
            .iter()
            .map(|(name, args)| line(&call(name, args))),
    );
    log + END
}

#[test]
fn encoded_answers_decode_to_themselves() {
    check_round_trip(reader, encode);
}

#[test]
fn think_tags_errors_and_whole_answers_are_decoded() {
    let tagged = [
        line(&json!({"content": "<think>h"})),
        line(&json!({"content": "m</think>\n\nso"})),
        END.to_owned(),
    ]
    .concat();
    let parted = message(reader, &tagged);
    assert_eq!(
        (
            parted.content.text().as_str(),
            &parted.additional_kwargs["reasoning_content"]
        ),
        ("so", &json!("hm"))
    );
    let provider_error = decoded(reader, &[b"{\"error\":\"out of memory\"}\n"]).1;
    assert!(
        matches!(provider_error, Some(DecodeError::ProviderError(provider_error)) if provider_error.message == "out of memory")
    );
    let whole = json!({"model": "qwen", "message": {"content": "one"}, "done": true, "done_reason": "length"});
    let whole = message_of_whole(reader, &whole);
    assert_eq!(
        (
            whole.content.text().as_str(),
            &whole.response_metadata["done_reason"]
        ),
        ("one", &json!("length"))
    );
}
