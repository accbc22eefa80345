//! Port of embedding models.

use async_trait::async_trait;

use crate::model_error::ModelError;

/// Converts texts to vectors. Texts with similar meaning get vectors that are close to each other.
///
/// ```
/// use async_trait::async_trait;
/// use deerflow_core::embedder::Embedder;
/// use deerflow_core::model_error::ModelError;
///
/// /// Counts vowels, so that texts with similar vowels have similar vectors.
/// #[derive(Debug)]
/// struct Vowels;
///
/// #[async_trait]
/// impl Embedder for Vowels {
///     fn dims(&self) -> usize {
///         5
///     }
///
///     async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
///         let count = |text: &String, vowel: char| text.matches(vowel).count() as f32;
///         let vector = |text| "aeiou".chars().map(|vowel| count(text, vowel)).collect();
///         Ok(texts.iter().map(vector).collect())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ModelError> {
/// let vectors = Vowels.embed(&["a deer".to_owned()]).await?;
/// assert_eq!(vectors, [[1.0, 2.0, 0.0, 0.0, 0.0]]);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// Returns the number of dimensions of a vector.
    fn dims(&self) -> usize;
    /// Returns one vector of [`Embedder::dims`] numbers per text, in the order of the texts. Waits
    /// and retries within its own limits.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError>;
}
