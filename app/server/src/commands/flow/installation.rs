//! The installation that runs the agents of a flow at the terminal.

use std::sync::Arc;

use deerflow_flow::compiled::{CompiledFlow, Driver, LoaderKind};
use harness::clock::SystemClock;
use harness::config::LogLevel;
use harness::config_file::{Environment, Loaded};
use harness::ids::{IdSource, RunId, SystemIds};
use harness::runtime::actor_context::{ActorContext, DEFAULT_USER_ID};
use harness::runtime::agent::{CallLog, EventSink, RunContext};
use harness::runtime::runs::NodeSelector;
use harness::runtime::tasks::Tasks;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigHandle, Settings};
use crate::lifecycle::shut_down_app;
use crate::wiring::{App, Role};

/// Kinds whose agents work with the files and stores of an installation.
const KINDS: [&str; 2] = ["acp", "deerflow"];

/// Reports whether a flow needs the agents or files of an installation. A sub-flow may need them.
pub(super) fn needs_installation(flow: &CompiledFlow) -> bool {
    flow.nodes.iter().any(|node| match &node.driver {
        Driver::Agent(agent) => KINDS.contains(&agent.agent.adapter_kind.as_str()),
        Driver::Loader(loader) => !matches!(loader.kind, LoaderKind::Input | LoaderKind::Custom),
        Driver::Prompt(prompt) => prompt.file.is_some(),
        Driver::Subflow(_) => true,
        _ => false,
    })
}

/// Opens the installation of a configuration as a guest: it runs no service of a server.
///
/// # Errors
/// The stores cannot be opened.
pub(super) async fn open(mut loaded: Loaded, environment: &Environment) -> anyhow::Result<App> {
    let settings = Settings::from_environment(environment)?;
    loaded.config.log_level = LogLevel::Error;
    let config = ConfigHandle::new(loaded, environment.clone());
    let (tasks, shutdown) = (Tasks::new(), CancellationToken::new());
    App::build(&settings, &config, Role::Guest, tasks, shutdown).await
}

/// Closes it.
pub(super) async fn close(app: &App) {
    shut_down_app(app, Instant::now()).await;
}

/// Returns the context of a run on a new thread of the default user.
pub(super) fn context(
    run_id: &str,
    recursion_limit: u64,
    token: CancellationToken,
) -> Option<RunContext> {
    let ids = SystemIds::default();
    // Nobody reads the events: the hooks of the run receive those of its nodes.
    let (sink, _) = EventSink::channel();
    Some(RunContext {
        thread_id: ids.thread_id(),
        run_id: RunId::parse(run_id).ok()?,
        actor: ActorContext::user(DEFAULT_USER_ID),
        options: Arc::default(),
        tags: Vec::new(),
        namespace: "".into(),
        recursion_limit,
        interrupt_before: NodeSelector::None,
        interrupt_after: NodeSelector::None,
        clock: Arc::new(SystemClock),
        ids: Arc::new(ids),
        sink,
        calls: CallLog::default(),
        token,
    })
}
