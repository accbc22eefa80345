//! Tests of user memory in a complete agent.

use futures_util::FutureExt;
use serde_json::Map;

use super::*;
use crate::agents::AgentSource;
use crate::agents::lead::{LeadAgentSpec, LeadAgents};
use crate::agents::test_support::{ReplayModel, Reply, RunOutput, fresh, run, state_of};
use crate::clock::{Clock, ManualClock};
use crate::ids::SeededIds;
use crate::models::ModelCatalog;
use crate::runtime::agent::Agent;
use crate::testkit::at;
use crate::user_memory::{FactChange, InMemoryUserMemoryStore, UserMemoryStore};

struct Fixture {
    store: Arc<InMemoryUserMemoryStore>,
    memories: UserMemories,
    model: Arc<ReplayModel>,
    agent: Arc<dyn Agent>,
    clock: ManualClock,
}

fn fixture() -> Fixture {
    fixture_of(|memories| memories)
}

fn fixture_of(registered: fn(UserMemories) -> UserMemories) -> Fixture {
    let clock = ManualClock::starting_at(at(0));
    let store = Arc::new(InMemoryUserMemoryStore::default());
    let memories = registered(UserMemories::new(
        store.clone(),
        Arc::new(clock.clone()),
        Arc::new(SeededIds::new(1)),
    ));
    let model = ReplayModel::new([Reply::Say("yes")]);
    let catalog = ModelCatalog::new([], Arc::new(clock.clone())).with_model(model.clone());
    let rules = MemoryRules {
        debounce: Duration::ZERO,
        ..MemoryRules::default()
    };
    let spec = LeadAgentSpec {
        memory: Some((memories.clone(), rules)),
        ..LeadAgentSpec::new(Arc::new(catalog))
    };
    let agent = LeadAgents::new(spec)
        .agent(&Map::new())
        .now_or_never()
        .unwrap()
        .unwrap();
    Fixture {
        store,
        memories,
        model,
        agent,
        clock,
    }
}

impl Fixture {
    async fn output(&self, name: &str) -> RunOutput {
        let state = state_of([Message::human("hello")]);
        run(&self.agent, fresh(state), |ctx| {
            ctx.run_id = RunId::parse(name).unwrap()
        })
        .await
    }

    /// Returns the digests of the memory texts that run `name` reported to the journal.
    async fn digests(&self, name: &str) -> Vec<Arc<str>> {
        let digest = |event| {
            if let AgentEvent::MemoryShown { content_sha256 } = event {
                Some(content_sha256)
            } else {
                None
            }
        };
        self.output(name)
            .await
            .events
            .into_iter()
            .filter_map(digest)
            .collect()
    }

    /// Returns the messages that the model received in run `name`.
    async fn sent(&self, name: &str) -> Vec<String> {
        let before = self.model.requests().len();
        let output = self.output(name).await;
        assert_eq!(
            output.state().messages().len(),
            2,
            "the memory is not stored in the thread"
        );
        // User texts are framed.
        let text = |message: &Message| {
            message
                .content
                .text()
                .lines()
                .filter(|line| !line.starts_with("--- "))
                .collect::<Vec<_>>()
                .join("\n")
        };
        self.model.requests()[before]
            .messages
            .iter()
            .map(text)
            .collect()
    }
}

#[tokio::test]
async fn agent_receives_memory_of_its_user_only() {
    let fixture = fixture();
    fixture
        .memories
        .add(&MemoryScope::of_user("bob"), "likes tea", "preference", 0.9)
        .await
        .unwrap();
    assert_eq!(fixture.sent("r1").await, ["hello"]);
    fixture
        .memories
        .add(
            &MemoryScope::of_user("ann"),
            "likes <coffee>",
            "preference",
            0.9,
        )
        .await
        .unwrap();
    let sent = fixture.sent("r2").await;
    assert!(
        sent[0].starts_with("<memory>")
            && sent[0].contains("likes &lt;coffee&gt;")
            && sent[1] == "hello",
        "{sent:?}"
    );
}

#[tokio::test]
async fn memory_text_is_stable_until_user_edit() {
    let fixture = fixture();
    let ann = MemoryScope::of_user("ann");
    let document = fixture
        .memories
        .add(&ann, "likes tea", "preference", 0.9)
        .await
        .unwrap();
    let first = fixture.sent("r1").await;
    let mut learned = document.clone();
    learned.facts[0].content = "learned meanwhile".to_owned();
    assert_eq!(
        fixture
            .store
            .write(&ann, &learned, false, fixture.clock.now())
            .await,
        Ok(true)
    );
    assert_eq!(fixture.sent("r2").await, first);
    let change = FactChange {
        content: Some("likes coffee".to_owned()),
        ..FactChange::default()
    };
    fixture
        .memories
        .correct(&ann, &document.facts[0].id, &change)
        .await
        .unwrap();
    assert!(fixture.sent("r3").await[0].contains("likes coffee"));
}

#[tokio::test]
async fn journal_records_digest_of_memory() {
    let fixture = fixture();
    assert_eq!(fixture.digests("r1").await, []);
    let ann = MemoryScope::of_user("ann");
    fixture
        .memories
        .add(&ann, "likes tea", "preference", 0.9)
        .await
        .unwrap();
    let first = fixture.digests("r2").await;
    let text = render(
        &fixture.memories.read(&ann).await.unwrap().document,
        MemoryRules::default().max_injection_tokens,
    )
    .unwrap();
    assert_eq!(first, [hex::encode(Sha256::digest(text)).into()]);
    assert_eq!(fixture.digests("r3").await, first, "the text is unchanged");
    fixture
        .memories
        .add(&ann, "likes coffee", "preference", 0.9)
        .await
        .unwrap();
    assert_ne!(fixture.digests("r4").await, first);
}

#[tokio::test]
async fn update_registered_by_commits_is_an_event_of_the_run() {
    let fixture = fixture_of(UserMemories::updated_by_commits);
    let events = fixture.output("r1").await.events;
    let updates: Vec<_> = events
        .into_iter()
        .filter_map(|event| match event {
            AgentEvent::MemoryUpdate(update) => Some(*update),
            _ => None,
        })
        .collect();
    let now = fixture.clock.now();
    let expected = MemoryUpdate {
        scope: MemoryScope::of_user("ann"),
        due: now,
    };
    assert_eq!(updates, [expected]);
    assert_eq!(fixture.store.take(now, now, 9).await, Ok(vec![]));
}

#[tokio::test]
async fn run_enqueues_thread_for_memory_worker() {
    let fixture = fixture();
    fixture.sent("r1").await;
    let now = fixture.clock.now();
    let noted = fixture.store.take(now, now, 9).await.unwrap();
    assert_eq!(
        (
            noted.len(),
            noted[0].scope.clone(),
            noted[0].thread.as_str()
        ),
        (1, MemoryScope::of_user("ann"), "thread")
    );
}
