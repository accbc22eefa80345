//! Filters of a thread search, and the choice of the one to start from.

use deerflow_core::actor_context::Owner;
use deerflow_domain::containment::{Fact, facts};
use deerflow_domain::threads::{ThreadSearch, ThreadSort};
use deerflow_runtime::runs::ThreadStatus;
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::{Expr, ExprTrait as _, Func};
use sea_orm::{
    ColumnTrait, Condition, DatabaseConnection, DbBackend, EntityTrait, QueryFilter, QuerySelect,
    QueryTrait, Select, Value,
};
use serde_json::Map;

use super::order::ordered;
use crate::db::entity::{plain, short_title, thread, thread_fact};
use crate::db::error::read;
use crate::db::fact_index::stored_fact;

/// Maximum number of matches of a filter whose threads a search starts from.
const MAX_NARROW: usize = 2_000;
/// If a filter matches at most this many threads, the remaining filters are not queried.
const NARROW_ENOUGH: usize = 100;
/// Number of threads at the head of the order that are searched for a page first.
const HEAD_THREADS: usize = 1_000;

/// A filter that an index can answer.
enum Indexed {
    /// A fact of the metadata.
    Fact(String, String),
    /// A value of a column.
    Column(thread::Column, String),
    /// The thread's first run was of this graph and named no assistant.
    GraphItself(String),
    /// At least one of these.
    Any(Vec<Indexed>),
}

/// All filters of a search.
pub(super) struct Filters<'a> {
    search: &'a ThreadSearch,
    user: Option<String>,
    backend: DbBackend,
    indexed: Vec<Indexed>,
}

impl<'a> Filters<'a> {
    pub(super) fn of(
        search: &'a ThreadSearch,
        owner: &Owner,
        db: &DatabaseConnection,
    ) -> Result<Self, StoreError> {
        let fact = |fact: Fact| {
            let (path, value) = stored_fact(fact);
            Indexed::Fact(path, value)
        };
        let mut indexed: Vec<Indexed> = facts(&search.metadata, usize::MAX)
            .into_iter()
            .map(fact)
            .collect();
        if let Some(graph) = &search.graph {
            let metadata_facts = facts(
                &Map::from_iter([("graph_id".to_owned(), graph.as_str().into())]),
                usize::MAX,
            )
            .into_iter()
            .map(fact);
            indexed.push(Indexed::Any(
                metadata_facts
                    .chain([Indexed::Column(thread::Column::AssistantId, plain(graph))])
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
            // The title of a state is also in the thread's row, so few states are read. The state
            // itself is compared afterwards.
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

    /// Builds the query for matching rows, without order and limits. If `few` is known, only among
    /// those ids.
    pub(super) fn matching(&self, few: Option<&[String]>) -> Select<thread::Entity> {
        let mut select = thread::Entity::find();
        let ids: Option<Vec<&str>> = match few {
            Some(few) => Some(few.iter().map(String::as_str).collect()),
            None if self.search.ids.is_empty() => None,
            None => Some(self.search.ids.iter().map(|id| id.as_str()).collect()),
        };
        select = match (ids, &self.user) {
            // Not by the bare column: the planner would prefer the index by user, which contains
            // all of the user's threads.
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

    /// Returns `true` if an unselective search for one of the first pages should look among the
    /// first threads of the order. Only Postgres needs this: it prefers to collect and sort all
    /// matches, while SQLite walks the index of the order.
    pub(super) fn may_scan_head(&self) -> bool {
        let Self {
            search,
            backend,
            indexed,
            ..
        } = self;
        *backend == DbBackend::Postgres
            && !indexed.is_empty()
            && search.ids.is_empty()
            && search.offset + search.limit <= HEAD_THREADS / 10
    }

    /// Builds the query for matching rows among the first threads of the order. A subquery replaces
    /// the table, so that the index is walked once and only until the page is full.
    pub(super) fn head_of_order(&self) -> Select<thread::Entity> {
        let all = thread::Entity::find().apply_if(self.user.as_deref(), |all, user| {
            all.filter(thread::Column::UserId.eq(user))
        });
        let first = ordered(all, self.search)
            .limit(HEAD_THREADS as u64)
            .into_query();
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

    /// Returns the ids that the most selective filter matches, if they are few and the search does
    /// not name ids itself.
    pub(super) async fn narrowest(
        &self,
        db: &DatabaseConnection,
    ) -> Result<Option<Vec<String>>, StoreError> {
        let mut fewest: Option<Vec<String>> = None;
        if !self.search.ids.is_empty() {
            return Ok(None);
        }
        if let Some(status) = self.status_out_of_order() {
            let status = Indexed::Column(thread::Column::Status, status.as_str().to_owned());
            let with_status = self.matches_of(&status, NARROW_ENOUGH, db).await?;
            if with_status.len() <= NARROW_ENOUGH {
                return Ok(Some(with_status));
            }
        }
        for filter in &self.indexed {
            let mut through = Vec::new();
            let parts = if let Indexed::Any(filters) = filter {
                filters.iter().collect()
            } else {
                vec![filter]
            };
            for part in parts {
                through.extend(self.matches_of(part, MAX_NARROW, db).await?);
            }
            if through.len() <= MAX_NARROW
                && fewest
                    .as_ref()
                    .is_none_or(|fewest| through.len() < fewest.len())
            {
                let enough = through.len() <= NARROW_ENOUGH;
                fewest = Some(through);
                if enough {
                    break;
                }
            }
        }
        Ok(fewest)
    }

    /// Returns the status to search for on SQLite if its index is not in the order of the search.
    /// SQLite would then walk the index of that order, through all threads if few have the status.
    fn status_out_of_order(&self) -> Option<ThreadStatus> {
        let search = self.search;
        let is_in_order = !search.pinned_first
            && matches!(search.sort_by, ThreadSort::Status | ThreadSort::UpdatedAt);
        let is_walked = self.backend == DbBackend::Sqlite && !is_in_order;
        search.status.filter(|_| is_walked)
    }

    /// Returns the ids that a filter matches, up to one more than `max`.
    async fn matches_of(
        &self,
        filter: &Indexed,
        max: usize,
        db: &DatabaseConnection,
    ) -> Result<Vec<String>, StoreError> {
        let limit = max as u64 + 1;
        let ids = match filter {
            Indexed::Fact(path, value) => {
                let select = self
                    .of_fact(path, value)
                    .select_only()
                    .column(thread_fact::Column::ThreadId);
                select.limit(limit).into_tuple().all(db).await
            }
            Indexed::Column(..) | Indexed::GraphItself(_) => {
                let select = thread::Entity::find()
                    .select_only()
                    .column(thread::Column::ThreadId)
                    .filter(self.passes(filter));
                let select = select.apply_if(self.user.as_deref(), |select, user| {
                    select.filter(thread::Column::UserId.eq(user))
                });
                select.limit(limit).into_tuple().all(db).await
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

    /// Returns the facts to count, if one fact is the only filter.
    pub(super) fn only_fact(&self) -> Option<Select<thread_fact::Entity>> {
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
