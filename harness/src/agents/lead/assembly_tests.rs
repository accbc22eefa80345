//! Order of the middlewares of a lead agent.

use std::path::Path;

use serde_json::json;

use super::*;
use crate::agents::lead::LeadAgentSpec;
use crate::clock::SystemClock;
use crate::models::{ModelCatalog, ScriptedModel};
use crate::sandbox::{FileHome, FileLimits};

#[test]
fn full_chain_follows_the_fixed_order() {
    let catalog =
        ModelCatalog::new([], Arc::new(SystemClock)).with_model(Arc::new(ScriptedModel::default()));
    let mut spec = LeadAgentSpec::new(Arc::new(catalog));
    spec.files = Some(FileHome::new(Path::new("/nowhere"), FileLimits::default()));
    spec.guards.guardrails =
        serde_json::from_value(json!({"enabled": true, "provider": {"use": "allowlist"}})).unwrap();
    spec.guards.token_budget.enabled = true;
    spec.summarization.enabled = true;
    let agents = AgentFactory::new(spec);
    let chain = agents.middlewares(
        &LeadOptions::read(json!({"is_plan_mode": true}).as_object().unwrap()),
        &Persona::default(),
        &AgentSkills::default(),
        "m",
        &ToolRegistry::new(),
        &agents.spec.guards,
    );
    let names: Vec<&str> = chain.iter().map(|middleware| middleware.name()).collect();
    let known: Vec<&str> = order::ORDER
        .iter()
        .copied()
        .filter(|name| names.contains(name))
        .collect();
    assert_eq!(names, known, "each middleware is at its position, once");
    let missing: Vec<&str> = order::ORDER
        .iter()
        .copied()
        .filter(|name| !names.contains(name))
        .collect();
    assert_eq!(
        missing,
        [
            "SkillsMiddleware",
            "MemoryMiddleware",
            "SubagentUsageMiddleware",
            "ViewImageMiddleware",
            "SubagentLimitMiddleware",
            "*"
        ],
        "these need skills, a memory store, `view_image` and `task`"
    );
}
