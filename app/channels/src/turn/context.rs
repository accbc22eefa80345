//! The messages that are handled together, and the result of handling them.

use std::sync::Arc;

use deerflow_domain::channels::{ChannelStoreError, InboxState, NewOutgoing};
use harness::quota::QuotaExceeded;
use uuid::Uuid;

use super::gather::ReceivedMessage;
use super::progress::RowProgress;
use super::replies::Replies;
use crate::bot::Bot;
use crate::platform::{Event, Target};

/// Reason why a message was not handled to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TurnError {
    /// The process or the service of the account ends; another node continues.
    #[error("the service ends")]
    Stopped,
    /// A store of channels failed.
    #[error(transparent)]
    Store(#[from] ChannelStoreError),
    /// A quota of the user does not permit a new conversation.
    #[error(transparent)]
    QuotaExceeded(#[from] QuotaExceeded),
    /// The handling failed and may succeed later.
    #[error("{0}")]
    Retry(String),
}

/// Result of handling: the end of the rows and their replies.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) state: InboxState,
    pub(super) note: Option<String>,
    pub(super) replies: Vec<NewOutgoing>,
}

impl Outcome {
    pub(super) fn answered(replies: Replies<'_>) -> Self {
        Self {
            state: InboxState::Answered,
            note: None,
            replies: replies.finish(),
        }
    }

    pub(super) fn refused(note: &str, replies: Replies<'_>) -> Self {
        Self {
            state: InboxState::Refused,
            note: Some(note.to_owned()),
            replies: replies.finish(),
        }
    }

    pub(super) fn silent(note: &str) -> Self {
        Self {
            state: InboxState::Refused,
            note: Some(note.to_owned()),
            replies: Vec::new(),
        }
    }
}

/// Messages that are handled together, and their sender.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    pub(super) bot: &'a Arc<Bot>,
    pub(super) group: Vec<ReceivedMessage>,
}

/// Admitted sender.
#[derive(Debug, Clone)]
pub(super) struct Person {
    pub(super) user_id: String,
    pub(super) connected: bool,
}

impl Turn<'_> {
    /// Returns the id of the first row, from which all other ids follow.
    pub(super) fn id(&self) -> Uuid {
        self.group[0].row.id
    }

    pub(super) fn ids(&self) -> Vec<Uuid> {
        self.group.iter().map(|received| received.row.id).collect()
    }

    pub(super) fn event(&self) -> &Event {
        &self.group[0].event
    }

    pub(super) fn conversation(&self) -> &str {
        &self.group[0].row.conversation
    }

    pub(super) fn person(&self) -> &str {
        &self.event().sender.id
    }

    pub(super) fn target(&self) -> Target {
        Target::of(&self.group[self.group.len() - 1].event)
    }

    pub(super) fn replies(&self) -> Replies<'_> {
        Replies::new(self.bot, self.id(), self.conversation(), self.target())
    }

    /// Returns the stored progress of the first row.
    pub(super) fn progress(&self) -> RowProgress {
        RowProgress::read(&self.group[0].row.progress)
    }

    /// Returns an outcome with one text.
    pub(super) fn say(&self, text: &str) -> Outcome {
        let mut replies = self.replies();
        replies.text("reply", text);
        Outcome::answered(replies)
    }

    pub(super) fn refuse(&self, note: &str, text: &str) -> Outcome {
        let mut replies = self.replies();
        replies.text("reply", text);
        Outcome::refused(note, replies)
    }
}
