//! Tests of the binding path; each quotes the rule of the specification that it checks.

use serde_json::{Value, json};

use super::{AdapterList, Binder, Binding, BindingError, KnownAdapter, KnownAdapters};
use crate::adapter::TurnMode;
use crate::assets::PromptAssetManifest;
use crate::schema::{Document, Flow, OutputKind};

const KINDS: [&str; 4] = ["deerflow", "fake", "other", "pi-mono"];

fn flow(node: Value, agents: Value) -> Flow {
    let mut node = node;
    node["nodeId"] = json!("n");
    let value = json!({
        "meta": {"schemaVersion": "2.0", "name": "case"},
        "agents": {"agentDefs": agents},
        "graph": {"nodes": [node], "edges": [], "startNodeId": "n"},
        "runtime": {"adapterConfig": {
            "pi-mono": {"baseUrl": "http://flow", "transport": "http", "x": 1},
            "deepseek": {"x": 2},
        }},
        "layout": {"nodeBindings": [{
            "nodeId": "n", "agentId": "b", "overrides": {"modelProfile": {"systemPrompt": "OVERRIDE"}},
        }]},
    });
    Document::from_value(value).unwrap().flow
}

fn manifest() -> PromptAssetManifest {
    serde_json::from_value(json!({
        "globalSystemPrompt": "GLOBAL",
        "instructions": {"style": "STYLE"},
        "skills": {"find": "FIND"},
        "agents": {
            "planner": {
                "name": "P", "description": "d", "outputKind": "plan", "adapterKind": "other",
                "model": "m-asset", "turnMode": "plan", "tools": ["search"], "body": "BODY",
                "includes": {"instructions": ["style", "style"], "skills": ["find"]},
            },
            "broken": {"name": "B", "description": "d", "outputKind": "text", "body": ""},
        },
        "errors": [{"code": "missing_include", "message": "includes skill `x`", "agentId": "broken"}],
    }))
    .unwrap()
}

fn bind_with(
    node: Value,
    agents: Value,
    manifest: &PromptAssetManifest,
) -> Result<Binding, BindingError> {
    let flow = flow(node, agents);
    let adapters = AdapterList::new(KINDS);
    let mut binder = Binder::new(&flow, manifest, &adapters);
    binder.bind(&flow.graph.nodes[0])
}

fn bind(node: Value, agents: Value) -> Result<Binding, BindingError> {
    bind_with(node, agents, &manifest())
}

fn two_agents() -> Value {
    json!([{"agentId": "a", "adapterKind": "fake"}, {"agentId": "b", "adapterKind": "other"}])
}

/// "node.agentId is the executable source of truth for choosing an agent definition."
#[test]
fn agent_id_chooses_the_agent_definition() {
    let bound = bind(json!({"agentId": "b"}), two_agents()).unwrap();
    assert_eq!(
        (bound.agent.agent_id.as_str(), bound.is_fallback),
        ("b", false)
    );
}

/// "agentDef.adapterKind is the executable source of truth for choosing a runtime adapter
/// extension."
#[test]
fn adapter_kind_chooses_the_adapter() {
    let bound = bind(json!({"agentId": "b"}), two_agents()).unwrap();
    assert_eq!(bound.adapter.kind, "other");
    assert_eq!(bound.agent.adapter_kind, "other");
}

/// "layout.nodeBindings is descriptive metadata for layout-aware tooling and documentation."
#[test]
fn node_bindings_of_the_layout_never_bind() {
    let bound = bind(json!({"agentId": "a"}), two_agents()).unwrap();
    assert_eq!(bound.agent.agent_id, "a", "the layout names b");
    assert_eq!(
        bind(json!({}), two_agents()).unwrap_err(),
        BindingError::Missing
    );
}

/// "layout.nodeBindings[*].overrides is currently reserved metadata and is not merged into runtime
/// execution."
#[test]
fn overrides_of_the_layout_are_not_merged() {
    let bound = bind(json!({"agentId": "b"}), two_agents()).unwrap();
    assert_eq!(bound.agent.model_profile.system_prompt, None);
}

