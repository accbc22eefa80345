//! Part of a conversation that its model sees.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::digest::digest;
use crate::messages::marks::escaped;
use crate::messages::{Message, TextSize, kwargs};
use crate::middlewares::real_user::is_real_user_message;
use crate::state::{StateUpdate, ThreadState};

/// State channel with the summary.
pub const SUMMARY_TEXT: &str = "summary_text";
/// State channel with the position of the cut.
pub const SUMMARY_CUT: &str = "summary_cut";
/// Name that distinguishes a summary from a user message.
const SUMMARY_NAME: &str = "summary";

/// Position of a summary in the thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Cut {
    /// Id of the first message after the summary.
    first_kept: String,
    /// Id of the last message that the summary covers. It locates the cut if a guard has removed
    /// the message `first_kept`.
    #[serde(default)]
    last_covered: String,
    /// Id of the thread's last message at the time of the cut. Token counts of providers up to here
    /// include the removed messages.
    made_at: String,
}

/// Part of a thread that its model sees.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    all: &'a [Message],
    /// Summary of the messages before `first`.
    summary: Option<&'a str>,
    /// Index of the first visible message.
    first: usize,
    /// Index after the last message that existed when the summary was made.
    counted_from: usize,
}

impl<'a> View<'a> {
    /// Creates the view of a thread's state. A cut whose messages no longer exist, because the
    /// history was rewritten, is ignored.
    pub fn of(state: &'a ThreadState) -> Self {
        let all = state.messages();
        let summary = state
            .channel(SUMMARY_TEXT)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty());
        let Some(cut) = state
            .channel(SUMMARY_CUT)
            .and_then(|cut| Cut::deserialize(cut).ok())
        else {
            return Self {
                all,
                summary,
                first: 0,
                counted_from: 0,
            };
        };
        let position = |id: &str| {
            all.iter()
                .rposition(|message| message.id.as_deref() == Some(id))
        };
        match position(&cut.first_kept).or_else(|| position(&cut.last_covered).map(|at| at + 1)) {
            Some(first) => Self {
                all,
                summary,
                first,
                counted_from: position(&cut.made_at).map_or(first, |at| at + 1),
            },
            None => Self {
                all,
                summary: None,
                first: 0,
                counted_from: 0,
            },
        }
    }

    /// Messages after the cut, which the model sees unchanged.
    pub fn kept(&self) -> &'a [Message] {
        &self.all[self.first..]
    }

    /// Summary of the messages before the cut.
    pub fn summary(&self) -> Option<&'a str> {
        self.summary
    }

    /// Messages that a cut at `position` of [`View::kept`] would remove.
    pub fn before(&self, position: usize) -> &'a [Message] {
        &self.kept()[..position]
    }

    /// Last user message, if it is before the cut: the model must always see it.
    pub fn pinned(&self) -> Option<&'a Message> {
        let newest = self.all.iter().rposition(is_real_user_message)?;
        (newest < self.first).then(|| &self.all[newest])
    }

    /// All messages that the model sees unchanged, in order.
    pub fn visible_messages(&self) -> impl Iterator<Item = &'a Message> {
        self.pinned().into_iter().chain(self.kept())
    }

    #[doc(hidden)]
    #[deprecated(note = "use `visible_messages`")]
    pub fn told(&self) -> impl Iterator<Item = &'a Message> {
        self.visible_messages()
    }

    /// Digest of the messages before the cut, which follows the summary.
    fn digest(&self) -> Option<String> {
        self.summary.and_then(|_| digest(&self.all[..self.first]))
    }

    /// Size of the view's text.
    pub fn size(&self) -> TextSize {
        let messages = self.visible_messages().map(Message::size).sum::<TextSize>();
        let extra = [
            self.summary.map(TextSize::of),
            self.digest().as_deref().map(TextSize::of),
        ];
        messages.and(extra.into_iter().flatten().sum())
    }

    /// Returns the provider's token count at the newest answer to this view, and the messages
    /// since.
    pub fn counted(&self) -> Option<(u64, &'a [Message])> {
        let from = self.first.max(self.counted_from);
        // Usage that includes subagents does not measure the length of the conversation.
        let has_full_usage = |message: &Message| {
            message.usage().is_some() && !message.flag(kwargs::SUBAGENT_USAGE_ATTRIBUTED)
        };
        let newest = self.all[from..].iter().rposition(has_full_usage)? + from;
        let usage = self.all[newest].usage()?;
        Some((usage.total(), &self.all[newest + 1..]))
    }

    /// Returns the view as the messages of a request.
    pub fn messages(&self) -> Vec<Message> {
        let digest = self.digest();
        let summary = self
            .summary
            .map(|text| summary_message(text, digest.as_deref()));
        summary
            .into_iter()
            .chain(self.visible_messages().cloned())
            .collect()
    }

    /// Returns the update that replaces the messages before `position` of [`View::kept`] by
    /// `summary`.
    pub fn cut_at(&self, position: usize, summary: &str) -> StateUpdate {
        let id = |message: Option<&Message>| {
            message
                .and_then(|message| message.id.clone())
                .unwrap_or_default()
        };
        let cut = Cut {
            first_kept: id(self.kept().get(position)),
            last_covered: id(self.all[..self.first + position].last()),
            made_at: id(self.all.last()),
        };
        StateUpdate::channel(SUMMARY_TEXT, summary.into()).and(SUMMARY_CUT, json!(cut))
    }
}

/// Builds the message with the summary for the model.
fn summary_message(text: &str, digest: Option<&str>) -> Message {
    let mut framed = format!(
        "<conversation_summary>\nNotes on the earlier part of this conversation, which is not shown any more. They tell what \
         happened; they are not a request.\n\n{}\n</conversation_summary>",
        escaped(text)
    );
    if let Some(digest) = digest {
        framed.push_str("\n\n");
        framed.push_str(digest);
    }
    Message::human(framed).with(|body| {
        body.name = Some(SUMMARY_NAME.to_owned());
        body.additional_kwargs
            .insert(kwargs::HIDE_FROM_UI.to_owned(), Value::Bool(true));
    })
}

/// Reports whether a message is a summary.
pub(super) fn is_summary(message: &Message) -> bool {
    message.is_human() && message.without_frame().name.as_deref() == Some(SUMMARY_NAME)
}
