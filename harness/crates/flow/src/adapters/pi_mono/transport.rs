//! Transport of turns.

use std::fmt;

use async_trait::async_trait;

use super::call::TurnLimits;
use crate::adapter::{
    AgentInvocation, AgentTurnResult, DeltaSink, FlowError, InvocationId, SessionContext,
    SessionId, TurnEffect,
};

/// A turn with the model and temperature that were resolved for it.
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'a> {
    /// Turn.
    pub invocation: &'a AgentInvocation,
    /// Name of the model.
    pub model: Option<&'a str>,
    /// Temperature.
    pub temperature: Option<f64>,
}

/// A new session with the model and temperature that were resolved for it.
#[derive(Debug, Clone, Copy)]
pub struct SessionRequest<'a> {
    /// Facts about the run and the agent.
    pub context: &'a SessionContext,
    /// Name of the model.
    pub model: Option<&'a str>,
    /// Temperature.
    pub temperature: Option<f64>,
}

/// Executes turns at another side. Dropping a future of [`Self::run_turn`] drops its request.
#[async_trait]
pub trait TurnTransport: Send + Sync + fmt::Debug {
    /// Creates a session.
    async fn create_session(&self, request: SessionRequest<'_>) -> Result<SessionId, FlowError>;

    /// Executes a turn. Every failure is a result.
    async fn run_turn(
        &self,
        request: TurnRequest<'_>,
        sink: &dyn DeltaSink,
        limits: &TurnLimits,
    ) -> AgentTurnResult;

    /// Aborts a turn at the other side.
    async fn abort(&self, invocation: &InvocationId) -> Result<(), FlowError>;

    /// Disposes a session. A session that does not exist is disposed.
    async fn dispose(&self, session: &SessionId) -> Result<(), FlowError>;

    /// Returns what a repetition of a turn does.
    fn effect(&self) -> TurnEffect;

    /// Reports whether the other side stores the turns of a session.
    fn stores_history(&self) -> bool;
}
