//! Skills of a complete agent: its prompt, its file access, and the tools that skills leave
//! available.

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
async fn called_skill_precedes_the_message_and_restricts_tools() {
    let try_all = calls([
        (
            "1",
            "write_file",
            json!({"path": "/mnt/user-data/workspace/a", "content": "x"}),
        ),
        ("2", "ls", json!({"path": "/mnt/user-data/workspace"})),
        (
            "3",
            "read_file",
            json!({"path": "/mnt/skills/public/strict/SKILL.md"}),
        ),
    ]);
    let rig = rig([try_all, Reply::Say("done")], false).await;
    let output = rig.ask("/strict list it").await;
    let requests = rig.model.requests();
    let emitted = &requests[0].messages;
    assert_eq!(emitted[0].id.as_deref(), Some("h0__slash_activation"));
    let text = emitted[0].content.text();
    assert!(
        text.contains("# How to be strict") && !text.contains("<system>"),
        "{text}"
    );
    assert!(emitted[1].content.text().contains("/strict list it"));
    assert!(requests.iter().all(|request| {
        request
            .tools
            .iter()
            .all(|tool| ["ls", "read_file"].contains(&tool.name.as_str()))
    }));
    let transcript = output.transcript();
    assert!(
        transcript[2].starts_with("tool:Error: the skill you work by does not allow write_file"),
        "{transcript:?}"
    );
    assert!(
        transcript[3].contains("(empty)") && transcript[4].contains("# How to be strict"),
        "{transcript:?}"
    );
    assert!(
        output
            .state()
            .messages()
            .iter()
            .all(|message| !message.content.text().contains("slash_skill_activation")),
        "the activation text is not stored"
    );
}

#[tokio::test]
async fn read_skill_restricts_tools_until_the_next_message() {
    let read = |id: &'static str| {
        calls([(
            id,
            "read_file",
            json!({"path": "/mnt/skills/public/strict/SKILL.md"}),
        )])
    };
    let write = calls([(
        "w",
        "write_file",
        json!({"path": "/mnt/user-data/workspace/a", "content": "x"}),
    )]);
    let rig = rig(
        [
            read("1"),
            write.clone(),
            Reply::Say("first"),
            write,
            Reply::Say("second"),
        ],
        false,
    )
    .await;
    let output = rig.ask("work").await;
    assert!(
        output.transcript()[4].contains("does not allow write_file"),
        "{:?}",
        output.transcript()
    );
    assert_eq!(rig.tools(), ["read_file", "ls"]);
    let more = output
        .state()
        .messages()
        .iter()
        .cloned()
        .chain([Message::human("go on").with(|body| body.id = Some("next".to_owned()))]);
    let agent = rig.agents.agent(&Map::new()).await.unwrap();
    let output = run(&agent, fresh(state_of(more)), |ctx| {
        ctx.actor = ActorContext::user(DEFAULT_USER_ID)
    })
    .await;
    assert!(
        output.transcript().iter().any(|line| line == "tool:OK"),
        "{:?}",
        output.transcript()
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

fn read(id: &'static str, skill: &str) -> (&'static str, &'static str, Value) {
    (
        id,
        "read_file",
        json!({ "path": format!("/mnt/skills/public/{skill}/SKILL.md") }),
    )
}

fn write(id: &'static str) -> (&'static str, &'static str, Value) {
    (
        id,
        "write_file",
        json!({ "path": "/mnt/user-data/workspace/a", "content": "x" }),
    )
}

#[tokio::test]
async fn agent_with_a_skill_list_cannot_read_other_skills() {
    let rig = rig(
        [
            calls([read("1", "strict"), read("2", "free")]),
            calls([write("3")]),
            Reply::Say("done"),
        ],
        false,
    )
    .await;
    let transcript = rig
        .ask_with("work", json!({"agent_name": "picky"}))
        .await
        .transcript();
    assert!(
        transcript[2].starts_with("tool:Error: /mnt/skills/public/strict/SKILL.md belongs to none"),
        "{transcript:?}"
    );
    assert!(transcript[3].contains("# How to be free"), "{transcript:?}");
    assert_eq!(transcript[5], "tool:OK");
}

#[tokio::test]
async fn subagent_sees_only_the_skills_of_its_kind() {
    let task = (
        "t",
        "task",
        json!({ "description": "d", "prompt": "read", "subagent_type": "reader" }),
    );
    let replies = [
        calls([task]),
        calls([read("1", "strict"), read("2", "free")]),
        Reply::Say("report"),
        Reply::Say("done"),
    ];
    let rig = rig(replies, false).await;
    rig.ask_with("work", json!({"subagent_enabled": true}))
        .await;
    let requests = rig.model.requests();
    let system = requests[1].system.as_deref().unwrap();
    assert!(
        system.starts_with("You read.")
            && system.contains("- free (built in)")
            && !system.contains("- strict"),
        "{system}"
    );
    let results: Vec<String> = requests[2]
        .messages
        .iter()
        .filter(|message| message.tool_call_id().is_some())
        .map(|m| m.content.text())
        .collect();
    assert!(
        results[0].contains("belongs to none of your skills")
            && results[1].contains("# How to be free"),
        "{results:?}"
    );
}

#[tokio::test]
async fn skill_restrictions_hold_after_summarization() {
    let rig = rig([calls([write("w")]), Reply::Say("done")], false).await;
    let call = |(id, name, args): (&str, &str, Value)| {
        ToolCall::new(id, name, args.as_object().cloned().unwrap())
    };
    let (strict, list) = (
        call(read("1", "strict")),
        call(("2", "ls", json!({ "path": "/mnt/user-data/workspace" }))),
    );
    let asks = |id: &str, call: &ToolCall| {
        Message::ai("").with(|body| {
            body.id = Some(id.to_owned());
            if let MessageKind::Ai { tool_calls, .. } = &mut body.kind {
                tool_calls.push(call.clone());
            }
        })
    };
    let mut state = state_of([
        Message::human("work"),
        asks("read", &strict),
        Message::tool(&strict, "text", ToolStatus::Success),
        asks("list", &list),
        Message::tool(&list, "(empty)", ToolStatus::Success),
    ]);
    let cut = StateUpdate::channel("summary_text", "so far".into()).and(
        "summary_cut",
        json!({"first_kept": "list", "made_at": "list"}),
    );
    state.apply(cut, &crate::ids::SeededIds::new(3)).unwrap();
    let agent = rig.agents.agent(&Map::new()).await.unwrap();
    let output = run(&agent, fresh(state), |ctx| {
        ctx.actor = ActorContext::user(DEFAULT_USER_ID)
    })
    .await;
    let offered = rig.model.requests()[0]
        .tools
        .iter()
        .any(|tool| tool.name == "write_file");
    assert!(
        offered && output.transcript().iter().any(|line| line == "tool:OK"),
        "{offered} {:?}",
        output.transcript()
    );
}
