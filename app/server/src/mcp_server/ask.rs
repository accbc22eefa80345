//! `ask`: one question as a run, followed to its end or stopped when nobody waits for it any more.

use std::sync::Arc;

use futures_util::StreamExt;
use harness::client::{Client, ClientError, Conversation};
use harness::ids::ThreadId;
use harness::runtime::runs::store::AdmitError;
use harness::runtime::runs::{RunError, RunStatus, RunsFacade};
use rmcp::model::CallToolResult;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::arguments::Question;
use super::news::{Activity, News, PACE};
use super::outcome::{Outcome, failure};

/// Who asked, and hears of the run meanwhile.
pub(super) trait Listener: Send + 'static {
    /// Tells how far the run is. Never waits.
    fn progress(&mut self, number: u32, doing: String);
    /// Tells what the agent did. Never waits.
    fn activity(&mut self, activity: Activity);
}

/// Asks, and gives what came of it: an error's result where nothing did. A run that is told to stop is over when this returns.
pub(super) async fn ask(
    question: Question,
    thread: ThreadId,
    runs: &Arc<RunsFacade>,
    mut listener: impl Listener,
    stop: &CancellationToken,
) -> CallToolResult {
    let client = Client::new(runs.clone());
    match client.stream_with(question.message, &thread, &question.options).await {
        Ok(conversation) => follow(conversation, &client, runs, &mut listener, stop).await,
        Err(error) => failure(refusal(&error, &thread)),
    }
}

async fn follow(
    mut conversation: Conversation,
    client: &Client,
    runs: &RunsFacade,
    listener: &mut impl Listener,
    stop: &CancellationToken,
) -> CallToolResult {
    let (thread, run) = (conversation.thread_id.clone(), conversation.run_id.clone());
    let (mut outcome, mut news) = (Outcome::default(), News::new(Instant::now()));
    let mut looks = interval(PACE);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => {
                if let Err(error) = client.cancel(&thread, &run).await {
                    tracing::debug!(%error, run_id = %run, "the run could not be stopped");
                }
                return failure(format!("The run was stopped, as it was asked for. What was said stays in thread {thread}."));
            }
            _ = looks.tick() => {
                if let Some((number, doing)) = news.progress(Instant::now()) {
                    listener.progress(number, doing);
                }
            }
            event = conversation.next() => match event {
                Some(Ok(event)) => {
                    news.take(&event).into_iter().for_each(|activity| listener.activity(activity));
                    outcome.take(event);
                }
                Some(Err(error)) => return failure(format!("The run failed: {error}. What was said stays in thread {thread}.")),
                None => break,
            },
        }
    }
    // A stream ends in the same way when somebody else stopped the run.
    match runs.get_run(Some(&thread), &run).await {
        Ok(Some(record)) if record.status == RunStatus::Interrupted => {
            failure(format!("The run was stopped before it was done. What was said stays in thread {thread}."))
        }
        _ => outcome.answer(&thread, &run).into_result(),
    }
}

/// Why a question was not asked.
fn refusal(error: &ClientError, thread: &ThreadId) -> String {
    match error {
        ClientError::Run(RunError::Admit(AdmitError::ThreadBusy { .. })) => {
            format!("The agent still works on thread {thread}. Wait for that answer, or leave thread_id out to begin another conversation.")
        }
        error => format!("The question was not asked: {error}."),
    }
}
