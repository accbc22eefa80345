//! Adapter of one agent: resolves model and temperature of each turn and calls the transport.

use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::call::TurnLimits;
use super::failure::invalid_config;
use super::findings::MISSING_MODEL;
use super::key_filter::{KeyFilter, without_key};
use super::settings::TransportKind;
use super::transport::{SessionRequest, TurnRequest, TurnTransport};
use crate::adapter::{
    AgentAdapter, AgentInvocation, AgentTurnResult, ConfigFinding, DeltaSink, FlowError,
    InvocationId, SessionContext, SessionId, TurnEffect, TurnRuntime,
};

/// Adapter of one agent.
#[derive(Debug)]
pub(super) struct PiMonoAdapter {
    pub(super) transport: Box<dyn TurnTransport>,
    pub(super) kind: TransportKind,
    /// Key that is sent; removed from what comes back.
    pub(super) key: Option<SecretString>,
    /// Model for turns whose node and agent name none.
    pub(super) model: Option<String>,
    /// Temperature for turns whose node and agent state none.
    pub(super) temperature: Option<f64>,
    /// Maximum time without a received byte.
    pub(super) idle: Duration,
}

impl PiMonoAdapter {
    fn model<'a>(&'a self, stated: Option<&'a str>) -> Option<&'a str> {
        stated
            .map(str::trim)
            .filter(|model| !model.is_empty())
            .or(self.model.as_deref())
    }
}

#[async_trait]
impl AgentAdapter for PiMonoAdapter {
    async fn create_session(&self, context: SessionContext) -> Result<SessionId, FlowError> {
        let model = self.model(context.model.as_deref());
        if self.kind == TransportKind::DeepSeek && model.is_none() {
            return Err(invalid_config(&[ConfigFinding {
                code: MISSING_MODEL.to_owned(),
                key: "model".to_owned(),
                message: "no model is configured: set `modelProfile.model`".to_owned(),
            }]));
        }
        let request = SessionRequest {
            context: &context,
            model,
            temperature: context.temperature.or(self.temperature),
        };
        self.transport.create_session(request).await
    }

    async fn run_turn(
        &self,
        invocation: AgentInvocation,
        runtime: TurnRuntime,
        sink: &dyn DeltaSink,
        cancel: CancellationToken,
    ) -> AgentTurnResult {
        let request = TurnRequest {
            invocation: &invocation,
            model: self.model(invocation.model.as_deref()),
            temperature: invocation.temperature.or(self.temperature),
        };
        let limits = TurnLimits {
            deadline: runtime.deadline,
            cancel,
            idle: self.idle,
        };
        let Some(key) = &self.key else {
            return self.transport.run_turn(request, sink, &limits).await;
        };
        let filter = KeyFilter::new(sink, key);
        let result = self.transport.run_turn(request, &filter, &limits).await;
        filter.finish();
        without_key(result, key)
    }

    async fn abort(&self, invocation: &InvocationId) -> Result<(), FlowError> {
        self.transport.abort(invocation).await
    }

    async fn dispose(&self, session: &SessionId) -> Result<(), FlowError> {
        self.transport.dispose(session).await
    }

    fn effect(&self) -> TurnEffect {
        self.transport.effect()
    }

    fn stores_history(&self) -> bool {
        self.transport.stores_history()
    }
}
