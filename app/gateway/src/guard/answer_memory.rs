//! Limits the memory of answers: large ones take turns to be built, and have to fit into a budget
//! until their clients have read them.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use harness::fair_permits::{FairPermit, FairPermits};
use harness::runtime::actor_context::required_user_id;
use hyper::body::{Frame, SizeHint};
use metrics::{counter, gauge};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::ApiError;

/// Unit of the budget, in bytes.
const UNIT: usize = 1 << 10;
/// Maximum size of an answer that is not counted, in bytes.
const SMALL: u64 = 64 << 10;
/// Time for which a request waits for its turn before it is built.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which a finished answer waits for the budget, with its memory.
const BUDGET_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of old users after which users without answers are forgotten.
const MAX_USERS: usize = 1_000;
/// Endings of the routes that read whole states or lists of large entries.
const LARGE_ROUTES: [&str; 12] = [
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
];
/// Ending of the route that lists runs with their inputs with `GET`.
const RUN_LIST: &str = "/runs";

/// Sizes of the budget.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Bytes of all answers.
    total: usize,
    /// Bytes of the answers of one user.
    user: usize,
    /// Number of possibly large answers that are built at the same time.
    builders: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            total: 96 << 20,
            user: 48 << 20,
            builders: 4,
        }
    }
}

/// Memory of the answers that their clients have not read yet.
///
/// An answer larger than a user's share is counted as the whole share.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerMemory(Arc<Budget>);

#[derive(Debug)]
struct Budget {
    sizes: Sizes,
    total: Arc<Semaphore>,
    builders: FairPermits,
    users: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Sizes::default())
    }
}

/// Part of the budget that an answer uses until its data is sent.
#[derive(Debug)]
struct Reservation {
    total: OwnedSemaphorePermit,
    /// Owns the user's budget while an answer uses it.
    _user: OwnedSemaphorePermit,
}

impl Reservation {
    fn new(total: OwnedSemaphorePermit, user: OwnedSemaphorePermit) -> Self {
        let reservation = Self { total, _user: user };
        gauge!("deerflow_answer_bytes").increment(reservation.bytes());
        reservation
    }

    #[expect(clippy::cast_precision_loss, reason = "a gauge needs no exact value")]
    fn bytes(&self) -> f64 {
        (self.total.num_permits() * UNIT) as f64
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        gauge!("deerflow_answer_bytes").decrement(self.bytes());
    }
}

impl Budget {
    fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            total: Arc::new(Semaphore::new(sizes.total / UNIT)),
            builders: FairPermits::new("states", sizes.builders),
            users: Mutex::default(),
        }
    }

    /// Returns the budget of a user.
    fn share(&self, user: &str) -> Arc<Semaphore> {
        let mut users = self.users.lock();
        if let Some(share) = users.get(user).and_then(Weak::upgrade) {
            return share;
        }
        if users.len() >= MAX_USERS {
            users.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(self.sizes.user / UNIT));
        users.insert(user.to_owned(), Arc::downgrade(&share));
        share
    }

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
        let wanted = units(bytes).min(units(self.sizes.user as u64));
        let permits = async {
            let of_user = share.acquire_many_owned(wanted).await.ok()?;
            let of_total = self.total.clone().acquire_many_owned(wanted).await.ok()?;
            Some(Reservation::new(of_total, of_user))
        };
        timeout(BUDGET_TIMEOUT, permits).await.ok().flatten()
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT as u64)).unwrap_or(u32::MAX)
}

/// Reports whether a request may have a large answer, as far as its route shows.
fn may_be_large(method: &Method, route: &str) -> bool {
    LARGE_ROUTES.iter().any(|ending| route.ends_with(ending))
        || (method == Method::GET && route.ends_with(RUN_LIST))
}

/// Lets requests with possibly large answers take turns, and counts large answers until they are
/// read. Answers 503 if the budget is used up.
pub(crate) async fn limit_answer(
    State(AnswerMemory(budget)): State<AnswerMemory>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let takes_turn = route.is_some_and(|route| may_be_large(request.method(), route.as_str()));
    let user = || required_user_id().map_or_else(|_| String::new(), |user| user.to_string());
    let mut share = None;
    let mut turn = None;
    if takes_turn {
        let user = user();
        let own = budget.share(&user);
        turn = budget.turn(&user, &own).await;
        if turn.is_none() {
            return busy();
        }
        share = Some(own);
    }
    let response = next.run(request).await;
    let Some(bytes) = large(response.body()) else {
        return response;
    };
    let share = share.unwrap_or_else(|| budget.share(&user()));
    let reservation = budget.reserve(share, bytes).await;
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
