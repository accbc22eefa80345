//! Tools that a model does not see until it has looked for them: their catalog, how it is searched, and what the thread remembers.

use std::collections::HashSet;

use indexmap::IndexMap;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::models::ToolSchema;
use crate::state::{StateUpdate, ThreadState};

/// The channel that says which tools were found.
pub const PROMOTED: &str = "promoted";
/// Tools that one search finds at most, unless it names them.
const MOST_FOUND: usize = 5;
/// The longest query that is looked at.
const LONGEST_QUERY: usize = 1_000;
/// What one pattern may take when it is compiled, in bytes. How long it takes to look for it grows with that.
const PATTERN_BYTES: usize = 16 * 1024;
/// How much of all descriptions together is looked through, in bytes: the same share of each.
const LOOKED_THROUGH: usize = 1 << 20;

/// The value of [`PROMOTED`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promoted {
    /// The catalog that the names are of.
    pub catalog_hash: String,
    /// The tools that were found.
    pub names: Vec<String>,
}

/// The catalog of an agent's deferred tools.
#[derive(Debug)]
pub struct DeferredTools {
    schemas: IndexMap<String, ToolSchema>,
    hash: String,
}

impl DeferredTools {
    /// A catalog of these.
    pub fn new(schemas: impl IntoIterator<Item = ToolSchema>) -> Self {
        let mut schemas: IndexMap<String, ToolSchema> = schemas
            .into_iter()
            .map(|schema| (schema.name.clone(), schema))
            .collect();
        schemas.sort_keys();
        let mut digest = Sha256::new();
        for schema in schemas.values() {
            digest.update(shown(schema).to_string());
        }
        Self {
            schemas,
            hash: hex::encode(&digest.finalize()[..8]),
        }
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.schemas.keys().map(String::as_str)
    }

    /// Whether the tool is one of them.
    pub fn has(&self, name: &str) -> bool {
        self.schemas.contains_key(name)
    }

    /// Those names of the catalog that the thread has found.
    pub fn promoted(&self, state: &ThreadState) -> HashSet<String> {
        let held = state
            .channel(PROMOTED)
            .and_then(|value| Promoted::deserialize(value).ok())
            .unwrap_or_default();
        if held.catalog_hash == self.hash {
            held.names.into_iter().collect()
        } else {
            HashSet::new()
        }
    }

    /// Whether a model of this thread does not see the tool yet.
    pub fn hides(&self, name: &str, state: &ThreadState) -> bool {
        self.has(name) && !self.promoted(state).contains(name)
    }

    /// What `query` finds: `select:a,b` names tools; `+word rest` wants the word in the name and ranks by the rest; anything else is
    /// a pattern over names and descriptions. Case does not matter. Takes its time with evil patterns: not for async code.
    pub fn search(&self, query: &str) -> Vec<&ToolSchema> {
        let query: String = query.trim().chars().take(LONGEST_QUERY).collect();
        if let Some(names) = query.strip_prefix("select:") {
            let wanted: Vec<String> = names
                .split(',')
                .map(|name| name.trim().to_lowercase())
                .collect();
            return self
                .schemas
                .values()
                .filter(|schema| wanted.contains(&schema.name.to_lowercase()))
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
                let is_meant = |schema: &&ToolSchema| {
                    is_named(schema) || pattern.is_match(self.looked_through(schema))
                };
                self.schemas
                    .values()
                    .filter(is_meant)
                    .map(|schema| (usize::from(is_named(schema)), schema))
                    .collect()
            }
        };
        found.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        found
            .into_iter()
            .take(MOST_FOUND)
            .map(|(_, schema)| schema)
            .collect()
    }

    fn hits(&self, pattern: &Regex, schema: &ToolSchema) -> usize {
        pattern.find_iter(&schema.name).count()
            + pattern.find_iter(self.looked_through(schema)).count()
    }

    /// The beginning of a description.
    fn looked_through<'a>(&self, schema: &'a ToolSchema) -> &'a str {
        let share = LOOKED_THROUGH / self.schemas.len().max(1);
        let mut end = share.min(schema.description.len());
        while !schema.description.is_char_boundary(end) {
            end -= 1;
        }
        &schema.description[..end]
    }

    /// The change that lets the thread's models see these tools.
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

