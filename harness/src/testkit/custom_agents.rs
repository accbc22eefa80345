//! Contract of stores for custom agents of users.

use serde_json::{Map, json};

use std::sync::Arc;

use crate::agents::custom::{
    AgentName, CustomAgent, CustomAgentError, CustomAgents, ModelOverrides, change,
};

fn name(text: &str) -> AgentName {
    AgentName::parse(text).expect("a name")
}

/// Returns an agent with every field set.
fn agent(soul: &str) -> CustomAgent {
    CustomAgent {
        description: "looks things up: \"quickly\"".to_owned(),
        model: Some("big".to_owned()),
        tool_groups: Some(vec!["web".to_owned()]),
        skills: Some(vec![]),
        model_settings: Some(ModelOverrides {
            temperature: Some(0.5),
            max_tokens: Some(100),
        }),
        thinking_enabled: Some(false),
        reasoning_effort: Some("low".to_owned()),
        extra: Map::from_iter([("github".to_owned(), json!({"repo": "a/b"}))]),
        soul: soul.to_owned(),
        shared: false,
    }
}

/// Stores an agent, replacing the user's agent of this name.
pub async fn keep(agents: &dyn CustomAgents, user: &str, text: &str, agent: &CustomAgent) {
    change(agents, user, &name(text), |_| {
        Ok::<_, CustomAgentError>(Some(agent.clone()))
    })
    .await
    .expect("stored");
}

/// Every field is read back, also after a replacement; the name is case-insensitive.
pub async fn saved_agent_is_read_back_unchanged(agents: &dyn CustomAgents) {
    assert_eq!(agents.get("ann", &name("scout")).await, Ok(None));
    for soul in ["# Scout\n\nümlaut: yes\n", "other"] {
        keep(agents, "ann", "Scout", &agent(soul)).await;
        assert_eq!(
            agents.get("ann", &name("scout")).await,
            Ok(Some(agent(soul)))
        );
    }
    let bare = CustomAgent {
        soul: "x".to_owned(),
        ..CustomAgent::default()
    };
    keep(agents, "ann", "bare", &bare).await;
    assert_eq!(agents.get("ann", &name("bare")).await, Ok(Some(bare)));
    assert_eq!(agents.default_soul("ann").await, Ok(String::new()));
    agents
        .save_default_soul("ann", "be kind")
        .await
        .expect("stored");
    assert_eq!(agents.default_soul("ann").await, Ok("be kind".to_owned()));
    assert_eq!(agents.profile("ann").await, Ok(String::new()));
    agents.save_profile("ann", "a cook").await.expect("stored");
    assert_eq!(agents.profile("ann").await, Ok("a cook".to_owned()));
}

/// Agents of one user are invisible to others, however similar their ids are.
pub async fn agents_of_other_users_are_hidden(agents: &dyn CustomAgents) {
    for user in ["a/b", "a-b", "../a-b"] {
        keep(agents, user, "scout", &agent(user)).await;
        agents.save_default_soul(user, user).await.expect("stored");
        agents.save_profile(user, user).await.expect("stored");
    }
    for user in ["a/b", "a-b", "../a-b"] {
        assert_eq!(
            agents
                .get(user, &name("scout"))
                .await
                .map(|agent| agent.map(|agent| agent.soul)),
            Ok(Some(user.to_owned()))
        );
        assert_eq!(agents.default_soul(user).await, Ok(user.to_owned()));
        assert_eq!(agents.profile(user).await, Ok(user.to_owned()));
        assert_eq!(agents.list(user).await.map(|listed| listed.len()), Ok(1));
    }
    assert_eq!(agents.get("bob", &name("scout")).await, Ok(None));
    assert_eq!(agents.list("bob").await, Ok(vec![]));
}

/// The list contains every existing agent once, by name.
pub async fn agents_are_listed_by_name(agents: &dyn CustomAgents) {
    for text in ["b", "c", "a"] {
        keep(agents, "ann", text, &agent(text)).await;
    }
    let missing = change(agents, "ann", &name("b"), |_| {
        Ok::<_, CustomAgentError>(None)
    })
    .await;
    assert_eq!(missing, Ok(None));
    assert_eq!(agents.get("ann", &name("b")).await, Ok(None));
    assert_eq!(
        agents.list("ann").await,
        Ok(vec![(name("a"), agent("a")), (name("c"), agent("c"))])
    );
    keep(agents, "ann", "b", &agent("again")).await;
    assert_eq!(
        agents.get("ann", &name("b")).await,
        Ok(Some(agent("again")))
    );
}

/// Of two changes based on the same version only one is stored, and a retry of the other preserves
/// both.
pub async fn concurrent_changes_are_not_lost(agents: Arc<dyn CustomAgents>) {
    let empty = CustomAgent::default();
    assert_eq!(
        agents.swap("ann", &name("list"), None, Some(&empty)).await,
        Ok(true)
    );
    assert_eq!(
        agents
            .swap("ann", &name("list"), None, Some(&agent("late")))
            .await,
        Ok(false)
    );
    assert_eq!(
        agents
            .swap("ann", &name("list"), Some(&agent("never there")), None)
            .await,
        Ok(false)
    );
    let additions = (0..16).map(|number| {
        let agents = agents.clone();
        async move {
            let add = |known: Option<CustomAgent>| {
                let mut agent = known.unwrap_or_default();
                agent
                    .skills
                    .get_or_insert_default()
                    .push(number.to_string());
                Ok::<_, CustomAgentError>(Some(agent))
            };
            change(&*agents, "ann", &name("list"), add)
                .await
                .expect("stored");
        }
    });
    futures_util::future::join_all(additions).await;
    let skills = agents
        .get("ann", &name("list"))
        .await
        .expect("to be read")
        .and_then(|agent| agent.skills)
        .unwrap_or_default();
    assert_eq!(skills.len(), 16);
}

/// A store that counts its changes returns another version after each one; reading alters nothing.
pub async fn each_change_alters_the_version(agents: &dyn CustomAgents) {
    let mut last = agents.version("ann");
    let mut has_changed = || {
        let version = agents.version("ann");
        let previous = std::mem::replace(&mut last, version);
        version.is_none() || version != previous
    };
    keep(agents, "ann", "scout", &agent("s")).await;
    assert!(has_changed());
    keep(agents, "ann", "scout", &agent("t")).await;
    assert!(has_changed());
    agents.save_default_soul("ann", "s").await.expect("stored");
    assert!(has_changed());
    agents.save_profile("ann", "p").await.expect("stored");
    assert!(has_changed());
    let gone = change(agents, "ann", &name("scout"), |_| {
        Ok::<_, CustomAgentError>(None)
    })
    .await;
    assert_eq!(gone, Ok(None));
    assert!(has_changed());
    let before = agents.version("ann");
    agents.list("ann").await.expect("listed");
    agents.profile("ann").await.expect("read");
    assert_eq!(agents.version("ann"), before);
}
