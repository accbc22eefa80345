//! `deerflow chat`: talk to the agent at a terminal, in this process, over the installation's own stores.

mod cards;
mod input;
mod options;
mod questions;

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
use input::Said;
pub(crate) use options::command_to_allow;
use options::options;

/// What a conversation at a terminal needs.
#[derive(Debug)]
pub struct Chat<'a> {
    /// Who is asked.
    pub client: Client,
    /// The thread to begin with, and then the one that is talked on.
    pub thread: ThreadId,
    /// Makes the ids of others.
    pub ids: &'a dyn IdSource,
    /// The lines that a person writes, until there are no more.
    pub lines: mpsc::Receiver<String>,
    /// Says each time that the person wants what goes on to stop.
    pub stops: &'a mut mpsc::Receiver<()>,
    /// Whether a person looks at the output, rather than a program.
    pub watched: bool,
}

/// How a question ended, or a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With an answer.
    Well,
    /// Without.
    Failed,
    /// With a question of its own that nobody here answered.
    Asked,
    /// The person had it stop.
    Stopped,
    /// The person would not wait for it to stop.
    AtOnce,
}

impl From<Ended> for ExitCode {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Well => Self::SUCCESS,
            Ended::Failed | Ended::Asked => Self::FAILURE,
            // As a shell says of a program that an interrupt ended.
            Ended::Stopped | Ended::AtOnce => Self::from(130),
        }
    }
}

