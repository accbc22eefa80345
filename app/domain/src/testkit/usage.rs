//! Contract suite of usage statistics.

use std::sync::Arc;

use chrono::TimeDelta;
use deerflow_core::actor_context::Owner;
use deerflow_core::messages::UsageMetadata;
use deerflow_runtime::runs::store::{
    AuxiliaryUsage, NewRun, RunCommit, RunCommitStore, RunCreateStore, RunDeleteStore, RunEnd,
    RunListQuery,
};
use deerflow_runtime::runs::{RunCompletionData, RunStatus};
use deerflow_runtime::testkit::{Keep, USER, at, commit_of, end_in, new_run, object, run, thread};
use serde_json::json;

use super::{ann, bob};
use crate::usage::{ModelUsage, RunCounts, UsageStore, UsageWindow};

/// Generates one test per requirement of usage statistics.
#[macro_export]
macro_rules! usage_store_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::usage]
            runs_are_counted_by_status
            model_usage_sums_runs_and_auxiliary_calls
            days_start_in_requested_time_zone
            run_page_covers_all_threads
            usage_is_deleted_with_thread
            implausible_token_count_hides_no_other
        }
    };
}

/// Ports that usage tests need.
#[derive(Debug, Clone)]
pub struct UsageStores {
    /// Usage statistics.
    pub usage: Arc<dyn UsageStore>,
    /// Admission of runs.
    pub create: Arc<dyn RunCreateStore>,
    /// Commits of runs.
    pub commit: Arc<dyn RunCommitStore>,
    /// Deletion of runs.
    pub delete: Arc<dyn RunDeleteStore>,
    /// Resources that must live as long as the stores.
    pub keep: Arc<dyn Keep>,
}

impl UsageStores {
    /// Stores a finished run of a user with input, output and cached tokens of a model.
    async fn ended(&self, new: NewRun, status: RunStatus, model: &str, tokens: [u64; 3]) {
        let admitted = self.create.admit(new).await.expect("admitted").run;
        let [input, output, cached] = tokens;
        let total_tokens = input.saturating_add(output);
        let row = json!({
            "input_tokens": input, "output_tokens": output, "total_tokens": total_tokens, "cache_read_tokens": cached,
        });
        let completion = RunCompletionData {
            total_tokens,
            token_usage_by_model: object(json!({ model: row })),
            first_human_message: Some("a \u{0} in it".to_owned()),
            ..RunCompletionData::default()
        };
        let end = RunCommit {
            end: Some(RunEnd {
                completion,
                ..end_in(status)
            }),
            ..commit_of(&admitted)
        };
        self.commit.commit(end.into()).await.expect("ended");
    }

    async fn model_usage(&self, owner: &Owner) -> Vec<(String, u64, [u64; 4])> {
        self.usage
            .model_usage(owner)
            .await
            .expect("read")
            .iter()
            .map(counted)
            .collect()
    }
}

fn counted(model_usage: &ModelUsage) -> (String, u64, [u64; 4]) {
    let usage = &model_usage.usage;
    (
        model_usage.model.clone(),
        model_usage.runs,
        [
            usage.input_tokens,
            usage.output_tokens,
            usage.total(),
            usage.cache_read(),
        ],
    )
}

fn aside(id: &str, user: &str, model: &str, seconds: i64) -> AuxiliaryUsage {
    let usage = UsageMetadata {
        input_tokens: 3,
        output_tokens: 4,
        total_tokens: 7,
        ..UsageMetadata::default()
    };
    AuxiliaryUsage {
        id: id.to_owned(),
        user_id: Some(user.to_owned()),
        model: model.to_owned(),
        usage,
        created_at: at(seconds),
    }
}

fn of_bob(id: &str, on: &str) -> NewRun {
    NewRun {
        user_id: Some("bob".to_owned()),
        ..new_run(id, on)
    }
}

/// Counts are per user; a queued run counts as active, and a cancelled run does not count as
/// failed.
pub async fn runs_are_counted_by_status(open: impl AsyncFn() -> UsageStores) {
    let stores = open().await;
    assert_eq!(stores.usage.counts(&ann()).await, Ok(RunCounts::default()));
    for (id, status) in [("r1", RunStatus::Error), ("r2", RunStatus::Interrupted)] {
        stores.ended(new_run(id, id), status, "a", [1, 1, 0]).await;
    }
    stores
        .create
        .admit(new_run("r3", "r3"))
        .await
        .expect("admitted");
    stores
        .create
        .admit(of_bob("r4", "r4"))
        .await
        .expect("admitted");
    assert_eq!(
        stores.usage.counts(&ann()).await,
        Ok(RunCounts {
            all: 3,
            active: 1,
            failed: 1
        })
    );
    assert_eq!(
        stores.usage.counts(&Owner::None).await,
        Ok(RunCounts {
            all: 4,
            active: 2,
            failed: 1
        })
    );
}

/// An auxiliary call is recorded once per id, and counts as no run.
pub async fn model_usage_sums_runs_and_auxiliary_calls(open: impl AsyncFn() -> UsageStores) {
    let stores = open().await;
    stores
        .ended(new_run("r1", "t1"), RunStatus::Error, "b", [10, 5, 4])
        .await;
    stores
        .ended(new_run("r2", "t1"), RunStatus::Error, "b", [1, 1, 0])
        .await;
    stores
        .ended(of_bob("r3", "t3"), RunStatus::Error, "b", [100, 100, 0])
        .await;
    for _ in 0..2 {
        stores
            .usage
            .book(vec![
                aside("x", USER, "a", 0),
                aside("y", USER, "b", 0),
                aside("z", "bob", "b", 0),
            ])
            .await
            .expect("booked");
    }
    assert_eq!(
        stores.model_usage(&ann()).await,
        [
            ("a".to_owned(), 0, [3, 4, 7, 0]),
            ("b".to_owned(), 2, [14, 10, 24, 4])
        ]
    );
    assert_eq!(
        stores.model_usage(&bob()).await,
        [("b".to_owned(), 1, [103, 104, 207, 0])]
    );
}

