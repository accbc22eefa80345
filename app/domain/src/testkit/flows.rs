//! Contract suite of flow stores.

mod content;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use deerflow_runtime::testkit::{Keep, USER, at, at_once};

use super::ThreadStores;
use crate::flows::{
    DeletedFlow, Expected, FlowAsset, FlowContent, FlowPage, FlowQuota, FlowRecord, FlowStore,
    FlowSummary, FlowWrite, SaveError,
};

pub use content::{
    content_of_removed_version_is_swept_after_its_time,
    content_pinned_by_a_thread_outlives_its_flow, content_without_version_stays_until_a_sweep,
};

/// Generates one test per requirement of flow stores.
#[macro_export]
macro_rules! flow_store_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::flows]
            saved_flow_is_returned_unchanged
            flow_of_other_user_is_hidden
            write_requires_the_expected_state
            concurrent_flow_changes_have_one_winner
            equal_content_adds_no_version
            oldest_versions_are_removed_beyond_the_quota
            concurrent_creates_do_not_exceed_the_quota
            batch_of_writes_is_stored_completely_or_not_at_all
            flows_are_listed_by_slug_in_pages
            delete_requires_the_expected_hash
            content_of_removed_version_is_swept_after_its_time
            content_without_version_stays_until_a_sweep
            content_pinned_by_a_thread_outlives_its_flow
        }
    };
}

/// Flow store, opened fresh for each test.
#[derive(Debug, Clone)]
pub struct FlowStores {
    /// Store under test.
    pub flows: Arc<dyn FlowStore>,
    /// Threads and runs over the same database, if there are any.
    pub threads: Option<ThreadStores>,
    /// Resources that must live as long as the store.
    pub keep: Arc<dyn Keep>,
}

const QUOTA: FlowQuota = FlowQuota {
    flows: 10,
    versions: 10,
};
const ALL: FlowPage = FlowPage {
    limit: 100,
    offset: 0,
};

fn content(text: &str) -> FlowContent {
    FlowContent::new(text, vec![])
}

fn summary(name: &str) -> FlowSummary {
    FlowSummary {
        name: name.to_owned(),
        description: Some("ü \u{0} 😀".to_owned()),
        schema_version: "2.0".to_owned(),
        node_count: 3,
        agent_count: 1,
    }
}

fn write(slug: &str, text: &str, expected: Expected) -> FlowWrite {
    FlowWrite {
        slug: slug.to_owned(),
        expected,
        content: content(text),
        summary: summary(text),
    }
}

async fn save(
    stores: &FlowStores,
    write: FlowWrite,
    at: DateTime<Utc>,
) -> Result<FlowRecord, SaveError> {
    let mut saved = stores.flows.save(USER, vec![write], QUOTA, at).await?;
    Ok(saved.remove(0))
}

async fn saved(stores: &FlowStores, write: FlowWrite, at: DateTime<Utc>) -> FlowRecord {
    save(stores, write, at).await.expect("saved")
}

async fn slugs(stores: &FlowStores, user: &str, page: FlowPage) -> Vec<String> {
    let flows = stores.flows.list(user, page).await.expect("read");
    flows.into_iter().map(|flow| flow.slug).collect()
}

async fn numbers(stores: &FlowStores, slug: &str) -> Option<Vec<u32>> {
    let versions = stores.flows.versions(USER, slug).await.expect("read");
    versions.map(|versions| versions.iter().map(|version| version.version).collect())
}

/// Text, assets, hash, summary and times are returned unchanged, for each version.
pub async fn saved_flow_is_returned_unchanged(open: impl AsyncFn() -> FlowStores) {
    let stores = open().await;
    let asset = FlowAsset {
        path: ".agents-flow/agents/a.agent.md".to_owned(),
        text: "ü \u{0} 😀\r\n".to_owned(),
    };
    let first = FlowContent::new("\u{feff}meta: {}\r\n# end ", vec![asset]);
    let new = FlowWrite {
        content: first.clone(),
        ..write("f", "one", Expected::Absent)
    };
    let created = saved(&stores, new, at(1)).await;
    let expected = FlowRecord {
        slug: "f".to_owned(),
        version: 1,
        content_hash: first.hash(),
        summary: summary("one"),
        created_at: at(1),
        updated_at: at(1),
    };
    assert_eq!(created, expected);
    assert_eq!(
        stores.flows.find(USER, "f").await,
        Ok(Some(expected.clone()))
    );
    let changed = saved(&stores, write("f", "two", Expected::Present), at(2)).await;
    let second = FlowRecord {
        version: 2,
        content_hash: content("two").hash(),
        summary: summary("two"),
        updated_at: at(2),
        ..expected
    };
    assert_eq!(changed, second);
    let read = async |number| {
        let flow = stores.flows.get(USER, "f", number).await.expect("read");
        flow.map(|flow| (flow.version.version, flow.content, flow.created_at))
    };
    assert_eq!(read(None).await, Some((2, content("two"), at(1))));
    assert_eq!(read(Some(1)).await, Some((1, first, at(1))));
    assert_eq!(read(Some(3)).await, None);
    assert_eq!(numbers(&stores, "f").await, Some(vec![2, 1]));
    assert_eq!(stores.flows.get(USER, "g", None).await, Ok(None));
}

