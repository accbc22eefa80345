//! Configuration and prompts of the kind `acp`; sessions with programs are tests of the tool.

use std::path::Path;

use serde_json::json;

use super::*;
use crate::acp::AcpContext;
use crate::flow::adapter::{ExpectedOutput, TurnMessage};
use crate::ids::SeededIds;
use crate::runtime::actor_context::ActorContext;
use crate::sandbox::{FileHome, FileLimits};

#[derive(Debug)]
struct NoDeltas;

impl DeltaSink for NoDeltas {
    fn delta(&self, _delta: super::super::adapter::TurnDelta) {}
}

fn factory() -> AcpFactory {
    let agents = json!({"coder": {"command": "coder", "description": "Writes code."}});
    let agents = serde_json::from_value(agents).unwrap();
    let files = FileHome::new(Path::new("/nowhere"), FileLimits::default());
    let context = Arc::new(AcpContext::new(files, vec![], None));
    let tool = InvokeAcpAgent::new(agents, context).unwrap();
    AcpFactory::new(Arc::new(tool), Arc::new(SeededIds::new(1)))
}

fn agent(config: Value) -> Arc<EffectiveAgent> {
    Arc::new(EffectiveAgent {
        agent_id: "a".to_owned(),
        adapter_kind: KIND.to_owned(),
        model_profile: Default::default(),
        tool_policy: Default::default(),
        memory_policy: Default::default(),
        subagent_policy: Default::default(),
        timeouts: Default::default(),
        budgets: Default::default(),
        adapter_config: config.as_object().cloned().unwrap_or_default(),
        output_kind: None,
        turn_mode: None,
        tools: Vec::new(),
        asset: None,
    })
}

fn invocation(agent: &Arc<EffectiveAgent>) -> AgentInvocation {
    let message = |role, content: &str| TurnMessage {
        role,
        content: content.to_owned(),
    };
    AgentInvocation {
        invocation_id: InvocationId("i".to_owned()),
        session_id: SessionId("s".to_owned()),
        run_id: "run".to_owned(),
        flow_name: "F".to_owned(),
        node_id: "n".to_owned(),
        visit: 1,
        agent: agent.clone(),
        turn_mode: TurnMode::Plan,
        system_prompt: "Be brief.".to_owned(),
        user_prompt: "Work.".to_owned(),
        segments: Arc::from([]),
        input: Map::new(),
        messages: Arc::from([
            message(TurnRole::User, "before"),
            message(TurnRole::Assistant, "yes"),
        ]),
        expected_output: Some(ExpectedOutput {
            schema_ref: "plan".to_owned(),
            schema: None,
        }),
        model: None,
        temperature: None,
        max_tokens: None,
        answer: None,
    }
}

#[test]
fn entry_must_be_configured() {
    let table = [
        (json!({"agent": "coder"}), None),
        (json!({}), Some("missing_agent")),
        (json!({"agent": 5}), Some("missing_agent")),
        (json!({"agent": "nobody"}), Some("unknown_agent")),
    ];
    for (config, expected) in table {
        let found = factory().validate_config(&Map::new(), &agent(config.clone()));
        let code = found.first().map(|finding| finding.code.as_str());
        assert_eq!(code, expected, "{config}");
    }
}

#[test]
fn prompt_has_all_parts_of_the_turn() {
    let expected = "Be brief.\n\nEarlier task:\nbefore\n\nYour earlier answer:\nyes\n\nWork.\n\n\
                    End your answer with one JSON object, the plan.";
    assert_eq!(prompt(&invocation(&agent(json!({})))), expected);
}

#[tokio::test]
async fn turn_without_a_run_is_a_clear_failure() {
    let agent = agent(json!({"agent": "coder"}));
    let context = AdapterContext {
        flow_name: "F".to_owned(),
        flow_config: Map::new(),
        agent: agent.clone(),
        actor: ActorContext::user("ann"),
    };
    let adapter = factory().create(context).await.unwrap();
    let (runtime, cancel) = (TurnRuntime::default(), CancellationToken::new());
    let turn = adapter.run_turn(invocation(&agent), runtime, &NoDeltas, cancel);
    assert_eq!(turn.await.error.unwrap().code, "runtime_missing");
}
