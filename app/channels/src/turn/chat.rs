//! Runs of the agent for messages and answers.

use deerflow_domain::channels::Conversation;
use harness::messages::Message;
use harness::runtime::actor_context::scope;
use harness::runtime::fail_points;
use harness::runtime::runs::store::AdmitError;
use harness::runtime::runs::{MultitaskStrategy, RunConfig, RunError, RunRequest, StreamMode};
use serde_json::{Map, Value, json};

use super::context::{Outcome, Person, Turn, TurnError};
use super::progress::RowProgress;
use super::{conversation, follow, intake};
use crate::bot::{Lane, thread_of};
use crate::session::{RunOptions, RunPlace, run_options};
use crate::words;

/// Input of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    /// A message.
    Message {
        /// Text.
        text: String,
        /// Options of this run only.
        options: Map<String, Value>,
    },
    /// Answers to open interrupts.
    Resume(Value),
}

/// Handles a message: answers an open question, or runs the agent.
pub(super) async fn message(
    turn: &Turn<'_>,
    lane: &Lane,
    person: &Person,
) -> Result<Outcome, TurnError> {
    let text = intake::text_of(turn);
    answer(turn, lane, person, &text).await
}

/// Handles a text: answers an open question with it, or runs the agent.
pub(super) async fn answer(
    turn: &Turn<'_>,
    lane: &Lane,
    person: &Person,
    text: &str,
) -> Result<Outcome, TurnError> {
    let conversation = conversation::of_turn(turn, person).await?;
    if let Some(question) = &conversation.question
        && let Some(interrupt) = &question.interrupt
    {
        let pending = turn
            .bot
            .hub
            .client
            .pending_interrupts(&conversation.thread_id);
        let pending = scope(turn.bot.actor(&conversation.user_id), pending)
            .await
            .map_err(|error| TurnError::Retry(error.to_string()))?;
        if pending.iter().any(|open| open.id == *interrupt) {
            if question.asker != turn.person() {
                return Ok(turn.refuse("another person was asked", words::NOT_YOURS));
            }
            let answer = Value::from(text);
            let answers = match pending.len() {
                1 => answer,
                _ => json!({ interrupt: answer }),
            };
            return run(turn, lane, person, conversation, Input::Resume(answers)).await;
        }
    }
    let input = Input::Message {
        text: text.to_owned(),
        options: Map::new(),
    };
    run(turn, lane, person, conversation, input).await
}

/// Runs the agent, or continues the run that an earlier attempt created.
pub(super) async fn run(
    turn: &Turn<'_>,
    lane: &Lane,
    person: &Person,
    mut conversation: Conversation,
    input: Input,
) -> Result<Outcome, TurnError> {
    let bot = turn.bot;
    let place = RunPlace {
        provider: bot.provider,
        person: turn.person(),
        user_id: &person.user_id,
    };
    let options = match run_options(&bot.rules, place, &conversation.options) {
        Ok(options) => options,
        Err(error) => return Ok(turn.refuse("invalid agent name", &error.to_string())),
    };
    let mut progress = RowProgress::read(&turn.group[0].row.progress);
    intake::receive_files(turn, person, &conversation.thread_id, &mut progress).await?;
    conversation::save_progress(turn, &progress).await?;
    let mut is_new_thread = false;
    loop {
        let request = request_of(turn, &conversation, &options, &input, &progress);
        let creating = bot.hub.client.runs().create_background(request);
        match scope(bot.actor(&conversation.user_id), creating).await {
            Ok(_) | Err(RunError::Admit(AdmitError::RunExists(_))) => break,
            Err(RunError::ShuttingDown) => return Err(TurnError::Stopped),
            // The thread was deleted: the conversation continues in a new one.
            Err(RunError::Admit(AdmitError::ThreadNotFound(_))) if !is_new_thread => {
                is_new_thread = true;
                conversation.thread_id = thread_of(turn.id());
                conversation.question = None;
                conversation::update(turn, &conversation).await?;
                conversation::create_thread(turn, &conversation).await?;
            }
            Err(RunError::Assistant(error)) => {
                return Ok(turn.refuse("unknown assistant", &error.to_string()));
            }
            Err(error) => return Err(TurnError::Retry(error.to_string())),
        }
    }
    fail_points::pass("channel.run-created");
    progress.started = true;
    let answered = matches!(input, Input::Message { .. }).then(|| turn.id().to_string());
    follow::follow(turn, lane, conversation, progress, answered).await
}

fn request_of(
    turn: &Turn<'_>,
    conversation: &Conversation,
    options: &RunOptions,
    input: &Input,
    progress: &RowProgress,
) -> RunRequest {
    let thread = conversation.thread_id.clone();
    let mut run_options = options.options.clone();
    let mut request = match input {
        Input::Message {
            text,
            options: of_message,
        } => {
            run_options.extend(of_message.clone());
            let message = human_message(turn, text, progress);
            RunRequest::ask(&*options.assistant, thread, message)
        }
        Input::Resume(answers) => RunRequest::answer(&*options.assistant, thread, answers.clone()),
    };
    request.run_id = Some(turn.group[0].row.run_id());
    request.config = RunConfig {
        recursion_limit: Some(options.recursion_limit),
        options: run_options,
        ..RunConfig::default()
    };
    request.stream_modes = [StreamMode::MessagesTuple].into_iter().collect();
    request.multitask = MultitaskStrategy::Enqueue;
    request
}

fn human_message(turn: &Turn<'_>, text: &str, progress: &RowProgress) -> Message {
    let mut text = text.to_owned();
    for note in &progress.notes {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(note);
    }
    if text.trim().is_empty() {
        text = words::FILES_ONLY.to_owned();
    }
    let files = progress.files.clone();
    Message::human(text).with(|body| {
        body.id = Some(turn.id().to_string());
        if !files.is_empty() {
            body.additional_kwargs
                .insert("files".to_owned(), files.into());
        }
    })
}
