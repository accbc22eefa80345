//! Memory worker: from a conversation to a stored memory.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::ids::{SeededIds, ThreadId};
use crate::messages::{Message, kwargs};
use crate::models::{AUXILIARY_USAGE, AuxiliaryModels, ModelCatalog, ModelEntry, RetryPolicy};
use crate::runtime::actor_context::Owner;
use crate::runtime::in_memory::InMemoryStores;
use crate::runtime::runs::store::{EventQuery, RunEventStore};
use crate::state::{StateUpdate, ThreadState};
use crate::testkit::{at, checkpoint_write};
use crate::user_memory::{InMemoryUserMemoryStore, MemoryScope};

struct Rig {
    worker: MemoryWorker,
    memories: UserMemories,
    learner: Learner,
    clock: ManualClock,
    checkpoints: Arc<InMemoryStores>,
}

impl Rig {
    fn new() -> Self {
        let clock = ManualClock::starting_at(at(0));
        let checkpoints = Arc::new(InMemoryStores::new());
        let memories = UserMemories::new(
            Arc::new(InMemoryUserMemoryStore::default()),
            Arc::new(clock.clone()),
            Arc::new(SeededIds::new(1)),
        );
        let catalog = ModelCatalog::new(
            [ModelEntry::new("a", "scripted", "s")],
            Arc::new(clock.clone()),
        );
        let retry = RetryPolicy {
            max_attempts: 1,
            ..RetryPolicy::default()
        };
        let learner = Learner {
            models: AuxiliaryModels {
                catalog: Arc::new(catalog),
                breakers: Arc::default(),
                retry,
            },
            model: None,
        };
        let usage_recorder = UsageRecorder {
            events: checkpoints.clone(),
            ledger: checkpoints.clone(),
            clock: Arc::new(clock.clone()),
            ids: Arc::new(SeededIds::new(2)),
        };
        Self {
            worker: MemoryWorker::new(memories.clone(), checkpoints.clone(), usage_recorder),
            memories,
            learner,
            clock,
            checkpoints,
        }
    }

    /// Stores a user message on a thread; the scripted model follows it when it is called with the
    /// conversation.
    async fn add_user_message(&self, number: u64, text: &str) {
        let mut state = ThreadState::default();
        let message = Message::human(text).with(|body| {
            body.id = Some(format!("m{number}"));
            body.additional_kwargs.insert(
                kwargs::TIMESTAMP.to_owned(),
                self.clock.now().to_rfc3339().into(),
            );
        });
        state
            .apply(StateUpdate::messages([message]), &SeededIds::new(9))
            .unwrap();
        self.checkpoints
            .put(checkpoint_write(
                "t1",
                None,
                number,
                &mut state,
                &mut (number - 1),
            ))
            .await
            .unwrap();
        self.memories
            .note(
                &scope(),
                &ThreadId::parse("t1").unwrap(),
                &MemoryRules::default(),
            )
            .await
            .unwrap();
    }

    async fn poll(&self) -> usize {
        self.worker
            .poll(&MemoryRules::default(), &self.learner)
            .await
            .unwrap()
    }

    async fn facts(&self) -> Vec<String> {
        self.memories
            .read(&scope())
            .await
            .unwrap()
            .document
            .facts
            .into_iter()
            .map(|fact| fact.content)
            .collect()
    }
}

fn scope() -> MemoryScope {
    MemoryScope::of_user("ann")
}

fn script_with_fact(content: &str) -> String {
    let object = json!({"user": {}, "history": {}, "newFacts": [{"content": content, "confidence": 0.9, "origin": "user"}], "factsToRemove": []});
    format!("[[usage 1,1]] then say {object}")
}

