//! Audit entries of changes that are outside of the database.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use deerflow_domain::accounts::{AuditAction, NewAuditEntry};
use harness::runtime::actor_context::effective_user_id;

use super::visitor::Visitor;
use crate::error::{ApiError, truncated};
use crate::state::GatewayState;

/// Records what the caller of a route changed.
#[derive(Debug)]
pub(crate) struct Recorder {
    visitor: Visitor,
    state: Arc<GatewayState>,
}

impl FromRequestParts<Arc<GatewayState>> for Recorder {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<GatewayState>,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            visitor: Visitor::from_request_parts(parts, state).await?,
            state: state.clone(),
        })
    }
}

impl Recorder {
    /// Records a change that took effect. A failure is logged: the change stays, so the response
    /// must not deny it.
    pub(crate) async fn record(&self, action: AuditAction, object: &str) {
        let entry = NewAuditEntry::new(action, self.state.process.clock.now())
            .by(&effective_user_id())
            .on(truncated(object));
        let audit = &self.state.security.sign_in.stores.audit;
        if let Err(error) = audit.append(self.visitor.sign(entry)).await {
            tracing::error!(%error, %action, "a change was not recorded in the audit log");
        }
    }
}
