//! Tasks under the whole runtime: a lead agent, its subagents, the scripted model, and memory stores.

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
use crate::runtime::memory::{MemoryOptions, MemoryStreamBridge, runtime_in_memory};
use crate::runtime::runs::store::EventQuery;
use crate::runtime::runs::{
    CancelAction, RunConfig, RunInput, RunLimits, RunRecord, RunSpec, RunStatus, RunStream,
    RunsFacade, RuntimeParts, StreamMode,
};
use crate::runtime::stream_bridge::StreamItem;
use crate::runtime::tasks::Tasks;
use crate::tools::{Effect, Tool, ToolContext, ToolControl, ToolError, ToolOutput, ToolRegistry};

/// What the tool does, and what of it outlives a process.
#[derive(Debug, Default)]
struct World {
    /// Once a process has died, nothing hangs any more.
    healed: AtomicBool,
    hanging: Notify,
    /// Calls under way.
    at_work: AtomicUsize,
    looks: Mutex<Vec<String>>,
}

/// Looks at something, or never comes back.
struct Look(Arc<World>);

#[derive(Debug, Deserialize, JsonSchema)]
struct LookArgs {
    at: String,
    #[serde(default)]
    hang: bool,
}

/// Asks a person once.
struct Asking;

#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

impl Tool for Asking {
    type Args = Nothing;

    fn name(&self) -> &str {
        "asking"
    }

    fn description(&self) -> &str {
        "Asks."
    }

    async fn call(&self, _args: Nothing, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(match ctx.answers.first() {
            None => ToolOutput::only(ToolControl::Ask(json!("which?"))),
            Some(answer) => answer.to_string().into(),
        })
    }
}

struct AtWork<'a>(&'a AtomicUsize);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Tool for Look {
    type Args = LookArgs;

    fn name(&self) -> &str {
        "look"
    }

    fn description(&self) -> &str {
        "Looks at something."
    }

    fn effect(&self, _args: &LookArgs) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: LookArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let world = &self.0;
        world.at_work.fetch_add(1, Ordering::SeqCst);
        let _at_work = AtWork(&world.at_work);
        world.looks.lock().push(args.at.clone());
        if args.hang && !world.healed.load(Ordering::SeqCst) {
            world.hanging.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(format!("seen {}", args.at).into())
    }
}

struct House {
    world: Arc<World>,
    runs: RunsFacade,
}

fn process(parts: RuntimeParts) -> RunsFacade {
    let bridge = Arc::new(MemoryStreamBridge::new(MemoryOptions::default()).unwrap());
    RunsFacade::new(
        RuntimeParts {
            bridge,
            tasks: Tasks::new(),
            ..parts
        },
        RunLimits::default(),
    )
}

