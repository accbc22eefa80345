//! Namespaces of items, as labels and as the text that stores sort by.

/// Maximum length of a namespace's text, and of a key, in bytes: the limit of the stores' indexes.
pub const MAX_PATH_BYTES: usize = 1024;

/// Path of labels. As text, each label is followed by a dot, and labels contain no dots: a
/// namespace is below another if its text begins with the text of the other.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(Vec<String>);

/// Reason why labels or a key are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidItemPath {
    /// The label is empty or contains a dot, so its text would be ambiguous.
    #[error("Namespace label '{0}' must be a non-empty string without periods")]
    Label(String),
    /// Stores cannot hold it.
    #[error("Namespace and key must not be longer than {MAX_PATH_BYTES} bytes each")]
    TooLong,
    /// Stores cannot hold it.
    #[error("Namespace and key must not contain NUL characters")]
    Nul,
    /// An item needs a namespace with at least one label.
    #[error("Namespace cannot be empty")]
    Empty,
}

impl Namespace {
    /// Creates a namespace. Without labels it is the root of all namespaces.
    pub fn new(labels: Vec<String>) -> Result<Self, InvalidItemPath> {
        if let Some(label) = labels
            .iter()
            .find(|label| label.is_empty() || label.contains('.'))
        {
            return Err(InvalidItemPath::Label(label.chars().take(80).collect()));
        }
        if labels.iter().any(|label| label.contains('\0')) {
            return Err(InvalidItemPath::Nul);
        }
        if labels.iter().map(|label| label.len() + 1).sum::<usize>() > MAX_PATH_BYTES {
            return Err(InvalidItemPath::TooLong);
        }
        Ok(Self(labels))
    }

    /// Returns the labels, outermost first.
    pub fn labels(&self) -> &[String] {
        &self.0
    }

    /// Reports whether it has no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports whether it equals `prefix` or is below it.
    pub fn is_within(&self, prefix: &Self) -> bool {
        self.0.starts_with(&prefix.0)
    }

    /// Returns the text that stores use.
    pub fn to_text(&self) -> String {
        self.0
            .iter()
            .flat_map(|label| [label.as_str(), "."])
            .collect()
    }

    /// Parses the text from a store.
    pub fn from_text(text: &str) -> Self {
        Self(text.split_terminator('.').map(str::to_owned).collect())
    }

    /// Returns the text range of all namespaces within this one: start (inclusive) and end
    /// (exclusive), if there is an end.
    pub fn range(&self) -> (String, Option<String>) {
        let first = self.to_text();
        // `/` is the character after the dot.
        let end = first.strip_suffix('.').map(|stem| format!("{stem}/"));
        (first, end)
    }
}

/// Checks that stores can hold a key.
pub fn validate_key(key: String) -> Result<String, InvalidItemPath> {
    match key {
        key if key.contains('\0') => Err(InvalidItemPath::Nul),
        key if key.len() > MAX_PATH_BYTES => Err(InvalidItemPath::TooLong),
        key => Ok(key),
    }
}

/// Filters and page of a namespace list. The label `*` in a pattern matches any label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceQuery {
    /// Pattern for the first labels.
    pub prefix: Vec<String>,
    /// Pattern for the last labels.
    pub suffix: Vec<String>,
    /// Truncates namespaces to this number of labels; duplicates are merged.
    pub max_depth: Option<usize>,
    /// Maximum number of results.
    pub limit: usize,
    /// Number of results to skip.
    pub offset: usize,
}

impl NamespaceQuery {
    /// Returns the namespace that contains all matches.
    pub fn common_prefix(&self) -> Namespace {
        Namespace(
            self.prefix
                .iter()
                .take_while(|label| *label != "*")
                .cloned()
                .collect(),
        )
    }

    /// Reports whether a namespace matches.
    pub fn matches(&self, namespace: &Namespace) -> bool {
        let labels = namespace.labels();
        let fits = |pattern: &[String], part: &[String]| {
            pattern
                .iter()
                .zip(part)
                .all(|(expected, label)| expected == "*" || expected == label)
        };
        let (front, back) = (self.prefix.len(), self.suffix.len());
        front <= labels.len()
            && back <= labels.len()
            && fits(&self.prefix, &labels[..front])
            && fits(&self.suffix, &labels[labels.len() - back..])
    }

    /// Filters, truncates and pages all namespaces within [`NamespaceQuery::common_prefix`], which
    /// must be in order of their texts.
    pub fn apply(&self, namespaces: impl Iterator<Item = Namespace>) -> Vec<Namespace> {
        let depth = self.max_depth.unwrap_or(usize::MAX);
        let mut results: Vec<Namespace> = namespaces
            .filter(|namespace| self.matches(namespace))
            .map(|namespace| Namespace(namespace.0.into_iter().take(depth).collect()))
            .collect();
        // Truncated duplicates are adjacent, because texts with a common prefix sort together.
        results.dedup();
        results
            .into_iter()
            .skip(self.offset)
            .take(self.limit)
            .collect()
    }
}

#[cfg(test)]
#[path = "namespace_tests.rs"]
mod tests;
