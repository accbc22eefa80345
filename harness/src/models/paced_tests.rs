//! Places of a model under a paused clock.

use futures_util::FutureExt;
use serde_json::Map;

use super::*;
use crate::messages::MessageChunk;

/// Says one word and then waits for ever, or ends.
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

fn model(places: usize, ends: bool) -> Arc<dyn ChatModel> {
    let info = ModelInfo {
        name: "m".to_owned(),
        model: "m".to_owned(),
        provider: "t".to_owned(),
        supports_vision: false,
    };
    let entry = ModelEntry {
        max_concurrent_calls: Some(places),
        max_retries: Some(0),
        ..ModelEntry::new("m", "t", "m")
    };
    Paced::by(&entry, Arc::new(Slow { info, ends }))
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
async fn a_call_waits_until_another_has_ended_or_was_given_up() {
    let model = model(1, false);
    let first = model.stream(request()).await.unwrap();
    let mut given_up = model.stream(request());
    assert!(
        (&mut given_up).now_or_never().is_none(),
        "there is one place"
    );
    let mut second = model.stream(request());
    assert!((&mut second).now_or_never().is_none());
    drop(given_up);
    drop(first);
    assert!(
        (&mut second)
            .now_or_never()
            .is_some_and(|answer| answer.is_ok()),
        "who left is not waited for"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_has_ended_holds_no_place() {
    let model = model(1, true);
    let mut first = model.stream(request()).await.unwrap();
    while first.next().await.is_some() {}
    assert!(model.stream(request()).now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever() {
    let model = model(1, false);
    let _held = model.stream(request()).await.unwrap();
    let Err(error) = model.stream(request()).await else {
        panic!("there is no place")
    };
    assert_eq!(
        (error.kind, error.model.as_str()),
        (ModelErrorKind::Burst, "m")
    );
    assert!(error.message.contains("max_concurrent_calls"));
}

#[test]
fn an_entry_that_says_nothing_leaves_its_model_as_it_is() {
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
        &Paced::by(&ModelEntry::new("m", "t", "m"), plain.clone())
    ));
}
