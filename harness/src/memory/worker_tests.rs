//! From a conversation to a memory.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::ids::{SeededIds, ThreadId};
use crate::memory::{MemoryScope, VolatileMemoryStore};
use crate::messages::{Message, kwargs};
use crate::models::{ASIDE_USAGE, AsideModels, ModelCatalog, ModelEntry, RetryPolicy};
use crate::runtime::actor_context::Owner;
use crate::runtime::memory::MemoryStores;
use crate::runtime::runs::store::{EventQuery, RunEventStore};
use crate::state::{StateUpdate, ThreadState};
use crate::testkit::{at, checkpoint_write};

struct Rig {
    worker: MemoryWorker,
    memories: Memories,
    learner: Learner,
    clock: ManualClock,
    checkpoints: Arc<MemoryStores>,
}

impl Rig {
    fn new() -> Self {
        let clock = ManualClock::starting_at(at(0));
        let checkpoints = Arc::new(MemoryStores::new());
        let memories = Memories::new(
            Arc::new(VolatileMemoryStore::default()),
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
            models: AsideModels {
                catalog: Arc::new(catalog),
                breakers: Arc::default(),
                retry,
            },
            model: None,
        };
        let till = Till {
            events: checkpoints.clone(),
            ledger: checkpoints.clone(),
            clock: Arc::new(clock.clone()),
            ids: Arc::new(SeededIds::new(2)),
        };
        Self {
            worker: MemoryWorker::new(memories.clone(), checkpoints.clone(), till),
            memories,
            learner,
            clock,
            checkpoints,
        }
    }

    /// Something the user says on a thread; the scripted model does what it says when it is shown the conversation.
    async fn says(&self, number: u64, text: &str) {
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

    async fn look(&self) -> usize {
        self.worker
            .look(&MemoryRules::default(), &self.learner)
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

fn teaching(content: &str) -> String {
    let object = json!({"user": {}, "history": {}, "newFacts": [{"content": content, "confidence": 0.9, "origin": "user"}], "factsToRemove": []});
    format!("[[usage 1,1]] then say {object}")
}

#[tokio::test]
async fn a_quiet_thread_is_learned_from_once() {
    let rig = Rig::new();
    rig.says(1, &teaching("Lives in Bergen")).await;
    assert_eq!(rig.look().await, 0, "not quiet yet");
    rig.clock.advance(TimeDelta::seconds(31));
    assert_eq!(rig.look().await, 1);
    assert_eq!(rig.facts().await, ["Lives in Bergen"]);
    let query = EventQuery {
        event_types: vec![ASIDE_USAGE.to_owned()],
        limit: 9,
        ..EventQuery::default()
    };
    let booked = RunEventStore::list(
        &*rig.checkpoints,
        &ThreadId::parse("t1").unwrap(),
        &query,
        &Owner::User("ann".to_owned()),
    )
    .await
    .unwrap();
    let [row] = &booked[..] else {
        panic!("{booked:?}")
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
    assert_eq!(rig.look().await, 1);
    assert_eq!(rig.facts().await.len(), 1, "there was nothing new");
}

#[tokio::test]
async fn a_model_that_fails_is_asked_again_and_then_given_up() {
    let rig = Rig::new();
    rig.says(1, "[[error 500]]").await;
    for _ in 0..MOST_TRIES {
        rig.clock.advance(TimeDelta::minutes(3));
        assert_eq!(rig.look().await, 1);
    }
    rig.clock.advance(TimeDelta::minutes(30));
    assert_eq!(rig.look().await, 0);
    assert_eq!(rig.facts().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_thread_that_is_gone_and_one_of_an_installation_that_learns_nothing_are_left_alone() {
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
            .look(
                &MemoryRules {
                    learns: false,
                    ..MemoryRules::default()
                },
                &rig.learner
            )
            .await,
        Ok(0)
    );
    assert_eq!((rig.look().await, rig.look().await), (1, 0));
    assert!(rig.clock.now() > at(0));
}

#[tokio::test]
async fn facts_are_corrected_confirmed_and_forgotten_by_the_user() {
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
async fn what_was_learned_from_another_memory_is_not_merged_into_an_emptied_one() {
    let rig = Rig::new();
    rig.says(1, "hello").await;
    rig.clock.advance(TimeDelta::minutes(1));
    let noted = rig
        .memories
        .store()
        .take(rig.clock.now(), rig.clock.now() + LEASE, 1)
        .await
        .unwrap()
        .remove(0);
    let shown = rig
        .memories
        .add(&scope(), "Likes tea", "preference", 0.8)
        .await
        .unwrap();
    rig.memories.forget(&scope()).await.unwrap();
    let (rules, dialogue) = (MemoryRules::default(), Dialogue::default());
    let kept = rig
        .worker
        .keep(&noted, &rules, &shown, &dialogue, &Learned::default())
        .await;
    assert_eq!(kept, Err(MemoryError::Busy));
}

#[tokio::test]
async fn what_was_noted_before_everything_was_forgotten_is_not_learned() {
    let rig = Rig::new();
    rig.says(1, &teaching("Lives in Bergen")).await;
    rig.clock.advance(TimeDelta::seconds(10));
    rig.memories.forget_user("ann").await.unwrap();
    rig.clock.advance(TimeDelta::seconds(31));
    assert_eq!(rig.look().await, 1);
    assert_eq!(rig.facts().await, Vec::<String>::new());
    rig.says(2, &teaching("Lives in Oslo")).await;
    rig.clock.advance(TimeDelta::seconds(31));
    assert_eq!(rig.look().await, 1);
    assert_eq!(rig.facts().await, ["Lives in Oslo"]);
}

#[tokio::test]
async fn everything_includes_what_the_users_agents_remember() {
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
    let left =
        async |scope: &MemoryScope| rig.memories.read(scope).await.unwrap().document.facts.len();
    assert_eq!(
        [left(&scope()).await, left(&coder).await, left(&bob).await],
        [0, 0, 1]
    );
}

/// Works until it is told to end, which happens after `work`, and says how long it took from then.
async fn ended(rig: Rig, work: Duration) -> ((Memories, ManualClock), Duration) {
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
async fn what_a_worker_does_not_come_to_before_its_end_is_given_back() {
    let rig = Rig::new();
    rig.says(1, "[[slow 9000x1000ms]] on and on").await;
    rig.clock.advance(TimeDelta::minutes(1));
    let ((memories, clock), took) = ended(rig, Duration::from_secs(1)).await;
    assert_eq!(took.as_secs(), 5);
    let due = memories
        .store()
        .take(clock.now(), clock.now() + LEASE, 9)
        .await
        .unwrap();
    assert_eq!(due.iter().map(|noted| noted.tries).collect::<Vec<_>>(), [0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_a_hurry_is_learned_before_the_end() {
    let rig = Rig::new();
    rig.says(1, &teaching("Lives in Bergen")).await;
    rig.memories
        .hurry(&ThreadId::parse("t1").unwrap())
        .await
        .unwrap();
    let ((memories, _), took) = ended(rig, Duration::ZERO).await;
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
