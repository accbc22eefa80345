//! Limits the memory of answers: large ones take turns to be built, and have to fit into a budget
//! until their clients have read them.

use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use harness::fair_permits::{FairPermit, FairPermits};
use harness::runtime::actor_context::required_user_id;
use hyper::body::{Frame, SizeHint};
use metrics::counter;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::memory_budget::{MemoryBudget, Reservation, units};
use super::received_body::{BODY_LIMIT, receive_early};
use crate::error::ApiError;

/// Maximum size of an answer that is not counted, in bytes.
const SMALL: u64 = 64 << 10;
/// Time for which a request waits for its turn before it is built.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which a finished answer waits for the budget, with its memory.
const BUDGET_TIMEOUT: Duration = Duration::from_secs(1);
/// Bounds of the number of possibly large answers that are built at the same time. An answer needs
/// several times its size until it is built, and most of that work is done by processors.
const BUILDERS: RangeInclusive<usize> = 2..=4;
/// Endings of the routes that read whole states or lists of large entries.
const LARGE_ROUTES: [&str; 14] = [
    "/history",
    "/state",
    "/state/{checkpoint_id}",
    "/state/checkpoint",
    "/threads/search",
    "/threads/{thread_id}",
    "/assistants/search",
    "/versions",
    "/crons/search",
    "/messages",
    "/messages/page",
    "/runs/{run_id}/events",
    "/runs/{run_id}/join",
    "/store/items/search",
];
/// Endings of the routes that read runs with their inputs with `GET`.
const RUNS: [&str; 2] = ["/runs", "/runs/{run_id}"];

/// Memory of the answers that their clients have not read yet.
///
/// An answer larger than a user's share is counted as the whole share.
#[derive(Debug, Clone)]
pub(crate) struct AnswerMemory(Arc<Answers>);

#[derive(Debug)]
struct Answers {
    budget: MemoryBudget,
    builders: FairPermits,
}

impl AnswerMemory {
    /// Creates a budget of `bytes`, of which one user can use the half.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Answers {
            budget: MemoryBudget::new("deerflow_answer_bytes", bytes, bytes / 2),
            builders: FairPermits::new("states", builders()),
        }))
    }
}

/// Returns the number of possibly large answers that are built at the same time: one per processor
/// within [`BUILDERS`].
fn builders() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .clamp(*BUILDERS.start(), *BUILDERS.end())
}

impl Answers {
    /// Waits until `user` has a part of its share left and fewer answers than the limit are built.
    /// Nothing of the answer is in memory yet.
    async fn turn(&self, user: &str, share: &Semaphore) -> Option<FairPermit> {
        let turn = async {
            // Released at once: only a user who has read earlier answers gets a turn.
            drop(share.acquire_many(units(SMALL)).await.ok()?);
            Some(self.builders.acquire(user).await)
        };
        timeout(TURN_TIMEOUT, turn).await.ok().flatten()
    }

    /// Reserves the bytes of a finished answer. Returns `None` if they are not available soon.
    async fn reserve(&self, share: Arc<Semaphore>, bytes: u64) -> Option<Reservation> {
        let reserved = self.budget.reserve(share, bytes);
        timeout(BUDGET_TIMEOUT, reserved).await.ok().flatten()
    }
}

/// Reports whether a request may have a large answer, as far as its route shows.
fn may_be_large(method: &Method, route: &str) -> bool {
    let has_ending = |endings: &[&str]| endings.iter().any(|ending| route.ends_with(ending));
    has_ending(&LARGE_ROUTES) || (method == Method::GET && has_ending(&RUNS))
}

/// Lets requests with possibly large answers take turns, and counts large answers until they are
/// read. Answers 503 if the budget is used up.
pub(crate) async fn limit_answer<F: Future<Output = Response>>(
    AnswerMemory(answers): &AnswerMemory,
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let takes_turn = route.is_some_and(|route| may_be_large(request.method(), route.as_str()));
    let user = || required_user_id().map_or_else(|_| String::new(), |user| user.to_string());
    let mut share = None;
    let mut turn = None;
    if takes_turn {
        if !request.body().is_end_stream() {
            // A turn is not for waiting until a client has sent its request.
            request = match receive_early(request, BODY_LIMIT).await {
                Ok(request) => request,
                Err(error) => return error.into_response(),
            };
        }
        let user = user();
        let own = answers.budget.share(&user);
        turn = answers.turn(&user, &own).await;
        if turn.is_none() {
            return busy();
        }
        share = Some(own);
    }
    let response = next(request).await;
    let Some(bytes) = large(response.body()) else {
        return response;
    };
    let share = share.unwrap_or_else(|| answers.budget.share(&user()));
    let reservation = answers.reserve(share, bytes).await;
    drop(turn);
    match reservation {
        Some(reservation) => {
            let reservation = Arc::new(reservation);
            response.map(|body| Body::new(CountedBody { body, reservation }))
        }
        None => busy(),
    }
}

/// Returns the size of a body in memory that is counted.
fn large(body: &Body) -> Option<u64> {
    body.size_hint().exact().filter(|bytes| *bytes > SMALL)
}

fn busy() -> Response {
    counter!("deerflow_answers_refused_total").increment(1);
    ApiError::Busy {
        message: "too many large answers are waiting to be read".to_owned(),
        retry_after_secs: 5,
    }
    .into_response()
}

/// Body whose data is counted until the connection has sent it.
struct CountedBody {
    body: Body,
    reservation: Arc<Reservation>,
}

/// Data of a body. The connection drops the body as soon as it has all data, so the data itself
/// owns the reservation.
struct CountedData {
    data: Bytes,
    _reservation: Arc<Reservation>,
}

impl AsRef<[u8]> for CountedData {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let counted = |data| {
            Bytes::from_owner(CountedData {
                data,
                _reservation: self.reservation.clone(),
            })
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(counted))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "answer_memory_tests.rs"]
mod tests;