#[tokio::test]
async fn quiet_thread_is_processed_once() {
    let rig = Rig::new();
    rig.add_user_message(1, &script_with_fact("Lives in Bergen"))
        .await;
    assert_eq!(rig.poll().await, 0, "not quiet yet");
    rig.clock.advance(TimeDelta::seconds(31));
    assert_eq!(rig.poll().await, 1);
    assert_eq!(rig.facts().await, ["Lives in Bergen"]);
    let query = EventQuery {
        event_types: vec![AUXILIARY_USAGE.to_owned()],
        limit: 9,
        ..EventQuery::default()
    };
    let usage_records = RunEventStore::list(
        &*rig.checkpoints,
        &ThreadId::parse("t1").unwrap(),
        &query,
        &Owner::User("ann".to_owned()),
    )
    .await
    .unwrap();
    let [row] = &usage_records[..] else {
        panic!("{usage_records:?}")
    };
    assert_eq!(
        (&row.event.content["caller"], &row.event.content["model"]),
        (&json!("middleware:memory"), &json!("a"))
    );
    rig.memories
        .note(
            &scope(),
            &ThreadId::parse("t1").unwrap(),
            &MemoryRules::default(),
        )
        .await
        .unwrap();
    rig.clock.advance(TimeDelta::seconds(31));
    assert_eq!(rig.poll().await, 1);
    assert_eq!(rig.facts().await.len(), 1, "there was nothing new");
}

#[tokio::test]
async fn failing_update_is_retried_and_then_given_up() {
    let rig = Rig::new();
    rig.add_user_message(1, "[[error 500]]").await;
    for _ in 0..MAX_ATTEMPTS {
        rig.clock.advance(TimeDelta::minutes(3));
        assert_eq!(rig.poll().await, 1);
    }
    rig.clock.advance(TimeDelta::minutes(30));
    assert_eq!(rig.poll().await, 0);
    assert_eq!(rig.facts().await, Vec::<String>::new());
}

#[tokio::test]
async fn deleted_threads_and_disabled_memory_are_skipped() {
    let rig = Rig::new();
    rig.memories
        .note(
            &scope(),
            &ThreadId::parse("gone").unwrap(),
            &MemoryRules::default(),
        )
        .await
        .unwrap();
    rig.clock.advance(TimeDelta::minutes(1));
    assert_eq!(
        rig.worker
            .poll(
                &MemoryRules {
                    learns: false,
                    ..MemoryRules::default()
                },
                &rig.learner
            )
            .await,
        Ok(0)
    );
    assert_eq!((rig.poll().await, rig.poll().await), (1, 0));
    assert!(rig.clock.now() > at(0));
}

#[tokio::test]
async fn user_corrects_confirms_and_clears_facts() {
    let rig = Rig::new();
    let document = rig
        .memories
        .add(&scope(), " Likes tea ", "preference", 0.8)
        .await
        .unwrap();
    let id = document.facts[0].id.clone();
    assert_eq!(
        rig.memories
            .add(&scope(), "likes TEA", "preference", 0.8)
            .await,
        Err(MemoryError::Duplicate)
    );
    let change = super::super::FactChange {
        content: Some("Likes coffee".to_owned()),
        ..Default::default()
    };
    let corrected = rig.memories.correct(&scope(), &id, &change).await.unwrap();
    assert_eq!(
        (corrected.facts[0].content.as_str(), corrected.revision),
        ("Likes coffee", 2)
    );
    assert_eq!(
        rig.memories.remove(&scope(), "fact_0").await,
        Err(MemoryError::NoFact("fact_0".to_owned()))
    );
    assert!(
        rig.memories
            .remove(&scope(), &id)
            .await
            .unwrap()
            .facts
            .is_empty()
    );
}

#[tokio::test]
async fn changes_for_an_older_revision_are_not_merged() {
    let rig = Rig::new();
    rig.add_user_message(1, "hello").await;
    rig.clock.advance(TimeDelta::minutes(1));
    let update = rig
        .memories
        .store()
        .take(rig.clock.now(), rig.clock.now() + CLAIM_LEASE, 1)
        .await
        .unwrap()
        .remove(0);
    let base = rig
        .memories
        .add(&scope(), "Likes tea", "preference", 0.8)
        .await
        .unwrap();
    rig.memories.forget(&scope()).await.unwrap();
    let (rules, dialogue) = (MemoryRules::default(), Dialogue::default());
    let state = rig
        .worker
        .save(&update, &rules, &base, &dialogue, &Learned::default())
        .await;
    assert_eq!(state, Err(MemoryError::Busy));
}

