//! Folder of a user: files of threads, agents, skills and the profile.

use async_trait::async_trait;
use deerflow_domain::accounts::{DeletedData, UserData};
use harness::runtime::runs::store::StoreError;
use harness::sandbox::FileHome;

/// Folders of users.
#[derive(Debug)]
pub(crate) struct UserFolder(pub(crate) FileHome);

#[async_trait]
impl UserData for UserFolder {
    async fn delete_all(&self, user: &str) -> Result<DeletedData, StoreError> {
        let deleted = self.0.delete_user(user).await;
        let deleted = deleted.map_err(|error| {
            StoreError::Failed(format!("the folder of the user was not removed: {error}"))
        })?;
        Ok(DeletedData {
            kind: "folders".to_owned(),
            count: deleted.into(),
        })
    }
}
