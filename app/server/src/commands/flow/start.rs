//! `deerflow flow run`: starts a run in this process.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use deerflow_flow::adapter::AdapterRegistry;
use deerflow_flow::binding::KnownAdapters;
use deerflow_flow::compiled::CompiledFlow;
use deerflow_flow::driver::{DocumentLoader, FlowOptions, FlowPorts};
use deerflow_flow::machine::{RunBounds, RunInput};
use harness::config_file::{Environment, load};
use harness::ids::{IdSource, SystemIds};
use harness::runtime::actor_context::{ActorContext, DEFAULT_USER_ID};
use harness::runtime::runs::NodeSelector;
use harness::runtime::tasks::Tasks;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::document::FlowFile;
use super::installation::{self, context, needs_installation};
use super::nested_agents::NestedAgents;
use super::registry;
use super::report::write_findings;
use super::session::{EventChannel, RunExit, Session, Terminal};
use super::subflows::FolderFlows;
use crate::cli::RunFlowArgs;
use crate::commands::chat::run::interrupts;
use crate::flows::BuiltInKinds;
use crate::wiring::App;

/// Adapter kinds of a run, and limits of the configuration.
struct Setting {
    registry: Arc<AdapterRegistry>,
    loader: Option<Arc<dyn DocumentLoader>>,
    /// Installation that serves the kinds, if the flow needs one.
    app: Option<App>,
    /// Kinds that validation accepts.
    known: Arc<dyn KnownAdapters + Send + Sync>,
    options: FlowOptions,
}

/// Runs a flow at the terminal of this process.
pub(super) async fn run_at_terminal(
    args: &RunFlowArgs,
    environment: Environment,
) -> anyhow::Result<ExitCode> {
    let services = Tasks::new();
    let mut interrupts = interrupts(&services)?;
    let terminal = Terminal {
        out: &mut std::io::stdout(),
        err: &mut std::io::stderr(),
        lines: None,
        interrupts: &mut interrupts,
    };
    let exit = run_flow_file(args, &environment, terminal).await;
    services.token().cancel();
    exit.map(Into::into)
}

/// Runs a flow and answers its questions with lines of the terminal.
pub(super) async fn run_flow_file(
    args: &RunFlowArgs,
    environment: &Environment,
    terminal: Terminal<'_>,
) -> anyhow::Result<RunExit> {
    let path = args.flow.display();
    input_of(args)?;
    let file = FlowFile::read(&args.flow).with_context(|| format!("cannot read {path}"))?;
    let mut setting = match file.compile(&BuiltInKinds::default(), false) {
        Ok(compiled) => setting(args, environment, &compiled.flow).await?,
        Err(validation) => {
            write_findings(&path, &validation, terminal.err)?;
            return Ok(RunExit::Failed);
        }
    };
    let app = setting.app.take();
    let exit = run_with(args, &file, setting, terminal).await;
    if let Some(app) = app {
        installation::close(&app).await;
    }
    exit
}

/// Runs a flow with the adapter kinds of a setting.
async fn run_with(
    args: &RunFlowArgs,
    file: &FlowFile,
    mut setting: Setting,
    terminal: Terminal<'_>,
) -> anyhow::Result<RunExit> {
    let input = input_of(args)?;
    let flow = match file.compile(&*setting.known, !args.fake) {
        Ok(compiled) => compiled.flow,
        Err(validation) => {
            write_findings(&args.flow.display(), &validation, terminal.err)?;
            return Ok(RunExit::Failed);
        }
    };
    setting.options.bounds.interrupt_after = stop_after(args, &flow)?;
    let folder = args.flow.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new(".")).to_owned();
    let (sender, events) = mpsc::unbounded_channel();
    let agents = Arc::<NestedAgents>::default();
    let ports = FlowPorts {
        registry: setting.registry.clone(),
        loader: setting.loader,
        hooks: agents.clone(),
        flows: Some(Arc::new(FolderFlows::new(folder, setting.known))),
        events: Arc::new(EventChannel(sender)),
        ..FlowPorts::new(AdapterRegistry::default())
    };
    let session = Session {
        flow,
        options: setting.options,
        ports,
        agents,
        events,
        json: args.json,
        terminal,
    };
    session.run(input).await
}

async fn setting(
    args: &RunFlowArgs,
    environment: &Environment,
    flow: &CompiledFlow,
) -> anyhow::Result<Setting> {
    let mut options = FlowOptions {
        dry_run: args.fake,
        bounds: RunBounds {
            recursion_limit: args.recursion_limit,
            ..RunBounds::default()
        },
        ..FlowOptions::new(SystemIds::default().random().to_string())
    };
    if args.fake {
        return Ok(Setting {
            registry: Arc::new(registry::dry()?),
            loader: None,
            app: None,
            known: Arc::new(BuiltInKinds::default()),
            options,
        });
    }
    let loaded = load(args.file.config.as_deref(), environment)?;
    let config = &loaded.config;
    options.max_concurrency = config.flows.max_concurrency;
    options.max_subflow_depth = config.flows.max_subflow_depth;
    options.bounds.max_state_bytes = config.flows.max_state_bytes;
    if needs_installation(flow) {
        let token = options.cancel.clone();
        options.context = context(&options.run_id, args.recursion_limit, token);
        options.actor = ActorContext::user(DEFAULT_USER_ID);
        let app = installation::open(loaded, environment).await?;
        let dependencies = app.flows.dependencies();
        let registry = dependencies.registry.clone();
        return Ok(Setting {
            known: registry.clone(),
            registry,
            loader: dependencies.loader.clone(),
            app: Some(app),
            options,
        });
    }
    let registry = Arc::new(registry::live(config, environment)?);
    Ok(Setting {
        known: registry.clone(),
        registry,
        loader: None,
        app: None,
        options,
    })
}

fn input_of(args: &RunFlowArgs) -> anyhow::Result<RunInput> {
    let mut fields = match &args.input {
        Some(text) => serde_json::from_str::<Map<String, Value>>(text)
            .context("--input must be a JSON object")?,
        None => Map::new(),
    };
    if let Some(prompt) = &args.prompt {
        fields.insert("userPrompt".to_owned(), prompt.as_str().into());
    }
    RunInput::read(Value::Object(fields)).map_err(|error| anyhow::anyhow!(error.message))
}

fn stop_after(args: &RunFlowArgs, flow: &CompiledFlow) -> anyhow::Result<NodeSelector> {
    let Some(node) = &args.until else {
        return Ok(NodeSelector::None);
    };
    anyhow::ensure!(
        flow.find(node).is_some(),
        "the flow has no node {node:?}; its nodes are: {}",
        flow.nodes
            .iter()
            .map(|node| &*node.id)
            .collect::<Vec<_>>()
            .join(", ")
    );
    Ok(NodeSelector::Named(vec![node.clone()]))
}
