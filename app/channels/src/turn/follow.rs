//! Follows the run of a turn to its end and builds the replies.

use std::collections::HashSet;

use deerflow_domain::channels::{ChannelStoreError, Conversation, InboxEnd, InboxState, Urgency};
use futures_util::StreamExt;
use harness::client::ClientError;
use harness::runtime::actor_context::scope;
use harness::runtime::threads::ThreadView;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::admission::admission_of;
use super::answer::{RunAnswer, Span, answer_of};
use super::context::{Outcome, Turn, TurnError};
use super::live::LiveView;
use super::notice::notice;
use super::progress::RowProgress;
use super::questions::{Asked, of_clarification, of_interrupt};
use super::{conversation, questions, stop_data};
use crate::bot::{ActiveTurn, Lane, show};
use crate::config::Busy;
use crate::outbox;
use crate::people::Admission;
use crate::platform::{Button, LiveReply, Receipt};
use crate::words;

/// Later messages that are examined while a run is active.
const LATER: u64 = 50;
/// Presented files that are sent.
const MAX_FILES: usize = 10;

/// End of a run as its stream reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunEnd {
    Finished,
    Cancelled,
    Failed,
}

/// Follows a run that was created.
pub(super) async fn follow(
    turn: &Turn<'_>,
    lane: &Lane,
    mut conversation: Conversation,
    mut progress: RowProgress,
    span: Span,
) -> Result<Outcome, TurnError> {
    let bot = turn.bot;
    let stop = CancellationToken::new();
    let active = ActiveTurn {
        conversation: turn.conversation().to_owned(),
        person: turn.person().to_owned(),
        user_id: conversation.user_id.clone(),
        thread_id: conversation.thread_id.clone(),
        run_id: turn.group[0].row.run_id(),
    };
    let _registered = bot.active.register(turn.id(), active);
    let target = turn.target();
    show(bot, &target, Receipt::Received).await;
    let live = LiveView::new(
        bot.clone(),
        LiveReply {
            key: turn.id(),
            target,
            stop: bot.platform.abilities().buttons.then(|| Button {
                label: words::STOP_LABEL.to_owned(),
                data: stop_data::make(turn.id()),
            }),
            state: progress.live.clone(),
        },
        turn.group[0].row.claims > 0,
    );
    let (end, live) = watch(turn, lane, &conversation, &mut progress, live, &stop).await?;
    let view = conversation::read_thread(turn, &conversation)
        .await?
        .ok_or_else(|| TurnError::Retry("the thread was deleted".to_owned()))?;
    replies_of(turn, &mut conversation, live, &span, end, view).await
}

/// Shows the run until its end.
async fn watch(
    turn: &Turn<'_>,
    lane: &Lane,
    conversation: &Conversation,
    progress: &mut RowProgress,
    mut live: LiveView,
    stop: &CancellationToken,
) -> Result<(RunEnd, LiveView), TurnError> {
    let bot = turn.bot;
    let (run, thread) = (turn.group[0].row.run_id(), &conversation.thread_id);
    let actor = || bot.actor(&conversation.user_id);
    let mut events = scope(actor(), bot.hub.client.join(thread, &run))
        .await
        .map_err(run_failure)?;
    let cancel = async {
        stop.cancelled().await;
        let cancelled = scope(actor(), bot.hub.client.cancel(thread, &run)).await;
        if let Err(error) = cancelled {
            tracing::debug!(%error, run = %run, "a run was not cancelled");
        }
    };
    tokio::pin!(cancel);
    let mut is_cancelling = false;
    let mut informed = HashSet::new();
    let mut message_id = String::new();
    let typing = bot.platform.abilities().typing;
    let mut typing_at = Instant::now();
    // Messages that arrived while the run was created.
    later_messages(turn, &mut informed, stop).await?;
    let end = loop {
        tokio::select! {
            biased;
            event = events.next() => match event {
                Some(Ok(event)) => {
                    if let Some((id, text)) = event.text() {
                        if id == message_id {
                            live.push(text);
                        } else {
                            message_id = id.to_owned();
                            live.restart(text);
                        }
                    }
                    if event.is_cancelled() {
                        break RunEnd::Cancelled;
                    }
                }
                None => break RunEnd::Finished,
                Some(Err(ClientError::Failed { name, message })) => {
                    tracing::warn!(run = %run, name, message, "the run of a chat message failed");
                    break RunEnd::Failed;
                }
                Some(Err(ClientError::Gap)) => {
                    events = scope(actor(), bot.hub.client.join(thread, &run)).await.map_err(run_failure)?;
                }
                Some(Err(error)) => return Err(run_failure(error)),
            },
            state = live.step() => {
                if let Some(state) = state && state != progress.live {
                    progress.live = state;
                    match conversation::save_progress(turn, progress).await {
                        Err(TurnError::Store(error)) if error != ChannelStoreError::Fenced => {
                            tracing::warn!(%error, run = %run, "the state of a live message was not stored");
                        }
                        saved => saved?,
                    }
                }
            }
            () = lane.notified() => later_messages(turn, &mut informed, stop).await?,
            () = &mut cancel, if !is_cancelling => is_cancelling = true,
            () = sleep_until(typing_at), if typing.is_some() => {
                show(bot, &turn.target(), Receipt::Working).await;
                typing_at = Instant::now() + typing.unwrap_or_default();
            }
        }
    };
    Ok((end, live))
}

