//! Tasks in a full runtime: a lead agent, its subagents, the scripted model, and in-memory stores.

#[path = "run_limit_tests.rs"]
mod limit;
#[path = "run_report_tests.rs"]
mod report;
#[path = "run_resume_tests.rs"]
mod resume;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::agents::StaticResolver;
use crate::agents::lead::{Guards, LEAD_AGENT, LeadAgentSpec, LeadAgents};
use crate::clock::SystemClock;
use crate::ids::{RunId, ThreadId};
use crate::messages::{Message, kwargs};
use crate::models::{ModelCatalog, ScriptedModel};
use crate::runtime::actor_context::Owner;
use crate::runtime::in_memory::{InMemoryOptions, InMemoryStreamBridge, runtime_in_memory};
use crate::runtime::runs::store::EventQuery;
use crate::runtime::runs::{
    CancelAction, RunConfig, RunInput, RunLimits, RunRecord, RunRequest, RunStatus, RunStream,
    RunsFacade, RuntimePorts, StreamMode,
};
use crate::runtime::stream_bridge::StreamItem;
use crate::runtime::tasks::Tasks;
use crate::tools::{Effect, Tool, ToolContext, ToolControl, ToolError, ToolOutput, ToolRegistry};

/// State of the test tool that survives a process.
#[derive(Debug, Default)]
struct SharedState {
    /// Set after the death of the first process: no tool hangs any more.
    restarted: AtomicBool,
    hanging: Notify,
    /// Number of active calls.
    active_calls: AtomicUsize,
    lookups: Mutex<Vec<String>>,
}

/// Tool that returns what it looked at, or hangs forever.
struct LookupTool(Arc<SharedState>);

#[derive(Debug, Deserialize, JsonSchema)]
struct LookupArgs {
    at: String,
    #[serde(default)]
    hang: bool,
}

/// Tool that asks the user once.
struct AskTool;

#[derive(Debug, Deserialize, JsonSchema)]
struct NoArgs {}

impl Tool for AskTool {
    type Args = NoArgs;

    fn name(&self) -> &str {
        "asking"
    }

    fn description(&self) -> &str {
        "Asks."
    }

    async fn call(&self, _args: NoArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(match ctx.answers.first() {
            None => ToolOutput::only(ToolControl::Ask(json!("which?"))),
            Some(answer) => answer.to_string().into(),
        })
    }
}

struct ActiveCall<'a>(&'a AtomicUsize);

impl Drop for ActiveCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Tool for LookupTool {
    type Args = LookupArgs;

    fn name(&self) -> &str {
        "look"
    }

    fn description(&self) -> &str {
        "Looks at something."
    }

    fn effect(&self, _args: &LookupArgs) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: LookupArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let shared = &self.0;
        shared.active_calls.fetch_add(1, Ordering::SeqCst);
        let _at_work = ActiveCall(&shared.active_calls);
        shared.lookups.lock().push(args.at.clone());
        if args.hang && !shared.restarted.load(Ordering::SeqCst) {
            shared.hanging.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(format!("seen {}", args.at).into())
    }
}

struct Rig {
    shared: Arc<SharedState>,
    runs: RunsFacade,
}

fn process(parts: RuntimePorts) -> RunsFacade {
    let bridge = Arc::new(InMemoryStreamBridge::new(InMemoryOptions::default()).unwrap());
    RunsFacade::new(
        RuntimePorts {
            bridge,
            tasks: Tasks::new(),
            ..parts
        },
        RunLimits::default(),
    )
}

/// A lead agent with the tool `look` and this `subagents` section.
fn rig(section: Value) -> Rig {
    let shared = Arc::<SharedState>::default();
    let models =
        ModelCatalog::new([], Arc::new(SystemClock)).with_model(Arc::new(ScriptedModel::default()));
    let spec = LeadAgentSpec {
        tools: ToolRegistry::new()
            .with(LookupTool(shared.clone()))
            .with(AskTool),
        guards: Guards {
            subagents: serde_json::from_value(section).unwrap(),
            ..Guards::default()
        },
        ..LeadAgentSpec::new(Arc::new(models))
    };
    let agents = StaticResolver::new().with(LEAD_AGENT, LeadAgents::new(spec));
    Rig {
        shared,
        runs: process(runtime_in_memory(Arc::new(agents)).unwrap()),
    }
}

fn thread() -> ThreadId {
    ThreadId::parse("t").unwrap()
}

/// Arguments of `task`.
fn task(prompt: &str) -> Value {
    json!({"description": "a part", "prompt": prompt, "subagent_type": "general-purpose"})
}

/// Run in which the lead agent delegates these tasks in one answer and then answers. Its own calls
/// cost 100 and 10 tokens.
fn delegate<const N: usize>(tasks: [Value; N]) -> RunRequest {
    let calls: Vec<Value> = tasks
        .into_iter()
        .map(|args| json!({"name": "task", "args": args}))
        .collect();
    ask(&format!(
        "[[usage 100,10]] [[tools:{}]] then say done",
        Value::from(calls)
    ))
}

