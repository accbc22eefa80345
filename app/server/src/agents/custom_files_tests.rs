//! Tests of the file store of custom agents.

use std::sync::Arc;

use harness::testkit::custom_agents;

use super::*;

fn fresh() -> (tempfile::TempDir, FileCustomAgents) {
    let home = tempfile::tempdir().unwrap();
    let agents = FileCustomAgents::new(home.path());
    (home, agents)
}

#[tokio::test]
async fn satisfies_custom_agent_contract() {
    let (_home, agents) = fresh();
    custom_agents::saved_agent_is_read_back_unchanged(&agents).await;
    let (_home, agents) = fresh();
    custom_agents::agents_of_other_users_are_hidden(&agents).await;
    let (_home, agents) = fresh();
    custom_agents::agents_are_listed_by_name(&agents).await;
    let (_home, agents) = fresh();
    custom_agents::concurrent_changes_are_not_lost(Arc::new(agents)).await;
    let (_home, agents) = fresh();
    custom_agents::each_change_alters_the_version(&agents).await;
}

#[tokio::test]
async fn interrupted_change_is_read_whole_and_completed_later() {
    let (_home, agents) = fresh();
    let name = AgentName::parse("scout").unwrap();
    let agent = |text: &str| CustomAgent {
        soul: text.to_owned(),
        description: text.to_owned(),
        ..CustomAgent::default()
    };
    assert_eq!(
        agents.swap("ann", &name, None, Some(&agent("old"))).await,
        Ok(true)
    );
    let folder = agents.agents_of("ann").join("scout");
    fs::write(folder.join("memory.json"), "{}").unwrap();
    // Interrupted before the commit.
    write(&folder.join(STAGED), SOUL, "new").unwrap();
    assert_eq!(agents.get("ann", &name).await, Ok(Some(agent("old"))));
    // Interrupted after the commit: first with both files still to be moved, then with one.
    write(&folder.join(STAGED), CONFIG, "description: new\n").unwrap();
    fs::rename(folder.join(STAGED), folder.join(NEXT)).unwrap();
    assert_eq!(agents.get("ann", &name).await, Ok(Some(agent("new"))));
    fs::rename(folder.join(NEXT).join(SOUL), folder.join(SOUL)).unwrap();
    assert_eq!(agents.get("ann", &name).await, Ok(Some(agent("new"))));
    assert_eq!(
        agents
            .swap("ann", &name, Some(&agent("new")), Some(&agent("newer")))
            .await,
        Ok(true)
    );
    assert_eq!(agents.get("ann", &name).await, Ok(Some(agent("newer"))));
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(
        files,
        [SOUL, CONFIG, "memory.json"],
        "other files are not touched"
    );
    assert_eq!(
        agents.swap("ann", &name, Some(&agent("newer")), None).await,
        Ok(true)
    );
    assert!(!folder.exists());
}

#[tokio::test]
async fn legacy_agents_are_shared_and_invalid_files_reported() {
    let (home, agents) = fresh();
    let name = AgentName::parse("old").unwrap();
    write(
        &home.path().join("agents/old"),
        CONFIG,
        "name: old\nmodel: m\n",
    )
    .unwrap();
    let old = agents.get("ann", &name).await.unwrap().unwrap();
    assert!(old.shared && old.model.as_deref() == Some("m") && old.soul.is_empty());
    let existing = CustomAgent {
        shared: false,
        ..old.clone()
    };
    assert_eq!(
        agents.swap("ann", &name, Some(&existing), None).await,
        Ok(false),
        "a shared agent does not belong to the user"
    );
    write(
        &agents.of_user("ann").join("agents/old"),
        CONFIG,
        "tool_groups: 5\n",
    )
    .unwrap();
    assert!(matches!(
        agents.get("ann", &name).await,
        Err(CustomAgentError::Unreadable { .. })
    ));
    assert!(agents.get("bob", &name).await.unwrap().unwrap().shared);
    assert_eq!(agents.list("bob").await, Ok(vec![(name, old)]));
}
