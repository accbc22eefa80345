//! Contract of cron search.

use deerflow_runtime::testkit::{USER, at, object, thread};
use serde_json::json;

use super::{CronStores, create, cron, found};
use crate::crons::{Cron, CronSearch, CronSort};

/// Filters, order, pages and counts are consistent.
pub async fn cron_search_applies_all_filters(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    create(
        &stores,
        Cron {
            metadata: object(json!({"m": {"x": 1, "y": 2}})),
            next_run_date: Some(at(300)),
            ..cron(1)
        },
    )
    .await;
    create(
        &stores,
        Cron {
            assistant_id: "a2".to_owned(),
            next_run_date: None,
            ..cron(2)
        },
    )
    .await;
    create(
        &stores,
        Cron {
            enabled: false,
            metadata: object(json!({"m": {"x": 1}, "k": null})),
            ..cron(3)
        },
    )
    .await;
    let all = CronSearch::default;
    let all_of = || CronSearch { limit: 10, ..all() };
    assert_eq!(found(&stores, all()).await, [3, 2, 1]);
    assert_eq!(
        found(
            &stores,
            CronSearch {
                ascending: true,
                offset: 1,
                ..all()
            }
        )
        .await,
        [2, 3]
    );
    assert_eq!(
        found(
            &stores,
            CronSearch {
                sort_by: CronSort::NextRunDate,
                ..all()
            }
        )
        .await,
        [1, 3, 2]
    );
    assert_eq!(
        found(
            &stores,
            CronSearch {
                assistant_id: Some("a2".to_owned()),
                ..all()
            }
        )
        .await,
        [2]
    );
    assert_eq!(
        found(
            &stores,
            CronSearch {
                enabled: Some(true),
                ..all()
            }
        )
        .await,
        [2, 1]
    );
    assert_eq!(
        found(
            &stores,
            CronSearch {
                metadata: object(json!({"m": {"x": 1}})),
                ..all()
            }
        )
        .await,
        [3, 1]
    );
    assert_eq!(
        found(
            &stores,
            CronSearch {
                metadata: object(json!({"k": null})),
                ..all()
            }
        )
        .await,
        [3]
    );
    assert_eq!(
        found(
            &stores,
            CronSearch {
                thread_id: Some(thread("t1")),
                ..all()
            }
        )
        .await,
        [0_u128; 0]
    );
    for sort_by in [
        CronSort::UpdatedAt,
        CronSort::CronId,
        CronSort::AssistantId,
        CronSort::ThreadId,
        CronSort::EndTime,
    ] {
        for ascending in [false, true] {
            let search = CronSearch {
                sort_by,
                ascending,
                limit: 10,
                ..all()
            };
            let everything = stores.crons.search(USER, &all_of()).await.expect("read");
            assert_eq!(
                stores.crons.search(USER, &search).await,
                Ok(search.apply(everything)),
                "{sort_by:?} {ascending}"
            );
        }
    }
    let described = CronSearch {
        metadata: object(json!({"m": {"x": 1}})),
        limit: 1,
        offset: 1,
        ..all()
    };
    assert_eq!(
        stores
            .crons
            .search(USER, &described)
            .await
            .map(|found| found.len()),
        Ok(1)
    );
    assert_eq!(stores.crons.count(USER, &described).await, Ok(2));
    let page = CronSearch { limit: 1, ..all() };
    assert_eq!(stores.crons.count(USER, &page).await, Ok(3));
}
