//! Which threads, in which order: one query over one index.

use deerflow_domain::threads::{ThreadSearch, ThreadSort};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, DbBackend, EntityTrait, Order, QueryFilter, QueryOrder, Select, Value};

use crate::entity::thread;
use crate::runs::json_text;

/// The owner's threads.
pub(super) fn owned(select: Select<thread::Entity>, owner: &Owner) -> Result<Select<thread::Entity>, StoreError> {
    Ok(match owner.resolve()? {
        Some(user) => select.filter(thread::Column::UserId.eq(user)),
        None => select,
    })
}

/// The filter, without order and limits.
pub(super) fn matching(search: &ThreadSearch, owner: &Owner, backend: DbBackend) -> Result<Select<thread::Entity>, StoreError> {
    let mut select = owned(thread::Entity::find(), owner)?;
    if !search.ids.is_empty() {
        select = select.filter(thread::Column::ThreadId.is_in(search.ids.iter().map(|id| id.as_str())));
    }
    if let Some(status) = search.status {
        select = select.filter(thread::Column::Status.eq(status.as_str()));
    }
    // An entry as JSON text, null when it is absent. Both databases keep the text as it was written, and it was written by the
    // same code as the text it is compared with: the comparison is exact and knows types.
    let entry = match backend {
        // Postgres cannot look into JSON that has a NUL character anywhere, so one stands in for it on both sides.
        DbBackend::Postgres => {
            r"(replace(threads_meta.metadata_json, '\u0000', '\ufffd')::json -> $1)::text = replace($2, '\u0000', '\ufffd')"
        }
        _ => "(threads_meta.metadata_json -> ?) = ?",
    };
    for (key, value) in &search.metadata {
        let values: [Value; 2] = [key.as_str().into(), json_text(value).into()];
        select = select.filter(Expr::cust_with_values(entry, values));
    }
    Ok(select)
}

/// Pinned ones first if asked, then the wanted column, then the id, greatest first.
pub(super) fn ordered(mut select: Select<thread::Entity>, search: &ThreadSearch) -> Select<thread::Entity> {
    if search.pinned_first {
        select = select.order_by_desc(thread::Column::Pinned);
    }
    let order = if search.ascending { Order::Asc } else { Order::Desc };
    match search.sort_by {
        ThreadSort::ThreadId => select.order_by(thread::Column::ThreadId, order),
        ThreadSort::UpdatedAt => select.order_by(thread::Column::UpdatedAt, order).order_by_desc(thread::Column::ThreadId),
        ThreadSort::CreatedAt => select.order_by(thread::Column::CreatedAt, order).order_by_desc(thread::Column::ThreadId),
        ThreadSort::Status => select.order_by(thread::Column::Status, order).order_by_desc(thread::Column::ThreadId),
    }
}