#[tokio::test]
async fn updates_registered_before_a_clear_are_not_extracted() {
    let rig = Rig::new();
    rig.add_user_message(1, &script_with_fact("Lives in Bergen"))
        .await;
    rig.clock.advance(TimeDelta::seconds(10));
    rig.memories.forget_user("ann").await.unwrap();
    rig.clock.advance(TimeDelta::seconds(31));
    assert_eq!(rig.poll().await, 1);
    assert_eq!(rig.facts().await, Vec::<String>::new());
    rig.add_user_message(2, &script_with_fact("Lives in Oslo"))
        .await;
    rig.clock.advance(TimeDelta::seconds(31));
    assert_eq!(rig.poll().await, 1);
    assert_eq!(rig.facts().await, ["Lives in Oslo"]);
}

#[tokio::test]
async fn clearing_all_includes_memories_of_custom_agents() {
    let rig = Rig::new();
    let coder = MemoryScope {
        agent: Some("coder".to_owned()),
        ..scope()
    };
    let bob = MemoryScope::of_user("bob");
    for scope in [&scope(), &coder, &bob] {
        rig.memories
            .add(scope, "Likes tea", "preference", 0.8)
            .await
            .unwrap();
    }
    rig.memories.forget_user("ann").await.unwrap();
    let fact_count =
        async |scope: &MemoryScope| rig.memories.read(scope).await.unwrap().document.facts.len();
    assert_eq!(
        [
            fact_count(&scope()).await,
            fact_count(&coder).await,
            fact_count(&bob).await
        ],
        [0, 0, 1]
    );
}

/// Runs the worker until its shutdown, which starts after `work`; returns the duration of the
/// shutdown.
async fn run_until_shutdown(rig: Rig, work: Duration) -> ((UserMemories, ManualClock), Duration) {
    let Rig {
        worker,
        memories,
        learner,
        clock,
        ..
    } = rig;
    let (token, rules) = (
        CancellationToken::new(),
        MemoryRules {
            flush: Duration::from_secs(5),
            ..MemoryRules::default()
        },
    );
    let stopping = async {
        tokio::time::sleep(work).await;
        token.cancel();
        tokio::time::Instant::now()
    };
    let ((), stopped) = tokio::join!(
        worker.run(token.clone(), move || (rules.clone(), learner.clone())),
        stopping
    );
    ((memories, clock), stopped.elapsed())
}

#[tokio::test(start_paused = true)]
async fn unfinished_claims_are_released_at_shutdown() {
    let rig = Rig::new();
    rig.add_user_message(1, "[[slow 9000x1000ms]] on and on")
        .await;
    rig.clock.advance(TimeDelta::minutes(1));
    let ((memories, clock), took) = run_until_shutdown(rig, Duration::from_secs(1)).await;
    assert_eq!(took.as_secs(), 5);
    let due = memories
        .store()
        .take(clock.now(), clock.now() + CLAIM_LEASE, 9)
        .await
        .unwrap();
    assert_eq!(
        due.iter().map(|update| update.tries).collect::<Vec<_>>(),
        [0]
    );
}

#[tokio::test(start_paused = true)]
async fn hurried_updates_are_processed_before_shutdown() {
    let rig = Rig::new();
    rig.add_user_message(1, &script_with_fact("Lives in Bergen"))
        .await;
    rig.memories
        .hurry(&ThreadId::parse("t1").unwrap())
        .await
        .unwrap();
    let ((memories, _), took) = run_until_shutdown(rig, Duration::ZERO).await;
    assert_eq!(took.as_secs(), 0);
    let facts = memories.read(&scope()).await.unwrap().document.facts;
    assert_eq!(
        facts
            .iter()
            .map(|fact| fact.content.as_str())
            .collect::<Vec<_>>(),
        ["Lives in Bergen"]
    );
}
