//! Copy of one checkpoint with its ancestors to a new thread, with the log that they need.

use deerflow_core::ids::{CheckpointId, ThreadId};
use deerflow_runtime::checkpoint::LogRange;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, ExprTrait, QueryFilter,
    QuerySelect, Statement, Value,
};
use serde_json::Map;

use super::lookup::row_of;
use super::row::{channels, meta, signed};
use super::write::COPY_PINS;
use crate::db::entity::checkpoint;
use crate::db::json::{from_json, json_text};

/// `UNION` without `ALL` ends the recursion even if damaged parents form a circle.
const COPY_LINE: &str = "\
    WITH RECURSIVE line (checkpoint_id, parent_id) AS ( \
        SELECT checkpoint_id, parent_id FROM checkpoints WHERE thread_id = $1 AND checkpoint_id = $3 \
        UNION \
        SELECT c.checkpoint_id, c.parent_id FROM line l JOIN checkpoints c ON c.thread_id = $1 AND c.checkpoint_id = l.parent_id) \
    INSERT INTO checkpoints (thread_id, checkpoint_id, parent_id, run_id, source, step, layout_json, channels_json, next_json, \
        machine_json, metadata_json, created_at) \
    SELECT $2, c.checkpoint_id, c.parent_id, c.run_id, c.source, c.step, c.layout_json, c.channels_json, c.next_json, \
        c.machine_json, c.metadata_json, c.created_at \
    FROM line l JOIN checkpoints c ON c.thread_id = $1 AND c.checkpoint_id = l.checkpoint_id";

/// Copies the log up to a position without gaps, because a later write checks that its log is
/// connected.
const COPY_LOG: &str = "\
    INSERT INTO checkpoint_messages (thread_id, place, message_json) \
    SELECT $2, place, message_json FROM checkpoint_messages WHERE thread_id = $1 AND place <= $3";

/// Returns `true` if the thread has the checkpoint.
pub(crate) async fn checkpoint_exists(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
    id: &CheckpointId,
) -> Result<bool, DbErr> {
    Ok(row_of(tx, thread, id).await?.is_some())
}

/// Copies the checkpoint `last` of `from` and its ancestors, with their part of the log. Later
/// messages are not copied.
pub(crate) async fn copy_line(
    tx: &DatabaseTransaction,
    from: &ThreadId,
    last: &CheckpointId,
    to: &ThreadId,
) -> Result<(), DbErr> {
    let (source, target): (Value, Value) = (from.as_str().into(), to.as_str().into());
    let line = [source.clone(), target.clone(), last.as_str().into()];
    execute(tx, COPY_LINE, line.to_vec()).await?;
    let layouts: Vec<String> = checkpoint::Entity::find()
        .select_only()
        .column(checkpoint::Column::LayoutJson)
        .filter(checkpoint::Column::ThreadId.eq(to.as_str()))
        .into_tuple()
        .all(tx)
        .await?;
    let mut end = 0;
    for layout in layouts {
        let ranges: Vec<LogRange> = from_json(&layout).map_err(|reason| {
            DbErr::Type(format!("a layout of thread {from} is damaged: {reason}"))
        })?;
        end = ranges
            .iter()
            .fold(end, |end, LogRange(_, last)| Ord::max(end, *last));
    }
    let log = vec![source.clone(), target.clone(), signed(end).into()];
    execute(tx, COPY_LOG, log).await?;
    execute(tx, COPY_PINS, vec![source, target]).await
}

/// Changes to the newest checkpoint of a copied line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineEnd<'a> {
    /// Channels to remove.
    pub(crate) without: &'a [&'a str],
    /// New value of channel `title`.
    pub(crate) title: Option<&'a str>,
    /// Metadata to add.
    pub(crate) metadata: &'a Map<String, serde_json::Value>,
}

/// Changes the newest checkpoint of a copied line, and removes its pending tasks: they belong to a
/// run of the original.
pub(crate) async fn finish_line(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
    id: &CheckpointId,
    end: &LineEnd<'_>,
) -> Result<(), DbErr> {
    let missing = || DbErr::RecordNotFound(format!("checkpoint {id} of thread {thread}"));
    let row = row_of(tx, thread, id).await?.ok_or_else(missing)?;
    let damaged =
        |error: deerflow_runtime::checkpoint::CheckpointError| DbErr::Type(error.to_string());
    let mut values = channels(&row).map_err(damaged)?;
    values.retain(|name, _| !end.without.contains(&name.as_str()));
    if let Some(title) = end.title {
        values.insert("title".to_owned(), title.into());
    }
    let mut metadata = meta(&row).map_err(damaged)?.metadata;
    metadata.extend(end.metadata.clone());
    let of_row = checkpoint::Column::ThreadId
        .eq(thread.as_str())
        .and(checkpoint::Column::CheckpointId.eq(id.as_str()));
    checkpoint::Entity::update_many()
        .col_expr(
            checkpoint::Column::ChannelsJson,
            Expr::value(json_text(&values)),
        )
        .col_expr(
            checkpoint::Column::MetadataJson,
            Expr::value(json_text(&metadata)),
        )
        .col_expr(checkpoint::Column::NextJson, Expr::value("[]"))
        .col_expr(checkpoint::Column::MachineJson, Expr::value(None::<String>))
        .filter(of_row)
        .exec(tx)
        .await?;
    Ok(())
}

async fn execute(tx: &DatabaseTransaction, sql: &str, values: Vec<Value>) -> Result<(), DbErr> {
    let statement = Statement::from_sql_and_values(tx.get_database_backend(), sql, values);
    tx.execute_raw(statement).await?;
    Ok(())
}
