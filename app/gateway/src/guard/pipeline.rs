//! The checks of every request, in their order, as one layer: a router copies each of its layers for
//! each request.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::answer_memory::{AnswerMemory, limit_answer};
use super::body_memory::{BodyMemory, limit_body};
use super::permissions::check_permission;
use super::request_guard::{RequestGuard, guard_request};
use crate::ports::AccessControl;

/// Settings and budgets of the checks.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) guard: RequestGuard,
    pub(crate) bodies: BodyMemory,
    pub(crate) answers: AnswerMemory,
    pub(crate) access: Arc<dyn AccessControl>,
}

/// Runs the checks, then the handler of the request.
pub(crate) async fn check_request(
    State(pipeline): State<Arc<Pipeline>>,
    request: Request,
    next: Next,
) -> Response {
    let handled = |request| next.run(request);
    let permitted = |request| check_permission(&*pipeline.access, request, handled);
    let answered = |request| limit_answer(&pipeline.answers, request, permitted);
    let received = |request| limit_body(&pipeline.bodies, request, answered);
    guard_request(&pipeline.guard, request, received).await
}
