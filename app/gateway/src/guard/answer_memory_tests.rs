//! Tests of the budget of answers: limits per user and of all, turns, and release.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::get;
use futures_util::future::join_all;
use harness::runtime::actor_context::{ActorContext, scope};
use tower::ServiceExt;

use super::*;

const TOTAL: usize = 1 << 20;

/// Router with answers of 400 KiB, of 1 KiB, and of 400 KiB from a state.
fn router(building: &Arc<AtomicUsize>) -> Router {
    let building = building.clone();
    let state = async move || {
        let number = building.fetch_add(1, Ordering::SeqCst) + 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
        building.fetch_sub(1, Ordering::SeqCst);
        assert!(number <= builders(), "{number}");
        vec![b'x'; 100 << 10]
    };
    let memory = AnswerMemory::new(TOTAL);
    let limit = from_fn_with_state(memory, async |State(memory), request, next: Next| {
        limit_answer(&memory, request, |request| next.run(request)).await
    });
    Router::new()
        .route("/large", get(async || vec![b'x'; 400 << 10]))
        .route("/huge", get(async || vec![b'x'; 4 << 20]))
        .route("/small", get(async || vec![b'x'; 1 << 10]))
        .route("/threads/{thread_id}/state", get(state))
        .layer(limit)
}

async fn request(router: &Router, user: &str, path: &str) -> Response {
    let request = Request::builder()
        .uri(path)
        .body(Body::empty())
        .expect("a request");
    let answer = scope(ActorContext::user(user), router.clone().oneshot(request));
    answer.await.expect("an answer")
}

fn is_refused(response: &Response) -> bool {
    let error = response.extensions().get::<ApiError>();
    matches!(error, Some(ApiError::Busy { .. }))
}

#[tokio::test(start_paused = true)]
async fn unread_answers_of_a_user_are_limited() {
    let router = router(&Arc::default());
    let unread = request(&router, "a", "/large").await;
    assert_eq!(unread.status(), StatusCode::OK);
    assert!(is_refused(&request(&router, "a", "/large").await));
    assert!(!is_refused(&request(&router, "a", "/small").await));
    assert!(!is_refused(&request(&router, "b", "/large").await));
    drop(unread);
    assert!(!is_refused(&request(&router, "a", "/large").await));
}

#[tokio::test(start_paused = true)]
async fn data_is_counted_until_it_is_sent() {
    let router = router(&Arc::default());
    let mut body = request(&router, "a", "/large").await.into_body();
    let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
    let frame = frame.expect("a frame").expect("data");
    drop(body);
    assert!(is_refused(&request(&router, "a", "/large").await));
    drop(frame);
    assert!(!is_refused(&request(&router, "a", "/large").await));
}

#[tokio::test(start_paused = true)]
async fn unread_answers_of_all_users_are_limited() {
    let router = router(&Arc::default());
    let unread = [
        request(&router, "a", "/large").await,
        request(&router, "b", "/large").await,
    ];
    assert!(!unread.iter().any(is_refused));
    assert!(is_refused(&request(&router, "c", "/large").await));
    drop(unread);
    assert!(!is_refused(&request(&router, "c", "/large").await));
}

#[tokio::test(start_paused = true)]
async fn answer_above_the_share_of_a_user_is_sent_alone() {
    let router = router(&Arc::default());
    let unread = request(&router, "a", "/huge").await;
    assert_eq!(unread.body().size_hint().exact(), Some(4 << 20));
    assert!(is_refused(&request(&router, "a", "/large").await));
    let body = axum::body::to_bytes(unread.into_body(), usize::MAX).await;
    assert_eq!(body.expect("a body").len(), 4 << 20);
    assert!(!is_refused(&request(&router, "a", "/huge").await));
}

#[tokio::test(start_paused = true)]
async fn answers_from_states_take_turns() {
    let building = Arc::default();
    let router = router(&building);
    let requests = (0..20).map(async |n: usize| {
        let response = request(&router, &format!("u{}", n % 7), "/threads/t/state").await;
        assert_eq!(response.status(), StatusCode::OK);
    });
    join_all(requests).await;
    assert_eq!(building.load(Ordering::SeqCst), 0);
}

#[test]
fn routes_with_large_answers_are_known() {
    let known = [
        "/api/threads/{thread_id}/state",
        "/threads/{thread_id}/history",
        "/threads/{thread_id}",
        "/api/langgraph/threads/search",
        "/threads/{thread_id}/runs",
        "/threads/{thread_id}/runs/{run_id}",
        "/api/threads/{thread_id}/runs/{run_id}/join",
        "/store/items/search",
    ];
    assert!(known.iter().all(|route| may_be_large(&Method::GET, route)));
    let stream = "/threads/{thread_id}/runs/{run_id}/stream";
    assert!(!may_be_large(&Method::GET, stream));
    assert!(!may_be_large(&Method::POST, "/threads/{thread_id}/runs"));
}

#[tokio::test(start_paused = true)]
async fn request_that_is_not_received_takes_no_turn() {
    let router = router(&Arc::default());
    let slow = (0..builders()).map(|_| {
        let request = Request::get("/threads/t/state");
        let request = request.body(Body::from_stream(futures_util::stream::pending::<
            Result<Bytes, axum::Error>,
        >()));
        Box::pin(router.clone().oneshot(request.expect("a request")))
    });
    let mut slow: Vec<_> = slow.collect();
    for request in &mut slow {
        assert!(futures_util::FutureExt::now_or_never(request).is_none());
    }
    let since = tokio::time::Instant::now();
    assert!(!is_refused(
        &request(&router, "a", "/threads/t/state").await
    ));
    assert!(since.elapsed() < TURN_TIMEOUT);
}