fn ask(script: &str) -> RunRequest {
    let options = json!({"subagent_enabled": true})
        .as_object()
        .unwrap()
        .clone();
    RunRequest {
        config: RunConfig {
            options,
            ..RunConfig::default()
        },
        stream_modes: [StreamMode::Custom, StreamMode::MessagesTuple]
            .into_iter()
            .collect(),
        ..RunRequest::ask(LEAD_AGENT, thread(), Message::human(script))
    }
}

/// Outcome of a run with subagents.
struct TaskRun {
    run: RunId,
    /// Progress events of subagents.
    progress: Vec<Value>,
    /// Number of message chunks that subscribers received.
    pieces: usize,
}

async fn collect(record: RunRecord, stream: RunStream) -> TaskRun {
    let mut observed = TaskRun {
        run: record.run_id,
        progress: Vec::new(),
        pieces: 0,
    };
    let items: Vec<StreamItem> = stream.items.collect().await;
    for item in items {
        let StreamItem::Event(event) = item else {
            continue;
        };
        match &*event.event {
            "custom" => observed
                .progress
                .push(serde_json::from_slice(&event.data.into_bytes()).unwrap()),
            "messages" => observed.pieces += 1,
            _ => {}
        }
    }
    observed
}

impl TaskRun {
    /// `type` of the progress events of one call, or of all.
    fn types(&self, task: Option<&str>) -> Vec<&str> {
        let of_task = self
            .progress
            .iter()
            .filter(|progress| task.is_none_or(|task| progress["task_id"] == task));
        of_task
            .map(|progress| progress["type"].as_str().unwrap())
            .collect()
    }
}

impl Rig {
    async fn observe(&self, spec: RunRequest) -> TaskRun {
        let (record, stream) = self
            .runs
            .create_and_stream(spec, Duration::from_secs(60))
            .await
            .unwrap();
        collect(record, stream).await
    }

    fn ports(&self) -> &RuntimePorts {
        self.runs.runtime().ports()
    }

    async fn record(&self, run: &RunId) -> RunRecord {
        let query = &self.ports().query;
        query.get(run, &Owner::None).await.unwrap().unwrap()
    }

    async fn messages(&self) -> Vec<Message> {
        let checkpoints = &self.ports().checkpointer;
        let head = checkpoints.get(&thread(), None).await.unwrap().unwrap();
        head.state.messages().to_vec()
    }

    async fn results(&self) -> Vec<Message> {
        self.messages()
            .await
            .into_iter()
            .filter(|message| message.tool_call_id().is_some())
            .collect()
    }

    /// Type and content of the journal's rows of a category.
    async fn rows(&self, category: &str) -> Vec<(String, Value)> {
        let query = EventQuery {
            category: Some(category.to_owned()),
            limit: 100,
            ..EventQuery::default()
        };
        let rows = self
            .ports()
            .events
            .list(&thread(), &query, &Owner::None)
            .await
            .unwrap();
        rows.into_iter()
            .map(|row| (row.event.event_type, row.event.content.into_value()))
            .collect()
    }
}

/// Calls `look` once, then answers; both model calls cost 11 and 7 tokens.
const LOOKUP: &str = r#"[[usage 11,7]] [[tool:look {"at":"a"}]] then say found it"#;

#[tokio::test]
async fn model_failure_of_a_task_becomes_a_tool_result() {
    let rig = rig(json!({}));
    let observed = rig.observe(delegate([task("[[error 401]]")])).await;
    let result = rig.results().await.remove(0);
    assert!(
        result.content.text().starts_with("Task failed. Error: "),
        "{result:?}"
    );
    assert_eq!(observed.types(None).last(), Some(&"task_failed"));
    let ended = rig.record(&observed.run).await;
    assert_eq!(
        (ended.status, ended.completion.last_ai_message.as_deref()),
        (RunStatus::Success, Some("done"))
    );
}

#[tokio::test]
async fn unknown_kind_is_answered_with_the_available_kinds() {
    let rig = rig(json!({}));
    let bash = json!({"description": "d", "prompt": "p", "subagent_type": "bash"});
    let observed = rig
        .observe(delegate([
            bash,
            json!({"description": "d", "prompt": " ", "subagent_type": "general-purpose"}),
        ]))
        .await;
    assert_eq!(observed.progress, [] as [Value; 0]);
    let texts: Vec<String> = rig
        .results()
        .await
        .iter()
        .map(|result| result.content.text())
        .collect();
    assert_eq!(
        texts[0],
        r#"Task failed. Error: there is no subagent_type "bash"; there are: general-purpose"#
    );
    assert!(texts[1].contains("prompt is empty"), "{texts:?}");
}

#[tokio::test]
async fn subagents_are_disabled_by_default() {
    for (section, wants) in [(json!({}), false), (json!({"enabled": false}), true)] {
        let rig = rig(section);
        let mut spec = delegate([task(LOOKUP)]);
        spec.config
            .options
            .insert("subagent_enabled".to_owned(), wants.into());
        rig.observe(spec).await;
        assert!(
            rig.results().await.is_empty(),
            "the model is not offered the tool"
        );
    }
}