/// Neither reads, lists, changes nor deletes reach it, and its slug is free for others.
pub async fn flow_of_other_user_is_hidden(open: impl AsyncFn() -> FlowStores) {
    let stores = open().await;
    let flows = &stores.flows;
    let mine = saved(&stores, write("f", "one", Expected::Absent), at(1)).await;
    assert_eq!(flows.get("bob", "f", None).await, Ok(None));
    assert_eq!(flows.find("bob", "f").await, Ok(None));
    assert_eq!(flows.versions("bob", "f").await, Ok(None));
    assert_eq!(flows.content("bob", &mine.content_hash).await, Ok(None));
    assert_eq!(flows.list("bob", ALL).await, Ok(vec![]));
    assert_eq!(flows.count("bob").await, Ok(0));
    let change = vec![write("f", "two", Expected::Present)];
    assert_eq!(
        flows.save("bob", change, QUOTA, at(2)).await,
        Err(SaveError::NotFound("f".to_owned()))
    );
    assert_eq!(
        flows.delete("bob", "f", None, at(2)).await,
        Ok(DeletedFlow::NotFound)
    );
    let own = vec![write("f", "two", Expected::Absent)];
    assert!(flows.save("bob", own, QUOTA, at(2)).await.is_ok());
    assert_eq!(flows.find(USER, "f").await, Ok(Some(mine)));
}

/// A refused write changes nothing.
pub async fn write_requires_the_expected_state(open: impl AsyncFn() -> FlowStores) {
    let stores = open().await;
    let slug = || "f".to_owned();
    let hash = |text: &str| Expected::Hash(content(text).hash());
    for expected in [Expected::Present, hash("one")] {
        assert_eq!(
            save(&stores, write("f", "one", expected), at(1)).await,
            Err(SaveError::NotFound(slug()))
        );
    }
    saved(&stores, write("f", "one", Expected::Absent), at(1)).await;
    assert_eq!(
        save(&stores, write("f", "two", Expected::Absent), at(2)).await,
        Err(SaveError::Taken(slug()))
    );
    assert_eq!(
        save(&stores, write("f", "two", hash("other")), at(2)).await,
        Err(SaveError::Changed(slug()))
    );
    assert_eq!(numbers(&stores, "f").await, Some(vec![1]));
    saved(&stores, write("f", "two", hash("one")), at(2)).await;
    assert_eq!(numbers(&stores, "f").await, Some(vec![2, 1]));
}

/// Of concurrent changes of one content, one is stored.
pub async fn concurrent_flow_changes_have_one_winner(open: impl AsyncFn() -> FlowStores) {
    let stores = open().await;
    let first = saved(&stores, write("f", "one", Expected::Absent), at(1)).await;
    let results = at_once((0..8).map(|n| {
        let stores = stores.clone();
        let expected = Expected::Hash(first.content_hash.clone());
        async move { save(&stores, write("f", &format!("change {n}"), expected), at(2)).await }
    }))
    .await;
    let (stored, refused): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!(stored.len(), 1);
    let changed = Err(SaveError::Changed("f".to_owned()));
    assert!(
        refused.iter().all(|refused| *refused == changed),
        "{refused:?}"
    );
    assert_eq!(numbers(&stores, "f").await, Some(vec![2, 1]));
}

/// An earlier content, however, becomes a new version.
pub async fn equal_content_adds_no_version(open: impl AsyncFn() -> FlowStores) {
    let stores = open().await;
    let first = saved(&stores, write("f", "one", Expected::Absent), at(1)).await;
    let again = saved(&stores, write("f", "one", Expected::Present), at(2)).await;
    assert_eq!(again, first);
    saved(&stores, write("f", "two", Expected::Present), at(3)).await;
    let back = saved(&stores, write("f", "one", Expected::Present), at(4)).await;
    assert_eq!((back.version, &back.content_hash), (3, &first.content_hash));
    assert_eq!(numbers(&stores, "f").await, Some(vec![3, 2, 1]));
}

