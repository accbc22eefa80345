//! Statements that run together: SQLite runs them in one call to its thread, Postgres one after the
//! other.

use std::borrow::Cow;

use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, QueryResult, Statement, StatementBuilder, Value, Values,
};

/// Rows per statement, far below the value limits of both databases.
const ROWS_PER_INSERT: usize = 500;

/// A list of statements. Their rows are returned together, so the first column of each returned row
/// is a tag.
#[derive(Debug)]
pub(crate) struct StatementBatch {
    backend: DbBackend,
    statements: Vec<(Cow<'static, str>, Vec<Value>)>,
}

impl StatementBatch {
    /// Creates an empty batch for this database.
    pub(crate) fn new(db: &impl ConnectionTrait) -> Self {
        Self {
            backend: db.get_database_backend(),
            statements: Vec::new(),
        }
    }

    /// Adds a statement with a `?` for each value.
    pub(crate) fn add<const N: usize>(&mut self, sql: &'static str, values: [Value; N]) {
        self.add_text(sql.into(), values.into());
    }

    /// Adds a statement with a `?` for each value, for a variable number of values.
    pub(crate) fn add_values(&mut self, sql: &'static str, values: Vec<Value>) {
        self.add_text(sql.into(), values);
    }

    /// Adds a statement built by the query builder.
    pub(crate) fn add_built(&mut self, statement: &impl StatementBuilder) {
        let Statement { sql, values, .. } = self.backend.build(statement);
        self.statements.push((
            sql.into(),
            values.map(|Values(values)| values).unwrap_or_default(),
        ));
    }

    /// Adds inserts: `into` has the table and columns, `row` the value list of one row in
    /// parentheses.
    pub(crate) fn add_rows(
        &mut self,
        into: &str,
        row: &str,
        rows: impl IntoIterator<Item = Vec<Value>>,
    ) {
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut sql = format!("INSERT INTO {into} VALUES ");
            let mut values = Vec::new();
            for (number, row_values) in rows.by_ref().take(ROWS_PER_INSERT).enumerate() {
                sql.push_str(if number == 0 { "" } else { "," });
                sql.push_str(row);
                values.extend(row_values);
            }
            self.add_text(sql.into(), values);
        }
    }

    fn add_text(&mut self, sql: Cow<'static, str>, values: Vec<Value>) {
        let sql = if self.backend == DbBackend::Postgres {
            numbered(&sql).into()
        } else {
            sql
        };
        self.statements.push((sql, values));
    }

    /// Runs the statements in order, up to the first that fails, and returns all rows.
    pub(crate) async fn run(self, tx: &impl ConnectionTrait) -> Result<Vec<QueryResult>, DbErr> {
        let backend = self.backend;
        if self.statements.is_empty() {
            return Ok(Vec::new());
        }
        if backend == DbBackend::Sqlite {
            let sql = self
                .statements
                .iter()
                .map(|(sql, _)| sql.as_ref())
                .collect::<Vec<_>>()
                .join(";");
            let values = self.statements.into_iter().flat_map(|(_, values)| values);
            return tx
                .query_all_raw(Statement::from_sql_and_values(backend, sql, values))
                .await;
        }
        let mut rows = Vec::new();
        for (sql, values) in self.statements {
            rows.extend(
                tx.query_all_raw(Statement::from_sql_and_values(backend, sql, values))
                    .await?,
            );
        }
        Ok(rows)
    }
}

/// Replaces each `?` by a numbered placeholder of Postgres.
fn numbered(sql: &str) -> String {
    let mut parts = sql.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (number, part) in parts.enumerate() {
        text.push('$');
        text.push_str(&(number + 1).to_string());
        text.push_str(part);
    }
    text
}

/// Returns the first row with this tag.
pub(crate) fn tagged<'a>(rows: &'a [QueryResult], tag: &'a str) -> Option<&'a QueryResult> {
    all_tagged(rows, tag).next()
}

/// Returns the rows with this tag.
pub(crate) fn all_tagged<'a>(
    rows: &'a [QueryResult],
    tag: &'a str,
) -> impl Iterator<Item = &'a QueryResult> {
    rows.iter().filter(move |row| {
        row.try_get_by_index::<String>(0)
            .is_ok_and(|found| found == tag)
    })
}

#[cfg(test)]
mod tests {
    use sea_orm::TransactionTrait;

    use super::*;
    use crate::{Database, DatabaseConfig};
    use deerflow_core::tasks::Tasks;

    #[test]
    fn placeholders_are_numbered_in_order() {
        assert_eq!(
            numbered("INSERT INTO t VALUES (?, ?),(?, 'x')"),
            "INSERT INTO t VALUES ($1, $2),($3, 'x')"
        );
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
    }

    #[tokio::test]
    async fn batch_binds_values_and_returns_rows_in_order() {
        let tasks = Tasks::new();
        let db = Database::open(&DatabaseConfig::Memory, &tasks)
            .await
            .unwrap();
        let tx = db.reads().begin().await.unwrap();
        let mut batch = StatementBatch::new(&tx);
        batch.add("CREATE TABLE t (a BIGINT, b TEXT)", []);
        batch.add_rows(
            "t (a, b)",
            "(?, ?)",
            (0..1_200_i64).map(|n| vec![n.into(), format!("text {n}").into()]),
        );
        batch.add(
            "UPDATE t SET b = ? WHERE a = ? RETURNING 'changed', b",
            ["new".into(), 700_i64.into()],
        );
        batch.add(
            "SELECT 'count', COUNT(*) FROM t WHERE a >= ?",
            [200_i64.into()],
        );
        let rows = batch.run(&tx).await.unwrap();
        assert_eq!(
            tagged(&rows, "changed")
                .unwrap()
                .try_get_by_index::<String>(1)
                .unwrap(),
            "new"
        );
        assert_eq!(
            tagged(&rows, "count")
                .unwrap()
                .try_get_by_index::<i64>(1)
                .unwrap(),
            1_000
        );
        assert!(tagged(&rows, "other").is_none());
        tx.rollback().await.unwrap();
    }
}
