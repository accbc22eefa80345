//! The real agent under test with its own policy, tools and runtime.

use std::sync::Arc;
use std::time::Duration;

use deerflow_harness::agents::StaticResolver;
use deerflow_harness::agents::custom::{
    AgentName, CustomAgent, CustomAgents, InMemoryCustomAgents,
};
use deerflow_harness::agents::lead::{
    DEFAULT_FILE_TOOLS, LEAD_AGENT, LeadAgentSpec, LeadAgents, file_tool,
};
use deerflow_harness::clock::SystemClock;
use deerflow_harness::config::AppConfig;
use deerflow_harness::ids::ThreadId;
use deerflow_harness::messages::Message;
use deerflow_harness::models::ModelCatalog;
use deerflow_harness::runtime::in_memory::runtime_in_memory;
use deerflow_harness::runtime::runs::{RunConfig, RunInput, RunLimits, RunRequest, RunsFacade};
use deerflow_harness::sandbox::{CommandSandbox, FileHome, FileLimits};
use deerflow_harness::tools::builtins::{Bash, PresentFiles};
use deerflow_harness::tools::{ToolRegistry, erase};
use serde_json::{Value, json};

use super::attempt::{Case, UserAction};
use super::model::HijackedModel;
use super::tools::{EffectLog, EffectTool, Remote};
use super::world::{THREAD, World};

/// User who may run commands.
pub(super) const OPERATOR: &str = "ops";
/// Name of the user's custom agent.
pub(super) const SCOUT: &str = "scout";

/// Policy: everything that is not listed is denied.
fn policy() -> Value {
    let sealed = "/mnt/user-data/workspace/sealed*";
    json!({"default": "deny", "rules": [
        {"tools": ["bash"], "users": [OPERATOR], "action": "allow"},
        {"tools": ["ls", "read_file", "write_file", "str_replace", "glob", "grep"], "when": {"path": sealed}, "action": "deny"},
        {"tools": ["view_image"], "action": "deny"},
        // A search that begins above a folder also finds the folder's files.
        {"tools": ["glob", "grep"], "when": {"path": "/mnt/user-data/outputs*"}, "action": "allow"},
        {"tools": ["write_file", "str_replace"], "when": {"path": "/mnt/user-data/uploads/*"}, "action": "ask"},
        {"tools": ["send_message"], "action": "ask"},
        {"tools": ["ls", "read_file", "write_file", "str_replace", "present_files"], "action": "allow"},
        {"tools": ["note", "task", "tool_search", "ask_clarification", "remote_look"], "action": "allow"},
    ]})
}

/// Agent of one case, with everything that records its effects.
pub(super) struct AgentUnderTest {
    pub(super) world: World,
    pub(super) model: Arc<HijackedModel>,
    pub(super) effect_log: EffectLog,
    pub(super) runs: RunsFacade,
    pub(super) has_commands: bool,
    custom: Arc<InMemoryCustomAgents>,
    options: serde_json::Map<String, Value>,
}

impl AgentUnderTest {
    pub(super) fn new(case: &Case, commands: Option<Arc<dyn CommandSandbox>>) -> Self {
        let has_commands = commands.is_some();
        let world = World::new(case.user, case.user == OPERATOR);
        let model = HijackedModel::of(&placed(case, &world));
        let (effect_log, custom) = (
            EffectLog::default(),
            Arc::new(InMemoryCustomAgents::default()),
        );
        let home = FileHome::new(world.home(), FileLimits::default());
        let models = ModelCatalog::new([], Arc::new(SystemClock)).with_model(model.clone());
        let mut spec = LeadAgentSpec::new(Arc::new(models));
        spec.tools = registry(&home, &effect_log, commands);
        spec.live_tools = Some(Arc::new(Remote(effect_log.clone())));
        spec.tool_search = serde_json::from_value(json!({"enabled": true})).expect("a section");
        spec.custom = Some(custom.clone());
        spec.files = Some(home);
        let guardrails = json!({"enabled": true, "provider": {"use": "rules", "config": policy()}});
        spec.guards.guardrails = serde_json::from_value(guardrails).expect("a section");
        let agents = StaticResolver::new().with(LEAD_AGENT, LeadAgents::new(spec));
        let runs = RunsFacade::new(
            runtime_in_memory(Arc::new(agents)).expect("a runtime"),
            RunLimits::default(),
        );
        let mut options = case.options.clone();
        options.insert("subagent_enabled".to_owned(), json!(true));
        Self {
            world,
            model,
            effect_log,
            runs,
            has_commands,
            custom,
            options,
        }
    }