/// The newest version is never removed, and numbers are not used again.
pub async fn oldest_versions_are_removed_beyond_the_quota(open: impl AsyncFn() -> FlowStores) {
    let stores = open().await;
    let quota = |versions| FlowQuota { versions, ..QUOTA };
    for n in 0..4 {
        let expected = if n == 0 {
            Expected::Absent
        } else {
            Expected::Present
        };
        let writes = vec![write("f", &format!("text {n}"), expected)];
        stores
            .flows
            .save(USER, writes, quota(3), at(n))
            .await
            .expect("saved");
    }
    assert_eq!(numbers(&stores, "f").await, Some(vec![4, 3, 2]));
    assert_eq!(stores.flows.get(USER, "f", Some(1)).await, Ok(None));
    let writes = vec![write("f", "last", Expected::Present)];
    stores
        .flows
        .save(USER, writes, quota(0), at(9))
        .await
        .expect("saved");
    assert_eq!(numbers(&stores, "f").await, Some(vec![5]));
}

/// A change of an existing flow needs no quota.
pub async fn concurrent_creates_do_not_exceed_the_quota(open: impl AsyncFn() -> FlowStores) {
    let stores = open().await;
    let quota = FlowQuota { flows: 3, ..QUOTA };
    let results = at_once((0..8).map(|n| {
        let flows = stores.flows.clone();
        let writes = vec![write(&format!("f{n}"), "one", Expected::Absent)];
        async move { flows.save(USER, writes, quota, at(1)).await.map(drop) }
    }))
    .await;
    let (stored, refused): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!(stored.len(), 3);
    assert!(
        refused
            .iter()
            .all(|refused| *refused == Err(SaveError::TooMany(3))),
        "{refused:?}"
    );
    assert_eq!(stores.flows.count(USER).await, Ok(3));
    let slug = slugs(&stores, USER, ALL).await.remove(0);
    let change = vec![write(&slug, "two", Expected::Present)];
    assert!(stores.flows.save(USER, change, quota, at(2)).await.is_ok());
    let other = vec![write("f", "one", Expected::Absent)];
    assert!(stores.flows.save("bob", other, quota, at(2)).await.is_ok());
}

/// The quota applies to all writes of a batch together.
pub async fn batch_of_writes_is_stored_completely_or_not_at_all(
    open: impl AsyncFn() -> FlowStores,
) {
    let stores = open().await;
    saved(&stores, write("b", "old", Expected::Absent), at(1)).await;
    let new = |slug: &str| write(slug, slug, Expected::Absent);
    let refused = stores
        .flows
        .save(USER, vec![new("a"), new("b")], QUOTA, at(2))
        .await;
    assert_eq!(refused, Err(SaveError::Taken("b".to_owned())));
    let quota = FlowQuota { flows: 2, ..QUOTA };
    let refused = stores
        .flows
        .save(USER, vec![new("a"), new("c")], quota, at(2))
        .await;
    assert_eq!(refused, Err(SaveError::TooMany(2)));
    assert_eq!(slugs(&stores, USER, ALL).await, ["b"]);
    assert_eq!(
        stores.flows.content(USER, &content("a").hash()).await,
        Ok(None)
    );
    let stored = stores
        .flows
        .save(USER, vec![new("c"), new("a")], QUOTA, at(2))
        .await;
    let order: Vec<String> = stored
        .expect("saved")
        .into_iter()
        .map(|flow| flow.slug)
        .collect();
    assert_eq!(order, ["c", "a"]);
    assert_eq!(slugs(&stores, USER, ALL).await, ["a", "b", "c"]);
}

/// The order is that of bytes.
pub async fn flows_are_listed_by_slug_in_pages(open: impl AsyncFn() -> FlowStores) {
    let stores = open().await;
    for slug in ["b", "a-b", "a1", "c", "ab"] {
        saved(&stores, write(slug, slug, Expected::Absent), at(1)).await;
    }
    let page = async |limit, offset| slugs(&stores, USER, FlowPage { limit, offset }).await;
    assert_eq!(page(9, 0).await, ["a-b", "a1", "ab", "b", "c"]);
    assert_eq!(page(2, 2).await, ["ab", "b"]);
    assert_eq!(page(2, 9).await, Vec::<String>::new());
    assert_eq!(stores.flows.count(USER).await, Ok(5));
}

/// A deleted slug is free, and its versions begin with 1 again.
pub async fn delete_requires_the_expected_hash(open: impl AsyncFn() -> FlowStores) {
    let stores = open().await;
    let flow = saved(&stores, write("f", "one", Expected::Absent), at(1)).await;
    let delete = async |hash: Option<&str>| stores.flows.delete(USER, "f", hash, at(2)).await;
    assert_eq!(delete(Some("other")).await, Ok(DeletedFlow::Changed));
    assert_eq!(stores.flows.find(USER, "f").await, Ok(Some(flow.clone())));
    assert_eq!(
        delete(Some(&flow.content_hash)).await,
        Ok(DeletedFlow::Removed)
    );
    assert_eq!(delete(None).await, Ok(DeletedFlow::NotFound));
    assert_eq!(numbers(&stores, "f").await, None);
    let again = saved(&stores, write("f", "two", Expected::Absent), at(3)).await;
    assert_eq!((again.version, again.created_at), (1, at(3)));
}
