//! Which assistants, in which order.

use deerflow_domain::assistants::{Assistant, AssistantSearch, AssistantSort};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::StoreError;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{ColumnTrait, DatabaseConnection, DbBackend, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect, Select};

use super::row::{readable, record};
use crate::entity::{assistant, plain};
use crate::error::read;

/// The owner's assistants.
pub(super) fn owned(select: Select<assistant::Entity>, owner: &Owner) -> Result<Select<assistant::Entity>, StoreError> {
    Ok(match owner.resolve()? {
        Some(user) => select.filter(assistant::Column::UserId.eq(user)),
        None => select,
    })
}

/// A page of what matches; names and metadata are looked into here, not by the database.
pub(super) async fn search(db: &DatabaseConnection, search: &AssistantSearch, owner: &Owner) -> Result<Vec<Assistant>, StoreError> {
    let select = ordered(of_graph(search, owner)?, search, db);
    if search.name.is_none() && search.metadata.is_empty() {
        let rows = read(select.limit(search.limit as u64).offset(search.offset as u64).all(db).await)?;
        return Ok(rows.into_iter().filter_map(|row| readable(record(row))).collect());
    }
    let rows = read(select.all(db).await)?;
    let matching = rows.into_iter().filter_map(|row| readable(record(row))).filter(|found| search.matches(&found.content));
    Ok(matching.skip(search.offset).take(search.limit).collect())
}

/// Those of the wanted graph.
pub(super) fn of_graph(search: &AssistantSearch, owner: &Owner) -> Result<Select<assistant::Entity>, StoreError> {
    let select = owned(assistant::Entity::find(), owner)?;
    Ok(match &search.graph {
        Some(graph) => select.filter(assistant::Column::GraphId.eq(plain(graph))),
        None => select,
    })
}

fn ordered(select: Select<assistant::Entity>, search: &AssistantSearch, db: &DatabaseConnection) -> Select<assistant::Entity> {
    let order = || if search.ascending { Order::Asc } else { Order::Desc };
    // Text by its bytes, whatever the language of the database.
    let text = |column: assistant::Column| match db.get_database_backend() {
        DbBackend::Postgres => Expr::cust_with_expr("$1 COLLATE \"C\"", Expr::col(column)),
        _ => SimpleExpr::from(Expr::col(column)),
    };
    let select = match search.sort_by {
        AssistantSort::CreatedAt => select.order_by(assistant::Column::CreatedAt, order()),
        AssistantSort::UpdatedAt => select.order_by(assistant::Column::UpdatedAt, order()),
        AssistantSort::Name => select.order_by(text(assistant::Column::Name), order()),
        AssistantSort::Graph => select.order_by(text(assistant::Column::GraphId), order()),
        AssistantSort::Id => select,
    };
    select.order_by(text(assistant::Column::AssistantId), order())
}
