//! What every place for users' agents promises.

use serde_json::{Map, json};

use crate::agents::custom::{AgentName, CustomAgent, CustomAgents, ModelOverrides};

fn name(text: &str) -> AgentName {
    AgentName::parse(text).expect("a name")
}

/// An agent with every field set.
fn agent(soul: &str) -> CustomAgent {
    CustomAgent {
        description: "looks things up: \"quickly\"".to_owned(),
        model: Some("big".to_owned()),
        tool_groups: Some(vec!["web".to_owned()]),
        skills: Some(vec![]),
        model_settings: Some(ModelOverrides { temperature: Some(0.5), max_tokens: Some(100) }),
        thinking_enabled: Some(false),
        reasoning_effort: Some("low".to_owned()),
        extra: Map::from_iter([("github".to_owned(), json!({"repo": "a/b"}))]),
        soul: soul.to_owned(),
        shared: false,
    }
}

/// Every field comes back, also after it was replaced, whatever the case of the name.
pub async fn what_is_saved_is_read_as_it_was(agents: &dyn CustomAgents) {
    assert_eq!(agents.get("ann", &name("scout")).await, Ok(None));
    for soul in ["# Scout\n\nümlaut: yes\n", "other"] {
        agents.save("ann", &name("Scout"), &agent(soul)).await.expect("to be kept");
        assert_eq!(agents.get("ann", &name("scout")).await, Ok(Some(agent(soul))));
    }
    let bare = CustomAgent { soul: "x".to_owned(), ..CustomAgent::default() };
    agents.save("ann", &name("bare"), &bare).await.expect("to be kept");
    assert_eq!(agents.get("ann", &name("bare")).await, Ok(Some(bare)));
    assert_eq!(agents.default_soul("ann").await, Ok(String::new()));
    agents.save_default_soul("ann", "be kind").await.expect("to be kept");
    assert_eq!(agents.default_soul("ann").await, Ok("be kind".to_owned()));
}

/// What one user keeps is not there for another, however alike their ids look.
pub async fn nobody_sees_anothers(agents: &dyn CustomAgents) {
    for user in ["a/b", "a-b", "../a-b"] {
        agents.save(user, &name("scout"), &agent(user)).await.expect("to be kept");
        agents.save_default_soul(user, user).await.expect("to be kept");
    }
    for user in ["a/b", "a-b", "../a-b"] {
        assert_eq!(agents.get(user, &name("scout")).await.map(|agent| agent.map(|agent| agent.soul)), Ok(Some(user.to_owned())));
        assert_eq!(agents.default_soul(user).await, Ok(user.to_owned()));
    }
    assert_eq!(agents.get("bob", &name("scout")).await, Ok(None));
}
