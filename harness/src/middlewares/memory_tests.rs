//! Memory in a real agent.

use futures_util::FutureExt;
use serde_json::Map;

use super::*;
use crate::agents::AgentSource;
use crate::agents::lead::{LeadAgentSpec, LeadAgents};
use crate::agents::test_support::{ReplayModel, Reply, Said, fresh, run, state_of};
use crate::clock::{Clock, ManualClock};
use crate::ids::SeededIds;
use crate::memory::{FactChange, MemoryStore, VolatileMemoryStore};
use crate::models::ModelCatalog;
use crate::runtime::agent::Agent;
use crate::testkit::at;

struct Rig {
    store: Arc<VolatileMemoryStore>,
    memories: Memories,
    model: Arc<ReplayModel>,
    agent: Arc<dyn Agent>,
    clock: ManualClock,
}

fn rig() -> Rig {
    let clock = ManualClock::starting_at(at(0));
    let store = Arc::new(VolatileMemoryStore::default());
    let memories = Memories::new(
        store.clone(),
        Arc::new(clock.clone()),
        Arc::new(SeededIds::new(1)),
    );
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
    Rig {
        store,
        memories,
        model,
        agent,
        clock,
    }
}

impl Rig {
    async fn said(&self, name: &str) -> Said {
        let state = state_of([Message::human("hello")]);
        run(&self.agent, fresh(state), |ctx| {
            ctx.run_id = RunId::parse(name).unwrap()
        })
        .await
    }

    /// The digests of what the journal hears was shown in run `name`.
    async fn digests(&self, name: &str) -> Vec<Arc<str>> {
        let digest = |event| {
            if let AgentEvent::MemoryShown { content_sha256 } = event {
                Some(content_sha256)
            } else {
                None
            }
        };
        self.said(name)
            .await
            .events
            .into_iter()
            .filter_map(digest)
            .collect()
    }

    /// What the model is sent in run `name`.
    async fn sent(&self, name: &str) -> Vec<String> {
        let before = self.model.asked().len();
        let said = self.said(name).await;
        assert_eq!(
            said.state().messages().len(),
            2,
            "a memory is no part of the thread"
        );
        // What people say is framed.
        let text = |message: &Message| {
            message
                .content
                .text()
                .lines()
                .filter(|line| !line.starts_with("--- "))
                .collect::<Vec<_>>()
                .join("\n")
        };
        self.model.asked()[before]
            .messages
            .iter()
            .map(text)
            .collect()
    }
}

#[tokio::test]
async fn an_agent_reads_what_is_remembered_of_its_user_and_nobody_else() {
    let rig = rig();
    rig.memories
        .add(&MemoryScope::of_user("bob"), "likes tea", "preference", 0.9)
        .await
        .unwrap();
    assert_eq!(rig.sent("r1").await, ["hello"]);
    rig.memories
        .add(
            &MemoryScope::of_user("ann"),
            "likes <coffee>",
            "preference",
            0.9,
        )
        .await
        .unwrap();
    let sent = rig.sent("r2").await;
    assert!(
        sent[0].starts_with("<memory>")
            && sent[0].contains("likes &lt;coffee&gt;")
            && sent[1] == "hello",
        "{sent:?}"
    );
}

#[tokio::test]
async fn a_thread_keeps_its_text_until_the_user_changes_something() {
    let rig = rig();
    let ann = MemoryScope::of_user("ann");
    let document = rig
        .memories
        .add(&ann, "likes tea", "preference", 0.9)
        .await
        .unwrap();
    let first = rig.sent("r1").await;
    let mut learned = document.clone();
    learned.facts[0].content = "learned meanwhile".to_owned();
    assert_eq!(
        rig.store
            .write(&ann, &learned, false, rig.clock.now())
            .await,
        Ok(true)
    );
    assert_eq!(rig.sent("r2").await, first);
    let change = FactChange {
        content: Some("likes coffee".to_owned()),
        ..FactChange::default()
    };
    rig.memories
        .correct(&ann, &document.facts[0].id, &change)
        .await
        .unwrap();
    assert!(rig.sent("r3").await[0].contains("likes coffee"));
}

#[tokio::test]
async fn the_journal_hears_which_memory_is_shown() {
    let rig = rig();
    assert_eq!(rig.digests("r1").await, []);
    let ann = MemoryScope::of_user("ann");
    rig.memories
        .add(&ann, "likes tea", "preference", 0.9)
        .await
        .unwrap();
    let first = rig.digests("r2").await;
    let text = render(
        &rig.memories.read(&ann).await.unwrap().document,
        MemoryRules::default().max_injection_tokens,
    )
    .unwrap();
    assert_eq!(first, [hex::encode(Sha256::digest(text)).into()]);
    assert_eq!(rig.digests("r3").await, first, "the text is the same");
    rig.memories
        .add(&ann, "likes coffee", "preference", 0.9)
        .await
        .unwrap();
    assert_ne!(rig.digests("r4").await, first);
}

#[tokio::test]
async fn a_run_leaves_its_threads_news_for_the_worker() {
    let rig = rig();
    rig.sent("r1").await;
    let now = rig.clock.now();
    let noted = rig.store.take(now, now, 9).await.unwrap();
    assert_eq!(
        (
            noted.len(),
            noted[0].scope.clone(),
            noted[0].thread.as_str()
        ),
        (1, MemoryScope::of_user("ann"), "thread")
    );
}
