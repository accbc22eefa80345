//! Large texts of runs, in rows of their own.
//!
//! SQLite writes a whole row when one of its columns changes. The texts of a request can have many
//! MiB and do not change, while each commit of a run changes its row. Postgres stores large values
//! outside of their rows by itself, so its table stays empty. SQLite copies a value twice when it is
//! inserted, so a text has a row for each of its parts.
//!
//! A text of this table is deleted by the database, with its run or when the column gets another
//! value.

use deerflow_core::ids::RunId;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, Statement,
};

use super::stored_request::LONG_TEXT;
use crate::db::entity::{run, run_text_part};

/// Columns of `runs` whose texts may be stored apart.
pub(super) const KWARGS: &str = "kwargs_json";
pub(super) const RECIPE: &str = "recipe_json";

/// Value of a column whose text is stored apart. It is JSON, so a row can be read without its large
/// texts, and no serializer writes it.
pub(super) const STORED_APART: &str = "{ }";

/// Maximum length of a part, in bytes.
const PART_BYTES: usize = 1 << 20;

/// Inserts one part: run, column, number and text.
pub(super) const INSERT: &str =
    "INSERT INTO run_text_parts (run_id, column_name, part, part_text) VALUES (?, ?, ?, ?)";

/// Reports whether a text is stored apart.
pub(super) fn is_large(text: &str) -> bool {
    text.len() >= LONG_TEXT
}

/// Splits a text into its parts, each with its number. Parts end between characters.
pub(super) fn parts_of(mut text: &str) -> impl Iterator<Item = (i32, &str)> {
    (0..).map_while(move |number| {
        let end = text.floor_char_boundary(PART_BYTES);
        let (part, rest) = text.split_at_checked(end)?;
        text = rest;
        (!part.is_empty()).then_some((number, part))
    })
}

/// Inserts texts of a run that was just inserted, each with the name of its column.
pub(super) async fn insert(
    db: &impl ConnectionTrait,
    run: &RunId,
    texts: impl Iterator<Item = (&'static str, &str)>,
) -> Result<(), DbErr> {
    for (column, text) in texts {
        for (number, part) in parts_of(text) {
            let values = [
                run.as_str().into(),
                column.into(),
                number.into(),
                part.into(),
            ];
            let insert = Statement::from_sql_and_values(db.get_database_backend(), INSERT, values);
            db.execute_raw(insert).await?;
        }
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
    let parts = run_text_part::Entity::find()
        .filter(run_text_part::Column::RunId.is_in(ids))
        .order_by_asc(run_text_part::Column::Part);
    for part in parts.all(db).await? {
        let Some(row) = rows.iter_mut().find(|row| row.run_id == part.run_id) else {
            continue;
        };
        let column = match part.column_name.as_str() {
            KWARGS => &mut row.kwargs_json,
            RECIPE => row.recipe_json.get_or_insert_default(),
            _ => continue,
        };
        if part.part == 0 {
            *column = part.part_text;
        } else {
            column.push_str(&part.part_text);
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
