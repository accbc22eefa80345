//! Agents whose process dies during tool calls, and the attempts that resume them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::*;
use crate::messages::{Message, MessageKind, ToolStatus};
use crate::runtime::agent::{Agent, AgentError, AgentEvent, AgentInput, AgentStart, CallLog};
use crate::state::StateUpdate;
use crate::tools::{Tool, ToolControl};

#[derive(Debug, Deserialize, JsonSchema)]
struct Args {
    /// Instruction for the tool.
    #[serde(default)]
    text: String,
}

/// State that the tools of one test share.
#[derive(Debug, Default)]
struct SharedState {
    /// `true` if tools with the instruction to hang do so.
    hangs: AtomicBool,
    /// Tool and key of each executed call.
    executed: Mutex<Vec<(&'static str, String)>>,
}

impl SharedState {
    fn count(&self, tool: &str) -> usize {
        self.executed
            .lock()
            .iter()
            .filter(|(name, _)| *name == tool)
            .count()
    }

    fn keys(&self, tool: &str) -> Vec<String> {
        self.executed
            .lock()
            .iter()
            .filter(|(name, _)| *name == tool)
            .map(|(_, key)| key.clone())
            .collect()
    }
}

struct EffectTool {
    name: &'static str,
    effect: Effect,
    shared: Arc<SharedState>,
}

impl Tool for EffectTool {
    type Args = Args;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Does something."
    }

    fn effect(&self, _args: &Args) -> Effect {
        self.effect
    }

    async fn call(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.shared
            .executed
            .lock()
            .push((self.name, ctx.key.clone()));
        match args.text.as_str() {
            "hang" if self.shared.hangs.load(Ordering::Relaxed) => std::future::pending().await,
            "fail" => Err(ToolError::for_model("Error: it failed")),
            "end run" => Err(ToolError::EndRun {
                name: "Denied".to_owned(),
                message: "not allowed".to_owned(),
            }),
            "file" => Ok(ToolOutput {
                update: StateUpdate::channel("artifacts", json!(["/f"])),
                ..ToolOutput::text("made")
            }),
            "ask" if ctx.answers.is_empty() => {
                Ok(ToolOutput::only(ToolControl::Ask(json!("which?"))))
            }
            _ => Ok("done".into()),
        }
    }
}

/// Call log that survives its writers.
#[derive(Debug, Default)]
struct TestCallLog(Mutex<HashMap<String, CallProgress>>);

#[async_trait]
impl crate::runtime::runs::store::ToolLedger for TestCallLog {
    async fn progress(&self, _run: &RunId, key: &str) -> Result<Option<CallProgress>, StoreError> {
        Ok(self.0.lock().get(key).cloned())
    }
}

struct Rig {
    shared: Arc<SharedState>,
    call_log: Arc<TestCallLog>,
    agent: Arc<dyn Agent>,
}

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    let shared = Arc::new(SharedState {
        hangs: true.into(),
        ..SharedState::default()
    });
    let tool = |name, effect| EffectTool {
        name,
        effect,
        shared: shared.clone(),
    };
    let builder = AgentBuilder::new(ReplayModel::new(replies));
    let builder = builder
        .tool(tool("reads", Effect::Pure))
        .tool(tool("puts", Effect::Keyed))
        .tool(tool("sends", Effect::Unsafe));
    Rig {
        agent: builder.build(),
        shared,
        call_log: Arc::default(),
    }
}

impl Rig {
    /// Runs an agent until it ends or makes no more progress, which simulates the death of its
    /// process.
    fn work(&self, input: AgentInput, is_resumed: bool) -> RunOutput {
        let (mut ctx, events) = context(1_000_000 * (1 + u64::from(is_resumed)));
        let former: Option<Arc<dyn crate::runtime::runs::store::ToolLedger>> = if is_resumed {
            Some(self.call_log.clone())
        } else {
            None
        };
        let (calls, mut lines) = CallLog::of(ctx.run_id.clone(), former);
        ctx.calls = calls;
        let mut stream = self.agent.stream(input, ctx, events);
        let mut output = RunOutput {
            events: vec![],
            outcome: Err(AgentError::EmptyInput),
        };
        loop {
            match stream.next().now_or_never() {
                Some(Some(Ok(AgentEvent::Done(outcome)))) => output.outcome = Ok(outcome),
                Some(Some(Ok(event))) => output.events.push(event),
                Some(Some(Err(error))) => output.outcome = Err(error),
                Some(None) => return output,
                None => match lines.try_recv() {
                    Some(line) => {
                        self.call_log
                            .0
                            .lock()
                            .insert(line.entry.key, line.entry.progress);
                        line.written.send(()).unwrap();
                    }
                    None => return output,
                },
            }
        }
    }

    fn run_until_death(&self) -> RunOutput {
        self.work(fresh(state_of([Message::human("go")])), false)
    }

    fn resume(&self, before: &RunOutput) -> RunOutput {
        self.shared.hangs.store(false, Ordering::Relaxed);
        self.work(resume_input(before, AgentStart::Continue), true)
    }
}

fn hang(id: &'static str, tool: &'static str) -> (&'static str, &'static str, serde_json::Value) {
    (id, tool, text("hang"))
}

