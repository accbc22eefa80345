//! Live updates of an answer, and their completion.

use serde_json::{Value, json};
use uuid::Uuid;

use super::api::FeishuApi;
use super::cardkit::CardKit;
use super::cards::{Payload, card, card_reference, live_text, plain_card};
use super::failure::FeishuFailure;
use super::live_state::{LiveCard, PatchedCard, StreamingCard, derived_key};
use super::post::{NewMessage, patch, post};
use crate::markup::Part;
use crate::platform::{Button, LiveReply, PlatformError, Target};

/// Creates the streaming card of an answer before it is shown. Its id is stored then, and the key of
/// the message that shows it follows from the id.
pub(super) async fn prepare(
    api: &FeishuApi,
    kit: &CardKit,
    reply: &mut LiveReply,
) -> Result<(), PlatformError> {
    if kit.is_missing() {
        return Ok(());
    }
    match create(api, kit, reply).await {
        Ok(card) => {
            reply.state = LiveCard::Streaming(card).write();
            Ok(())
        }
        // The first update decides about another way.
        Err(failure) if failure.is_final() => Ok(()),
        Err(failure) => Err(failure.into_error(1)),
    }
}

/// Shows the text so far: in a streaming card, in a patched card, or in a new message after the
/// former one was lost. An update that finds the shown streaming card unusable fails and changes the
/// state, so that the next one patches the message.
pub(super) async fn update(
    api: &FeishuApi,
    kit: &CardKit,
    reply: &mut LiveReply,
    markdown: &str,
) -> Result<(), PlatformError> {
    let Some(markup) = live_text(markdown) else {
        return Ok(());
    };
    match LiveCard::read(&reply.state) {
        None if kit.is_missing() => begin_patched(api, reply, 0, &markup).await,
        None => match create(api, kit, reply).await {
            Ok(card) => {
                reply.state = LiveCard::Streaming(card.clone()).write();
                stream(api, kit, reply, card, &markup).await
            }
            Err(failure) if failure.is_final() => begin_patched(api, reply, 0, &markup).await,
            Err(failure) => Err(failure.into_error(1)),
        },
        Some(LiveCard::Streaming(card)) => stream(api, kit, reply, card, &markup).await,
        Some(LiveCard::Patched(card)) => patch_live(api, reply, card, &markup).await,
    }
}

async fn stream(
    api: &FeishuApi,
    kit: &CardKit,
    reply: &mut LiveReply,
    mut card: StreamingCard,
    markup: &str,
) -> Result<(), PlatformError> {
    let message = match &card.message {
        Some(message) => message.clone(),
        None => match post_card(api, &reply.target, &card).await {
            Ok(message) => {
                card.message = Some(message.clone());
                reply.state = LiveCard::Streaming(card.clone()).write();
                message
            }
            Err(failure) if failure.is_final() => {
                return begin_patched(api, reply, 0, markup).await;
            }
            Err(failure) => return Err(failure.into_error(1)),
        },
    };
    let shown = kit.show(api, &mut card, reply.key, markup).await;
    reply.state = LiveCard::Streaming(card).write();
    match shown {
        Ok(()) => Ok(()),
        Err(failure) if failure.is_final() => {
            tracing::info!(%message, ?failure, "streaming card is not usable any more");
            // A patched message does not show the card any more. The first patch therefore follows
            // when this state is stored: otherwise a restart would show the text in the card.
            reply.state = LiveCard::Patched(PatchedCard::sent(message, 0, api.now_ms())).write();
            Err(PlatformError::LiveExpired(
                "the streaming card cannot be updated, its message is patched next".to_owned(),
            ))
        }
        Err(failure) => Err(failure.into_error(1)),
    }
}

async fn create(
    api: &FeishuApi,
    kit: &CardKit,
    reply: &LiveReply,
) -> Result<StreamingCard, FeishuFailure> {
    kit.create(api, reply.stop.as_ref(), reply.target.is_direct())
        .await
}

/// Sends the message that shows a card. A repetition returns the message of the first call.
async fn post_card(
    api: &FeishuApi,
    target: &Target,
    card: &StreamingCard,
) -> Result<String, FeishuFailure> {
    let new = NewMessage {
        target,
        rich: card_reference(&card.card),
        plain: None,
        key: derived_key(Uuid::nil(), &card.card),
    };
    post(api, &new).await
}

async fn begin_patched(
    api: &FeishuApi,
    reply: &mut LiveReply,
    generation: u32,
    markup: &str,
) -> Result<(), PlatformError> {
    let new = NewMessage {
        target: &reply.target,
        rich: live_card(reply, markup),
        plain: None,
        key: derived_key(reply.key, &format!("patched {generation}")),
    };
    let message = post(api, &new)
        .await
        .map_err(|failure| failure.into_error(1))?;
    let card = PatchedCard::sent(message, generation, api.now_ms());
    reply.state = LiveCard::Patched(card).write();
    Ok(())
}

