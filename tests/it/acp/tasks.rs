//! Well-behaved agents: their input, their permissions, and the handling of their output and files.

use harness::tools::Effect;
use serde_json::{Map, json};

use super::support::{AGENT, Bench, agent, agent_with};

#[tokio::test]
async fn task_returns_agent_text_and_keeps_its_files() {
    let bench = Bench::new();
    let actual_text = bench
        .ask(agent(&[]), "think hm\nsay one\nwrite a.txt left\nsay , two")
        .await
        .expect("done");
    assert_eq!(actual_text, "one, two");
    assert_eq!(
        std::fs::read_to_string(bench.workspace("ann").join("a.txt")).expect("a file"),
        "left"
    );
    assert_eq!(
        bench.ask(agent(&[]), "list").await.as_deref(),
        Ok("a.txt"),
        "the folder stays for the thread"
    );
    assert_eq!(
        bench.ask(agent(&[]), "think only").await.as_deref(),
        Ok("(no response)")
    );
    let stopped = bench
        .ask(agent(&[]), "say half\nstop max_tokens")
        .await
        .expect("done");
    assert!(
        stopped.starts_with("half\n\n[It stopped early: its model reached"),
        "{stopped}"
    );
}

#[tokio::test]
async fn permissions_follow_the_agent_config() {
    let bench = Bench::new();
    let asks = "permission reject_once,allow_always,allow_once\npermission allow_always\npermission reject_once";
    let refused = bench.ask(agent(&[]), asks).await.expect("done");
    assert_eq!(
        refused
            .matches("{\"outcome\":{\"outcome\":\"cancelled\"}}")
            .count(),
        3,
        "{refused}"
    );
    assert!(
        refused.contains("asked 3 times for a permission")
            && refused.contains("\"Delete everything\"")
            && refused.contains("is off")
    );
    let given = bench
        .ask(agent_with(json!({"auto_approve_permissions": true})), asks)
        .await
        .expect("done");
    let places = ["id-allow_once", "id-allow_always", "\"cancelled\""]
        .map(|answer| given.find(answer).unwrap_or_else(|| panic!("{given}")));
    assert!(
        places.is_sorted() && given.contains("asked once") && given.contains("offered no option"),
        "{given}"
    );
}

#[tokio::test]
async fn client_file_and_terminal_requests_are_refused() {
    let bench = Bench::new();
    let approving = agent_with(json!({"auto_approve_permissions": true}));
    let actual_text = bench
        .ask(
            approving,
            "read /etc/passwd\nput /etc/x\nterminal id\nsay still here",
        )
        .await
        .expect("done");
    assert_eq!(
        actual_text
            .matches("offers neither files nor terminals")
            .count(),
        3,
        "{actual_text}"
    );
    assert!(
        actual_text.ends_with("still here") && !actual_text.contains("root:"),
        "{actual_text}"
    );
}

#[tokio::test]
async fn agent_environment_has_only_allowed_variables() {
    let bench = Bench::new();
    let entry = agent_with(json!({"env": {"KEY": "canary-key"}}));
    let actual_text = bench.ask(entry, "look").await.expect("done");
    let (places, variables) = actual_text.split_once('\n').expect("lines");
    assert_eq!(
        places, "cwd /mnt/acp-workspace session /mnt/acp-workspace",
        "no host path is passed to the agent"
    );
    let mut names: Vec<&str> = variables
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["KEY", "PATH", "TEMP", "TMP", "TMPDIR"]);
}

#[tokio::test]
async fn each_user_has_a_separate_folder() {
    let bench = Bench::new();
    bench
        .ask_as("ann", agent(&[]), "write secret.txt x")
        .await
        .expect("done");
    assert_eq!(
        bench.ask_as("eve", agent(&[]), "list").await.as_deref(),
        Ok("(no response)")
    );
    assert!(bench.workspace("ann").join("secret.txt").exists() && bench.workspace("eve").exists());
}

#[tokio::test]
async fn mcp_servers_and_model_are_passed_to_agent() {
    let bench = Bench::with_servers(&json!({
        "files": {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "t"}},
        "web": {"type": "http", "url": "https://a.example/mcp"},
        "old": {"type": "sse", "url": "https://b.example/sse"},
        "off": {"command": "x", "enabled": false},
        "bad": {"type": "http"},
    }));
    let actual_text = bench
        .ask(agent_with(json!({"model": "large"})), "opening")
        .await
        .expect("done");
    let opening: serde_json::Value = serde_json::from_str(&actual_text).expect("json");
    let names: Vec<_> = opening["mcpServers"]
        .as_array()
        .expect("servers")
        .iter()
        .map(|server| server["name"].clone())
        .collect();
    assert_eq!(names, ["files", "web"], "the agent cannot use others");
    assert_eq!(
        (&opening["_meta"]["model"], &opening["chosen"]),
        (&json!("large"), &json!("large"))
    );
    let unknown = bench
        .ask(agent_with(json!({"model": "other"})), "opening")
        .await
        .expect("done");
    assert!(
        unknown.contains("\"_meta\":{\"model\":\"other\"}") && !unknown.contains("chosen"),
        "{unknown}"
    );
}

#[tokio::test]
async fn tool_lists_agents_and_is_not_rebuilt() {
    let bench = Bench::new();
    let tool = bench.tool(agent(&[]));
    assert!(
        tool.schema()
            .description
            .ends_with("The agents:\n- bob: Does as it is told.")
    );
    assert_eq!(
        (tool.effect(&Map::new()), tool.is_foreign()),
        (Effect::Pure, true),
        "invalid arguments have no effect"
    );
    let call = async |args: serde_json::Value| {
        let args = args.as_object().cloned().expect("arguments");
        assert_eq!(tool.effect(&args), Effect::Unsafe);
        tool.call(args, &harness::testkit::tool_context())
            .await
            .expect_err("refused")
            .to_string()
    };
    assert_eq!(
        call(json!({"agent": "eve", "prompt": "x"})).await,
        "Error: there is no agent \"eve\". Available agents: bob."
    );
    assert!(
        call(json!({"agent": " bob ", "prompt": " \n"}))
            .await
            .contains("the prompt is empty")
    );
}

#[tokio::test]
async fn missing_program_is_reported_with_fix() {
    let bench = Bench::new();
    let missing = bench
        .ask(agent_with(json!({"command": "no-such-agent"})), "x")
        .await
        .expect_err("missing");
    assert!(
        missing.contains("`no-such-agent` was not found on PATH; install no-such-agent"),
        "{missing}"
    );
    assert!(
        missing.contains("change `acp_agents.bob.command`"),
        "{missing}"
    );
    let folder = bench
        .ask(agent_with(json!({"command": "/etc"})), "x")
        .await
        .expect_err("no program");
    assert!(
        folder.contains("`/etc` does not exist or cannot be run"),
        "{folder}"
    );
    assert!(std::path::Path::new(AGENT).is_file());
}
