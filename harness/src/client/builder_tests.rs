//! Tests of building a client, and of when agents are rebuilt.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::*;
use crate::agents::lead::LEAD_AGENT;
use crate::agents::test_support::{ReplayModel, Reply};
use crate::config::AppConfig;
use crate::ids::ThreadId;
use crate::models::ScriptedModel;
use crate::runtime::agent::Agent;
use crate::sandbox::command::host::HostCommandSandbox;
use crate::sandbox::{CommandLimits, Mount};
use crate::testkit::skill_archives::skill_text;

fn config() -> AppConfig {
    serde_json::from_value(json!({ "title": { "enabled": false }, "memory": { "enabled": false } }))
        .unwrap()
}

fn home(skills: &[&str]) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for name in skills {
        let folder = home.path().join("skills/public").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SKILL.md"), skill_text(name)).unwrap();
    }
    home
}

async fn agent(client: &Client, options: &ChatOptions) -> Arc<dyn Agent> {
    client
        .runs()
        .runtime()
        .ports()
        .agents
        .resolve(LEAD_AGENT, &options.to_map())
        .await
        .unwrap()
}

#[tokio::test]
async fn agent_is_cached_until_its_parts_change() {
    let home = home(&["web"]);
    let model = ReplayModel::new([Reply::Say("hello")]);
    let client = Client::builder(config())
        .home(home.path())
        .model(model)
        .build()
        .unwrap();
    let usual = ChatOptions::default();
    let first = agent(&client, &usual).await;
    assert!(Arc::ptr_eq(&first, &agent(&client, &usual).await));
    let planning = ChatOptions {
        plan_mode: true,
        ..ChatOptions::default()
    };
    assert!(!Arc::ptr_eq(&first, &agent(&client, &planning).await));
    client.update_skill("web", false).await.unwrap();
    let without = agent(&client, &usual).await;
    assert!(!Arc::ptr_eq(&first, &without));
    client.reset_agent();
    assert!(!Arc::ptr_eq(&without, &agent(&client, &usual).await));
}

#[tokio::test]
async fn client_applies_options_and_available_skills() {
    let home = home(&["web", "mail"]);
    let model = ReplayModel::new([Reply::Say("hello")]);
    let client = Client::builder(config())
        .home(home.path())
        .model(model.clone())
        .available_skills(["mail", "none"])
        .plan_mode(true)
        .build()
        .unwrap();
    assert_eq!(
        client
            .chat("hi", &ThreadId::parse("t").unwrap())
            .await
            .unwrap(),
        "hello"
    );
    let requests = model.requests();
    let system = requests[0].system.as_deref().unwrap();
    assert!(
        system.contains("Does mail") && !system.contains("Does web"),
        "{system}"
    );
    let tools: Vec<&str> = requests[0].tools.iter().map(|tool| &*tool.name).collect();
    assert!(
        ["write_todos", "ls", "read_file", "present_files"]
            .iter()
            .all(|tool| tools.contains(tool)),
        "{tools:?}"
    );
}

#[tokio::test]
async fn commands_see_skills_and_file_tools_see_mounts() {
    let (home, data) = (home(&["web"]), tempfile::tempdir().unwrap());
    std::fs::write(data.path().join("a"), "given").unwrap();
    let variables = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let sandbox = Arc::new(HostCommandSandbox::new(variables, CommandLimits::default()).unwrap());
    let client = |config: AppConfig| {
        let mount = Mount {
            host: data.path().to_owned(),
            inside: "/mnt/data".to_owned(),
            read_only: true,
        };
        let builder = Client::builder(config)
            .home(home.path())
            .model(Arc::new(ScriptedModel::default()));
        builder
            .commands(sandbox.clone())
            .mounts([mount])
            .build()
            .unwrap()
    };
    let result = async |client: &Client, tool: &str, arguments: Value| {
        let thread = ThreadId::parse(tool).unwrap();
        client
            .chat(
                format!("[[tool:{tool} {arguments}]] then say over"),
                &thread,
            )
            .await
            .unwrap();
        let thread_view = client.get_thread(&thread).await.unwrap().unwrap();
        let result = thread_view.values["messages"]
            .as_array()
            .unwrap()
            .iter()
            .find(|message| message["type"] == "tool");
        result.map(|result| crate::messages::Content::text_in(&result["content"]))
    };
    let listing = json!({ "description": "look", "command": "ls /mnt/skills/public/web" });
    let usual = client(config());
    assert!(
        result(&usual, "bash", listing.clone())
            .await
            .unwrap()
            .contains("SKILL.md")
    );
    assert!(
        result(
            &usual,
            "read_file",
            json!({ "description": "read", "path": "/mnt/data/a" })
        )
        .await
        .unwrap()
        .contains("given")
    );
    let tools = json!([{ "name": "ls", "group": "files", "use": "sandbox.ls" }]);
    let mut restricted = config();
    restricted.tools = serde_json::from_value(tools).unwrap();
    let without = client(restricted);
    assert_eq!(
        result(&without, "bash", listing).await,
        None,
        "not a tool of this client"
    );
}

