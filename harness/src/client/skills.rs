//! The acting user's skills, as `/skills` tells them. Runs that begin after a change know of it.

use std::path::Path;

use super::client::Client;
use super::error::ClientError;
use super::host_file;
use crate::runtime::actor_context::effective_user_id;
use crate::skills::{ARCHIVE_ENDING, SkillError, SkillInstalled, SkillList, SkillView};

impl Client {
    /// All that the user has, by name, or those that are on.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and when they cannot be read.
    pub async fn list_skills(&self, enabled_only: bool) -> Result<SkillList, ClientError> {
        let skills = self
            .installation
            .skills()?
            .list(&effective_user_id())
            .await?;
        Ok(skills
            .iter()
            .filter(|skill| skill.enabled || !enabled_only)
            .collect())
    }

    /// One of them, if there is one of this name.
    ///
    /// # Errors
    /// As [`list_skills`](Self::list_skills).
    pub async fn get_skill(&self, name: &str) -> Result<Option<SkillView>, ClientError> {
        match self
            .installation
            .skills()?
            .get(&effective_user_id(), name)
            .await
        {
            Ok(skill) => Ok(Some(SkillView::from(&skill))),
            Err(SkillError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Switches one of them: for everybody, unless it is the user's own.
    ///
    /// # Errors
    /// [`SkillError::NotFound`], and as [`list_skills`](Self::list_skills).
    pub async fn update_skill(&self, name: &str, enabled: bool) -> Result<SkillView, ClientError> {
        let skill = self
            .installation
            .skills()?
            .switch(&effective_user_id(), name, enabled)
            .await?;
        Ok(SkillView::from(&skill))
    }

    /// Unpacks a `.skill` archive of the host into the user's own skills.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] and [`ClientError::NotAFile`] for the archive, [`SkillError::Archive`], [`SkillError::Exists`], and as
    /// [`list_skills`](Self::list_skills). Nothing is there then.
    pub async fn install_skill(
        &self,
        archive: impl AsRef<Path>,
    ) -> Result<SkillInstalled, ClientError> {
        let (skills, path) = (self.installation.skills()?, archive.as_ref());
        if path
            .extension()
            .is_none_or(|ending| ending != &ARCHIVE_ENDING[1..])
        {
            return Err(SkillError::Refused(format!(
                "the file must have the extension {ARCHIVE_ENDING}"
            ))
            .into());
        }
        let archive = host_file::open(path.to_owned()).await?;
        let skill = skills.install(&effective_user_id(), archive).await?;
        Ok(SkillInstalled::from(&skill))
    }
}
