//! User of a DeerFlow installation.

/// Row of DeerFlow's table `users`, as its database file has it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ForeignUser {
    /// Id.
    pub id: String,
    /// E-mail, in any case.
    pub email: String,
    /// Hash of the password.
    pub password_hash: Option<String>,
    /// Role: `admin` or `user`.
    pub system_role: String,
    /// Creation time in UTC, such as `2026-01-31 12:00:00.000000`.
    pub created_at: String,
    /// Identity provider.
    pub oauth_provider: Option<String>,
    /// Id of the person at the provider.
    pub oauth_id: Option<String>,
    /// `true` if the person has to choose a password.
    pub needs_setup: bool,
}

impl std::fmt::Debug for ForeignUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForeignUser")
            .field("id", &self.id)
            .field("email", &self.email)
            .finish_non_exhaustive()
    }
}
