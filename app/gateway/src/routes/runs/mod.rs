//! `/threads/{t}/runs` and `/runs`: create, stream, wait for, read, cancel and delete runs.

mod batch;
mod cancel;
mod cancel_and_follow;
mod create;
mod delete;
mod follow;
mod follow_thread;
mod get;
mod join;
mod list;
mod nodes;
mod regenerate;
mod stream;
mod wait;

pub(crate) use batch::batch;
pub(crate) use cancel::{ACTIONS, cancel, cancel_many};
pub(crate) use cancel_and_follow::cancel_and_follow;
pub(crate) use create::{create, create_stateless};
pub(crate) use delete::delete;
pub(crate) use follow::follow;
pub(crate) use follow_thread::follow_thread;
pub(crate) use get::get;
pub(crate) use join::join;
pub(crate) use list::{STATUSES, list};
pub(crate) use nodes::nodes;
pub(crate) use regenerate::{prepare_edit, prepare_regenerate};
pub(crate) use stream::{stream, stream_stateless};
pub(crate) use wait::{wait, wait_stateless};

use std::sync::Arc;

use harness::runtime::actor_context::{self, ActorContext, Owner};
use harness::runtime::agent::{Agent, AssistantInfo};
use harness::runtime::compute::continuing;
use harness::runtime::runs::store::{CreatedResource, RequestKey};
use harness::runtime::runs::{DisconnectMode, RunError, RunRecord, RunRequest};
use harness::runtime::tasks::TaskKind;
use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::queries::assistant_settings::apply_assistant;
use crate::queries::assistants::graphs_of_request;
use crate::queries::threads::require_run;
use crate::requests::{Defaults, RunTarget, UnreadRequest, into_request, is_name_of};
use crate::sse::DisconnectGuard;
use crate::state::GatewayState;

/// Returns the run request of an idempotent request. If it has a key, its client may retry, so by
/// default the run continues after a disconnect.
async fn idempotent_spec(
    key: Option<&RequestKey>,
    state: &GatewayState,
    dialect: Dialect,
    target: &RunTarget,
    body: Map<String, Value>,
) -> Result<RunRequest, ApiError> {
    let silent = body.get("on_disconnect").is_none_or(Value::is_null);
    let mut spec = spec_for(state, dialect, target, body).await?;
    spec.request = key.cloned();
    if silent && key.is_some() {
        spec.on_disconnect = DisconnectMode::Continue;
    }
    Ok(spec)
}

/// Returns the run that the first request created.
async fn find_created_run(
    state: &GatewayState,
    dialect: Dialect,
    created: CreatedResource,
) -> Result<RunRecord, ApiError> {
    match created {
        CreatedResource::Run(thread, run) => require_run(state, &thread, &run, dialect).await,
        other => Err(ApiError::Internal(format!(
            "the idempotency key of a run refers to {other:?}"
        ))),
    }
}

/// `true` if a body requests cancellation on disconnect.
fn cancels_on_disconnect(body: &Map<String, Value>) -> bool {
    body.get("on_disconnect")
        .is_some_and(|word| word == "cancel")
}

/// Returns the run request of a body.
pub(crate) async fn spec_for(
    state: &GatewayState,
    dialect: Dialect,
    target: &RunTarget,
    body: Map<String, Value>,
) -> Result<RunRequest, ApiError> {
    let (body, assistant) = apply_assistant(state, dialect, body).await?;
    let named = body.get("assistant_id").and_then(Value::as_str);
    let mut assistants = graphs_of_request(state, named, dialect).await;
    // Admission rejects or creates an unknown thread.
    let thread = match target {
        RunTarget::Thread(thread) if dialect.is_platform() => {
            state
                .thread_services
                .threads
                .get(thread, &Owner::Auto)
                .await?
        }
        _ => None,
    };
    if let Some(name) = thread
        .as_ref()
        .and_then(|thread| thread.assistant.as_deref())
    {
        // A thread that waits in a deleted assistant continues with the version of its last run.
        let is_named = named.is_some_and(|named| is_name_of(named, name));
        if is_named && assistants.iter().all(|known| known.name != name) {
            assistants.push(AssistantInfo {
                name: name.to_owned(),
                description: None,
            });
        }
    }
    let defaults = Defaults {
        assistants: &assistants,
        assistant_id: assistant,
        fresh_thread: state.process.ids.thread_id(),
        fresh_run: state.process.ids.run_id(),
        thread_metadata: &thread.map(|thread| thread.metadata).unwrap_or_default(),
    };
    let unread = into_request(body, target, dialect, &defaults)?;
    let agent = agent_of(state, &unread).await;
    let mut spec = unread.read(agent.as_deref())?;
    // DeerFlow's threads do not expire.
    spec.thread_ttl = state.info.thread_ttl().filter(|_| dialect.is_platform());
    if let Some(url) = &spec.webhook {
        state.run_services.webhooks.check(url).await?;
    }
    Ok(spec)
}

/// Returns the agent of a request. An assistant that cannot be resolved is refused when the run is
/// created, after the other checks.
async fn agent_of(state: &GatewayState, unread: &UnreadRequest) -> Option<Arc<dyn Agent>> {
    let assistants = &state.agent_services.assistants;
    let resolved = assistants.resolve(unread.assistant(), unread.options());
    resolved.await.ok()
}

/// A run that was created for a client, which may have disconnected meanwhile.
struct CreatedRun<T> {
    run: RunRecord,
    output: T,
    guard: Option<DisconnectGuard>,
}

/// Creates a run in its own task. If the client disconnects meanwhile, the request is dropped but
/// the task is not, and the guard in its unread result applies the client's disconnect mode.
async fn create_for_client<T, F>(
    state: &Arc<GatewayState>,
    on_disconnect: DisconnectMode,
    make: F,
) -> Result<CreatedRun<T>, ApiError>
where
    T: Send + 'static,
    F: Future<Output = Result<(RunRecord, T), RunError>> + Send + 'static,
{
    let shared = Arc::clone(state);
    let make = continuing(make);
    let created = state
        .process
        .tasks
        .spawn(TaskKind::Finish, "create a run", async move {
            let (run, output) = make.await?;
            let guard = (on_disconnect == DisconnectMode::Cancel).then(|| guard(&shared, &run));
            Ok::<_, RunError>(CreatedRun { run, output, guard })
        });
    let ended = created
        .await
        .map_err(|error| ApiError::Internal(error.to_string()))?;
    Ok(ended.map_err(|panic| ApiError::Internal(panic.to_string()))??)
}

/// Returns a guard that cancels the run when its client disconnects.
fn guard(state: &GatewayState, run: &RunRecord) -> DisconnectGuard {
    let actor = actor();
    DisconnectGuard::new(
        state.runs.clone(),
        state.process.tasks.clone(),
        state.process.shutdown.clone(),
        actor,
        run,
    )
}

/// Returns the actor of the request, for work outside of its scope.
fn actor() -> ActorContext {
    actor_context::current().unwrap_or_else(|| ActorContext::user(actor_context::DEFAULT_USER_ID))
}

/// `true` if clients can resume the run's events. On the platform only if they requested it when
/// they created the run.
fn is_resumable(run: &RunRecord, dialect: Dialect) -> bool {
    !dialect.is_platform()
        || run
            .kwargs
            .field("resumable")
            .is_none_or(|resumable| resumable.get() == "true")
}
