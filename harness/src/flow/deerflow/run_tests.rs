//! Runs of flows whose nodes are lead agents, custom agents and subagents, on in-memory stores.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::agents::lead::{LeadAgentSpec, LeadAgents};
use crate::agents::test_support::{ReplayModel, Reply, calls};
use crate::clock::SystemClock;
use crate::flow::agent::{FlowAgent, FlowDependencies};
use crate::flow::assets::PromptAssetManifest;
use crate::flow::compile::compile_text;
use crate::flow::validate::Options;
use crate::flow::{FlowKinds, flow_registry};
use crate::ids::{SystemIds, ThreadId};
use crate::messages::Message;
use crate::models::{ChatModel, ModelCatalog, ModelEntry, Pricing, ScriptedModel};
use crate::runtime::agent::{Agent, AgentResolver, AssistantInfo, UnknownAssistant};
use crate::runtime::in_memory::runtime_in_memory;
use crate::runtime::runs::{RunInput, RunLimits, RunRequest, RunsFacade, WaitOutcome};
use crate::sandbox::{FileHome, FileLimits};
use crate::state::StateUpdate;
use crate::tools::ToolRegistry;
use crate::tools::builtins::{ReadFile, WriteFile};

/// One node, whose agent has these keys besides its id and kind.
fn flow_of(agent: &Value) -> String {
    let mut agent = agent.clone();
    agent["agentId"] = json!("worker");
    agent["adapterKind"] = json!("deerflow");
    json!({
        "meta": {"schemaVersion": "2.0", "name": "One"},
        "agents": {"agentDefs": [agent]},
        "graph": {
            "startNodeId": "work",
            "nodes": [
                {"nodeId": "work", "nodeKind": "agent.main", "agentId": "worker"},
                {"nodeId": "finish", "nodeKind": "control.finish"},
            ],
            "edges": [{"source": "work", "target": "finish"}],
        },
    })
    .to_string()
}

#[derive(Debug)]
struct OneFlow(Arc<FlowAgent>);

#[async_trait]
impl AgentResolver for OneFlow {
    async fn resolve(
        &self,
        _: &str,
        _: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Ok(self.0.clone())
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        vec![]
    }
}

struct Bench {
    agent: Arc<FlowAgent>,
    runs: RunsFacade,
    thread: ThreadId,
    files: FileHome,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new(model: Arc<dyn ChatModel>, agent: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = FileHome::new(folder.path(), FileLimits::default());
        let priced = ModelEntry {
            pricing: Some(Pricing {
                currency: "USD".to_owned(),
                input: 1_000_000.0,
                cached_input: 0.0,
                output: 2_000_000.0,
            }),
            ..ModelEntry::new(&model.info().name, "scripted", "s")
        };
        let catalog = ModelCatalog::new([priced], Arc::new(SystemClock)).with_model(model);
        let tools = ToolRegistry::new()
            .with(WriteFile {
                home: files.clone(),
            })
            .with(ReadFile {
                home: files.clone(),
                max_chars: 1000,
            });
        let lead = LeadAgents::new(LeadAgentSpec {
            tools,
            tool_groups: HashMap::from([("read_file".to_owned(), "reading".to_owned())]),
            files: Some(files.clone()),
            ..LeadAgentSpec::new(Arc::new(catalog))
        });
        let kinds = FlowKinds {
            agents: Some(Arc::new(lead)),
            ..FlowKinds::new(Arc::new(SystemIds::default()))
        };
        let registry = flow_registry(kinds).unwrap();
        let (manifest, options) = (PromptAssetManifest::default(), Options::default());
        let compiled = compile_text(&flow_of(agent), &manifest, &registry, &options).unwrap();
        let dependencies = Arc::new(FlowDependencies::new(registry));
        let agent = Arc::new(FlowAgent::new(compiled.flow, dependencies));
        let runtime = runtime_in_memory(Arc::new(OneFlow(agent.clone()))).unwrap();
        Self {
            agent,
            runs: RunsFacade::new(runtime, RunLimits::default()),
            thread: ThreadId::parse("t1").unwrap(),
            files,
            _folder: folder,
        }
    }

    async fn run(&self, input: RunInput) -> Value {
        let request = RunRequest {
            input,
            ..RunRequest::ask("flow-one", self.thread.clone(), Message::human(""))
        };
        match self.runs.create_and_wait(request).await.unwrap().1 {
            WaitOutcome::Values(values) => serde_json::from_slice(&values.into_bytes()).unwrap(),
            WaitOutcome::Failed { message, .. } => panic!("the run failed: {message}"),
        }
    }

