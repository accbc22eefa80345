//! Errors of identity providers.

/// Reason why a provider did not sign a person in. Texts contain no code, token or secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The discovery document could not be read or is not usable.
    #[error("the discovery document cannot be used: {0}")]
    Discovery(String),
    /// The keys could not be read.
    #[error("the keys cannot be read: {0}")]
    Keys(String),
    /// The token endpoint did not accept the code.
    #[error("the token endpoint refused the code: {0}")]
    Token(String),
    /// An answer of the provider is not valid.
    #[error("the answer of the provider is not valid: {0}")]
    Invalid(String),
    /// The provider did not answer in time.
    #[error("the provider did not answer in time")]
    Timeout,
}