#[tokio::test]
async fn client_without_home_has_no_files() {
    let model = ReplayModel::new([Reply::Say("hello")]);
    let client = Client::builder(config())
        .model(model.clone())
        .build()
        .unwrap();
    assert_eq!(
        client
            .chat("hi", &ThreadId::parse("t").unwrap())
            .await
            .unwrap(),
        "hello"
    );
    assert!(
        model.requests()[0]
            .tools
            .iter()
            .all(|tool| tool.name != "read_file")
    );
}

#[tokio::test]
async fn unknown_model_fails_before_the_run() {
    let client = Client::builder(config())
        .model(ReplayModel::new([Reply::Say("hello")]))
        .model_name("none")
        .build()
        .unwrap();
    let refused = client.chat("hi", &ThreadId::parse("t").unwrap()).await;
    assert!(matches!(refused, Err(ClientError::Run(_))), "{refused:?}");
}

#[tokio::test]
async fn threads_and_goals_work_without_server() {
    let model = ReplayModel::new([Reply::Say("hello")]);
    let client = Client::builder(config()).model(model).build().unwrap();
    let (thread, early) = (
        ThreadId::parse("t").unwrap(),
        ThreadId::parse("early").unwrap(),
    );
    assert_eq!(client.list_threads(10).await.unwrap(), []);
    client.chat("hi", &thread).await.unwrap();
    client.set_goal(&early, "Ship it").await.unwrap();
    let listed = client.list_threads(10).await.unwrap();
    assert_eq!(
        listed
            .iter()
            .map(|thread| &thread.thread_id)
            .collect::<Vec<_>>(),
        [&early, &thread]
    );
    let thread_view = client.get_thread(&thread).await.unwrap().unwrap();
    assert_eq!(thread_view.values["messages"][1]["content"], "hello");
    assert_eq!(
        client
            .get_goal(&early)
            .await
            .unwrap()
            .goal
            .unwrap()
            .objective,
        "Ship it"
    );
    let bob = crate::runtime::actor_context::ActorContext::user("bob");
    crate::runtime::actor_context::scope(bob, async {
        assert_eq!(
            (
                client.list_threads(10).await.unwrap(),
                client.get_thread(&thread).await.unwrap()
            ),
            (vec![], None)
        );
    })
    .await;

    let own = crate::runtime::in_memory::runtime_in_memory(Arc::new(
        crate::agents::StaticResolver::new(),
    ))
    .unwrap();
    let without = Client::builder(config()).runtime(own).build().unwrap();
    assert!(matches!(
        without.list_threads(10).await,
        Err(ClientError::Absent("threads"))
    ));
    assert!(matches!(
        without.get_goal(&thread).await,
        Err(ClientError::Absent("threads"))
    ));
}

#[cfg(feature = "config-file")]
#[tokio::test]
async fn client_is_built_from_a_server_config_file() {
    use crate::config_file::Environment;

    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("config.yaml");
    std::fs::write(&file, "config_version: 34\nmodels:\n  - { name: m, use: scripted, model: s, display_name: $SHOWN }\n").unwrap();
    let environment = Environment::of(
        home.path(),
        [
            ("SHOWN", "Mine"),
            ("DEERFLOW_TOKEN_USAGE__ENABLED", "false"),
        ],
    );
    let client = Client::from_config_file(&file, &environment)
        .unwrap()
        .home(home.path())
        .build()
        .unwrap();
    let models = client.list_models().unwrap();
    assert_eq!(
        (
            models.models[0].display_name.as_deref(),
            models.token_usage.enabled
        ),
        (Some("Mine"), false)
    );
    std::fs::write(&file, "config_version: 34\ndatabase:\n  backend: sqlit\n").unwrap();
    let refused = Client::from_config_file(&file, &environment)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("config.yaml:3:12: `database.backend` is")
            && refused.ends_with("did you mean `sqlite`?"),
        "{refused}"
    );
}

#[tokio::test]
async fn invalid_config_is_rejected_with_all_violations() {
    let wrong: AppConfig =
        serde_json::from_value(json!({ "uploads": { "max_files": 0, "max_file_size": 0 } }))
            .unwrap();
    match Client::builder(wrong).build() {
        Err(ClientError::Config(violations)) => assert_eq!(violations.len(), 2, "{violations:?}"),
        other => panic!("{other:?}"),
    }
    assert!(
        Client::builder(config())
            .build()
            .unwrap()
            .runs()
            .runtime()
            .ports()
            .agents
            .resolve("none", &Map::new())
            .await
            .is_err()
    );
}
