//! Questions to the agents of a runtime.

#[cfg(feature = "config-file")]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use indexmap::IndexMap;
use serde_json::Value;

use super::builder::ClientBuilder;
use super::conversation::Conversation;
use super::error::ClientError;
use super::installation::Installation;
use super::options::ChatOptions;
use crate::agents::lead::LEAD_AGENT;
use crate::config::AppConfig;
#[cfg(all(feature = "config-file", feature = "mcp"))]
use crate::config::Variables;
#[cfg(feature = "config-file")]
use crate::config_file::{ConfigError, Environment, load_file};
use crate::ids::{RunId, ThreadId};
use crate::messages::{Content, Message};
use crate::runtime::runs::{CancelAction, RunConfig, RunSpec, RunsFacade, StreamMode};

/// Nobody has to be told that a stream in this process lives.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// Asks the agents of a runtime, for the bound actor or the default user
/// ([`actor_context`](crate::runtime::actor_context)). Clones share the runtime.
#[derive(Debug, Clone)]
pub struct Client {
    pub(super) runs: Arc<RunsFacade>,
    assistant: String,
    options: ChatOptions,
    pub(super) installation: Installation,
}

impl Client {
    /// A client of this runtime's lead agent.
    pub fn new(runs: Arc<RunsFacade>) -> Self {
        Self {
            runs,
            assistant: LEAD_AGENT.to_owned(),
            options: ChatOptions::default(),
            installation: Installation::default(),
        }
    }

    /// A client over a runtime of its own, which is put together from a configuration.
    pub fn builder(config: impl Into<Arc<AppConfig>>) -> ClientBuilder {
        ClientBuilder::new(config)
    }

    /// A client whose configuration is a file, read as the server reads it; what looks wrong in it is told to the log. `$NAME`s of MCP
    /// servers stand for the variables of this environment, too.
    ///
    /// # Errors
    /// As [`load_file`](crate::config_file::load_file).
    #[cfg(feature = "config-file")]
    pub fn from_config_file(
        path: impl AsRef<Path>,
        environment: &Environment,
    ) -> Result<ClientBuilder, ConfigError> {
        let loaded = load_file(path.as_ref(), environment)?;
        loaded.log();
        let builder = Self::builder(loaded.config).read_from_file();
        #[cfg(feature = "mcp")]
        let builder = {
            let environment = environment.clone();
            builder.variables(Variables::new(move |name| {
                environment.get(name).map(str::to_owned)
            }))
        };
        Ok(builder)
    }

    /// Asks another assistant.
    #[must_use]
    pub fn assistant(mut self, name: impl Into<String>) -> Self {
        self.assistant = name.into();
        self
    }

    /// Asks in this way from now on.
    #[must_use]
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.options = options;
        self
    }

    /// Reaches what the installation has beside its runs.
    #[must_use]
    pub fn installation(mut self, installation: Installation) -> Self {
        self.installation = installation;
        self
    }

    /// The runtime's verbs, for what a client has no method for.
    pub fn runs(&self) -> &Arc<RunsFacade> {
        &self.runs
    }

    /// Has agents put together anew for the runs that begin from now on. Whatever changes an agent does that by itself: the options, the
    /// user's agents and skills, the tools of servers.
    pub fn reset_agent(&self) {
        self.runs.parts().agents.forget();
    }

    /// Says something on a thread, which is made when it is new, and follows what comes of it.
    ///
    /// # Errors
    /// When the run is not made: no such assistant or model, a busy thread, a store that is away.
    pub async fn stream(
        &self,
        message: impl Into<Content>,
        thread: &ThreadId,
    ) -> Result<Conversation, ClientError> {
        self.stream_with(message, thread, &self.options).await
    }

    /// As [`Client::stream`], asked in another way than usual.
    ///
    /// # Errors
    /// As [`Client::stream`].
    pub async fn stream_with(
        &self,
        message: impl Into<Content>,
        thread: &ThreadId,
        options: &ChatOptions,
    ) -> Result<Conversation, ClientError> {
        self.follow(
            RunSpec::ask(&*self.assistant, thread.clone(), Message::human(message)),
            options,
        )
        .await
    }

    /// Answers the open questions of a thread and follows what comes of it. One answer is for the one question that is open; several
    /// questions are answered by a map of their ids, and those that it leaves out stay open.
    ///
    /// # Errors
    /// As [`Client::stream`], and when there is no such thread. Answers that do not fit the questions fail the run.
    pub async fn resume(
        &self,
        answer: Value,
        thread: &ThreadId,
    ) -> Result<Conversation, ClientError> {
        self.resume_with(answer, thread, &self.options).await
    }

    /// As [`Client::resume`], asked in another way than usual. What the agent can do depends on it: ask as the question was asked.
    ///
    /// # Errors
    /// As [`Client::resume`].
    pub async fn resume_with(
        &self,
        answer: Value,
        thread: &ThreadId,
        options: &ChatOptions,
    ) -> Result<Conversation, ClientError> {
        self.follow(
            RunSpec::answer(&*self.assistant, thread.clone(), answer),
            options,
        )
        .await
    }

    async fn follow(
        &self,
        mut spec: RunSpec,
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

    /// Says something and waits; gives the text of the last message that has some.
    ///
    /// # Errors
    /// As [`Client::stream`], when the run fails, and with what was said so far when it is cancelled ([`ClientError::Cancelled`]) or
    /// waits for a person ([`ClientError::Asked`]).
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

    /// Stops a run and waits until it is over. What it has said so far stays in its thread.
    ///
    /// # Errors
    /// When there is no such run, or it is over.
    pub async fn cancel(&self, thread: &ThreadId, run: &RunId) -> Result<(), ClientError> {
        self.runs
            .cancel(Some(thread), run, CancelAction::Interrupt, true)
            .await?;
        Ok(())
    }
}
