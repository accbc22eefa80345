//! `POST .../runs/regenerate/prepare` and `.../runs/edit-regenerate/prepare`: the request that
//! regenerates the last turn.

use axum::Json;
use axum::extract::State;
use harness::ids::{CheckpointId, RunId, ThreadId};
use harness::messages::kwargs;
use harness::runtime::actor_context::Owner;
use harness::runtime::checkpoint::{
    CheckpointMeta, CheckpointSource, CheckpointWrite, HistoryQuery, Snapshot,
};
use harness::runtime::runs::ThreadStatus;
use harness::runtime::runs::store::{EventQuery, Order, category};
use harness::state::ThreadState;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::error::{ApiError, Issue};
use crate::extract::{Body, Ids};
use crate::queries::history::message_of;
use crate::queries::regenerate::{NotReplayable, Turn, turn_of_answer, turn_of_question};
use crate::queries::threads::{SnapshotKind, all_runs, require_thread, transcript};
use crate::requests::bodies::{EditPrepare, RegeneratePrepare};
use crate::routes::{App, JsonResult};
use crate::state::GatewayState;

/// Number of checkpoints or rows read at a time.
const PAGE: usize = 200;

/// Prepares a run with the same question.
pub(crate) async fn prepare_regenerate(
    State(state): App,
    ids: Ids,
    body: Body<RegeneratePrepare>,
) -> JsonResult {
    let id = body.valid()?.message_id;
    let newest = newest(&state, &ids.thread()?, &id).await?;
    let turn = match turn_of_answer(newest.state.messages(), &id) {
        Ok(turn) => turn,
        Err(why) => {
            return Err(refused(&state, &newest, &id, why, NotReplayable::NotLatestAnswer).await?);
        }
    };
    let origin = Origin::of(&state, &newest, &turn).await?;
    Ok(Json(json!({
        "input": input(&newest, turn.original_question()),
        "checkpoint": origin.checkpoint(),
        "metadata": origin.metadata(),
        "target_run_id": origin.run,
    })))
}

/// Prepares a run with an edited question.
pub(crate) async fn prepare_edit(
    State(state): App,
    ids: Ids,
    body: Body<EditPrepare>,
) -> JsonResult {
    let (body, mut issues) = body.parts();
    let sent = body.replacement_text.as_deref();
    if let Some(text) = sent.filter(|text| text.trim().is_empty()) {
        let loc = vec!["body".into(), "replacement_text".into()];
        let issue = Issue::new(
            "string_too_short",
            loc,
            "String should have at least 1 character",
            &text.into(),
        );
        issues.push(issue.ctx(json!({ "min_length": 1 })));
    }
    issues.finish()?;
    let (id, text) = (
        body.human_message_id,
        body.replacement_text.unwrap_or_default(),
    );
    let thread = ids.thread()?;
    let newest = newest(&state, &thread, &id).await?;
    let turn = match turn_of_question(newest.state.messages(), &id) {
        Ok(turn) => turn,
        Err(why) => {
            return Err(
                refused(&state, &newest, &id, why, NotReplayable::NotLatestQuestion).await?,
            );
        }
    };
    let origin = Origin::of(&state, &newest, &turn).await?;
    let source = state.runs.get_run(Some(&thread), &origin.run).await?;
    let group = source
        .and_then(|run| run.metadata.get("edit_version_group_id").cloned())
        .unwrap_or_else(|| id.as_str().into());
    let replacement = state.process.ids.random().to_string();
    let mut metadata = Map::from_iter([("replay_kind".to_owned(), "edit".into())]);
    metadata.extend(origin.metadata());
    metadata.insert("edit_from_message_id".to_owned(), id.into());
    metadata.insert("edit_message_id".to_owned(), replacement.as_str().into());
    metadata.insert("edit_version_group_id".to_owned(), group);
    Ok(Json(json!({
        "input": input(&newest, turn.edited_question(&replacement, &text)),
        "checkpoint": origin.checkpoint(),
        "metadata": metadata,
        "target_run_id": origin.run,
        "replacement_human_message_id": replacement,
        "source_message_ids": turn.visible_ids(),
    })))
}

/// Returns the newest state of an idle thread.
async fn newest(
    state: &GatewayState,
    thread: &ThreadId,
    message: &str,
) -> Result<Snapshot, ApiError> {
    if require_thread(state, thread).await?.status == ThreadStatus::Busy {
        return Err(ApiError::Conflict(
            "Thread has a run in flight. Regenerate after the run finishes.".to_owned(),
        ));
    }
    state
        .thread_services
        .checkpoints
        .get(thread, None)
        .await?
        .ok_or_else(|| unknown(message))
}

/// Converts the reason of a refusal to an error. A visible message that is no longer in the state
/// is reported as old, not as unknown.
async fn refused(
    state: &GatewayState,
    newest: &Snapshot,
    id: &str,
    why: NotReplayable,
    if_seen: NotReplayable,
) -> Result<ApiError, ApiError> {
    if why != NotReplayable::Unknown {
        return Ok(ApiError::Conflict(why.to_string()));
    }
    let runs = all_runs(state, &newest.meta.thread_id).await?;
    let seen = transcript(state, newest, SnapshotKind::Newest, &runs).await?;
    let seen = seen
        .iter()
        .any(|message| message.get("id").is_some_and(|seen| seen == id));
    Ok(if seen {
        ApiError::Conflict(if_seen.to_string())
    } else {
        unknown(id)
    })
}

fn unknown(message: &str) -> ApiError {
    ApiError::NotFound(format!(
        "Message {} not found",
        message.chars().take(80).collect::<String>()
    ))
}

