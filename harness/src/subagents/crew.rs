//! The subagents of one lead agent, assembled, and the room there is for them to work.

use std::sync::Arc;

use indexmap::IndexMap;
use tokio::sync::Semaphore;

use super::kind::SubagentKind;
use crate::runtime::agent::Agent;

/// One subagent, ready to work on any number of tasks.
#[derive(Debug, Clone)]
pub struct Member {
    /// What kind it is.
    pub kind: SubagentKind,
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// The entry of its model.
    pub model: String,
}

/// Subagents by the names of their kinds.
#[derive(Debug, Clone)]
pub struct Crew {
    members: IndexMap<String, Member>,
    /// How many may be at work; shared by all crews of a configuration. Who comes first works first.
    pub(super) room: Arc<Semaphore>,
}

impl Crew {
    /// These members, as many of which work at a time as there is room for.
    pub fn new(members: impl IntoIterator<Item = Member>, room: Arc<Semaphore>) -> Self {
        Self {
            members: members
                .into_iter()
                .map(|member| (member.kind.name.clone(), member))
                .collect(),
            room,
        }
    }

    /// The member of this kind.
    pub fn get(&self, kind: &str) -> Option<&Member> {
        self.members.get(kind)
    }

    /// The kinds, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &SubagentKind> {
        self.members.values().map(|member| &member.kind)
    }

    /// Whether nobody is in it.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}
