//! Skills of a complete agent: its prompt, its file access, and the tools that skills leave
//! available.

#[path = "skills_restriction_tests.rs"]
mod restriction;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::agents::catalog::AgentSource;
use crate::agents::custom::{AgentName, CustomAgent, CustomAgents, InMemoryCustomAgents};
use crate::agents::lead::{Guards, LeadAgentSpec, LeadAgents};
use crate::agents::test_support::{ReplayModel, Reply, RunOutput, calls, fresh, run, state_of};
use crate::clock::SystemClock;
use crate::config::{ExtensionsFile, OpenKeys};
use crate::messages::{Message, MessageKind, ToolCall, ToolStatus};
use crate::models::ModelCatalog;
use crate::runtime::actor_context::{ActorContext, DEFAULT_USER_ID};
use crate::sandbox::command::host::HostCommandSandbox;
use crate::sandbox::{CommandLimits, FileHome, FileLimits};
use crate::skills::{SkillFolders, Skills};
use crate::state::StateUpdate;
use crate::tools::ToolRegistry;
use crate::tools::builtins::{Bash, Ls, ReadFile, WriteFile};

struct Rig {
    skills: Skills,
    agents: LeadAgents,
    model: Arc<ReplayModel>,
    _base: tempfile::TempDir,
}

/// A lead agent with tools for files and commands, a subagent `reader` that may use the skill
/// `free`, and three skills: `free`, `strict`, which allows only the tool `ls`, and `bootstrap`.
async fn rig(replies: impl IntoIterator<Item = Reply>, deferred: bool) -> Rig {
    let base = tempfile::tempdir().unwrap();
    for (name, more) in [
        ("free", ""),
        ("strict", "allowed-tools: [ls]\n"),
        ("bootstrap", ""),
    ] {
        let folder = base.path().join("shared/public").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "---\nname: {name}\ndescription: Work <{name}> well\n{more}---\n# How to be {name}\n<system>x</system>\n"
        );
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }
    let home = base.path().join("home");
    let places = SkillFolders {
        shared: base.path().join("shared"),
        home: home.clone(),
    };
    let extensions = Arc::new(ExtensionsFile::at(
        base.path().join("extensions_config.json"),
    ));
    let skills = Skills::new(
        places,
        extensions,
        OpenKeys::default(),
        Arc::new(SystemClock),
    );
    let files =
        FileHome::new(home, FileLimits::default()).with_skill_mounts(Arc::new(skills.clone()));
    let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let commands =
        Arc::new(HostCommandSandbox::new(environment, CommandLimits::default()).unwrap());
    let custom = Arc::new(InMemoryCustomAgents::default());
    let picky = CustomAgent {
        skills: Some(vec!["free".to_owned()]),
        ..CustomAgent::default()
    };
    custom
        .swap(
            DEFAULT_USER_ID,
            &AgentName::parse("picky").unwrap(),
            None,
            Some(&picky),
        )
        .await
        .unwrap();
    let model = ReplayModel::new(replies);
    let tools = ToolRegistry::new()
        .with(ReadFile {
            home: files.clone(),
            max_chars: 0,
        })
        .with(Ls {
            home: files.clone(),
            max_chars: 0,
        })
        .with(WriteFile {
            home: files.clone(),
        })
        .with(Bash::new(
            files.clone(),
            commands,
            std::time::Duration::from_secs(20),
            0,
        ));
    let reader =
        json!({ "description": "reads", "system_prompt": "You read.", "skills": ["free", "none"] });
    let spec = LeadAgentSpec {
        tools,
        custom: Some(custom),
        files: Some(files),
        skills: Some(skills.clone()),
        defers_skills: deferred,
        guards: Guards {
            subagents: serde_json::from_value(json!({ "custom_agents": { "reader": reader } }))
                .unwrap(),
            ..Guards::default()
        },
        ..LeadAgentSpec::new(Arc::new(
            ModelCatalog::new([], Arc::new(SystemClock)).with_model(model.clone()),
        ))
    };
    Rig {
        skills,
        agents: LeadAgents::new(spec),
        model,
        _base: base,
    }
}

impl Rig {
    async fn ask_with(&self, text: &str, options: Value) -> RunOutput {
        let options: Map<String, Value> = options.as_object().cloned().unwrap();
        let agent = self.agents.agent(&options).await.unwrap();
        run(&agent, fresh(state_of([Message::human(text)])), |ctx| {
            ctx.actor = ActorContext::user(DEFAULT_USER_ID);
            ctx.options = Arc::new(options);
        })
        .await
    }

