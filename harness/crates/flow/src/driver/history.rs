//! Histories of sessions, bounded by the memory policy of the agent.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use deerflow_core::messages::{Content, Message};

use crate::adapter::{TurnMessage, TurnRole};
use crate::compiled::EffectiveAgent;
use crate::schema::MemoryScope;

const MAX_ITEMS: usize = 50;
const MAX_BYTES: usize = 64 << 10;

/// Messages of earlier turns by agent id, the oldest first. A human message is the prompt of a
/// turn.
pub type Histories = HashMap<String, VecDeque<Message>>;

/// Returns the messages that a turn receives: those of the thread, if the agent sees them, then
/// those of its session.
pub(super) fn messages_of(
    agent: &EffectiveAgent,
    thread: &[TurnMessage],
    session: &VecDeque<Message>,
) -> Arc<[TurnMessage]> {
    if is_off(agent) || (session.is_empty() && thread.is_empty()) {
        return Arc::from([]);
    }
    let (max_items, max_bytes) = bounds(agent);
    let session = session.iter().rev().map(turn_message);
    let session = session.filter(|_| sees(agent, MemoryScope::Run));
    let thread = thread.iter().rev().cloned();
    let thread = thread.filter(|_| sees(agent, MemoryScope::Session));
    let mut bytes = 0;
    let mut chosen: Vec<TurnMessage> = session
        .chain(thread)
        .take(max_items)
        .take_while(|message| {
            bytes += message.content.len();
            bytes <= max_bytes
        })
        .collect();
    chosen.reverse();
    chosen.into()
}

/// Adds a completed turn to a history, and removes messages that no later turn receives. Returns
/// the new messages; none if the agent sees no history.
pub(super) fn add_turn(
    agent: &EffectiveAgent,
    session: &mut VecDeque<Message>,
    user: String,
    assistant: String,
) -> Option<[Message; 2]> {
    if is_off(agent) || !sees(agent, MemoryScope::Run) {
        return None;
    }
    let turn = [Message::human(user), Message::ai(assistant)];
    session.extend(turn.iter().cloned());
    let (max_items, max_bytes) = bounds(agent);
    // The message that exceeds the limit stays, because it ends what turns receive.
    let mut bytes = 0;
    let received = session.iter().rev().take_while(|message| {
        let starts_within = bytes <= max_bytes;
        bytes += bytes_of(message);
        starts_within
    });
    let kept = received.count().min(max_items).max(turn.len());
    session.drain(..session.len().saturating_sub(kept));
    Some(turn)
}

fn bytes_of(message: &Message) -> usize {
    match &message.content {
        Content::Text(text) => text.len(),
        blocks @ Content::Blocks(_) => blocks.text().len(),
    }
}

fn turn_message(message: &Message) -> TurnMessage {
    TurnMessage {
        role: if message.is_human() {
            TurnRole::User
        } else {
            TurnRole::Assistant
        },
        content: message.content.text(),
    }
}

fn sees(agent: &EffectiveAgent, scope: MemoryScope) -> bool {
    match &agent.memory_policy.visible_scopes {
        Some(scopes) => scopes.contains(&scope),
        None => scope == MemoryScope::Run,
    }
}

/// Reports whether the agent works without earlier messages.
fn is_off(agent: &EffectiveAgent) -> bool {
    let history = agent.adapter_config.get("history");
    history.and_then(|value| value.as_str()) == Some("none")
}

fn bounds(agent: &EffectiveAgent) -> (usize, usize) {
    let policy = &agent.memory_policy;
    let bounded = |value: Option<u64>, default: usize| {
        value.map_or(default, |value| usize::try_from(value).unwrap_or(default))
    };
    (
        bounded(policy.max_items, MAX_ITEMS),
        bounded(policy.max_bytes, MAX_BYTES),
    )
}
