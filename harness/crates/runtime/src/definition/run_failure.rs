//! Error of a failed run.

/// Error of a failed run, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunFailure {
    /// Class of the error, such as `TimeoutError`.
    pub(crate) name: String,
    /// Text of the error.
    pub(crate) message: String,
}

impl RunFailure {
    pub(crate) fn new(name: &str, message: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            message: message.into(),
        }
    }
}

/// Class and text, as webhook calls store them.
impl From<RunFailure> for (String, String) {
    fn from(failure: RunFailure) -> Self {
        (failure.name, failure.message)
    }
}
