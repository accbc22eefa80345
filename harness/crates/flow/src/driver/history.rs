//! Histories of sessions, bounded by the memory policy of the agent.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::adapter::{TurnMessage, TurnRole};
use crate::compiled::EffectiveAgent;
use crate::schema::MemoryScope;

const MAX_ITEMS: usize = 50;
const MAX_BYTES: usize = 64 << 10;

/// Messages of earlier turns by agent id, the oldest first.
pub type Histories = HashMap<String, VecDeque<TurnMessage>>;

/// Returns the messages that a turn receives: those of the thread, if the agent sees them, then
/// those of its session.
pub(super) fn messages_of(
    agent: &EffectiveAgent,
    thread: &[TurnMessage],
    session: &VecDeque<TurnMessage>,
) -> Arc<[TurnMessage]> {
    let sees = |scope: MemoryScope| match &agent.memory_policy.visible_scopes {
        Some(scopes) => scopes.contains(&scope),
        None => scope == MemoryScope::Run,
    };
    let is_off = agent
        .adapter_config
        .get("history")
        .and_then(|value| value.as_str())
        == Some("none");
    if is_off || (session.is_empty() && thread.is_empty()) {
        return Arc::from([]);
    }
    let (max_items, max_bytes) = bounds(agent);
    let session = session.iter().rev().filter(|_| sees(MemoryScope::Run));
    let thread = thread.iter().rev().filter(|_| sees(MemoryScope::Session));
    let mut bytes = 0;
    let mut chosen: Vec<TurnMessage> = session
        .chain(thread)
        .take(max_items)
        .take_while(|message| {
            bytes += message.content.len();
            bytes <= max_bytes
        })
        .cloned()
        .collect();
    chosen.reverse();
    chosen.into()
}

/// Adds a completed turn to a history, and removes messages that the policy no longer admits.
pub(super) fn add_turn(
    agent: &EffectiveAgent,
    session: &mut VecDeque<TurnMessage>,
    user: String,
    assistant: String,
) {
    session.push_back(TurnMessage {
        role: TurnRole::User,
        content: user,
    });
    session.push_back(TurnMessage {
        role: TurnRole::Assistant,
        content: assistant,
    });
    let (max_items, _) = bounds(agent);
    while session.len() > max_items.max(2) {
        session.pop_front();
    }
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
