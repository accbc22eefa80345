//! Sending of messages and of answers in progress.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::answers::ApiError;
use super::api::Api;
use super::bodies::{self, Sample};
use crate::markup::{self, Dialect, Part};
use crate::platform::{
    Content, Delivery, FileBody, LiveReply, OutgoingMessage, PlatformError, Sent, Target, TextLimit,
};

/// Maximum size of a sent file in bytes.
pub(super) const MAX_FILE: u64 = 20 * 1024 * 1024;
/// Media types that are sent as pictures.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/bmp"];
/// Delay after the flow control of a person.
const FLOW_DELAY: std::time::Duration = std::time::Duration::from_secs(60);

/// Sends a message, or completes the card that it names.
pub(super) async fn send(
    api: &Api,
    message: &OutgoingMessage,
    file: Option<FileBody>,
    delivery: &mut Delivery,
) -> Result<Sent, PlatformError> {
    let part: &Part = match &message.content {
        Content::Text(part) | Content::Buttons { text: part, .. } => part,
        Content::File { .. } => {
            let file =
                file.ok_or_else(|| PlatformError::Refused("the file is missing".to_owned()))?;
            return send_file(api, &message.target, &file, delivery).await;
        }
        Content::TextFile { name, text } => {
            let file = FileBody {
                name: name.clone(),
                media_type: "text/plain; charset=utf-8".to_owned(),
                bytes: Bytes::copy_from_slice(text.as_bytes()),
            };
            return send_file(api, &message.target, &file, delivery).await;
        }
    };
    let has_ended = delivery.progress["card_ended"] == true;
    if let Some(card) = message.live["card"].as_str().filter(|_| !has_ended) {
        let body = bodies::stream_card(card, delivery.id, &part.markup, true);
        match api.call(Method::PUT, "v1.0/card/streaming", &body).await {
            Ok(_) => {
                return Ok(Sent {
                    ids: vec![card.to_owned()],
                });
            }
            Err(ApiError::Code { code, .. }) => {
                tracing::debug!(card, code, "the card cannot be completed");
                // A repetition with the same key would count as done, and the text would be missing.
                delivery.progress = json!({"card_ended": true});
            }
            Err(error) => return Err(error.into()),
        }
    }
    let sample = Sample::markdown(&part.markup, &part.plain);
    send_sample(api, &message.target, &sample).await
}

async fn send_file(
    api: &Api,
    target: &Target,
    file: &FileBody,
    delivery: &mut Delivery,
) -> Result<Sent, PlatformError> {
    if file.bytes.len() as u64 > MAX_FILE {
        return Err(PlatformError::Refused(
            "the file is larger than 20 MiB, the limit of DingTalk".to_owned(),
        ));
    }
    let is_picture = PICTURES.contains(&file.media_type.as_str());
    let uploaded = delivery.progress["media"].as_str().map(ToOwned::to_owned);
    let media = match uploaded {
        Some(media) => media,
        None => {
            let kind = if is_picture { "image" } else { "file" };
            let media = api.upload(kind, file).await?;
            delivery.progress = json!({"media": media});
            media
        }
    };
    let sample = if is_picture {
        Sample::picture(&media)
    } else {
        Sample::file(&media, &file.name)
    };
    send_sample(api, target, &sample).await
}

async fn send_sample(api: &Api, target: &Target, sample: &Sample) -> Result<Sent, PlatformError> {
    let (path, body) = bodies::send(target, robot(api, target), sample);
    let answer = api.call(Method::POST, path, &body).await?;
    sent(&answer)
}

/// Returns the code of the robot that received the answered message.
fn robot<'a>(api: &'a Api, target: &'a Target) -> &'a str {
    let named = target.context["robot"].as_str();
    named.unwrap_or(&api.options().client_id)
}

/// Decides the result of a send from its answer, which lists persons who got nothing.
fn sent(answer: &Value) -> Result<Sent, PlatformError> {
    let is_listed = |key: &str| answer[key].as_array().is_some_and(|list| !list.is_empty());
    if is_listed("invalidStaffIdList") {
        return Err(PlatformError::Refused(
            "the person is not in the organization of the DingTalk app".to_owned(),
        ));
    }
    if is_listed("flowControlledStaffIdList") {
        return Err(PlatformError::RateLimited {
            retry_after: FLOW_DELAY,
            account: false,
        });
    }
    Ok(Sent {
        ids: answer["processQueryKey"]
            .as_str()
            .map(ToOwned::to_owned)
            .into_iter()
            .collect(),
    })
}

/// Shows the text so far in the card of the answer, which is created if there is none. If the card
/// is refused, nothing is shown until the final text.
pub(super) async fn update_live(
    api: &Api,
    reply: &mut LiveReply,
    markdown: &str,
    limit: TextLimit,
) -> Result<(), PlatformError> {
    let Some(template) = api.options().card_template.as_deref() else {
        return Ok(());
    };
    let text = markup::preview(markdown, Dialect::DingTalk, limit);
    if text.trim().is_empty() {
        return Ok(());
    }
    if reply.state.is_null() {
        reply.state = create_card(api, reply, template).await?;
    }
    let Some(card) = reply.state["card"].as_str() else {
        return Ok(());
    };
    let guid = Uuid::from_u128(rand::random());
    let body = bodies::stream_card(card, guid, &text, false);
    match api.call(Method::PUT, "v1.0/card/streaming", &body).await {
        Ok(_) => Ok(()),
        Err(ApiError::Code { words, .. }) => Err(PlatformError::LiveExpired(words)),
        Err(error) => Err(error.into()),
    }
}

/// Creates a card and returns the state of the live reply.
async fn create_card(api: &Api, reply: &LiveReply, template: &str) -> Result<Value, PlatformError> {
    let card = bodies::card_id(reply.key);
    let body = bodies::create_card(&reply.target, robot(api, &reply.target), template, &card);
    let path = "v1.0/card/instances/createAndDeliver";
    let refusal = match api.call(Method::POST, path, &body).await {
        Ok(answer) => undelivered(&answer),
        Err(ApiError::Code { words, .. }) => Some(words),
        Err(error) => return Err(error.into()),
    };
    match refusal {
        None => Ok(json!({"card": card})),
        Some(reason) => {
            tracing::warn!(
                reason,
                "dingtalk refused the card, answers are not streamed"
            );
            Ok(json!({"card": null}))
        }
    }
}

/// Returns the reason why a created card was not shown.
fn undelivered(answer: &Value) -> Option<String> {
    let results = answer["result"]["deliverResults"].as_array()?;
    let failed = results.iter().find(|result| result["success"] == false)?;
    let reason = failed["errorMsg"].as_str().unwrap_or("no reason given");
    Some(reason.chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_list_persons_who_got_nothing() {
        let key = json!({"processQueryKey": "k", "invalidStaffIdList": []});
        assert_eq!(sent(&key).unwrap().ids, ["k"]);
        let unknown = json!({"processQueryKey": "k", "invalidStaffIdList": ["x"]});
        assert!(matches!(sent(&unknown), Err(PlatformError::Refused(_))));
        let limited = json!({"flowControlledStaffIdList": ["x"]});
        assert!(matches!(
            sent(&limited),
            Err(PlatformError::RateLimited { .. })
        ));
    }
}
