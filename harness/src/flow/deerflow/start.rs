//! Start of the nested agent of a turn: a new prompt, or the answer to its question. Pure.

use serde_json::{Value, json};

use super::result::clarification;
use crate::flow::adapter::{AgentInvocation, TurnRole};
use crate::messages::Message;
use crate::runtime::checkpoint::NestedState;
use crate::state::StateUpdate;

/// Start of the nested agent.
#[derive(Debug)]
pub(super) struct TurnStart<'a> {
    /// First state update, unless `saved` is resumed.
    pub(super) initial: StateUpdate,
    pub(super) saved: Option<&'a NestedState>,
    /// Answers to the questions of the agent so far. The consumed ones are null, because the agent
    /// does not read them again.
    pub(super) answers: Vec<Value>,
}

impl<'a> TurnStart<'a> {
    /// Decides the start of a turn. `answered` is the number of answers that the saved agent has
    /// consumed.
    pub(super) fn of(
        turn: &AgentInvocation,
        saved: Option<&'a NestedState>,
        answered: usize,
    ) -> Self {
        let answer = turn.answer.as_ref();
        let Some(saved) = saved else {
            return Self::fresh(
                turn,
                prompt_messages(turn).chain(answer.map(answer_message)),
            );
        };
        // A clarification ends the agent: the answer is its next message.
        let asked = saved.next.is_empty() && clarification(saved.state.messages()).is_some();
        match answer.filter(|_| asked) {
            Some(answer) => {
                let former = saved.state.messages().iter().cloned();
                Self::fresh(turn, former.chain([answer_message(answer)]))
            }
            None => Self {
                initial: StateUpdate::default(),
                saved: Some(saved),
                answers: vec![Value::Null; answered]
                    .into_iter()
                    .chain(answer.cloned())
                    .collect(),
            },
        }
    }

    /// Starts with these messages. The title prevents a model call that creates one.
    fn fresh(turn: &AgentInvocation, messages: impl Iterator<Item = Message>) -> Self {
        Self {
            initial: StateUpdate::messages(messages).and("title", json!(turn.node_id)),
            saved: None,
            answers: Vec::new(),
        }
    }
}

/// Returns `true` if the saved agent waits for an answer.
pub(super) fn has_question(saved: &NestedState) -> bool {
    saved.next.iter().any(|task| !task.interrupts.is_empty())
}

/// Returns the earlier turns and the prompt of this one.
fn prompt_messages(turn: &AgentInvocation) -> impl Iterator<Item = Message> {
    let repeated = usize::from(turn.history_has_prompt());
    let former = &turn.messages[..turn.messages.len() - repeated];
    let former = former.iter().map(|message| match message.role {
        TurnRole::User => Message::human(message.content.as_str()),
        TurnRole::Assistant => Message::ai(message.content.as_str()),
    });
    former.chain([Message::human(prompt(turn))])
}

/// Returns the system part, the user part and the instruction of the output, without empty parts.
fn prompt(turn: &AgentInvocation) -> String {
    let instruction = turn.expected_output.as_ref().map(|expected| {
        let name = &expected.schema_ref;
        match &expected.schema {
            Some(schema) => format!(
                "End your answer with one JSON object, the {name}, that matches this JSON \
                 Schema:\n{schema}"
            ),
            None => format!("End your answer with one JSON object: the {name}."),
        }
    });
    let parts = [turn.system_prompt.trim(), turn.user_prompt.trim()];
    let parts = parts.into_iter().chain(instruction.as_deref());
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

fn answer_message(answer: &Value) -> Message {
    Message::human(match answer {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}
