//! Handling of one message, or of one group of messages, of a conversation.

mod answer;
mod chat;
mod command;
mod connect;
mod follow;
mod gather;
mod intake;
mod live;
mod press;
mod progress;
mod questions;
mod replies;
pub(crate) mod stop_data;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use deerflow_domain::channels::{
    ChannelStoreError, ExternalIdentity, InboxEnd, InboxMessage, InboxState, NewOutgoing,
};
use tokio::time::Instant;
use uuid::Uuid;

pub(crate) use gather::Received;
use gather::{Group, first_group as group_of};
use replies::Replies;

use crate::account::{Bot, Exchange, Lane};
use crate::commands::{self, Command};
use crate::people::{Admission, admit};
use crate::platform::{ChatKind, Event, EventBody, Target};
use crate::words;

/// Reason why a message was not handled to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TurnError {
    /// The process or the service of the account ends; another node continues.
    #[error("the service ends")]
    Stopped,
    /// A store of channels failed.
    #[error(transparent)]
    Store(#[from] ChannelStoreError),
    /// The handling failed and may succeed later.
    #[error("{0}")]
    Retry(String),
}

/// Result of handling: the end of the rows and their replies.
#[derive(Debug)]
struct Outcome {
    state: InboxState,
    note: Option<String>,
    replies: Vec<NewOutgoing>,
}

impl Outcome {
    fn answered(replies: Replies<'_>) -> Self {
        Self {
            state: InboxState::Answered,
            note: None,
            replies: replies.finish(),
        }
    }

    fn refused(note: &str, replies: Replies<'_>) -> Self {
        Self {
            state: InboxState::Refused,
            note: Some(note.to_owned()),
            replies: replies.finish(),
        }
    }

    fn silent(note: &str) -> Self {
        Self {
            state: InboxState::Refused,
            note: Some(note.to_owned()),
            replies: Vec::new(),
        }
    }
}

/// Messages that are handled together, and their sender.
#[derive(Debug)]
struct Turn<'a> {
    bot: &'a Arc<Bot>,
    group: Vec<Received>,
}

/// Admitted sender.
#[derive(Debug, Clone)]
struct Person {
    user_id: String,
    connected: bool,
}

impl Turn<'_> {
    /// Returns the id of the first row, from which all other ids follow.
    fn id(&self) -> Uuid {
        self.group[0].row.id
    }

    fn ids(&self) -> Vec<Uuid> {
        self.group.iter().map(|received| received.row.id).collect()
    }

    fn event(&self) -> &Event {
        &self.group[0].event
    }

    fn conversation(&self) -> &str {
        &self.group[0].row.conversation
    }

    fn person(&self) -> &str {
        &self.event().sender.id
    }

    fn target(&self) -> Target {
        target_of(&self.group[self.group.len() - 1].event)
    }

    fn replies(&self) -> Replies<'_> {
        Replies::new(self.bot, self.id(), self.conversation(), self.target())
    }

    /// Returns an outcome with one text.
    fn say(&self, text: &str) -> Outcome {
        let mut replies = self.replies();
        replies.text("reply", text);
        Outcome::answered(replies)
    }

    fn refuse(&self, note: &str, text: &str) -> Outcome {
        let mut replies = self.replies();
        replies.text("reply", text);
        Outcome::refused(note, replies)
    }
}

/// Returns the first group of messages, or the time until which more may belong to it.
pub(crate) fn first_group(
    mut received: Vec<Received>,
    now: DateTime<Utc>,
) -> Result<Vec<Received>, DateTime<Utc>> {
    match group_of(&received, now) {
        Group::Complete(size) => {
            received.truncate(size);
            Ok(received)
        }
        Group::Until(at) => Err(at),
    }
}

/// Handles messages to their end: stores the end with the replies, and returns the chats that have
/// replies.
pub(crate) async fn handle(
    bot: &Arc<Bot>,
    group: Vec<Received>,
    lane: &Lane,
) -> Result<Vec<String>, TurnError> {
    let turn = Turn { bot, group };
    let outcome = decide(&turn, lane).await?;
    let chats = outcome
        .replies
        .iter()
        .map(|reply| reply.chat.clone())
        .collect();
    let end = InboxEnd {
        state: outcome.state,
        note: outcome.note,
    };
    let now = bot.hub.clock.now();
    let inbox = &bot.hub.stores.inbox;
    inbox
        .end(&bot.claim, &turn.ids(), end, outcome.replies, now)
        .await?;
    Ok(chats)
}

