//! Large texts of runs, in rows of their own.
//!
//! SQLite writes a whole row when one of its columns changes. The texts of a request can have many
//! MiB and do not change, while each commit of a run changes its row. Postgres stores large values
//! outside of their rows by itself, so its table stays empty.
//!
//! A text of this table is deleted by the database, with its run or when the column gets another
//! value.

use deerflow_core::ids::RunId;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, Statement};

use super::stored_request::LONG_TEXT;
use crate::db::entity::{run, run_text};

/// Columns of `runs` whose texts may be stored apart.
pub(super) const KWARGS: &str = "kwargs_json";
pub(super) const RECIPE: &str = "recipe_json";

/// Value of a column whose text is stored apart. It is JSON, so a row can be read without its large
/// texts, and no serializer writes it.
pub(super) const STORED_APART: &str = "{ }";

/// Inserts one text: run, column and text.
pub(super) const INSERT: &str =
    "INSERT INTO run_texts (run_id, column_name, column_text) VALUES (?, ?, ?)";

/// Reports whether a text is stored apart.
pub(super) fn is_large(text: &str) -> bool {
    text.len() >= LONG_TEXT
}

/// Inserts texts of a run that was just inserted, each with the name of its column.
pub(super) async fn insert(
    db: &impl ConnectionTrait,
    run: &RunId,
    texts: impl Iterator<Item = (&'static str, &str)>,
) -> Result<(), DbErr> {
    for (column, text) in texts {
        let values = [run.as_str(), column, text].map(Into::into);
        let insert = Statement::from_sql_and_values(db.get_database_backend(), INSERT, values);
        db.execute_raw(insert).await?;
    }
    Ok(())
}

/// Reads the large texts of rows into their columns.
pub(super) async fn load(db: &impl ConnectionTrait, rows: &mut [run::Model]) -> Result<(), DbErr> {
    let incomplete = rows.iter().filter(|row| {
        row.kwargs_json == STORED_APART || row.recipe_json.as_deref() == Some(STORED_APART)
    });
    let ids: Vec<_> = incomplete.map(|row| row.run_id.as_str()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let texts = run_text::Entity::find().filter(run_text::Column::RunId.is_in(ids));
    for text in texts.all(db).await? {
        let Some(row) = rows.iter_mut().find(|row| row.run_id == text.run_id) else {
            continue;
        };
        match text.column_name.as_str() {
            KWARGS => row.kwargs_json = text.column_text,
            RECIPE => row.recipe_json = Some(text.column_text),
            _ => {}
        }
    }
    Ok(())
}

/// Reads the large texts of a row, if there is one.
pub(crate) async fn load_one(
    db: &impl ConnectionTrait,
    mut row: Option<run::Model>,
) -> Result<Option<run::Model>, DbErr> {
    load(db, row.as_mut_slice()).await?;
    Ok(row)
}

#[cfg(test)]
#[path = "large_texts_tests.rs"]
mod tests;
