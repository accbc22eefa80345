//! `ask`: executes one question as a run, and cancels the run if the caller no longer waits.

use std::pin::pin;

use futures_util::StreamExt;
use harness::client::{Client, ClientError, Conversation, Question as PendingQuestion};
use harness::ids::ThreadId;
use harness::runtime::runs::RunError;
use harness::runtime::runs::store::AdmitError;
use rmcp::model::CallToolResult;
use serde_json::Value;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::arguments::Question;
use crate::elicitation::Elicitor;
use crate::outcome::{Answer, Outcome, failure};
use crate::ports::ApprovalCommand;
use crate::progress::{Activity, MIN_INTERVAL, RunProgress};

/// Receiver of progress reports of a run. Methods must not block.
pub(crate) trait RunListener: Send + 'static {
    /// Reports progress, as an increasing number and a status text.
    fn report_progress(&mut self, number: u32, status: String);
    /// Reports a tool call or a tool result.
    fn report_activity(&mut self, activity: Activity);
}

/// One question and the runs that answer it.
#[derive(Debug)]
pub(crate) struct QuestionRun<L> {
    client: Client,
    /// Asks the client's user, if the client supports it.
    elicitor: Option<Elicitor>,
    /// Cancelled when the caller no longer waits for the answer.
    stop: CancellationToken,
    listener: L,
    approval_command: ApprovalCommand,
    progress: RunProgress,
    ticks: Interval,
}

impl<L: RunListener> QuestionRun<L> {
    /// Creates a question run that reports to `listener` until `stop` is cancelled.
    pub(crate) fn new(
        client: Client,
        listener: L,
        elicitor: Option<Elicitor>,
        stop: CancellationToken,
        approval_command: ApprovalCommand,
    ) -> Self {
        let mut ticks = interval(MIN_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            client,
            elicitor,
            stop,
            listener,
            approval_command,
            progress: RunProgress::new(Instant::now()),
            ticks,
        }
    }

    /// Runs the question and returns the tool result; failures become error results. After a
    /// cancellation, the run has ended when this returns.
    pub(crate) async fn ask(mut self, question: Question, thread: ThreadId) -> CallToolResult {
        self.run_to_end(question, &thread)
            .await
            .map_or_else(failure, Answer::into_result)
    }

    /// Follows the run of the question, and one further run for each set of answers from the user.
    async fn run_to_end(
        &mut self,
        Question {
            message, options, ..
        }: Question,
        thread: &ThreadId,
    ) -> Result<Answer, String> {
        let mut outcome = Outcome::default();
        let mut started = self.client.stream_with(message, thread, &options).await;
        loop {
            let mut conversation = started.map_err(|error| start_failure(&error, thread))?;
            self.follow(&mut conversation, &mut outcome).await?;
            if outcome.is_cancelled {
                return Err(format!(
                    "The run was stopped before it was done. What was said stays in thread {thread}."
                ));
            }
            let Some(answers) = self.ask_user(&outcome.open, thread).await? else {
                let command = (self.approval_command)(thread, &options);
                return Ok(outcome.answer(thread, &conversation.run_id, command));
            };
            started = self.client.resume_with(answers, thread, &options).await;
        }
    }

    /// Processes the events of a run until its end.
    async fn follow(
        &mut self,
        conversation: &mut Conversation,
        outcome: &mut Outcome,
    ) -> Result<(), String> {
        let (thread, run, stop) = (
            conversation.thread_id.clone(),
            conversation.run_id.clone(),
            self.stop.clone(),
        );
        loop {
            tokio::select! {
                () = stop.cancelled() => {
                    if let Err(error) = self.client.cancel(&thread, &run).await {
                        tracing::debug!(%error, run_id = %run, "cannot cancel the run");
                    }
                    return Err(stopped(&thread));
                }
                () = self.report_when_due() => {}
                event = conversation.next() => match event {
                    Some(Ok(event)) => {
                        self.progress.observe(&event).into_iter().for_each(|activity| self.listener.report_activity(activity));
                        outcome.observe(event);
                    }
                    Some(Err(error)) => return Err(format!("The run failed: {error}. What was said stays in thread {thread}.")),
                    None => return Ok(()),
                },
            }
        }
    }

    /// Asks the user about the pending interrupts. Returns `None` if there is no user to ask, no
    /// answer, or if a previous answer was rejected: repeating the question could loop forever,
    /// because some forms send neither yes nor no.
    async fn ask_user(
        &mut self,
        open: &[PendingQuestion],
        thread: &ThreadId,
    ) -> Result<Option<Value>, String> {
        let askable = !open.is_empty() && open.iter().all(|question| question.error().is_none());
        let Some(elicitor) = self.elicitor.clone().filter(|_| askable) else {
            return Ok(None);
        };
        self.progress.mark_waiting();
        let (mut answers, stop) = (pin!(elicitor.ask_all(open)), self.stop.clone());
        loop {
            tokio::select! {
                () = stop.cancelled() => return Err(stopped(thread)),
                () = self.report_when_due() => {}
                answers = &mut answers => return Ok(answers),
            }
        }
    }

    /// Waits for the next tick and reports progress if it is due.
    async fn report_when_due(&mut self) {
        self.ticks.tick().await;
        if let Some((number, status)) = self.progress.due_report(Instant::now()) {
            self.listener.report_progress(number, status);
        }
    }
}

fn stopped(thread: &ThreadId) -> String {
    format!("The run was stopped, as it was asked for. What was said stays in thread {thread}.")
}

/// Explains why the question was not started.
fn start_failure(error: &ClientError, thread: &ThreadId) -> String {
    match error {
        ClientError::Run(RunError::Admit(AdmitError::ThreadBusy { .. })) => {
            format!(
                "The agent still works on thread {thread}. Wait for that answer, or leave thread_id out to begin another conversation."
            )
        }
        error => format!("The question was not asked: {error}."),
    }
}
