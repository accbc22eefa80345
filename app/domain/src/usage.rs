//! What a user's runs add up to, and what models were asked beside them.

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use harness::messages::UsageMetadata;
use harness::runtime::actor_context::Owner;
use harness::runtime::memory::MemoryStores;
use harness::runtime::runs::store::{AsideLedger, RunListQuery, StoreError};
use harness::runtime::runs::{RunRecord, RunStatus};
use indexmap::IndexMap;

/// How many runs there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// In all.
    pub all: u64,
    /// Not over.
    pub active: u64,
    /// Ended by a fault or by their time limit.
    pub failed: u64,
}

/// What one model was used for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spent {
    /// The entry's name.
    pub model: String,
    /// In so many runs.
    pub runs: u64,
    /// The tokens of these runs, and of what the model was asked beside runs.
    pub usage: UsageMetadata,
}

/// A day on which something was done.
#[derive(Debug, Clone, PartialEq)]
pub struct Day {
    /// Which.
    pub date: NaiveDate,
    /// The runs that were accepted on it.
    pub runs: u64,
    /// What they spent.
    pub spent: Vec<Spent>,
}

/// The time that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From then on.
    pub since: DateTime<Utc>,
    /// Before then: runs that are to begin later are accepted already.
    pub until: DateTime<Utc>,
    /// How far the clock by which days begin is ahead of UTC.
    pub ahead: TimeDelta,
}

impl Window {
    /// The whole days up to the present one, which is one of them.
    pub fn of_days(days: u32, now: DateTime<Utc>, ahead: TimeDelta) -> Self {
        let today = (now + ahead).date_naive();
        let first = today - TimeDelta::days(i64::from(days.saturating_sub(1)));
        let begin = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc() - ahead;
        Self {
            since: begin(first),
            until: begin(today + TimeDelta::days(1)),
            ahead,
        }
    }

    /// Whether this moment is looked at.
    fn has(&self, at: DateTime<Utc>) -> bool {
        self.since <= at && at < self.until
    }

    /// The day on which this moment is.
    pub fn day_of(&self, at: DateTime<Utc>) -> NaiveDate {
        (at + self.ahead).date_naive()
    }
}

/// Adds up. A run counts from its end on, at the day on which it was accepted; it goes with its thread.
#[async_trait]
pub trait UsageStore: AsideLedger {
    /// How many runs there are.
    async fn counts(&self, owner: &Owner) -> Result<RunCounts, StoreError>;
    /// What each model was used for since ever, by its name.
    async fn spent(&self, owner: &Owner) -> Result<Vec<Spent>, StoreError>;
    /// The days on which something was done, oldest first.
    async fn days(&self, window: &Window, owner: &Owner) -> Result<Vec<Day>, StoreError>;
    /// A page of the runs of all threads, newest first.
    async fn runs(&self, query: &RunListQuery, owner: &Owner)
    -> Result<Vec<RunRecord>, StoreError>;
}

/// Whether a run ended badly.
fn failed(run: &RunRecord) -> bool {
    matches!(run.status, RunStatus::Error | RunStatus::Timeout)
}

/// In memory everything is looked through.
#[async_trait]
impl UsageStore for MemoryStores {
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

    async fn spent(&self, owner: &Owner) -> Result<Vec<Spent>, StoreError> {
        let mut spent = IndexMap::new();
        for (_, cost) in costs_of(self, owner)? {
            add(&mut spent, cost);
        }
        Ok(sorted(spent))
    }

    async fn days(&self, window: &Window, owner: &Owner) -> Result<Vec<Day>, StoreError> {
        let mut days: IndexMap<NaiveDate, (u64, IndexMap<String, Spent>)> = IndexMap::new();
        for run in runs_of(self, owner)?
            .iter()
            .filter(|run| window.has(run.created_at))
        {
            days.entry(window.day_of(run.created_at)).or_default().0 += 1;
        }
        for (at, cost) in costs_of(self, owner)?
            .into_iter()
            .filter(|(at, _)| window.has(*at))
        {
            add(&mut days.entry(window.day_of(at)).or_default().1, cost);
        }
        days.sort_unstable_keys();
        Ok(days
            .into_iter()
            .map(|(date, (runs, spent))| Day {
                date,
                runs,
                spent: sorted(spent),
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

fn runs_of(stores: &MemoryStores, owner: &Owner) -> Result<Vec<RunRecord>, StoreError> {
    let user = owner.resolve()?;
    Ok(stores
        .all_runs()
        .into_iter()
        .filter(|run| user.is_none() || run.user_id == user)
        .collect())
}

/// What each run and each question beside runs was spent on, and when.
fn costs_of(
    stores: &MemoryStores,
    owner: &Owner,
) -> Result<Vec<(DateTime<Utc>, Spent)>, StoreError> {
    let user = owner.resolve()?;
    let mut costs = Vec::new();
    for run in runs_of(stores, owner)?
        .into_iter()
        .filter(|run| run.status.is_terminal())
    {
        let spent = |(model, usage): (&str, UsageMetadata)| Spent {
            model: model.to_owned(),
            runs: 1,
            usage,
        };
        costs.extend(
            run.completion
                .by_model()
                .map(|row| (run.created_at, spent(row))),
        );
    }
    let asides = stores
        .asides()
        .into_iter()
        .filter(|aside| user.is_none() || aside.user_id == user);
    costs.extend(asides.map(|aside| {
        (
            aside.created_at,
            Spent {
                model: aside.model,
                runs: 0,
                usage: aside.usage,
            },
        )
    }));
    Ok(costs)
}

fn add(spent: &mut IndexMap<String, Spent>, Spent { model, runs, usage }: Spent) {
    let held = spent.entry(model.clone()).or_insert_with(|| Spent {
        model,
        ..Spent::default()
    });
    held.runs += runs;
    held.usage = held.usage.and(&usage);
}

fn sorted(mut spent: IndexMap<String, Spent>) -> Vec<Spent> {
    spent.sort_unstable_keys();
    spent.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_begins_with_a_day_by_the_clock_of_its_zone() {
        let now = DateTime::parse_from_rfc3339("2026-11-22T23:30:00Z")
            .unwrap()
            .to_utc();
        let since = |days, minutes| {
            Window::of_days(days, now, TimeDelta::minutes(minutes))
                .since
                .to_rfc3339()
        };
        assert_eq!(since(1, 0), "2026-11-22T00:00:00+00:00");
        assert_eq!(since(1, 60), "2026-11-22T23:00:00+00:00");
        assert_eq!(since(2, -480), "2026-11-21T08:00:00+00:00");
    }

    async fn memory() -> crate::testkit::usage::UsageStores {
        let stores = MemoryStores::new();
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
