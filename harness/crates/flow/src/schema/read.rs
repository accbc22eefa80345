//! Reads a flow document and reports every structural problem.

use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

use super::document::Flow;
use super::json_lines::lines_of;
use super::lines::Lines;
use super::shape::{Problem, check};
use super::syntax::{self, SyntaxError};
use super::tables::FLOW_SHAPE;
use crate::finding::{Collector, Finding, FindingCode, MAX_FINDINGS, Validation};

/// A flow document with the text that it was read from.
#[derive(Debug)]
pub struct Document {
    /// Document as it is written; defaults are not filled in.
    pub flow: Flow,
    text: String,
    value: Value,
    unknown_fields: Vec<Finding>,
    lines: OnceLock<Option<Lines>>,
}

impl Document {
    /// Reads a YAML or JSON text.
    ///
    /// ```
    /// use deerflow_flow::schema::Document;
    ///
    /// let document = Document::read(
    ///     "meta: {schemaVersion: 2.0, name: hello}
    /// agents: {agentDefs: [{agentId: a, adapterKind: fake}]}
    /// graph:
    ///   startNodeId: greet
    ///   nodes: [{nodeId: greet, nodeKind: agent.main, agentId: a}]
    ///   edges: []
    /// ")
    /// .unwrap();
    /// assert_eq!(document.flow.meta.schema_version, "2.0");
    ///
    /// let validation = Document::read("meta: {name: hello}").unwrap_err();
    /// assert_eq!(validation.errors[0].path.as_deref(), Some("/meta/schemaVersion"));
    /// assert_eq!(validation.errors[0].line, Some(1));
    /// ```
    ///
    /// # Errors
    /// All structural problems, each `schema_invalid`.
    pub fn read(text: &str) -> Result<Self, Validation> {
        let value = syntax::read(text).map_err(refused)?;
        Self::build(value, text.to_owned())
    }

    /// Reads a document from a value. Its text is the JSON of the value.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn from_value(value: Value) -> Result<Self, Validation> {
        syntax::check_size(&value).map_err(refused)?;
        let text = value.to_string();
        syntax::check_length(&text).map_err(refused)?;
        Self::build(value, text)
    }

    fn build(mut value: Value, text: String) -> Result<Self, Validation> {
        let mut invalid = Vec::new();
        let mut unknown = Vec::new();
        check(
            &FLOW_SHAPE,
            &mut value,
            "",
            &mut |path, problem, message| {
                let (list, code) = match problem {
                    Problem::Invalid => (&mut invalid, FindingCode::SchemaInvalid),
                    Problem::Unknown => (&mut unknown, FindingCode::UnknownField),
                };
                // One more than the collector lists, so that it states that there are more.
                if list.len() <= MAX_FINDINGS {
                    list.push(Finding::new(code, worded(path, &message)).at(path));
                }
            },
        );
        if invalid.is_empty() {
            match Flow::deserialize(&value) {
                Ok(flow) => {
                    unknown
                        .iter_mut()
                        .for_each(|finding| name_ends(finding, &value));
                    return Ok(Self {
                        flow,
                        text,
                        value,
                        unknown_fields: unknown,
                        lines: OnceLock::new(),
                    });
                }
                Err(error) => {
                    invalid.push(Finding::new(FindingCode::SchemaInvalid, error.to_string()));
                }
            }
        }
        let mut findings = Collector::default();
        for mut finding in invalid {
            name_ends(&mut finding, &value);
            findings.add(finding);
        }
        let lines = lines_of(&text);
        Err(findings.finish(|path| lines.as_ref()?.find(path)))
    }

    /// Returns the text that the document was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the document as a value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns a warning for each field that is not known.
    pub fn unknown_fields(&self) -> &[Finding] {
        &self.unknown_fields
    }

    /// Returns the line of the value at a JSON pointer, from 1.
    pub fn line(&self, pointer: &str) -> Option<u64> {
        self.lines
            .get_or_init(|| lines_of(&self.text))
            .as_ref()?
            .find(pointer)
    }
}

fn refused(error: SyntaxError) -> Validation {
    let mut finding = Finding::new(FindingCode::SchemaInvalid, error.message).at("");
    finding.line = error.line;
    let mut findings = Collector::default();
    findings.add(finding);
    findings.finish(|_| None)
}

fn worded(path: &str, message: &str) -> String {
    match path.rsplit('/').next() {
        Some(name) if !name.is_empty() => format!("`{name}`: {message}"),
        _ => format!("the document: {message}"),
    }
}

/// Names the node, edge or agent that the place of a finding belongs to.
pub(crate) fn name_ends(finding: &mut Finding, value: &Value) {
    let Some(path) = &finding.path else { return };
    let mut segments = path.split('/').skip(1);
    let (section, list, index) = (segments.next(), segments.next(), segments.next());
    let Some((index, position)) = index.and_then(|i| Some((i, i.parse::<usize>().ok()?))) else {
        return;
    };
    let id = |list: &str, key: &str| {
        let id = value.pointer(&format!("{list}/{index}/{key}"))?.as_str()?;
        (!id.is_empty()).then(|| id.to_owned())
    };
    match (section, list) {
        (Some("graph"), Some("nodes")) => finding.node_id = id("/graph/nodes", "nodeId"),
        (Some("graph"), Some("edges")) => finding.edge_index = Some(position),
        (Some("agents"), Some("agentDefs")) => {
            finding.agent_id = id("/agents/agentDefs", "agentId");
        }
        _ => {}
    }
}
