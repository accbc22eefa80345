//! The complete loop: an agent over a model that replays answers.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::agents::AgentBuilder;
use crate::agents::test_support::*;
use crate::messages::{Message, MessageKind, ToolStatus};
use crate::runtime::agent::{Agent, AgentError, AgentEvent, AgentInput, AgentStart, StopKind};
use crate::runtime::runs::NodeSelector;
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{Tool, ToolContext, ToolControl, ToolError, ToolOutput};

#[derive(Debug, Deserialize, JsonSchema)]
struct Text {
    text: String,
}

/// Tool that does what its text argument specifies.
struct ScriptedTool;

impl Tool for ScriptedTool {
    type Args = Text;

    fn name(&self) -> &str {
        "obey"
    }

    fn description(&self) -> &str {
        "Does what the text says."
    }

    async fn call(&self, args: Text, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match args.text.as_str() {
            "slow" => tokio::time::sleep(Duration::from_secs(3)).await,
            "panic" => panic!("boom"),
            "fail" => return Err(ToolError::for_model("Error: it failed")),
            "end run" => {
                return Err(ToolError::EndRun {
                    name: "Denied".to_owned(),
                    message: "not allowed".to_owned(),
                });
            }
            "end" => {
                return Ok(ToolOutput {
                    control: ToolControl::End,
                    ..ToolOutput::text("ended")
                });
            }
            "never" => std::future::pending().await,
            "file" => {
                return Ok(ToolOutput {
                    update: StateUpdate::channel("artifacts", json!(["/f"])),
                    ..ToolOutput::text("made")
                });
            }
            "title" => {
                return Ok(ToolOutput {
                    update: StateUpdate::channel("title", json!("t")),
                    ..ToolOutput::text("titled")
                });
            }
            _ => {}
        }
        Ok(args.text.into())
    }
}

fn agent(replies: impl IntoIterator<Item = Reply>) -> (Arc<dyn Agent>, Arc<ReplayModel>) {
    let model = ReplayModel::new(replies);
    (
        AgentBuilder::new(model.clone())
            .system_prompt("be kind")
            .tool(ScriptedTool)
            .build(),
        model,
    )
}

fn completed(output: &RunOutput) -> bool {
    output
        .outcome
        .as_ref()
        .is_ok_and(|outcome| outcome.kind == StopKind::Completed)
}