/// A tool as search results show it.
pub(super) fn shown(schema: &ToolSchema) -> Value {
    json!({ "name": schema.name, "description": schema.description, "parameters": schema.parameters })
}

/// The query as a pattern, as plain words when it is none; nothing when it is empty.
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
mod tests {
    use super::*;
    use crate::ids::SystemIds;

    fn catalog() -> DeferredTools {
        let tool = |name: &str, description: &str| ToolSchema {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json!({"type": "object"}),
        };
        DeferredTools::new([
            tool("git_log", "Shows commits."),
            tool("git_blame", "Says who wrote a line; see the log."),
            tool("time_now", "Tells the time (UTC)."),
            tool("disk_log", "Reads the journal."),
        ])
    }

    fn found(query: &str) -> Vec<String> {
        catalog()
            .search(query)
            .into_iter()
            .map(|schema| schema.name.clone())
            .collect()
    }

    #[test]
    fn every_form_of_a_query_finds_what_it_says() {
        assert_eq!(
            found("select:TIME_now, git_log,none"),
            ["git_log", "time_now"]
        );
        assert_eq!(found("+git line"), ["git_blame", "git_log"]);
        assert_eq!(found("+git"), ["git_blame", "git_log"]);
        assert_eq!(
            found("log"),
            ["disk_log", "git_log", "git_blame"],
            "names before descriptions"
        );
        assert_eq!(found("^time|journal"), ["time_now", "disk_log"]);
        assert_eq!(
            found("(UTC"),
            ["time_now"],
            "what is no pattern is taken as it stands"
        );
        for nothing in ["", "  ", "+", "select:", "nothing", "x{99999}{99999}"] {
            assert_eq!(found(nothing), Vec::<String>::new(), "{nothing}");
        }
    }

    #[test]
    fn a_catalog_of_any_size_is_looked_through_in_a_bounded_time() {
        let described = |n: usize| format!("{} end{n}", "ü".repeat(4_000));
        let tool = |n: usize| ToolSchema {
            name: format!("t{n}"),
            description: described(n),
            parameters: json!({"type": "object"}),
        };
        let few = DeferredTools::new((0..10).map(tool));
        assert_eq!(few.search("end7").len(), 1, "few are looked through whole");
        let many = DeferredTools::new((0..5_000).map(tool));
        let looked: usize = many
            .schemas
            .values()
            .map(|schema| many.looked_through(schema).len())
            .sum();
        assert!(looked <= LOOKED_THROUGH, "{looked}");
        assert_eq!(
            many.search("t4999").len(),
            1,
            "names are looked through whole"
        );
    }

    #[test]
    fn a_thread_sees_what_it_found_until_the_catalog_changes() {
        let catalog = catalog();
        let mut state = ThreadState::default();
        let ids = SystemIds::default();
        assert!(catalog.hides("git_log", &state) && !catalog.hides("bash", &state));
        for query in ["select:git_log", "select:time_now"] {
            state
                .apply(catalog.promotion(catalog.search(query)), &ids)
                .unwrap();
        }
        assert!(
            !catalog.hides("git_log", &state)
                && !catalog.hides("time_now", &state)
                && catalog.hides("disk_log", &state)
        );
        let changed = DeferredTools::new(
            catalog
                .search("select:git_log,disk_log")
                .into_iter()
                .cloned(),
        );
        assert!(changed.hides("git_log", &state));
        state
            .apply(changed.promotion(changed.search("disk")), &ids)
            .unwrap();
        assert!(catalog.hides("time_now", &state) && !changed.hides("disk_log", &state));
    }
}
