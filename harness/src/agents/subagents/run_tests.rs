//! Tasks in a full runtime: a lead agent, its subagents, the scripted model, and in-memory stores.

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
    CancelAction, NodeLifecycle, RunConfig, RunInput, RunLimits, RunRecord, RunRequest, RunStatus,
    RunStream, RunsFacade, RuntimePorts, StreamMode,
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
            .map(|row| (row.event.event_type, row.event.content))
            .collect()
    }
}

/// Calls `look` once, then answers; both model calls cost 11 and 7 tokens.
const LOOKUP: &str = r#"[[usage 11,7]] [[tool:look {"at":"a"}]] then say found it"#;

#[tokio::test]
async fn task_reports_each_step_and_counts_usage_once() {
    let rig = rig(json!({}));
    let observed = rig.observe(delegate([task(LOOKUP)])).await;
    let kinds = [
        "task_started",
        "task_running",
        "task_running",
        "task_running",
        "task_completed",
    ];
    assert_eq!(observed.types(None), kinds);
    let result = rig.results().await.remove(0);
    let call = result.tool_call_id().unwrap();
    assert!(
        observed
            .progress
            .iter()
            .all(|progress| progress["task_id"] == call && progress["model_name"] == "scripted")
    );
    assert_eq!(observed.progress[0]["description"], "a part");
    let indices: Vec<_> = observed.progress[1..4]
        .iter()
        .map(|progress| {
            (
                progress["message_index"].as_u64(),
                progress["total_messages"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        indices,
        [(Some(1), Some(1)), (Some(2), Some(2)), (Some(3), Some(3))]
    );
    let message_types: Vec<&str> = observed.progress[1..4]
        .iter()
        .map(|progress| progress["message"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(message_types, ["ai", "tool", "ai"]);
    assert_eq!(
        observed.progress[1]["message"]["tool_calls"][0]["name"],
        "look"
    );
    let usage = |total: u64| json!({"input_tokens": total / 18 * 11, "output_tokens": total / 18 * 7, "total_tokens": total});
    assert_eq!(
        (
            &observed.progress[1]["usage"],
            &observed.progress[3]["usage"]
        ),
        (&usage(18), &usage(36))
    );
    assert_eq!(
        (
            &observed.progress[4]["result"],
            &observed.progress[4]["usage"]
        ),
        (&json!("found it"), &usage(36))
    );

    assert_eq!(result.content.text(), "Task Succeeded. Result: found it");
    assert_eq!(result.additional_kwargs["subagent_token_usage"], usage(36));
    let done = rig.record(&observed.run).await.completion;
    assert_eq!(
        (
            done.lead_agent_tokens,
            done.subagent_tokens,
            done.middleware_tokens,
            done.total_tokens
        ),
        (220, 36, 0, 256)
    );
    assert_eq!(
        (
            done.llm_call_count,
            done.message_count,
            done.last_ai_message.as_deref()
        ),
        (4, 4, Some("done"))
    );
    let dispatching = rig.messages().await[1].clone();
    assert_eq!(
        dispatching.usage().map(|usage| usage.total_tokens),
        Some(110 + 36),
        "in the format of clients"
    );
    assert!(dispatching.flag(kwargs::SUBAGENT_USAGE_ATTRIBUTED));
}

#[tokio::test]
async fn message_subscribers_receive_no_nested_messages() {
    let rig = rig(json!({}));
    let observed = rig
        .observe(delegate([task("then say a b c d e f g h")]))
        .await;
    assert!((1..12).contains(&observed.pieces), "{}", observed.pieces);
    let texts: Vec<String> = rig
        .messages()
        .await
        .iter()
        .map(|message| message.content.text())
        .collect();
    assert_eq!(
        texts.len(),
        4,
        "the thread contains only the result: {texts:?}"
    );
}

#[tokio::test]
async fn journal_separates_task_steps_from_the_conversation() {
    let rig = rig(json!({}));
    rig.observe(delegate([task(LOOKUP)])).await;
    let rows = rig.rows("subagent").await;
    let types: Vec<&str> = rows.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        types,
        [
            "subagent.start",
            "subagent.step",
            "subagent.step",
            "subagent.step",
            "subagent.end"
        ]
    );
    assert_eq!(
        (
            &rows[1].1["tool_calls"][0]["name"],
            &rows[2].1["tool_name"],
            &rows[3].1["text"]
        ),
        (&json!("look"), &json!("look"), &json!("found it"))
    );
    assert_eq!(
        (
            &rows[4].1["status"],
            &rows[4].1["result"],
            &rows[4].1["usage"]["total_tokens"]
        ),
        (&json!("completed"), &json!("found it"), &json!(36))
    );
    assert_eq!(rig.rows("message").await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn tasks_beyond_the_limit_are_dropped() {
    let rig = rig(json!({"max_running": 1}));
    let slow = task(&format!("[[delay 10]] {LOOKUP}"));
    let observed = rig
        .observe(delegate([
            slow.clone(),
            slow.clone(),
            slow.clone(),
            slow.clone(),
            slow,
        ]))
        .await;
    let results = rig.results().await;
    assert_eq!(results.len(), 3);
    assert_eq!(
        observed.types(None)[..3],
        ["task_started"; 3],
        "all tasks are announced before the first one starts"
    );
    let ended: Vec<usize> = (0..observed.progress.len())
        .filter(|at| observed.progress[*at]["type"] == "task_completed")
        .collect();
    let first_updates: Vec<usize> = (0..observed.progress.len())
        .filter(|at| observed.progress[*at]["message_index"] == 1)
        .collect();
    assert!(
        ended[0] < first_updates[1] && ended[1] < first_updates[2],
        "only one task is active at a time"
    );
    let order: Vec<&Value> = results
        .iter()
        .map(|result| &result.additional_kwargs["subagent_status"])
        .collect();
    assert_eq!(order, ["completed"; 3]);
    let done = rig.record(&observed.run).await.completion;
    assert_eq!(
        (done.subagent_tokens, done.lead_agent_tokens),
        (3 * 36, 220)
    );
}

#[tokio::test(start_paused = true)]
async fn cancel_stops_subagents_at_once() {
    let rig = rig(json!({}));
    let hang = r#"[[tool:look {"at":"a","hang":true}]]"#;
    let (record, stream) = rig
        .runs
        .create_and_stream(
            delegate([task(hang), task(LOOKUP)]),
            Duration::from_secs(60),
        )
        .await
        .unwrap();
    rig.shared.hanging.notified().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.runs
        .cancel(None, &record.run_id, CancelAction::Interrupt, true)
        .await
        .unwrap();
    assert_eq!(rig.shared.active_calls.load(Ordering::SeqCst), 0);
    let observed = collect(record, stream).await;
    let ends: Vec<&str> = observed
        .types(None)
        .into_iter()
        .filter(|kind| !matches!(*kind, "task_started" | "task_running"))
        .collect();
    assert_eq!(ends, ["task_completed", "task_cancelled"]);
    let last = rig.rows("subagent").await.pop().unwrap();
    assert_eq!(
        (last.0.as_str(), &last.1["status"]),
        ("subagent.end", &json!("cancelled"))
    );
    let ended = rig.record(&observed.run).await;
    assert_eq!(
        (ended.status, ended.completion.subagent_tokens > 36),
        (RunStatus::Interrupted, true),
        "the earlier usage stays counted"
    );
    let next = rig.observe(ask("then say better")).await;
    assert_eq!(rig.record(&next.run).await.status, RunStatus::Success);
}

#[tokio::test(start_paused = true)]
async fn task_timeout_does_not_end_the_run() {
    let rig = rig(json!({"agents": {"general-purpose": {"timeout_seconds": 5}}}));
    let observed = rig
        .observe(delegate([
            task(r#"[[usage 11,7]] [[tool:look {"at":"a","hang":true}]]"#),
            task(LOOKUP),
        ]))
        .await;
    let results = rig.results().await;
    assert!(
        results[0]
            .content
            .text()
            .starts_with("Task timed out. Error: it was not done after 5 seconds"),
        "{:?}",
        results[0]
    );
    assert_eq!(results[0].additional_kwargs["subagent_status"], "timed_out");
    assert_eq!(
        results[1].content.text(),
        "Task Succeeded. Result: found it"
    );
    let of_first = observed.types(results[0].tool_call_id());
    assert_eq!(of_first, ["task_started", "task_running", "task_timed_out"]);
    assert_eq!(rig.shared.active_calls.load(Ordering::SeqCst), 0);
    let ended = rig.record(&observed.run).await;
    assert_eq!(
        (ended.status, ended.completion.subagent_tokens),
        (RunStatus::Success, 18 + 36)
    );
}

#[tokio::test]
async fn task_without_remaining_turns_returns_a_partial_result() {
    let rig = rig(
        json!({"custom_agents": {"brief": {"description": "d", "system_prompt": "p", "max_turns": 9}}}),
    );
    let looking = r#"[[tool:look {"at":"a"}]] [[tool:look {"at":"b"}]] [[tool:look {"at":"c"}]] [[tool:look {"at":"d"}]]"#;
    let excerpt =
        json!({"description": "d", "prompt": looking, "subagent_type": "brief", "max_turns": 900});
    let observed = rig
        .observe(delegate([excerpt, json!({"description": "d", "prompt": "then say hi", "subagent_type": "brief", "max_turns": 1})]))
        .await;
    let results = rig.results().await;
    for result in &results {
        assert_eq!(
            result.content.text(),
            "Task failed. Error: it used up its turns before it had a result"
        );
    }
    assert!(
        (1..4).contains(&rig.shared.lookups.lock().len()),
        "no more turns than the kind allows"
    );
    assert_eq!(
        observed.types(results[0].tool_call_id()).last(),
        Some(&"task_failed")
    );
    assert_eq!(rig.record(&observed.run).await.status, RunStatus::Success);
}

#[tokio::test]
async fn task_over_its_token_budget_is_ended() {
    let rig = rig(json!({"token_budget": {"max_tokens": 1_000}}));
    let costly = r#"[[usage 500,100]] [[tool:look {"at":"a"}]] [[tool:look {"at":"b"}]] [[tool:look {"at":"c"}]] then say too late"#;
    let observed = rig.observe(delegate([task(costly)])).await;
    let result = rig.results().await.remove(0);
    assert!(
        result
            .content
            .text()
            .starts_with("Task Succeeded (cut short by its token budget). Result: "),
        "{result:?}"
    );
    assert_eq!(
        result.additional_kwargs["subagent_stop_reason"],
        "token_capped"
    );
    assert_eq!(rig.shared.lookups.lock().len(), 1);
    let ended = rig.record(&observed.run).await;
    assert_eq!(
        (ended.completion.subagent_tokens, ended.stop_reason),
        (1_200, None),
        "the run itself has not been stopped"
    );
}

#[tokio::test]
async fn interrupted_task_resumes_with_the_answer() {
    let rig = rig(json!({}));
    let asking = rig
        .observe(delegate([task(
            "[[usage 11,7]] [[tool:asking {}]] then say thanks",
        )]))
        .await;
    assert_eq!(
        asking.types(None),
        ["task_started", "task_running"],
        "it has not ended"
    );
    assert!(rig.results().await.is_empty());
    let answered = rig
        .observe(RunRequest {
            input: RunInput::Resume(json!("red")),
            ..delegate([])
        })
        .await;
    assert_eq!(
        answered.types(None),
        [
            "task_started",
            "task_running",
            "task_running",
            "task_completed"
        ]
    );
    assert_eq!(answered.progress[1]["message"]["content"], "\"red\"");
    let result = rig.results().await.remove(0);
    assert_eq!(result.content.text(), "Task Succeeded. Result: thanks");
    assert_eq!(
        result.additional_kwargs["subagent_token_usage"]["total_tokens"], 36,
        "of both runs"
    );
    let counts = [
        rig.record(&asking.run).await.completion.subagent_tokens,
        rig.record(&answered.run).await.completion.subagent_tokens,
    ];
    assert_eq!(counts, [18, 18]);
}

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

#[tokio::test(start_paused = true)]
async fn takeover_resumes_subagents() {
    let rig = rig(
        json!({"custom_agents": {"brief": {"description": "d", "system_prompt": "p", "max_turns": 1}}}),
    );
    let hang = r#"[[usage 11,7]] [[tool:look {"at":"first"}]] [[tool:look {"at":"second","hang":true}]] then say went on"#;
    let capped = json!({"description": "d", "prompt": LOOKUP, "subagent_type": "brief"});
    let run = rig
        .runs
        .create_background(delegate([task(LOOKUP), task(hang), capped]))
        .await
        .unwrap();
    rig.shared.hanging.notified().await;
    // Results of the other tasks are durable as soon as the run only waits.
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.shared.restarted.store(true, Ordering::SeqCst);
    rig.ports().tasks.token().cancel();
    let next = Rig {
        shared: rig.shared.clone(),
        runs: process(rig.ports().clone()),
    };
    let node = NodeLifecycle::new(next.runs.runtime());
    assert_eq!(node.recover().await.unwrap(), 1);
    next.runs.join_wait(None, &run.run_id).await.unwrap();
    let ended = next.record(&run.run_id).await;
    assert_eq!((ended.status, ended.attempt), (RunStatus::Success, 2));
    let texts: Vec<String> = next
        .results()
        .await
        .iter()
        .map(|result| result.content.text())
        .collect();
    assert_eq!(
        texts[..2],
        [
            "Task Succeeded. Result: found it",
            "Task Succeeded. Result: went on"
        ]
    );
    assert!(
        texts[2].starts_with("Task failed"),
        "its turns stay used up: {texts:?}"
    );
    let mut lookups = next.shared.lookups.lock().clone();
    lookups.sort();
    assert_eq!(
        lookups,
        ["a", "first", "second", "second"],
        "only the interrupted call is repeated"
    );
    let usage = |result: &Message| {
        result.additional_kwargs["subagent_token_usage"]["total_tokens"].as_u64()
    };
    let results = next.results().await;
    assert_eq!(
        (usage(&results[0]), usage(&results[1])),
        (Some(36), Some(54))
    );
    let done = ended.completion;
    assert_eq!(
        (done.subagent_tokens, done.lead_agent_tokens),
        (36 + 54, 220),
        "every model call is counted once"
    );
}