fn run_failure(error: ClientError) -> TurnError {
    match error {
        ClientError::ShuttingDown => TurnError::Stopped,
        error => TurnError::Retry(error.to_string()),
    }
}

/// Applies the rule for messages to a busy conversation to those that arrived meanwhile.
async fn later_messages(
    turn: &Turn<'_>,
    informed: &mut HashSet<uuid::Uuid>,
    stop: &CancellationToken,
) -> Result<(), TurnError> {
    let bot = turn.bot;
    let (inbox, own) = (&bot.hub.stores.inbox, turn.ids());
    let waiting = inbox
        .waiting(
            &bot.claim.account,
            turn.conversation(),
            Urgency::InOrder,
            LATER,
        )
        .await?;
    let later = waiting.into_iter().filter(|row| !own.contains(&row.id));
    for row in later {
        if !informed.insert(row.id) {
            continue;
        }
        let Ok(event) = serde_json::from_value(row.event.clone()) else {
            continue;
        };
        // A message of a stranger must have no effect; its own turn decides about a reply.
        if !matches!(admission_of(bot, &event).await?, Admission::Admitted { .. }) {
            continue;
        }
        let now = bot.hub.clock.now();
        match bot.rules.busy {
            Busy::Interrupt => {
                stop.cancel();
                return Ok(());
            }
            // One notice per run is enough.
            Busy::Queue if informed.len() > 1 => {}
            Busy::Queue => {
                let reply = notice(bot, row.id, &event, &row.conversation, words::QUEUED);
                let outbox = &bot.hub.stores.outbox;
                outbox.enqueue(&bot.claim, reply, now).await?;
                outbox::wake(bot, row.key.chat);
            }
            Busy::Refuse => {
                let reply = notice(bot, row.id, &event, &row.conversation, words::BUSY);
                let end = InboxEnd {
                    state: InboxState::Refused,
                    note: Some("the conversation is busy".to_owned()),
                };
                bot.end(&[row.id], end, reply).await?;
                outbox::wake(bot, row.key.chat);
            }
        }
    }
    Ok(())
}

/// Builds the replies, and stores the question of the run, if it has one.
async fn replies_of(
    turn: &Turn<'_>,
    conversation: &mut Conversation,
    live: LiveView,
    span: &Span,
    end: RunEnd,
    view: ThreadView,
) -> Result<Outcome, TurnError> {
    // A cancelled or failed run may not have stored its message.
    let is_complete = end == RunEnd::Finished;
    let answer = answer_of(conversation::messages_of(&view), span, is_complete);
    let question = question_of(turn, &answer, &view);
    let open = question.as_ref().map(|asked| asked.open.clone());
    if conversation.question != open {
        conversation.question = open;
        conversation::update(turn, conversation).await?;
    }
    let mut replies = turn.replies();
    let (text, buttons) = text_of(&answer, question, end);
    let live = live.finish(&text).await;
    replies.answer("answer", &text, buttons, live);
    for path in answer.files.iter().take(MAX_FILES) {
        let thread = conversation.thread_id.as_str();
        replies.file(&conversation.user_id, thread, path);
    }
    for path in answer.files.iter().skip(MAX_FILES) {
        let name = path.rsplit('/').next().unwrap_or(path);
        replies.text(
            "note",
            &words::unsent_file(name, "there are too many files"),
        );
    }
    Ok(Outcome::answered(replies))
}

fn question_of(turn: &Turn<'_>, answer: &RunAnswer, view: &ThreadView) -> Option<Asked> {
    let (row, run) = (turn.id(), turn.group[0].row.run_id());
    let open = questions::open_interrupts(view).into_iter().next();
    match open {
        Some(open) => Some(of_interrupt(row, run, turn.person(), &open)),
        None => {
            let question = answer.question.clone()?;
            Some(of_clarification(row, run, turn.person(), question))
        }
    }
}

/// Returns the text of the reply with its buttons.
fn text_of(answer: &RunAnswer, question: Option<Asked>, end: RunEnd) -> (String, Vec<Button>) {
    let mut text = answer.text.clone().unwrap_or_default();
    let mut append = |more: &str| {
        if !text.trim().is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(more);
    };
    let mut buttons = Vec::new();
    match (question, end) {
        (Some(asked), _) => {
            append(&asked.text);
            buttons = asked.buttons;
        }
        (None, RunEnd::Cancelled) => append(words::STOPPED),
        (None, RunEnd::Failed) if answer.text.is_none() => append(words::FAILED),
        (None, RunEnd::Finished) if answer.text.is_none() && answer.files.is_empty() => {
            append(words::NO_ANSWER);
        }
        (None, _) if answer.text.is_none() => {
            let names: Vec<&str> = answer
                .files
                .iter()
                .map(|path| path.rsplit('/').next().unwrap_or(path))
                .collect();
            append(&names.join("\n"));
        }
        (None, _) => {}
    }
    (text, buttons)
}
