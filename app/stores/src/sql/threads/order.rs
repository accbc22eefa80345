//! Order of a thread search.

use deerflow_domain::threads::{ThreadSearch, ThreadSort};
use sea_orm::{Order, QueryOrder, Select};

use crate::db::entity::thread;

/// Sorts a query: pinned threads first if requested, then by the requested column, then by id
/// descending.
pub(super) fn ordered(
    mut select: Select<thread::Entity>,
    search: &ThreadSearch,
) -> Select<thread::Entity> {
    if search.pinned_first {
        select = select.order_by_desc(thread::Column::Pinned);
    }
    let order = || {
        if search.ascending {
            Order::Asc
        } else {
            Order::Desc
        }
    };
    let by = |select: Select<thread::Entity>, column| {
        select
            .order_by(column, order())
            .order_by_desc(thread::Column::ThreadId)
    };
    match search.sort_by {
        ThreadSort::ThreadId => select.order_by(thread::Column::ThreadId, order()),
        ThreadSort::UpdatedAt => by(select, thread::Column::UpdatedAt),
        ThreadSort::StateUpdatedAt => by(select, thread::Column::StateUpdatedAt),
        ThreadSort::CreatedAt => by(select, thread::Column::CreatedAt),
        // All columns in one direction, like the index: very many threads have the same status.
        ThreadSort::Status => select
            .order_by(thread::Column::Status, order())
            .order_by(thread::Column::UpdatedAt, order())
            .order_by(thread::Column::ThreadId, order()),
    }
}
