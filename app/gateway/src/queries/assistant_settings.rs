//! Settings of an assistant, applied to the run that names it.

use deerflow_domain::assistants::AssistantContent;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::queries::assistants::{AssistantEntry, default_named};
use crate::state::GatewayState;

/// Adds an assistant's settings to the body of a run; values of the body take precedence.
pub(crate) fn apply_settings(content: &AssistantContent, body: &mut Map<String, Value>) {
    body.insert("assistant_id".to_owned(), content.graph.as_str().into());
    let unreadable = |part: &&str| {
        body.get(*part)
            .is_some_and(|value| !value.is_null() && !value.is_object())
    };
    let in_config = |part: &str| body.get("config").and_then(|config| config.get(part));
    let has_unreadable_config = in_config("tags")
        .is_some_and(|tags| !tags.is_null() && !tags.is_array())
        || in_config("configurable").is_some_and(|value| !value.is_null() && !value.is_object());
    if has_unreadable_config || ["config", "context", "metadata"].iter().any(unreadable) {
        // The parser of the body reports the error.
        return;
    }
    let mut take_object = |part: &str| object(body.shift_remove(part));
    let (mut sent, sent_context, sent_metadata) = (
        take_object("config"),
        take_object("context"),
        take_object("metadata"),
    );
    let configurable = object(sent.shift_remove("configurable"));
    let of_config = object(sent.get("metadata").cloned());
    let tags: Vec<Value> = [&content.config, &sent]
        .iter()
        .filter_map(|config| config.get("tags")?.as_array())
        .flatten()
        .cloned()
        .collect();
    let mut config = merge(&content.config, sent);
    config.shift_remove("configurable");
    if !tags.is_empty() {
        config.insert("tags".to_owned(), tags.into());
    }
    // `configurable` and `context` must not be used together.
    if configurable.is_empty() {
        body.insert(
            "context".to_owned(),
            merge(&content.context, sent_context).into(),
        );
    } else {
        config.insert(
            "configurable".to_owned(),
            merge(&content.context, configurable).into(),
        );
        body.insert("context".to_owned(), sent_context.into());
    }
    body.insert("config".to_owned(), config.into());
    body.insert(
        "metadata".to_owned(),
        merge(&merge(&content.metadata, of_config), sent_metadata).into(),
    );
}

/// Applies an assistant that a user created or changed to the body of a run that names it, and
/// returns its id.
pub(crate) async fn apply_assistant(
    state: &GatewayState,
    dialect: Dialect,
    mut body: Map<String, Value>,
) -> Result<(Map<String, Value>, Option<Uuid>), ApiError> {
    let Some(sent) = body
        .get("assistant_id")
        .and_then(Value::as_str)
        .filter(|_| dialect.is_platform())
    else {
        return Ok((body, None));
    };
    let entry = match Uuid::parse_str(sent) {
        Ok(id) => AssistantEntry::of(state, id).await,
        Err(_) => default_named(state, sent)
            .await
            .map(AssistantEntry::customized),
    };
    let Some(entry) = entry else {
        return Ok((body, None));
    };
    // An unchanged graph assistant has no settings, and the parser of the body knows its id.
    let Some(made) = entry.stored(state).await? else {
        return Ok((body, None));
    };
    apply_settings(&made.content, &mut body);
    Ok((body, Some(made.id)))
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn merge(below: &Map<String, Value>, above: Map<String, Value>) -> Map<String, Value> {
    below.clone().into_iter().chain(above).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applied(content: Value, mut body: Value) -> Value {
        let map = |key: &str| content[key].as_object().cloned().unwrap_or_default();
        let content = AssistantContent {
            graph: "g".to_owned(),
            config: map("config"),
            context: map("context"),
            metadata: map("metadata"),
            ..AssistantContent::default()
        };
        apply_settings(&content, body.as_object_mut().unwrap());
        body
    }

    #[test]
    fn assistant_settings_yield_to_those_of_the_run() {
        let content = json!({
            "config": { "tags": ["a"], "recursion_limit": 7, "configurable": { "model_name": "m", "x": 1 } },
            "context": { "model_name": "m", "x": 1 },
            "metadata": { "k": "assistant", "z": 1 },
        });
        assert_eq!(
            applied(
                content.clone(),
                json!({ "assistant_id": "..", "config": { "metadata": { "k": "config" } } })
            ),
            json!({
                "assistant_id": "g",
                "config": { "tags": ["a"], "recursion_limit": 7, "metadata": { "k": "config" } },
                "context": { "model_name": "m", "x": 1 },
                "metadata": { "k": "config", "z": 1 },
            })
        );
        let overridden = applied(
            content,
            json!({
                "config": { "tags": ["b"], "recursion_limit": 9, "configurable": { "x": 2 } },
                "metadata": { "k": "run" },
            }),
        );
        assert_eq!(
            overridden["config"],
            json!({ "tags": ["a", "b"], "recursion_limit": 9, "configurable": { "model_name": "m", "x": 2 } })
        );
        assert_eq!(
            (&overridden["metadata"]["k"], &overridden["context"]),
            (&json!("run"), &json!({}))
        );
        let wrong = applied(json!({ "context": { "a": 1 } }), json!({ "context": 5 }));
        assert_eq!(wrong, json!({ "assistant_id": "g", "context": 5 }));
    }
}
