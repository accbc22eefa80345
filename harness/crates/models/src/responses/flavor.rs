//! Variants of the responses API.

/// Variant of the responses API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavor {
    /// OpenAI and compatible servers.
    OpenAi,
    /// Codex with signed-in users: requires `instructions`, always streams and chooses the length
    /// of the answer itself.
    Codex,
}

impl Flavor {
    /// Returns the value of `model_provider`.
    pub(super) fn provider(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Codex => "codex",
        }
    }
}
