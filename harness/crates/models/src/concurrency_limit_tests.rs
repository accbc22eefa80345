//! Permits of a model under a paused clock.

use futures_util::FutureExt;
use serde_json::Map;

use super::*;
use deerflow_core::actor_context::{ActorContext, scope};
use deerflow_core::messages::MessageChunk;

/// Sends one word and then either ends or waits forever.
#[derive(Debug)]
struct Slow {
    info: ModelInfo,
    ends: bool,
}

#[async_trait]
impl ChatModel for Slow {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let first = stream::iter([Ok(MessageChunk::empty(request.message_id))]);
        Ok(if self.ends {
            Box::pin(first)
        } else {
            Box::pin(first.chain(stream::pending()))
        })
    }
}

fn model(permits: usize, ends: bool) -> Arc<dyn ChatModel> {
    let info = ModelInfo {
        name: "m".to_owned(),
        model: "m".to_owned(),
        provider: "t".to_owned(),
        supports_vision: false,
    };
    let entry = ModelEntry {
        max_concurrent_calls: Some(permits),
        max_retries: Some(0),
        ..ModelEntry::new("m", "t", "m")
    };
    ConcurrencyLimited::wrap(&entry, Arc::new(Slow { info, ends }))
}

fn request() -> ModelRequest {
    ModelRequest {
        message_id: "m1".to_owned(),
        system: None,
        messages: vec![],
        tools: Arc::from([]),
        thinking: false,
        reasoning_effort: None,
        overrides: Map::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn call_waits_until_another_ends_or_is_dropped() {
    let model = model(1, false);
    let first = model.stream(request()).await.unwrap();
    let mut abandoned = model.stream(request());
    assert!(
        (&mut abandoned).now_or_never().is_none(),
        "there is one permit"
    );
    let mut second = model.stream(request());
    assert!((&mut second).now_or_never().is_none());
    drop(abandoned);
    drop(first);
    assert!(
        (&mut second)
            .now_or_never()
            .is_some_and(|answer| answer.is_ok()),
        "a dropped call is not in the queue"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_user_do_not_delay_those_of_another() {
    let model = model(1, false);
    let call = |user| scope(ActorContext::user(user), model.stream(request()));
    let first = call("ann").await.unwrap();
    let mut flood: Vec<_> = (0..40).map(|_| Box::pin(call("ann"))).collect();
    for waiting in &mut flood {
        assert!(waiting.now_or_never().is_none());
    }
    let mut other = Box::pin(call("bob"));
    assert!((&mut other).now_or_never().is_none());
    drop(first);
    let second = (&mut flood[0]).now_or_never();
    assert!(
        second.is_some_and(|answer| answer.is_ok()),
        "ann waited first"
    );
    assert!(
        (&mut other).now_or_never().is_some(),
        "then it is bob's turn"
    );
}

#[tokio::test(start_paused = true)]
async fn ended_answer_releases_its_permit() {
    let model = model(1, true);
    let mut first = model.stream(request()).await.unwrap();
    while first.next().await.is_some() {}
    assert!(model.stream(request()).now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_permit_times_out() {
    let model = model(1, false);
    let _permit = model.stream(request()).await.unwrap();
    let Err(error) = model.stream(request()).await else {
        panic!("there is no permit")
    };
    assert_eq!(
        (error.kind, error.model.as_str()),
        (ModelErrorKind::Burst, "m")
    );
    assert!(error.message.contains("max_concurrent_calls"));
}

#[test]
fn entry_without_limits_is_not_wrapped() {
    assert_eq!(model(0, true).max_attempts(), Some(1));
    let info = ModelInfo {
        name: "m".to_owned(),
        model: "m".to_owned(),
        provider: "t".to_owned(),
        supports_vision: false,
    };
    let plain: Arc<dyn ChatModel> = Arc::new(Slow { info, ends: true });
    assert!(Arc::ptr_eq(
        &plain,
        &ConcurrencyLimited::wrap(&ModelEntry::new("m", "t", "m"), plain.clone())
    ));
}
