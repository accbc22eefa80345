//! Streaming cards of CardKit.

use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use uuid::Uuid;

use super::api::{ApiBody, ApiCall, FeishuApi};
use super::cards::{ANSWER, STOP, removal, streaming_card, streaming_mode, streaming_text};
use super::failure::FeishuFailure;
use super::live_state::{StreamingCard, derived_key};
use crate::platform::Button;

/// Access to CardKit; remembers that the app lacks its scope.
#[derive(Debug, Default)]
pub(super) struct CardKit {
    missing: AtomicBool,
}

impl CardKit {
    /// `true` after the platform refused CardKit for lack of the scope.
    pub(super) fn is_missing(&self) -> bool {
        self.missing.load(Ordering::Relaxed)
    }

    /// Creates the streaming card of an answer, which no message shows yet.
    pub(super) async fn create(
        &self,
        api: &FeishuApi,
        stop: Option<&Button>,
        is_direct: bool,
    ) -> Result<StreamingCard, FeishuFailure> {
        let path = ["cardkit", "v1", "cards"];
        let body = streaming_card(stop, is_direct);
        let call = ApiCall::new(Method::POST, &path, ApiBody::Json(body));
        let answer = self.call(api, &call).await?;
        let id = answer["data"]["card_id"].as_str();
        let id = id.filter(|id| !id.is_empty()).ok_or_else(|| {
            FeishuFailure::Refused("the answer lacks the id of the card".to_owned())
        })?;
        Ok(StreamingCard {
            card: id.to_owned(),
            message: None,
            sequence: 0,
            opened_ms: api.now_ms(),
            has_stop: stop.is_some(),
        })
    }

    /// Removes the stop button.
    pub(super) async fn remove_stop(
        &self,
        api: &FeishuApi,
        card: &mut StreamingCard,
        key: Uuid,
    ) -> Result<(), FeishuFailure> {
        let sequence = card.next();
        let uuid = derived_key(key, &format!("{} {sequence}", card.card));
        let path = ["cardkit", "v1", "cards", &card.card, "elements", STOP];
        let body = ApiBody::Json(removal(sequence, &uuid));
        let call = ApiCall::new(Method::DELETE, &path, body);
        self.call(api, &call).await?;
        card.has_stop = false;
        Ok(())
    }

    /// Shows a text. If the platform refuses it, streaming mode is switched on again and the text
    /// repeated once.
    pub(super) async fn show(
        &self,
        api: &FeishuApi,
        card: &mut StreamingCard,
        key: Uuid,
        markup: &str,
    ) -> Result<(), FeishuFailure> {
        if card.is_ending(api.now_ms()) {
            match self.switch(api, card, key, true).await {
                Ok(()) => card.opened_ms = api.now_ms(),
                Err(failure) if failure.is_final() => {}
                Err(failure) => return Err(failure),
            }
        }
        match self.text(api, card, key, markup).await {
            Err(failure) if failure.is_final() && !self.is_missing() => {
                tracing::info!(card = %card.card, ?failure, "streaming card refused an update, switching it on again");
                card.jump();
                self.switch(api, card, key, true).await?;
                card.opened_ms = api.now_ms();
                self.text(api, card, key, markup).await
            }
            other => other,
        }
    }

    /// Ends streaming mode, so that the preview shows the answer.
    pub(super) async fn close(
        &self,
        api: &FeishuApi,
        card: &mut StreamingCard,
        key: Uuid,
    ) -> Result<(), FeishuFailure> {
        match self.switch(api, card, key, false).await {
            Err(failure) if failure.is_final() => {
                card.jump();
                self.switch(api, card, key, false).await
            }
            other => other,
        }
    }

    async fn text(
        &self,
        api: &FeishuApi,
        card: &mut StreamingCard,
        key: Uuid,
        markup: &str,
    ) -> Result<(), FeishuFailure> {
        let sequence = card.next();
        let uuid = derived_key(key, &format!("{} {sequence}", card.card));
        let path = [
            "cardkit", "v1", "cards", &card.card, "elements", ANSWER, "content",
        ];
        let body = ApiBody::Json(streaming_text(markup, sequence, &uuid));
        let call = ApiCall::new(Method::PUT, &path, body);
        self.call(api, &call).await.map(drop)
    }

    async fn switch(
        &self,
        api: &FeishuApi,
        card: &mut StreamingCard,
        key: Uuid,
        is_on: bool,
    ) -> Result<(), FeishuFailure> {
        let sequence = card.next();
        let uuid = derived_key(key, &format!("{} {sequence}", card.card));
        let path = ["cardkit", "v1", "cards", &card.card, "settings"];
        let body = ApiBody::Json(streaming_mode(is_on, sequence, &uuid));
        let call = ApiCall::new(Method::PATCH, &path, body);
        self.call(api, &call).await.map(drop)
    }

    async fn call(
        &self,
        api: &FeishuApi,
        call: &ApiCall<'_>,
    ) -> Result<serde_json::Value, FeishuFailure> {
        let result = api.call(call).await;
        if let Err(FeishuFailure::MissingScope(_)) = &result
            && !self.missing.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                app_id = %api.app_id(),
                "the app lacks the scope cardkit:card:write, answers are shown in patched cards"
            );
        }
        result
    }
}
