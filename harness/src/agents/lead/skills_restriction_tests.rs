//! Tests of the restrictions of tools and files by skills.

use super::*;

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
