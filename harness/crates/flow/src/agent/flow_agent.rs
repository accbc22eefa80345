//! Agent that runs a flow; built once per content of the flow and shared by all of its runs.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use deerflow_core::messages::Message;
use deerflow_core::state::{Channels, Reducer, StateUpdate, ThreadState};
use deerflow_runtime::agent::{
    Agent, AgentError, AgentGraph, AgentInput, AgentOutcome, AgentStream, EventReceiver,
    InputError, NodeWrite, NodeWritten, RunContext, SchemaPart, StopKind,
};
use deerflow_runtime::runs::GotoTarget;
use futures_util::FutureExt;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::graph::graph;
use super::input::channel_values;
use super::node_write::{parked_value, write_as};
use super::pending::question_json;
use super::schemas::properties;
use super::start::{Start, bounds_of, machine_of, start_of};
use super::steps::StepReporter;
use crate::adapter::AdapterRegistry;
use crate::adapters::fake::FakeFactory;
use crate::compiled::CompiledFlow;
use crate::driver::{DocumentLoader, FlowOptions, FlowOutcome, FlowPorts, FlowSource, run_flow};
use crate::machine::MAX_STATE_BYTES;

/// Time in which a cancelled run aborts its turns and disposes its sessions.
const STOP_GRACE: Duration = Duration::from_secs(6);
/// Channels of a flow's state, with their reducers.
const CHANNELS: [(&str, Reducer); 10] = [
    ("title", Reducer::LastWrite),
    ("input", Reducer::LastWrite),
    ("ports", Reducer::MergeKeys),
    ("outputs", Reducer::MergeKeys),
    ("loops", Reducer::MergeKeys),
    ("visits", Reducer::MergeKeys),
    ("waiting", Reducer::LastWrite),
    ("sessions", Reducer::MergeKeys),
    ("result", Reducer::LastWrite),
    ("errors", Reducer::LastWrite),
];

/// Ports and limits of the runs of flows.
#[derive(Debug, Clone)]
pub struct FlowDependencies {
    /// Adapter kinds.
    pub registry: Arc<AdapterRegistry>,
    /// Flows of `control.subflow`.
    pub flows: Option<Arc<dyn FlowSource>>,
    /// Loader of documents and files.
    pub loader: Option<Arc<dyn DocumentLoader>>,
    /// Maximum nodes of a run at once, whatever the flow says.
    pub max_concurrency: usize,
    /// Maximum depth of sub-flows.
    pub max_subflow_depth: usize,
    /// Maximum size of the values of a run, in bytes.
    pub max_state_bytes: usize,
}

impl FlowDependencies {
    /// Creates dependencies with a registry and the default limits.
    pub fn new(registry: AdapterRegistry) -> Self {
        Self {
            registry: Arc::new(registry),
            flows: None,
            loader: None,
            max_concurrency: 16,
            max_subflow_depth: 5,
            max_state_bytes: MAX_STATE_BYTES,
        }
    }
}

/// Agent that runs a flow. Clones share the flow.
#[derive(Clone)]
pub struct FlowAgent {
    flow: Arc<CompiledFlow>,
    dependencies: Arc<FlowDependencies>,
    channels: Channels,
}

impl FlowAgent {
    /// Creates an agent for a compiled flow.
    pub fn new(flow: Arc<CompiledFlow>, dependencies: Arc<FlowDependencies>) -> Self {
        static DEFINED: LazyLock<Channels> = LazyLock::new(defined_channels);
        Self {
            flow,
            dependencies,
            channels: DEFINED.clone(),
        }
    }

    /// Returns the compiled flow.
    pub fn flow(&self) -> &Arc<CompiledFlow> {
        &self.flow
    }

