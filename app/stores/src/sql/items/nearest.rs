//! Semantic search: vectors are compared by pgvector, or in this process, which reads them page by
//! page and retains only the best results.

use deerflow_domain::items::{ItemSearch, TopK, cosine};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{DatabaseConnection, DbBackend};

use super::row::{COLUMN_COUNT, COLUMNS, Candidate, ItemKey, Row};
use super::search::{PAGE, ScoredRows, load_rows, number, query, range};
use super::vector::{read_vector, vector_column, vector_value};
use crate::db::entity::micros;
use crate::db::error::read;

/// Returns the schema of the pgvector extension, if the database has it.
pub(super) async fn pgvector_schema(db: &DatabaseConnection) -> Result<Option<String>, StoreError> {
    let sql = "SELECT n.nspname::text FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'";
    let results = query(db, sql.to_owned(), vec![]).await?;
    read(
        results
            .first()
            .map(|row| row.try_get_by_index::<String>(0))
            .transpose(),
    )
}

/// Searches with pgvector, installed in `schema`.
pub(super) async fn in_the_database(
    db: &DatabaseConnection,
    user: &str,
    search: &ItemSearch,
    nearest: &[f32],
    schema: &str,
) -> Result<ScoredRows, StoreError> {
    let (range, mut values) = range("v", user, &search.prefix);
    let n = values.len();
    // `<=>` is one minus the cosine. It is undefined for vectors of another length, and for zero
    // vectors.
    let sql = format!(
        "SELECT {COLUMNS}, s.score FROM ( \
            SELECT v.namespace, v.item_key, \
                MAX(NULLIF(1 - (v.vector::\"{schema}\".vector OPERATOR(\"{schema}\".<=>) \
                    CAST(CAST(${a} AS REAL[]) AS \"{schema}\".vector)), 'NaN')) AS score \
            FROM store_vectors v WHERE {range} AND cardinality(v.vector) = ${b} GROUP BY v.namespace, v.item_key \
         ) s JOIN store_items i ON i.user_id = $1 AND i.namespace = s.namespace AND i.item_key = s.item_key \
         WHERE (i.expires_at IS NULL OR i.expires_at > ${c}) AND s.score IS NOT NULL \
         ORDER BY s.score DESC, i.namespace, i.item_key LIMIT ${d} OFFSET ${e}",
        a = n + 1,
        b = n + 2,
        c = n + 3,
        d = n + 4,
        e = n + 5
    );
    let length = i32::try_from(nearest.len()).unwrap_or(i32::MAX);
    let (_, nearest_value) = vector_value(DbBackend::Postgres, nearest);
    values.extend([
        nearest_value,
        length.into(),
        micros(search.read_options.at).into(),
    ]);
    values.extend([number(search.limit), number(search.offset)]);
    let results = query(db, sql, values).await?;
    read(
        results
            .iter()
            .map(|row| {
                Ok((
                    Some(row.try_get_by_index::<f64>(COLUMN_COUNT)?),
                    Row::read(row)?,
                ))
            })
            .collect(),
    )
}

/// Searches in this process.
pub(super) async fn in_process(
    db: &DatabaseConnection,
    user: &str,
    search: &ItemSearch,
    nearest: &[f32],
) -> Result<ScoredRows, StoreError> {
    let backend = db.get_database_backend();
    let (columns, at) = (
        Candidate::columns(&search.filter),
        micros(search.read_options.at),
    );
    let mut best = TopK::new(search.offset.saturating_add(search.limit));
    let mut after: Option<ItemKey> = None;
    loop {
        let (mut range, mut values) = range("w", user, &search.prefix);
        if let Some((namespace, key)) = after.take() {
            range.push_str(&format!(
                " AND (w.namespace, w.item_key) > (${}, ${})",
                values.len() + 1,
                values.len() + 2
            ));
            values.extend([namespace.into(), key.into()]);
        }
        let sql = format!(
            "SELECT {columns}, {} FROM ( \
                SELECT DISTINCT w.namespace, w.item_key FROM store_vectors w WHERE {range} ORDER BY w.namespace, w.item_key LIMIT {PAGE} \
             ) p JOIN store_vectors v ON v.user_id = $1 AND v.namespace = p.namespace AND v.item_key = p.item_key \
             JOIN store_items i ON i.user_id = $1 AND i.namespace = p.namespace AND i.item_key = p.item_key \
             ORDER BY i.namespace, i.item_key",
            vector_column(backend)
        );
        let page = query(db, sql, values).await?;
        let (mut items, mut current): (usize, Option<(Candidate, Option<f64>)>) = (0, None);
        for results in &page {
            let (candidate, vector) = (
                read(Candidate::read(results))?,
                read(read_vector(backend, results))?,
            );
            let score = cosine(&vector, nearest);
            match &mut current {
                Some((of, highest)) if of.item_key == candidate.item_key => {
                    *highest = max(*highest, score)
                }
                _ => {
                    items += 1;
                    if let Some(done) = current.replace((candidate, score)) {
                        offer_candidate(&mut best, done, search, at);
                    }
                }
            }
        }
        after = current
            .as_ref()
            .map(|(candidate, _)| candidate.item_key.clone());
        if let Some(done) = current {
            offer_candidate(&mut best, done, search, at);
        }
        if items < PAGE {
            let page = best.into_page(search.offset);
            return load_rows(
                db,
                user,
                page.into_iter()
                    .map(|(score, item_key)| (Some(score), item_key))
                    .collect(),
            )
            .await;
        }
    }
}

fn max(first: Option<f64>, other: Option<f64>) -> Option<f64> {
    first.into_iter().chain(other).max_by(f64::total_cmp)
}

fn offer_candidate(
    best: &mut TopK<ItemKey, ItemKey>,
    (candidate, score): (Candidate, Option<f64>),
    search: &ItemSearch,
    at: i64,
) {
    if let Some(score) = score.filter(|_| candidate.matches(&search.filter, at)) {
        best.offer(score, candidate.item_key.clone(), candidate.item_key);
    }
}