/// A lead agent with the tool `look`, and this `subagents` section.
fn house(section: Value) -> House {
    let world = Arc::<World>::default();
    let models =
        ModelCatalog::new([], Arc::new(SystemClock)).with_model(Arc::new(ScriptedModel::default()));
    let spec = LeadAgentSpec {
        tools: ToolRegistry::new().with(Look(world.clone())).with(Asking),
        guards: Guards {
            subagents: serde_json::from_value(section).unwrap(),
            ..Guards::default()
        },
        ..LeadAgentSpec::new(Arc::new(models))
    };
    let agents = StaticResolver::new().with(LEAD_AGENT, LeadAgents::new(spec));
    House {
        world,
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

/// What has the lead agent hand out these tasks in one answer, then answer. Its own calls cost 100 and 10.
fn hand_out<const N: usize>(tasks: [Value; N]) -> RunSpec {
    let calls: Vec<Value> = tasks
        .into_iter()
        .map(|args| json!({"name": "task", "args": args}))
        .collect();
    ask(&format!(
        "[[usage 100,10]] [[tools:{}]] then say done",
        Value::from(calls)
    ))
}

fn ask(script: &str) -> RunSpec {
    let options = json!({"subagent_enabled": true})
        .as_object()
        .unwrap()
        .clone();
    RunSpec {
        config: RunConfig {
            options,
            ..RunConfig::default()
        },
        stream_modes: [StreamMode::Custom, StreamMode::MessagesTuple]
            .into_iter()
            .collect(),
        ..RunSpec::ask(LEAD_AGENT, thread(), Message::human(script))
    }
}

/// What a run with subagents came to.
struct Told {
    run: RunId,
    /// The events by which viewers follow subagents.
    news: Vec<Value>,
    /// Pieces of messages that viewers were shown.
    pieces: usize,
}

async fn told(record: RunRecord, stream: RunStream) -> Told {
    let mut told = Told {
        run: record.run_id,
        news: Vec::new(),
        pieces: 0,
    };
    let items: Vec<StreamItem> = stream.items.collect().await;
    for item in items {
        let StreamItem::Event(event) = item else {
            continue;
        };
        match &*event.event {
            "custom" => told
                .news
                .push(serde_json::from_slice(&event.data.into_bytes()).unwrap()),
            "messages" => told.pieces += 1,
            _ => {}
        }
    }
    told
}

impl Told {
    /// `type` of the news of one call, or of all.
    fn types(&self, task: Option<&str>) -> Vec<&str> {
        let of_task = self
            .news
            .iter()
            .filter(|news| task.is_none_or(|task| news["task_id"] == task));
        of_task.map(|news| news["type"].as_str().unwrap()).collect()
    }
}

impl House {
    async fn follow(&self, spec: RunSpec) -> Told {
        let (record, stream) = self
            .runs
            .create_and_stream(spec, Duration::from_secs(60))
            .await
            .unwrap();
        told(record, stream).await
    }

    async fn record(&self, run: &RunId) -> RunRecord {
        self.runs
            .parts()
            .query
            .get(run, &Owner::None)
            .await
            .unwrap()
            .unwrap()
    }

    async fn messages(&self) -> Vec<Message> {
        self.runs
            .parts()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap()
            .state
            .messages()
            .to_vec()
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
            .runs
            .parts()
            .events
            .list(&thread(), &query, &Owner::None)
            .await
            .unwrap();
        rows.into_iter()
            .map(|row| (row.event.event_type, row.event.content))
            .collect()
    }
}

/// Looks once, then answers; both model calls cost 11 and 7.
const LOOK: &str = r#"[[usage 11,7]] [[tool:look {"at":"a"}]] then say found it"#;

#[tokio::test]
async fn a_task_is_told_step_by_step_and_counted_once() {
    let house = house(json!({}));
    let told = house.follow(hand_out([task(LOOK)])).await;
    let kinds = [
        "task_started",
        "task_running",
        "task_running",
        "task_running",
        "task_completed",
    ];
    assert_eq!(told.types(None), kinds);
    let result = house.results().await.remove(0);
    let call = result.tool_call_id().unwrap();
    assert!(
        told.news
            .iter()
            .all(|news| news["task_id"] == call && news["model_name"] == "scripted")
    );
    assert_eq!(told.news[0]["description"], "a part");
    let indices: Vec<_> = told.news[1..4]
        .iter()
        .map(|news| {
            (
                news["message_index"].as_u64(),
                news["total_messages"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        indices,
        [(Some(1), Some(1)), (Some(2), Some(2)), (Some(3), Some(3))]
    );
    let said: Vec<&str> = told.news[1..4]
        .iter()
        .map(|news| news["message"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["ai", "tool", "ai"]);
    assert_eq!(told.news[1]["message"]["tool_calls"][0]["name"], "look");
    let usage = |total: u64| json!({"input_tokens": total / 18 * 11, "output_tokens": total / 18 * 7, "total_tokens": total});
    assert_eq!(
        (&told.news[1]["usage"], &told.news[3]["usage"]),
        (&usage(18), &usage(36))
    );
    assert_eq!(
        (&told.news[4]["result"], &told.news[4]["usage"]),
        (&json!("found it"), &usage(36))
    );

    assert_eq!(result.content.text(), "Task Succeeded. Result: found it");
    assert_eq!(result.additional_kwargs["subagent_token_usage"], usage(36));
    let done = house.record(&told.run).await.completion;
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
    let dispatching = house.messages().await[1].clone();
    assert_eq!(
        dispatching.usage().map(|usage| usage.total_tokens),
        Some(110 + 36),
        "as the interface shows costs"
    );
    assert!(dispatching.flag(kwargs::SUBAGENT_USAGE_ATTRIBUTED));
}

#[tokio::test]
async fn viewers_of_messages_get_nothing_from_inside() {
    let house = house(json!({}));
    let told = house
        .follow(hand_out([task("then say a b c d e f g h")]))
        .await;
    assert!((1..12).contains(&told.pieces), "{}", told.pieces);
    let texts: Vec<String> = house
        .messages()
        .await
        .iter()
        .map(|message| message.content.text())
        .collect();
    assert_eq!(
        texts.len(),
        4,
        "the thread keeps the result alone: {texts:?}"
    );
}

#[tokio::test]
async fn the_journal_has_the_steps_of_a_task_apart_from_the_conversation() {
    let house = house(json!({}));
    house.follow(hand_out([task(LOOK)])).await;
    let rows = house.rows("subagent").await;
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
    assert_eq!(house.rows("message").await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn tasks_beyond_the_limit_are_left_out_and_the_others_run_side_by_side() {
    let house = house(json!({"max_running": 1}));
    let slow = task(&format!("[[delay 10]] {LOOK}"));
    let told = house
        .follow(hand_out([
            slow.clone(),
            slow.clone(),
            slow.clone(),
            slow.clone(),
            slow,
        ]))
        .await;
    let results = house.results().await;
    assert_eq!(results.len(), 3);
    assert_eq!(
        told.types(None)[..3],
        ["task_started"; 3],
        "all are told of before the first is at work"
    );
    let ended: Vec<usize> = (0..told.news.len())
        .filter(|at| told.news[*at]["type"] == "task_completed")
        .collect();
    let first_words: Vec<usize> = (0..told.news.len())
        .filter(|at| told.news[*at]["message_index"] == 1)
        .collect();
    assert!(
        ended[0] < first_words[1] && ended[1] < first_words[2],
        "there is room for one at a time"
    );
    let order: Vec<&Value> = results
        .iter()
        .map(|result| &result.additional_kwargs["subagent_status"])
        .collect();
    assert_eq!(order, ["completed"; 3]);
    let done = house.record(&told.run).await.completion;
    assert_eq!(
        (done.subagent_tokens, done.lead_agent_tokens),
        (3 * 36, 220)
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_a_subagent_at_once_and_leaves_nothing_at_work() {
    let house = house(json!({}));
    let hang = r#"[[tool:look {"at":"a","hang":true}]]"#;
    let (record, stream) = house
        .runs
        .create_and_stream(hand_out([task(hang), task(LOOK)]), Duration::from_secs(60))
        .await
        .unwrap();
    house.world.hanging.notified().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    house
        .runs
        .cancel(None, &record.run_id, CancelAction::Interrupt, true)
        .await
        .unwrap();
    assert_eq!(house.world.at_work.load(Ordering::SeqCst), 0);
    let told = told(record, stream).await;
    let ends: Vec<&str> = told
        .types(None)
        .into_iter()
        .filter(|kind| !matches!(*kind, "task_started" | "task_running"))
        .collect();
    assert_eq!(ends, ["task_completed", "task_cancelled"]);
    let last = house.rows("subagent").await.pop().unwrap();
    assert_eq!(
        (last.0.as_str(), &last.1["status"]),
        ("subagent.end", &json!("cancelled"))
    );
    let ended = house.record(&told.run).await;
    assert_eq!(
        (ended.status, ended.completion.subagent_tokens > 36),
        (RunStatus::Interrupted, true),
        "what was spent stays counted"
    );
    let next = house.follow(ask("then say better")).await;
    assert_eq!(house.record(&next.run).await.status, RunStatus::Success);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_takes_too_long_is_stopped_and_the_run_goes_on() {
    let house = house(json!({"agents": {"general-purpose": {"timeout_seconds": 5}}}));
    let told = house
        .follow(hand_out([
            task(r#"[[usage 11,7]] [[tool:look {"at":"a","hang":true}]]"#),
            task(LOOK),
        ]))
        .await;
    let results = house.results().await;
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
    let of_first = told.types(results[0].tool_call_id());
    assert_eq!(of_first, ["task_started", "task_running", "task_timed_out"]);
    assert_eq!(house.world.at_work.load(Ordering::SeqCst), 0);
    let ended = house.record(&told.run).await;
    assert_eq!(
        (ended.status, ended.completion.subagent_tokens),
        (RunStatus::Success, 18 + 36)
    );
}

#[tokio::test]
async fn a_task_without_turns_left_gives_what_it_has() {
    let house = house(
        json!({"custom_agents": {"brief": {"description": "d", "system_prompt": "p", "max_turns": 9}}}),
    );
    let looking = r#"[[tool:look {"at":"a"}]] [[tool:look {"at":"b"}]] [[tool:look {"at":"c"}]] [[tool:look {"at":"d"}]]"#;
    let brief =
        json!({"description": "d", "prompt": looking, "subagent_type": "brief", "max_turns": 900});
    let told = house
        .follow(hand_out([brief, json!({"description": "d", "prompt": "then say hi", "subagent_type": "brief", "max_turns": 1})]))
        .await;
    let results = house.results().await;
    for result in &results {
        assert_eq!(
            result.content.text(),
            "Task failed. Error: it used up its turns before it had a result"
        );
    }
    assert!(
        (1..4).contains(&house.world.looks.lock().len()),
        "no more turns than its kind has"
    );
    assert_eq!(
        told.types(results[0].tool_call_id()).last(),
        Some(&"task_failed")
    );
    assert_eq!(house.record(&told.run).await.status, RunStatus::Success);
}

#[tokio::test]
async fn a_task_that_has_spent_its_tokens_is_brought_to_its_end() {
    let house = house(json!({"token_budget": {"max_tokens": 1_000}}));
    let costly = r#"[[usage 500,100]] [[tool:look {"at":"a"}]] [[tool:look {"at":"b"}]] [[tool:look {"at":"c"}]] then say too late"#;
    let told = house.follow(hand_out([task(costly)])).await;
    let result = house.results().await.remove(0);
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
    assert_eq!(house.world.looks.lock().len(), 1);
    let ended = house.record(&told.run).await;
    assert_eq!(
        (ended.completion.subagent_tokens, ended.stop_reason),
        (1_200, None),
        "the run itself has not been stopped"
    );
}

#[tokio::test]
async fn a_task_in_which_a_person_is_asked_goes_on_with_the_answer() {
    let house = house(json!({}));
    let asking = house
        .follow(hand_out([task(
            "[[usage 11,7]] [[tool:asking {}]] then say thanks",
        )]))
        .await;
    assert_eq!(
        asking.types(None),
        ["task_started", "task_running"],
        "it has not ended"
    );
    assert!(house.results().await.is_empty());
    let answered = house
        .follow(RunSpec {
            input: RunInput::Resume(json!("red")),
            ..hand_out([])
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
    assert_eq!(answered.news[1]["message"]["content"], "\"red\"");
    let result = house.results().await.remove(0);
    assert_eq!(result.content.text(), "Task Succeeded. Result: thanks");
    assert_eq!(
        result.additional_kwargs["subagent_token_usage"]["total_tokens"], 36,
        "of both runs"
    );
    let counts = [
        house.record(&asking.run).await.completion.subagent_tokens,
        house.record(&answered.run).await.completion.subagent_tokens,
    ];
    assert_eq!(counts, [18, 18]);
}

#[tokio::test]
async fn a_task_whose_model_fails_is_a_result_for_the_lead_agent() {
    let house = house(json!({}));
    let told = house.follow(hand_out([task("[[error 401]]")])).await;
    let result = house.results().await.remove(0);
    assert!(
        result.content.text().starts_with("Task failed. Error: "),
        "{result:?}"
    );
    assert_eq!(told.types(None).last(), Some(&"task_failed"));
    let ended = house.record(&told.run).await;
    assert_eq!(
        (ended.status, ended.completion.last_ai_message.as_deref()),
        (RunStatus::Success, Some("done"))
    );
}

#[tokio::test]
async fn a_kind_that_there_is_not_is_answered_with_those_there_are() {
    let house = house(json!({}));
    let bash = json!({"description": "d", "prompt": "p", "subagent_type": "bash"});
    let told = house
        .follow(hand_out([
            bash,
            json!({"description": "d", "prompt": " ", "subagent_type": "general-purpose"}),
        ]))
        .await;
    assert_eq!(told.news, [] as [Value; 0]);
    let texts: Vec<String> = house
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
async fn runs_that_do_not_ask_for_subagents_have_none() {
    for (section, wants) in [(json!({}), false), (json!({"enabled": false}), true)] {
        let house = house(section);
        let mut spec = hand_out([task(LOOK)]);
        spec.config
            .options
            .insert("subagent_enabled".to_owned(), wants.into());
        house.follow(spec).await;
        assert!(
            house.results().await.is_empty(),
            "the model is not offered the tool"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_takes_a_run_over_has_its_subagents_go_on() {
    let house = house(
        json!({"custom_agents": {"brief": {"description": "d", "system_prompt": "p", "max_turns": 1}}}),
    );
    let hang = r#"[[usage 11,7]] [[tool:look {"at":"first"}]] [[tool:look {"at":"second","hang":true}]] then say went on"#;
    let capped = json!({"description": "d", "prompt": LOOK, "subagent_type": "brief"});
    let run = house
        .runs
        .create_background(hand_out([task(LOOK), task(hang), capped]))
        .await
        .unwrap();
    house.world.hanging.notified().await;
    // What the others came to is durable when nothing is left to do but wait.
    tokio::time::sleep(Duration::from_secs(1)).await;
    house.world.healed.store(true, Ordering::SeqCst);
    house.runs.parts().tasks.token().cancel();
    let next = House {
        world: house.world.clone(),
        runs: process(house.runs.parts().clone()),
    };
    assert_eq!(next.runs.recover().await.unwrap(), 1);
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
    let mut looks = next.world.looks.lock().clone();
    looks.sort();
    assert_eq!(
        looks,
        ["a", "first", "second", "second"],
        "only the call that was cut off is made again"
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
