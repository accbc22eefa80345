//! Requirements on contents that no version has any more.

use deerflow_runtime::testkit::{USER, at};

use super::{FlowStores, QUOTA, content, saved, write};
use crate::flows::{DeletedFlow, Expected, FlowQuota, SYSTEM_OWNER};

/// It stays readable by its hash until then, and a new version with it ends the period.
pub async fn content_of_removed_version_is_swept_after_its_time(
    open: impl AsyncFn() -> FlowStores,
) {
    let stores = open().await;
    let flows = &stores.flows;
    let read = async |text: &str| {
        flows
            .content(USER, &content(text).hash())
            .await
            .expect("read")
            .is_some()
    };
    saved(&stores, write("f", "one", Expected::Absent), at(1)).await;
    saved(&stores, write("g", "shared", Expected::Absent), at(1)).await;
    let quota = FlowQuota {
        versions: 1,
        ..QUOTA
    };
    for (n, text) in [(2, "shared"), (3, "three")] {
        let writes = vec![write("f", text, Expected::Present)];
        flows.save(USER, writes, quota, at(n)).await.expect("saved");
    }
    assert_eq!(flows.sweep(at(1), 9).await, Ok(0));
    assert!(read("one").await);
    assert_eq!(flows.sweep(at(2), 9).await, Ok(1));
    assert!(!read("one").await);
    // Another flow has a version with it.
    assert_eq!(flows.sweep(at(9), 9).await, Ok(0));
    assert!(read("shared").await);
    assert_eq!(
        flows.delete(USER, "g", None, at(10)).await,
        Ok(DeletedFlow::Removed)
    );
    saved(&stores, write("g", "shared", Expected::Absent), at(11)).await;
    assert_eq!(flows.sweep(at(20), 9).await, Ok(0));
    assert_eq!(
        flows.delete(USER, "f", None, at(30)).await,
        Ok(DeletedFlow::Removed)
    );
    assert_eq!(
        flows.delete(USER, "g", None, at(30)).await,
        Ok(DeletedFlow::Removed)
    );
    assert_eq!(flows.sweep(at(30), 1).await, Ok(1));
    assert_eq!(flows.sweep(at(30), 9).await, Ok(1));
    assert!(!read("shared").await && !read("three").await);
}

/// Each call renews it.
pub async fn content_without_version_stays_until_a_sweep(open: impl AsyncFn() -> FlowStores) {
    let stores = open().await;
    let flows = &stores.flows;
    let (text, hash) = (content("one"), content("one").hash());
    for n in [1, 5, 3] {
        flows
            .store_content(SYSTEM_OWNER, text.clone(), at(n))
            .await
            .expect("stored");
    }
    assert_eq!(flows.content(USER, &hash).await, Ok(None));
    assert_eq!(flows.sweep(at(4), 9).await, Ok(0));
    assert_eq!(
        flows.content(SYSTEM_OWNER, &hash).await,
        Ok(Some(text.clone()))
    );
    assert_eq!(flows.sweep(at(5), 9).await, Ok(1));
    assert_eq!(flows.content(SYSTEM_OWNER, &hash).await, Ok(None));
    // A call does not end the use by a version.
    saved(&stores, write("f", "one", Expected::Absent), at(6)).await;
    flows
        .store_content(USER, text.clone(), at(7))
        .await
        .expect("stored");
    assert_eq!(flows.sweep(at(9), 9).await, Ok(0));
}
