//! Delivery of messages from the outbox.

use http::Method;
use serde_json::{Value, json};

use super::api::{ApiBody, ApiCall, FeishuApi};
use super::cardkit::CardKit;
use super::cards::{Payload, card, file_type, is_image, text};
use super::failure::FeishuFailure;
use super::live::{FinalText, complete};
use super::post::{NewMessage, post};
use crate::markup::Part;
use crate::platform::{
    Button, Content, Delivery, FileBody, OutgoingMessage, PlatformError, Sent, Target,
};

/// Maximum size of a sent file.
pub(super) const MAX_FILE: u64 = 30 * 1024 * 1024;

/// Sends a message, or completes its live message.
pub(super) async fn send(
    api: &FeishuApi,
    kit: &CardKit,
    message: &OutgoingMessage,
    file: Option<FileBody>,
    delivery: &mut Delivery,
) -> Result<Sent, PlatformError> {
    let attempt = delivery.attempt;
    let result = match &message.content {
        Content::Text(part) => send_text(api, kit, message, part, &[], delivery).await,
        Content::Buttons { text, buttons } => {
            send_text(api, kit, message, text, buttons, delivery).await
        }
        Content::File { .. } => match file {
            Some(file) => send_file(api, &message.target, &file, delivery).await,
            None => Err(FeishuFailure::Refused("the file is missing".to_owned())),
        },
        Content::TextFile { name, text } => {
            let file = FileBody {
                name: name.clone(),
                media_type: "text/plain".to_owned(),
                bytes: text.clone().into(),
            };
            send_file(api, &message.target, &file, delivery).await
        }
    };
    match result {
        Ok(id) => Ok(Sent { ids: vec![id] }),
        Err(failure) => Err(failure.into_error(attempt)),
    }
}

async fn send_text(
    api: &FeishuApi,
    kit: &CardKit,
    message: &OutgoingMessage,
    part: &Part,
    buttons: &[Button],
    delivery: &mut Delivery,
) -> Result<String, FeishuFailure> {
    let is_direct = message.target.is_direct();
    let final_text = FinalText {
        part,
        buttons,
        target: &message.target,
    };
    let key = delivery.id;
    let progress = &mut delivery.progress;
    let live = &message.live;
    if let Some(id) = complete(api, kit, live, key, final_text, progress).await? {
        return Ok(id);
    }
    let new = NewMessage {
        target: &message.target,
        rich: card(&part.markup, buttons, is_direct),
        plain: Some(text(&part.plain, buttons)),
        key: key.simple().to_string(),
    };
    post(api, &new).await
}

async fn send_file(
    api: &FeishuApi,
    target: &Target,
    file: &FileBody,
    delivery: &mut Delivery,
) -> Result<String, FeishuFailure> {
    let payload = match uploaded(&delivery.progress) {
        Some(payload) => payload,
        None => {
            let (kind, key) = upload(api, file).await?;
            delivery.progress = json!({"kind": kind, "key": key});
            file_message(kind, &key)
        }
    };
    let new = NewMessage {
        target,
        rich: payload,
        plain: None,
        key: delivery.id.simple().to_string(),
    };
    post(api, &new).await
}

/// Returns the message of a file that an earlier attempt uploaded.
fn uploaded(progress: &Value) -> Option<Payload> {
    let kind = match progress["kind"].as_str()? {
        "image" => "image",
        _ => "file",
    };
    Some(file_message(kind, progress["key"].as_str()?))
}

fn file_message(kind: &'static str, key: &str) -> Payload {
    let name = if kind == "image" {
        "image_key"
    } else {
        "file_key"
    };
    Payload {
        kind,
        content: json!({name: key}).to_string(),
    }
}

/// Uploads a file and returns the kind of its message and its key.
async fn upload(api: &FeishuApi, file: &FileBody) -> Result<(&'static str, String), FeishuFailure> {
    if file.bytes.is_empty() {
        return Err(FeishuFailure::Refused(format!(
            "the file {} is empty, which the platform does not take",
            file.name
        )));
    }
    if file.bytes.len() as u64 > MAX_FILE {
        return Err(FeishuFailure::Refused(format!(
            "the file {} is larger than 30 MB",
            file.name
        )));
    }
    if is_image(&file.name, &file.media_type, file.bytes.len()) {
        let body = ApiBody::Form {
            fields: vec![("image_type", "message".to_owned())],
            field: "image",
            file: file.clone(),
        };
        match upload_as(api, "images", body, "image_key").await {
            // The platform does not take the format as an image.
            Err(failure @ (FeishuFailure::Refused(_) | FeishuFailure::ContentRefused(_))) => {
                tracing::debug!(?failure, "image was refused, sending it as a file");
            }
            other => return other.map(|key| ("image", key)),
        }
    }
    let body = ApiBody::Form {
        fields: vec![
            ("file_type", file_type(&file.name).to_owned()),
            ("file_name", file.name.clone()),
        ],
        field: "file",
        file: file.clone(),
    };
    upload_as(api, "files", body, "file_key")
        .await
        .map(|key| ("file", key))
}

async fn upload_as(
    api: &FeishuApi,
    kind: &str,
    body: ApiBody,
    key: &str,
) -> Result<String, FeishuFailure> {
    let path = ["im", "v1", kind];
    let answer = api.call(&ApiCall::new(Method::POST, &path, body)).await?;
    answer["data"][key]
        .as_str()
        .filter(|key| !key.is_empty())
        .map(ToOwned::to_owned)
        .ok_or_else(|| {
            FeishuFailure::Unavailable("the answer lacks the key of the file".to_owned())
        })
}

#[cfg(test)]
#[path = "deliver_tests.rs"]
mod tests;