/// Returns the input of the new run. It repeats the title, because the run starts from a state in
/// which the thread may have had none.
fn input(newest: &Snapshot, question: Value) -> Value {
    let mut input = json!({ "messages": [question] });
    if let (Some(title), Some(fields)) = (newest.state.title(), input.as_object_mut()) {
        fields.insert("title".to_owned(), title.into());
    }
    input
}

/// Origin of a turn: its run and the checkpoint before it.
struct Origin {
    answer: Value,
    run: RunId,
    before: CheckpointId,
}

impl Origin {
    async fn of(
        state: &GatewayState,
        newest: &Snapshot,
        turn: &Turn<'_>,
    ) -> Result<Self, ApiError> {
        let run = run_of(state, &newest.meta.thread_id, turn)
            .await?
            .ok_or_else(|| no_longer_available("The run of this answer"))?;
        let question = turn.question.id.as_deref().unwrap_or_default();
        let before = state_before(state, newest, question).await?;
        Ok(Self {
            answer: json!(turn.answer.id),
            run,
            before,
        })
    }

    fn checkpoint(&self) -> Value {
        json!({ "checkpoint_ns": "", "checkpoint_id": self.before, "checkpoint_map": null })
    }

    fn metadata(&self) -> Map<String, Value> {
        Map::from_iter([
            ("regenerate_from_message_id".to_owned(), self.answer.clone()),
            (
                "regenerate_from_run_id".to_owned(),
                self.run.as_str().into(),
            ),
            (
                "regenerate_checkpoint_id".to_owned(),
                self.before.as_str().into(),
            ),
        ])
    }
}

/// Returns the run that journaled the answer, or else the run recorded in its question.
async fn run_of(
    state: &GatewayState,
    thread: &ThreadId,
    turn: &Turn<'_>,
) -> Result<Option<RunId>, ApiError> {
    let mut query = EventQuery {
        category: Some(category::MESSAGE.to_owned()),
        limit: PAGE,
        order: Order::Newest,
        ..EventQuery::default()
    };
    loop {
        let rows = state
            .run_services
            .events
            .list(thread, &query, &Owner::Auto)
            .await?;
        let is_answer = |row: &&_| {
            message_of(thread, row)
                .and_then(|message| Some(message.get("id")?.as_str() == turn.answer.id.as_deref()))
        };
        if let Some(row) = rows.iter().rfind(|row| is_answer(row) == Some(true)) {
            return Ok(Some(row.event.run_id.clone()));
        }
        if rows.len() < PAGE {
            let recorded_run = turn
                .question
                .additional_kwargs
                .get(kwargs::RUN_ID)
                .and_then(Value::as_str);
            return Ok(recorded_run.and_then(|id| RunId::parse(id).ok()));
        }
        query.before_seq = rows.first().map(|row| row.seq);
    }
}

/// Returns the newest ancestor of `newest` that does not contain the message.
async fn state_before(
    state: &GatewayState,
    newest: &Snapshot,
    message: &str,
) -> Result<CheckpointId, ApiError> {
    let thread = &newest.meta.thread_id;
    let mut query = HistoryQuery {
        limit: PAGE,
        ..HistoryQuery::default()
    };
    let mut next_id = newest.meta.checkpoint_id.clone();
    loop {
        let page = state
            .thread_services
            .checkpoints
            .list_meta(thread, &query)
            .await?;
        for meta in &page {
            if meta.checkpoint_id != next_id {
                continue;
            }
            let Some(parent) = &meta.parent_id else {
                return first_checkpoint(state, thread).await;
            };
            // Only an input or an external update adds a question.
            if matches!(
                meta.source,
                CheckpointSource::Input | CheckpointSource::Update
            ) {
                let ancestor = state
                    .thread_services
                    .checkpoints
                    .get(thread, Some(parent))
                    .await?
                    .ok_or_else(|| no_longer_available("The state before this message"))?;
                if ancestor
                    .state
                    .messages()
                    .iter()
                    .all(|stored| stored.id.as_deref() != Some(message))
                {
                    return Ok(parent.clone());
                }
            }
            next_id = parent.clone();
        }
        if page.len() < PAGE {
            return Err(no_longer_available("The state before this message"));
        }
        query.before = page.last().map(|meta| meta.checkpoint_id.clone());
    }
}

/// Returns the state before the first message of a thread. It is stored at first use, under the
/// lowest possible id, so that it is never the newest.
async fn first_checkpoint(
    state: &GatewayState,
    thread: &ThreadId,
) -> Result<CheckpointId, ApiError> {
    let checkpoint_id = CheckpointId::from(Uuid::nil());
    if state
        .thread_services
        .checkpoints
        .get(thread, Some(&checkpoint_id))
        .await?
        .is_some()
    {
        return Ok(checkpoint_id);
    }
    let meta = CheckpointMeta {
        checkpoint_id: checkpoint_id.clone(),
        thread_id: thread.clone(),
        parent_id: None,
        run_id: None,
        source: CheckpointSource::Update,
        step: -2,
        next: Vec::new(),
        machine: None,
        metadata: Map::new(),
        created_at: state.process.clock.now(),
    };
    let saved = state
        .thread_services
        .checkpoints
        .put(CheckpointWrite::plan(
            meta,
            &mut ThreadState::default(),
            &mut 0,
        ))
        .await;
    // A concurrent request may have stored it.
    if let Err(error) = saved {
        state
            .thread_services
            .checkpoints
            .get(thread, Some(&checkpoint_id))
            .await?
            .ok_or(error)?;
    }
    Ok(checkpoint_id)
}

fn no_longer_available(what: &str) -> ApiError {
    ApiError::Conflict(format!("{what} is no longer available"))
}
