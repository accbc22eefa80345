//! What of a conversation its model gets to see.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ledger::ledger;
use crate::messages::marks::escaped;
use crate::messages::{Message, TextSize, kwargs};
use crate::middlewares::real_user::is_real_user_message;
use crate::state::{StateUpdate, ThreadState};

/// The channel with the summary.
pub const SUMMARY_TEXT: &str = "summary_text";
/// The channel that says what the summary stands for.
pub const SUMMARY_CUT: &str = "summary_cut";
/// The name by which a summary is told from what a person wrote.
const SUMMARY_NAME: &str = "summary";

/// Where a summary was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Cut {
    /// The first message that the summary does not stand for.
    first_kept: String,
    /// The last message that it stands for: the cut is behind it when a guard has taken back the one that was kept first.
    #[serde(default)]
    last_covered: String,
    /// The last message of the thread then: what providers counted up to here, they counted with the messages that went.
    made_at: String,
}

/// The part of a thread that its model sees.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    all: &'a [Message],
    /// What stands for the messages before `first`.
    summary: Option<&'a str>,
    /// The place of the first message that is seen.
    first: usize,
    /// The place behind the last message that was there when the summary was made.
    counted_from: usize,
}

impl<'a> View<'a> {
    /// The view of a thread's state. A cut whose messages are gone, with a history that was rewritten, says nothing any more.
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
        let place = |id: &str| {
            all.iter()
                .rposition(|message| message.id.as_deref() == Some(id))
        };
        match place(&cut.first_kept).or_else(|| place(&cut.last_covered).map(|at| at + 1)) {
            Some(first) => Self {
                all,
                summary,
                first,
                counted_from: place(&cut.made_at).map_or(first, |at| at + 1),
            },
            None => Self {
                all,
                summary: None,
                first: 0,
                counted_from: 0,
            },
        }
    }

    /// The messages that are seen as they are.
    pub fn kept(&self) -> &'a [Message] {
        &self.all[self.first..]
    }

    /// The summary of those before.
    pub fn summary(&self) -> Option<&'a str> {
        self.summary
    }

    /// The messages that a cut before `place` of [`View::kept`] would take away.
    pub fn before(&self, place: usize) -> &'a [Message] {
        &self.kept()[..place]
    }

    /// What the user asked last, where that lies before the cut: nothing else may be forgotten so little.
    pub fn pinned(&self) -> Option<&'a Message> {
        let newest = self.all.iter().rposition(is_real_user_message)?;
        (newest < self.first).then(|| &self.all[newest])
    }

    /// The messages that are told as they are, in order.
    pub fn told(&self) -> impl Iterator<Item = &'a Message> {
        self.pinned().into_iter().chain(self.kept())
    }

    /// What is told beside the summary as it was.
    fn ledger(&self) -> Option<String> {
        self.summary.and_then(|_| ledger(&self.all[..self.first]))
    }

    /// How much there is to read.
    pub fn size(&self) -> TextSize {
        let messages = self.told().map(Message::size).sum::<TextSize>();
        let beside = [
            self.summary.map(TextSize::of),
            self.ledger().as_deref().map(TextSize::of),
        ];
        messages.and(beside.into_iter().flatten().sum())
    }

    /// What the provider counted at the newest answer that it gave to this view, and the messages since.
    pub fn counted(&self) -> Option<(u64, &'a [Message])> {
        let from = self.first.max(self.counted_from);
        // An answer that is charged for its subagents does not tell how long the conversation is.
        let tells = |message: &Message| {
            message.usage().is_some() && !message.flag(kwargs::SUBAGENT_USAGE_ATTRIBUTED)
        };
        let newest = self.all[from..].iter().rposition(tells)? + from;
        let usage = self.all[newest].usage()?;
        Some((usage.total(), &self.all[newest + 1..]))
    }

    /// The view as the messages of a request.
    pub fn messages(&self) -> Vec<Message> {
        let ledger = self.ledger();
        let summary = self
            .summary
            .map(|text| summary_message(text, ledger.as_deref()));
        summary.into_iter().chain(self.told().cloned()).collect()
    }

    /// The update that puts `summary` in the place of what stands before `place` of [`View::kept`].
    pub fn cut_at(&self, place: usize, summary: &str) -> StateUpdate {
        let id = |message: Option<&Message>| {
            message
                .and_then(|message| message.id.clone())
                .unwrap_or_default()
        };
        let cut = Cut {
            first_kept: id(self.kept().get(place)),
            last_covered: id(self.all[..self.first + place].last()),
            made_at: id(self.all.last()),
        };
        StateUpdate::channel(SUMMARY_TEXT, summary.into()).and(SUMMARY_CUT, json!(cut))
    }
}

/// The summary as the model reads it.
fn summary_message(text: &str, ledger: Option<&str>) -> Message {
    let mut framed = format!(
        "<conversation_summary>\nNotes on the earlier part of this conversation, which is not shown any more. They tell what \
         happened; they are not a request.\n\n{}\n</conversation_summary>",
        escaped(text)
    );
    if let Some(ledger) = ledger {
        framed.push_str("\n\n");
        framed.push_str(ledger);
    }
    Message::human(framed).with(|body| {
        body.name = Some(SUMMARY_NAME.to_owned());
        body.additional_kwargs
            .insert(kwargs::HIDE_FROM_UI.to_owned(), Value::Bool(true));
    })
}

/// Whether a message is a summary in its frame.
pub(super) fn is_summary(message: &Message) -> bool {
    message.is_human() && message.name.as_deref() == Some(SUMMARY_NAME)
}
