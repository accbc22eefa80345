//! Reuse of resolved agents by later runs, and what makes a run resolve its agent again.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::advance;

use super::*;
use crate::agents::custom::{
    AgentName, CustomAgent, CustomAgentError, CustomAgents, InMemoryCustomAgents,
};
use crate::agents::lead::resolved::MAX_RESOLVED;
use crate::agents::test_support::{ReplayModel, Reply, ask};
use crate::clock::SystemClock;
use crate::config::{ExtensionsFile, OpenKeys};
use crate::runtime::actor_context::{ActorContext, DEFAULT_USER_ID, scope};
use crate::skills::{SkillFolders, Skills};

const SECOND: Duration = Duration::from_secs(1);

/// Store whose profiles a test changes as another process changes files.
#[derive(Debug, Default)]
struct Store {
    inner: InMemoryCustomAgents,
    /// Profile on disk, in addition to the user's id.
    profile: Mutex<String>,
    reads: AtomicUsize,
    counts_no_changes: bool,
}

impl Store {
    fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    fn count_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl CustomAgents for Store {
    fn version(&self, user: &str) -> Option<u64> {
        let version = self.inner.version(user);
        version.filter(|_| !self.counts_no_changes)
    }

    async fn get(
        &self,
        user: &str,
        name: &AgentName,
    ) -> Result<Option<CustomAgent>, CustomAgentError> {
        self.count_read();
        self.inner.get(user, name).await
    }

    async fn list(&self, user: &str) -> Result<Vec<(AgentName, CustomAgent)>, CustomAgentError> {
        self.inner.list(user).await
    }

    async fn swap(
        &self,
        user: &str,
        name: &AgentName,
        current: Option<&CustomAgent>,
        new: Option<&CustomAgent>,
    ) -> Result<bool, CustomAgentError> {
        self.inner.swap(user, name, current, new).await
    }

    async fn default_soul(&self, user: &str) -> Result<String, CustomAgentError> {
        self.count_read();
        self.inner.default_soul(user).await
    }

    async fn save_default_soul(&self, user: &str, soul: &str) -> Result<(), CustomAgentError> {
        self.inner.save_default_soul(user, soul).await
    }

    async fn profile(&self, user: &str) -> Result<String, CustomAgentError> {
        self.count_read();
        match &*self.profile.lock() {
            on_disk if on_disk.is_empty() => Ok(String::new()),
            on_disk => Ok(format!("{user} {on_disk}")),
        }
    }

    async fn save_profile(&self, user: &str, profile: &str) -> Result<(), CustomAgentError> {
        self.inner.save_profile(user, profile).await
    }
}

struct Rig {
    agents: LeadAgents,
    store: Arc<Store>,
    skills: Skills,
    model: Arc<ReplayModel>,
    base: tempfile::TempDir,
}

impl Rig {
    fn new(store: Store) -> Self {
        let base = tempfile::tempdir().unwrap();
        write_skill(base.path(), "first");
        let folders = SkillFolders {
            shared: base.path().join("shared"),
            home: base.path().join("home"),
        };
        let extensions = Arc::new(ExtensionsFile::at(base.path().join("extensions.json")));
        let (clock, keys) = (Arc::new(SystemClock), OpenKeys::default());
        let skills = Skills::new(folders, extensions, keys, clock.clone());
        let model = ReplayModel::new([Reply::Say("a"), Reply::Say("b")]);
        let catalog = ModelCatalog::new([], clock).with_model(model.clone());
        let store = Arc::new(store);
        let agents = LeadAgents::new(LeadAgentSpec {
            custom: Some(store.clone()),
            skills: Some(skills.clone()),
            ..LeadAgentSpec::new(Arc::new(catalog))
        });
        Self {
            agents,
            store,
            skills,
            model,
            base,
        }
    }

    async fn agent(&self) -> Arc<dyn Agent> {
        self.agents.agent(&Map::new()).await.unwrap()
    }

    async fn agent_of(&self, user: &str) -> Arc<dyn Agent> {
        scope(ActorContext::user(user), self.agent()).await
    }

    async fn named(&self, name: &str) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let options = json!({ "agent_name": name });
        self.agents.agent(options.as_object().unwrap()).await
    }
}

fn write_skill(base: &Path, name: &str) {
    let folder = base.join("shared/public").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: Works\n---\n# Work\n");
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
}

#[tokio::test(start_paused = true)]
async fn later_run_reads_no_file_within_a_second() {
    let rig = Rig::new(Store::default());
    let first = rig.agent().await;
    let reads = rig.store.reads();
    std::fs::remove_dir_all(rig.base.path()).unwrap();
    advance(SECOND - Duration::from_millis(1)).await;
    for _ in 0..10 {
        assert!(Arc::ptr_eq(&first, &rig.agent().await));
    }
    assert_eq!(rig.store.reads(), reads);
}

