//! Hash of what a run is made of: the text of the flow and the files that it uses.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::compiled::{AssetText, CompiledNode, Driver, EffectiveAgent};

/// Returns the hash as lower-case hex. It changes exactly if the text, an asset that a node uses,
/// or a prompt file changes.
pub(super) fn content_hash(text: &str, nodes: &[CompiledNode]) -> String {
    let mut hash = Sha256::new();
    add(&mut hash, text);
    let mut assets: BTreeMap<&str, &EffectiveAgent> = BTreeMap::new();
    for node in nodes {
        match &node.driver {
            Driver::Agent(agent) if agent.agent.asset.is_some() => {
                assets.insert(&agent.agent.agent_id, &agent.agent);
            }
            Driver::Prompt(prompt) => {
                add(&mut hash, &node.id);
                add(&mut hash, &prompt.text);
            }
            _ => {}
        }
    }
    for agent in assets.into_values() {
        add_agent(&mut hash, agent);
    }
    hex::encode(hash.finalize())
}

fn add_agent(hash: &mut Sha256, agent: &EffectiveAgent) {
    let Some(asset) = &agent.asset else { return };
    let profile = &agent.model_profile;
    let facts = serde_json::json!([
        agent.agent_id,
        agent.adapter_kind,
        profile.model,
        profile.temperature,
        agent.turn_mode,
        agent.output_kind,
        agent.tools,
    ]);
    add(hash, &facts.to_string());
    let texts = asset
        .global
        .iter()
        .chain(&asset.instructions)
        .chain(&asset.skills);
    for AssetText { label, text, .. } in texts.chain([&asset.body]) {
        add(hash, label);
        add(hash, text);
    }
}

/// Adds a text with its length, so that the ends of texts count.
fn add(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text);
}
