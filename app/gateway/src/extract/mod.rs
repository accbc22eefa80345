//! Extractors of typed parts of a request: dialect, path ids, bodies, query parameters.

mod body;
mod field_limits;
mod idempotency_key;
mod issues;
mod json;
mod layout;
mod number_range;
mod parsed_size;
mod query;

pub use body::{Body, ListBody, OptionalBody, RequestBody};
pub(crate) use body::{ShortBody, request_body};
pub(crate) use field_limits::check_fields;
pub(crate) use idempotency_key::{IDEMPOTENCY_HEADER, IdempotencyKey, REPLAYED};
pub use issues::Issues;
pub(crate) use issues::missing_issue;
pub(crate) use json::{AnyJson, SHORT_BODY_LIMIT, parse_within};
pub use layout::Layout;
pub(crate) use parsed_size::check_parsed_size;
pub use query::Query;

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use harness::ids::{CheckpointId, RunId, ThreadId};
use serde_json::json;
use uuid::Uuid;

use crate::dialect::Dialect;
use crate::error::{ApiError, Issue, truncated};
pub(crate) use crate::guard::body_memory::SMALL_TEXT;
pub use crate::guard::received_body::BODY_LIMIT;
pub(crate) use crate::guard::received_body::{BODY_TIMEOUT, receive, refuse_declared};
use crate::state::GatewayState;

/// Pattern of thread ids, as DeerFlow's clients see it in errors.
pub const ID_PATTERN: &str = "^[A-Za-z0-9_-]{1,64}$";

/// The dialect that the request guard selected by the path.
impl FromRequestParts<Arc<GatewayState>> for Dialect {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        _state: &Arc<GatewayState>,
    ) -> Result<Self, ApiError> {
        parts
            .extensions
            .get::<Self>()
            .copied()
            .ok_or_else(|| ApiError::Internal("the route was mounted without a dialect".to_owned()))
    }
}

/// The ids of the path; each is validated when it is read.
#[derive(Debug, Clone)]
pub struct Ids {
    dialect: Dialect,
    params: HashMap<String, String>,
}

impl FromRequestParts<Arc<GatewayState>> for Ids {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<GatewayState>,
    ) -> Result<Self, ApiError> {
        let dialect = Dialect::from_request_parts(parts, state).await?;
        let Path(params) = Path::<HashMap<String, String>>::from_request_parts(parts, state)
            .await
            .map_err(|_| ApiError::BadRequest("the path is not valid UTF-8".to_owned()))?;
        Ok(Self { dialect, params })
    }
}

impl Ids {
    /// Returns a parameter unchanged.
    pub fn text(&self, name: &str) -> &str {
        self.params
            .get(name)
            .map(String::as_str)
            .unwrap_or_default()
    }

    /// Returns the thread id.
    pub fn thread(&self) -> Result<ThreadId, ApiError> {
        parse_thread_id(self.text("thread_id"), self.dialect, "path")
    }

    /// Returns the run id. DeerFlow accepts any text and does not find the run; the platform
    /// requires a UUID.
    pub fn run(&self) -> Result<RunId, ApiError> {
        parse_run_id(self.text("run_id"), self.dialect)
    }

    /// Returns the checkpoint id, by the rule for runs.
    pub fn checkpoint(&self) -> Result<CheckpointId, ApiError> {
        let text = self.text("checkpoint_id");
        if self.dialect.is_platform() && Uuid::parse_str(text).is_err() {
            return Err(ApiError::Unprocessable(
                "Invalid checkpoint ID: must be a UUID".to_owned(),
            ));
        }
        CheckpointId::parse(text).map_err(|_| ApiError::CheckpointNotFound(truncated(text)))
    }
}

/// Parses a run id by the dialect's rule.
pub fn parse_run_id(text: &str, dialect: Dialect) -> Result<RunId, ApiError> {
    if dialect.is_platform() && Uuid::parse_str(text).is_err() {
        return Err(ApiError::Unprocessable(
            "Invalid run ID: must be a UUID".to_owned(),
        ));
    }
    RunId::parse(text).map_err(|_| ApiError::RunNotFound(truncated(text)))
}

/// Parses a thread id by the dialect's rule: DeerFlow restricts the characters, the platform
/// requires a UUID.
pub fn parse_thread_id(
    text: &str,
    dialect: Dialect,
    source: &'static str,
) -> Result<ThreadId, ApiError> {
    if dialect.is_platform() && Uuid::parse_str(text).is_err() {
        return Err(ApiError::Unprocessable(
            "Invalid thread ID: must be a UUID".to_owned(),
        ));
    }
    ThreadId::parse(text).map_err(|_| {
        let message = format!("String should match pattern '{ID_PATTERN}'");
        let issue = Issue::new(
            "string_pattern_mismatch",
            vec![source.into(), "thread_id".into()],
            message,
            &text.into(),
        );
        ApiError::issue(issue.ctx(json!({ "pattern": ID_PATTERN })))
    })
}