/// "When node.agentRef is present, resolution goes through the PromptAssetManifest."
#[test]
fn agent_ref_resolves_through_the_manifest() {
    let bound = bind(json!({"agentRef": "planner"}), json!([])).unwrap();
    let agent = &bound.agent;
    assert_eq!(
        (agent.agent_id.as_str(), agent.adapter_kind.as_str()),
        ("planner", "other")
    );
    assert_eq!(agent.model_profile.model.as_deref(), Some("m-asset"));
    assert_eq!(agent.turn_mode, Some(TurnMode::Plan));
    assert_eq!(agent.output_kind, Some(OutputKind::Plan));
    assert_eq!(agent.tools, ["search"]);
    let prompt = agent.asset.as_ref().unwrap();
    let texts = |list: &[crate::compiled::AssetText]| {
        list.iter().map(|t| t.text.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(prompt.global.as_ref().map(|t| &*t.text), Some("GLOBAL"));
    assert_eq!(texts(&prompt.instructions), ["STYLE"], "each once");
    assert_eq!(texts(&prompt.skills), ["FIND"]);
    assert_eq!(&*prompt.body.text, "BODY");
}

/// "When node.agentRef is absent, resolution falls through to the existing agentId → agentDefs
/// path."
#[test]
fn agent_without_reference_comes_from_the_definitions() {
    let agents = json!([{"agentId": "planner", "adapterKind": "fake"}]);
    let bound = bind(json!({"agentId": "planner"}), agents).unwrap();
    assert_eq!(bound.agent.adapter_kind, "fake");
    assert_eq!(bound.agent.asset, None);
}

/// "Both paths converge at adapterKind → runtime adapter extension → transport."
#[test]
fn both_paths_meet_at_the_adapter_kind() {
    let agents = json!([{"agentId": "a", "adapterKind": "other"}]);
    let by_id = bind(json!({"agentId": "a"}), agents).unwrap();
    let by_reference = bind(json!({"agentRef": "planner"}), json!([])).unwrap();
    assert_eq!(by_id.adapter, by_reference.adapter);
}

/// "agentRef takes precedence over agentId when both are present."
#[test]
fn agent_ref_takes_precedence_over_agent_id() {
    let bound = bind(json!({"agentRef": "planner", "agentId": "a"}), two_agents()).unwrap();
    assert_eq!(bound.agent.agent_id, "planner");
}

#[test]
fn asset_is_laid_over_the_inline_definition() {
    let agents = json!([{
        "agentId": "planner", "adapterKind": "fake", "outputKind": "text",
        "modelProfile": {"model": "m-inline", "systemPrompt": "INLINE", "temperature": 0.3},
        "budgets": {"maxSteps": 3}, "timeouts": {"turnMs": 5}, "adapterConfig": {"k": "v"},
        "memoryPolicy": {"maxItems": 7},
    }]);
    let agent = bind(json!({"agentRef": "planner"}), agents).unwrap().agent;
    assert_eq!(agent.adapter_kind, "other");
    assert_eq!(agent.model_profile.model.as_deref(), Some("m-asset"));
    assert_eq!(agent.model_profile.temperature, Some(0.3));
    assert_eq!(
        agent.model_profile.system_prompt, None,
        "the prompt of the asset counts"
    );
    assert_eq!(agent.budgets.max_steps, Some(3));
    assert_eq!(agent.timeouts.turn_ms, Some(5));
    assert_eq!(agent.memory_policy.max_items, Some(7));
    assert_eq!(agent.adapter_config["k"], "v");
}

#[test]
fn reference_falls_back_to_the_definition_of_its_id() {
    let bound = bind(json!({"agentRef": "a"}), two_agents()).unwrap();
    assert_eq!(
        (bound.agent.agent_id.as_str(), bound.is_fallback),
        ("a", true)
    );
}

#[test]
fn broken_reference_never_falls_to_agent_id() {
    let error = bind(json!({"agentRef": "ghost", "agentId": "a"}), two_agents()).unwrap_err();
    assert_eq!(error.code().as_str(), "agent_ref_not_found");
    assert!(
        error.to_string().contains("a, b, broken, planner"),
        "{error}"
    );
}

#[test]
fn asset_with_errors_is_refused() {
    let agents = json!([{"agentId": "broken", "adapterKind": "fake"}]);
    let error = bind(json!({"agentRef": "broken"}), agents).unwrap_err();
    assert_eq!(error.code().as_str(), "agent_ref_invalid");
    assert!(error.to_string().contains("includes skill `x`"), "{error}");
}

#[test]
fn config_agent_id_is_the_last_resort() {
    let node = json!({"config": {"agentId": "b"}});
    assert_eq!(bind(node, two_agents()).unwrap().agent.agent_id, "b");
    let node = json!({"agentId": "a", "config": {"agentId": "b"}});
    assert_eq!(bind(node, two_agents()).unwrap().agent.agent_id, "a");
    let node = json!({"agentRef": "", "agentId": "", "config": {"agentId": "b"}});
    assert_eq!(bind(node, two_agents()).unwrap().agent.agent_id, "b");
}

#[test]
fn unknown_agents_and_kinds_name_the_known_ones() {
    let error = bind(json!({"agentId": "ghost"}), two_agents()).unwrap_err();
    assert!(error.to_string().contains("the ids are a, b"), "{error}");
    let agents = json!([{"agentId": "a", "adapterKind": "nope"}]);
    let error = bind(json!({"agentId": "a"}), agents).unwrap_err();
    assert_eq!(error.code().as_str(), "adapter_not_found");
    assert!(
        error.to_string().contains("deerflow, fake, other, pi-mono"),
        "{error}"
    );
}

#[test]
fn aliases_name_the_canonical_kind() {
    let agents = json!([
        {"agentId": "a", "adapterKind": "deepseek", "adapterConfig": {"baseUrl": "http://agent"}},
        {"agentId": "h", "adapterKind": "harness"},
    ]);
    let bound = bind(json!({"agentId": "a"}), agents.clone()).unwrap();
    assert_eq!(bound.agent.adapter_kind, "pi-mono");
    let settings = json!(bound.agent.adapter_config);
    assert_eq!(
        settings,
        json!({"transport": "http", "baseUrl": "http://agent", "x": 2})
    );
    let bound = bind(json!({"agentId": "h"}), agents).unwrap();
    assert_eq!(bound.adapter.kind, "deerflow");
    assert!(!bound.adapter.has_default_turn_limit);
}

#[test]
fn adapter_settings_of_the_agent_precede_those_of_the_flow() {
    let agents = json!([{"agentId": "a", "adapterKind": "pi-mono", "adapterConfig": {"x": 9}}]);
    let agent = bind(json!({"agentId": "a"}), agents).unwrap().agent;
    assert_eq!(agent.adapter_config["x"], 9);
    assert_eq!(agent.adapter_config["baseUrl"], "http://flow");
}

#[test]
fn another_major_contract_version_is_incompatible() {
    struct Old(&'static str);
    impl KnownAdapters for Old {
        fn find(&self, kind: &str) -> Option<KnownAdapter> {
            Some(KnownAdapter {
                kind: kind.to_owned(),
                contract_version: self.0.to_owned(),
                has_default_turn_limit: true,
            })
        }
        fn kinds(&self) -> Vec<String> {
            Vec::new()
        }
    }
    let flow = flow(json!({"agentId": "a"}), two_agents());
    let manifest = PromptAssetManifest::default();
    let bind = |version| {
        Binder::new(&flow, &manifest, &Old(version))
            .bind(&flow.graph.nodes[0])
            .map(|_| ())
    };
    assert_eq!(
        bind("2.0").unwrap_err().code().as_str(),
        "adapter_incompatible"
    );
    assert_eq!(bind("1.7"), Ok(()));
}
