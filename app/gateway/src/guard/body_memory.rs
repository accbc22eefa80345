//! Limits the memory of large request bodies: they have to fit into a budget before they are read,
//! and until their requests are handled.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use deerflow_domain::accounts::AddressKey;
use harness::runtime::actor_context::required_user_id;
use metrics::{counter, gauge};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::memory_budget::{MemoryBudget, Reservation};
use super::web_client::WebClient;
use crate::error::ApiError;

/// Maximum size of a text that is not counted, in bytes. A connection holds one, and the number of
/// connections is only limited by the file descriptors.
pub(crate) const SMALL_TEXT: usize = 64 << 10;
/// Maximum size of values that is not counted, in bytes. They are in memory while their request is
/// computed, which few requests are at a time.
const SMALL_VALUES: usize = 1 << 20;
/// Time that a client may need for a large body in addition to the time by [`MIN_RATE`].
const GRACE: Duration = Duration::from_secs(5);
/// Minimum rate of a large body while another user waits for its memory, in bytes per second.
const MIN_RATE: usize = 1 << 20;
/// Time for which a request waits for the budget.
const TURN_TIMEOUT: Duration = Duration::from_secs(20);
/// Delay after which a client should repeat a refused request, in seconds.
const RETRY_AFTER: u64 = 5;
/// Part of the budget that is for texts. The values of a text may need three times its size.
const TEXTS: usize = 4;
/// Part of the budget that one user can use.
const USER: usize = 2;

/// Memory of the large bodies of all requests.
///
/// Texts and their values have budgets of their own, so that a request that waits for the memory
/// of its values never holds what another one needs to finish.
#[derive(Debug, Clone)]
pub(crate) struct BodyMemory(Arc<Budgets>);

#[derive(Debug)]
struct Budgets {
    texts: MemoryBudget,
    values: MemoryBudget,
}

impl BodyMemory {
    /// Creates a budget of `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
        let texts = bytes / TEXTS;
        let values = bytes - texts;
        let budget =
            |bytes: usize| MemoryBudget::new("deerflow_request_bytes", bytes, bytes / USER);
        Self(Arc::new(Budgets {
            texts: budget(texts),
            values: budget(values),
        }))
    }

    /// Returns the account of a request, or of a connection that carries several ones.
    pub(crate) fn account(&self, client: Option<&WebClient>) -> RequestMemory {
        let address = client.and_then(|client| client.address);
        RequestMemory {
            memory: self.clone(),
            // Requests without an actor have no user.
            user: required_user_id().unwrap_or_else(|_| {
                address.map_or_else(String::new, |address| AddressKey::of(address).to_string())
            }),
            held: Arc::default(),
        }
    }
}

/// Memory of the body of one request. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct RequestMemory {
    memory: BodyMemory,
    /// User, or address of a client without one.
    user: String,
    held: Arc<Mutex<Vec<Reservation>>>,
}

impl RequestMemory {
    /// Reserves the memory of a text. Waits in turns of the users.
    ///
    /// # Errors
    /// [`ApiError::BodiesBusy`] if the memory is not available in time.
    pub(crate) async fn reserve_text(&self, bytes: usize) -> Result<(), ApiError> {
        self.reserve(&self.memory.0.texts, bytes).await
    }

    /// Reserves the memory of the values of a text, unless they are small.
    ///
    /// # Errors
    /// [`ApiError::BodiesBusy`] if the memory is not available in time.
    pub(crate) async fn reserve_values(&self, bytes: usize) -> Result<(), ApiError> {
        if bytes <= SMALL_VALUES {
            return Ok(());
        }
        self.reserve(&self.memory.0.values, bytes).await
    }

    async fn reserve(&self, budget: &MemoryBudget, bytes: usize) -> Result<(), ApiError> {
        let waiting = Waiting::new();
        let reserved = budget.reserve(budget.share(&self.user), bytes as u64);
        let reserved = timeout(TURN_TIMEOUT, reserved).await.ok().flatten();
        drop(waiting);
        let Some(reserved) = reserved else {
            counter!("deerflow_requests_refused_total").increment(1);
            return Err(ApiError::BodiesBusy {
                retry_after_secs: RETRY_AFTER,
            });
        };
        self.held.lock().push(reserved);
        Ok(())
    }

    /// Releases what was reserved for a text beyond its size.
    pub(crate) fn shrink(&self, bytes: usize) {
        if let Some(reservation) = self.held.lock().last_mut() {
            reservation.shrink(bytes as u64);
        }
    }

    /// Reports whether a body arrives so slowly that its memory is for the users who wait. `since`
    /// is the time of its reservation.
    pub(crate) fn is_too_slow(&self, since: Instant, received: usize) -> bool {
        let seconds = u32::try_from(received / MIN_RATE).unwrap_or(u32::MAX);
        let permitted = GRACE + Duration::from_secs(1) * seconds;
        since.elapsed() > permitted && self.memory.0.texts.is_contended()
    }

    /// Releases the memory.
    pub(crate) fn release(&self) {
        let held = std::mem::take(&mut *self.held.lock());
        drop(held);
    }
}

/// A request that waits for memory, in the metrics.
struct Waiting(());

impl Waiting {
    fn new() -> Self {
        gauge!("deerflow_requests_waiting_for_memory").increment(1.0);
        Self(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        gauge!("deerflow_requests_waiting_for_memory").decrement(1.0);
    }
}

/// Gives a request its account of the memory of bodies, until it is handled.
pub(crate) async fn limit_body<F: Future<Output = Response>>(
    memory: &BodyMemory,
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let account = memory.account(request.extensions().get::<WebClient>());
    request.extensions_mut().insert(account.clone());
    let response = next(request).await;
    account.release();
    response
}

#[cfg(test)]
#[path = "body_memory_tests.rs"]
mod tests;
