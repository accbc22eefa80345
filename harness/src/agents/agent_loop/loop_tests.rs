//! The complete loop: an agent over a model that replays answers.

#[path = "loop_resume_tests.rs"]
mod resume;

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
    let started = tokio::time::Instant::now();
    let output = ask(&agent, "go").await;
    assert_eq!(started.elapsed(), Duration::from_secs(3));
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