    async fn send(&self, prompt: &str) -> Value {
        let input = Map::from_iter([("userPrompt".to_owned(), json!(prompt))]);
        let mut values = self.agent.read_input(input).unwrap();
        values.shift_remove("messages").unwrap();
        self.run(RunInput::Update(StateUpdate {
            messages: vec![Message::human(prompt)],
            channels: values.into_iter().collect(),
        }))
        .await
    }

    fn text_of(&self, path: &str) -> Option<Vec<u8>> {
        let path = self.files.readable(path).unwrap();
        let files = self.files.thread("default", &self.thread);
        files.blocking().read_bytes(&path, 1000).ok()
    }
}

#[tokio::test]
async fn node_calls_a_tool_and_continues_after_an_answer() {
    let bench = Bench::new(Arc::new(ScriptedModel::default()), &json!({}));
    let prompt = r#"[[tool:write_file {"description":"d","path":"/mnt/user-data/outputs/a.txt","content":"kept"}]] [[tool:ask_clarification {"question":"Which color?","clarification_type":"missing_info"}]] then say done"#;
    let asked = bench.send(prompt).await;
    let question = &asked["__interrupt__"][0]["value"];
    assert_eq!(question["question"], "Which color?", "{asked}");
    let written = bench.text_of("/mnt/user-data/outputs/a.txt");
    assert_eq!(written.as_deref(), Some(&b"kept"[..]));
    let end = bench.run(RunInput::Resume(json!("then say blue"))).await;
    assert_eq!(end["result"], "blue", "{end}");
    assert_eq!(end["visits"], json!({"work": 1, "finish": 1}));
}

#[tokio::test]
async fn required_approval_is_a_question_of_the_run() {
    let policy = json!({"toolPolicy": {"approvalRequirement": "destructive_only"}});
    let bench = Bench::new(Arc::new(ScriptedModel::default()), &policy);
    let path = "/mnt/user-data/outputs/a.txt";
    let prompt = r#"[[tool:write_file {"description":"d","path":"/mnt/user-data/outputs/a.txt","content":"kept"}]] then say done"#;
    let asked = bench.send(prompt).await;
    assert_eq!(
        asked["__interrupt__"].as_array().map(Vec::len),
        Some(1),
        "{asked}"
    );
    assert_eq!(bench.text_of(path), None);
    let end = bench.run(RunInput::Resume(json!("approve"))).await;
    assert_eq!(end["result"], "done", "{end}");
    assert!(bench.text_of(path).is_some());
}

#[tokio::test]
async fn tool_policy_removes_tools_and_reports_unknown_names() {
    let model = ReplayModel::new([Reply::Say("done")]);
    let policy = json!({"toolPolicy": {
        "allowedCapabilities": ["reading", "write_file", "fly"], "blockedTools": ["write_file"],
    }});
    let bench = Bench::new(model.clone(), &policy);
    bench.send("go").await;
    let request = model.requests().pop().unwrap();
    let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(tools, ["read_file", "ask_clarification"]);
}

#[tokio::test]
async fn subagent_executes_a_turn_with_the_tools_of_the_policy() {
    let model = ReplayModel::new([Reply::Say("done")]);
    let agent = json!({
        "adapterConfig": {"subagentType": "general-purpose"},
        "toolPolicy": {"blockedTools": ["write_file"]},
    });
    let bench = Bench::new(model.clone(), &agent);
    let end = bench.send("go").await;
    assert_eq!(end["result"], "done", "{end}");
    let request = model.requests().pop().unwrap();
    let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(tools, ["read_file"]);
}

#[tokio::test]
async fn tokens_and_cost_of_a_turn_are_reported() {
    let bench = Bench::new(Arc::new(ScriptedModel::default()), &json!({}));
    let end = bench.send("[[usage 11,7]] then say done").await;
    let usage = &end["outputs"]["work"]["usage"];
    assert_eq!(usage["totalTokens"], 18, "{end}");
    assert_eq!(usage["costUsd"], 25.0, "{end}");
}

#[tokio::test]
async fn model_that_calls_a_blocked_tool_gets_an_error() {
    let write = json!({"description": "d", "path": "/mnt/user-data/outputs/a.txt", "content": "x"});
    let model = ReplayModel::new([calls([("c", "write_file", write)]), Reply::Say("done")]);
    let policy = json!({"toolPolicy": {"blockedTools": ["write_file"]}});
    let bench = Bench::new(model, &policy);
    assert_eq!(bench.send("go").await["result"], "done");
    assert_eq!(bench.text_of("/mnt/user-data/outputs/a.txt"), None);
}
