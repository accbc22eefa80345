//! Refusals of calls.

/// Refusal of a call.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: i64,
    pub(super) text: String,
    /// Seconds after which the call is allowed again.
    pub(super) reset: Option<u64>,
}

impl Refusal {
    pub(super) fn new(code: i64, text: impl Into<String>) -> Self {
        Self {
            status: 400,
            code,
            text: text.into(),
            reset: None,
        }
    }

    /// Returns the refusal of fields that the platform does not accept.
    pub(super) fn fields(text: impl Into<String>) -> Self {
        Self::new(99_992_402, text)
    }
}