    async fn run(self, input: AgentInput, ctx: RunContext) -> Result<AgentOutcome, AgentError> {
        let completed = AgentOutcome {
            kind: StopKind::Completed,
            stop_reason: None,
        };
        let bounds = bounds_of(&ctx, self.dependencies.max_state_bytes);
        let Some(start) = start_of(&self.flow, &input, &ctx, &bounds)? else {
            return Ok(completed);
        };
        let dry_run = ctx.option_bool("dry_run").unwrap_or_default();
        let Start {
            start,
            state,
            histories,
            changes,
        } = start;
        let reporter = StepReporter::new(&self.flow, &ctx, state, input.step, changes);
        let reporter = Arc::new(reporter);
        if let Some(machine) = machine_of(&start) {
            reporter.begin(&self.flow, machine);
        }
        let options = FlowOptions {
            actor: ctx.actor.clone(),
            bounds,
            cancel: ctx.token.clone(),
            max_concurrency: self.dependencies.max_concurrency,
            max_subflow_depth: self.dependencies.max_subflow_depth,
            dry_run,
            context: Some(ctx.clone()),
            thread_messages: super::input::thread_messages(&input.state),
            histories,
            nested: input.nested,
            ..FlowOptions::new(ctx.run_id.as_str())
        };
        let ports = FlowPorts {
            registry: if dry_run {
                Arc::new(dry_registry(&self.dependencies.registry))
            } else {
                self.dependencies.registry.clone()
            },
            flows: self.dependencies.flows.clone(),
            loader: self.dependencies.loader.clone().filter(|_| !dry_run),
            events: reporter.clone(),
            hooks: reporter.clone(),
            clock: ctx.clock.clone(),
            ids: ctx.ids.clone(),
        };
        let end = run_flow(&self.flow, start, &options, &ports).await;
        match end.outcome {
            FlowOutcome::Finished(result) => {
                reporter.finish(&self.flow, &end.machine, &end.data, result);
                Ok(completed)
            }
            FlowOutcome::Interrupted(questions) => Ok(AgentOutcome {
                kind: StopKind::Question(questions.iter().map(question_json).collect()),
                stop_reason: None,
            }),
            FlowOutcome::Breakpoint(_) => {
                reporter.pause(&self.flow, &end.machine);
                Ok(AgentOutcome {
                    kind: StopKind::Breakpoint,
                    stop_reason: None,
                })
            }
            // The runtime cancelled the run and knows why.
            FlowOutcome::Cancelled => Ok(completed),
            FlowOutcome::Failed(error) => Err(AgentError::Ended {
                message: match &error.node_id {
                    Some(node) => format!("node {node:?}: {}", error.message),
                    None => error.message.clone(),
                },
                name: error.code,
            }),
        }
    }
}

impl fmt::Debug for FlowAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowAgent")
            .field("name", &self.flow.document.meta.name)
            .field("content_hash", &self.flow.content_hash)
            .finish_non_exhaustive()
    }
}

impl Agent for FlowAgent {
    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
        AgentStream::new(events, self.clone().run(input, ctx).boxed())
    }

    fn channels(&self) -> Channels {
        self.channels.clone()
    }

    fn read_input(&self, input: Map<String, Value>) -> Result<Map<String, Value>, InputError> {
        channel_values(input)
    }

    /// The conversation has the result only: a cancelled run leaves no partial answer in it.
    fn settle_all(&self, _: &ThreadState, _: Vec<Message>) -> StateUpdate {
        StateUpdate::default()
    }

    fn partial_answers<'a>(&self, _: &'a [Message]) -> &'a [Message] {
        &[]
    }

    fn stop_grace(&self) -> Duration {
        STOP_GRACE
    }

    fn limits_tasks(&self) -> bool {
        true
    }

    fn nodes(&self) -> Vec<String> {
        self.flow
            .nodes
            .iter()
            .map(|node| node.id.to_string())
            .collect()
    }

    fn parked(&self, visits: Vec<GotoTarget>, seed: Uuid) -> Option<Value> {
        let nodes: Vec<&str> = visits.iter().map(|visit| visit.node.as_str()).collect();
        parked_value(&self.flow, &nodes, seed)
    }

    fn write_as(&self, write: NodeWrite<'_>) -> Result<Option<NodeWritten>, InputError> {
        write_as(&self.flow, write).map(Some)
    }

    fn properties(&self, part: SchemaPart) -> Option<Map<String, Value>> {
        Some(properties(&self.flow, part))
    }

    fn graph(&self) -> AgentGraph {
        graph(&self.flow)
    }
}

fn defined_channels() -> Channels {
    let mut channels = CHANNELS.into_iter();
    let defined = channels.try_fold(Channels::empty(), |all, (name, reducer)| {
        all.with(name, reducer)
    });
    defined.unwrap_or_else(|error| {
        tracing::error!(%error, "channels of flows are not valid");
        Channels::lead()
    })
}

/// Returns a registry that answers every registered kind without a model.
fn dry_registry(registry: &AdapterRegistry) -> AdapterRegistry {
    let mut dry = AdapterRegistry::default();
    for metadata in registry.list() {
        if let Err(error) = dry.register(Arc::new(FakeFactory::dry_run(&metadata.adapter_kind))) {
            tracing::error!(kind = metadata.adapter_kind, %error, "cannot replace an adapter");
        }
    }
    dry
}
