//! Delays of the retry policy, and the driver under a paused clock.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use futures_util::TryStreamExt;
use serde_json::Map;

use super::*;
use crate::concurrency_limit::ConcurrencyLimited;
use crate::fallback::WithFallbacks;
use crate::{BreakerPolicy, ModelEntry, ModelInfo};
use deerflow_core::clock::SystemClock;
use deerflow_core::messages::MessageChunk;

fn error(kind: ModelErrorKind, retry_after: Option<u64>) -> ModelError {
    let retry_after = retry_after.map(Duration::from_millis);
    ModelError {
        model: "m".to_owned(),
        kind,
        message: "no".to_owned(),
        status: None,
        retry_after,
    }
}

#[test]
fn next_delay_matches_table() {
    use ModelErrorKind::*;
    let policy = RetryPolicy::default();
    // attempt, previous delay, error, jitter, expected (all in ms)
    let table = [
        (1, None, error(Transient, None), 0.0, Some(1000)),
        (1, None, error(Transient, None), 1.0, Some(3000)),
        (2, Some(2000), error(Busy, None), 1.0, Some(6000)),
        (2, Some(8000), error(Busy, None), 1.0, Some(8000)),
        (3, Some(1000), error(Busy, None), 0.5, None),
        (1, None, error(Burst, None), 0.0, Some(5000)),
        (1, None, error(Burst, None), 1.0, Some(8000)),
        (2, Some(5000), error(Burst, None), 0.0, None),
        (1, None, error(Stalled, None), 0.0, Some(1000)),
        (2, Some(1000), error(Stalled, None), 0.0, None),
        (1, None, error(Transient, Some(250)), 0.9, Some(250)),
        (1, None, error(Transient, Some(61_000)), 0.9, None),
        (1, None, error(Quota, Some(1)), 0.0, None),
        (1, None, error(Auth, None), 0.0, None),
        (1, None, error(BadRequest, None), 0.0, None),
        (1, None, error(Config, None), 0.0, None),
        (1, None, error(Busy, None), f64::INFINITY, Some(3000)),
    ];
    for (attempt, previous, error, jitter, expected) in table {
        let wait = policy.next_delay(attempt, previous.map(Duration::from_millis), &error, jitter);
        assert_eq!(
            wait.map(|wait| wait.as_millis()),
            expected,
            "{attempt} {:?} {jitter}",
            error.kind
        );
    }
}

/// Model that fails the first calls, or in the middle of the text.
#[derive(Debug)]
struct Flaky {
    info: ModelInfo,
    calls: AtomicU32,
    failing: u32,
    kind: ModelErrorKind,
    after_text: bool,
}

impl Flaky {
    fn new(failing: u32, kind: ModelErrorKind, after_text: bool) -> Self {
        Self::named("m", failing, kind, after_text)
    }

    fn named(name: &str, failing: u32, kind: ModelErrorKind, after_text: bool) -> Self {
        let info = ModelInfo {
            name: name.to_owned(),
            model: "m".to_owned(),
            provider: "t".to_owned(),
            supports_vision: false,
        };
        Self {
            info,
            calls: AtomicU32::new(0),
            failing,
            kind,
            after_text,
        }
    }
}

#[async_trait]
impl ChatModel for Flaky {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let fails = self.calls.fetch_add(1, Ordering::SeqCst) < self.failing;
        let text = MessageChunk {
            content: "hi".to_owned(),
            ..MessageChunk::empty(request.message_id)
        };
        let items = match (fails, self.after_text) {
            (true, false) => return Err(error(self.kind, None)),
            (true, true) => vec![Ok(text), Err(error(self.kind, None))],
            (false, _) => vec![Ok(text)],
        };
        Ok(Box::pin(stream::iter(items)))
    }
}

/// Requires a future that can move between threads, as runs do.
fn movable<F: Future + Send>(future: F) -> F {
    future
}

async fn run(
    model: &dyn ChatModel,
    breaker: Option<Arc<CircuitBreaker>>,
) -> (Result<String, ModelError>, Vec<RetryNotice>) {
    let mut notices = Vec::new();
    let outcome = match begin(model, breaker, &mut notices).await {
        Ok(answering) => {
            answering
                .chunks
                .map_ok(|chunk| chunk.content)
                .try_collect()
                .await
        }
        Err(error) => Err(error),
    };
    (outcome, notices)
}

async fn begin(
    model: &dyn ChatModel,
    breaker: Option<Arc<CircuitBreaker>>,
    notices: &mut Vec<RetryNotice>,
) -> Result<Answering, ModelError> {
    let request = ModelRequest {
        message_id: "m1".to_owned(),
        system: None,
        messages: vec![],
        tools: Arc::default(),
        thinking: false,
        reasoning_effort: None,
        overrides: Map::new(),
    };
    let retry = Retry {
        policy: RetryPolicy::default(),
        breaker,
        clock: &SystemClock,
        jitter: &mut || 0.5,
        on_retry: &mut |notice| notices.push(notice.clone()),
    };
    movable(stream_with_retry(model, request, retry)).await
}

#[tokio::test(start_paused = true)]
async fn recovered_call_is_answered_and_delays_are_reported() {
    let model = Flaky::new(2, ModelErrorKind::Transient, false);
    let start = tokio::time::Instant::now();
    let (outcome, notices) = run(&model, None).await;
    assert_eq!(outcome.as_deref(), Ok("hi"));
    assert_eq!(start.elapsed().as_millis(), 2000 + 3500);
    let event = notices[1].event();
    assert_eq!(
        (&event["type"], &event["attempt"], &event["max_attempts"]),
        (&"llm_retry".into(), &2.into(), &3.into())
    );
    assert_eq!(
        (&event["wait_ms"], &event["reason"]),
        (&3500.into(), &"transient".into())
    );
}

