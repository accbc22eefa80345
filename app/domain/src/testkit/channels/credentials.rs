//! Requirements of stored credentials.

use deerflow_runtime::testkit::at;

use super::ChannelSuite;
use crate::channels::StoredCredentials;

/// The version grows also when an entry is deleted and stored again.
pub async fn credentials_version_grows_across_deletion(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let credentials = &suite.stores.credentials;
    let put = async |provider, sealed, n| {
        let stored = credentials.put(provider, sealed, at(n)).await;
        assert_eq!(stored, Ok(()));
    };
    let entry = |provider: &str, sealed: &str, version, n| StoredCredentials {
        provider: provider.to_owned(),
        sealed: sealed.to_owned(),
        version,
        updated_at: at(n),
    };
    assert_eq!(credentials.all().await, Ok(vec![]));
    put("telegram", "v1:x", 1).await;
    put("slack", "v1:s", 2).await;
    put("telegram", "v1:y", 3).await;
    assert_eq!(
        credentials.all().await,
        Ok(vec![
            entry("slack", "v1:s", 1, 2),
            entry("telegram", "v1:y", 2, 3)
        ])
    );
    assert_eq!(credentials.delete("telegram").await, Ok(true));
    assert_eq!(credentials.delete("telegram").await, Ok(false));
    assert_eq!(credentials.delete("discord").await, Ok(false));
    assert_eq!(
        credentials.all().await,
        Ok(vec![entry("slack", "v1:s", 1, 2)])
    );
    put("telegram", "v1:z", 4).await;
    let all = credentials.all().await.expect("read");
    assert_eq!(all.len(), 2);
    assert!(all[1].version > 2, "{all:?}");
}
