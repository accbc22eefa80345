//! `GET .../runs/{r}/workspace-changes`: the journaled file changes of a run.

use axum::Json;
use axum::extract::State;
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{EventQuery, Order, WORKSPACE_CHANGES};
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::extract::{Ids, Query};
use crate::queries::journaled_run::require_journaled_run;
use crate::queries::threads::require_thread;
use crate::routes::{App, JsonResult};

pub(crate) async fn workspace_changes(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
) -> JsonResult {
    let thread = ids.thread()?;
    let include_files = query.flag("include_files")?.unwrap_or(true);
    let include_diff = query.flag("include_diff")?.unwrap_or(true);
    require_thread(&state, &thread).await?;
    let run = require_journaled_run(&state, &thread, ids.run()?, dialect).await?;
    let event_query = EventQuery {
        run_id: Some(run.id),
        event_types: vec![WORKSPACE_CHANGES.to_owned()],
        limit: 1,
        order: Order::Newest,
        ..EventQuery::default()
    };
    let rows = state
        .run_services
        .events
        .list(&thread, &event_query, &Owner::Auto)
        .await?;
    let recorded = rows
        .into_iter()
        .next()
        .and_then(|mut row| row.event.metadata.shift_remove(WORKSPACE_CHANGES));
    let Some(Value::Object(mut changes)) = recorded else {
        return Ok(Json(nothing_recorded()));
    };
    changes.insert("available".to_owned(), true.into());
    if !include_files {
        changes.insert("files".to_owned(), json!([]));
    }
    if !include_diff {
        for file in changes
            .get_mut("files")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            file.shift_remove("diff");
        }
    }
    Ok(Json(changes.into()))
}

fn nothing_recorded() -> Value {
    json!({
        "available": false,
        "version": 1,
        "summary": {
            "created": 0,
            "modified": 0,
            "deleted": 0,
            "symlink_created": 0,
            "additions": 0,
            "deletions": 0,
            "truncated": false,
        },
        "files": [],
        "limits": {},
    })
}
