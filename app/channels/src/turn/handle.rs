//! Handles messages to their end: who sent them, and what they ask for.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use deerflow_domain::channels::InboxEnd;
use harness::runtime::fail_points;
use tokio::time::Instant;

use super::admission::admission_of;
use super::context::{Outcome, Person, Turn, TurnError};
use super::gather::{Group, ReceivedMessage, first_group as group_of};
use super::{chat, command, connect, press};
use crate::bot::{Bot, Exchange, Lane};
use crate::commands::{self, Command};
use crate::people::Admission;
use crate::platform::{ChatKind, EventBody};
use crate::words;

/// Returns the first group of messages, or the time until which more may belong to it.
pub(crate) fn first_group(
    mut received: Vec<ReceivedMessage>,
    now: DateTime<Utc>,
) -> Result<Vec<ReceivedMessage>, DateTime<Utc>> {
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
    group: Vec<ReceivedMessage>,
    lane: &Lane,
) -> Result<Vec<String>, TurnError> {
    let turn = Turn { bot, group };
    let outcome = decide(&turn, lane).await?;
    fail_points::pass("channel.decided");
    let chats = outcome
        .replies
        .iter()
        .map(|reply| reply.chat.clone())
        .collect();
    let end = InboxEnd {
        state: outcome.state,
        note: outcome.note,
    };
    bot.end(&turn.ids(), end, outcome.replies).await?;
    fail_points::pass("channel.ended");
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
    let person = match admission_of(bot, event).await? {
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
            let handled = match command {
                Some(command) => command::handle(turn, lane, &person, command).await,
                None => chat::message(turn, lane, &person).await,
            };
            match handled {
                Err(TurnError::QuotaExceeded(exceeded)) => {
                    Ok(turn.refuse("quota exceeded", &exceeded.to_string()))
                }
                handled => handled,
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
