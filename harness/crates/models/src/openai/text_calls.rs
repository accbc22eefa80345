//! Extracts tool calls that a model writes into its text as `<tool_call>` blocks. Some servers do
//! not parse them.

use serde_json::{Map, Value};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// Tool call in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TextCall {
    pub(super) name: String,
    pub(super) args: Map<String, Value>,
}

/// Returns the text without its calls, and the calls. A block that cannot be parsed remains in the
/// text for the user to see.
pub(super) fn extract_calls(text: &str) -> (String, Vec<TextCall>) {
    let (mut remaining, mut calls, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, block)) = rest.split_once(OPEN) {
        let (inside, after) = block.split_once(CLOSE).unwrap_or((block, ""));
        remaining.push_str(before);
        match read(inside.trim()) {
            Some(call) => calls.push(call),
            None => remaining.push_str(&rest[before.len()..rest.len() - after.len()]),
        }
        rest = after;
    }
    remaining.push_str(rest);
    (
        if calls.is_empty() {
            remaining
        } else {
            remaining.trim().to_owned()
        },
        calls,
    )
}

/// Parses a block as JSON, `{"name":..,"arguments":..}`, or as tags,
/// `<function=name><parameter=key>value</parameter></function>`.
fn read(block: &str) -> Option<TextCall> {
    if let Ok(Value::Object(json)) = serde_json::from_str(block) {
        let name = json.get("name")?.as_str()?.to_owned();
        let args = match json.get("arguments").or(json.get("parameters")) {
            Some(Value::String(text)) => serde_json::from_str(text).ok()?,
            Some(Value::Object(args)) => args.clone(),
            _ => Map::new(),
        };
        return Some(TextCall { name, args });
    }
    let (name, body) = match block.split_once("<function=") {
        Some((_, function)) => function.split_once('>')?,
        None => block
            .split_once("<parameter=")
            .map_or((block, ""), |(name, _)| (name, &block[name.len()..])),
    };
    let name = name.trim().trim_matches(['"', '\'']);
    let callable = !name.is_empty()
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "_-.:".contains(letter));
    let mut args = Map::new();
    for parameter in body.split("<parameter=").skip(1) {
        let (key, value) = parameter.split_once('>')?;
        let value = value
            .split_once("</parameter>")
            .map_or(value, |(value, _)| value)
            .trim_matches('\n');
        let value =
            serde_json::from_str(value.trim()).unwrap_or_else(|_| Value::String(value.to_owned()));
        args.insert(key.trim().trim_matches(['"', '\'']).to_owned(), value);
    }
    callable.then(|| TextCall {
        name: name.to_owned(),
        args,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_extracted_in_every_form() {
        let forms = [
            r#"<tool_call>{"name":"ls","arguments":{"path":"/ä","deep":2}}</tool_call>"#,
            r#"<tool_call>{"name":"ls","arguments":"{\"path\":\"/ä\",\"deep\":2}"}"#,
            "<tool_call>\n<function=ls>\n<parameter=path>\n/ä\n</parameter>\n<parameter=deep>2</parameter>\n</function>\n</tool_call>",
            "<tool_call>ls<parameter=path>/ä</parameter><parameter=deep>2</parameter></tool_call>",
        ];
        for form in forms {
            let (text, calls) = extract_calls(&format!("Let me look. {form}\n"));
            assert_eq!(text, "Let me look.");
            assert_eq!(calls.len(), 1, "{form}");
            assert_eq!(
                (calls[0].name.as_str(), json!(calls[0].args)),
                ("ls", json!({"path": "/ä", "deep": 2})),
                "{form}"
            );
        }
        let (text, calls) = extract_calls("<tool_call>a</tool_call> and <tool_call>b</tool_call>");
        assert_eq!((text.as_str(), calls.len()), ("and", 2));
    }

    #[test]
    fn invalid_call_blocks_remain_text() {
        for text in [
            "plain",
            "<tool_call>what is this?</tool_call> x",
            "a </tool_call>",
            "<tool_call>",
            "",
        ] {
            assert_eq!(extract_calls(text), (text.to_owned(), vec![]));
        }
    }
}
