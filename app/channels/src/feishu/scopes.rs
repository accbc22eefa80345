//! Scopes that the app needs.

use http::Method;
use serde_json::Value;

use super::api::{ApiBody, ApiCall, FeishuApi};

/// Scopes of which one is needed, and the use. The first one is recommended.
const NEEDED: &[(&[&str], &str)] = &[
    (&["im:message:send_as_bot", "im:message"], "send messages"),
    (
        &[
            "im:message.p2p_msg:readonly",
            "im:message.p2p_msg",
            "im:message",
        ],
        "receive direct messages",
    ),
    (
        &[
            "im:message.group_at_msg:readonly",
            "im:message.group_at_msg",
            "im:message.group_msg",
            "im:message.group_msg:readonly",
            "im:message",
        ],
        "receive messages of groups",
    ),
    (
        &["im:message.reactions:write_only", "im:message"],
        "react to messages",
    ),
    (&["im:resource"], "send and receive files"),
];

/// Status of a scope that the tenant has granted.
const GRANTED: i64 = 1;

/// Returns a warning for each use whose scopes are missing. Without a list of scopes there are no
/// warnings.
pub(super) async fn warnings(api: &FeishuApi) -> Vec<String> {
    let path = ["application", "v6", "scopes"];
    let call = ApiCall::new(Method::GET, &path, ApiBody::Empty);
    match api.call(&call).await {
        Ok(answer) => missing(&answer["data"]["scopes"]),
        Err(failure) => {
            tracing::debug!(?failure, "the scopes of the app cannot be listed");
            Vec::new()
        }
    }
}

fn missing(scopes: &Value) -> Vec<String> {
    let scopes = scopes.as_array().map(Vec::as_slice).unwrap_or_default();
    let granted: Vec<&str> = scopes
        .iter()
        .filter(|scope| scope["grant_status"].as_i64() == Some(GRANTED))
        .filter_map(|scope| scope["scope_name"].as_str())
        .collect();
    if granted.is_empty() {
        return Vec::new();
    }
    NEEDED
        .iter()
        .filter(|(names, _)| !names.iter().any(|name| granted.contains(name)))
        .map(|(names, usage)| {
            format!(
                "the scope {} is missing, so the bot cannot {usage}: add it in the developer \
                 console and publish a version",
                names[0]
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scopes(names: &[&str], status: i64) -> Value {
        let scopes: Vec<Value> = names
            .iter()
            .map(|name| json!({"scope_name": name, "grant_status": status}))
            .collect();
        json!(scopes)
    }

    #[test]
    fn each_use_needs_one_of_its_scopes() {
        let all = scopes(&["im:message", "im:resource", "other"], 1);
        assert!(missing(&all).is_empty());
        let few = missing(&scopes(&["im:message:send_as_bot", "im:resource"], 1));
        assert_eq!(few.len(), 3);
        assert!(few[0].contains("im:message.p2p_msg:readonly"));
    }

    #[test]
    fn unknown_scopes_cause_no_warnings() {
        let refused = scopes(&["im:message"], 2);
        for value in [
            json!(null),
            json!([]),
            json!([1, {"scope_name": 2}]),
            refused,
        ] {
            assert!(missing(&value).is_empty());
        }
    }
}