#[test]
fn pure_call_is_repeated_and_never_recorded() {
    let rig = rig([calls([hang("a", "reads")]), Reply::Say("fine")]);
    let before = rig.run_until_death();
    assert!(rig.call_log.0.lock().is_empty());
    assert_eq!(
        rig.resume(&before).transcript()[2..],
        ["tool:done", "ai:fine"]
    );
    assert_eq!(rig.shared.count("reads"), 2);
    assert!(rig.call_log.0.lock().is_empty());
}

#[test]
fn keyed_call_is_repeated_with_the_same_key() {
    let rig = rig([calls([hang("a", "puts")]), Reply::Say("fine")]);
    let before = rig.run_until_death();
    assert_eq!(
        rig.resume(&before).transcript()[2..],
        ["tool:done", "ai:fine"]
    );
    let keys = rig.shared.keys("puts");
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    assert!(keys[0].len() == 64 && keys[0].bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[test]
fn unsafe_call_in_doubt_is_not_repeated() {
    let rig = rig([calls([hang("a", "sends")]), Reply::Say("fine")]);
    let before = rig.run_until_death();
    for _ in 0..2 {
        let after = rig.resume(&before);
        let results: Vec<&Message> = after
            .state()
            .messages()
            .iter()
            .filter(|message| message.tool_call_id().is_some())
            .collect();
        assert!(matches!(
            &results[0].kind,
            MessageKind::Tool {
                status: ToolStatus::Error,
                ..
            }
        ));
        assert!(results[0].content.text().contains("outcome is unknown"));
        assert_eq!(after.transcript().last().unwrap(), "ai:fine");
    }
    assert_eq!(rig.shared.count("sends"), 1);
}

#[test]
fn resume_executes_only_unfinished_parallel_calls() {
    let batch = [
        ("a", "sends", text("file")),
        hang("b", "sends"),
        hang("c", "puts"),
        ("d", "puts", text("x")),
        hang("e", "reads"),
    ];
    let rig = rig([calls(batch), Reply::Say("fine")]);
    let before = rig.run_until_death();
    let after = rig.resume(&before);
    let output = after.transcript();
    assert_eq!(
        (
            &output[2][..],
            &output[4][..],
            &output[5][..],
            &output[6][..]
        ),
        ("tool:made", "tool:done", "tool:done", "tool:done")
    );
    assert!(output[3].contains("outcome is unknown"));
    assert_eq!(after.state().channel("artifacts"), Some(&json!(["/f"])));
    assert_eq!(
        (
            rig.shared.count("sends"),
            rig.shared.count("puts"),
            rig.shared.count("reads")
        ),
        (2, 3, 2)
    );
}

#[test]
fn failures_run_ends_and_interrupts_are_recorded() {
    let rig = rig([
        calls([
            ("a", "sends", text("fail")),
            ("b", "sends", text("ask")),
            hang("c", "reads"),
        ]),
        Reply::Say("fine"),
    ]);
    let before = rig.run_until_death();
    let after = rig.resume(&before);
    assert_eq!(rig.shared.count("sends"), 2);
    assert_eq!(after.last_step().next[0].interrupts[0]["value"], "which?");
    assert_eq!(
        after.transcript()[2..],
        ["tool:Error: it failed", "tool:done"]
    );

    let ending = [calls([("a", "sends", text("end run")), hang("b", "reads")])];
    let rig = self::rig(ending);
    let before = rig.run_until_death();
    let after = rig.resume(&before);
    assert!(matches!(&after.outcome, Err(error) if error.name() == "Denied"));
    assert_eq!(rig.shared.count("sends"), 1);
}

#[test]
fn reused_call_id_names_two_calls() {
    let is_resumed = || calls([("a", "sends", text("x"))]);
    let rig = rig([
        is_resumed(),
        calls([("a", "sends", text("x")), hang("b", "reads")]),
        Reply::Say("fine"),
    ]);
    let before = rig.run_until_death();
    assert_eq!(rig.resume(&before).transcript().last().unwrap(), "ai:fine");
    let keys = rig.shared.keys("sends");
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn invalid_arguments_are_not_recorded() {
    let rig = rig([
        calls([("a", "sends", json!({ "text": 5 }))]),
        Reply::Say("fine"),
    ]);
    rig.run_until_death();
    assert!(rig.call_log.0.lock().is_empty());
}

#[test]
fn call_is_not_executed_when_recording_fails() {
    let rig = rig([calls([("a", "sends", text("x"))]), Reply::Say("fine")]);
    let (mut ctx, events) = context(1);
    (ctx.calls, _) = CallLog::of(ctx.run_id.clone(), None);
    let mut stream = rig
        .agent
        .stream(fresh(state_of([Message::human("go")])), ctx, events);
    let mut failed = None;
    while let Some(Some(event)) = stream.next().now_or_never() {
        failed = event.err().or(failed);
    }
    assert!(matches!(failed, Some(error) if error.name() == "StorageError"));
    assert_eq!(rig.shared.count("sends"), 0);
}

#[test]
fn decision_depends_on_effect_and_progress() {
    let (started, ended) = (
        Some(CallProgress::Started),
        Some(CallProgress::Done(json!(1))),
    );
    for effect in [Effect::Pure, Effect::Keyed, Effect::Unsafe] {
        assert_eq!(decide(effect, None), CallDecision::Execute);
        assert_eq!(
            decide(effect, ended.clone()),
            CallDecision::Recorded(json!(1))
        );
        let cut_off = if effect == Effect::Unsafe {
            CallDecision::InDoubt
        } else {
            CallDecision::Execute
        };
        assert_eq!(decide(effect, started.clone()), cut_off);
    }
}
