//! Which threads, in which order.
//!
//! A list walks an index in the wanted order and stops when the page is full. That is slow where few threads match, so the
//! filters that an index can answer are asked first: if one of them lets only few threads through, the search begins with those.

use std::collections::HashMap;

use deerflow_domain::containment::{Fact, contains, facts, facts_decide};
use deerflow_domain::threads::{ThreadRecord, ThreadSearch, ThreadSort};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::StoreError;
use sea_orm::sea_query::{Expr, ExprTrait as _, Func};
use sea_orm::{
    ColumnTrait, Condition, DatabaseConnection, DbBackend, EntityTrait, Order, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select, Value,
};
use serde_json::Map;

use super::facts::stored;
use super::row::records;
use crate::checkpoints::newest_channels;
use crate::entity::{plain, short_title, thread, thread_fact};
use crate::error::read;

/// Filters that let at most so many threads through are where a search begins.
const FEW: usize = 2_000;
/// A filter that lets at most so many through is good enough; the others are not asked.
const VERY_FEW: usize = 100;
/// Threads at the beginning of an order among which a page may be found.
const NEAR: usize = 1_000;
/// Threads that are looked into at a time where the database cannot decide alone.
const PAGE: usize = 500;

/// The owner's threads.
pub(super) fn owned(
    select: Select<thread::Entity>,
    owner: &Owner,
) -> Result<Select<thread::Entity>, StoreError> {
    Ok(match owner.resolve()? {
        Some(user) => select.filter(thread::Column::UserId.eq(user)),
        None => select,
    })
}

/// A page of what matches.
pub(super) async fn search(
    db: &DatabaseConnection,
    search: &ThreadSearch,
    owner: &Owner,
) -> Result<Vec<ThreadRecord>, StoreError> {
    let filters = Filters::of(search, owner, db)?;
    let few = filters.few(db).await?;
    let matching = filters.matching(few.as_deref());
    if !decided_by_index(search) {
        let found = looked_into(
            db,
            search,
            ordered(matching, search),
            search.offset + search.limit,
        )
        .await?;
        return Ok(found.into_iter().skip(search.offset).collect());
    }
    if few.is_none() && filters.may_be_near() {
        let page = read(page(filters.near(), search).all(db).await)?;
        if page.len() == search.limit {
            return Ok(records(page));
        }
    }
    read(page(matching, search).all(db).await).map(records)
}

/// A page of these. What comes before it is only counted: an index does that, and the rows are looked up afterwards.
fn page(matching: Select<thread::Entity>, search: &ThreadSearch) -> Select<thread::Entity> {
    let page = ordered(matching, search).limit(search.limit as u64);
    if search.offset == 0 {
        return page;
    }
    let ids = page
        .offset(search.offset as u64)
        .select_only()
        .column(thread::Column::ThreadId);
    ordered(
        thread::Entity::find().filter(thread::Column::ThreadId.in_subquery(ids.into_query())),
        search,
    )
}

/// How many match.
pub(super) async fn count(
    db: &DatabaseConnection,
    search: &ThreadSearch,
    owner: &Owner,
) -> Result<u64, StoreError> {
    let filters = Filters::of(search, owner, db)?;
    if !decided_by_index(search) {
        let matching = ordered(filters.matching(filters.few(db).await?.as_deref()), search);
        return Ok(looked_into(db, search, matching, usize::MAX).await?.len() as u64);
    }
    match filters.only_fact() {
        Some(fact) => read(fact.count(db).await),
        None => read(
            filters
                .matching(filters.few(db).await?.as_deref())
                .count(db)
                .await,
        ),
    }
}

/// Whether rows that pass the database's filters match for sure.
fn decided_by_index(search: &ThreadSearch) -> bool {
    search.values.is_empty() && facts_decide(&search.metadata)
}