#[tokio::test]
async fn answer_streams_tokens_and_ends_with_one_checkpoint() {
    let (agent, model) = agent([Reply::Say("hello dear world")]);
    let output = ask(&agent, "hi").await;
    assert!(completed(&output));
    assert_eq!(output.transcript(), ["human:hi", "ai:hello dear world"]);
    assert_eq!(model.requests()[0].system.as_deref(), Some("be kind"));
    let tokens: String = output
        .events
        .iter()
        .filter_map(|event| {
            if let AgentEvent::Token(chunk, _) = event {
                Some(chunk.content.as_str())
            } else {
                None
            }
        })
        .collect();
    assert_eq!(tokens, "hello dear world");
    let saved: Vec<_> = output
        .steps()
        .into_iter()
        .filter(|step| step.checkpoint)
        .map(|step| step.next.len())
        .collect();
    assert_eq!(saved, [0], "one checkpoint, with no pending task");
    let first = output.steps()[0];
    assert_eq!(
        (
            first.node.as_str(),
            first.checkpoint,
            first.next[0].name.as_str()
        ),
        ("__start__", false, "model")
    );
    assert!(
        matches!(&output.events[1], AgentEvent::Message(message, meta) if message.is_human() && meta.langgraph_node == "__start__")
    );
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_run_concurrently_with_ordered_results() {
    let slow = calls([
        ("a", "obey", text("slow")),
        ("b", "obey", text("quick")),
        ("c", "obey", text("slow")),
    ]);
    let (agent, model) = agent([slow, Reply::Say("done")]);
    let begun = tokio::time::Instant::now();
    let output = ask(&agent, "go").await;
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
    assert_eq!(
        output.transcript(),
        [
            "human:go",
            "ai:",
            "tool:slow",
            "tool:quick",
            "tool:slow",
            "ai:done"
        ]
    );
    assert_eq!(model.requests().len(), 2);
    assert_eq!(output.nodes(), ["model", "tools", "model"]);
    assert_eq!(
        output.steps().iter().filter(|step| step.checkpoint).count(),
        3
    );
}

#[tokio::test]
async fn unknown_tools_and_invalid_arguments_become_results() {
    let bad = Reply::Call(vec![
        ("a", "fly", "{}".to_owned()),
        ("b", "obey", r#"{"text": 5}"#.to_owned()),
        ("c", "obey", "{not json".to_owned()),
        ("d", "obey", r#"{"text":"panic"}"#.to_owned()),
        ("e", "obey", r#"{"text":"fail"}"#.to_owned()),
    ]);
    let (agent, model) = agent([bad, Reply::Say("sorry")]);
    let output = ask(&agent, "go").await;
    assert!(completed(&output));
    let results: Vec<&Message> = output
        .state()
        .messages()
        .iter()
        .filter(|message| message.tool_call_id().is_some())
        .collect();
    let ids: Vec<_> = results
        .iter()
        .filter_map(|message| message.tool_call_id())
        .collect();
    assert_eq!(
        ids,
        ["a", "b", "d", "e", "c"],
        "readable calls, then the unreadable"
    );
    let texts: Vec<String> = results
        .iter()
        .map(|message| message.content.text())
        .collect();
    for (text, part) in texts.iter().zip([
        "the tools are: obey",
        "text: invalid type",
        "panic",
        "it failed",
        "could not be read",
    ]) {
        assert!(text.starts_with("Error") && text.contains(part), "{text}");
    }
    assert!(results.iter().all(|message| matches!(
        &message.kind,
        MessageKind::Tool {
            status: ToolStatus::Error,
            ..
        }
    )));
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn endless_calls_hit_the_recursion_limit_and_are_saved() {
    let (agent, model) = agent([calls([("a", "obey", text("again"))])]);
    let input = fresh(state_of([Message::human("go")]));
    let output = run(&agent, input, |ctx| ctx.recursion_limit = 7).await;
    assert!(matches!(output.outcome, Err(AgentError::RecursionLimit(7))));
    assert_eq!(model.requests().len(), 4);
    let (state, machine) = output.saved();
    assert_eq!(state.messages().len(), 1 + 7);
    assert!(machine.is_some());
}

#[tokio::test]
async fn tool_ends_the_run_after_its_siblings() {
    let (well, _) = agent([calls([
        ("a", "obey", text("end")),
        ("b", "obey", text("other")),
    ])]);
    let output = ask(&well, "go").await;
    assert!(completed(&output));
    assert_eq!(output.transcript()[2..], ["tool:ended", "tool:other"]);
    let (badly, _) = agent([calls([
        ("a", "obey", text("end run")),
        ("b", "obey", text("other")),
    ])]);
    let output = ask(&badly, "go").await;
    assert!(
        matches!(&output.outcome, Err(error) if error.name() == "Denied" && error.to_string() == "not allowed")
    );
    assert_eq!(output.transcript()[2..], ["tool:not allowed", "tool:other"]);
    assert!(output.last_step().checkpoint);
}

#[tokio::test]
async fn parallel_tool_updates_are_reduced() {
    let (union, _) = agent([
        calls([("a", "obey", text("file")), ("b", "obey", text("file"))]),
        Reply::Say("ok"),
    ]);
    assert_eq!(
        ask(&union, "go").await.state().channel("artifacts"),
        Some(&json!(["/f"]))
    );
    let (clash, _) = agent([calls([
        ("a", "obey", text("title")),
        ("b", "obey", text("title")),
    ])]);
    assert!(matches!(
        ask(&clash, "go").await.outcome,
        Err(AgentError::State(_))
    ));
}

#[tokio::test]
async fn breakpoint_stops_before_its_node_and_resumes() {
    let (agent, model) = agent([calls([("a", "obey", text("x"))]), Reply::Say("done")]);
    let stop = |ctx: &mut crate::runtime::agent::RunContext| {
        ctx.interrupt_before = NodeSelector::Named(vec!["tools".to_owned()])
    };
    let output = run(&agent, fresh(state_of([Message::human("go")])), stop).await;
    assert_eq!(output.outcome.as_ref().unwrap().kind, StopKind::Breakpoint);
    assert_eq!(output.last_step().next[0].name, "tools");
    let id = output.last_step().next[0].id.clone();
    let more = run(&agent, resume_input(&output, AgentStart::Continue), stop).await;
    assert!(completed(&more));
    assert_eq!(more.transcript(), ["human:go", "ai:", "tool:x", "ai:done"]);
    assert_eq!(
        more.steps()[0].next[0].id,
        id,
        "the task id is stable while the task is pending"
    );
    assert_eq!(model.requests().len(), 2);
    let after = run(&agent, fresh(state_of([Message::human("go")])), |ctx| {
        ctx.interrupt_after = NodeSelector::All
    })
    .await;
    assert!(completed(&after), "no task is pending after the last node");
}

#[tokio::test]
async fn resume_without_pending_task_changes_nothing() {
    let (agent, model) = agent([Reply::Say("done")]);
    let output = ask(&agent, "hi").await;
    let more = run(&agent, resume_input(&output, AgentStart::Continue), |_| {}).await;
    assert!(completed(&more) && more.events.is_empty());
    let mut input = fresh(ThreadState::default());
    input.start = AgentStart::Continue;
    assert!(matches!(
        run(&agent, input, |_| {}).await.outcome,
        Err(AgentError::EmptyInput)
    ));
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn externally_written_state_determines_the_next_node() {
    let go_on_with = async |messages: Vec<Message>, replies: Vec<Reply>| {
        let (agent, _) = agent(replies);
        let input = AgentInput {
            start: AgentStart::Continue,
            ..fresh(state_of(messages))
        };
        let output = run(&agent, input, |_| {}).await;
        assert!(completed(&output));
        if output.events.is_empty() {
            vec![]
        } else {
            output.transcript()
        }
    };
    let called = ask(
        &agent([calls([("a", "obey", text("x"))]), Reply::Say("-")]).0,
        "go",
    )
    .await
    .state()
    .messages()[..2]
        .to_vec();
    let result = Message::tool(&called[1].tool_calls()[0], "given", ToolStatus::Success);
    let done = || vec![Reply::Say("done")];
    assert_eq!(
        go_on_with(called.clone(), done()).await,
        ["human:go", "ai:", "tool:x", "ai:done"]
    );
    let answered = [called.clone(), vec![result.clone()]].concat();
    assert_eq!(
        go_on_with(answered.clone(), done()).await,
        ["human:go", "ai:", "tool:given", "ai:done"]
    );
    let requests = [called.clone(), vec![Message::human("and?")]].concat();
    assert_eq!(
        go_on_with(requests, done()).await,
        ["human:go", "ai:", "human:and?", "ai:done"]
    );
    let card = result.with(|body| {
        if let MessageKind::Tool { artifact, .. } = &mut body.kind {
            *artifact = json!({ "human_input": {} });
        }
    });
    let waiting = [called, vec![card]].concat();
    assert!(
        go_on_with(waiting, done()).await.is_empty(),
        "the user is to speak"
    );
}

#[tokio::test]
async fn saved_machine_of_another_agent_is_rejected() {
    let (agent, _) = agent([Reply::Say("done")]);
    let output = ask(&agent, "hi").await;
    for machine in [
        json!(null),
        json!({"at": "x"}),
        json!({"version": 1, "at": "Gone.before_model", "seed": uuid::Uuid::nil(), "serial": 0}),
    ] {
        let mut input = resume_input(&output, AgentStart::Continue);
        input.machine = Some(machine);
        assert!(matches!(
            run(&agent, input, |_| {}).await.outcome,
            Err(AgentError::Resume(_))
        ));
    }
}

#[tokio::test]
async fn model_failure_fails_the_run_with_its_message() {
    let (agent, _) = agent([Reply::Cut("half an ans")]);
    let output = ask(&agent, "hi").await;
    assert!(
        matches!(&output.outcome, Err(AgentError::Model { message }) if message.contains("stream ended"))
    );
    assert!(
        output
            .events
            .iter()
            .any(|event| matches!(event, AgentEvent::ModelError { .. }))
    );
    assert_eq!(
        output.last_step().next[0].name,
        "model",
        "the model call is still pending"
    );
}

#[tokio::test]
async fn thread_can_resume_after_a_drop_in_a_tool() {
    use futures_util::StreamExt;
    let (agent, _) = agent([calls([("a", "obey", text("never"))])]);
    let (ctx, events) = context(1);
    let mut stream = agent.stream(fresh(state_of([Message::human("go")])), ctx, events);
    let mut saved = None;
    loop {
        match stream.next().await.unwrap().unwrap() {
            AgentEvent::Step(step) if step.checkpoint => saved = Some(step),
            AgentEvent::ToolStart { .. } => break,
            _ => {}
        }
    }
    drop(stream);
    let saved = saved.unwrap();
    assert_eq!(saved.next[0].name, "tools");
    let mut input = fresh(ThreadState::clone(&saved.state));
    input.start = AgentStart::Continue;
    input.machine = Some(saved.machine);
    let model = ReplayModel::new([Reply::Say("done")]);
    let other: Arc<dyn Agent> = AgentBuilder::new(model).build();
    let output = run(&other, input, |_| {}).await;
    assert!(completed(&output));
    assert!(output.transcript()[2].contains("is not a tool"));
}
