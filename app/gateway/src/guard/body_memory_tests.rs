//! Tests of the memory of bodies: it is held until a request is handled, and released then.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::post;
use futures_util::FutureExt;
use harness::runtime::actor_context::{ActorContext, scope};
use tokio::sync::watch;
use tower::ServiceExt;

use super::*;
use crate::guard::received_body::{BODY_LIMIT, receive};

const MIB: usize = 1 << 20;

/// Router whose handlers read the body, and end when `may_end` is true.
fn router(may_end: &watch::Receiver<bool>) -> Router {
    let may_end = may_end.clone();
    let handler = async move |request: Request| -> Result<Bytes, ApiError> {
        let body = receive(request, BODY_LIMIT).await?;
        let mut may_end = may_end.clone();
        may_end.wait_for(|end| *end).await.expect("a sender");
        Ok(body)
    };
    let memory = BodyMemory::new(16 * MIB);
    let limit = from_fn_with_state(memory, async |State(memory), request, next: Next| {
        limit_body(&memory, request, |request| next.run(request)).await
    });
    Router::new().route("/", post(handler)).layer(limit)
}

async fn send(router: &Router, user: &str, bytes: usize) -> Response {
    let request = Request::post("/").body(Body::from(vec![0; bytes]));
    let request = request.expect("a request");
    let answer = scope(ActorContext::user(user), router.clone().oneshot(request));
    answer.await.expect("an answer")
}

#[tokio::test(start_paused = true)]
async fn memory_is_held_until_the_request_is_handled() {
    let (end, may_end) = watch::channel(false);
    let router = router(&may_end);
    let mut first = Box::pin(send(&router, "a", 2 * MIB));
    assert!((&mut first).now_or_never().is_none());
    // The handler of the first request still has its body.
    let refused = send(&router, "a", 2 * MIB).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    end.send_replace(true);
    let unread = first.await;
    assert_eq!(unread.status(), StatusCode::OK);
    let second = send(&router, "a", 2 * MIB).await;
    assert_eq!(second.status(), StatusCode::OK);
    drop(unread);
}

#[tokio::test(start_paused = true)]
async fn dropped_request_releases_its_memory() {
    let (end, may_end) = watch::channel(false);
    let router = router(&may_end);
    let mut dropped = Box::pin(send(&router, "a", 2 * MIB));
    assert!((&mut dropped).now_or_never().is_none());
    drop(dropped);
    end.send_replace(true);
    assert_eq!(send(&router, "a", 2 * MIB).await.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn flood_of_one_user_does_not_refuse_another() {
    let (end, may_end) = watch::channel(false);
    let router = router(&may_end);
    let mut flood: Vec<_> = (0..20)
        .map(|_| Box::pin(send(&router, "a", 2 * MIB)))
        .collect();
    for request in &mut flood {
        assert!(request.now_or_never().is_none());
    }
    let mut other = Box::pin(send(&router, "b", 2 * MIB));
    assert!((&mut other).now_or_never().is_none());
    end.send_replace(true);
    let answer = other.now_or_never().expect("memory of its own");
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn values_have_a_budget_of_their_own() {
    let memory = BodyMemory::new(16 * MIB);
    let account = async || scope(ActorContext::user("a"), async { memory.account(None) }).await;
    let (first, second) = (account().await, account().await);
    first.reserve_text(2 * MIB).await.expect("free");
    first.reserve_values(6 * MIB).await.expect("free");
    second
        .reserve_values(SMALL_VALUES)
        .await
        .expect("not counted");
    let busy = ApiError::BodiesBusy {
        retry_after_secs: RETRY_AFTER,
    };
    assert_eq!(second.reserve_values(SMALL_VALUES + 1).await, Err(busy));
    first.release();
    second
        .reserve_values(SMALL_VALUES + 1)
        .await
        .expect("released");
}

#[tokio::test]
async fn request_without_user_is_counted_by_address() {
    let memory = BodyMemory::new(16 * MIB);
    let client = |address: &str| {
        let peer = Some(crate::guard::web_client::Peer(
            address.parse().expect("an address"),
        ));
        WebClient::of(peer, None, &Default::default(), &Default::default())
    };
    assert_eq!(memory.account(Some(&client("192.0.2.1"))).user, "192.0.2.1");
    let network = memory.account(Some(&client("2001:db8::1"))).user;
    assert_eq!(network, "2001:db8:0:0::/64");
}
