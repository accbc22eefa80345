//! Chunks of a request body, and the texts that requests share.

use serde_json::json;

use super::*;

fn text_of(body: &RequestBody) -> String {
    let chunks = body.clone().into_chunks().unwrap();
    String::from_utf8(chunks.concat()).unwrap()
}

#[test]
fn chunks_are_the_json_of_the_body() {
    let raw = |value: Value| JsonPart::Text(to_raw_value(&value).unwrap().into());
    let long = raw(json!({ "content": "x".repeat(LONG_TEXT) }));
    let joined = |count: usize| JsonPart::Joined(vec!["1"; count].join(",").into());
    let messages = vec![
        raw(json!({ "a": 1 })),
        joined(2),
        long.clone(),
        joined(LONG_TEXT),
        long,
    ];
    let count_of = |value: &Value| value["messages"].as_array().map(Vec::len);
    let mut body = RequestBody::from(json!({ "model": "m", "n": { "\"": null } }));
    body.insert("messages", JsonPart::List(messages));
    body.insert("tools", JsonPart::List(Vec::new()));
    let tree = body.to_value();
    assert_eq!(count_of(&tree), Some(LONG_TEXT + 5));
    assert_eq!(
        (&tree["n"]["\""], &tree["tools"]),
        (&Value::Null, &json!([]))
    );
    for (body, count) in [(body, 7), (RequestBody::default(), 1)] {
        assert_eq!(body.into_chunks().unwrap().len(), count);
    }
}

fn tools(name: &str) -> Arc<[ToolSchema]> {
    Arc::new([ToolSchema {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({}),
    }])
}

fn names(tools: &[ToolSchema]) -> Value {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[test]
fn body_serializes_its_parts_in_order() {
    let text: Arc<RawValue> = to_raw_value(&json!({"b": 1})).unwrap().into();
    let mut body = RequestBody::default();
    body.insert("z", json!(1));
    let parts = vec![json!("a").into(), JsonPart::Text(text)];
    body.insert("list", JsonPart::List(parts));
    body.extend([("z".to_owned(), json!(2)), ("y".to_owned(), json!({}))]);
    body.object_mut("y")
        .unwrap()
        .insert("x".to_owned(), json!(3));
    assert!(body.object_mut("list").is_none());
    assert_eq!(
        text_of(&body),
        r#"{"z":2,"list":["a",{"b":1}],"y":{"x":3}}"#
    );
    assert_eq!(body.to_value()["list"][1]["b"], 1);
}

#[test]
fn tool_list_is_serialized_once_while_it_is_used() {
    let texts = ToolTexts::default();
    let (ls, cat) = (tools("ls"), tools("cat"));
    let sent = |tools: &Arc<[ToolSchema]>, is_new: bool| {
        let build = |list: &[ToolSchema]| {
            assert!(is_new);
            names(list)
        };
        let mut body = RequestBody::default();
        body.insert("tools", texts.of(tools, build));
        text_of(&body)
    };
    assert_eq!(sent(&ls, true), r#"{"tools":["ls"]}"#);
    assert_eq!(sent(&cat, true), r#"{"tools":["cat"]}"#);
    assert_eq!(sent(&ls, false), r#"{"tools":["ls"]}"#);
    for n in 0..MAX_TOOL_LISTS - 1 {
        sent(&tools(&n.to_string()), true);
    }
    assert_eq!(sent(&ls, false), r#"{"tools":["ls"]}"#);
    assert_eq!(sent(&cat, true), r#"{"tools":["cat"]}"#);
    assert_eq!(texts.0.lock().len(), MAX_TOOL_LISTS);
}
