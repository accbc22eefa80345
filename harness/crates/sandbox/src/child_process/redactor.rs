//! Removes secrets from texts of a child process.

/// Secret values that are removed from texts, longest first.
#[derive(Clone, Default)]
pub struct SecretRedactor(Vec<String>);

impl SecretRedactor {
    /// Minimum length of a secret, in bytes. Shorter values would match ordinary text.
    const MIN_SECRET_BYTES: usize = 6;

    /// Creates a redactor for these values. Ignores short ones.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let long = secrets
            .into_iter()
            .filter(|value| value.len() >= Self::MIN_SECRET_BYTES);
        let mut secrets: Vec<String> = long.map(str::to_owned).collect();
        // A secret may be part of another one, so the longest is replaced first.
        secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    /// Returns the text with each secret replaced by `***`.
    pub fn redact(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| {
            text.replace(secret.as_str(), "***")
        })
    }

    pub(super) fn max_secret_bytes(&self) -> usize {
        self.0.first().map_or(0, String::len)
    }
}
