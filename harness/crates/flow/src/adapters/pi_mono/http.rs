//! Transport of sessions and turns over HTTP.

use async_trait::async_trait;
use deerflow_models::http::EventSplitter;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, Response};

use super::call::{CallFailure, Caller, TurnLimits};
use super::failure::{BAD_RESPONSE, REQUEST_FAILED, adapter_error, error_of, result_of};
use super::stream::{StreamSize, emit, is_event_stream};
use super::transport::{SessionRequest, TurnRequest, TurnTransport};
use super::turn_stream::TurnStream;
use super::turn_wire::{read_session, read_turn, session_body, turn_body};
use crate::adapter::{
    AgentTurnResult, DeltaSink, FlowError, InvocationId, SESSION_NOT_FOUND, SessionId, TurnEffect,
    TurnMode,
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
    pub(super) caller: Caller,
    pub(super) effect: TurnEffect,
}

impl HttpTransport {
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
}

#[async_trait]
impl TurnTransport for HttpTransport {
    async fn create_session(&self, request: SessionRequest<'_>) -> Result<SessionId, FlowError> {
        let limits = TurnLimits::side_call();
        let body = session_body(&request);
        let failed = |failure: CallFailure| error_of(&failure, REQUEST_FAILED);
        let sent = self
            .caller
            .send(Method::POST, "/sessions", Some(&body), &limits);
        let mut response = sent.await.map_err(failed)?;
        let answer = self.caller.whole_body(&mut response, &limits).await;
        read_session(&answer.map_err(failed)?).ok_or_else(|| {
            adapter_error(
                BAD_RESPONSE,
                "the answer to the session has no usable `sessionId`",
            )
        })
    }

    async fn run_turn(
        &self,
        request: TurnRequest<'_>,
        sink: &dyn DeltaSink,
        limits: &TurnLimits,
    ) -> AgentTurnResult {
        let body = turn_body(&request);
        let sent = self
            .caller
            .send(Method::POST, "/turns", Some(&body), limits);
        let response = match sent.await {
            Ok(response) => response,
            Err(failure) => return result_of(&failure, refusal_code(&failure)),
        };
        let mode = request.invocation.turn_mode;
        let read = self.read(response, mode, sink, limits).await;
        read.unwrap_or_else(|failure| result_of(&failure, REQUEST_FAILED))
    }

    async fn abort(&self, invocation: &InvocationId) -> Result<(), FlowError> {
        let path = format!("/turns/{}/abort", encoded(&invocation.0));
        let limits = TurnLimits::side_call();
        let sent = self.caller.send(Method::POST, &path, None, &limits).await;
        sent.map(drop)
            .map_err(|failure| error_of(&failure, REQUEST_FAILED))
    }

    async fn dispose(&self, session: &SessionId) -> Result<(), FlowError> {
        let path = format!("/sessions/{}", encoded(&session.0));
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

/// Returns the code of a refused turn. The server executes no turn of a session that it does not
/// know.
fn refusal_code(failure: &CallFailure) -> &'static str {
    match failure {
        CallFailure::Status { status, .. } if *status == NOT_FOUND => SESSION_NOT_FOUND,
        _ => REQUEST_FAILED,
    }
}

/// Encodes an id as one segment of a path.
fn encoded(id: &str) -> String {
    utf8_percent_encode(id, ENCODED).to_string()
}
