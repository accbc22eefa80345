//! Checks of the settings of nodes.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::model::{ControlRole, Model, NodeModel};
use super::options::Options;
use crate::condition::Condition;
use crate::documents::DocumentRules;
use crate::finding::{Collector, Finding, FindingCode, push_segment};
use crate::kinds::{KindDriver, settings_of};
use crate::schema::shape::{Problem, check_fields};

/// Folder of the thread's files that settings may name.
const THREAD_FILES: &str = "/mnt/user-data/";

/// Checks the settings of each node. Returns them without nulls and with integers as integers, in
/// the order of the nodes.
pub(crate) fn check_settings(
    model: &Model<'_>,
    options: &Options<'_>,
    findings: &mut Collector,
) -> Vec<Map<String, Value>> {
    let mut has_error_edge = vec![false; model.nodes.len()];
    for edge in &model.edges {
        has_error_edge[edge.source] |= edge.control == ControlRole::Error;
    }
    let nodes = model.nodes.iter().zip(has_error_edge);
    nodes
        .map(|(node, has_error_edge)| {
            let mut config = node.node.config.clone();
            if let Some(driver) = node.driver {
                let mut check = Check {
                    node,
                    options,
                    findings,
                };
                check.shapes(driver, &mut config);
                check.rules(driver, &config, has_error_edge);
            }
            config
        })
        .collect()
}

struct Check<'n, 'd, 'o, 'f> {
    node: &'n NodeModel<'d>,
    options: &'o Options<'o>,
    findings: &'f mut Collector,
}

impl Check<'_, '_, '_, '_> {
    fn shapes(&mut self, driver: KindDriver, config: &mut Map<String, Value>) {
        let settings = settings_of(driver);
        let path = self.node.pointer("/config");
        let mut problems = Vec::new();
        for record in [settings.own, settings.common] {
            check_fields(record, config, &path, &mut |place, problem, message| {
                // The other record may know the field.
                if problem == Problem::Invalid || below(&path, place).contains('/') {
                    problems.push((place.to_owned(), problem, message));
                }
            });
        }
        let fields = || settings.own.fields.iter().chain(settings.common.fields);
        for key in config
            .keys()
            .filter(|key| fields().all(|field| field.name != *key))
        {
            let mut place = path.clone();
            push_segment(&mut place, key);
            let message = format!("is no setting of `{}`", self.node.kind);
            problems.push((place, Problem::Unknown, message));
        }
        for (place, problem, message) in problems {
            let code = match problem {
                Problem::Invalid => FindingCode::InvalidConfig,
                Problem::Unknown if self.options.unknown_fields => FindingCode::UnknownField,
                Problem::Unknown => continue,
            };
            let field = below(&path, &place).replace('/', ".");
            self.add(code, &field, format!("`{field}`: {message}"), place);
        }
    }

    /// Checks what shapes cannot express.
    fn rules(&mut self, driver: KindDriver, config: &Map<String, Value>, has_error_edge: bool) {
        if config.get("onError").and_then(Value::as_str) == Some("branch") && !has_error_edge {
            self.invalid(
                "onError",
                "no edge leaves handle `error`; add one or use `fail`",
            );
        }
        match driver {
            KindDriver::Agent => self.turn_mode(config.get("turnMode")),
            KindDriver::Loader(_) => {
                if let Some(folder) = text(config, "directory") {
                    self.path("directory", folder, true);
                }
                if let Err(error) = DocumentRules::read(config) {
                    self.invalid("filePattern", &error.to_string());
                }
                if let Some(url) = text(config, "url")
                    && !(url.starts_with("https://") || url.starts_with("http://"))
                {
                    self.invalid(
                        "url",
                        "expected an address that begins with http:// or https://",
                    );
                }
            }
            KindDriver::Prompt => {
                if let Some(file) = text(config, "promptFile") {
                    self.path("promptFile", file, self.options.project.is_some());
                }
            }
            KindDriver::Loop => {
                if let Some(condition) = text(config, "condition")
                    && let Err(error) = Condition::parse(condition)
                {
                    let message = format!("the condition is not valid {error}");
                    let place = self.node.pointer("/config/condition");
                    self.add(FindingCode::InvalidCondition, "condition", message, place);
                }
            }
            KindDriver::Human => self.options(config.get("options")),
            _ => {}
        }
    }

    fn turn_mode(&mut self, mode: Option<&Value>) {
        let (code, message) = match mode.map(Value::as_str) {
            None | Some(Some("normal" | "plan" | "evaluate")) => return,
            Some(Some(alias @ ("single" | "multi"))) => (
                FindingCode::TurnModeAlias,
                format!("`turnMode` {alias} is read as normal"),
            ),
            Some(_) => (
                FindingCode::InvalidTurnMode,
                "`turnMode`: expected one of normal, plan, evaluate".to_owned(),
            ),
        };
        let place = self.node.pointer("/config/turnMode");
        self.add(code, "turnMode", message, place);
    }

    fn path(&mut self, field: &str, path: &str, relative: bool) {
        let leads_out = path.split(['/', '\\']).any(|name| name == "..");
        let is_absolute = path.starts_with(['/', '\\', '~']) || path.contains(':');
        let is_valid = !leads_out && (path.starts_with(THREAD_FILES) || relative && !is_absolute);
        if !is_valid {
            let below = if relative {
                "expected a path below the project or below"
            } else {
                "expected a path below"
            };
            self.invalid(field, &format!("{below} {THREAD_FILES}, without `..`"));
        }
    }

    fn options(&mut self, options: Option<&Value>) {
        let options = options.and_then(Value::as_array).into_iter().flatten();
        let mut seen = HashSet::new();
        for option in options.filter_map(Value::as_str) {
            if ["out", "response"].contains(&option) {
                self.invalid(
                    "options",
                    "`out` and `response` are handles of each human node",
                );
            } else if !seen.insert(option) {
                self.invalid("options", "each option must be different");
            }
        }
    }

    fn invalid(&mut self, field: &str, problem: &str) {
        let place = self.node.pointer(&format!("/config/{field}"));
        self.add(
            FindingCode::InvalidConfig,
            field,
            format!("`{field}`: {problem}"),
            place,
        );
    }

    fn add(&mut self, code: FindingCode, field: &str, message: String, place: String) {
        self.findings.add(
            Finding::new(code, message)
                .at(place)
                .node(&self.node.node.node_id)
                .field(field),
        );
    }
}

/// Returns the part of a pointer below another one; empty if there is none.
fn below<'p>(pointer: &str, place: &'p str) -> &'p str {
    place.get(pointer.len() + 1..).unwrap_or_default()
}

/// Returns a text that is not empty.
fn text<'c>(config: &'c Map<String, Value>, key: &str) -> Option<&'c str> {
    config
        .get(key)?
        .as_str()
        .filter(|text| !text.trim().is_empty())
}
