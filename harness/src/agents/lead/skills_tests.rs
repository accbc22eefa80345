//! Skills through a whole agent: what it is told, what it reads, and which tools are left to it.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::agents::catalog::AgentSource;
use crate::agents::custom::{AgentName, CustomAgent, CustomAgents, MemoryCustomAgents};
use crate::agents::lead::{Guards, LeadAgentSpec, LeadAgents};
use crate::agents::test_support::{ReplayModel, Reply, Said, calls, fresh, run, state_of};
use crate::clock::SystemClock;
use crate::config::{ExtensionsFile, OpenKeys};
use crate::messages::{Message, MessageKind, ToolCall, ToolStatus};
use crate::models::ModelCatalog;
use crate::runtime::actor_context::{ActorContext, DEFAULT_USER_ID};
use crate::sandbox::command::host::HostCommandSandbox;
use crate::sandbox::{CommandLimits, FileHome, FileLimits};
use crate::skills::{SkillPlaces, Skills};
use crate::state::StateUpdate;
use crate::tools::ToolRegistry;
use crate::tools::builtins::{Bash, Ls, ReadFile, WriteFile};

struct Place {
    skills: Skills,
    agents: LeadAgents,
    model: Arc<ReplayModel>,
    _base: tempfile::TempDir,
}

