//! One conversation with an agent, from the start of its program to the end of all that it started. No phase takes longer than its limit.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, Implementation, InitializeRequest, Meta, NewSessionRequest, PromptRequest,
    RequestPermissionRequest, RequestPermissionResponse, SessionConfigId, SessionConfigKind,
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOptions,
    SessionConfigValueId, SessionId, SessionNotification, SetSessionConfigOptionRequest,
    StopReason, TextContent,
};
use agent_client_protocol::{
    Agent, Client, Error as ProtocolError, UntypedMessage, on_receive_notification,
    on_receive_request,
};
use secrecy::ExposeSecret;
use tokio::sync::oneshot;
use tokio::time::{Instant, interval, timeout_at};

use super::error::{AcpError, Phase};
use super::handed::{handed, secrets};
use super::link::link;
use super::missing::missing_program;
use super::policy::refusal;
use super::said::Heard;
use crate::config::AcpAgentConfig;
use crate::mcp::ServerSpec;
use crate::programs::{Allowance, ChildTree, Errors, Faults, Hidden, Place, Streams};

/// How long an agent may take until it can be given its task, step by step. A launcher may have to download it first.
const PREPARATION_LIMIT: Duration = Duration::from_secs(120);
/// How often it is noted what an agent has started.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// How much an agent may send in one conversation: every few letters of its answer come as a message.
pub(super) const ALLOWANCE: Allowance = Allowance {
    bytes: 256 << 20,
    messages: 200_000,
};

/// A task, and who is to do it.
#[derive(Debug)]
pub(super) struct Task<'a> {
    /// The name of the agent's entry.
    pub(super) name: &'a str,
    pub(super) agent: &'a AcpAgentConfig,
    /// The variables that every process gets.
    pub(super) variables: &'a [(String, String)],
    /// Where its process begins.
    pub(super) place: Place,
    /// Where it works.
    pub(super) workspace: PathBuf,
    /// What it may call.
    pub(super) servers: &'a [ServerSpec],
    pub(super) prompt: &'a str,
}

/// Has an agent do a task, and tells why it stopped. Dropping the future ends it with everything that it started.
pub(super) async fn talk(
    task: &Task<'_>,
    faults: &Faults,
    heard: &Arc<Heard>,
) -> Result<StopReason, AcpError> {
    let limits = Limits::starting_now(Duration::from_secs(task.agent.timeout_seconds));
    let (mut child, streams) = task.start()?;
    let hidden = Hidden::of(
        task.own_variables()
            .map(|(_, value)| value)
            .chain(secrets(task.servers)),
    );
    let mut errors = Errors::new(streams.errors, hidden.clone(), faults.clone());
    let (tell, mut told) = oneshot::channel();
    let (updates, questions) = (heard.clone(), heard.clone());
    let connection = Client
        .v1()
        .name("deerflow")
        .on_receive_notification(
            async move |said: SessionNotification, _agent| {
                updates.take(&said.update);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |asked: RequestPermissionRequest, responder, _agent| {
                responder.respond(RequestPermissionResponse::new(questions.decide(&asked)))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: UntypedMessage, responder, _agent| {
                responder.respond_with_error(refusal(asked.method()))
            },
            on_receive_request!(),
        )
        .connect_with(
            link(streams.input, streams.output, faults.clone(), hidden),
            async move |agent| {
                // The connection would wait here until all is written, for ever where nobody reads.
                let _unheard = tell.send(converse(&agent, task, limits).await);
                Ok(())
            },
        );
    let mut connection = Box::pin(connection);
    let mut looks = interval(BETWEEN_LOOKS);
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut told => break ended.unwrap_or(Err(AcpError::Ended(None))),
            _broken = &mut connection => break told.try_recv().unwrap_or(Err(AcpError::Ended(None))),
            is_fine = errors.listen() => if !is_fine {
                break Err(AcpError::Ended(None));
            },
            _ = looks.tick() => child.note_tree(),
        }
    };
    // An agent ends by itself once its input is closed, and then nobody knows what it has started.
    child.note_tree();
    drop(connection);
    match (ended, faults.reason()) {
        (Ok(stop), _) => {
            child.end().await;
            Ok(stop)
        }
        (Err(AcpError::Ended(_)), Some(reason)) => Err(AcpError::Broken(reason)),
        (Err(AcpError::Ended(_)), None) => {
            let status = child.ending().await;
            errors.listen_to_the_end().await;
            Err(AcpError::Ended(status))
        }
        (Err(error), _) => Err(error),
    }
}

async fn converse(
    agent: &ConnectionTo<Agent>,
    task: &Task<'_>,
    limits: Limits,
) -> Result<StopReason, AcpError> {
    let own = Implementation::new("deerflow", env!("CARGO_PKG_VERSION"));
    let greeting = agent.send_request(InitializeRequest::new(ProtocolVersion::V1).client_info(own));
    let greeted = limits.keep(Phase::Greet, greeting.block_task()).await?;
    let model = task
        .agent
        .model
        .as_deref()
        .filter(|model| !model.is_empty());
    let mut opening = NewSessionRequest::new(&task.workspace);
    opening.mcp_servers = handed(task.servers, &greeted.agent_capabilities.mcp_capabilities);
    opening.meta = model.map(|model| Meta::from_iter([("model".to_owned(), model.into())]));
    let session = limits
        .keep(Phase::Open, agent.send_request(opening).block_task())
        .await?;
    if let Some(model) = model {
        take_model(
            agent,
            &session.session_id,
            session.config_options.as_deref().unwrap_or_default(),
            model,
            limits,
        )
        .await?;
    }
    let words = ContentBlock::Text(TextContent::new(task.prompt));
    let work = agent.send_request(PromptRequest::new(session.session_id, vec![words]));
    Ok(limits
        .keep(Phase::Work, work.block_task())
        .await?
        .stop_reason)
}