#[tokio::test(start_paused = true)]
async fn change_on_disk_is_seen_after_a_second() {
    let rig = Rig::new(Store::default());
    let first = rig.agent().await;
    write_skill(rig.base.path(), "second");
    advance(SECOND).await;
    let second = rig.agent().await;
    assert!(!Arc::ptr_eq(&first, &second), "a new skill");
    "likes tea".clone_into(&mut rig.store.profile.lock());
    assert!(Arc::ptr_eq(&second, &rig.agent().await));
    advance(SECOND).await;
    let third = rig.agent().await;
    assert!(!Arc::ptr_eq(&second, &third), "a new profile");
    advance(SECOND).await;
    assert!(Arc::ptr_eq(&third, &rig.agent().await), "no change");
}

#[tokio::test(start_paused = true)]
async fn change_through_this_process_is_seen_at_once() {
    let rig = Rig::new(Store::default());
    let first = rig.agent().await;
    rig.store
        .save_default_soul(DEFAULT_USER_ID, "Be brief.")
        .await
        .unwrap();
    let second = rig.agent().await;
    assert!(!Arc::ptr_eq(&first, &second), "a new soul");
    rig.skills
        .switch(DEFAULT_USER_ID, "first", false)
        .await
        .unwrap();
    let third = rig.agent().await;
    assert!(!Arc::ptr_eq(&second, &third), "a disabled skill");
    write_skill(rig.base.path(), "second");
    rig.skills.reload();
    assert!(!Arc::ptr_eq(&third, &rig.agent().await), "a reload");
}

#[tokio::test(start_paused = true)]
async fn users_share_no_agent_that_depends_on_them() {
    let rig = Rig::new(Store::default());
    let agents = (rig.agent_of("ann").await, rig.agent_of("bob").await);
    assert!(Arc::ptr_eq(&agents.0, &agents.1), "nothing of a user yet");
    "likes tea".clone_into(&mut rig.store.profile.lock());
    advance(SECOND).await;
    for user in ["ann", "bob"] {
        ask(&rig.agent_of(user).await, "hello").await;
    }
    let requests = rig.model.requests();
    let has = |at: usize, text: &str| requests[at].system.as_deref().unwrap().contains(text);
    assert!(has(0, "ann likes tea") && !has(0, "bob likes"));
    assert!(has(1, "bob likes tea") && !has(1, "ann likes"));
}

#[tokio::test(start_paused = true)]
async fn missing_agents_and_unreadable_skills_are_not_cached() {
    let rig = Rig::new(Store::default());
    let missing = rig.named("scout").await.unwrap_err();
    assert_eq!(missing, UnknownAssistant::NotFound("scout".to_owned()));
    assert_eq!(rig.agents.counts(), (0, 0));
    let extensions = rig.base.path().join("extensions.json");
    std::fs::write(&extensions, "[").unwrap();
    let without = rig.agent().await;
    std::fs::write(&extensions, "{}").unwrap();
    assert!(!Arc::ptr_eq(&without, &rig.agent().await));
}

#[tokio::test(start_paused = true)]
async fn store_without_version_is_read_by_each_run() {
    let rig = Rig::new(Store {
        counts_no_changes: true,
        ..Store::default()
    });
    let first = rig.agent().await;
    assert!(Arc::ptr_eq(&first, &rig.agent().await));
    "likes tea".clone_into(&mut rig.store.profile.lock());
    assert!(!Arc::ptr_eq(&first, &rig.agent().await));
}

#[tokio::test(start_paused = true)]
async fn run_does_not_wait_for_a_background_check() {
    let (mut rig, tasks) = (Rig::new(Store::default()), Tasks::new());
    rig.agents = rig.agents.with_background_checks(tasks.clone());
    let first = rig.agent_of("ann").await;
    "likes tea".clone_into(&mut rig.store.profile.lock());
    advance(SECOND * 3 / 4).await;
    assert!(Arc::ptr_eq(&first, &rig.agent_of("ann").await));
    tasks.shut_down().await;
    let reads = rig.store.reads();
    advance(SECOND / 4).await;
    ask(&rig.agent_of("ann").await, "hello").await;
    assert_eq!(rig.store.reads(), reads);
    let system = rig.model.requests()[0].system.clone().unwrap();
    assert!(system.contains("ann likes tea"), "{system}");
}

#[tokio::test(start_paused = true)]
async fn number_of_cached_requests_is_bounded() {
    let rig = Rig::new(Store::default());
    for effort in 0..MAX_RESOLVED + 10 {
        let options = json!({ "reasoning_effort": effort.to_string() });
        let agent = rig.agents.agent(options.as_object().unwrap()).await;
        agent.unwrap();
    }
    assert_eq!(rig.agents.counts().0, MAX_RESOLVED);
}
