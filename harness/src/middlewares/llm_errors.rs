//! Turns a final model failure into an answer that explains the problem to the user, so that the
//! conversation can continue.
//!
//! Retries happen below, at the call ([`crate::models::stream_with_retry`]); errors that arrive
//! here are final.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::hooks::Hooks;
use super::middleware::{Middleware, ModelNext};
use crate::messages::{Message, kwargs};
use crate::models::{ModelError, ModelErrorKind, ModelRequest};
use crate::runtime::agent::RunContext;

/// Maximum length of a stored error detail, in characters.
const MAX_DETAIL_CHARS: usize = 2_000;

/// Turns a failed model call into an answer that reports the failure. The runtime recognizes the
/// answer by its flag and marks the run as failed.
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
                tracing::warn!(%error, reason = error.kind.as_str(), "model call failed, answering with an explanation");
                Ok(fallback(&error))
            }
        }
    }
}

/// Creates a new message without the id of the intended answer: viewers may already have received a
/// part of that answer.
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

/// Explains to the user how to resolve the failure.
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
