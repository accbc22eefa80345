//! Tools in a full runtime, over in-memory stores that two processes use one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Notify;

use crate::agents::{AgentBuilder, StaticResolver};
use crate::ids::ThreadId;
use crate::messages::Message;
use crate::models::ScriptedModel;
use crate::runtime::actor_context::{ActorContext, Owner, scope};
use crate::runtime::in_memory::{InMemoryOptions, InMemoryStreamBridge, runtime_in_memory};
use crate::runtime::runs::{
    CancelAction, NodeLifecycle, RunInput, RunLimits, RunRecord, RunRequest, RunStatus, RunsFacade,
    RuntimePorts,
};
use crate::runtime::tasks::Tasks;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

#[derive(Debug, Deserialize, JsonSchema)]
struct Args {
    #[serde(default)]
    hang: bool,
}

/// State that survives a process.
#[derive(Debug, Default)]
struct SharedState {
    /// Set after the death of the first process: no tool hangs any more.
    restarted: AtomicBool,
    hanging: Notify,
    executed: Mutex<Vec<(&'static str, String)>>,
}

struct EffectTool(&'static str, Effect, Arc<SharedState>);

impl Tool for EffectTool {
    type Args = Args;

    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &str {
        "Does something."
    }

    fn effect(&self, _args: &Args) -> Effect {
        self.1
    }

    async fn call(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.2.executed.lock().push((self.0, ctx.key.clone()));
        if args.hang && !self.2.restarted.load(Ordering::Relaxed) {
            self.2.hanging.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(format!("{} done", self.0).into())
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

fn rig() -> Rig {
    let shared = Arc::<SharedState>::default();
    let tool = |name, effect| EffectTool(name, effect, shared.clone());
    let agent = AgentBuilder::new(Arc::new(ScriptedModel::default()));
    let agent = agent
        .tool(tool("reads", Effect::Pure))
        .tool(tool("puts", Effect::Keyed))
        .tool(tool("sends", Effect::Unsafe))
        .build();
    let agents = StaticResolver::new().with_agent("plain", agent);
    Rig {
        runs: process(runtime_in_memory(Arc::new(agents)).unwrap()),
        shared,
    }
}

impl Rig {
    /// Starts a run, waits until a tool hangs in it, and drops its process; returns the next
    /// process.
    async fn run_until_death(&self, script: &str) -> (RunRecord, RunsFacade) {
        let run = self.runs.create_background(ask(script)).await.unwrap();
        self.shared.hanging.notified().await;
        // Results of the other calls are durable as soon as the run only waits.
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.shared.restarted.store(true, Ordering::Relaxed);
        self.runs.runtime().ports().tasks.token().cancel();
        let next = process(self.runs.runtime().ports().clone());
        assert_eq!(
            NodeLifecycle::new(next.runtime()).recover().await.unwrap(),
            1
        );
        (run, next)
    }

    fn counts(&self) -> [usize; 3] {
        let executed = self.shared.executed.lock();
        ["reads", "puts", "sends"]
            .map(|tool| executed.iter().filter(|(name, _)| *name == tool).count())
    }
}

fn thread() -> ThreadId {
    ThreadId::parse("t").unwrap()
}

fn ask(script: &str) -> RunRequest {
    RunRequest::ask("plain", thread(), Message::human(script))
}

async fn as_user<T>(work: impl Future<Output = T>) -> T {
    scope(ActorContext::user("ann"), work).await
}

async fn texts(runs: &RunsFacade) -> Vec<String> {
    let head = runs
        .runtime()
        .ports()
        .checkpointer
        .get(&thread(), None)
        .await
        .unwrap()
        .unwrap();
    super::test_support::transcript(head.state.messages())
}

#[tokio::test(start_paused = true)]
async fn takeover_repeats_only_repeatable_calls() {
    as_user(async {
        let rig = rig();
        let batch = r#"[[tools:[{"name":"sends","args":{}},{"name":"sends","args":{"hang":true}},{"name":"puts","args":{"hang":true}},{"name":"reads","args":{"hang":true}}]]]"#;
        let (run, next) = rig.run_until_death(&format!("{batch} then say fine")).await;
        next.join_wait(None, &run.run_id).await.unwrap();
        let ended = next.runtime().ports().query.get(&run.run_id, &Owner::None).await.unwrap().unwrap();
        assert_eq!((ended.status, ended.attempt), (RunStatus::Success, 2));
        let output = texts(&next).await;
        assert_eq!(output[2], "tool:sends done");
        assert!(output[3].contains("outcome is unknown"), "{output:?}");
        assert_eq!(output[4..], ["tool:puts done", "tool:reads done", "ai:fine"]);
        assert_eq!(rig.counts(), [2, 2, 2]);
        let executed = rig.shared.executed.lock().clone();
        let keys: Vec<_> = executed.iter().filter(|(name, _)| *name == "puts").map(|(_, key)| key).collect();
        assert_eq!(keys[0], keys[1]);
        for (_, key) in &executed {
            assert_eq!(next.runtime().ports().ledger.progress(&run.run_id, key).await, Ok(None), "the call log is deleted with the run");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn later_call_after_takeover_is_executed() {
    as_user(async {
        let rig = rig();
        let (run, next) = rig
            .run_until_death(r#"[[tool:sends {"hang":true}]] [[tool:sends {}]] then say fine"#)
            .await;
        next.join_wait(None, &run.run_id).await.unwrap();
        let output = texts(&next).await;
        assert!(output[2].contains("outcome is unknown"));
        assert_eq!(output[4..], ["tool:sends done", "ai:fine"]);
        assert_eq!(rig.counts(), [0, 0, 2]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn cancel_in_a_call_deletes_the_call_log() {
    as_user(async {
        let rig = rig();
        let run = rig
            .runs
            .create_background(ask(r#"[[tool:sends {"hang":true}]]"#))
            .await
            .unwrap();
        rig.shared.hanging.notified().await;
        let key = rig.shared.executed.lock()[0].1.clone();
        let head = rig
            .runs
            .runtime()
            .ports()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            head.meta.next[0].name, "tools",
            "and so is the step that it belongs to"
        );
        assert!(
            rig.runs
                .runtime()
                .ports()
                .ledger
                .progress(&run.run_id, &key)
                .await
                .unwrap()
                .is_some(),
            "durable before the tool begins"
        );
        rig.runs
            .cancel(None, &run.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        assert_eq!(
            rig.runs
                .runtime()
                .ports()
                .ledger
                .progress(&run.run_id, &key)
                .await,
            Ok(None)
        );
        let next_run = RunRequest {
            input: RunInput::Continue,
            ..ask("")
        };
        rig.shared.restarted.store(true, Ordering::Relaxed);
        rig.runs.create_and_wait(next_run).await.unwrap();
        assert_eq!(rig.counts()[2], 2, "another run may execute it");
    })
    .await;
}
