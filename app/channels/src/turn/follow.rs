//! Follows the run of a turn to its end and builds the replies.

use std::time::Duration;

use deerflow_domain::channels::{ChannelStoreError, Conversation};
use futures_util::StreamExt;
use harness::client::ClientError;
use harness::runtime::actor_context::scope;
use harness::runtime::fail_points;
use harness::runtime::runs::RunStatus;
use harness::runtime::threads::ThreadView;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::answer::{RunAnswer, Span, answer_of};
use super::context::{Outcome, Turn, TurnError};
use super::later::LaterMessages;
use super::live::LiveView;
use super::progress::RowProgress;
use super::questions::{Asked, of_clarification, of_interrupt};
use super::{conversation, questions, stop_data};
use crate::bot::{Lane, show};
use crate::platform::{Button, LiveReply, Receipt};
use crate::words;

/// Pause before a stream that broke off is joined again.
const JOIN_PAUSE: Duration = Duration::from_millis(250);
/// Attempts to store the state of a live message, and the pause between them.
const SAVE_ATTEMPTS: usize = 10;
const SAVE_PAUSE: Duration = Duration::from_millis(500);
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
    show(bot, &turn.target(), Receipt::Received);
    let is_resumed = turn.group[0].row.claims > 0;
    let reply = live_reply(turn, progress.live.clone());
    let live = LiveView::new(bot.clone(), reply, is_resumed);
    let (end, live) = watch(turn, lane, &conversation, &mut progress, live, &stop).await?;
    fail_points::pass("channel.run-ended");
    let view = conversation::read_thread(turn, &conversation)
        .await?
        .ok_or_else(|| TurnError::Retry("the thread was deleted".to_owned()))?;
    replies_of(turn, &mut conversation, live, &span, end, view).await
}

fn live_reply(turn: &Turn<'_>, state: Value) -> LiveReply {
    LiveReply {
        key: turn.id(),
        target: turn.target(),
        stop: turn.bot.platform.abilities().buttons.then(|| Button {
            label: words::STOP_LABEL.to_owned(),
            data: stop_data::make(turn.id()),
        }),
        state,
        may_exist: false,
    }
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
    let mut later = LaterMessages::new(turn, stop.clone());
    let mut message_id = String::new();
    let typing = bot.platform.abilities().typing;
    let mut typing_at = Instant::now();
    // Messages that arrived while the run was created.
    later.examine().await?;
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
                // At a shutdown the turn itself is dropped.
                Some(Err(error @ (ClientError::Gap | ClientError::StreamEnded))) => {
                    tracing::debug!(%error, run = %run, "the stream of a run broke off, joining again");
                    if let Some(end) = stored_end(turn, conversation).await? {
                        break end;
                    }
                    sleep(JOIN_PAUSE).await;
                    events = scope(actor(), bot.hub.client.join(thread, &run)).await.map_err(run_failure)?;
                    message_id.clear();
                }
                Some(Err(error)) => return Err(run_failure(error)),
            },
            state = live.step() => {
                if let Some(state) = state && state != progress.live {
                    progress.live = state;
                    save_live(turn, progress).await?;
                }
            }
            () = lane.notified() => later.examine().await?,
            () = later.notice_due() => later.send_notice().await?,
            () = &mut cancel, if !is_cancelling => is_cancelling = true,
            () = sleep_until(typing_at), if typing.is_some() => {
                show(bot, &turn.target(), Receipt::Working);
                typing_at = Instant::now() + typing.unwrap_or_default();
            }
        }
    };
    Ok((end, live))
}

/// Stores the state of the live message before its next update: a message that people see without
/// a stored state would be repeated after a restart.
async fn save_live(turn: &Turn<'_>, progress: &RowProgress) -> Result<(), TurnError> {
    for _ in 1..SAVE_ATTEMPTS {
        match conversation::save_progress(turn, progress).await {
            Err(TurnError::Store(error)) if error != ChannelStoreError::Fenced => {
                tracing::warn!(%error, "the state of a live message was not stored, trying again");
            }
            saved => return saved,
        }
        sleep(SAVE_PAUSE).await;
    }
    conversation::save_progress(turn, progress).await
}

fn run_failure(error: ClientError) -> TurnError {
    TurnError::Retry(error.to_string())
}

/// Returns the end of the run as it is stored. The events of an ended run may be lost, so that its
/// stream would break off again and again.
async fn stored_end(
    turn: &Turn<'_>,
    conversation: &Conversation,
) -> Result<Option<RunEnd>, TurnError> {
    let (bot, run) = (turn.bot, turn.group[0].row.run_id());
    let reading = bot
        .hub
        .client
        .runs()
        .get_run(Some(&conversation.thread_id), &run);
    let stored = scope(bot.actor(&conversation.user_id), reading)
        .await
        .map_err(|error| TurnError::Retry(error.to_string()))?;
    let status = stored.map(|record| record.status);
    Ok(match status.filter(|status| status.is_terminal()) {
        None => None,
        Some(RunStatus::Success) => Some(RunEnd::Finished),
        Some(RunStatus::Interrupted) => Some(RunEnd::Cancelled),
        Some(_) => Some(RunEnd::Failed),
    })
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
    let answer = match (answer_of(conversation::messages_of(&view), span), end) {
        (Some(answer), _) => answer,
        (None, RunEnd::Cancelled | RunEnd::Failed) => RunAnswer::default(),
        // The state that was read is older than the run, or the message was deleted.
        (None, RunEnd::Finished) => {
            return Err(TurnError::Retry(
                "the thread does not contain the message that the run answered".to_owned(),
            ));
        }
    };
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
