//! Skills of the acting user, as `/skills` returns them. Changes apply to runs that begin later.

use std::path::Path;

use super::client::Client;
use super::error::ClientError;
use super::host_file;
use crate::runtime::actor_context::effective_user_id;
use crate::skills::{ARCHIVE_ENDING, SkillError, SkillInstalled, SkillList, SkillView};

impl Client {
    /// Returns all skills of the user by name, or only the enabled ones.
    ///
    /// # Errors
    /// [`ClientError::Absent`], and an error if they cannot be read.
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

    /// Returns the skill of this name, if there is one.
    ///
    /// # Errors
    /// The errors of [`list_skills`](Self::list_skills).
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

    /// Enables or disables a skill: for all users, unless it belongs to this user.
    ///
    /// # Errors
    /// [`SkillError::NotFound`], and the errors of [`list_skills`](Self::list_skills).
    pub async fn update_skill(&self, name: &str, enabled: bool) -> Result<SkillView, ClientError> {
        let skill = self
            .installation
            .skills()?
            .switch(&effective_user_id(), name, enabled)
            .await?;
        Ok(SkillView::from(&skill))
    }

    /// Installs a `.skill` archive from the host as a skill of the user.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] and [`ClientError::NotAFile`] for the archive,
    /// [`SkillError::Archive`], [`SkillError::Exists`], and the errors of
    /// [`list_skills`](Self::list_skills). On an error nothing is installed.
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
