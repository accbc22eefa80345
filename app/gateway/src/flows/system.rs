//! System flows: those of the watched folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::flows::{FlowAsset, FlowContent, FlowRecord, FlowSummary};
use deerflow_flow::finding::{Finding, FindingCode};

use super::check::{CheckedFlow, FlowRules};
use super::project::{FoundFlow, ProjectFile, flows_of_project};
use super::version::{FlowListing, FlowOwner, FlowVersion};

/// A flow of the folder with its last valid content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemFlow {
    /// Path of the document in the folder.
    pub path: String,
    /// Number that belongs to the content: the same in every process and after a restart. It does
    /// not count.
    pub version: u32,
    /// Hash of the content.
    pub content_hash: String,
    /// Summary of the content.
    pub summary: FlowSummary,
    /// Last valid content.
    pub content: Arc<FlowContent>,
    /// Time at which this process first saw the flow.
    pub created_at: DateTime<Utc>,
    /// Time at which this process first saw the content.
    pub updated_at: DateTime<Utc>,
    /// Errors of the present content, if it is not valid.
    pub errors: Vec<Finding>,
}

/// A document of the folder that is no flow, and never was one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemProblem {
    /// Path of the document in the folder.
    pub path: String,
    /// Slug of its name, if it has one.
    pub slug: Option<String>,
    /// Errors.
    pub errors: Vec<Finding>,
}

/// State of the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemSnapshot {
    /// Flows by slug.
    pub flows: BTreeMap<String, Arc<SystemFlow>>,
    /// Documents that are no flows, in the order of their paths.
    pub problems: Vec<SystemProblem>,
    /// Files of the outermost project.
    pub assets: Vec<FlowAsset>,
}

/// System flows. Reads return the state of the last scan without waiting.
#[async_trait]
pub trait SystemFlows: Send + Sync + fmt::Debug {
    /// Returns the current state.
    fn current(&self) -> Arc<SystemSnapshot>;
    /// Scans the folder now and returns the new state.
    async fn reload(&self) -> Arc<SystemSnapshot>;
}

impl SystemFlow {
    /// Returns the flow as a version.
    pub(super) fn version(&self, slug: &str) -> FlowVersion {
        FlowVersion {
            slug: slug.to_owned(),
            owner: FlowOwner::System,
            version: self.version,
            content_hash: self.content_hash.clone(),
            content: self.content.clone(),
            created_at: Some(self.created_at),
            updated_at: Some(self.updated_at),
        }
    }

    /// Returns the flow as an entry of a list.
    pub(super) fn listing(&self, slug: &str) -> FlowListing {
        FlowListing {
            owner: FlowOwner::System,
            record: FlowRecord {
                slug: slug.to_owned(),
                version: self.version,
                content_hash: self.content_hash.clone(),
                summary: self.summary.clone(),
                created_at: self.created_at,
                updated_at: self.updated_at,
            },
            errors: self.errors.clone(),
        }
    }
}

impl SystemSnapshot {
    /// Returns the state after a scan that found these files. A flow whose document is no longer
    /// valid keeps its last valid content; a flow whose document is gone is gone. Of two documents
    /// with one slug, the first in the order of paths counts.
    #[must_use]
    pub fn after_scan(
        &self,
        files: Vec<ProjectFile>,
        rules: &FlowRules,
        at: DateTime<Utc>,
    ) -> Self {
        let assets = files
            .iter()
            .filter(|file| file.path.starts_with(deerflow_flow::assets::ASSET_FOLDER))
            .map(|file| FlowAsset {
                path: file.path.clone(),
                text: file.text.clone(),
            })
            .collect();
        let mut next = Self {
            assets,
            ..Self::default()
        };
        let paths: BTreeSet<String> = files.iter().map(|file| file.path.clone()).collect();
        for found in flows_of_project(files) {
            next.add(found, self, rules, at);
        }
        next.keep_emptied(self, &paths);
        next
    }

    /// Keeps flows whose documents exist and are no flows any more, as while they are written.
    fn keep_emptied(&mut self, before: &Self, paths: &BTreeSet<String>) {
        for (slug, known) in &before.flows {
            if paths.contains(&known.path) && !self.flows.contains_key(slug) {
                let message = "the document has neither `meta` nor `graph`";
                let flow = SystemFlow {
                    errors: vec![Finding::new(FindingCode::SchemaInvalid, message)],
                    ..(**known).clone()
                };
                self.flows.insert(slug.clone(), Arc::new(flow));
            }
        }
    }

    fn add(&mut self, found: FoundFlow, before: &Self, rules: &FlowRules, at: DateTime<Utc>) {
        let FoundFlow {
            path,
            slug,
            content,
        } = found;
        let refused = |slug: Option<String>, message: String| SystemProblem {
            path: path.clone(),
            slug,
            errors: vec![Finding::new(FindingCode::SchemaInvalid, message)],
        };
        let Some(slug) = slug else {
            let message = "the file name has no letter or digit of ASCII; rename the file";
            return self.problems.push(refused(None, message.to_owned()));
        };
        if let Some(first) = self.flows.get(&slug) {
            let message = format!(
                "{} has the id {slug:?} already; rename one of them",
                first.path
            );
            return self.problems.push(refused(Some(slug), message));
        }
        let known = before.flows.get(&slug).filter(|known| known.path == path);
        let CheckedFlow {
            validation,
            checked,
        } = rules.check(content);
        match (checked, known) {
            (Some((content, summary)), known) => {
                let flow = system_flow(path, content, summary, known, at);
                self.flows.insert(slug, Arc::new(flow));
            }
            (None, Some(known)) => {
                let flow = SystemFlow {
                    errors: validation.errors,
                    ..(**known).clone()
                };
                self.flows.insert(slug, Arc::new(flow));
            }
            (None, None) => self.problems.push(SystemProblem {
                path,
                slug: Some(slug),
                errors: validation.errors,
            }),
        }
    }
}

fn system_flow(
    path: String,
    content: FlowContent,
    summary: FlowSummary,
    known: Option<&Arc<SystemFlow>>,
    at: DateTime<Utc>,
) -> SystemFlow {
    let content_hash = content.hash();
    let same = known.filter(|known| known.content_hash == content_hash);
    SystemFlow {
        path,
        version: version_of(&content_hash),
        content_hash,
        summary,
        content: Arc::new(content),
        created_at: known.map_or(at, |known| known.created_at),
        updated_at: same.map_or(at, |same| same.updated_at),
        errors: Vec::new(),
    }
}

/// Returns the number of a content: the first 31 bits of its hash, at least 1.
fn version_of(content_hash: &str) -> u32 {
    let start = content_hash.get(..8).unwrap_or_default();
    let bits = u32::from_str_radix(start, 16).unwrap_or_default();
    (bits >> 1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_a_content_is_a_positive_number() {
        assert_eq!(version_of("ffffffff00"), 0x7fff_ffff);
        assert_eq!(version_of("00000001aa"), 1);
        assert_eq!(version_of("00000004aa"), 2);
    }
}
