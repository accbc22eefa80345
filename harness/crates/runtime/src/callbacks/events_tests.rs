//! Tests of the journal rows of a run.

use chrono::DateTime;

use super::*;
use crate::agent::StepEvent;
use deerflow_core::clock::ManualClock;

fn journal() -> RunEventCallback {
    let clock = Arc::new(ManualClock::starting_at(
        DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
    ));
    RunEventCallback::new(
        ThreadId::parse("t").unwrap(),
        RunId::parse("r").unwrap(),
        None,
        clock,
        100,
    )
}

/// Returns `type:text` of the journaled messages.
fn messages(journal: &mut RunEventCallback) -> Vec<String> {
    let rows = journal
        .flush()
        .into_iter()
        .filter(|row| row.category == category::MESSAGE);
    let messages =
        rows.map(|row| serde_json::from_value::<Message>(row.content.into_value()).unwrap());
    messages
        .map(|message| format!("{}:{}", message.type_name(), message.content.text()))
        .collect()
}

/// Builds a state with these messages; those without an id get `h0`, `h1` and so on.
fn state_of(messages: impl IntoIterator<Item = Message>) -> ThreadState {
    let with_id = |(at, message): (u64, Message)| {
        let id = message.id.clone().unwrap_or_else(|| format!("h{at}"));
        (at + 1, message.with(|body| body.id = Some(id)))
    };
    ThreadState::restored((0..).zip(messages).map(with_id), Default::default())
}

/// Step of the agent with this state.
fn step(messages: impl IntoIterator<Item = Message>, checkpoint: bool) -> AgentEvent {
    AgentEvent::Step(StepEvent {
        node: "n".to_owned(),
        update: None,
        state: Arc::new(state_of(messages)),
        next: Vec::new(),
        machine: json!(null),
        steps: 1,
        checkpoint,
    })
}

fn answered(message: Message) -> AgentEvent {
    let caller = "lead_agent".to_owned();
    AgentEvent::ModelCall(ModelCallRecord {
        call_id: "c".to_owned(),
        caller,
        model: "m".to_owned(),
        message,
        usage: None,
        latency_ms: 1,
    })
}

#[test]
fn human_message_is_newest_of_repeated_input() {
    let mut journal = journal();
    let state = state_of([
        Message::human("old"),
        Message::ai("a"),
        Message::human("new"),
    ]);
    journal.human(&state, &["h0".to_owned(), "h1".to_owned(), "h2".to_owned()]);
    journal.write_human();
    assert_eq!(messages(&mut journal), ["human:new"]);
}

#[test]
fn completed_answer_is_journaled_once_after_cancel() {
    let mut journal = journal();
    let named = |id: &str| Message::ai(id).with(|body| body.id = Some(id.to_owned()));
    journal.on_event(&answered(named("whole")));
    journal.partial_answer(&named("whole"));
    journal.partial_answer(&named("half"));
    assert_eq!(messages(&mut journal), ["ai:whole", "ai:half"]);
    assert_eq!(journal.message_count(), 2);
}

#[test]
fn answer_is_journaled_as_changed_by_hooks() {
    let mut journal = journal();
    let named = |text: &str| Message::ai(text).with(|body| body.id = Some("a".to_owned()));
    journal.on_event(&answered(named("said")));
    journal.on_event(&step([named("said")], false));
    assert_eq!(messages(&mut journal), [""; 0], "hooks may change it");
    journal.on_event(&step([named("said, and stopped")], true));
    assert_eq!(messages(&mut journal), ["ai:said, and stopped"]);
    assert_eq!(
        journal.last_answer_excerpt().as_deref(),
        Some("said, and stopped")
    );
}

#[test]
fn removed_answer_is_only_traced() {
    let mut journal = journal();
    let named = |id: &str, text: &str| Message::ai(text).with(|body| body.id = Some(id.to_owned()));
    journal.on_event(&answered(named("empty", "")));
    journal.on_event(&step([named("empty", "")], true));
    journal.on_event(&answered(named("whole", "text")));
    journal.on_event(&step([named("empty", ""), named("whole", "text")], false));
    journal.on_event(&step([named("whole", "text")], true));
    let rows: Vec<(String, Value)> = journal
        .flush()
        .into_iter()
        .map(|row| (row.category, row.content["id"].clone()))
        .collect();
    assert_eq!(
        rows,
        [
            (category::TRACE.to_owned(), json!("empty")),
            (category::MESSAGE.to_owned(), json!("whole"))
        ]
    );
}

#[test]
fn empty_answer_is_journaled_at_run_end() {
    let mut journal = journal();
    journal.on_event(&answered(
        Message::ai("").with(|body| body.id = Some("a".to_owned())),
    ));
    journal.run_ended("success", None, &ThreadState::default());
    assert_eq!(messages(&mut journal), ["ai:"]);
}

#[test]
fn memory_context_is_journaled_once_by_digest() {
    let memory_event = || AgentEvent::MemoryShown {
        content_sha256: "abc".into(),
    };
    let mut first = journal();
    first.on_event(&memory_event());
    first.on_event(&memory_event());
    let rows = first.flush();
    assert_eq!(
        (
            rows.len(),
            rows[0].event_type.as_str(),
            rows[0].category.as_str()
        ),
        (1, "context:memory", "context")
    );
    assert_eq!(rows[0].content, json!({ "content_sha256": "abc" }));
    let mut second = journal();
    second.set_memory_written();
    second.on_event(&memory_event());
    assert_eq!(second.flush(), []);
}

#[test]
fn run_end_row_has_channels_without_messages() {
    let mut journal = journal();
    let channels = [("artifacts", json!(["/a"])), ("title", json!("A title"))]
        .map(|(name, value)| (name.to_owned(), value));
    let state = ThreadState::restored([(0, Message::ai("said"))], channels.into_iter().collect());
    journal.run_ended("interrupted", None, &state);
    let rows = journal.flush();
    assert_eq!(
        (rows[0].event_type.as_str(), rows[0].category.as_str()),
        ("run.end", category::OUTPUTS)
    );
    assert_eq!(
        rows[0].content.to_string(),
        r#"{"title":"A title","artifacts":["/a"]}"#
    );
    assert_eq!(rows[0].metadata["status"], "interrupted");
}

#[test]
fn middleware_action_has_its_own_row() {
    let mut journal = journal();
    journal.on_event(&AgentEvent::MiddlewareAction(Box::new(MiddlewareAction {
        tag: "guardrail",
        name: "GuardrailMiddleware".to_owned(),
        hook: "wrap_tool_call",
        action: "deny_tool_call",
        changes: json!({"tool_call_id": "c"}),
    })));
    let rows = journal.flush();
    assert_eq!(
        (
            rows.len(),
            rows[0].event_type.as_str(),
            rows[0].category.as_str()
        ),
        (1, "middleware:guardrail", category::MIDDLEWARE)
    );
    let expected = json!({
        "name": "GuardrailMiddleware", "hook": "wrap_tool_call", "action": "deny_tool_call", "changes": {"tool_call_id": "c"},
    });
    assert_eq!(rows[0].content, expected);
}
