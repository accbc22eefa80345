//! Transport of sessions and turns over HTTP.

use async_trait::async_trait;
use deerflow_models::http::EventSplitter;
use indexmap::IndexMap;
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, Response};
use serde_json::Value;

use super::call::{CallFailure, Caller, TurnLimits};
use super::failure::{BAD_RESPONSE, REQUEST_FAILED, adapter_error, error_of, result_of};
use super::stream::{StreamSize, emit, is_event_stream};
use super::transport::{SessionRequest, TurnRequest, TurnTransport};
use super::turn_stream::TurnStream;
use super::turn_wire::{read_session, read_turn, session_body, turn_body};
use crate::adapter::{
    AgentInvocation, AgentTurnResult, DeltaSink, FlowError, InvocationId, SessionContext,
    SessionId, TurnEffect, TurnMode, TurnStatus,
};

/// Status of a session that the server does not know.
const NOT_FOUND: u16 = 404;
/// Characters of an id that a path cannot contain as they are.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Transport of sessions and turns over HTTP.
#[derive(Debug)]
pub(super) struct HttpTransport {
    caller: Caller,
    effect: TurnEffect,
    /// Sessions of the server by the session that they replaced.
    replaced: Mutex<IndexMap<SessionId, SessionId>>,
}

impl HttpTransport {
    pub(super) fn new(caller: Caller, effect: TurnEffect) -> Self {
        Self {
            caller,
            effect,
            replaced: Mutex::default(),
        }
    }

    async fn open(
        &self,
        request: &SessionRequest<'_>,
        limits: &TurnLimits,
    ) -> Result<SessionId, FlowError> {
        let body = session_body(request);
        let failed = |failure: CallFailure| error_of(&failure, REQUEST_FAILED);
        let mut response = self
            .caller
            .send(Method::POST, "/sessions", Some(&body), limits)
            .await
            .map_err(failed)?;
        let answer = self.caller.whole_body(&mut response, limits).await;
        read_session(&answer.map_err(failed)?).ok_or_else(|| {
            adapter_error(
                BAD_RESPONSE,
                "the answer to the session has no usable `sessionId`",
            )
        })
    }

    /// Sends a turn. If the server does not know the session, creates a new one once: the server
    /// has not executed the turn then.
    async fn send_turn(
        &self,
        request: &TurnRequest<'_>,
        limits: &TurnLimits,
    ) -> Result<(Response, Option<SessionId>), AgentTurnResult> {
        let session = self.current(&request.invocation.session_id);
        let failed = |failure: &CallFailure| result_of(failure, REQUEST_FAILED);
        match self.post_turn(&turn_body(request, &session), limits).await {
            Ok(response) => Ok((response, None)),
            Err(CallFailure::Status { status, .. }) if status == NOT_FOUND => {
                let context = session_context(request.invocation);
                let new = SessionRequest {
                    context: &context,
                    model: request.model,
                    temperature: request.temperature,
                };
                let session = self
                    .open(&new, limits)
                    .await
                    .map_err(|error| AgentTurnResult::ended(TurnStatus::Failed, error))?;
                let body = turn_body(request, &session);
                let replaced = request.invocation.session_id.clone();
                self.replaced.lock().insert(replaced, session.clone());
                let response = self.post_turn(&body, limits).await;
                response
                    .map(|response| (response, Some(session)))
                    .map_err(|failure| failed(&failure))
            }
            Err(failure) => Err(failed(&failure)),
        }
    }

    async fn post_turn(&self, body: &Value, limits: &TurnLimits) -> Result<Response, CallFailure> {
        self.caller
            .send(Method::POST, "/turns", Some(body), limits)
            .await
    }

    /// Reads the answer to a turn.
    async fn read(
        &self,
        mut response: Response,
        mode: TurnMode,
        sink: &dyn DeltaSink,
        limits: &TurnLimits,
    ) -> Result<AgentTurnResult, CallFailure> {
        let key = self.caller.key.as_ref();
        if !is_event_stream(&response) {
            let body = self.caller.whole_body(&mut response, limits).await?;
            return Ok(read_turn(&body, mode, key));
        }
        let (mut stream, mut splitter) = (TurnStream::default(), EventSplitter::lines());
        let mut size = StreamSize::default();
        while !stream.is_over()
            && let Some(bytes) = self.caller.next_bytes(&mut response, limits).await?
        {
            size.add(bytes.as_ref().len())?;
            splitter.push(bytes.as_ref(), |line| -> Result<(), CallFailure> {
                if !stream.is_over() {
                    emit(stream.line(line)?, sink);
                }
                Ok(())
            })?;
        }
        if !stream.is_over()
            && let Some(line) = splitter.rest()
        {
            emit(stream.line(&line)?, sink);
        }
        Ok(stream.into_result(mode, key))
    }

    /// Returns the session that replaced another one, or that one.
    fn current(&self, session: &SessionId) -> SessionId {
        self.replaced.lock().get(session).unwrap_or(session).clone()
    }
}

#[async_trait]
impl TurnTransport for HttpTransport {
    async fn create_session(&self, request: SessionRequest<'_>) -> Result<SessionId, FlowError> {
        self.open(&request, &TurnLimits::side_call()).await
    }

    async fn run_turn(
        &self,
        request: TurnRequest<'_>,
        sink: &dyn DeltaSink,
        limits: &TurnLimits,
    ) -> AgentTurnResult {
        let (response, session) = match self.send_turn(&request, limits).await {
            Ok(sent) => sent,
            Err(result) => return result,
        };
        let mode = request.invocation.turn_mode;
        let read = self.read(response, mode, sink, limits).await;
        let result = read.unwrap_or_else(|failure| result_of(&failure, REQUEST_FAILED));
        AgentTurnResult {
            new_session: session,
            ..result
        }
    }

    async fn abort(&self, invocation: &InvocationId) -> Result<(), FlowError> {
        let path = format!("/turns/{}/abort", encoded(&invocation.0));
        let limits = TurnLimits::side_call();
        let sent = self.caller.send(Method::POST, &path, None, &limits).await;
        sent.map(drop)
            .map_err(|failure| error_of(&failure, REQUEST_FAILED))
    }

    async fn dispose(&self, session: &SessionId) -> Result<(), FlowError> {
        let path = format!("/sessions/{}", encoded(&self.current(session).0));
        let limits = TurnLimits::side_call();
        match self.caller.send(Method::DELETE, &path, None, &limits).await {
            Err(CallFailure::Status { status, .. }) if status == NOT_FOUND => Ok(()),
            sent => sent
                .map(drop)
                .map_err(|failure| error_of(&failure, REQUEST_FAILED)),
        }
    }

    fn effect(&self) -> TurnEffect {
        self.effect
    }

    fn stores_history(&self) -> bool {
        true
    }
}

fn session_context(turn: &AgentInvocation) -> SessionContext {
    SessionContext {
        run_id: turn.run_id.clone(),
        flow_name: turn.flow_name.clone(),
        agent: turn.agent.clone(),
        model: turn.model.clone(),
        temperature: turn.temperature,
    }
}

/// Encodes an id as one segment of a path.
fn encoded(id: &str) -> String {
    utf8_percent_encode(id, ENCODED).to_string()
}
