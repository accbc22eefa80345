//! Client that runs agents of a runtime.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use indexmap::IndexMap;
use serde_json::Value;

use super::conversation::Conversation;
use super::error::ClientError;
use super::installation::Installation;
use super::options::ChatOptions;
use crate::agents::lead::LEAD_AGENT;
use crate::ids::{RunId, ThreadId};
use crate::messages::{Content, Message};
use crate::runtime::runs::{CancelAction, RunConfig, RunRequest, RunsFacade, StreamMode};
use crate::runtime::stream_bridge::ResumeFrom;

/// Heartbeat interval of streams; heartbeats are not needed within a process, hence the long
/// interval.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// Runs agents for the bound actor or the default user
/// ([`actor_context`](crate::runtime::actor_context)). Clones share the runtime.
#[derive(Debug, Clone)]
pub struct Client {
    pub(super) runs: Arc<RunsFacade>,
    assistant: String,
    options: ChatOptions,
    pub(super) installation: Installation,
}

impl Client {
    /// Creates a client of this runtime's lead agent.
    pub fn new(runs: Arc<RunsFacade>) -> Self {
        Self {
            runs,
            assistant: LEAD_AGENT.to_owned(),
            options: ChatOptions::default(),
            installation: Installation::default(),
        }
    }

    /// Selects another assistant.
    #[must_use]
    pub fn assistant(mut self, name: impl Into<String>) -> Self {
        self.assistant = name.into();
        self
    }

    /// Sets the default options of requests.
    #[must_use]
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the parts of the installation that the client methods outside of runs need.
    #[must_use]
    pub fn installation(mut self, installation: Installation) -> Self {
        self.installation = installation;
        self
    }

    /// Returns the runtime's operations, for those without a client method.
    pub fn runs(&self) -> &Arc<RunsFacade> {
        &self.runs
    }

    /// Discards the cached agents, so that new runs assemble them again. Agents are rebuilt without
    /// this call when their options, the user's agents and skills, or the tools of servers change.
    pub fn reset_agent(&self) {
        self.runs.runtime().ports().agents.forget();
    }

    /// Sends a message on a thread, which is created if it does not exist, and streams the run.
    ///
    /// # Errors
    /// An error if the run cannot be created, for example for an unknown assistant or model, a busy
    /// thread, or an unavailable store.
    pub async fn stream(
        &self,
        message: impl Into<Content>,
        thread: &ThreadId,
    ) -> Result<Conversation, ClientError> {
        self.stream_with(message, thread, &self.options).await
    }

    /// As [`Client::stream`], with other options.
    ///
    /// # Errors
    /// The errors of [`Client::stream`].
    pub async fn stream_with(
        &self,
        message: impl Into<Content>,
        thread: &ThreadId,
        options: &ChatOptions,
    ) -> Result<Conversation, ClientError> {
        self.follow(
            RunRequest::ask(&*self.assistant, thread.clone(), Message::human(message)),
            options,
        )
        .await
    }

    /// Answers the open interrupts of a thread and streams the run. A single open interrupt takes
    /// the answer itself; several take a map from interrupt id to answer, and those without an
    /// answer stay open.
    ///
    /// # Errors
    /// The errors of [`Client::stream`], and an error for an unknown thread. An answer that does
    /// not match the interrupts fails the run.
    pub async fn resume(
        &self,
        answer: Value,
        thread: &ThreadId,
    ) -> Result<Conversation, ClientError> {
        self.resume_with(answer, thread, &self.options).await
    }

    /// As [`Client::resume`], with other options. Use the options of the interrupted request: they
    /// determine what the agent can do.
    ///
    /// # Errors
    /// The errors of [`Client::resume`].
    pub async fn resume_with(
        &self,
        answer: Value,
        thread: &ThreadId,
        options: &ChatOptions,
    ) -> Result<Conversation, ClientError> {
        self.follow(
            RunRequest::answer(&*self.assistant, thread.clone(), answer),
            options,
        )
        .await
    }

    async fn follow(
        &self,
        mut spec: RunRequest,
        options: &ChatOptions,
    ) -> Result<Conversation, ClientError> {
        spec.config = RunConfig {
            recursion_limit: Some(options.recursion_limit),
            options: options.to_map(),
            ..RunConfig::default()
        };
        spec.stream_modes = [
            StreamMode::MessagesTuple,
            StreamMode::Values,
            StreamMode::Custom,
        ]
        .into_iter()
        .collect();
        let (_, stream) = self.runs.create_and_stream(spec, HEARTBEAT).await?;
        Ok(Conversation::of(stream))
    }

    /// Streams an existing run of a thread from its first event, whether it is active or has ended.
    ///
    /// # Errors
    /// An error if there is no such run, or its stream cannot be read.
    pub async fn join(&self, thread: &ThreadId, run: &RunId) -> Result<Conversation, ClientError> {
        let stream = self
            .runs
            .join_stream(Some(thread), run, ResumeFrom::Start, HEARTBEAT)
            .await?;
        Ok(Conversation::of(stream))
    }

    /// Sends a message, waits for the end of the run, and returns the text of the last message that
    /// has one.
    ///
    /// # Errors
    /// The errors of [`Client::stream`] and the failure of the run. [`ClientError::Cancelled`] and
    /// [`ClientError::Asked`], if the run was cancelled or waits for an answer of the user, contain
    /// the text so far.
    pub async fn chat(
        &self,
        message: impl Into<Content>,
        thread: &ThreadId,
    ) -> Result<String, ClientError> {
        let mut conversation = self.stream(message, thread).await?;
        let mut texts: IndexMap<String, String> = IndexMap::new();
        let (mut questions, mut cancelled) = (Vec::new(), false);
        while let Some(event) = conversation.next().await {
            let event = event?;
            if let Some((id, text)) = event.text() {
                texts.entry(id.to_owned()).or_default().push_str(text);
            }
            cancelled = event.is_cancelled();
            questions = event.questions();
        }
        let said = texts.pop().map(|(_, text)| text).unwrap_or_default();
        match (cancelled, questions.is_empty()) {
            (true, _) => Err(ClientError::Cancelled { said }),
            (false, false) => Err(ClientError::Asked { said, questions }),
            (false, true) => Ok(said),
        }
    }

    /// Cancels a run and waits until it has ended. Its output so far stays in the thread.
    ///
    /// # Errors
    /// An error if there is no such run or it has ended.
    pub async fn cancel(&self, thread: &ThreadId, run: &RunId) -> Result<(), ClientError> {
        self.runs
            .cancel(Some(thread), run, CancelAction::Interrupt, true)
            .await?;
        Ok(())
    }
}
