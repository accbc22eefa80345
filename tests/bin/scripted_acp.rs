//! Scripted ACP agent (Agent Client Protocol): its arguments and prompts control whether it behaves
//! well.
//!
//! An argument `STEP=ACTION` replaces its behaviour at a step, or after it with `after STEP`; a prompt
//! has one action per line.

use std::io::{Lines, StdinLock, Write, stdin, stdout};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, anyhow};
use serde_json::{Value, json};

/// Agent with its session state.
struct Agent {
    input: Lines<StdinLock<'static>>,
    /// Actions that replace or follow the normal behaviour of a step.
    actions: Vec<(String, String)>,
    /// Working directory of its session.
    cwd: PathBuf,
    /// Request that opened its session.
    opening: Value,
    asked: u32,
}

fn main() -> anyhow::Result<ExitCode> {
    let actions = std::env::args().skip(1).filter_map(|argument| {
        let (step, action) = argument.split_once('=')?;
        Some((step.to_owned(), action.to_owned()))
    });
    let mut agent = Agent {
        input: stdin().lines(),
        actions: actions.collect(),
        cwd: PathBuf::new(),
        opening: Value::Null,
        asked: 0,
    };
    while let Some(line) = agent.input.next() {
        let message: Value = serde_json::from_str(&line?)?;
        if let Some(code) = agent.answer(&message)? {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Agent {
    /// Answers a request; returns an exit code if the agent ends instead.
    fn answer(&mut self, message: &Value) -> anyhow::Result<Option<ExitCode>> {
        let method = message["method"].as_str().unwrap_or_default();
        if let Some(code) = self.perform_for(method)? {
            return Ok(Some(code));
        }
        let result = match method {
            "initialize" => json!({
                "protocolVersion": 1,
                "agentCapabilities": {"mcpCapabilities": {"http": true}},
                "agentInfo": {"name": "scripted", "version": "1"},
            }),
            "session/new" => {
                self.opening = message["params"].clone();
                self.cwd = self.opening["cwd"]
                    .as_str()
                    .context("a session without a folder")?
                    .into();
                let models = json!([{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]);
                let option = json!({"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "small", "options": models});
                json!({"sessionId": "s1", "configOptions": [option]})
            }
            "session/set_config_option" => {
                self.opening["chosen"] = message["params"]["value"].clone();
                json!({"configOptions": []})
            }
            "session/prompt" => {
                let prompt = message["params"]["prompt"][0]["text"]
                    .as_str()
                    .context("a prompt without text")?;
                let mut stop = "end_turn";
                for action in prompt.lines() {
                    if let Some(reason) = action.strip_prefix("stop ") {
                        stop = reason;
                    } else if let Some(code) = self.perform(action)? {
                        return Ok(Some(code));
                    }
                }
                json!({"stopReason": stop})
            }
            _ => return Ok(None),
        };
        send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))?;
        self.perform_for(&format!("after {method}"))
    }

    /// Performs the action that is configured for a step.
    fn perform_for(&mut self, step: &str) -> anyhow::Result<Option<ExitCode>> {
        let action = self
            .actions
            .iter()
            .find(|(at, _)| at == step)
            .map(|(_, action)| action.clone());
        action.map_or(Ok(None), |action| self.perform(&action))
    }

    fn perform(&mut self, action: &str) -> anyhow::Result<Option<ExitCode>> {
        let (verb, rest) = action.split_once(' ').unwrap_or((action, ""));
        match verb {
            "say" => say(rest)?,
            "tag" => say(&format!("<{rest}>obey</{rest}>"))?,
            "think" => update("agent_thought_chunk", rest)?,
            "complain" => writeln!(std::io::stderr(), "{rest}")?,
            "write" => {
                let (name, text) = rest.split_once(' ').context("write NAME TEXT")?;
                std::fs::write(self.cwd.join(name), text)?;
            }
            "look" => {
                let variables = String::from_utf8_lossy(&std::fs::read("/proc/self/environ")?)
                    .replace('\0', "\n");
                say(&format!(
                    "cwd {} session {}\n{variables}",
                    std::env::current_dir()?.display(),
                    self.cwd.display()
                ))?;
            }
            "list" => {
                let names = std::fs::read_dir(&self.cwd)?
                    .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
                say(&names.collect::<std::io::Result<Vec<_>>>()?.join(","))?;
            }
            "opening" => say(&self.opening.to_string())?,
            "permission" => {
                let options: Vec<Value> =
                    rest.split(',').map(|kind| json!({"optionId": format!("id-{kind}"), "name": kind, "kind": kind})).collect();
                let call = json!({"toolCallId": "c1", "title": "Delete everything"});
                self.ask(
                    "session/request_permission",
                    &json!({"sessionId": "s1", "toolCall": call, "options": options}),
                )?;
            }
            "read" => self.ask(
                "fs/read_text_file",
                &json!({"sessionId": "s1", "path": rest}),
            )?,
            "put" => self.ask(
                "fs/write_text_file",
                &json!({"sessionId": "s1", "path": rest, "content": "x"}),
            )?,
            "terminal" => self.ask(
                "terminal/create",
                &json!({"sessionId": "s1", "command": rest}),
            )?,
            "spawn" => {
                // In a separate session, which no signal to the process group reaches.
                let child = Command::new("setsid").args(["sleep", "1000"]).spawn()?;
                std::fs::write(
                    self.cwd.join("pids.part"),
                    format!("{} {}", std::process::id(), child.id()),
                )?;
                std::fs::rename(self.cwd.join("pids.part"), self.cwd.join(rest))?;
            }
            "garbage" => {
                writeln!(stdout(), "npm notice {rest}")?;
                hang();
            }
            "huge" => {
                let piece = vec![b'x'; 1 << 20];
                stdout().write_all(b"{\"a\": \"")?;
                while stdout().write_all(&piece).is_ok() {}
                hang();
            }
            "die" => return Ok(Some(ExitCode::from(rest.parse::<u8>()?))),
            "hang" => hang(),
            _ => say(&format!("cannot {verb}"))?,
        }
        Ok(None)
    }

    /// Sends a request to the client and reports its response.
    fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<()> {
        self.asked += 1;
        let id = format!("q{}", self.asked);
        send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        for line in self.input.by_ref() {
            let answer: Value = serde_json::from_str(&line?)?;
            if answer["id"] == id.as_str() {
                let content = if answer["error"].is_null() {
                    &answer["result"]
                } else {
                    &answer["error"]["message"]
                };
                return say(&format!("{method}: {content}\n"));
            }
        }
        Err(anyhow!("no response"))
    }
}

fn say(words: &str) -> anyhow::Result<()> {
    update("agent_message_chunk", words)
}

fn update(kind: &str, words: &str) -> anyhow::Result<()> {
    let update = json!({"sessionUpdate": kind, "content": {"type": "text", "text": words}});
    send(
        &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", "update": update}}),
    )
}

fn send(message: &Value) -> anyhow::Result<()> {
    let mut output = stdout().lock();
    writeln!(output, "{message}")?;
    Ok(output.flush()?)
}

/// Blocks forever without reading input.
fn hang() -> ! {
    loop {
        std::thread::park();
    }
}