impl Chat<'_> {
    /// Answers the message of the command line, or else each line until there are no more, the first of them with what the thread waits
    /// for since before.
    pub async fn run(&mut self, args: &ChatArgs, out: &mut dyn Write) -> anyhow::Result<Ended> {
        let mut options = options(args);
        if !args.message.is_empty() {
            let words = args.message.join(" ");
            return match args.answer {
                true => self.take_up(Some(&words), &options, args.json, out).await,
                false => self.answer(&words, &options, args.json, out).await,
            };
        }
        if self.watched && !args.json {
            writeln!(
                out,
                "thread {}; /help says what can be done, Ctrl-C stops an answer, Ctrl-D ends",
                self.thread
            )?;
        }
        let mut last = self.take_up(None, &options, args.json, out).await?;
        loop {
            if last == Ended::AtOnce {
                return Ok(last);
            }
            if self.watched && !args.json {
                write!(out, "\n> ")?;
                out.flush()?;
            }
            // What was to stop is over: that was not meant for the whole conversation.
            while self.stops.try_recv().is_ok() {}
            let line = tokio::select! {
                line = self.lines.recv() => line,
                Some(()) = self.stops.recv() => None,
            };
            let Some(line) = line else { return Ok(last) };
            match Said::read(&line) {
                Said::Nothing => {}
                Said::Words(words) => last = self.answer(words, &options, args.json, out).await?,
                Said::Quit => return Ok(last),
                Said::Help => writeln!(out, "{}", input::HELP)?,
                Said::New => {
                    self.thread = self.ids.thread_id();
                    writeln!(out, "thread {}", self.thread)?;
                }
                Said::Resume(id) => match ThreadId::parse(id) {
                    Ok(id) => {
                        self.thread = id;
                        last = self.take_up(None, &options, args.json, out).await?;
                    }
                    Err(error) => writeln!(out, "{error}")?,
                },
                Said::Model(name) => {
                    options.model_name = (!name.is_empty()).then(|| name.to_owned())
                }
                Said::Plan => {
                    options.plan_mode = !options.plan_mode;
                    writeln!(
                        out,
                        "planning is {}",
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
    ) -> anyhow::Result<Ended> {
        let conversation = self.client.stream_with(words, &self.thread, options).await;
        self.converse(conversation, options, json, out).await
    }

    /// Goes on with what the thread waits for since before: the person is asked, unless they said it already.
    async fn take_up(
        &mut self,
        said: Option<&str>,
        options: &ChatOptions,
        json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<Ended> {
        let open = match self.client.open_questions(&self.thread).await {
            Ok(open) => open,
            Err(error) => return told_of(&error, json, out),
        };
        if open.is_empty() {
            anyhow::ensure!(said.is_none(), "thread {} waits for no answer", self.thread);
            return Ok(Ended::Well);
        }
        let answers = match said {
            Some(words) => questions::read_all(words, &open),
            // A program says by itself what it answers.
            None if json => return Ok(Ended::Well),
            None => match self.ask(&open, options, out).await? {
                Some(answers) => answers,
                None => return Ok(Ended::Asked),
            },
        };
        let conversation = self
            .client
            .resume_with(answers, &self.thread, options)
            .await;
        self.converse(conversation, options, json, out).await
    }

    /// Follows a conversation to its end, and what comes of the answers to what it asks.
    async fn converse(
        &mut self,
        mut conversation: Result<Conversation, ClientError>,
        options: &ChatOptions,
        json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<Ended> {
        loop {
            let (ended, open) = match conversation {
                Ok(conversation) => self.follow(conversation, json, out).await?,
                Err(error) => return told_of(&error, json, out),
            };
            if open.is_empty() || ended != Ended::Well {
                return Ok(ended);
            }
            // A program has read the questions in the last event.
            let answers = if json {
                None
            } else {
                self.ask(&open, options, out).await?
            };
            let Some(answers) = answers else {
                return Ok(Ended::Asked);
            };
            conversation = self
                .client
                .resume_with(answers, &self.thread, options)
                .await;
        }
    }

    /// Asks the person what the run asks; nothing when nobody answers.
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
                Some(()) = self.stops.recv() => None,
            };
            let Some(line) = line else {
                writeln!(
                    out,
                    "\nnobody answered, so nothing was done; `{}` says yes",
                    command_to_allow(&self.thread, options)
                )?;
                return Ok(None);
            };
            answers.insert(question.id.clone(), questions::read(&line, question));
        }
        Ok(Some(answers.into()))
    }

    /// Shows a conversation to its end, and stops it when the person wants that. Who wants it twice is not kept waiting. What it asks
    /// at its end is left to be answered.
    async fn follow(
        &mut self,
        mut conversation: Conversation,
        json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<(Ended, Vec<Question>)> {
        let mut open = Vec::new();
        let (thread, run) = (conversation.thread_id.clone(), conversation.run_id.clone());
        let mut cards = Cards::new(self.watched);
        let client = self.client.clone();
        let mut cancelling = pin!(client.cancel(&thread, &run));
        let (mut stopped, mut cancelled) = (false, false);
        loop {
            let event = tokio::select! {
                biased;
                Some(()) = self.stops.recv() => {
                    if stopped {
                        cards.end(out)?;
                        return Ok((Ended::AtOnce, open));
                    }
                    stopped = true;
                    continue;
                }
                done = &mut cancelling, if stopped && !cancelled => {
                    cancelled = true;
                    if let Err(error) = done {
                        tracing::debug!(%error, "the run could not be stopped");
                    }
                    continue;
                }
                event = conversation.next() => event,
            };
            match event {
                Some(Ok(event)) => {
                    open.extend(event.questions());
                    let shown = if json {
                        line_of(&event, out)
                    } else {
                        cards.show(&event, out)
                    };
                    if let Err(error) = shown {
                        // Nobody reads any more: the run is for nobody.
                        _ = self.client.cancel(&thread, &run).await;
                        return Err(error.into());
                    }
                }
                Some(Err(error)) => {
                    cards.end(out)?;
                    return Ok((told_of(&error, json, out)?, open));
                }
                None => {
                    cards.end(out)?;
                    return Ok((if stopped { Ended::Stopped } else { Ended::Well }, open));
                }
            }
        }
    }
}

/// Writes a line of JSON.
fn line_of(event: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, event)?;
    writeln!(out)?;
    out.flush()
}

/// Says why there is no answer, or no more of it.
fn told_of(error: &ClientError, json: bool, out: &mut dyn Write) -> anyhow::Result<Ended> {
    if json {
        line_of(
            &json!({ "type": "error", "data": { "message": error.to_string() } }),
            out,
        )?;
    } else {
        writeln!(out, "error: {}", cards::plain(&error.to_string()))?;
        out.flush()?;
    }
    Ok(Ended::Failed)
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
