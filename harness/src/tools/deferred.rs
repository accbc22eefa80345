//! Deferred tools: hidden from the model until a search loads them. Contains the catalog, its
//! search and the record of loaded tools in the thread state.

use std::collections::HashSet;

use indexmap::IndexMap;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::models::ToolSchema;
use crate::state::{StateUpdate, ThreadState};

/// State channel that lists the tools a search has loaded.
pub const PROMOTED: &str = "promoted";
/// Maximum number of results of one search, unless the query names the tools.
const MAX_RESULTS: usize = 5;
/// Maximum length of a query, in characters; text beyond it is ignored.
const MAX_QUERY_CHARS: usize = 1_000;
/// Maximum size of a compiled pattern, in bytes. Search time grows with it.
const PATTERN_BYTES: usize = 16 * 1024;
/// Maximum number of description bytes that one search scans, divided evenly among the tools.
const MAX_SEARCHED_BYTES: usize = 1 << 20;

/// Value of the channel [`PROMOTED`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promoted {
    /// Hash of the catalog that the names belong to.
    pub catalog_hash: String,
    /// Names of the loaded tools.
    pub names: Vec<String>,
}

/// Catalog of an agent's deferred tools.
#[derive(Debug)]
pub struct DeferredTools {
    schemas: IndexMap<String, ToolSchema>,
    hash: String,
}

impl DeferredTools {
    /// Creates a catalog of these tools.
    pub fn new(schemas: impl IntoIterator<Item = ToolSchema>) -> Self {
        let mut schemas: IndexMap<String, ToolSchema> = schemas
            .into_iter()
            .map(|schema| (schema.name.clone(), schema))
            .collect();
        schemas.sort_keys();
        let mut digest = Sha256::new();
        for schema in schemas.values() {
            digest.update(schema_json(schema).to_string());
        }
        Self {
            schemas,
            hash: hex::encode(&digest.finalize()[..8]),
        }
    }

    /// Names of the deferred tools, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.schemas.keys().map(String::as_str)
    }

    /// Reports whether the catalog contains the tool.
    pub fn has(&self, name: &str) -> bool {
        self.schemas.contains_key(name)
    }

    /// Returns the tools of the catalog that the thread has loaded.
    pub fn promoted(&self, state: &ThreadState) -> HashSet<String> {
        let promoted = state
            .channel(PROMOTED)
            .and_then(|value| Promoted::deserialize(value).ok())
            .unwrap_or_default();
        if promoted.catalog_hash == self.hash {
            promoted.names.into_iter().collect()
        } else {
            HashSet::new()
        }
    }

    /// Reports whether the tool is deferred and not yet loaded in this thread.
    pub fn hides(&self, name: &str, state: &ThreadState) -> bool {
        self.has(name) && !self.promoted(state).contains(name)
    }

    /// Searches the catalog, ignoring case.
    ///
    /// `select:a,b` names tools; `+word rest` requires `word` in the name and ranks by `rest`; any
    /// other query is a pattern over names and descriptions. A slow pattern takes noticeable CPU
    /// time, so do not call this from async code.
    pub fn search(&self, query: &str) -> Vec<&ToolSchema> {
        let query: String = query.trim().chars().take(MAX_QUERY_CHARS).collect();
        if let Some(names) = query.strip_prefix("select:") {
            let requested: Vec<String> = names
                .split(',')
                .map(|name| name.trim().to_lowercase())
                .collect();
            return self
                .schemas
                .values()
                .filter(|schema| requested.contains(&schema.name.to_lowercase()))
                .collect();
        }
        let mut found: Vec<(usize, &ToolSchema)> = match query.strip_prefix('+') {
            Some(query) => {
                let (word, rest) = query.split_once(char::is_whitespace).unwrap_or((query, ""));
                let (word, rest) = (word.to_lowercase(), pattern(rest.trim()));
                let named = self.schemas.values().filter(|schema| {
                    !word.is_empty() && schema.name.to_lowercase().contains(&word)
                });
                named
                    .map(|schema| {
                        (
                            rest.as_ref().map_or(0, |rest| self.hits(rest, schema)),
                            schema,
                        )
                    })
                    .collect()
            }
            None => {
                let Some(pattern) = pattern(&query) else {
                    return Vec::new();
                };
                let is_named = |schema: &ToolSchema| pattern.is_match(&schema.name);
                let is_hit = |schema: &&ToolSchema| {
                    is_named(schema) || pattern.is_match(self.searched_text(schema))
                };
                self.schemas
                    .values()
                    .filter(is_hit)
                    .map(|schema| (usize::from(is_named(schema)), schema))
                    .collect()
            }
        };
        found.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        found
            .into_iter()
            .take(MAX_RESULTS)
            .map(|(_, schema)| schema)
            .collect()
    }

    fn hits(&self, pattern: &Regex, schema: &ToolSchema) -> usize {
        pattern.find_iter(&schema.name).count()
            + pattern.find_iter(self.searched_text(schema)).count()
    }

    /// Returns the part of a description that a search scans.
    fn searched_text<'a>(&self, schema: &'a ToolSchema) -> &'a str {
        let share = MAX_SEARCHED_BYTES / self.schemas.len().max(1);
        let mut end = share.min(schema.description.len());
        while !schema.description.is_char_boundary(end) {
            end -= 1;
        }
        &schema.description[..end]
    }

    /// Returns the state update that makes these tools visible to the thread's models.
    pub fn promotion<'a>(&self, found: impl IntoIterator<Item = &'a ToolSchema>) -> StateUpdate {
        let names = found
            .into_iter()
            .map(|schema| schema.name.clone())
            .collect();
        StateUpdate::channel(
            PROMOTED,
            json!(Promoted {
                catalog_hash: self.hash.clone(),
                names
            }),
        )
    }
}

/// Returns a tool as JSON, as search results contain it.
pub(crate) fn schema_json(schema: &ToolSchema) -> Value {
    json!({ "name": schema.name, "description": schema.description, "parameters": schema.parameters })
}

/// Compiles the query to a pattern. An invalid pattern is escaped to literal text; an empty query
/// returns `None`.
fn pattern(query: &str) -> Option<Regex> {
    let compile = |text: &str| {
        RegexBuilder::new(text)
            .case_insensitive(true)
            .size_limit(PATTERN_BYTES)
            .build()
            .ok()
    };
    if query.is_empty() {
        None
    } else {
        compile(query).or_else(|| compile(&regex::escape(query)))
    }
}

#[cfg(test)]
#[path = "deferred_tests.rs"]
mod tests;
