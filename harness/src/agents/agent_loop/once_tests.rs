//! Agents whose process dies in the middle of calls, and what those do that go on.

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
    /// What to do.
    #[serde(default)]
    text: String,
}

/// What the tools of one test share.
#[derive(Debug, Default)]
struct World {
    /// Whether tools that are told to hang do so.
    hangs: AtomicBool,
    /// The tool and the key of each call.
    made: Mutex<Vec<(&'static str, String)>>,
}

impl World {
    fn count(&self, tool: &str) -> usize {
        self.made
            .lock()
            .iter()
            .filter(|(name, _)| *name == tool)
            .count()
    }

    fn keys(&self, tool: &str) -> Vec<String> {
        self.made
            .lock()
            .iter()
            .filter(|(name, _)| *name == tool)
            .map(|(_, key)| key.clone())
            .collect()
    }
}

struct Doing {
    name: &'static str,
    effect: Effect,
    world: Arc<World>,
}

impl Tool for Doing {
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
        self.world.made.lock().push((self.name, ctx.key.clone()));
        match args.text.as_str() {
            "hang" if self.world.hangs.load(Ordering::Relaxed) => std::future::pending().await,
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

/// A ledger that outlives its writers.
#[derive(Debug, Default)]
struct Book(Mutex<HashMap<String, CallProgress>>);

#[async_trait]
impl crate::runtime::runs::store::ToolLedger for Book {
    async fn progress(&self, _run: &RunId, key: &str) -> Result<Option<CallProgress>, StoreError> {
        Ok(self.0.lock().get(key).cloned())
    }
}

struct Bench {
    world: Arc<World>,
    book: Arc<Book>,
    agent: Arc<dyn Agent>,
}

fn bench(replies: impl IntoIterator<Item = Reply>) -> Bench {
    let world = Arc::new(World {
        hangs: true.into(),
        ..World::default()
    });
    let tool = |name, effect| Doing {
        name,
        effect,
        world: world.clone(),
    };
    let builder = AgentBuilder::new(ReplayModel::new(replies));
    let builder = builder
        .tool(tool("reads", Effect::Pure))
        .tool(tool("puts", Effect::Keyed))
        .tool(tool("sends", Effect::Unsafe));
    Bench {
        agent: builder.build(),
        world,
        book: Arc::default(),
    }
}

impl Bench {
    /// Lets an agent work until it is done, or until nothing moves any more: then its process dies.
    fn work(&self, input: AgentInput, again: bool) -> Said {
        let (mut ctx, events) = context(1_000_000 * (1 + u64::from(again)));
        let former: Option<Arc<dyn crate::runtime::runs::store::ToolLedger>> =
            if again { Some(self.book.clone()) } else { None };
        let (calls, mut lines) = CallLog::of(ctx.run_id.clone(), former);
        ctx.calls = calls;
        let mut stream = self.agent.stream(input, ctx, events);
        let mut said = Said {
            events: vec![],
            outcome: Err(AgentError::EmptyInput),
        };
        loop {
            match stream.next().now_or_never() {
                Some(Some(Ok(AgentEvent::Done(outcome)))) => said.outcome = Ok(outcome),
                Some(Some(Ok(event))) => said.events.push(event),
                Some(Some(Err(error))) => said.outcome = Err(error),
                Some(None) => return said,
                None => match lines.try_recv() {
                    Ok(line) => {
                        self.book
                            .0
                            .lock()
                            .insert(line.entry.key, line.entry.progress);
                        line.written.send(()).unwrap();
                    }
                    Err(_) => return said,
                },
            }
        }
    }

    fn dies(&self) -> Said {
        self.work(fresh(state_of([Message::human("go")])), false)
    }

    fn goes_on(&self, before: &Said) -> Said {
        self.world.hangs.store(false, Ordering::Relaxed);
        self.work(go_on(before, AgentStart::Continue), true)
    }
}

fn hang(id: &'static str, tool: &'static str) -> (&'static str, &'static str, serde_json::Value) {
    (id, tool, text("hang"))
}

#[test]
fn a_pure_call_is_made_again_and_never_written_down() {
    let bench = bench([calls([hang("a", "reads")]), Reply::Say("fine")]);
    let before = bench.dies();
    assert!(bench.book.0.lock().is_empty());
    assert_eq!(
        bench.goes_on(&before).transcript()[2..],
        ["tool:done", "ai:fine"]
    );
    assert_eq!(bench.world.count("reads"), 2);
    assert!(bench.book.0.lock().is_empty());
}

#[test]
fn a_keyed_call_is_made_again_with_the_same_key() {
    let bench = bench([calls([hang("a", "puts")]), Reply::Say("fine")]);
    let before = bench.dies();
    assert_eq!(
        bench.goes_on(&before).transcript()[2..],
        ["tool:done", "ai:fine"]
    );
    let keys = bench.world.keys("puts");
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    assert!(keys[0].len() == 64 && keys[0].bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[test]
fn an_unsafe_call_is_not_made_again_and_the_model_is_told_that_its_outcome_is_unknown() {
    let bench = bench([calls([hang("a", "sends")]), Reply::Say("fine")]);
    let before = bench.dies();
    for _ in 0..2 {
        let after = bench.goes_on(&before);
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
    assert_eq!(bench.world.count("sends"), 1);
}

#[test]
fn of_parallel_calls_those_that_ended_keep_their_results_and_only_what_is_missing_is_made() {
    let batch = [
        ("a", "sends", text("file")),
        hang("b", "sends"),
        hang("c", "puts"),
        ("d", "puts", text("x")),
        hang("e", "reads"),
    ];
    let bench = bench([calls(batch), Reply::Say("fine")]);
    let before = bench.dies();
    let after = bench.goes_on(&before);
    let said = after.transcript();
    assert_eq!(
        (&said[2][..], &said[4][..], &said[5][..], &said[6][..]),
        ("tool:made", "tool:done", "tool:done", "tool:done")
    );
    assert!(said[3].contains("outcome is unknown"));
    assert_eq!(after.state().channel("artifacts"), Some(&json!(["/f"])));
    assert_eq!(
        (
            bench.world.count("sends"),
            bench.world.count("puts"),
            bench.world.count("reads")
        ),
        (2, 3, 2)
    );
}

#[test]
fn failures_ends_and_questions_are_recorded_as_results_are() {
    let bench = bench([
        calls([
            ("a", "sends", text("fail")),
            ("b", "sends", text("ask")),
            hang("c", "reads"),
        ]),
        Reply::Say("fine"),
    ]);
    let before = bench.dies();
    let after = bench.goes_on(&before);
    assert_eq!(bench.world.count("sends"), 2);
    assert_eq!(after.last_step().next[0].interrupts[0]["value"], "which?");
    assert_eq!(
        after.transcript()[2..],
        ["tool:Error: it failed", "tool:done"]
    );

    let ending = [calls([("a", "sends", text("end run")), hang("b", "reads")])];
    let bench = self::bench(ending);
    let before = bench.dies();
    let after = bench.goes_on(&before);
    assert!(matches!(&after.outcome, Err(error) if error.name() == "Denied"));
    assert_eq!(bench.world.count("sends"), 1);
}

#[test]
fn a_call_id_that_a_model_uses_twice_names_two_calls() {
    let again = || calls([("a", "sends", text("x"))]);
    let bench = bench([
        again(),
        calls([("a", "sends", text("x")), hang("b", "reads")]),
        Reply::Say("fine"),
    ]);
    let before = bench.dies();
    assert_eq!(
        bench.goes_on(&before).transcript().last().unwrap(),
        "ai:fine"
    );
    let keys = bench.world.keys("sends");
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn arguments_that_do_not_fit_have_no_effect_to_write_down() {
    let bench = bench([
        calls([("a", "sends", json!({ "text": 5 }))]),
        Reply::Say("fine"),
    ]);
    bench.dies();
    assert!(bench.book.0.lock().is_empty());
}

#[test]
fn a_call_that_cannot_be_written_down_is_not_made() {
    let bench = bench([calls([("a", "sends", text("x"))]), Reply::Say("fine")]);
    let (mut ctx, events) = context(1);
    (ctx.calls, _) = CallLog::of(ctx.run_id.clone(), None);
    let mut stream = bench
        .agent
        .stream(fresh(state_of([Message::human("go")])), ctx, events);
    let mut failed = None;
    while let Some(Some(event)) = stream.next().now_or_never() {
        failed = event.err().or(failed);
    }
    assert!(matches!(failed, Some(error) if error.name() == "StorageError"));
    assert_eq!(bench.world.count("sends"), 0);
}

#[test]
fn what_becomes_of_a_call_follows_from_its_class_and_how_far_it_came() {
    let (started, ended) = (
        Some(CallProgress::Started),
        Some(CallProgress::Done(json!(1))),
    );
    for effect in [Effect::Pure, Effect::Keyed, Effect::Unsafe] {
        assert_eq!(verdict(effect, None), Verdict::Make);
        assert_eq!(verdict(effect, ended.clone()), Verdict::Recorded(json!(1)));
        let cut_off = if effect == Effect::Unsafe {
            Verdict::InDoubt
        } else {
            Verdict::Make
        };
        assert_eq!(verdict(effect, started.clone()), cut_off);
    }
}