/// A lead agent with tools of files and commands, a subagent `reader` that may use the skill `free`, and three skills: `free`, `strict`, which names `ls` alone, and `bootstrap`.
async fn place(replies: impl IntoIterator<Item = Reply>, deferred: bool) -> Place {
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
    let places = SkillPlaces {
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
    let files = FileHome::new(home, FileLimits::default()).with_shelves(Arc::new(skills.clone()));
    let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let commands =
        Arc::new(HostCommandSandbox::new(environment, CommandLimits::default()).unwrap());
    let custom = Arc::new(MemoryCustomAgents::default());
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
    Place {
        skills,
        agents: LeadAgents::new(spec),
        model,
        _base: base,
    }
}

impl Place {
    async fn ask_with(&self, text: &str, options: Value) -> Said {
        let options: Map<String, Value> = options.as_object().cloned().unwrap();
        let agent = self.agents.agent(&options).await.unwrap();
        run(&agent, fresh(state_of([Message::human(text)])), |ctx| {
            ctx.actor = ActorContext::user(DEFAULT_USER_ID);
            ctx.options = Arc::new(options);
        })
        .await
    }

    async fn ask(&self, text: &str) -> Said {
        self.ask_with(text, json!({})).await
    }

    fn system(&self) -> String {
        self.model
            .asked()
            .last()
            .unwrap()
            .system
            .as_deref()
            .unwrap()
            .to_owned()
    }

    fn tools(&self) -> Vec<String> {
        self.model
            .asked()
            .last()
            .unwrap()
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect()
    }
}

#[tokio::test]
async fn an_agent_is_told_of_its_skills_and_of_those_that_are_off() {
    let place = place([Reply::Say("hi")], false).await;
    place.ask("hello").await;
    let system = place.system();
    assert!(
        system.contains(
            "- free (built in): Work &lt;free&gt; well\n  /mnt/skills/public/free/SKILL.md"
        ),
        "{system}"
    );
    assert!(!system.contains("Switched off"));
    place
        .skills
        .switch(DEFAULT_USER_ID, "free", false)
        .await
        .unwrap();
    place.ask("hello").await;
    let system = place.system();
    assert!(
        !system.contains("- free") && system.contains("not to be used: free."),
        "{system}"
    );
    place
        .ask_with("hello", json!({"agent_name": "picky"}))
        .await;
    assert!(
        !place.system().contains("<skill_system>"),
        "its only skill is off"
    );
    place
        .ask_with("hello", json!({"agent_name": "new", "is_bootstrap": true}))
        .await;
    assert!(
        place.system().contains("- bootstrap (built in)") && !place.system().contains("- strict")
    );
}

#[tokio::test]
async fn skills_are_read_and_run_and_never_written() {
    let path = "/mnt/skills/public/free/SKILL.md";
    let place = place(
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
    let said = place.ask("work").await;
    let results: Vec<String> = said.state().messages()[2..6]
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
async fn a_called_skill_stands_before_the_message_and_leaves_its_tools_alone() {
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
    let place = place([try_all, Reply::Say("done")], false).await;
    let said = place.ask("/strict list it").await;
    let asked = place.model.asked();
    let shown = &asked[0].messages;
    assert_eq!(shown[0].id.as_deref(), Some("h0__slash_activation"));
    let text = shown[0].content.text();
    assert!(
        text.contains("# How to be strict") && !text.contains("<system>"),
        "{text}"
    );
    assert!(shown[1].content.text().contains("/strict list it"));
    assert!(asked.iter().all(|request| {
        request
            .tools
            .iter()
            .all(|tool| ["ls", "read_file"].contains(&tool.name.as_str()))
    }));
    let transcript = said.transcript();
    assert!(
        transcript[2].starts_with("tool:Error: the skill you work by does not allow write_file"),
        "{transcript:?}"
    );
    assert!(
        transcript[3].contains("(empty)") && transcript[4].contains("# How to be strict"),
        "{transcript:?}"
    );
    assert!(
        said.state()
            .messages()
            .iter()
            .all(|message| !message.content.text().contains("slash_skill_activation")),
        "not kept"
    );
}

#[tokio::test]
async fn a_skill_that_was_read_leaves_its_tools_alone_until_the_next_message() {
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
    let place = place(
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
    let said = place.ask("work").await;
    assert!(
        said.transcript()[4].contains("does not allow write_file"),
        "{:?}",
        said.transcript()
    );
    assert_eq!(place.tools(), ["read_file", "ls"]);
    let more = said
        .state()
        .messages()
        .iter()
        .cloned()
        .chain([Message::human("go on").with(|body| body.id = Some("next".to_owned()))]);
    let agent = place.agents.agent(&Map::new()).await.unwrap();
    let said = run(&agent, fresh(state_of(more)), |ctx| {
        ctx.actor = ActorContext::user(DEFAULT_USER_ID)
    })
    .await;
    assert!(
        said.transcript().iter().any(|line| line == "tool:OK"),
        "{:?}",
        said.transcript()
    );
}

#[tokio::test]
async fn what_cannot_be_called_is_answered_without_the_model() {
    let place = place([Reply::Say("hi")], false).await;
    let said = place.ask("/nothing at all").await;
    assert!(
        said.transcript()[1].starts_with(
            "ai:There is no skill `nothing` that I can use; there are `/bootstrap`, `/free`"
        ),
        "{said:?}"
    );
    place
        .skills
        .switch(DEFAULT_USER_ID, "free", false)
        .await
        .unwrap();
    assert!(place.ask("/free x").await.transcript()[1].starts_with("ai:There is no skill `free`"));
    let picky = place
        .ask_with("/strict x", json!({"agent_name": "picky"}))
        .await;
    assert!(
        picky.transcript()[1].ends_with("there are none."),
        "{picky:?}"
    );
    assert!(place.model.asked().is_empty());
    place.ask("/help me").await;
    assert_eq!(
        place.model.asked().len(),
        1,
        "a word that clients use goes to the model"
    );
}

#[tokio::test]
async fn deferred_skills_are_names_until_they_are_looked_up() {
    let look = calls([("1", "describe_skill", json!({"name": "select:free,none"}))]);
    let place = place([look, Reply::Say("done")], true).await;
    let said = place.ask("work").await;
    let system = place.system();
    assert!(
        system.contains("\n- free\n") && !system.contains("Work &lt;free&gt;"),
        "{system}"
    );
    assert_eq!(
        said.transcript()[2],
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
async fn an_agent_with_skills_of_its_own_reads_no_others_and_works_on() {
    let place = place(
        [
            calls([read("1", "strict"), read("2", "free")]),
            calls([write("3")]),
            Reply::Say("done"),
        ],
        false,
    )
    .await;
    let transcript = place
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
async fn a_subagent_knows_the_skills_of_its_kind_and_no_others() {
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
    let place = place(replies, false).await;
    place
        .ask_with("work", json!({"subagent_enabled": true}))
        .await;
    let asked = place.model.asked();
    let system = asked[1].system.as_deref().unwrap();
    assert!(
        system.starts_with("You read.")
            && system.contains("- free (built in)")
            && !system.contains("- strict"),
        "{system}"
    );
    let results: Vec<String> = asked[2]
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
async fn what_is_offered_and_what_is_done_are_one_also_behind_a_summary() {
    let place = place([calls([write("w")]), Reply::Say("done")], false).await;
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
    let agent = place.agents.agent(&Map::new()).await.unwrap();
    let said = run(&agent, fresh(state), |ctx| {
        ctx.actor = ActorContext::user(DEFAULT_USER_ID)
    })
    .await;
    let offered = place.model.asked()[0]
        .tools
        .iter()
        .any(|tool| tool.name == "write_file");
    assert!(
        offered && said.transcript().iter().any(|line| line == "tool:OK"),
        "{offered} {:?}",
        said.transcript()
    );
}
