//! Lets a conversation survive its provider: when a model fails for good, the user reads why instead of an error page.
//!
//! Trying again happens below, where the call is made ([`crate::models::stream_with_retry`]); what arrives here is final.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::middleware::{Hooks, Middleware};
use super::next::ModelNext;
use crate::messages::{Message, kwargs};
use crate::models::{ModelError, ModelErrorKind, ModelRequest};
use crate::runtime::agent::RunContext;

/// The longest detail that is kept, in characters.
const MAX_DETAIL_CHARS: usize = 2_000;

/// Turns a failed model call into an answer that says so. The runtime knows it by its flag and marks the run as failed.
#[derive(Debug, Clone, Copy, Default)]
pub struct LlmErrorMiddleware;

#[async_trait]
impl Middleware for LlmErrorMiddleware {
    fn name(&self) -> &str {
        "LLMErrorMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_MODEL
    }

    async fn wrap_model_call(
        &self,
        request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        match next.run(request).await {
            Ok(message) => Ok(message),
            Err(error) => {
                tracing::warn!(%error, reason = error.kind.as_str(), "a model call failed for good");
                Ok(fallback(&error))
            }
        }
    }
}

/// A message of its own, without the id that was meant for the answer: under that one viewers may have read a part of it.
fn fallback(error: &ModelError) -> Message {
    let detail: String = error.to_string().chars().take(MAX_DETAIL_CHARS).collect();
    Message::ai(user_text(error)).with(|body| {
        for (key, value) in [
            (kwargs::ERROR_FALLBACK, Value::Bool(true)),
            ("error_type", json!("ModelError")),
            ("error_reason", json!(error.kind.as_str())),
            ("error_detail", json!(detail)),
        ] {
            body.additional_kwargs.insert(key.to_owned(), value);
        }
    })
}

/// What the user can do about it.
fn user_text(error: &ModelError) -> String {
    let model = &error.model;
    match error.kind {
        ModelErrorKind::Quota => format!(
            "The provider of the model `{model}` reports that its quota or credit is used up. Check the account's billing, or choose another model."
        ),
        ModelErrorKind::Auth => {
            format!(
                "The provider of the model `{model}` refused the credentials. Check the model's API key and its permissions."
            )
        }
        ModelErrorKind::Burst | ModelErrorKind::Busy => {
            format!(
                "The model `{model}` is overloaded at the moment, also after several tries. Please try again in a little while."
            )
        }
        ModelErrorKind::Stalled => {
            format!("The model `{model}` stopped answering. Please try again.")
        }
        ModelErrorKind::BadRequest => {
            format!("The model `{model}` refused the request: {}", error.message)
        }
        ModelErrorKind::Config => format!(
            "The model `{model}` cannot be used as it is configured: {}",
            error.message
        ),
        _ => format!(
            "The model `{model}` cannot be reached at the moment, also after several tries. Please try again later."
        ),
    }
}
