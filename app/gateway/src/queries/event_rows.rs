//! Reads journal rows in parts, so that memory is bounded by bytes and not by rows.

use harness::ids::ThreadId;
use harness::json_size::size_beyond;
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{EventQuery, Order, RunEvent};

use crate::error::ApiError;
use crate::state::GatewayState;

/// Number of bytes of rows after which no further ones are read.
const MAX_BYTES: usize = 24 << 20;
/// Number of bytes of the rows that are read at a time.
const PART_BYTES: usize = 8 << 20;
/// Number of rows that are read first, when their size is not known yet.
const FIRST_PART: usize = 16;

/// Rows of a query, ascending.
#[derive(Debug, Default)]
pub(crate) struct EventRows {
    pub(crate) rows: Vec<RunEvent>,
    /// `true` if rows are missing because of the size of those before.
    pub(crate) is_cut: bool,
    /// `true` if no rows follow.
    pub(crate) is_last: bool,
}

/// Reads rows from the end at which the query begins, until there are as many as it permits or
/// their size exceeds the limit.
pub(crate) async fn read_rows(
    state: &GatewayState,
    thread: &ThreadId,
    mut query: EventQuery,
) -> Result<EventRows, ApiError> {
    let events = &state.run_services.events;
    let (wanted, order) = (query.limit, query.order);
    let mut found = EventRows::default();
    let (mut bytes, mut part) = (0_usize, FIRST_PART);
    while found.rows.len() < wanted {
        if bytes >= MAX_BYTES {
            found.is_cut = true;
            break;
        }
        query.limit = part.min(wanted - found.rows.len());
        let rows = events.list(thread, &query, &Owner::Auto).await?;
        // A part may be short, because damaged rows are omitted.
        if rows.is_empty() {
            found.is_last = true;
            break;
        }
        bytes += rows.iter().map(size_of).sum::<usize>();
        match order {
            Order::Oldest => {
                query.after_seq = rows.last().map(|row| row.seq).or(query.after_seq);
                found.rows.extend(rows);
            }
            Order::Newest => {
                query.before_seq = rows.first().map(|row| row.seq).or(query.before_seq);
                found.rows.splice(..0, rows);
            }
        }
        let fitting = PART_BYTES / (bytes / found.rows.len()).max(1);
        part = fitting.clamp(1, 4 * found.rows.len());
    }
    Ok(found)
}

/// Returns the bytes of a row's JSON.
fn size_of(row: &RunEvent) -> usize {
    let (content, metadata) = (&row.event.content, &row.event.metadata);
    let sizes = [size_beyond(content, 0), size_beyond(metadata, 0)];
    sizes.into_iter().flatten().sum()
}