async fn patch_live(
    api: &FeishuApi,
    reply: &mut LiveReply,
    mut card: PatchedCard,
    markup: &str,
) -> Result<(), PlatformError> {
    if card.may_edit(api.now_ms()) {
        match patch(api, &card.message, &live_card(reply, markup)).await {
            Ok(()) => {
                card.edits += 1;
                card.edited_ms = api.now_ms();
            }
            // The completion sends the text without markup.
            Err(FeishuFailure::ContentRefused(_)) => {}
            Err(failure) if failure.is_final() => {
                return match card.next_generation() {
                    Some(generation) => begin_patched(api, reply, generation, markup).await,
                    None => Err(PlatformError::LiveExpired(
                        "the cards of this answer cannot be updated".to_owned(),
                    )),
                };
            }
            Err(failure) => return Err(failure.into_error(1)),
        }
    }
    reply.state = LiveCard::Patched(card).write();
    Ok(())
}

/// Returns the card of an update, with the stop button.
fn live_card(reply: &LiveReply, markup: &str) -> Payload {
    let stop = reply.stop.as_slice();
    card(markup, stop, reply.target.is_direct())
}

/// Final text of a live message.
#[derive(Debug, Clone, Copy)]
pub(super) struct FinalText<'a> {
    /// Text.
    pub(super) part: &'a Part,
    /// Buttons.
    pub(super) buttons: &'a [Button],
    /// Destination.
    pub(super) target: &'a Target,
}

/// Completes a live message and returns its id; `None` if the text must be sent as a new message.
pub(super) async fn complete(
    api: &FeishuApi,
    kit: &CardKit,
    live: &Value,
    key: Uuid,
    text: FinalText<'_>,
    progress: &mut Value,
) -> Result<Option<String>, FeishuFailure> {
    let mut card = match LiveCard::read(live) {
        Some(LiveCard::Streaming(card)) => card,
        Some(LiveCard::Patched(card)) => return patch_final(api, card.message, text).await,
        None => return Ok(None),
    };
    // The process may have ended between the call that sent the message and its record.
    let message = match card.message.clone() {
        Some(message) => message,
        None => match post_card(api, text.target, &card).await {
            Ok(message) => message,
            Err(failure) if failure.is_final() => return Ok(None),
            Err(failure) => return Err(failure),
        },
    };
    // An earlier attempt may have used the sequences after that of the stored state.
    card.sequence = card
        .sequence
        .max(progress["sequence"].as_i64().unwrap_or(0));
    card.has_stop &= progress["stop"] != false;
    let result = finish(api, kit, &mut card, key, text).await;
    *progress = json!({"sequence": card.sequence, "stop": card.has_stop});
    match result {
        Ok(true) => Ok(Some(message)),
        Ok(false) => patch_final(api, message, text).await,
        Err(failure) => Err(failure),
    }
}

/// Shows the final text in a streaming card and ends its streaming mode. Returns `false` if the
/// card must be patched as a whole.
async fn finish(
    api: &FeishuApi,
    kit: &CardKit,
    card: &mut StreamingCard,
    key: Uuid,
    text: FinalText<'_>,
) -> Result<bool, FeishuFailure> {
    let mut is_shown = if text.buttons.is_empty() {
        match kit.show(api, card, key, &text.part.markup).await {
            Ok(()) => true,
            Err(failure) if failure.is_final() => {
                tracing::info!(card = %card.card, ?failure, "streaming card refused the final text, patching it");
                false
            }
            Err(failure) => return Err(failure),
        }
    } else {
        false
    };
    if is_shown && card.has_stop {
        match kit.remove_stop(api, card, key).await {
            Ok(()) => {}
            Err(failure) if failure.is_final() => {
                tracing::info!(card = %card.card, ?failure, "stop button of a streaming card was not removed, patching it");
                is_shown = false;
            }
            Err(failure) => return Err(failure),
        }
    }
    match kit.close(api, card, key).await {
        Err(failure) if !failure.is_final() => Err(failure),
        Err(failure) => {
            tracing::debug!(card = %card.card, ?failure, "streaming mode was not ended");
            Ok(is_shown)
        }
        Ok(()) => Ok(is_shown),
    }
}

async fn patch_final(
    api: &FeishuApi,
    message: String,
    text: FinalText<'_>,
) -> Result<Option<String>, FeishuFailure> {
    let rich = card(&text.part.markup, text.buttons, text.target.is_direct());
    if !rich.fits() {
        return Ok(None);
    }
    let result = match patch(api, &message, &rich).await {
        Err(FeishuFailure::ContentRefused(_)) if text.buttons.is_empty() => {
            patch(api, &message, &plain_card(&text.part.plain)).await
        }
        other => other,
    };
    match result {
        Ok(()) => Ok(Some(message)),
        Err(failure) if failure.is_final() => {
            tracing::info!(%message, ?failure, "card cannot be completed, sending a new message");
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
