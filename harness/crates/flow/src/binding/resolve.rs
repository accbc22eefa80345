//! The path from a node to its agent and adapter.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::effective::{from_asset, from_definition};
use super::error::BindingError;
use super::known_adapters::{KnownAdapter, KnownAdapters, settings_of_alias};
use crate::adapter::CONTRACT_VERSION;
use crate::assets::PromptAssetManifest;
use crate::compiled::EffectiveAgent;
use crate::schema::{AgentDef, Flow, Node};

/// Reference of a node to its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindingSource<'d> {
    /// `agentRef`.
    Reference(&'d str),
    /// `agentId` or `config.agentId`.
    Definition(&'d str),
}

/// An agent with its adapter.
#[derive(Debug, Clone)]
pub struct Binding {
    /// Agent.
    pub agent: Arc<EffectiveAgent>,
    /// Adapter.
    pub adapter: KnownAdapter,
    /// `true` if `agentRef` names an agent definition, because there is no asset.
    pub is_fallback: bool,
}

/// Resolves the agents of a flow, each once.
pub struct Binder<'d> {
    definitions: HashMap<&'d str, &'d AgentDef>,
    flow_config: Option<&'d indexmap::IndexMap<String, Map<String, Value>>>,
    manifest: &'d PromptAssetManifest,
    adapters: &'d dyn KnownAdapters,
    bound: HashMap<BindingSource<'d>, Result<Binding, BindingError>>,
}

impl<'d> Binder<'d> {
    /// Creates a binder. Of two agent definitions with one id the first counts.
    pub fn new(
        flow: &'d Flow,
        manifest: &'d PromptAssetManifest,
        adapters: &'d dyn KnownAdapters,
    ) -> Self {
        let mut definitions = HashMap::new();
        for definition in &flow.agents.agent_defs {
            definitions
                .entry(definition.agent_id.as_str())
                .or_insert(definition);
        }
        Self {
            definitions,
            flow_config: flow.runtime.as_ref().map(|runtime| &runtime.adapter_config),
            manifest,
            adapters,
            bound: HashMap::new(),
        }
    }

    /// Resolves the agent of a node.
    ///
    /// # Errors
    /// The first rule that the binding breaks.
    pub fn bind(&mut self, node: &'d Node) -> Result<Binding, BindingError> {
        let source = binding_source(node).ok_or(BindingError::Missing)?;
        if let Some(bound) = self.bound.get(&source) {
            return bound.clone();
        }
        let bound = self.resolve(source);
        self.bound.insert(source, bound.clone());
        bound
    }

    /// Returns `runtime.adapterConfig` for a kind and the name that an agent gives it.
    pub fn flow_config(&self, canonical: &str, written: &str) -> Map<String, Value> {
        let mut merged = settings_of_alias(written);
        for kind in [canonical, written] {
            if let Some(settings) = self.flow_config.and_then(|config| config.get(kind)) {
                merged.extend(settings.clone());
            }
        }
        merged
    }

    fn resolve(&self, source: BindingSource<'d>) -> Result<Binding, BindingError> {
        let (agent, is_fallback) = match source {
            BindingSource::Definition(id) => (from_definition(self.definition(id)?), false),
            BindingSource::Reference(id) => self.reference(id)?,
        };
        self.with_adapter(agent, is_fallback)
    }

    fn reference(&self, id: &str) -> Result<(EffectiveAgent, bool), BindingError> {
        let problems: Vec<&str> = self
            .manifest
            .errors_of(id)
            .map(|error| error.message.as_str())
            .collect();
        if !problems.is_empty() {
            return Err(BindingError::RefInvalid {
                agent: id.to_owned(),
                problems: problems.join("; "),
            });
        }
        let definition = self.definitions.get(id).copied();
        match (self.manifest.agents.get(id), definition) {
            (Some(asset), inline) => Ok((from_asset(id, asset, inline, self.manifest), false)),
            (None, Some(inline)) => Ok((from_definition(inline), true)),
            (None, None) => {
                let mut known: Vec<String> = self.manifest.agents.keys().cloned().collect();
                known.extend(self.definition_ids());
                known.sort();
                known.dedup();
                Err(BindingError::RefNotFound {
                    agent: id.to_owned(),
                    known,
                })
            }
        }
    }

    fn definition(&self, id: &str) -> Result<&'d AgentDef, BindingError> {
        let definition = self.definitions.get(id).copied();
        definition.ok_or_else(|| BindingError::AgentNotFound {
            agent: id.to_owned(),
            known: self.definition_ids(),
        })
    }

    fn definition_ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.definitions.keys().map(|&id| id.to_owned()).collect();
        ids.sort();
        ids
    }

    fn with_adapter(
        &self,
        mut agent: EffectiveAgent,
        is_fallback: bool,
    ) -> Result<Binding, BindingError> {
        let Some(adapter) = self.adapters.find(&agent.adapter_kind) else {
            return Err(BindingError::AdapterNotFound {
                agent: agent.agent_id,
                kind: agent.adapter_kind,
                known: self.adapters.kinds(),
            });
        };
        if major(&adapter.contract_version) != major(CONTRACT_VERSION) {
            return Err(BindingError::AdapterIncompatible {
                agent: agent.agent_id,
                kind: adapter.kind,
                version: adapter.contract_version,
            });
        }
        let mut settings = self.flow_config(&adapter.kind, &agent.adapter_kind);
        settings.extend(std::mem::take(&mut agent.adapter_config));
        agent.adapter_config = settings;
        agent.adapter_kind.clone_from(&adapter.kind);
        Ok(Binding {
            agent: Arc::new(agent),
            adapter,
            is_fallback,
        })
    }
}

/// Returns how a node names its agent: `agentRef`, else `agentId`, else `config.agentId`.
pub fn binding_source(node: &Node) -> Option<BindingSource<'_>> {
    let config = node.config.get("agentId").and_then(Value::as_str);
    let definition = non_empty(node.agent_id.as_deref()).or(non_empty(config));
    non_empty(node.agent_ref.as_deref())
        .map(BindingSource::Reference)
        .or(definition.map(BindingSource::Definition))
}

fn non_empty(id: Option<&str>) -> Option<&str> {
    id.filter(|id| !id.is_empty())
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or(version)
}