/// [`at`] starts at 22:13:20 UTC.
pub async fn days_start_in_requested_time_zone(open: impl AsyncFn() -> UsageStores) {
    let stores = open().await;
    // The last run starts after the end of the window.
    for (id, hours) in [("r1", 0), ("r2", 2), ("r3", -48), ("r4", 48)] {
        let created_at = at(0) + TimeDelta::hours(hours);
        stores
            .ended(
                NewRun {
                    created_at,
                    at: created_at,
                    ..new_run(id, id)
                },
                RunStatus::Error,
                "a",
                [1, 2, 0],
            )
            .await;
    }
    stores
        .usage
        .book(vec![aside("x", USER, "a", 0)])
        .await
        .expect("booked");
    let query = async |utc_offset: TimeDelta| {
        let window = UsageWindow::last_days(2, at(0) + TimeDelta::hours(3), utc_offset);
        let days = stores.usage.days(&window, &ann()).await.expect("read");
        let day = |day: &crate::usage::DailyUsage| {
            (
                day.date.to_string(),
                day.runs,
                day.model_usage
                    .iter()
                    .map(|model_usage| model_usage.usage.total())
                    .sum::<u64>(),
            )
        };
        days.iter().map(day).collect::<Vec<_>>()
    };
    assert_eq!(
        query(TimeDelta::zero()).await,
        [
            ("2023-11-14".to_owned(), 1, 10),
            ("2023-11-15".to_owned(), 1, 3)
        ]
    );
    assert_eq!(
        query(TimeDelta::hours(2)).await,
        [("2023-11-15".to_owned(), 2, 13)]
    );
    assert_eq!(
        query(TimeDelta::hours(-4)).await,
        [("2023-11-14".to_owned(), 2, 13)]
    );
}

/// Lists newest first.
pub async fn run_page_covers_all_threads(open: impl AsyncFn() -> UsageStores) {
    let stores = open().await;
    for n in 0..4 {
        let name = format!("r{n}");
        stores
            .ended(
                NewRun {
                    created_at: at(n),
                    at: at(n),
                    ..new_run(&name, &name)
                },
                RunStatus::Error,
                "a",
                [1, 1, 0],
            )
            .await;
    }
    stores
        .create
        .admit(NewRun {
            created_at: at(9),
            at: at(9),
            ..new_run("r9", "t9")
        })
        .await
        .expect("admitted");
    let page = async |query: RunListQuery, owner: Owner| {
        let runs = stores.usage.runs(&query, &owner).await.expect("read");
        runs.iter()
            .map(|run| run.run_id.to_string())
            .collect::<Vec<_>>()
    };
    let all = RunListQuery {
        limit: 9,
        offset: 0,
        status: None,
    };
    assert_eq!(page(all, ann()).await, ["r9", "r3", "r2", "r1", "r0"]);
    assert_eq!(
        page(
            RunListQuery {
                limit: 2,
                offset: 1,
                status: None
            },
            ann()
        )
        .await,
        ["r3", "r2"]
    );
    assert_eq!(
        page(
            RunListQuery {
                limit: 9,
                offset: 0,
                status: Some(RunStatus::Pending)
            },
            ann()
        )
        .await,
        ["r9"]
    );
    assert_eq!(
        page(
            RunListQuery {
                limit: 9,
                offset: 0,
                status: Some(RunStatus::Error)
            },
            bob()
        )
        .await,
        [""; 0]
    );
}

/// An auxiliary call belongs to no thread, so it remains.
pub async fn usage_is_deleted_with_thread(open: impl AsyncFn() -> UsageStores) {
    let stores = open().await;
    for (id, on) in [("r1", "t1"), ("r2", "t1"), ("r3", "t2")] {
        stores
            .ended(new_run(id, on), RunStatus::Error, "a", [1, 1, 0])
            .await;
    }
    stores
        .usage
        .book(vec![aside("x", USER, "a", 0)])
        .await
        .expect("booked");
    assert!(stores.delete.delete(&run("r1")).await.expect("deleted"));
    assert_eq!(
        stores.model_usage(&ann()).await,
        [("a".to_owned(), 2, [5, 6, 11, 0])]
    );
    stores
        .delete
        .delete_thread(&thread("t1"))
        .await
        .expect("deleted");
    stores
        .delete
        .delete_thread(&thread("t2"))
        .await
        .expect("deleted");
    assert_eq!(
        stores.model_usage(&ann()).await,
        [("a".to_owned(), 0, [3, 4, 7, 0])]
    );
}

/// Providers may report any number.
pub async fn implausible_token_count_hides_no_other(open: impl AsyncFn() -> UsageStores) {
    let stores = open().await;
    for id in ["r1", "r2", "r3"] {
        stores
            .ended(
                new_run(id, id),
                RunStatus::Error,
                "wild",
                [u64::MAX, u64::MAX, u64::MAX],
            )
            .await;
    }
    stores
        .ended(
            new_run("r4", "r4"),
            RunStatus::Error,
            "tame \u{0}",
            [1, 1, 0],
        )
        .await;
    let model_usage = stores.model_usage(&ann()).await;
    assert_eq!(
        model_usage
            .iter()
            .map(|(_, runs, _)| *runs)
            .collect::<Vec<_>>(),
        [1, 3]
    );
    assert_eq!(model_usage[0].2, [1, 1, 2, 0]);
}
