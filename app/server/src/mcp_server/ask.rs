//! `ask`: one question as a run, followed to its end or stopped when nobody waits for it any more.

use std::pin::pin;

use futures_util::StreamExt;
use harness::client::{Client, ClientError, Conversation, Question as Asked};
use harness::ids::ThreadId;
use harness::runtime::runs::RunError;
use harness::runtime::runs::store::AdmitError;
use rmcp::model::CallToolResult;
use serde_json::Value;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::arguments::Question;
use super::news::{Activity, News, PACE};
use super::outcome::{Answer, Outcome, failure};
use super::person::Person;

/// Who asked, and hears of the run meanwhile.
pub(super) trait Listener: Send + 'static {
    /// Tells how far the run is. Never waits.
    fn progress(&mut self, number: u32, doing: String);
    /// Tells what the agent did. Never waits.
    fn activity(&mut self, activity: Activity);
}

/// One question and the runs that come of it.
#[derive(Debug)]
pub(super) struct Asking<L> {
    client: Client,
    /// Who is asked what only a person can say.
    person: Option<Person>,
    /// Says that nobody waits for the answer any more.
    stop: CancellationToken,
    listener: L,
    news: News,
    looks: Interval,
}

impl<L: Listener> Asking<L> {
    /// For this listener, until the token says that nobody waits any more.
    pub(super) fn new(
        client: Client,
        listener: L,
        person: Option<Person>,
        stop: CancellationToken,
    ) -> Self {
        let mut looks = interval(PACE);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            client,
            person,
            stop,
            listener,
            news: News::new(Instant::now()),
            looks,
        }
    }

    /// Asks, and gives what came of it: an error's result where nothing did. A run that is told to stop is over when this returns.
    pub(super) async fn ask(mut self, question: Question, thread: ThreadId) -> CallToolResult {
        self.follow(question, &thread)
            .await
            .map_or_else(failure, Answer::into_result)
    }

    /// Follows the runs to the end of the last: one for the question, and one more for each answer of a person.
    async fn follow(
        &mut self,
        Question {
            message, options, ..
        }: Question,
        thread: &ThreadId,
    ) -> Result<Answer, String> {
        let mut outcome = Outcome::default();
        let mut begun = self.client.stream_with(message, thread, &options).await;
        loop {
            let mut conversation = begun.map_err(|error| refusal(&error, thread))?;
            self.listen(&mut conversation, &mut outcome).await?;
            if outcome.is_cancelled {
                return Err(format!(
                    "The run was stopped before it was done. What was said stays in thread {thread}."
                ));
            }
            let Some(answers) = self.answers(&outcome.open, thread).await? else {
                return Ok(outcome.answer(thread, &conversation.run_id, &options));
            };
            begun = self.client.resume_with(answers, thread, &options).await;
        }
    }

    /// Takes in what a run tells until it is over.
    async fn listen(
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
                        tracing::debug!(%error, run_id = %run, "the run could not be stopped");
                    }
                    return Err(stopped(&thread));
                }
                () = self.look() => {}
                event = conversation.next() => match event {
                    Some(Ok(event)) => {
                        self.news.take(&event).into_iter().for_each(|activity| self.listener.activity(activity));
                        outcome.take(event);
                    }
                    Some(Err(error)) => return Err(format!("The run failed: {error}. What was said stays in thread {thread}.")),
                    None => return Ok(()),
                },
            }
        }
    }

    /// Asks the person what is open; nothing where there is nobody, no answer, or where the answer before was not understood: a form
    /// that says something else than yes or no would say it for ever.
    async fn answers(
        &mut self,
        open: &[Asked],
        thread: &ThreadId,
    ) -> Result<Option<Value>, String> {
        let askable = !open.is_empty() && open.iter().all(|question| question.error().is_none());
        let Some(person) = self.person.clone().filter(|_| askable) else {
            return Ok(None);
        };
        self.news.wait();
        let (mut answers, stop) = (pin!(person.answers(open)), self.stop.clone());
        loop {
            tokio::select! {
                () = stop.cancelled() => return Err(stopped(thread)),
                () = self.look() => {}
                answers = &mut answers => return Ok(answers),
            }
        }
    }

    /// Waits for the next look at the news, and tells what is due.
    async fn look(&mut self) {
        self.looks.tick().await;
        if let Some((number, doing)) = self.news.progress(Instant::now()) {
            self.listener.progress(number, doing);
        }
    }
}

fn stopped(thread: &ThreadId) -> String {
    format!("The run was stopped, as it was asked for. What was said stays in thread {thread}.")
}

/// Why a question was not asked.
fn refusal(error: &ClientError, thread: &ThreadId) -> String {
    match error {
        ClientError::Run(RunError::Admit(AdmitError::ThreadBusy { .. })) => {
            format!(
                "The agent still works on thread {thread}. Wait for that answer, or leave thread_id out to begin another conversation."
            )
        }
        error => format!("The question was not asked: {error}."),
    }
}
