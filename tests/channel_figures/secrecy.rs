//! Texts that must never leave: in no call of a platform, and in no line of the log.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::report;
use crate::rig::{Gateway, Model, PlatformName, Platforms, Reply, SECRETS, Setup, Talks, end_of};

/// Conversations of each platform.
const CONVERSATIONS: usize = 30;
/// Time in which the first conversations become memories.
const LEARNING: Duration = Duration::from_secs(30);
/// Time within which the memory is part of a prompt.
const MEMORY_LIMIT: Duration = Duration::from_secs(120);
/// Shares no word with the tool's result: agents do not read a fact that comes from a tool until the
/// user confirms it.
const MEMORY: &str = "heliotrope-51e0";
const REASONING: &str = "canary-reasoning-9a77";
const TOOL_RESULT: &str = "canary-result-c3d8";
const ENVIRONMENT: &str = "canary-environment-77ab";
const MODEL_KEY: &str = "sk-figures";
/// Marks of hidden messages and of the prompt.
const HIDDEN: [&str; 3] = ["system-reminder", "<memory>", "factsToRemove"];
/// Calls that prove to a platform who the bot is.
const WITH_CREDENTIALS: [&str; 7] = [
    "POST auth/v3/tenant_access_token/internal",
    "POST callback/ws/endpoint",
    "token",
    "open",
    "aibot_subscribe",
    "gateway identify",
    "gateway resume",
];
/// MCP server whose tool returns two canaries.
const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer '{"tools":[{"name":"lookup","description":"Looks up a word.","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) answer "{\"content\":[{\"type\":\"text\",\"text\":\"RESULT $WORD\"}]}" ;;
  esac
done"#;

pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let platforms = Platforms::start(false).await?;
    let model = Model::watching(reply, vec![MEMORY, TOOL_RESULT, ENVIRONMENT]).await?;
    let home = tempfile::tempdir()?;
    let server = SERVER.replace("RESULT", TOOL_RESULT);
    let servers = json!({"mcpServers": {"shell": {
        "command": "/bin/sh", "args": ["-c", server], "env": {"WORD": "$FIGURES_WORD"},
    }}});
    let extensions = home.path().join("extensions_config.json");
    std::fs::write(&extensions, servers.to_string())?;
    let setup = Setup {
        model: Some(model.base()),
        channel: "    max_exchanges_per_minute: 0\n".to_owned(),
        sections: "memory: {enabled: true, backend_config: {debounce_seconds: 1}}\n".to_owned(),
        env: vec![
            ("FIGURES_WORD".to_owned(), ENVIRONMENT.to_owned()),
            (
                "DEER_FLOW_EXTENSIONS_CONFIG_PATH".to_owned(),
                extensions.display().to_string(),
            ),
        ],
    };
    let names = arguments.platforms();
    let gateway = Gateway::start(arguments, &platforms, &names, setup).await?;
    let mut talks = Talks::new(&names, CONVERSATIONS);
    talks.stream(&platforms, || true).await?;
    tokio::time::sleep(LEARNING).await;
    // A thread keeps the memory with which it began.
    talks.begin_threads(&platforms);
    let mut complete_since = None;
    let is_over = || {
        let bodies: usize = names.iter().map(|name| sent(&platforms, *name)).sum();
        if bodies < arguments.bodies {
            return false;
        }
        let since = complete_since.get_or_insert_with(Instant::now);
        model.has_seen(MEMORY) || since.elapsed() > MEMORY_LIMIT
    };
    talks.stream(&platforms, is_over).await?;
    let mut leaks = Vec::new();
    let mut bodies = 0;
    for name in &names {
        bodies += sent(&platforms, *name);
        for call in platforms.calls(*name).all() {
            let text = call.body.to_string();
            let is_secret = |canary: &&str| text.contains(*canary);
            let with_credentials = WITH_CREDENTIALS.contains(&call.method.as_str());
            let found = canaries(!with_credentials).find(is_secret);
            leaks.extend(found.map(|canary| format!("{} {}: {canary}", name.key(), call.method)));
        }
    }
    let logs = gateway.process.logs();
    let of_logs: Vec<&str> = logs
        .lines()
        .filter(|line| canaries(true).any(|canary| line.contains(canary)))
        .collect();
    let answers: usize = names.iter().map(|name| talks.answered(*name)).sum();
    report::line(&format!(
        "{bodies} sent bodies of {answers} answers: {} with a canary; {} lines of the log, {} with \
         a canary",
        leaks.len(),
        logs.lines().count(),
        of_logs.len()
    ))?;
    for canary in [MEMORY, TOOL_RESULT, ENVIRONMENT] {
        anyhow::ensure!(model.has_seen(canary), "{canary} did not reach the model");
    }
    leaks.dedup();
    anyhow::ensure!(leaks.is_empty(), "{:?}", &leaks[..leaks.len().min(10)]);
    anyhow::ensure!(of_logs.is_empty(), "{:?}", &of_logs[..of_logs.len().min(5)]);
    Ok(())
}

/// Returns all canaries, the credentials of bots only if `with_credentials` is set.
fn canaries(with_credentials: bool) -> impl Iterator<Item = &'static str> {
    let planted = [MEMORY, REASONING, TOOL_RESULT, ENVIRONMENT, MODEL_KEY];
    let secrets = SECRETS.into_iter().filter(move |_| with_credentials);
    planted.into_iter().chain(HIDDEN).chain(secrets)
}

/// Returns the number of sent bodies that people can see.
fn sent(platforms: &Platforms, name: PlatformName) -> usize {
    let calls = platforms.calls(name).all();
    let is_sent = |method: &str| match name {
        PlatformName::Telegram => method.starts_with("send") || method.starts_with("edit"),
        PlatformName::Slack => method.starts_with("chat."),
        PlatformName::Discord => method.ends_with("_message"),
        PlatformName::Feishu => method.contains("im/v1/messages") || method.contains("cardkit"),
        PlatformName::DingTalk => method.starts_with("send_") || method.ends_with("_card"),
        PlatformName::WeCom => matches!(method, "aibot_respond_msg" | "aibot_send_msg"),
    };
    calls.iter().filter(|call| is_sent(&call.method)).count()
}

/// Learns the canary of the memory, calls the tool once per question, then answers.
fn reply(request: &Value, question: u64) -> Reply {
    if request.to_string().contains("factsToRemove") {
        let fact = json!({"content": format!("The user likes {MEMORY}."), "category": "preference",
            "confidence": 0.95, "origin": "user", "sourceError": null});
        return Reply {
            text: json!({"user": {}, "history": {}, "newFacts": [fact], "factsToRemove": []})
                .to_string(),
            ..Reply::default()
        };
    }
    let messages = request["messages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let after_tool = messages.last().is_some_and(|last| last["role"] == "tool");
    let tools = request["tools"].as_array().into_iter().flatten();
    let mut names = tools.filter_map(|tool| tool["function"]["name"].as_str());
    let lookup = names.find(|name| name.contains("lookup"));
    Reply {
        text: format!(
            "{}{}",
            "Words of an answer without secrets. ".repeat(20),
            end_of(question)
        ),
        reasoning: format!("I think of {REASONING}."),
        call: lookup
            .filter(|_| !after_tool)
            .map(|name| (name.to_owned(), json!({}))),
        pieces: 20,
        gap: Duration::from_millis(300),
    }
}
