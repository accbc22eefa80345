//! `deerflow chat`: a conversation with the agent at a terminal, in this process, over the stores
//! of the installation.

mod cards;
mod input;
mod options;
mod questions;
pub mod run;

use std::io::{self, Write};
use std::pin::pin;
use std::process::ExitCode;

use futures_util::StreamExt;
use harness::client::{ChatOptions, Client, ClientError, Conversation, Question};
use harness::ids::{IdSource, ThreadId};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::cli::ChatArgs;
use cards::Cards;
pub(crate) use cards::plain;
use input::Input;
pub(crate) use options::approval_command;
use options::options;

/// State of a conversation at a terminal.
#[derive(Debug)]
pub struct Chat<'a> {
    /// Client of the agent.
    pub client: Client,
    /// Current thread.
    pub thread: ThreadId,
    /// Source of ids for new threads.
    pub ids: &'a dyn IdSource,
    /// Lines entered by the user; closed at the end of input.
    pub lines: mpsc::Receiver<String>,
    /// Interrupts (Ctrl-C) of the user.
    pub interrupts: &'a mut mpsc::Receiver<()>,
    /// `true` if the output is a terminal.
    pub is_interactive: bool,
}

/// Result of one answer or of the whole conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatExit {
    /// Answered.
    Success,
    /// The run or the request failed.
    Failed,
    /// Ended with interrupts that the user did not answer.
    Unanswered,
    /// Cancelled by the user.
    Cancelled,
    /// Exited by the user without waiting for the cancellation.
    Aborted,
}

impl From<ChatExit> for ExitCode {
    fn from(ended: ChatExit) -> Self {
        match ended {
            ChatExit::Success => Self::SUCCESS,
            ChatExit::Failed | ChatExit::Unanswered => Self::FAILURE,
            // The exit code that shells report for a program ended by an interrupt.
            ChatExit::Cancelled | ChatExit::Aborted => Self::from(130),
        }
    }
}

