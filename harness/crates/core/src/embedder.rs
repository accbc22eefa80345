//! Port of embedding models.

use async_trait::async_trait;

use crate::model_error::ModelError;

/// Converts texts to vectors. Texts with similar meaning get vectors that are close to each other.
#[async_trait]
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// Returns the number of dimensions of a vector.
    fn dims(&self) -> usize;
    /// Returns one vector of [`Embedder::dims`] numbers per text, in the order of the texts. Waits
    /// and retries within its own limits.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError>;
}
