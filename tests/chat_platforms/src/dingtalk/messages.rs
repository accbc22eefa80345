//! Messages of the robot.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answer::Answer;
use super::shared::{CLIENT_ID, DingTalkShared, GROUP, SentMessage};
use crate::common::Window;

/// Maximum size of a message's parameters in bytes.
const MAX_PARAMETERS: usize = 20_000;

/// Sends to persons.
pub(super) fn to_persons(shared: &DingTalkShared, body: &Value) -> Answer {
    let Some(persons) = body["userIds"].as_array() else {
        return Answer::invalid("userIds");
    };
    let persons: Vec<&str> = persons.iter().filter_map(Value::as_str).collect();
    if persons.is_empty() || persons.len() > 20 {
        return Answer::invalid("userIds");
    }
    let parameters = match parameters(shared, body) {
        Ok(parameters) => parameters,
        Err(answer) => return answer,
    };
    let (unknown, known): (Vec<&str>, Vec<&str>) = persons
        .into_iter()
        .partition(|person| !person.starts_with('u'));
    for person in known {
        store(shared, person, body, parameters.clone());
    }
    Answer::ok(json!({
        "processQueryKey": format!("key-{}", shared.number()),
        "invalidStaffIdList": unknown, "flowControlledStaffIdList": [],
    }))
}

/// Sends to a group.
pub(super) fn to_group(shared: &DingTalkShared, body: &Value) -> Answer {
    let group = body["openConversationId"].as_str().unwrap_or_default();
    if !group.starts_with(GROUP) {
        return Answer::invalid("openConversationId");
    }
    let parameters = match parameters(shared, body) {
        Ok(parameters) => parameters,
        Err(answer) => return answer,
    };
    if shared.options.rate_limits {
        let mut windows = shared.windows.lock();
        let window = windows
            .entry(group.to_owned())
            .or_insert_with(|| Window::new(20, Duration::from_secs(60)));
        if window.call(Instant::now()).is_err() {
            return Answer::too_fast(None);
        }
    }
    store(shared, group, body, parameters);
    Answer::ok(json!({"processQueryKey": format!("key-{}", shared.number())}))
}

fn store(shared: &DingTalkShared, to: &str, body: &Value, parameters: Value) {
    shared.sent.lock().push(SentMessage {
        to: to.to_owned(),
        key: body["msgKey"].as_str().unwrap_or_default().to_owned(),
        parameters,
    });
}

/// Checks the parameters of a message.
fn parameters(shared: &DingTalkShared, body: &Value) -> Result<Value, Answer> {
    if body["robotCode"] != CLIENT_ID {
        return Err(Answer::invalid("robotCode"));
    }
    let text = body["msgParam"].as_str().unwrap_or_default();
    if text.len() > MAX_PARAMETERS {
        return Err(Answer::invalid("msgParam"));
    }
    let parameters: Value = serde_json::from_str(text).map_err(|_| Answer::invalid("msgParam"))?;
    let (keys, media): (&[&str], Option<&str>) = match body["msgKey"].as_str() {
        Some("sampleText") => (&["content"], None),
        Some("sampleMarkdown") => (&["title", "text"], None),
        Some("sampleImageMsg") => (&["photoURL"], Some("photoURL")),
        Some("sampleFile") => (&["mediaId", "fileName", "fileType"], Some("mediaId")),
        _ => return Err(Answer::invalid("msgKey")),
    };
    let is_complete = parameters.as_object().is_some_and(|fields| {
        fields.len() == keys.len()
            && keys.iter().all(|key| {
                fields
                    .get(*key)
                    .and_then(Value::as_str)
                    .is_some_and(|value| !value.is_empty())
            })
    });
    let media = media.and_then(|key| parameters[key].as_str());
    let is_uploaded = media.is_none_or(|media| shared.files.lock().contains_key(media));
    if is_complete && is_uploaded {
        Ok(parameters)
    } else {
        Err(Answer::invalid("msgParam"))
    }
}
