//! Reading items: each search is a range of the primary key.

use std::collections::HashMap;

use deerflow_domain::items::{Best, ItemSearch, Namespace};
use harness::runtime::runs::store::StoreError;
use sea_orm::{ConnectionTrait, DatabaseConnection, QueryResult, Statement, Value};

use super::row::{COLUMNS, Candidate, Place, Row};
use crate::entity::micros;
use crate::error::read;

/// How many rows are looked at in one go.
pub(super) const PAGE: usize = 256;

/// Rows with their scores, best first.
pub(super) type Found = Vec<(Option<f64>, Row)>;

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

/// The condition of a user's range, and its values; more may be numbered from `values.len() + 1`.
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

fn rows(found: &[QueryResult]) -> Result<Vec<Row>, StoreError> {
    read(found.iter().map(Row::read).collect())
}

/// The item in one place.
pub(super) async fn one(
    db: &DatabaseConnection,
    user: &str,
    namespace: &Namespace,
    key: &str,
    at: i64,
) -> Result<Option<Row>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM store_items i WHERE i.user_id = $1 AND i.namespace = $2 AND i.item_key = $3"
    );
    let found = query(
        db,
        sql,
        vec![user.into(), namespace.to_text().into(), key.into()],
    )
    .await?;
    Ok(rows(&found)?.pop().filter(|row| row.is_there(at)))
}

/// The last written, where no value has to be looked at.
pub(super) async fn recent(
    db: &DatabaseConnection,
    user: &str,
    search: &ItemSearch,
) -> Result<Found, StoreError> {
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
        micros(search.reading.at).into(),
        number(search.limit),
        number(search.offset),
    ]);
    let found = query(db, sql, values).await?;
    Ok(rows(&found)?.into_iter().map(|row| (None, row)).collect())
}

/// The last written whose values fit: page by page through the range, only the places of the wanted part of the order are kept.
pub(super) async fn filtered(
    db: &DatabaseConnection,
    user: &str,
    search: &ItemSearch,
) -> Result<Found, StoreError> {
    let mut best = Best::new(search.offset.saturating_add(search.limit));
    let (columns, at) = (
        Candidate::columns(&search.filter),
        micros(search.reading.at),
    );
    let mut after: Option<Place> = None;
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
        after = page.last().map(|last| last.place.clone());
        for fitting in page
            .into_iter()
            .filter(|candidate| candidate.fits(&search.filter, at))
        {
            best.show(
                fitting.updated_at as f64,
                fitting.place.clone(),
                fitting.place,
            );
        }
        if is_last {
            let page = best.into_page(search.offset);
            return whole(
                db,
                user,
                page.into_iter().map(|(_, place)| (None, place)).collect(),
            )
            .await;
        }
    }
}

/// The rows in these places, in their order. What has gone meanwhile is left out.
pub(super) async fn whole(
    db: &DatabaseConnection,
    user: &str,
    page: Vec<(Option<f64>, Place)>,
) -> Result<Found, StoreError> {
    let mut found: HashMap<Place, Row> = HashMap::with_capacity(page.len());
    for some in page.chunks(PAGE) {
        let places: Vec<String> = (0..some.len())
            .map(|n| format!("(${}, ${})", 2 * n + 2, 2 * n + 3))
            .collect();
        let sql = format!(
            "SELECT {COLUMNS} FROM store_items i WHERE i.user_id = $1 AND (i.namespace, i.item_key) IN (VALUES {})",
            places.join(", ")
        );
        let of_places = some
            .iter()
            .flat_map(|(_, (namespace, key))| [namespace.as_str().into(), key.as_str().into()]);
        let values = std::iter::once(user.into()).chain(of_places).collect();
        found.extend(
            rows(&query(db, sql, values).await?)?
                .into_iter()
                .map(|row| (row.place(), row)),
        );
    }
    Ok(page
        .into_iter()
        .filter_map(|(score, place)| Some((score, found.remove(&place)?)))
        .collect())
}

/// The texts of all namespaces within `head` that hold items, each found by one step of the index.
pub(super) async fn namespaces(
    db: &DatabaseConnection,
    user: &str,
    head: &Namespace,
    at: i64,
) -> Result<Vec<String>, StoreError> {
    let (range, mut values) = range("i", user, head);
    let there = format!(
        "(i.expires_at IS NULL OR i.expires_at > ${})",
        values.len() + 1
    );
    values.push(at.into());
    let first = format!(
        "SELECT i.namespace FROM store_items i WHERE {range} AND {there} ORDER BY i.namespace LIMIT 1"
    );
    let next = format!(
        "SELECT i.namespace FROM store_items i WHERE {range} AND {there} AND i.namespace > steps.namespace ORDER BY i.namespace LIMIT 1"
    );
    let sql = format!(
        "WITH RECURSIVE steps (namespace) AS (SELECT * FROM ({first}) AS begin UNION ALL \
         SELECT ({next}) FROM steps WHERE steps.namespace IS NOT NULL) \
         SELECT namespace FROM steps WHERE namespace IS NOT NULL"
    );
    let found = query(db, sql, values).await?;
    read(found.iter().map(|row| row.try_get_by_index(0)).collect())
}
