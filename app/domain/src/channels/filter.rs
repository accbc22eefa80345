//! Filter of listings for operators.

/// Filter of rows with states `S`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFilter<S> {
    /// Only this platform.
    pub provider: Option<String>,
    /// Only this state.
    pub state: Option<S>,
    /// Maximum number of rows.
    pub limit: u64,
}

impl<S> Default for RowFilter<S> {
    fn default() -> Self {
        Self {
            provider: None,
            state: None,
            limit: 0,
        }
    }
}

impl<S: PartialEq> RowFilter<S> {
    /// Reports whether a row of this platform and state is requested.
    pub fn matches(&self, provider: &str, state: &S) -> bool {
        let of_provider = self.provider.as_deref().is_none_or(|one| one == provider);
        of_provider && self.state.as_ref().is_none_or(|one| one == state)
    }
}