#[tokio::test(start_paused = true)]
async fn attempts_are_bounded_and_rejections_final() {
    for (kind, calls) in [
        (ModelErrorKind::Busy, 3),
        (ModelErrorKind::Stalled, 2),
        (ModelErrorKind::Auth, 1),
    ] {
        let model = Flaky::new(99, kind, false);
        let (outcome, notices) = run(&model, None).await;
        assert_eq!(outcome.unwrap_err().kind, kind);
        assert_eq!(
            (model.calls.load(Ordering::SeqCst), notices.len() as u32),
            (calls, calls - 1)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn error_after_first_chunk_is_not_retried() {
    let model = Flaky::new(1, ModelErrorKind::Transient, true);
    let (outcome, notices) = run(&model, None).await;
    assert_eq!(outcome.unwrap_err().kind, ModelErrorKind::Transient);
    assert_eq!((model.calls.load(Ordering::SeqCst), notices.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn open_circuit_rejects_and_rejections_do_not_open_it() {
    let breaker = Arc::new(CircuitBreaker::new(BreakerPolicy {
        failure_threshold: 1,
        ..BreakerPolicy::default()
    }));
    for harmless in [ModelErrorKind::Auth, ModelErrorKind::Burst] {
        run(&Flaky::new(9, harmless, false), Some(Arc::clone(&breaker)))
            .await
            .0
            .unwrap_err();
        assert_eq!(
            breaker.circuit(),
            crate::Circuit::Closed { failures: 0 },
            "{harmless:?}"
        );
    }
    run(
        &Flaky::new(9, ModelErrorKind::Transient, false),
        Some(Arc::clone(&breaker)),
    )
    .await
    .0
    .unwrap_err();
    let model = Flaky::new(0, ModelErrorKind::Transient, false);
    let refused = run(&model, Some(breaker)).await.0.unwrap_err();
    assert_eq!(
        (refused.kind, model.calls.load(Ordering::SeqCst)),
        (ModelErrorKind::Busy, 0)
    );
    assert!(refused.message.contains("circuit breaker is open"));
}

#[tokio::test(start_paused = true)]
async fn timed_out_calls_count_once_and_open_the_circuit() {
    let breaker = Arc::new(CircuitBreaker::new(BreakerPolicy {
        failure_threshold: 2,
        ..BreakerPolicy::default()
    }));
    let model = Flaky::new(99, ModelErrorKind::Stalled, false);
    run(&model, Some(Arc::clone(&breaker))).await.0.unwrap_err();
    assert_eq!(
        (model.calls.load(Ordering::SeqCst), breaker.circuit()),
        (2, crate::Circuit::Closed { failures: 1 })
    );
    run(&model, Some(Arc::clone(&breaker))).await.0.unwrap_err();
    assert!(matches!(breaker.circuit(), crate::Circuit::Open { .. }));
}

#[tokio::test(start_paused = true)]
async fn entry_overrides_max_attempts() {
    for (retries, calls) in [(0, 1), (4, 5)] {
        let flaky = Arc::new(Flaky::new(99, ModelErrorKind::Transient, false));
        let entry = ModelEntry {
            max_retries: Some(retries),
            ..ModelEntry::new("m", "t", "m")
        };
        let paced = WithFallbacks {
            model: ConcurrencyLimited::wrap(&entry, flaky.clone()),
            fallbacks: vec![],
        };
        run(&paced, None).await.0.unwrap_err();
        assert_eq!(flaky.calls.load(Ordering::SeqCst), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn fallback_answers_after_final_failure() {
    let behind = |kind, others: Vec<Flaky>| {
        let fallbacks = others
            .into_iter()
            .map(|other| Arc::new(other) as Arc<dyn ChatModel>)
            .collect();
        WithFallbacks {
            model: Arc::new(Flaky::new(99, kind, false)),
            fallbacks,
        }
    };
    let unreachable = || Flaky::new(99, ModelErrorKind::Config, false);
    let well = || Flaky::new(1, ModelErrorKind::Transient, false);
    let answered = behind(ModelErrorKind::Quota, vec![unreachable(), well()]);
    assert_eq!(run(&answered, None).await.0.as_deref(), Ok("hi"));
    let other = Flaky::named("other", 0, ModelErrorKind::Transient, false);
    let answering = begin(
        &behind(ModelErrorKind::Quota, vec![unreachable(), other]),
        None,
        &mut vec![],
    )
    .await
    .unwrap();
    assert_eq!(answering.model, "other", "a fallback has its own circuit");
    let all_failed = behind(ModelErrorKind::Quota, vec![unreachable()]);
    assert_eq!(
        run(&all_failed, None).await.0.unwrap_err().kind,
        ModelErrorKind::Quota
    );
    let refused = behind(ModelErrorKind::BadRequest, vec![well()]);
    assert_eq!(
        run(&refused, None).await.0.unwrap_err().kind,
        ModelErrorKind::BadRequest
    );

    let breaker = Arc::new(CircuitBreaker::new(BreakerPolicy {
        failure_threshold: 1,
        ..BreakerPolicy::default()
    }));
    run(
        &Flaky::new(9, ModelErrorKind::Transient, false),
        Some(Arc::clone(&breaker)),
    )
    .await
    .0
    .unwrap_err();
    let rested = behind(ModelErrorKind::Transient, vec![well()]);
    assert_eq!(
        run(&rested, Some(breaker)).await.0.as_deref(),
        Ok("hi"),
        "an open circuit leads to a fallback"
    );
}
