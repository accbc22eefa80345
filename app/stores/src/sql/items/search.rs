//! Reads of items: each search is a range of the primary key.

use std::collections::HashMap;

use deerflow_domain::items::{ItemSearch, Namespace, TopK};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{ConnectionTrait, DatabaseConnection, QueryResult, Statement, Value};

use super::row::{COLUMNS, Candidate, ItemKey, Row};
use crate::db::entity::micros;
use crate::db::error::read;

/// Number of rows that are read at a time.
pub(super) const PAGE: usize = 256;

/// Rows with their scores, best first.
pub(super) type ScoredRows = Vec<(Option<f64>, Row)>;

pub(super) async fn query(
    db: &DatabaseConnection,
    sql: String,
    values: Vec<Value>,
) -> Result<Vec<QueryResult>, StoreError> {
    read(
        db.query_all_raw(Statement::from_sql_and_values(
            db.get_database_backend(),
            sql,
            values,
        ))
        .await,
    )
}

/// Returns the condition for a user's range and its values. More placeholders start at
/// `values.len() + 1`.
pub(super) fn range(table: &str, user: &str, prefix: &Namespace) -> (String, Vec<Value>) {
    let (from, to) = prefix.range();
    let mut values: Vec<Value> = vec![user.into(), from.into()];
    let mut sql = format!("{table}.user_id = $1 AND {table}.namespace >= $2");
    if let Some(to) = to {
        values.push(to.into());
        sql.push_str(&format!(" AND {table}.namespace < $3"));
    }
    (sql, values)
}

pub(super) fn number(count: usize) -> Value {
    i64::try_from(count).unwrap_or(i64::MAX).into()
}

fn rows(results: &[QueryResult]) -> Result<Vec<Row>, StoreError> {
    read(results.iter().map(Row::read).collect())
}

/// Returns the row of one item.
pub(super) async fn get_row(
    db: &DatabaseConnection,
    user: &str,
    namespace: &Namespace,
    key: &str,
    at: i64,
) -> Result<Option<Row>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM store_items i WHERE i.user_id = $1 AND i.namespace = $2 AND i.item_key = $3"
    );
    let results = query(
        db,
        sql,
        vec![user.into(), namespace.to_text().into(), key.into()],
    )
    .await?;
    Ok(rows(&results)?.pop().filter(|row| row.is_unexpired(at)))
}

/// Returns the last updated items, for a search without a filter.
pub(super) async fn last_updated(
    db: &DatabaseConnection,
    user: &str,
    search: &ItemSearch,
) -> Result<ScoredRows, StoreError> {
    let (range, mut values) = range("i", user, &search.prefix);
    let n = values.len();
    let sql = format!(
        "SELECT {COLUMNS} FROM store_items i WHERE {range} AND (i.expires_at IS NULL OR i.expires_at > ${}) \
         ORDER BY i.updated_at DESC, i.namespace, i.item_key LIMIT ${} OFFSET ${}",
        n + 1,
        n + 2,
        n + 3
    );
    values.extend([
        micros(search.read_options.at).into(),
        number(search.limit),
        number(search.offset),
    ]);
    let results = query(db, sql, values).await?;
    Ok(rows(&results)?.into_iter().map(|row| (None, row)).collect())
}

/// Returns the last updated items that pass the filter. Reads the range page by page, and holds
/// only the keys of the requested part of the order.
pub(super) async fn filtered(
    db: &DatabaseConnection,
    user: &str,
    search: &ItemSearch,
) -> Result<ScoredRows, StoreError> {
    let mut best = TopK::new(search.offset.saturating_add(search.limit));
    let (columns, at) = (
        Candidate::columns(&search.filter),
        micros(search.read_options.at),
    );
    let mut after: Option<ItemKey> = None;
    loop {
        let (mut range, mut values) = range("i", user, &search.prefix);
        if let Some((namespace, key)) = after.take() {
            range.push_str(&format!(
                " AND (i.namespace, i.item_key) > (${}, ${})",
                values.len() + 1,
                values.len() + 2
            ));
            values.extend([namespace.into(), key.into()]);
        }
        let sql = format!(
            "SELECT {columns} FROM store_items i WHERE {range} ORDER BY i.namespace, i.item_key LIMIT {PAGE}"
        );
        let page: Vec<Candidate> = read(
            query(db, sql, values)
                .await?
                .iter()
                .map(Candidate::read)
                .collect(),
        )?;
        let is_last = page.len() < PAGE;
        after = page.last().map(|last| last.item_key.clone());
        for fitting in page
            .into_iter()
            .filter(|candidate| candidate.matches(&search.filter, at))
        {
            best.offer(
                fitting.updated_at as f64,
                fitting.item_key.clone(),
                fitting.item_key,
            );
        }
        if is_last {
            let page = best.into_page(search.offset);
            return load_rows(
                db,
                user,
                page.into_iter()
                    .map(|(_, item_key)| (None, item_key))
                    .collect(),
            )
            .await;
        }
    }
}

/// Loads the rows of these keys, in their order, except those that were deleted in the meantime.
pub(super) async fn load_rows(
    db: &DatabaseConnection,
    user: &str,
    page: Vec<(Option<f64>, ItemKey)>,
) -> Result<ScoredRows, StoreError> {
    let mut results: HashMap<ItemKey, Row> = HashMap::with_capacity(page.len());
    for some in page.chunks(PAGE) {
        let placeholders: Vec<String> = (0..some.len())
            .map(|n| format!("(${}, ${})", 2 * n + 2, 2 * n + 3))
            .collect();
        let sql = format!(
            "SELECT {COLUMNS} FROM store_items i WHERE i.user_id = $1 AND (i.namespace, i.item_key) IN (VALUES {})",
            placeholders.join(", ")
        );
        let of_places = some
            .iter()
            .flat_map(|(_, (namespace, key))| [namespace.as_str().into(), key.as_str().into()]);
        let values = std::iter::once(user.into()).chain(of_places).collect();
        results.extend(
            rows(&query(db, sql, values).await?)?
                .into_iter()
                .map(|row| (row.item_key(), row)),
        );
    }
    Ok(page
        .into_iter()
        .filter_map(|(score, item_key)| Some((score, results.remove(&item_key)?)))
        .collect())
}

/// Returns all namespaces within `head` that contain items. Each costs one lookup in the index.
pub(super) async fn namespaces(
    db: &DatabaseConnection,
    user: &str,
    head: &Namespace,
    at: i64,
) -> Result<Vec<String>, StoreError> {
    let (range, mut values) = range("i", user, head);
    let not_expired = format!(
        "(i.expires_at IS NULL OR i.expires_at > ${})",
        values.len() + 1
    );
    values.push(at.into());
    let first = format!(
        "SELECT i.namespace FROM store_items i WHERE {range} AND {not_expired} ORDER BY i.namespace LIMIT 1"
    );
    let next = format!(
        "SELECT i.namespace FROM store_items i WHERE {range} AND {not_expired} AND i.namespace > steps.namespace ORDER BY i.namespace LIMIT 1"
    );
    let sql = format!(
        "WITH RECURSIVE steps (namespace) AS (SELECT * FROM ({first}) AS begin UNION ALL \
         SELECT ({next}) FROM steps WHERE steps.namespace IS NOT NULL) \
         SELECT namespace FROM steps WHERE namespace IS NOT NULL"
    );
    let results = query(db, sql, values).await?;
    read(results.iter().map(|row| row.try_get_by_index(0)).collect())
}
