//! The fake adapter runs the contract suite.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::compiled::EffectiveAgent;
use crate::testkit::{self, AdapterSubject};

fn subject() -> AdapterSubject {
    let script = json!({
        "bad": [{"status": "failed", "error": {"code": "E", "message": "m"}}],
        "good": [{"text": "one two", "deltas": ["one ", "two"]}],
    });
    let script: HashMap<String, Vec<ScriptedTurn>> = serde_json::from_value(script).unwrap();
    AdapterSubject {
        factory: Arc::new(FakeFactory::scripted("fake", script)),
        agent: Arc::new(EffectiveAgent {
            agent_id: "a".to_owned(),
            adapter_kind: "fake".to_owned(),
            model_profile: Default::default(),
            tool_policy: Default::default(),
            memory_policy: Default::default(),
            subagent_policy: Default::default(),
            timeouts: Default::default(),
            budgets: Default::default(),
            adapter_config: Default::default(),
            output_kind: None,
            turn_mode: None,
            tools: Vec::new(),
            asset: None,
        }),
        succeeding_prompt: "work".to_owned(),
        succeeding_node: "good".to_owned(),
        failing_prompt: "fail".to_owned(),
        failing_node: "bad".to_owned(),
        runtime: Default::default(),
    }
}

#[tokio::test]
async fn fake_adapter_keeps_the_contract() {
    testkit::adapter_keeps_the_contract(&subject()).await;
}

#[tokio::test]
async fn dry_run_passes_evaluations() {
    let factory = FakeFactory::dry_run("fake");
    let subject = AdapterSubject {
        factory: Arc::new(factory),
        ..subject()
    };
    testkit::turns_of_a_session_follow_each_other(&subject).await;
}