impl Chat<'_> {
    /// Answers the message of the command line, or else each entered line until the end of input.
    /// Interactive sessions start with the pending interrupts of the thread.
    pub async fn run(&mut self, args: &ChatArgs, out: &mut dyn Write) -> anyhow::Result<ChatExit> {
        let mut options = options(args);
        if !args.message.is_empty() {
            let words = args.message.join(" ");
            return match args.answer {
                true => {
                    self.resume_pending(Some(&words), &options, args.json, out)
                        .await
                }
                false => self.answer(&words, &options, args.json, out).await,
            };
        }
        if self.is_interactive && !args.json {
            writeln!(
                out,
                "thread {}; /help lists commands, Ctrl-C stops an answer, Ctrl-D quits",
                self.thread
            )?;
        }
        let mut last = self.resume_pending(None, &options, args.json, out).await?;
        loop {
            if last == ChatExit::Aborted {
                return Ok(last);
            }
            if self.is_interactive && !args.json {
                write!(out, "\n> ")?;
                out.flush()?;
            }
            // Interrupts that arrived while an answer was ending must not end the conversation.
            while self.interrupts.try_recv().is_ok() {}
            let line = tokio::select! {
                line = self.lines.recv() => line,
                Some(()) = self.interrupts.recv() => None,
            };
            let Some(line) = line else { return Ok(last) };
            match Input::read(&line) {
                Input::Empty => {}
                Input::Message(words) => {
                    last = self.answer(words, &options, args.json, out).await?
                }
                Input::Quit => return Ok(last),
                Input::Help => writeln!(out, "{}", input::HELP)?,
                Input::New => {
                    self.thread = self.ids.thread_id();
                    writeln!(out, "thread {}", self.thread)?;
                }
                Input::Resume(id) => match ThreadId::parse(id) {
                    Ok(id) => {
                        self.thread = id;
                        last = self.resume_pending(None, &options, args.json, out).await?;
                    }
                    Err(error) => writeln!(out, "{error}")?,
                },
                Input::Model(name) => {
                    options.model_name = (!name.is_empty()).then(|| name.to_owned())
                }
                Input::Plan => {
                    options.plan_mode = !options.plan_mode;
                    writeln!(
                        out,
                        "plan mode is {}",
                        if options.plan_mode { "on" } else { "off" }
                    )?;
                }
            }
        }
    }

    async fn answer(
        &mut self,
        words: &str,
        options: &ChatOptions,
        json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<ChatExit> {
        let conversation = self.client.stream_with(words, &self.thread, options).await;
        self.converse(conversation, options, json, out).await
    }

    /// Resumes a thread with pending interrupts, using `answer_text` as the answer or asking the user.
    async fn resume_pending(
        &mut self,
        answer_text: Option<&str>,
        options: &ChatOptions,
        json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<ChatExit> {
        let open = match self.client.pending_interrupts(&self.thread).await {
            Ok(open) => open,
            Err(error) => return report_error(&error, json, out),
        };
        if open.is_empty() {
            anyhow::ensure!(
                answer_text.is_none(),
                "thread {} has no pending question",
                self.thread
            );
            return Ok(ChatExit::Success);
        }
        let answers = match answer_text {
            Some(words) => questions::read_all(words, &open),
            // A program sends its answers itself.
            None if json => return Ok(ChatExit::Success),
            None => match self.ask(&open, options, out).await? {
                Some(answers) => answers,
                None => return Ok(ChatExit::Unanswered),
            },
        };
        let conversation = self
            .client
            .resume_with(answers, &self.thread, options)
            .await;
        self.converse(conversation, options, json, out).await
    }

    /// Follows a conversation to its end, including the runs that follow from answers to
    /// interrupts.
    async fn converse(
        &mut self,
        mut conversation: Result<Conversation, ClientError>,
        options: &ChatOptions,
        json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<ChatExit> {
        loop {
            let (ended, open) = match conversation {
                Ok(conversation) => self.follow(conversation, json, out).await?,
                Err(error) => return report_error(&error, json, out),
            };
            if open.is_empty() || ended != ChatExit::Success {
                return Ok(ended);
            }
            // A program reads the interrupts from the last event.
            let answers = if json {
                None
            } else {
                self.ask(&open, options, out).await?
            };
            let Some(answers) = answers else {
                return Ok(ChatExit::Unanswered);
            };
            conversation = self
                .client
                .resume_with(answers, &self.thread, options)
                .await;
        }
    }

    /// Asks the user about the pending interrupts; `None` if the input ends first.
    async fn ask(
        &mut self,
        open: &[Question],
        options: &ChatOptions,
        out: &mut dyn Write,
    ) -> anyhow::Result<Option<Value>> {
        let mut answers = Map::new();
        for question in open {
            questions::show(question, out)?;
            let line = tokio::select! {
                line = self.lines.recv() => line,
                Some(()) = self.interrupts.recv() => None,
            };
            let Some(line) = line else {
                writeln!(
                    out,
                    "\nno answer given, so nothing was executed; approve with `{}`",
                    approval_command(&self.thread, options)
                )?;
                return Ok(None);
            };
            answers.insert(question.id.clone(), questions::read(&line, question));
        }
        Ok(Some(answers.into()))
    }

    /// Writes the events of a run until its end. A first interrupt cancels the run; a second
    /// returns without waiting. Returns the interrupts that are pending at the end.
    async fn follow(
        &mut self,
        mut conversation: Conversation,
        json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<(ChatExit, Vec<Question>)> {
        let mut open = Vec::new();
        let (thread, run) = (conversation.thread_id.clone(), conversation.run_id.clone());
        let mut cards = Cards::new(self.is_interactive);
        let client = self.client.clone();
        let mut cancelling = pin!(client.cancel(&thread, &run));
        let (mut stopped, mut cancelled) = (false, false);
        loop {
            let event = tokio::select! {
                biased;
                Some(()) = self.interrupts.recv() => {
                    if stopped {
                        cards.end(out)?;
                        return Ok((ChatExit::Aborted, open));
                    }
                    stopped = true;
                    continue;
                }
                cancel_result = &mut cancelling, if stopped && !cancelled => {
                    cancelled = true;
                    if let Err(error) = cancel_result {
                        tracing::debug!(%error, "cannot cancel the run");
                    }
                    continue;
                }
                event = conversation.next() => event,
            };
            match event {
                Some(Ok(event)) => {
                    open.extend(event.questions());
                    let written = if json {
                        write_json_line(&event, out)
                    } else {
                        cards.show(&event, out)
                    };
                    if let Err(error) = written {
                        // Without a reader of the output, the run is not needed.
                        _ = self.client.cancel(&thread, &run).await;
                        return Err(error.into());
                    }
                }
                Some(Err(error)) => {
                    cards.end(out)?;
                    return Ok((report_error(&error, json, out)?, open));
                }
                None => {
                    cards.end(out)?;
                    return Ok((
                        if stopped {
                            ChatExit::Cancelled
                        } else {
                            ChatExit::Success
                        },
                        open,
                    ));
                }
            }
        }
    }
}

/// Writes a line of JSON.
fn write_json_line(event: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, event)?;
    writeln!(out)?;
    out.flush()
}

/// Writes an error message.
fn report_error(error: &ClientError, json: bool, out: &mut dyn Write) -> anyhow::Result<ChatExit> {
    if json {
        write_json_line(
            &json!({ "type": "error", "data": { "message": error.to_string() } }),
            out,
        )?;
    } else {
        writeln!(out, "error: {}", cards::plain(&error.to_string()))?;
        out.flush()?;
    }
    Ok(ChatExit::Failed)
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
