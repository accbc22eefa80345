//! Presses of buttons, and requests to stop.

use chrono::{DateTime, Utc};
use deerflow_domain::channels::{InboxEnd, InboxState, Urgency};
use harness::client::ClientError;
use harness::runtime::actor_context::scope;
use harness::runtime::runs::RunError;
use uuid::Uuid;

use super::context::{Outcome, Person, Turn, TurnError};
use super::gather::{Group, MAX_GROUP, ReceivedMessage, first_group};
use super::replies::stopped_before_run;
use super::stored::stored_event;
use super::{chat, conversation, questions, stop_data};
use crate::bot::{ActiveTurn, Lane, Phase};
use crate::outbox;
use crate::platform::{EventBody, Press};
use crate::words;

pub(super) async fn handle(
    turn: &Turn<'_>,
    lane: &Lane,
    person: &Person,
    press: &Press,
) -> Result<Outcome, TurnError> {
    if let Some(row) = stop_data::parse(&press.data) {
        return stop(turn, Some(row)).await;
    }
    if let Some(plan) = turn.progress().plan {
        return chat::planned(turn, lane, person, plan).await;
    }
    let conversation = conversation::find(turn, person).await?;
    let question = conversation
        .as_ref()
        .and_then(|conversation| conversation.question.as_ref());
    let Some((question, answer)) =
        question.and_then(|question| Some((question, questions::pressed(question, &press.data)?)))
    else {
        confirm(turn, words::EXPIRED).await;
        return Ok(Outcome::silent("the button is no longer valid"));
    };
    if question.asker != turn.person() {
        confirm(turn, words::NOT_YOURS).await;
        return Ok(Outcome::silent("another person was asked"));
    }
    confirm(turn, &answer).await;
    chat::answer(turn, lane, person, &answer).await
}

/// Stops the answer of a row, or the one in progress in the conversation. Only the person who asked
/// may stop it.
pub(super) async fn stop(turn: &Turn<'_>, row: Option<Uuid>) -> Result<Outcome, TurnError> {
    let bot = turn.bot;
    let active = match row {
        Some(row) => bot.active.by_id(row),
        None => bot.active.in_conversation(turn.conversation()),
    };
    let is_command = matches!(turn.event().body, EventBody::Message(_));
    let Some(active) = active else {
        if row.is_none()
            && let Some(stopped) = stop_waiting(turn).await?
        {
            return Ok(stopped);
        }
        // After a restart the answer may not have been resumed yet.
        let inbox = &bot.hub.stores.inbox;
        let waiting = inbox
            .waiting(&bot.claim.account, turn.conversation(), Urgency::InOrder, 1)
            .await?;
        let first = &turn.group[0].row;
        if waiting.iter().any(|row| row.claims > 0) && first.failures < 2 {
            return Err(TurnError::Retry("the answer is not resumed yet".to_owned()));
        }
        return Ok(if is_command {
            turn.say(words::NOTHING_TO_STOP)
        } else {
            confirm(turn, words::EXPIRED).await;
            Outcome::silent("there is nothing to stop")
        });
    };
    if active.target.person != turn.person() {
        return Ok(if is_command {
            turn.refuse("another person asked", words::NOT_YOURS)
        } else {
            confirm(turn, words::NOT_YOURS).await;
            Outcome::silent("another person asked")
        });
    }
    // The request is stored before the stop is confirmed.
    match bot.active.stop(&active) {
        Phase::Preparing => end_before_run(turn, &active).await?,
        Phase::Creating => return Err(TurnError::Retry("the run is being created".to_owned())),
        Phase::Running => cancel_run(turn, &active).await?,
    }
    if !is_command {
        confirm(turn, words::STOPPED).await;
    }
    Ok(Outcome::answered(turn.replies()))
}

/// Ends the first group of messages that wait in the conversation, such as files that a text may
/// follow, if they are the person's. `None` if there are none or a turn has begun them.
async fn stop_waiting(turn: &Turn<'_>) -> Result<Option<Outcome>, TurnError> {
    let (bot, request) = (turn.bot, &turn.group[0].row);
    // No turn begins them meanwhile.
    let _beginning = bot.beginning.write().await;
    let inbox = &bot.hub.stores.inbox;
    let rows = inbox
        .waiting(
            &bot.claim.account,
            turn.conversation(),
            Urgency::InOrder,
            MAX_GROUP as u64,
        )
        .await?;
    let mut waiting = Vec::new();
    for row in rows {
        match stored_event(&row) {
            Ok(event)
                if row.claims == 0 && row.seq < request.seq && event.sender.id == turn.person() =>
            {
                waiting.push(ReceivedMessage { row, event });
            }
            _ => break,
        }
    }
    if waiting.is_empty() {
        return Ok(None);
    }
    let Group::Complete(size) = first_group(&waiting, DateTime::<Utc>::MAX_UTC) else {
        return Ok(None);
    };
    waiting.truncate(size);
    let stopped = Turn {
        bot,
        group: waiting,
    };
    let mut replies = stopped.replies();
    replies.text("answer", words::STOPPED);
    let end = InboxEnd {
        state: InboxState::Answered,
        note: None,
    };
    let chat = stopped.target().chat.id;
    bot.end(&stopped.ids(), end, replies.finish()).await?;
    outbox::wake(bot, chat);
    Ok(Some(Outcome::answered(turn.replies())))
}

/// Ends the rows of an answer whose run was not created. The turn of the answer ends them in the
/// same way; the first end holds.
async fn end_before_run(turn: &Turn<'_>, active: &ActiveTurn) -> Result<(), TurnError> {
    let (bot, now) = (turn.bot, turn.bot.hub.clock.now());
    let replies = stopped_before_run(bot, active).finish();
    let end = InboxEnd {
        state: InboxState::Answered,
        note: None,
    };
    let inbox = &bot.hub.stores.inbox;
    inbox
        .end(&bot.claim, &active.rows, end, replies, now)
        .await?;
    outbox::wake(bot, active.target.chat.id.clone());
    Ok(())
}

async fn cancel_run(turn: &Turn<'_>, active: &ActiveTurn) -> Result<(), TurnError> {
    let bot = turn.bot;
    let cancelling = bot.hub.client.cancel(&active.thread_id, &active.run_id);
    match scope(bot.actor(&active.user_id), cancelling).await {
        Ok(()) | Err(ClientError::Run(RunError::NotCancellable { .. } | RunError::NotFound(_))) => {
            Ok(())
        }
        Err(error) => Err(TurnError::Retry(error.to_string())),
    }
}

/// Confirms a press on the platform.
async fn confirm(turn: &Turn<'_>, text: &str) {
    if !matches!(turn.event().body, EventBody::Press(_)) {
        return;
    }
    let (bot, target) = (turn.bot, turn.target());
    if let Err(error) = bot.platform.confirm_press(&target, text).await {
        tracing::debug!(%error, account = %bot.claim.account, "a press was not confirmed");
    }
}
