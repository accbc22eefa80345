//! DeepSeek-compatible transport: one streamed chat completion per turn. Sessions are local.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::ids::IdSource;
use deerflow_models::http::EventSplitter;
use reqwest::{Method, Response};

use super::call::{CallFailure, Caller, TurnLimits};
use super::completion::{Completion, request_body};
use super::failure::{DEEPSEEK_MODEL_MISSING, DEEPSEEK_REQUEST_FAILED, adapter_error, result_of};
use super::stream::{StreamSize, emit, is_json};
use super::transport::{SessionRequest, TurnRequest, TurnTransport};
use crate::adapter::{
    AgentTurnResult, DeltaSink, FlowError, InvocationId, SessionId, TurnEffect, TurnStatus,
};

/// Transport of DeepSeek-compatible chat completions.
#[derive(Debug)]
pub(super) struct DeepSeekTransport {
    pub(super) caller: Caller,
    pub(super) ids: Arc<dyn IdSource>,
}

#[async_trait]
impl TurnTransport for DeepSeekTransport {
    async fn create_session(&self, _request: SessionRequest<'_>) -> Result<SessionId, FlowError> {
        Ok(SessionId(self.ids.random().to_string()))
    }

    async fn run_turn(
        &self,
        request: TurnRequest<'_>,
        sink: &dyn DeltaSink,
        limits: &TurnLimits,
    ) -> AgentTurnResult {
        let Some(model) = request.model else {
            let error = adapter_error(DEEPSEEK_MODEL_MISSING, "no model is configured");
            return AgentTurnResult::ended(TurnStatus::Failed, error);
        };
        let body = request_body(&request, model);
        let path = "/chat/completions";
        let mut answer = Completion::default();
        let outcome = match self
            .caller
            .send(Method::POST, path, Some(&body), limits)
            .await
        {
            Ok(response) => self.collect(response, &mut answer, sink, limits).await,
            Err(failure) => Err(failure),
        };
        match outcome {
            Err(failure) if failure == CallFailure::Cancelled || !answer.is_complete() => {
                result_of(&failure, DEEPSEEK_REQUEST_FAILED)
            }
            _ => answer.into_result(request.invocation.turn_mode, self.caller.key.as_ref()),
        }
    }

    async fn abort(&self, _invocation: &InvocationId) -> Result<(), FlowError> {
        Ok(())
    }

    async fn dispose(&self, _session: &SessionId) -> Result<(), FlowError> {
        Ok(())
    }

    fn effect(&self) -> TurnEffect {
        TurnEffect::Pure
    }

    fn stores_history(&self) -> bool {
        false
    }
}

impl DeepSeekTransport {
    /// Collects the answer and emits its fragments.
    async fn collect(
        &self,
        mut response: Response,
        answer: &mut Completion,
        sink: &dyn DeltaSink,
        limits: &TurnLimits,
    ) -> Result<(), CallFailure> {
        if is_json(&response) {
            let body = self.caller.whole_body(&mut response, limits).await?;
            if let Ok(chunk) = serde_json::from_slice(&body) {
                emit(answer.chunk(&chunk)?, sink);
            }
            return Ok(());
        }
        let mut splitter = EventSplitter::lines();
        let mut size = StreamSize::default();
        while !answer.is_over()
            && let Some(bytes) = self.caller.next_bytes(&mut response, limits).await?
        {
            size.add(bytes.as_ref().len())?;
            splitter.push(bytes.as_ref(), |line| -> Result<(), CallFailure> {
                if !answer.is_over() {
                    emit(answer.line(line)?, sink);
                }
                Ok(())
            })?;
        }
        if !answer.is_over()
            && let Some(line) = splitter.rest()
        {
            emit(answer.line(&line)?, sink);
        }
        Ok(())
    }
}
