//! One session with an agent, from the start of its program to the termination of all its
//! descendants. Each phase has a timeout.

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
    Agent, Client, UntypedMessage, on_receive_notification, on_receive_request,
};
use secrecy::ExposeSecret;
use tokio::sync::oneshot;
use tokio::time::interval;

use super::error::{AcpError, Phase};
use super::limits::PhaseDeadlines;
use super::mcp_servers::{secrets, usable_servers};
use super::not_found::missing_program;
use super::policy::unsupported_method;
use super::transport::transport;
use super::updates::AgentOutput;
use crate::child_process::{
    ChildTree, ConnectionHealth, SecretRedactor, StderrReader, StdioPipes, TrafficQuota, WorkingDir,
};
use crate::config::AcpAgentConfig;
use crate::mcp::ServerSpec;

/// Interval at which the agent's descendants are recorded.
const TREE_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum traffic of one session. The message count is high because an agent sends its answer in
/// chunks of a few characters.
pub(super) const TRAFFIC_QUOTA: TrafficQuota = TrafficQuota {
    bytes: 256 << 20,
    messages: 200_000,
};

/// Task for an agent.
#[derive(Debug)]
pub(super) struct Task<'a> {
    /// Name of the agent's entry in the configuration.
    pub(super) name: &'a str,
    pub(super) agent: &'a AcpAgentConfig,
    /// Environment variables that every agent process gets.
    pub(super) variables: &'a [(String, String)],
    /// Working directory of the agent's process.
    pub(super) working_dir: WorkingDir,
    /// Working directory of the session, as an absolute path.
    pub(super) workspace: PathBuf,
    /// MCP servers that the agent may call.
    pub(super) servers: &'a [ServerSpec],
    pub(super) prompt: &'a str,
}

/// Runs a task in an agent and returns the stop reason. Dropping the future kills the agent with
/// all its descendants.
pub(super) async fn run_session(
    task: &Task<'_>,
    health: &ConnectionHealth,
    output: &Arc<AgentOutput>,
) -> Result<StopReason, AcpError> {
    let limits = PhaseDeadlines::starting_now(Duration::from_secs(task.agent.timeout_seconds));
    let (mut child, pipes) = task.start()?;
    let redactor = SecretRedactor::new(
        task.own_variables()
            .map(|(_, value)| value)
            .chain(secrets(task.servers)),
    );
    let mut errors = StderrReader::new(pipes.errors, redactor.clone(), health.clone());
    let (result_tx, mut result_rx) = oneshot::channel();
    let (updates, permissions) = (output.clone(), output.clone());
    let connection = Client
        .v1()
        .name("deerflow")
        .on_receive_notification(
            async move |notification: SessionNotification, _agent| {
                updates.handle_update(&notification.update);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _agent| {
                responder.respond(RequestPermissionResponse::new(permissions.decide(&request)))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: UntypedMessage, responder, _agent| {
                responder.respond_with_error(unsupported_method(request.method()))
            },
            on_receive_request!(),
        )
        .connect_with(
            transport(pipes.input, pipes.output, health.clone(), redactor),
            async move |agent| {
                // Returning the result would make the connection wait until all output is written,
                // forever if the agent does not read.
                let _dropped = result_tx.send(run_task(&agent, task, limits).await);
                Ok(())
            },
        );
    let mut connection = Box::pin(connection);
    let mut tree_poll = interval(TREE_POLL_INTERVAL);
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut result_rx => break ended.unwrap_or(Err(AcpError::Exited(None))),
            _broken = &mut connection => break result_rx.try_recv().unwrap_or(Err(AcpError::Exited(None))),
            within_quota = errors.read_next() => if !within_quota {
                break Err(AcpError::Exited(None));
            },
            _ = tree_poll.tick() => child.record_descendants(),
        }
    };
    // Once its input is closed, an agent exits by itself, and after that its descendants cannot be
    // determined.
    child.record_descendants();
    drop(connection);
    match (ended, health.failure()) {
        (Ok(stop), _) => {
            child.end().await;
            Ok(stop)
        }
        (Err(AcpError::Exited(_)), Some(reason)) => Err(AcpError::Failed(reason)),
        (Err(AcpError::Exited(_)), None) => {
            let status = child.exit_status().await;
            errors.drain().await;
            Err(AcpError::Exited(status))
        }
        (Err(error), _) => Err(error),
    }
}

