//! Usage statistics of a user: runs, and model tokens of runs and of auxiliary model calls.

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use deerflow_core::actor_context::Owner;
use deerflow_core::messages::UsageMetadata;
use deerflow_runtime::in_memory::InMemoryStores;
use deerflow_runtime::runs::store::{RunListQuery, StoreError, UsageLedger};
use deerflow_runtime::runs::{RunRecord, RunStatus};
use indexmap::IndexMap;

/// Number of runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// All runs.
    pub all: u64,
    /// Unfinished runs.
    pub active: u64,
    /// Runs that ended with an error or a timeout.
    pub failed: u64,
}

/// Usage of one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelUsage {
    /// Name of the model entry.
    pub model: String,
    /// Number of runs that used it.
    pub runs: u64,
    /// Tokens of these runs and of auxiliary calls.
    pub usage: UsageMetadata,
}

/// Usage on one day.
#[derive(Debug, Clone, PartialEq)]
pub struct DailyUsage {
    /// Calendar day in the time zone of the query.
    pub date: NaiveDate,
    /// Number of runs accepted on that day.
    pub runs: u64,
    /// Usage per model.
    pub model_usage: Vec<ModelUsage>,
}

/// Time range of a usage query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageWindow {
    /// Start, inclusive.
    pub since: DateTime<Utc>,
    /// End, exclusive; excludes accepted runs that start later.
    pub until: DateTime<Utc>,
    /// Offset from UTC of the time zone that days are counted in.
    pub utc_offset: TimeDelta,
}

impl UsageWindow {
    /// Returns the range of the last `days` calendar days, including today.
    pub fn last_days(days: u32, now: DateTime<Utc>, utc_offset: TimeDelta) -> Self {
        let today = (now + utc_offset).date_naive();
        let first = today - TimeDelta::days(i64::from(days.saturating_sub(1)));
        let begin = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc() - utc_offset;
        Self {
            since: begin(first),
            until: begin(today + TimeDelta::days(1)),
            utc_offset,
        }
    }

    /// Reports whether a time is within the range.
    fn contains(&self, at: DateTime<Utc>) -> bool {
        self.since <= at && at < self.until
    }

    /// Returns the calendar day of a time.
    pub fn day_of(&self, at: DateTime<Utc>) -> NaiveDate {
        (at + self.utc_offset).date_naive()
    }
}

/// Aggregates usage. A run counts once it has ended, on the day it was accepted; deleting its
/// thread removes it.
#[async_trait]
pub trait UsageStore: UsageLedger {
    /// Number of runs.
    async fn counts(&self, owner: &Owner) -> Result<RunCounts, StoreError>;
    /// Returns the total usage per model, ordered by model name.
    async fn model_usage(&self, owner: &Owner) -> Result<Vec<ModelUsage>, StoreError>;
    /// Returns the days with any usage, oldest first.
    async fn days(
        &self,
        window: &UsageWindow,
        owner: &Owner,
    ) -> Result<Vec<DailyUsage>, StoreError>;
    /// Returns a page of the runs of all threads, newest first.
    async fn runs(&self, query: &RunListQuery, owner: &Owner)
    -> Result<Vec<RunRecord>, StoreError>;
}

/// Reports whether a run ended with an error or a timeout.
fn failed(run: &RunRecord) -> bool {
    matches!(run.status, RunStatus::Error | RunStatus::Timeout)
}

/// Scans all runs and auxiliary calls.
#[async_trait]
impl UsageStore for InMemoryStores {
    async fn counts(&self, owner: &Owner) -> Result<RunCounts, StoreError> {
        let runs = runs_of(self, owner)?;
        let count =
            |which: fn(&RunRecord) -> bool| runs.iter().filter(|run| which(run)).count() as u64;
        Ok(RunCounts {
            all: runs.len() as u64,
            active: count(|run| !run.status.is_terminal()),
            failed: count(failed),
        })
    }

    async fn model_usage(&self, owner: &Owner) -> Result<Vec<ModelUsage>, StoreError> {
        let mut model_usage = IndexMap::new();
        for (_, cost) in usage_of(self, owner)? {
            add(&mut model_usage, cost);
        }
        Ok(sorted(model_usage))
    }

