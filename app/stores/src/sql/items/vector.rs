//! Stored form of a vector: an array of Postgres, or bytes in SQLite.

use sea_orm::{DbBackend, DbErr, QueryResult, Value};

use super::row::Candidate;

/// Returns the SQL expression for a vector, with `{}` for its placeholder, and its value.
pub(super) fn vector_value(backend: DbBackend, vector: &[f32]) -> (&'static str, Value) {
    match backend {
        DbBackend::Postgres => {
            let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
            (
                "CAST({} AS REAL[])",
                format!("{{{}}}", numbers.join(",")).into(),
            )
        }
        _ => (
            "{}",
            vector
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect::<Vec<u8>>()
                .into(),
        ),
    }
}

/// Returns the SQL expression that [`read_vector`] reads.
pub(super) fn vector_column(backend: DbBackend) -> &'static str {
    match backend {
        DbBackend::Postgres => "v.vector::text",
        _ => "v.vector",
    }
}

/// Reads a vector from a row of [`Candidate`] columns and [`vector_column`].
pub(super) fn read_vector(backend: DbBackend, row: &QueryResult) -> Result<Vec<f32>, DbErr> {
    let damaged = || DbErr::Type("a vector is damaged".to_owned());
    if backend != DbBackend::Postgres {
        let bytes: Vec<u8> = row.try_get_by_index(Candidate::COLUMN_COUNT)?;
        return Ok(bytes
            .chunks_exact(4)
            .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
            .collect());
    }
    let text: String = row.try_get_by_index(Candidate::COLUMN_COUNT)?;
    let inside = text.trim_start_matches('{').trim_end_matches('}');
    inside
        .split(',')
        .filter(|number| !number.is_empty())
        .map(|number| number.parse().map_err(|_| damaged()))
        .collect()
}