async fn run_task(
    agent: &ConnectionTo<Agent>,
    task: &Task<'_>,
    limits: PhaseDeadlines,
) -> Result<StopReason, AcpError> {
    let client_implementation = Implementation::new("deerflow", env!("CARGO_PKG_VERSION"));
    let initialize = agent.send_request(
        InitializeRequest::new(ProtocolVersion::V1).client_info(client_implementation),
    );
    let initialized = limits
        .within(Phase::Initialize, initialize.block_task())
        .await?;
    let model = task
        .agent
        .model
        .as_deref()
        .filter(|model| !model.is_empty());
    let mut new_session = NewSessionRequest::new(&task.workspace);
    new_session.mcp_servers = usable_servers(
        task.servers,
        &initialized.agent_capabilities.mcp_capabilities,
    );
    new_session.meta = model.map(|model| Meta::from_iter([("model".to_owned(), model.into())]));
    let session = limits
        .within(
            Phase::NewSession,
            agent.send_request(new_session).block_task(),
        )
        .await?;
    if let Some(model) = model {
        set_model(
            agent,
            &session.session_id,
            session.config_options.as_deref().unwrap_or_default(),
            model,
            limits,
        )
        .await?;
    }
    let message = ContentBlock::Text(TextContent::new(task.prompt));
    let work = agent.send_request(PromptRequest::new(session.session_id, vec![message]));
    Ok(limits
        .within(Phase::Prompt, work.block_task())
        .await?
        .stop_reason)
}

/// Selects the model if the agent offers a model option with this value. An agent without such an
/// option reads the model from the metadata of the request for a new session.
async fn set_model(
    agent: &ConnectionTo<Agent>,
    session: &SessionId,
    options: &[SessionConfigOption],
    model: &str,
    limits: PhaseDeadlines,
) -> Result<(), AcpError> {
    let Some(option) = option_of_model(options, model) else {
        tracing::debug!(model, "acp agent does not offer the configured model");
        return Ok(());
    };
    let choice = SetSessionConfigOptionRequest::new(
        session.clone(),
        option.clone(),
        SessionConfigValueId::new(model),
    );
    limits
        .within(Phase::SetModel, agent.send_request(choice).block_task())
        .await
        .map(|_options| ())
}

/// Returns the id of the option that selects this model.
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

    fn start(&self) -> Result<(ChildTree, StdioPipes), AcpError> {
        let configured_variables = self
            .variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let variables: Vec<(&str, &str)> =
            configured_variables.chain(self.own_variables()).collect();
        let path = self
            .variables
            .iter()
            .find(|(name, _)| name == "PATH")
            .map_or("", |(_, path)| path);
        let started = ChildTree::start(
            &self.agent.command,
            &self.agent.args,
            variables.iter().copied(),
            &self.working_dir,
        );
        started.map_err(|error| match missing_program(self.name, self.agent, path) {
            Some(missing)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                ) =>
            {
                AcpError::NotFound(missing)
            }
            _ => AcpError::Start(error.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn model_option_is_found_if_offered() {
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
        let option_id = |options: &[SessionConfigOption], model: &str| {
            option_of_model(options, model).map(ToString::to_string)
        };
        let options = [select("mode", plain.clone()), select("model", plain)];
        assert_eq!(
            (
                option_id(&options, "b").as_deref(),
                option_id(&options, "c")
            ),
            (Some("id-model"), None)
        );
        assert_eq!(
            option_id(&[select("model", grouped)], "c").as_deref(),
            Some("id-model")
        );
    }
}
