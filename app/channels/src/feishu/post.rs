//! New messages, with the ways that remain after a refusal.

use http::Method;
use serde_json::json;

use super::api::{ApiBody, ApiCall, FeishuApi};
use super::cards::Payload;
use super::failure::Failure;
use crate::platform::Target;

/// Place of a new message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Reply to the message that is answered.
    Reply,
    /// The chat.
    Chat,
}

/// Form of a new message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The intended form, such as a card.
    Rich,
    /// Text without markup.
    Plain,
}

/// Returns the way after a refused one.
pub(super) fn next_way(way: (Form, Place), failure: &Failure) -> Option<(Form, Place)> {
    match (failure, way) {
        // Other refusals name invalid ids of messages too.
        (Failure::TargetGone(_) | Failure::Refused(_), (form, Place::Reply)) => {
            Some((form, Place::Chat))
        }
        (Failure::Refused(_), (Form::Rich, Place::Chat)) => Some((Form::Plain, Place::Chat)),
        (Failure::ContentRefused(_), (Form::Rich, place)) => Some((Form::Plain, place)),
        // The platform also uses this code for invalid ids of messages.
        (Failure::ContentRefused(_), (Form::Plain, Place::Reply)) => {
            Some((Form::Plain, Place::Chat))
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
pub(super) async fn post(api: &FeishuApi, message: &NewMessage<'_>) -> Result<String, Failure> {
    let place = if message.target.reply_to.is_some() {
        Place::Reply
    } else {
        Place::Chat
    };
    let form = match &message.plain {
        Some(_) if !message.rich.fits() => Form::Plain,
        _ => Form::Rich,
    };
    let mut way = (form, place);
    loop {
        let failure = match attempt(api, message, way).await {
            Ok(id) => return Ok(id),
            Err(failure) => failure,
        };
        match next_way(way, &failure)
            .filter(|(form, _)| *form == Form::Rich || message.plain.is_some())
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
    (form, place): (Form, Place),
) -> Result<String, Failure> {
    let (payload, uuid) = match (form, &message.plain) {
        (Form::Plain, Some(plain)) => (plain, format!("{}-t", message.key)),
        _ => (&message.rich, message.key.clone()),
    };
    let target = message.target;
    let mut body = json!({"msg_type": payload.kind, "content": payload.content, "uuid": uuid});
    let answer = match (place, target.reply_to.as_deref()) {
        (Place::Reply, Some(reply_to)) => {
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
        .ok_or_else(|| Failure::Unavailable("the answer lacks the id of the message".to_owned()))
}

/// Replaces the card of a message.
pub(super) async fn patch(
    api: &FeishuApi,
    message: &str,
    payload: &Payload,
) -> Result<(), Failure> {
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
        use Failure::{Busy, ContentRefused, MissingScope, Refused, TargetGone};
        let gone = || TargetGone(String::new());
        let refused = || ContentRefused(String::new());
        let cases = [
            (
                gone(),
                (Form::Rich, Place::Reply),
                Some((Form::Rich, Place::Chat)),
            ),
            (gone(), (Form::Plain, Place::Chat), None),
            (
                refused(),
                (Form::Rich, Place::Reply),
                Some((Form::Plain, Place::Reply)),
            ),
            (
                refused(),
                (Form::Rich, Place::Chat),
                Some((Form::Plain, Place::Chat)),
            ),
            (
                refused(),
                (Form::Plain, Place::Reply),
                Some((Form::Plain, Place::Chat)),
            ),
            (refused(), (Form::Plain, Place::Chat), None),
            (Busy, (Form::Rich, Place::Reply), None),
            (
                MissingScope(String::new()),
                (Form::Rich, Place::Reply),
                None,
            ),
            (
                Refused(String::new()),
                (Form::Rich, Place::Reply),
                Some((Form::Rich, Place::Chat)),
            ),
            (
                Refused(String::new()),
                (Form::Rich, Place::Chat),
                Some((Form::Plain, Place::Chat)),
            ),
            (Refused(String::new()), (Form::Plain, Place::Chat), None),
        ];
        for (failure, way, expected) in cases {
            assert_eq!(next_way(way, &failure), expected, "{failure:?} {way:?}");
        }
    }
}