/// Chooses the model, where the agent lets its clients do that. Others were told of it when the session was opened.
async fn take_model(
    agent: &ConnectionTo<Agent>,
    session: &SessionId,
    options: &[SessionConfigOption],
    model: &str,
    limits: Limits,
) -> Result<(), AcpError> {
    let Some(option) = option_of_model(options, model) else {
        tracing::debug!(
            model,
            "an acp agent does not offer the configured model as a choice"
        );
        return Ok(());
    };
    let choice = SetSessionConfigOptionRequest::new(
        session.clone(),
        option.clone(),
        SessionConfigValueId::new(model),
    );
    limits
        .keep(Phase::TakeModel, agent.send_request(choice).block_task())
        .await
        .map(|_options| ())
}

/// The option by which this model is chosen.
fn option_of_model<'a>(
    options: &'a [SessionConfigOption],
    model: &str,
) -> Option<&'a SessionConfigId> {
    let offers = |option: &&SessionConfigOption| {
        let SessionConfigKind::Select(select) = &option.kind else {
            return false;
        };
        match &select.options {
            SessionConfigSelectOptions::Ungrouped(values) => {
                values.iter().any(|value| &*value.value.0 == model)
            }
            SessionConfigSelectOptions::Grouped(groups) => groups
                .iter()
                .flat_map(|group| &group.options)
                .any(|value| &*value.value.0 == model),
            _ => false,
        }
    };
    let mut models = options
        .iter()
        .filter(|option| option.category == Some(SessionConfigOptionCategory::Model));
    models.find(offers).map(|option| &option.id)
}

impl Task<'_> {
    fn own_variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.agent
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose_secret()))
    }

    fn start(&self) -> Result<(ChildTree, Streams), AcpError> {
        let given = self
            .variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let variables: Vec<(&str, &str)> = given.chain(self.own_variables()).collect();
        let path = self
            .variables
            .iter()
            .find(|(name, _)| name == "PATH")
            .map_or("", |(_, path)| path);
        let started = ChildTree::start(
            &self.agent.command,
            &self.agent.args,
            variables.iter().copied(),
            &self.place,
        );
        started.map_err(|error| match missing_program(self.name, self.agent, path) {
            Some(missing)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                ) =>
            {
                AcpError::Missing(missing)
            }
            _ => AcpError::Start(error.to_string()),
        })
    }
}

/// When a conversation is over, at the latest.
#[derive(Debug, Clone, Copy)]
struct Limits {
    whole: Duration,
    end: Instant,
}

impl Limits {
    fn starting_now(whole: Duration) -> Self {
        Self {
            whole,
            end: Instant::now() + whole,
        }
    }

    /// How long a phase that begins now may take, and until when that is.
    fn of(&self, phase: Phase) -> (Duration, Instant) {
        let end = Instant::now() + PREPARATION_LIMIT;
        if phase == Phase::Work || end >= self.end {
            (self.whole, self.end)
        } else {
            (PREPARATION_LIMIT, end)
        }
    }

    async fn keep<T>(
        &self,
        phase: Phase,
        answer: impl Future<Output = Result<T, ProtocolError>>,
    ) -> Result<T, AcpError> {
        let (limit, end) = self.of(phase);
        let answered = timeout_at(end, answer)
            .await
            .map_err(|_late| AcpError::Late { phase, limit })?;
        answered.map_err(|error| AcpError::of(phase, &error))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_phase_takes_longer_than_its_limit_or_the_whole() {
        let late = async |limits: Limits, phase: Phase| {
            let never = std::future::pending::<Result<(), ProtocolError>>();
            (
                limits.keep(phase, never).await.unwrap_err().to_string(),
                limits
                    .end
                    .saturating_duration_since(Instant::now())
                    .as_secs(),
            )
        };
        let limits = Limits::starting_now(Duration::from_secs(300));
        assert_eq!(
            late(limits, Phase::Greet).await,
            (
                "it did not start and greet within 120 s and was ended".to_owned(),
                180
            )
        );
        assert_eq!(
            late(limits, Phase::Open).await,
            (
                "it did not open a session within 120 s and was ended".to_owned(),
                60
            )
        );
        assert_eq!(
            late(limits, Phase::TakeModel).await,
            (
                "it did not take the configured model within 300 s and was ended".to_owned(),
                0
            )
        );
        let limits = Limits::starting_now(Duration::from_secs(1800));
        assert_eq!(
            late(limits, Phase::Work).await,
            (
                "it did not finish its task within 1800 s and was ended".to_owned(),
                0
            )
        );
    }

    #[test]
    fn a_model_is_chosen_where_it_is_offered() {
        let select = |category: &str, options: serde_json::Value| -> SessionConfigOption {
            let id = format!("id-{category}");
            serde_json::from_value(
                json!({"id": id, "name": "x", "category": category, "type": "select", "currentValue": "a", "options": options}),
            )
            .unwrap()
        };
        let plain = json!([{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]);
        let grouped =
            json!([{"group": "g", "name": "G", "options": [{"value": "c", "name": "C"}]}]);
        let found = |options: &[SessionConfigOption], model: &str| {
            option_of_model(options, model).map(ToString::to_string)
        };
        let options = [select("mode", plain.clone()), select("model", plain)];
        assert_eq!(
            (found(&options, "b").as_deref(), found(&options, "c")),
            (Some("id-model"), None)
        );
        assert_eq!(
            found(&[select("model", grouped)], "c").as_deref(),
            Some("id-model")
        );
    }
}