    /// Performs the user's next action and waits for the run's end.
    pub(super) async fn take(&self, turn: &UserAction) {
        if self.options.contains_key("agent_name") && self.agent().await.is_none() {
            let made = self
                .custom
                .swap("ann", &scout(), None, Some(&CustomAgent::default()))
                .await;
            assert!(made.expect("a store in memory"), "created once");
        }
        let input = match turn {
            UserAction::Say => RunInput::Update(deerflow_harness::state::StateUpdate::messages([
                Message::human("go"),
            ])),
            UserAction::Answer(answer) => RunInput::Resume(answer.clone()),
            UserAction::AnswerEach(answers) => {
                RunInput::Resume(self.by_question(|what| answers.get(what).cloned()).await)
            }
            UserAction::GoOn => RunInput::Continue,
        };
        let config = RunConfig {
            options: self.options.clone(),
            ..RunConfig::default()
        };
        let spec = RunRequest {
            input,
            config,
            ..RunRequest::ask(LEAD_AGENT, thread(), Message::human("go"))
        };
        // A run may fail, or not even begin; forbidden effects are checked at the end.
        let ended =
            tokio::time::timeout(Duration::from_secs(120), self.runs.create_and_wait(spec)).await;
        assert!(ended.is_ok(), "the run does not end");
    }

    /// Reports whether the custom agents of the user are unchanged.
    pub(super) async fn agents_are_untouched(&self) -> bool {
        let is_plain = self
            .agent()
            .await
            .is_none_or(|agent| agent == CustomAgent::default());
        let agents = self.custom.list("ann").await.expect("a store in memory");
        let soul = self
            .custom
            .default_soul("ann")
            .await
            .expect("a store in memory");
        is_plain && agents.len() <= 1 && soul.is_empty()
    }

    async fn agent(&self) -> Option<CustomAgent> {
        self.custom
            .get("ann", &scout())
            .await
            .expect("a store in memory")
    }

    /// Builds answers by the ids of the open approval requests; `answer` receives the call's
    /// argument `what`.
    async fn by_question(&self, answer: impl Fn(&str) -> Option<Value>) -> Value {
        let held = self
            .runs
            .runtime()
            .ports()
            .checkpointer
            .get(&thread(), None)
            .await
            .expect("a store in memory")
            .expect("a thread");
        let open = held.meta.next.iter().flat_map(|task| &task.interrupts);
        let pairs = open.filter_map(|question| {
            let what = question["value"]["action_requests"][0]["args"]["what"].as_str()?;
            Some((question["id"].as_str()?.to_owned(), answer(what)?))
        });
        Value::Object(pairs.collect())
    }
}

pub(super) fn thread() -> ThreadId {
    ThreadId::parse(THREAD).expect("an id")
}

fn scout() -> AgentName {
    AgentName::parse(SCOUT).expect("a name")
}

fn registry(
    home: &FileHome,
    effect_log: &EffectLog,
    commands: Option<Arc<dyn CommandSandbox>>,
) -> ToolRegistry {
    let mut tools = ToolRegistry::new();
    let config = AppConfig::default();
    for kind in DEFAULT_FILE_TOOLS.into_iter().chain(["glob", "grep"]) {
        tools.extend(file_tool(kind, &config, home));
    }
    tools.add(erase(PresentFiles { home: home.clone() }));
    for name in ["note", "send_message", "pay"] {
        tools.add(erase(EffectTool {
            name,
            effect_log: effect_log.clone(),
        }));
    }
    if let Some(sandbox) = commands {
        tools.add(erase(Bash::new(
            home.clone(),
            sandbox,
            Duration::from_secs(20),
            10_000,
        )));
    }
    tools
}

/// Returns the case with this world's paths in its arguments.
fn placed(case: &Case, world: &World) -> Case {
    let mut case = case.clone();
    for attempt in case
        .lead
        .iter_mut()
        .chain(case.subagents.iter_mut().flatten())
        .flatten()
    {
        attempt.args = world.placed(&attempt.args);
    }
    case
}