/// The first `most` of these that match when one looks into them.
async fn looked_into(
    db: &DatabaseConnection,
    search: &ThreadSearch,
    candidates: Select<thread::Entity>,
    most: usize,
) -> Result<Vec<ThreadRecord>, StoreError> {
    let ids: Vec<String> = read(
        candidates
            .select_only()
            .column(thread::Column::ThreadId)
            .into_tuple()
            .all(db)
            .await,
    )?;
    let mut found = Vec::new();
    for some in ids.chunks(PAGE) {
        let rows = thread::Entity::find()
            .filter(thread::Column::ThreadId.is_in(some))
            .all(db)
            .await;
        let mut by_id: HashMap<String, ThreadRecord> = read(rows)
            .map(records)?
            .into_iter()
            .map(|record| (record.thread_id.to_string(), record))
            .collect();
        let values = if search.values.is_empty() {
            HashMap::new()
        } else {
            newest_channels(db, some).await?
        };
        let has_values = |id: &str| {
            search.values.is_empty()
                || values
                    .get(id)
                    .is_some_and(|held| contains(held, &search.values))
        };
        for id in some {
            let Some(record) = by_id.remove(id) else {
                continue;
            };
            if has_values(id) && contains(&record.metadata, &search.metadata) {
                found.push(record);
            }
            if found.len() == most {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// A filter that an index answers.
enum Indexed {
    /// The metadata says so.
    Fact(String, String),
    /// This column says so.
    Column(thread::Column, String),
    /// Its first run was of this graph and named no assistant.
    GraphItself(String),
    /// One of several.
    Any(Vec<Indexed>),
}

/// All filters of a search.
struct Filters<'a> {
    search: &'a ThreadSearch,
    user: Option<String>,
    backend: DbBackend,
    indexed: Vec<Indexed>,
}

impl<'a> Filters<'a> {
    fn of(
        search: &'a ThreadSearch,
        owner: &Owner,
        db: &DatabaseConnection,
    ) -> Result<Self, StoreError> {
        let fact = |fact: Fact| {
            let (path, value) = stored(fact);
            Indexed::Fact(path, value)
        };
        let mut indexed: Vec<Indexed> = facts(&search.metadata, usize::MAX)
            .into_iter()
            .map(fact)
            .collect();
        if let Some(graph) = &search.graph {
            let said = facts(
                &Map::from_iter([("graph_id".to_owned(), graph.as_str().into())]),
                usize::MAX,
            )
            .into_iter()
            .map(fact);
            indexed.push(Indexed::Any(
                said.chain([Indexed::Column(thread::Column::AssistantId, plain(graph))])
                    .collect(),
            ));
        }
        if let Some(assistant) = &search.assistant {
            let by_graph = assistant
                .graph
                .as_deref()
                .map(|graph| Indexed::GraphItself(plain(graph)));
            let by_id = Indexed::Column(thread::Column::RunAssistantId, plain(&assistant.id));
            indexed.push(Indexed::Any(
                std::iter::once(by_id).chain(by_graph).collect(),
            ));
        }
        if let Some(title) = search
            .values
            .get("title")
            .and_then(serde_json::Value::as_str)
        {
            // The title of a state is its row's too, so few states are read; whether it is still there is looked at afterwards.
            indexed.push(Indexed::Column(
                thread::Column::DisplayName,
                short_title(title),
            ));
        }
        Ok(Self {
            search,
            user: owner.resolve()?,
            backend: db.get_database_backend(),
            indexed,
        })
    }

    /// The rows that pass, without order and limits; they are among `few`, if that is known.
    fn matching(&self, few: Option<&[String]>) -> Select<thread::Entity> {
        let mut select = thread::Entity::find();
        let ids: Option<Vec<&str>> = match few {
            Some(few) => Some(few.iter().map(String::as_str).collect()),
            None if self.search.ids.is_empty() => None,
            None => Some(self.search.ids.iter().map(|id| id.as_str()).collect()),
        };
        select = match (ids, &self.user) {
            // Not by the bare column: an index by user would be taken for the better way, and there all of the user's threads are.
            (Some(ids), Some(user)) => select.filter(thread::Column::ThreadId.is_in(ids)).filter(
                Func::coalesce([Expr::col(thread::Column::UserId), Expr::val("")])
                    .eq(user.as_str()),
            ),
            (Some(ids), None) => select.filter(thread::Column::ThreadId.is_in(ids)),
            (None, Some(user)) => select.filter(thread::Column::UserId.eq(user.as_str())),
            (None, None) => select,
        };
        if let Some(status) = self.search.status {
            select = select.filter(thread::Column::Status.eq(status.as_str()));
        }
        self.indexed
            .iter()
            .fold(select, |select, filter| select.filter(self.passes(filter)))
    }

    /// Whether a first page of a filter that lets many through is worth a look at the first threads of the order. SQLite walks the
    /// order by itself; Postgres prefers to collect and sort all that pass.
    fn may_be_near(&self) -> bool {
        let Self {
            search,
            backend,
            indexed,
            ..
        } = self;
        *backend == DbBackend::Postgres
            && !indexed.is_empty()
            && search.ids.is_empty()
            && search.offset + search.limit <= NEAR / 10
    }

    /// The rows that pass among the first threads of the order. These stand in the table's place, so that the order is walked once
    /// and no further than until the page is full.
    fn near(&self) -> Select<thread::Entity> {
        let all = thread::Entity::find().apply_if(self.user.as_deref(), |all, user| {
            all.filter(thread::Column::UserId.eq(user))
        });
        let first = ordered(all, self.search).limit(NEAR as u64).into_query();
        let mut near = self.matching(None);
        QueryTrait::query(&mut near)
            .from_clear()
            .from_subquery(first, thread::Entity);
        near
    }

    fn passes(&self, filter: &Indexed) -> Condition {
        let exists = match self.backend {
            DbBackend::Postgres => {
                "EXISTS (SELECT 1 FROM thread_facts f WHERE f.thread_id = threads_meta.thread_id AND f.path = $1 AND f.value = $2)"
            }
            _ => {
                "EXISTS (SELECT 1 FROM thread_facts f WHERE f.thread_id = threads_meta.thread_id AND f.path = ? AND f.value = ?)"
            }
        };
        match filter {
            Indexed::Fact(path, value) => {
                let values: [Value; 2] = [path.as_str().into(), value.as_str().into()];
                Condition::all().add(Expr::cust_with_values(exists, values))
            }
            Indexed::Column(column, value) => Condition::all().add(column.eq(value.as_str())),
            Indexed::GraphItself(graph) => Condition::all()
                .add(thread::Column::AssistantId.eq(graph.as_str()))
                .add(thread::Column::RunAssistantId.is_null()),
            Indexed::Any(filters) => filters
                .iter()
                .fold(Condition::any(), |any, filter| any.add(self.passes(filter))),
        }
    }

    /// The threads that one of the filters lets through, if those are few and the search does not name its threads itself.
    async fn few(&self, db: &DatabaseConnection) -> Result<Option<Vec<String>>, StoreError> {
        let mut fewest: Option<Vec<String>> = None;
        if !self.search.ids.is_empty() {
            return Ok(None);
        }
        for filter in &self.indexed {
            let mut through = Vec::new();
            let parts = if let Indexed::Any(filters) = filter {
                filters.iter().collect()
            } else {
                vec![filter]
            };
            for part in parts {
                through.extend(self.through(part, db).await?);
            }
            if through.len() <= FEW
                && fewest
                    .as_ref()
                    .is_none_or(|fewest| through.len() < fewest.len())
            {
                let enough = through.len() <= VERY_FEW;
                fewest = Some(through);
                if enough {
                    break;
                }
            }
        }
        Ok(fewest)
    }

    /// The threads that a filter lets through, up to one more than few.
    async fn through(
        &self,
        filter: &Indexed,
        db: &DatabaseConnection,
    ) -> Result<Vec<String>, StoreError> {
        let most = FEW as u64 + 1;
        let ids = match filter {
            Indexed::Fact(path, value) => {
                let select = self
                    .of_fact(path, value)
                    .select_only()
                    .column(thread_fact::Column::ThreadId);
                select.limit(most).into_tuple().all(db).await
            }
            Indexed::Column(..) | Indexed::GraphItself(_) => {
                let select = thread::Entity::find()
                    .select_only()
                    .column(thread::Column::ThreadId)
                    .filter(self.passes(filter));
                let select = select.apply_if(self.user.as_deref(), |select, user| {
                    select.filter(thread::Column::UserId.eq(user))
                });
                select.limit(most).into_tuple().all(db).await
            }
            Indexed::Any(_) => Ok(Vec::new()),
        };
        read(ids)
    }

    fn of_fact(&self, path: &str, value: &str) -> Select<thread_fact::Entity> {
        let select = thread_fact::Entity::find()
            .filter(thread_fact::Column::Path.eq(path))
            .filter(thread_fact::Column::Value.eq(value));
        select.apply_if(self.user.as_deref(), |select, user| {
            select.filter(thread_fact::Column::UserId.eq(user))
        })
    }

    /// The facts to count, if one fact is all that is asked.
    fn only_fact(&self) -> Option<Select<thread_fact::Entity>> {
        match self.indexed.as_slice() {
            [Indexed::Fact(path, value)]
                if self.search.ids.is_empty() && self.search.status.is_none() =>
            {
                Some(self.of_fact(path, value))
            }
            _ => None,
        }
    }
}

/// Pinned ones first if asked, then the wanted column, then the id, greatest first.
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
        // Whole in one direction, as the index has it: a status is the same for very many.
        ThreadSort::Status => select
            .order_by(thread::Column::Status, order())
            .order_by(thread::Column::UpdatedAt, order())
            .order_by(thread::Column::ThreadId, order()),
    }
}

/// The page's query, to look at how a database answers it.
#[cfg(test)]
async fn statement(
    db: &DatabaseConnection,
    search: &ThreadSearch,
    owner: &Owner,
) -> Result<sea_orm::Statement, StoreError> {
    let filters = Filters::of(search, owner, db)?;
    Ok(
        page(filters.matching(filters.few(db).await?.as_deref()), search)
            .build(db.get_database_backend()),
    )
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
