//! What there is to choose from, as `GET /models` tells it.

use super::client::Client;
use super::error::ClientError;
use crate::models::{ModelFacts, ModelList};

impl Client {
    /// The models, in the order of the configuration.
    ///
    /// # Errors
    /// [`ClientError::Absent`].
    pub fn list_models(&self) -> Result<ModelList, ClientError> {
        Ok(ModelList::from(&*self.installation.config()?))
    }

    /// One of the models, if there is one of this name.
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
