//! Parts of an agent of which clients read JSON schemas.

/// Values that a JSON schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaPart {
    /// Input of a run.
    Input,
    /// Values of a run that has ended.
    Output,
    /// State of a thread.
    State,
}
