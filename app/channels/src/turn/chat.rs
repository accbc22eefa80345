//! Runs of the agent for messages and answers.

use deerflow_domain::channels::Conversation;
use harness::messages::Message;
use harness::quota::Quota;
use harness::runtime::actor_context::scope;
use harness::runtime::fail_points;
use harness::runtime::runs::store::AdmitError;
use harness::runtime::runs::{MultitaskStrategy, RunConfig, RunError, RunRequest, StreamMode};
use serde_json::{Map, Value, json};

use super::answer::Span;
use super::context::{Outcome, Person, Turn, TurnError};
use super::progress::{Plan, RowProgress};
use super::replies::stopped_before_run;
use super::{conversation, follow, intake, questions};
use crate::bot::{ActiveTurn, Lane, Phase, thread_of};
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
    /// Input that is stored with the row before the run is created.
    Planned(Plan),
}

/// Handles a message: answers an open question, or runs the agent.
pub(super) async fn message(
    turn: &Turn<'_>,
    lane: &Lane,
    person: &Person,
) -> Result<Outcome, TurnError> {
    if let Some(plan) = turn.progress().plan {
        return planned(turn, lane, person, plan).await;
    }
    let text = intake::text_of(turn);
    let conversation = conversation::of_turn(turn, person).await?;
    match open_interrupt(turn, &conversation, &text).await? {
        Interrupt::None => {
            let input = Input::Message {
                text,
                options: Map::new(),
            };
            run(turn, lane, person, conversation, input).await
        }
        Interrupt::Answered(plan) => {
            run(turn, lane, person, conversation, Input::Planned(plan)).await
        }
        Interrupt::OfAnother => Ok(turn.refuse("another person was asked", words::NOT_YOURS)),
    }
}

/// Handles the answer of a pressed button.
pub(super) async fn answer(
    turn: &Turn<'_>,
    lane: &Lane,
    person: &Person,
    text: &str,
) -> Result<Outcome, TurnError> {
    let conversation = conversation::of_turn(turn, person).await?;
    let plan = match open_interrupt(turn, &conversation, text).await? {
        Interrupt::None => Plan::Text(text.to_owned()),
        Interrupt::Answered(plan) => plan,
        Interrupt::OfAnother => {
            return Ok(turn.refuse("another person was asked", words::NOT_YOURS));
        }
    };
    run(turn, lane, person, conversation, Input::Planned(plan)).await
}

/// Continues with an input that an earlier attempt decided.
pub(super) async fn planned(
    turn: &Turn<'_>,
    lane: &Lane,
    person: &Person,
    plan: Plan,
) -> Result<Outcome, TurnError> {
    let conversation = conversation::of_turn(turn, person).await?;
    run(turn, lane, person, conversation, Input::Planned(plan)).await
}

/// Relation of a text to the open interrupt of its conversation.
enum Interrupt {
    /// No interrupt is open.
    None,
    /// The text answers it.
    Answered(Plan),
    /// Another person was asked.
    OfAnother,
}

async fn open_interrupt(
    turn: &Turn<'_>,
    conversation: &Conversation,
    text: &str,
) -> Result<Interrupt, TurnError> {
    let question = conversation.question.as_ref();
    let Some((question, interrupt)) =
        question.and_then(|question| Some((question, question.interrupt.as_ref()?)))
    else {
        return Ok(Interrupt::None);
    };
    let Some(view) = conversation::read_thread(turn, conversation).await? else {
        return Ok(Interrupt::None);
    };
    let open = questions::open_interrupts(&view);
    if !open.iter().any(|open| open.id == *interrupt) {
        return Ok(Interrupt::None);
    }
    if question.asker != turn.person() {
        return Ok(Interrupt::OfAnother);
    }
    let answer = Value::from(text);
    let answers = match open.len() {
        1 => answer,
        _ => json!({ interrupt: answer }),
    };
    let last = conversation::messages_of(&view).last();
    let after = last.and_then(|message| message["id"].as_str());
    Ok(Interrupt::Answered(Plan::Resume {
        answers,
        after: after.map(str::to_owned),
    }))
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
    let mut progress = turn.progress();
    if let Input::Planned(plan) = &input {
        progress.plan = Some(plan.clone());
    }
    let active = active_turn(turn, &conversation);
    // Without files to receive, an earlier attempt may have created the run.
    let phase = match intake::has_files_to_receive(turn, &progress) {
        true => Phase::Preparing,
        false => Phase::Creating,
    };
    let registered = bot.active.register(active.clone(), phase);
    tokio::select! {
        received = intake::receive_files(turn, person, &conversation.thread_id, &mut progress) => received?,
        () = registered.stopped().cancelled() => {}
    }
    if !registered.begin_run() {
        return Ok(Outcome::answered(stopped_before_run(bot, &active)));
    }
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
            Err(RunError::Admit(AdmitError::QuotaExceeded(exceeded)))
                if exceeded.quota != Quota::QueuedRuns =>
            {
                return Err(TurnError::QuotaExceeded(exceeded));
            }
            Err(RunError::Assistant(error)) => {
                return Ok(turn.refuse("unknown assistant", &error.to_string()));
            }
            Err(error) => return Err(TurnError::Retry(error.to_string())),
        }
    }
    registered.run_created(&conversation.thread_id);
    fail_points::pass("channel.run-created");
    let span = match &input {
        Input::Planned(Plan::Resume { after, .. }) => Span::Resumed(after.clone()),
        Input::Message { .. } | Input::Planned(Plan::Text(_)) => Span::Asked(turn.id().to_string()),
    };
    follow::follow(turn, lane, conversation, progress, span).await
}

fn active_turn(turn: &Turn<'_>, conversation: &Conversation) -> ActiveTurn {
    ActiveTurn {
        rows: turn.ids(),
        conversation: turn.conversation().to_owned(),
        target: turn.target(),
        user_id: conversation.user_id.clone(),
        thread_id: conversation.thread_id.clone(),
        run_id: turn.group[0].row.run_id(),
    }
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
        Input::Planned(Plan::Text(text)) => {
            let message = human_message(turn, text, progress);
            RunRequest::ask(&*options.assistant, thread, message)
        }
        Input::Planned(Plan::Resume { answers, .. }) => {
            RunRequest::answer(&*options.assistant, thread, answers.clone())
        }
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
