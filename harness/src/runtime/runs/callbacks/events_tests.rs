//! The journal of a run: which messages it holds, and that it holds each once.

use chrono::DateTime;

use super::*;
use crate::clock::ManualClock;
use crate::runtime::agent::StepEvent;

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

/// `type:text` of the journaled messages.
fn messages(journal: &mut RunEventCallback) -> Vec<String> {
    let rows = journal
        .flush()
        .into_iter()
        .filter(|row| row.category == category::MESSAGE);
    let messages = rows.map(|row| serde_json::from_value::<Message>(row.content).unwrap());
    messages
        .map(|message| format!("{}:{}", message.type_name(), message.content.text()))
        .collect()
}

/// A state with these messages, ids `h0`, `h1`, ... where they have none.
fn state_of(messages: impl IntoIterator<Item = Message>) -> ThreadState {
    let with_id = |(at, message): (u64, Message)| {
        let id = message.id.clone().unwrap_or_else(|| format!("h{at}"));
        (at + 1, message.with(|body| body.id = Some(id)))
    };
    ThreadState::restored((0..).zip(messages).map(with_id), Default::default())
}

/// The thread after a step of the agent.
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
fn the_question_is_the_newest_also_when_a_client_sends_the_ones_before_again() {
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
fn an_answer_that_came_to_its_end_before_a_cancel_is_journaled_once() {
    let mut journal = journal();
    let named = |id: &str| Message::ai(id).with(|body| body.id = Some(id.to_owned()));
    journal.hear(&answered(named("whole")));
    journal.partial_answer(&named("whole"));
    journal.partial_answer(&named("half"));
    assert_eq!(messages(&mut journal), ["ai:whole", "ai:half"]);
    assert_eq!(journal.message_count(), 2);
}

#[test]
fn an_answer_reads_as_the_guards_behind_the_model_left_it() {
    let mut journal = journal();
    let named = |text: &str| Message::ai(text).with(|body| body.id = Some("a".to_owned()));
    journal.hear(&answered(named("said")));
    journal.hear(&step([named("said")], false));
    assert_eq!(messages(&mut journal), [""; 0], "guards may change it");
    journal.hear(&step([named("said, and stopped")], true));
    assert_eq!(messages(&mut journal), ["ai:said, and stopped"]);
    assert_eq!(
        journal.last_answer_text().as_deref(),
        Some("said, and stopped")
    );
}

#[test]
fn an_answer_that_a_guard_took_back_is_traced_only() {
    let mut journal = journal();
    let named = |id: &str, text: &str| Message::ai(text).with(|body| body.id = Some(id.to_owned()));
    journal.hear(&answered(named("empty", "")));
    journal.hear(&step([named("empty", "")], true));
    journal.hear(&answered(named("whole", "text")));
    journal.hear(&step([named("empty", ""), named("whole", "text")], false));
    journal.hear(&step([named("whole", "text")], true));
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
fn an_answer_without_a_word_that_stays_is_journaled_at_the_end() {
    let mut journal = journal();
    journal.hear(&answered(
        Message::ai("").with(|body| body.id = Some("a".to_owned())),
    ));
    journal.run_ended("success", None, &ThreadState::default());
    assert_eq!(messages(&mut journal), ["ai:"]);
}

#[test]
fn the_memory_that_a_run_is_shown_is_journaled_once_by_its_digest() {
    let shown = || AgentEvent::MemoryShown {
        content_sha256: "abc".into(),
    };
    let mut first = journal();
    first.hear(&shown());
    first.hear(&shown());
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
    second.memory_is_written();
    second.hear(&shown());
    assert_eq!(second.flush(), []);
}

#[test]
fn the_end_says_what_the_run_reached_besides_messages() {
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
fn what_a_middleware_does_about_a_call_has_a_row_of_its_own() {
    let mut journal = journal();
    journal.hear(&AgentEvent::MiddlewareAction(Box::new(MiddlewareAction {
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
