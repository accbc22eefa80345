//! The port of embedding models: texts in, one vector of meaning each out.

use async_trait::async_trait;

use super::ModelError;

/// Turns texts into vectors that lie near each other when the texts mean alike.
#[async_trait]
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// How many numbers a vector has.
    fn dims(&self) -> usize;
    /// One vector of [`Embedder::dims`] numbers per text, in the order of the texts. Waits and retries within its own limits.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError>;
}
