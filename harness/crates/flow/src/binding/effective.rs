//! Merges agent definitions and agent assets.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::assets::{AgentAsset, GLOBAL_PROMPT_FILE, PromptAssetManifest, TextAsset};
use crate::compiled::{AssetPrompt, AssetText, EffectiveAgent};
use crate::schema::AgentDef;

/// Returns the agent of a definition. The adapter's kind and settings are as written.
pub(super) fn from_definition(definition: &AgentDef) -> EffectiveAgent {
    EffectiveAgent {
        agent_id: definition.agent_id.clone(),
        adapter_kind: definition.adapter_kind.clone(),
        model_profile: definition.model_profile.clone().unwrap_or_default(),
        tool_policy: definition.tool_policy.clone().unwrap_or_default(),
        memory_policy: definition.memory_policy.clone().unwrap_or_default(),
        subagent_policy: definition.subagent_policy.clone().unwrap_or_default(),
        timeouts: definition.timeouts.clone().unwrap_or_default(),
        budgets: definition.budgets.clone().unwrap_or_default(),
        adapter_config: definition.adapter_config.clone().unwrap_or_default(),
        output_kind: definition.output_kind,
        turn_mode: None,
        tools: Vec::new(),
        asset: None,
    }
}

/// Returns the agent of an asset over the definition with the same id. The definition adds
/// policies, time limits, budgets and adapter settings.
pub(super) fn from_asset(
    id: &str,
    asset: &AgentAsset,
    inline: Option<&AgentDef>,
    manifest: &PromptAssetManifest,
) -> EffectiveAgent {
    let mut agent = match inline {
        Some(definition) => from_definition(definition),
        None => from_definition(&AgentDef {
            agent_id: id.to_owned(),
            adapter_kind: asset.adapter_kind.clone(),
            model_profile: None,
            tool_policy: None,
            memory_policy: None,
            subagent_policy: None,
            timeouts: None,
            budgets: None,
            adapter_config: None,
            output_kind: None,
            extra: serde_json::Map::new(),
        }),
    };
    let profile = &mut agent.model_profile;
    profile.model = asset.model.clone().or(profile.model.take());
    profile.temperature = asset.temperature.or(profile.temperature);
    profile.system_prompt = None;
    agent.adapter_kind.clone_from(&asset.adapter_kind);
    agent.output_kind = Some(asset.output_kind);
    agent.turn_mode = Some(asset.turn_mode);
    agent.tools.clone_from(&asset.tools);
    agent.asset = Some(prompt_of(id, asset, manifest));
    agent
}

fn prompt_of(id: &str, asset: &AgentAsset, manifest: &PromptAssetManifest) -> AssetPrompt {
    let global = manifest.global_system_prompt.as_deref();
    AssetPrompt {
        global: global
            .filter(|_| asset.includes.global_system_prompt)
            .map(|text| AssetText {
                label: "global system prompt".to_owned(),
                source_path: Some(GLOBAL_PROMPT_FILE.to_owned()),
                text: Arc::from(text),
            }),
        instructions: texts(&asset.includes.instructions, &manifest.instructions),
        skills: texts(&asset.includes.skills, &manifest.skills),
        body: AssetText {
            label: if asset.name.is_empty() {
                id
            } else {
                &asset.name
            }
            .to_owned(),
            source_path: asset.source_path.clone(),
            text: Arc::from(asset.body.as_str()),
        },
    }
}

/// Returns the named texts in this order, each once.
fn texts(names: &[String], assets: &IndexMap<String, TextAsset>) -> Vec<AssetText> {
    let mut seen = HashSet::new();
    names
        .iter()
        .filter(|name| seen.insert(name.as_str()))
        .filter_map(|name| {
            let asset = assets.get(name)?;
            Some(AssetText {
                label: name.clone(),
                source_path: asset.source_path.clone(),
                text: Arc::from(asset.content.as_str()),
            })
        })
        .collect()
}
