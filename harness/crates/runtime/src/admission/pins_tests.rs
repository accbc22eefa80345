//! Tests of the versions that runs execute.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::agent::*;
use crate::checkpoint::PendingTask;
use crate::in_memory::runtime_in_memory;
use crate::runs::*;
use crate::test_support::*;
use deerflow_core::messages::Message;
use deerflow_core::state::StateUpdate;

/// Agent of one version. Its first step says its version; then it asks, or hangs as assistant
/// `hangs`. When it continues, it says its version again and ends.
#[derive(Debug)]
struct VersionAgent {
    version: u64,
    hangs: bool,
}

impl Agent for VersionAgent {
    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
        let (version, hangs) = (self.version, self.hangs);
        let driver = async move {
            let begins = input.start == AgentStart::Fresh;
            let question = json!({ "value": "which?", "id": "q1" });
            let id = Some(ctx.ids.message_id());
            let answer = Message::ai(format!("version {version}")).with(|body| body.id = id);
            let update = StateUpdate::messages([answer]);
            let mut state = input.state;
            state.apply(update.clone(), &*ctx.ids)?;
            let mut task = PendingTask::new("task-1", "node");
            task.interrupts.extend((!hangs).then(|| question.clone()));
            ctx.sink.emit(AgentEvent::Step(StepEvent {
                node: "node".to_owned(),
                update: Some(update),
                state: Arc::new(state),
                next: if begins { vec![task] } else { vec![] },
                machine: json!("machine"),
                steps: 1,
                checkpoint: true,
            }));
            if begins && hangs {
                std::future::pending::<()>().await;
            }
            let kind = if begins {
                StopKind::Question(vec![question])
            } else {
                StopKind::Completed
            };
            Ok(AgentOutcome {
                kind,
                stop_reason: None,
            })
        };
        AgentStream::new(events, driver.boxed())
    }

    fn nodes(&self) -> Vec<String> {
        vec!["node".to_owned()]
    }
}

/// Answer of the resolver to [`AgentResolver::pin`].
#[derive(Debug, Clone)]
enum Current {
    Version(u64),
    Deleted,
    Invalid(Vec<Value>),
}

/// Assistants whose current version a test sets.
#[derive(Debug)]
struct Versioned(Mutex<Current>);

impl Versioned {
    fn at(version: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Current::Version(version))))
    }

    fn set(&self, current: Current) {
        *self.0.lock() = current;
    }
}

#[async_trait]
impl AgentResolver for Versioned {
    async fn resolve(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let pin = self.pin(assistant, options).await?;
        self.resolve_pinned(assistant, options, pin.as_ref()).await
    }

    async fn pin(
        &self,
        assistant: &str,
        _options: &Map<String, Value>,
    ) -> Result<Option<AssistantPin>, UnknownAssistant> {
        let name = assistant.to_owned();
        match self.0.lock().clone() {
            Current::Version(version) => Ok(Some(AssistantPin {
                version,
                content_hash: format!("hash {version}"),
            })),
            Current::Deleted => Err(UnknownAssistant::NotFound(name)),
            Current::Invalid(findings) => Err(UnknownAssistant::Invalid { name, findings }),
        }
    }

    async fn resolve_pinned(
        &self,
        assistant: &str,
        _options: &Map<String, Value>,
        pin: Option<&AssistantPin>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let pin = pin.expect("every run of this resolver has a pin");
        assert_eq!(pin.content_hash, format!("hash {}", pin.version));
        Ok(Arc::new(VersionAgent {
            version: pin.version,
            hangs: assistant == "hangs",
        }))
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        vec![]
    }
}

fn facade_of(agents: &Arc<Versioned>) -> RunsFacade {
    over(runtime_in_memory(agents.clone()).unwrap())
}

/// Runs to the end, and returns the texts of the thread.
async fn ended(facade: &RunsFacade, request: RunRequest) -> Vec<String> {
    let run = facade.create_background(request).await.unwrap();
    texts(&facade.join_wait(None, &run.run_id).await.unwrap())
}

