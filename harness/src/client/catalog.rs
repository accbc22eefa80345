//! Configured models, as `GET /models` returns them.

use super::client::Client;
use super::error::ClientError;
use crate::models::{ModelFacts, ModelList};

impl Client {
    /// Returns the models, in the order of the configuration.
    ///
    /// # Errors
    /// [`ClientError::Absent`].
    pub fn list_models(&self) -> Result<ModelList, ClientError> {
        Ok(ModelList::from(&*self.installation.config()?))
    }

    /// Returns the model of this name, if there is one.
    ///
    /// # Errors
    /// [`ClientError::Absent`].
    pub fn get_model(&self, name: &str) -> Result<Option<ModelFacts>, ClientError> {
        Ok(self
            .list_models()?
            .models
            .into_iter()
            .find(|model| model.name == name))
    }
}
