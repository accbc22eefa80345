//! Long values of the writer on SQLite, written into their rows without copies in memory.
//!
//! SQLite copies a value that is bound to a statement, and copies it again into the record of its row.
//! A blob of zeros as the last column of a row is not copied, and can be overwritten afterwards.

use rusqlite::{Connection, MAIN_DB};

/// Minimum length of a long value, in bytes.
const LONG_VALUE: usize = 256 << 10;

/// Reports whether a text is a long value.
pub(crate) fn is_long(text: &str) -> bool {
    text.len() >= LONG_VALUE
}

/// Returns the number of bytes that a row needs for a text: the argument of `ZEROBLOB`.
pub(crate) fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// Writes a text into the row that the last statement of this connection inserted. `column` must be a
/// blob of [`length`] bytes.
pub(crate) fn fill_inserted(
    connection: &Connection,
    table: &str,
    column: &str,
    text: &str,
) -> rusqlite::Result<()> {
    let row = connection.last_insert_rowid();
    let mut blob = connection.blob_open(MAIN_DB, table, column, row, false)?;
    blob.write_at(text.as_bytes(), 0)?;
    blob.close()
}