    async fn days(
        &self,
        window: &UsageWindow,
        owner: &Owner,
    ) -> Result<Vec<DailyUsage>, StoreError> {
        let mut days: IndexMap<NaiveDate, (u64, IndexMap<String, ModelUsage>)> = IndexMap::new();
        for run in runs_of(self, owner)?
            .iter()
            .filter(|run| window.contains(run.created_at))
        {
            days.entry(window.day_of(run.created_at)).or_default().0 += 1;
        }
        for (at, cost) in usage_of(self, owner)?
            .into_iter()
            .filter(|(at, _)| window.contains(*at))
        {
            add(&mut days.entry(window.day_of(at)).or_default().1, cost);
        }
        days.sort_unstable_keys();
        Ok(days
            .into_iter()
            .map(|(date, (runs, model_usage))| DailyUsage {
                date,
                runs,
                model_usage: sorted(model_usage),
            })
            .collect())
    }

    async fn runs(
        &self,
        query: &RunListQuery,
        owner: &Owner,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let mut runs = runs_of(self, owner)?;
        runs.retain(|run| {
            query
                .status
                .is_none_or(|status| run.status.wire() == status.wire())
        });
        runs.sort_by(|one, other| {
            (other.created_at, &other.run_id).cmp(&(one.created_at, &one.run_id))
        });
        Ok(runs
            .into_iter()
            .skip(query.offset)
            .take(query.limit)
            .collect())
    }
}

fn runs_of(stores: &InMemoryStores, owner: &Owner) -> Result<Vec<RunRecord>, StoreError> {
    let user = owner.resolve()?;
    Ok(stores
        .all_runs()
        .into_iter()
        .filter(|run| user.is_none() || run.user_id == user)
        .collect())
}

/// Returns the usage of each finished run and auxiliary call, with its time.
fn usage_of(
    stores: &InMemoryStores,
    owner: &Owner,
) -> Result<Vec<(DateTime<Utc>, ModelUsage)>, StoreError> {
    let user = owner.resolve()?;
    let mut costs = Vec::new();
    for run in runs_of(stores, owner)?
        .into_iter()
        .filter(|run| run.status.is_terminal())
    {
        let model_usage = |(model, usage): (&str, UsageMetadata)| ModelUsage {
            model: model.to_owned(),
            runs: 1,
            usage,
        };
        costs.extend(
            run.completion
                .by_model()
                .map(|row| (run.created_at, model_usage(row))),
        );
    }
    let asides = stores
        .asides()
        .into_iter()
        .filter(|aside| user.is_none() || aside.user_id == user);
    costs.extend(asides.map(|aside| {
        (
            aside.created_at,
            ModelUsage {
                model: aside.model,
                runs: 0,
                usage: aside.usage,
            },
        )
    }));
    Ok(costs)
}

fn add(
    model_usage: &mut IndexMap<String, ModelUsage>,
    ModelUsage { model, runs, usage }: ModelUsage,
) {
    let existing = model_usage
        .entry(model.clone())
        .or_insert_with(|| ModelUsage {
            model,
            ..ModelUsage::default()
        });
    existing.runs += runs;
    existing.usage = existing.usage.and(&usage);
}

fn sorted(mut model_usage: IndexMap<String, ModelUsage>) -> Vec<ModelUsage> {
    model_usage.sort_unstable_keys();
    model_usage.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_starts_at_midnight_in_its_zone() {
        let now = DateTime::parse_from_rfc3339("2026-11-22T23:30:00Z")
            .unwrap()
            .to_utc();
        let since = |days, minutes| {
            UsageWindow::last_days(days, now, TimeDelta::minutes(minutes))
                .since
                .to_rfc3339()
        };
        assert_eq!(since(1, 0), "2026-11-22T00:00:00+00:00");
        assert_eq!(since(1, 60), "2026-11-22T23:00:00+00:00");
        assert_eq!(since(2, -480), "2026-11-21T08:00:00+00:00");
    }

    async fn memory() -> crate::testkit::usage::UsageStores {
        let stores = InMemoryStores::new();
        crate::testkit::usage::UsageStores {
            usage: std::sync::Arc::new(stores.clone()),
            create: std::sync::Arc::new(stores.clone()),
            commit: std::sync::Arc::new(stores.clone()),
            delete: std::sync::Arc::new(stores),
            keep: std::sync::Arc::new(()),
        }
    }

    crate::usage_store_suite!([#[tokio::test]] memory);
}