    async fn ask(&self, text: &str) -> RunOutput {
        self.ask_with(text, json!({})).await
    }

    fn system(&self) -> String {
        self.model
            .requests()
            .last()
            .unwrap()
            .system
            .as_deref()
            .unwrap()
            .to_owned()
    }

    fn tools(&self) -> Vec<String> {
        self.model
            .requests()
            .last()
            .unwrap()
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect()
    }
}

#[tokio::test]
async fn prompt_lists_enabled_and_disabled_skills() {
    let rig = rig([Reply::Say("hi")], false).await;
    rig.ask("hello").await;
    let system = rig.system();
    assert!(
        system.contains(
            "- free (built in): Work &lt;free&gt; well\n  /mnt/skills/public/free/SKILL.md"
        ),
        "{system}"
    );
    assert!(!system.contains("Switched off"));
    rig.skills
        .switch(DEFAULT_USER_ID, "free", false)
        .await
        .unwrap();
    rig.ask("hello").await;
    let system = rig.system();
    assert!(
        !system.contains("- free") && system.contains("not to be used: free."),
        "{system}"
    );
    rig.ask_with("hello", json!({"agent_name": "picky"})).await;
    assert!(
        !rig.system().contains("<skill_system>"),
        "its only skill is off"
    );
    rig.ask_with("hello", json!({"agent_name": "new", "is_bootstrap": true}))
        .await;
    assert!(rig.system().contains("- bootstrap (built in)") && !rig.system().contains("- strict"));
}

#[tokio::test]
async fn skill_files_are_read_and_run_but_never_written() {
    let path = "/mnt/skills/public/free/SKILL.md";
    let rig = rig(
        [
            calls([
                ("1", "read_file", json!({"path": path})),
                (
                    "2",
                    "bash",
                    json!({"command": format!("grep -c free {path}")}),
                ),
                ("3", "ls", json!({"path": "/mnt/skills"})),
                ("4", "write_file", json!({"path": path, "content": "mine"})),
            ]),
            Reply::Say("done"),
        ],
        false,
    )
    .await;
    let output = rig.ask("work").await;
    let results: Vec<String> = output.state().messages()[2..6]
        .iter()
        .map(|message| message.content.text())
        .collect();
    assert!(results[0].contains("# How to be free"), "{results:?}");
    assert_eq!(results[1].trim(), "3");
    assert!(results[2].contains("/mnt/skills/public/strict/"));
    assert!(
        results[3].starts_with("Error:") && results[3].contains("outside the allowed directories"),
        "{results:?}"
    );
}

#[tokio::test]
async fn unavailable_skill_command_is_answered_without_the_model() {
    let rig = rig([Reply::Say("hi")], false).await;
    let output = rig.ask("/nothing at all").await;
    assert!(
        output.transcript()[1].starts_with(
            "ai:There is no skill `nothing` that I can use; there are `/bootstrap`, `/free`"
        ),
        "{output:?}"
    );
    rig.skills
        .switch(DEFAULT_USER_ID, "free", false)
        .await
        .unwrap();
    assert!(rig.ask("/free x").await.transcript()[1].starts_with("ai:There is no skill `free`"));
    let picky = rig
        .ask_with("/strict x", json!({"agent_name": "picky"}))
        .await;
    assert!(
        picky.transcript()[1].ends_with("there are none."),
        "{picky:?}"
    );
    assert!(rig.model.requests().is_empty());
    rig.ask("/help me").await;
    assert_eq!(
        rig.model.requests().len(),
        1,
        "a reserved word of clients is sent to the model"
    );
}

#[tokio::test]
async fn deferred_skills_are_names_until_described() {
    let look = calls([("1", "describe_skill", json!({"name": "select:free,none"}))]);
    let rig = rig([look, Reply::Say("done")], true).await;
    let output = rig.ask("work").await;
    let system = rig.system();
    assert!(
        system.contains("\n- free\n") && !system.contains("Work &lt;free&gt;"),
        "{system}"
    );
    assert_eq!(
        output.transcript()[2],
        "tool:free\nWork <free> well\n/mnt/skills/public/free/SKILL.md"
    );
}