async fn decide(turn: &Turn<'_>, lane: &Lane) -> Result<Outcome, TurnError> {
    let (bot, event) = (turn.bot, turn.event());
    let command = match &event.body {
        EventBody::Message(message) => commands::parse(&message.text),
        _ => None,
    };
    if let Some(Command::Connect(code) | Command::Start(Some(code))) = &command {
        return connect::connect(turn, code).await;
    }
    let identity = ExternalIdentity {
        provider: bot.provider.to_owned(),
        account: event.sender.id.clone(),
        workspace: event.workspace.clone(),
    };
    let connection = match bot.rules.connections.enabled {
        true => bot.hub.stores.connections.find_active(&identity).await?,
        false => None,
    };
    let person = match admit(bot.provider, &bot.rules, event, connection.as_ref()) {
        Admission::Admitted { user_id, connected } => Person { user_id, connected },
        Admission::Ignored(reason) => return Ok(Outcome::silent(reason)),
        Admission::MustConnect => return Ok(must_connect(turn)),
    };
    match &event.body {
        EventBody::Press(press) => press::handle(turn, lane, &person, press).await,
        EventBody::Stop { .. } => press::stop(turn, None).await,
        EventBody::Renamed { .. } => Ok(Outcome::silent("no message")),
        EventBody::Message(_) => {
            if command == Some(Command::Stop) {
                return press::stop(turn, None).await;
            }
            // A repeated attempt was counted before.
            if turn.group[0].row.claims == 0 {
                match bot.exchanges.begin(turn.conversation(), Instant::now()) {
                    Exchange::Permitted => {}
                    Exchange::Refused => {
                        return Ok(turn.refuse("too many exchanges", words::TOO_FAST));
                    }
                    Exchange::Silent => return Ok(Outcome::silent("too many exchanges")),
                }
            }
            match command {
                Some(command) => command::handle(turn, lane, &person, command).await,
                None => chat::message(turn, lane, &person).await,
            }
        }
    }
}

/// Asks the person to connect, in groups only if the bot was addressed.
fn must_connect(turn: &Turn<'_>) -> Outcome {
    let event = turn.event();
    let is_addressed = match &event.body {
        EventBody::Message(message) => message.addressed,
        _ => false,
    };
    let may_reply = event.chat.kind == ChatKind::Direct || is_addressed;
    let informed = turn.bot.exchanges.may_inform(
        &format!("{}\u{0}{}", event.chat.id, event.sender.id),
        Instant::now(),
    );
    if may_reply && informed {
        turn.refuse("the person is not connected", words::MUST_CONNECT)
    } else {
        Outcome::silent("the person is not connected")
    }
}

fn target_of(event: &Event) -> Target {
    let (topic, reply_to) = match &event.body {
        EventBody::Message(message) => (message.topic.clone(), Some(event.id.clone())),
        EventBody::Press(press) => (None, press.message.clone()),
        EventBody::Stop { topic } => (topic.clone(), None),
        EventBody::Renamed { .. } => (None, None),
    };
    Target {
        workspace: event.workspace.clone(),
        chat: event.chat.clone(),
        topic,
        reply_to,
        person: event.sender.id.clone(),
        context: event.context.clone(),
    }
}

/// Returns a short reply to an event that is not handled by a turn.
pub(crate) fn notice(
    bot: &Arc<Bot>,
    id: Uuid,
    event: &Event,
    conversation: &str,
    text: &str,
) -> Vec<NewOutgoing> {
    let mut replies = Replies::new(bot, id, conversation, target_of(event));
    replies.text("notice", text);
    replies.finish()
}

/// Returns the reply to a message that is set aside; none if its event cannot be read.
pub(crate) fn set_aside_notice(bot: &Arc<Bot>, row: &InboxMessage) -> Vec<NewOutgoing> {
    match serde_json::from_value::<Event>(row.event.clone()) {
        Ok(event) => notice(bot, row.id, &event, &row.conversation, words::SET_ASIDE),
        Err(_) => Vec::new(),
    }
}
