//! `/threads/{t}/runs` and `/runs`: creating, following, waiting for, reading, cancelling and deleting runs.

mod batch;
mod cancel;
mod create;
mod delete;
mod follow;
mod follow_thread;
mod get;
mod join;
mod list;
mod replay;
mod stream;
mod wait;

pub(crate) use batch::batch;
pub(crate) use cancel::{ACTIONS, cancel, cancel_many};
pub(crate) use create::{create, create_stateless};
pub(crate) use delete::delete;
pub(crate) use follow::follow;
pub(crate) use follow_thread::follow_thread;
pub(crate) use get::get;
pub(crate) use join::join;
pub(crate) use list::{STATUSES, list};
pub(crate) use replay::{prepare_edit, prepare_regenerate};
pub(crate) use stream::{stream, stream_stateless};
pub(crate) use wait::{wait, wait_stateless};

use std::sync::Arc;

use harness::runtime::actor_context::{self, ActorContext, Owner};
use harness::runtime::compute::continuing;
use harness::runtime::runs::store::{Made, RequestKey};
use harness::runtime::runs::{DisconnectMode, RunError, RunRecord, RunSpec};
use harness::runtime::tasks::TaskKind;
use serde_json::Value;

use crate::assistants::{attributed, chosen_assistant};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::Fields;
use crate::input::{Defaults, RunTarget, into_spec};
use crate::reads::require_run;
use crate::sse::DisconnectGuard;
use crate::state::GatewayState;

/// The spec of a request that may come again under `key`: then its client means to come back, and its run goes on meanwhile.
async fn spec_known_by(
    key: Option<&RequestKey>,
    state: &GatewayState,
    dialect: Dialect,
    target: &RunTarget,
    body: Fields,
) -> Result<RunSpec, ApiError> {
    let silent = body.value("on_disconnect").is_none();
    let mut spec = spec_for(state, dialect, target, body).await?;
    spec.request = key.cloned();
    if silent && key.is_some() {
        spec.on_disconnect = DisconnectMode::Continue;
    }
    Ok(spec)
}

/// The run that a request made when it came before.
async fn made_run(
    state: &GatewayState,
    dialect: Dialect,
    made: Made,
) -> Result<RunRecord, ApiError> {
    match made {
        Made::Run(thread, run) => require_run(state, &thread, &run, dialect).await,
        other => Err(ApiError::Internal(format!(
            "the request for a run is known to have made {other:?}"
        ))),
    }
}

/// Whether a body says that its run is cancelled when the client goes away.
fn cancels_on_disconnect(body: &Fields) -> bool {
    body.value("on_disconnect")
        .is_some_and(|word| word == "cancel")
}

/// The spec of a request.
pub(crate) async fn spec_for(
    state: &GatewayState,
    dialect: Dialect,
    target: &RunTarget,
    body: Fields,
) -> Result<RunSpec, ApiError> {
    let (body, assistant) = chosen_assistant(state, dialect, body.into_map()).await?;
    let assistants = state.assistants.list().await;
    // An unknown thread is for admission to refuse, or to make.
    let thread = match target {
        RunTarget::Thread(thread) if dialect.is_platform() => {
            state.threads.get(thread, &Owner::Auto).await?
        }
        _ => None,
    };
    let defaults = Defaults {
        assistants: &assistants,
        fresh_thread: state.ids.thread_id(),
        fresh_run: state.ids.run_id(),
        thread_metadata: &thread.map(|thread| thread.metadata).unwrap_or_default(),
    };
    let mut spec = attributed(into_spec(body, target, dialect, &defaults)?, assistant);
    // DeerFlow's threads stay.
    spec.thread_ttl = state.info.thread_ttl().filter(|_| dialect.is_platform());
    if let Some(url) = &spec.webhook {
        state.webhooks.check(url).await?;
    }
    Ok(spec)
}

/// A run that was made for a reader, who may have left meanwhile.
struct ForReader<T> {
    run: RunRecord,
    way: T,
    guard: Option<DisconnectGuard>,
}

/// Makes a run in a task of its own. Should the client leave while it is made, the request is dropped but the task is not, and
/// the guard in its unread result does what the client asked for.
async fn made_for_reader<T, F>(
    state: &Arc<GatewayState>,
    on_disconnect: DisconnectMode,
    make: F,
) -> Result<ForReader<T>, ApiError>
where
    T: Send + 'static,
    F: Future<Output = Result<(RunRecord, T), RunError>> + Send + 'static,
{
    let shared = Arc::clone(state);
    let make = continuing(make);
    let made = state
        .tasks
        .spawn(TaskKind::Finish, "make a run", async move {
            let (run, way) = make.await?;
            let guard = (on_disconnect == DisconnectMode::Cancel).then(|| guard(&shared, &run));
            Ok::<_, RunError>(ForReader { run, way, guard })
        });
    let ended = made
        .await
        .map_err(|error| ApiError::Internal(error.to_string()))?;
    Ok(ended.map_err(|panic| ApiError::Internal(panic.to_string()))??)
}

/// A guard that cancels the run when its reader leaves.
fn guard(state: &GatewayState, run: &RunRecord) -> DisconnectGuard {
    let actor = actor();
    DisconnectGuard::new(
        state.runs.clone(),
        state.tasks.clone(),
        state.shutdown.clone(),
        actor,
        run,
    )
}

/// The actor of the request, for work that goes on outside of its scope.
fn actor() -> ActorContext {
    actor_context::current().unwrap_or_else(|| ActorContext::user(actor_context::DEFAULT_USER_ID))
}

/// Whether clients of the run may come back to its events. On the platform only if they asked for it when they made the run.
fn is_resumable(run: &RunRecord, dialect: Dialect) -> bool {
    !dialect.is_platform()
        || run.kwargs.get("resumable") == Some(&Value::Bool(true))
        || run.kwargs.get("resumable").is_none()
}
