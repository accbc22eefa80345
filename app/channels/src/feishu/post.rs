//! New messages, with the ways that remain after a refusal.

use http::Method;
use serde_json::json;

use super::api::{ApiBody, ApiCall, FeishuApi};
use super::cards::Payload;
use super::failure::FeishuFailure;
use crate::platform::Target;

/// Place of a new message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendPlace {
    /// Reply to the message that is answered.
    Reply,
    /// The chat.
    Chat,
}

/// Form of a new message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageForm {
    /// The intended form, such as a card.
    Rich,
    /// Text without markup.
    Plain,
}

/// Returns the way after a refused one.
pub(super) fn next_way(
    way: (MessageForm, SendPlace),
    failure: &FeishuFailure,
) -> Option<(MessageForm, SendPlace)> {
    match (failure, way) {
        // Other refusals name invalid ids of messages too.
        (FeishuFailure::TargetGone(_) | FeishuFailure::Refused(_), (form, SendPlace::Reply)) => {
            Some((form, SendPlace::Chat))
        }
        (FeishuFailure::Refused(_), (MessageForm::Rich, SendPlace::Chat)) => {
            Some((MessageForm::Plain, SendPlace::Chat))
        }
        (FeishuFailure::ContentRefused(_), (MessageForm::Rich, place)) => {
            Some((MessageForm::Plain, place))
        }
        // The platform also uses this code for invalid ids of messages.
        (FeishuFailure::ContentRefused(_), (MessageForm::Plain, SendPlace::Reply)) => {
            Some((MessageForm::Plain, SendPlace::Chat))
        }
        _ => None,
    }
}

/// Message in two forms.
#[derive(Debug)]
pub(super) struct NewMessage<'a> {
    /// Destination.
    pub(super) target: &'a Target,
    /// Intended form.
    pub(super) rich: Payload,
    /// Form without markup; `None` if there is no other.
    pub(super) plain: Option<Payload>,
    /// Idempotency key of at most 48 characters.
    pub(super) key: String,
}

/// Sends a message and returns its id.
pub(super) async fn post(
    api: &FeishuApi,
    message: &NewMessage<'_>,
) -> Result<String, FeishuFailure> {
    let place = if message.target.reply_to.is_some() {
        SendPlace::Reply
    } else {
        SendPlace::Chat
    };
    let form = match &message.plain {
        Some(_) if !message.rich.fits() => MessageForm::Plain,
        _ => MessageForm::Rich,
    };
    let mut way = (form, place);
    loop {
        let failure = match attempt(api, message, way).await {
            Ok(id) => return Ok(id),
            Err(failure) => failure,
        };
        match next_way(way, &failure)
            .filter(|(form, _)| *form == MessageForm::Rich || message.plain.is_some())
        {
            Some(next) => {
                tracing::info!(chat = %message.target.chat.id, ?failure, "message was refused, trying another way");
                way = next;
            }
            None => return Err(failure),
        }
    }
}

async fn attempt(
    api: &FeishuApi,
    message: &NewMessage<'_>,
    (form, place): (MessageForm, SendPlace),
) -> Result<String, FeishuFailure> {
    let (payload, uuid) = match (form, &message.plain) {
        (MessageForm::Plain, Some(plain)) => (plain, format!("{}-t", message.key)),
        _ => (&message.rich, message.key.clone()),
    };
    let target = message.target;
    let mut body = json!({"msg_type": payload.kind, "content": payload.content, "uuid": uuid});
    let answer = match (place, target.reply_to.as_deref()) {
        (SendPlace::Reply, Some(reply_to)) => {
            if target.topic.is_some() {
                body["reply_in_thread"] = json!(true);
            }
            let path = ["im", "v1", "messages", reply_to, "reply"];
            api.call(&ApiCall::new(Method::POST, &path, ApiBody::Json(body)))
                .await?
        }
        _ => {
            body["receive_id"] = json!(target.chat.id);
            let path = ["im", "v1", "messages"];
            let call = ApiCall::new(Method::POST, &path, ApiBody::Json(body));
            api.call(&call.with("receive_id_type", "chat_id")).await?
        }
    };
    answer["data"]["message_id"]
        .as_str()
        .filter(|id| !id.is_empty())
        .map(ToOwned::to_owned)
        .ok_or_else(|| {
            FeishuFailure::Unavailable("the answer lacks the id of the message".to_owned())
        })
}

/// Replaces the card of a message.
pub(super) async fn patch(
    api: &FeishuApi,
    message: &str,
    payload: &Payload,
) -> Result<(), FeishuFailure> {
    let path = ["im", "v1", "messages", message];
    let body = json!({"content": payload.content});
    api.call(&ApiCall::new(Method::PATCH, &path, ApiBody::Json(body)))
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_selects_the_next_way() {
        use FeishuFailure::{Busy, ContentRefused, MissingScope, Refused, TargetGone};
        let gone = || TargetGone(String::new());
        let refused = || ContentRefused(String::new());
        let cases = [
            (
                gone(),
                (MessageForm::Rich, SendPlace::Reply),
                Some((MessageForm::Rich, SendPlace::Chat)),
            ),
            (gone(), (MessageForm::Plain, SendPlace::Chat), None),
            (
                refused(),
                (MessageForm::Rich, SendPlace::Reply),
                Some((MessageForm::Plain, SendPlace::Reply)),
            ),
            (
                refused(),
                (MessageForm::Rich, SendPlace::Chat),
                Some((MessageForm::Plain, SendPlace::Chat)),
            ),
            (
                refused(),
                (MessageForm::Plain, SendPlace::Reply),
                Some((MessageForm::Plain, SendPlace::Chat)),
            ),
            (refused(), (MessageForm::Plain, SendPlace::Chat), None),
            (Busy, (MessageForm::Rich, SendPlace::Reply), None),
            (
                MissingScope(String::new()),
                (MessageForm::Rich, SendPlace::Reply),
                None,
            ),
            (
                Refused(String::new()),
                (MessageForm::Rich, SendPlace::Reply),
                Some((MessageForm::Rich, SendPlace::Chat)),
            ),
            (
                Refused(String::new()),
                (MessageForm::Rich, SendPlace::Chat),
                Some((MessageForm::Plain, SendPlace::Chat)),
            ),
            (
                Refused(String::new()),
                (MessageForm::Plain, SendPlace::Chat),
                None,
            ),
        ];
        for (failure, way, expected) in cases {
            assert_eq!(next_way(way, &failure), expected, "{failure:?} {way:?}");
        }
    }
}
