//! What of a conversation its model gets to see.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
    /// The view of a thread's state. A cut whose message is gone, with a history that was rewritten, says nothing any more.
    pub fn of(state: &'a ThreadState) -> Self {
        let all = state.messages();
        let summary = state.channel(SUMMARY_TEXT).and_then(Value::as_str).filter(|text| !text.is_empty());
        let Some(cut) = state.channel(SUMMARY_CUT).and_then(|cut| Cut::deserialize(cut).ok()) else {
            return Self { all, summary, first: 0, counted_from: 0 };
        };
        let place = |id: &str| all.iter().rposition(|message| message.id.as_deref() == Some(id));
        match place(&cut.first_kept) {
            Some(first) => Self { all, summary, first, counted_from: place(&cut.made_at).map_or(first, |at| at + 1) },
            None => Self { all, summary: None, first: 0, counted_from: 0 },
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

    /// How much there is to read.
    pub fn size(&self) -> TextSize {
        let messages = self.kept().iter().chain(self.pinned()).map(Message::size).sum::<TextSize>();
        messages.and(self.summary.map(TextSize::of).unwrap_or_default())
    }

    /// What the provider counted at the newest answer that it gave to this view, and the messages since.
    pub fn counted(&self) -> Option<(u64, &'a [Message])> {
        let from = self.first.max(self.counted_from);
        let newest = self.all[from..].iter().rposition(|message| message.usage().is_some())? + from;
        let usage = self.all[newest].usage()?;
        Some((usage.total(), &self.all[newest + 1..]))
    }

    /// The view as the messages of a request.
    pub fn messages(&self) -> Vec<Message> {
        let front = self.summary.map(summary_message).into_iter().chain(self.pinned().cloned());
        front.chain(self.kept().iter().cloned()).collect()
    }

    /// The update that puts `summary` in the place of what stands before `place` of [`View::kept`].
    pub fn cut_at(&self, place: usize, summary: &str) -> StateUpdate {
        let id = |message: Option<&Message>| message.and_then(|message| message.id.clone()).unwrap_or_default();
        let cut = Cut { first_kept: id(self.kept().get(place)), made_at: id(self.all.last()) };
        StateUpdate::channel(SUMMARY_TEXT, summary.into()).and(SUMMARY_CUT, json!(cut))
    }
}

/// The summary as the model reads it.
fn summary_message(text: &str) -> Message {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let framed = format!(
        "<conversation_summary>\nNotes on the earlier part of this conversation, which is not shown any more. They tell what \
         happened; they are not a request.\n\n{text}\n</conversation_summary>"
    );
    Message::human(framed).with(|body| {
        body.name = Some(SUMMARY_NAME.to_owned());
        body.additional_kwargs.insert(kwargs::HIDE_FROM_UI.to_owned(), Value::Bool(true));
    })
}

/// Whether a message is a summary in its frame.
pub(super) fn is_summary(message: &Message) -> bool {
    message.is_human() && message.name.as_deref() == Some(SUMMARY_NAME)
}