#[tokio::test]
async fn takeover_executes_the_accepted_version() {
    as_user(async {
        let agents = Versioned::at(1);
        let before = facade_of(&agents);
        let run = create_stuck(&before, spec("hangs")).await;
        agents.set(Current::Version(2));
        let after = after(&before);
        assert_eq!(lifecycle(&after).recover().await.unwrap(), 1);
        let outcome = after.join_wait(None, &run.run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "version 1", "version 1"]);
    })
    .await;
}

#[tokio::test]
async fn resume_executes_the_version_of_the_interrupted_run() {
    as_user(async {
        let agents = Versioned::at(1);
        let facade = facade_of(&agents);
        assert_eq!(ended(&facade, spec("asks")).await, ["hello", "version 1"]);
        agents.set(Current::Version(2));
        let answer = || RunRequest::answer("asks", thread(), json!("a"));
        assert_eq!(
            ended(&facade, answer()).await,
            ["hello", "version 1", "version 1"]
        );
        // A new run of the thread takes the current version.
        let texts = ended(&facade, spec("asks")).await;
        assert_eq!(texts.last().map(String::as_str), Some("version 2"));
        // The interrupted run can be answered after the assistant was deleted.
        agents.set(Current::Deleted);
        let texts = ended(&facade, answer()).await;
        assert_eq!(texts.last().map(String::as_str), Some("version 2"));
        let refused = facade.create_background(spec("asks")).await.unwrap_err();
        assert!(
            matches!(refused, RunError::Assistant(UnknownAssistant::NotFound(_))),
            "{refused}"
        );
    })
    .await;
}

#[tokio::test]
async fn pin_of_another_assistant_is_not_continued() {
    as_user(async {
        let agents = Versioned::at(1);
        let facade = facade_of(&agents);
        ended(&facade, spec("asks")).await;
        agents.set(Current::Version(2));
        let answer = RunRequest::answer("other", thread(), json!("a"));
        let texts = ended(&facade, answer).await;
        assert_eq!(texts.last().map(String::as_str), Some("version 2"));
    })
    .await;
}

#[tokio::test]
async fn metadata_of_a_request_cannot_choose_the_version() {
    as_user(async {
        let agents = Versioned::at(2);
        let facade = facade_of(&agents);
        let mut request = spec("asks");
        let forged = json!({ "assistant": "asks", "version": 1, "content_hash": "hash 1" });
        request
            .metadata
            .insert(AssistantPin::METADATA_KEY.to_owned(), forged);
        let run = facade.create_background(request).await.unwrap();
        assert!(run.metadata.is_empty(), "{:?}", run.metadata);
        facade.join_wait(None, &run.run_id).await.unwrap();
        let answer = RunRequest::answer("asks", thread(), json!("a"));
        let texts = ended(&facade, answer).await;
        assert_eq!(texts.last().map(String::as_str), Some("version 2"));
    })
    .await;
}

#[tokio::test]
async fn invalid_assistant_is_refused_before_the_run_is_stored() {
    as_user(async {
        let agents = Versioned::at(1);
        let facade = facade_of(&agents);
        let findings = vec![json!({ "code": "a" }), json!({ "code": "b" })];
        agents.set(Current::Invalid(findings.clone()));
        let refused = facade.create_background(spec("asks")).await.unwrap_err();
        let RunError::Assistant(UnknownAssistant::Invalid { findings: all, .. }) = refused else {
            panic!("{refused}")
        };
        assert_eq!(all, findings);
        let runs = facade.list_runs(&thread(), &RunListQuery::default()).await;
        assert_eq!(runs.unwrap(), []);
    })
    .await;
}

#[test]
fn stored_request_without_pin_has_no_field() {
    let mut stored = crate::testkit::stored_request("r1", "t1");
    let bytes = serde_json::to_value(&stored).unwrap();
    assert_eq!(bytes.get("pin"), None);
    stored.pin = Some(AssistantPin {
        version: 3,
        content_hash: "h".to_owned(),
    });
    let bytes = serde_json::to_value(&stored).unwrap();
    assert_eq!(bytes["pin"], json!({ "version": 3, "content_hash": "h" }));
    let read: crate::ports::StoredRunRequest = serde_json::from_value(bytes).unwrap();
    assert_eq!(read.pin, stored.pin);
}
