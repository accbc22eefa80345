//! Builds compiled flows from documents for tests of the engine, without validation.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use deerflow_flow::adapter::TurnMode;
use deerflow_flow::compiled::{
    AgentNode, AssetPrompt, AssetText, CompiledFlow, CompiledNode, ControlEdge, DataEdge, Driver,
    EffectiveAgent, FinishNode, FlowLimits, HumanNode, Join, LoaderKind, LoaderNode, LoopNode,
    MergeMode, OnError, OutputFormat, PlanLoopNode, PromptNode, RetryPolicy, SubflowNode,
};
use deerflow_flow::condition::Condition;
use deerflow_flow::schema::{AgentDef, Budgets, Flow, Node, OutputKind};
use serde_json::{Value, json};

pub(crate) fn compile(document: &Value, manifest: Option<&Value>) -> CompiledFlow {
    let document: Flow = serde_json::from_value(document.clone()).expect("a flow");
    let index: HashMap<Arc<str>, usize> = document
        .graph
        .nodes
        .iter()
        .enumerate()
        .map(|(index, node)| (Arc::from(node.node_id.as_str()), index))
        .collect();
    let count = document.graph.nodes.len();
    let kinds: Vec<String> = document.graph.nodes.iter().map(kind).collect();
    let mut control = vec![Vec::new(); count];
    let mut error_edges = vec![Vec::new(); count];
    let mut data = vec![Vec::new(); count];
    let mut complete_data: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (position, edge) in document.graph.edges.iter().enumerate() {
        let (source, target) = (index[edge.source.as_str()], index[edge.target.as_str()]);
        let routing: &[&str] = match kinds[source].as_str() {
            "control.plan-loop" => &["plan", "execute", "evaluate", "done"],
            "control.loop" => &["loop", "done"],
            _ => &[],
        };
        let handle = edge.source_handle.as_deref();
        let is_data = edge.data_edge
            && edge.target_handle.is_some()
            && handle.is_some_and(|handle| !routing.contains(&handle));
        if is_data {
            data[target].push(DataEdge {
                index: position,
                source,
                source_port: handle.unwrap().into(),
                target_port: edge.target_handle.as_deref().unwrap().into(),
            });
            complete_data[source].push(position);
            continue;
        }
        let compiled = control_edge(&document, position, target);
        if handle == Some("error") {
            error_edges[source].push(compiled);
        } else {
            control[source].push(compiled);
        }
    }
    for source in 0..count {
        if control[source].is_empty() {
            for position in &complete_data[source] {
                let target = index[document.graph.edges[*position].target.as_str()];
                control[source].push(control_edge(&document, *position, target));
            }
        }
    }
    let reach: Vec<HashSet<usize>> = (0..count).map(|node| reachable(&control, node)).collect();
    let mut predecessors = vec![Vec::new(); count];
    for source in 0..count {
        for edge in control[source].iter().chain(&error_edges[source]) {
            let is_forward = !reach[edge.target].contains(&source);
            if is_forward && !predecessors[edge.target].contains(&source) {
                predecessors[edge.target].push(source);
            }
        }
    }
    let nodes = (0..count)
        .map(|node| {
            let has_error = !error_edges[node].is_empty();
            compile_node(
                &document, node, &kinds, manifest, &control, &reach, has_error,
            )
        })
        .collect();
    let runtime = document.runtime.clone().unwrap_or_default();
    CompiledFlow {
        content_hash: "test".to_owned(),
        nodes,
        start: index[document.graph.start_node_id.as_str()],
        index,
        control,
        error_edges,
        data,
        predecessors,
        limits: FlowLimits {
            max_concurrency: runtime.max_concurrency.unwrap_or(1) as usize,
            budget: runtime.global_budget.unwrap_or_default(),
            persist_events: true,
        },
        adapter_config: HashMap::new(),
        document: Arc::new(document),
    }
}

fn kind(node: &Node) -> String {
    let legacy = match node.node_type.as_deref() {
        Some("output") => "control.output",
        Some("router") => "router.generic",
        Some("input") => "loader.input",
        Some("loop") => "control.loop",
        Some("parallel") => "control.parallel",
        _ => "agent.generic",
    };
    node.node_kind.clone().unwrap_or_else(|| legacy.to_owned())
}

fn control_edge(document: &Flow, position: usize, target: usize) -> ControlEdge {
    let edge = &document.graph.edges[position];
    ControlEdge {
        index: position,
        target,
        handle: edge.source_handle.as_deref().map(Arc::from),
        condition: edge
            .condition
            .as_deref()
            .map(|text| Condition::parse(text).unwrap()),
    }
}

fn reachable(control: &[Vec<ControlEdge>], from: usize) -> HashSet<usize> {
    let mut found = HashSet::new();
    let mut rest = vec![from];
    while let Some(node) = rest.pop() {
        for edge in &control[node] {
            if found.insert(edge.target) {
                rest.push(edge.target);
            }
        }
    }
    found
}

fn compile_node(
    document: &Flow,
    position: usize,
    kinds: &[String],
    manifest: Option<&Value>,
    control: &[Vec<ControlEdge>],
    reach: &[HashSet<usize>],
    has_error_edge: bool,
) -> CompiledNode {
    let node = &document.graph.nodes[position];
    let kind = kinds[position].as_str();
    let config = Value::Object(node.config.clone());
    let text = |key: &str| config[key].as_str().map(str::to_owned);
    let has = |handle: &str| {
        control[position]
            .iter()
            .any(|edge| edge.handle.as_deref() == Some(handle))
    };
    let mut join = match kind {
        "control.join" => Join::All,
        "control.finish" | "control.output" => Join::Defer,
        _ => Join::Any,
    };
    match config["join"].as_str() {
        Some("any") => join = Join::Any,
        Some("all") => join = Join::All,
        Some("defer") => join = Join::Defer,
        _ => {}
    }
    let driver = match kind {
        "control.finish" | "control.output" => Driver::Finish(FinishNode {
            format: match config["outputFormat"].as_str() {
                Some("json") => OutputFormat::Json,
                _ => OutputFormat::Text,
            },
        }),
        "control.parallel" | "control.join" => Driver::Pass,
        "control.condition" => Driver::Router,
        "control.human" => Driver::Human(HumanNode {
            prompt: text("prompt").unwrap_or_default(),
            options: serde_json::from_value(config["options"].clone()).unwrap_or_default(),
            accepts_any: has("response"),
        }),
        "control.subflow" => Driver::Subflow(SubflowNode {
            flow_id: text("flowId").unwrap(),
        }),
        "control.loop" => Driver::Loop(LoopNode {
            max_iterations: config["maxIterations"].as_u64().unwrap_or(10),
            condition: text("condition").map(|text| Condition::parse(&text).unwrap()),
        }),
        "control.plan-loop" => Driver::PlanLoop(PlanLoopNode {
            max_iterations: config["maxIterations"].as_u64().unwrap_or(5),
            completion_threshold: config["completionThreshold"].as_f64().unwrap_or(0.8),
            evaluate_prompt: text("evaluatePrompt"),
            has_plan: has("plan"),
            has_evaluate: has("evaluate"),
            evaluators: (0..kinds.len())
                .filter(|other| {
                    document.graph.nodes[*other].config.get("turnMode") == Some(&json!("evaluate"))
                        && reach[*other].contains(&position)
                })
                .collect(),
        }),
        "input.prompt" => Driver::Prompt(PromptNode {
            text: text("promptText").unwrap_or_default(),
            file: None,
            merge: match config["mergeMode"].as_str() {
                Some("replace") => MergeMode::Replace,
                Some("prepend") => MergeMode::Prepend,
                _ => MergeMode::Append,
            },
        }),
        _ if kind.starts_with("router.") => Driver::Router,
        _ if kind.starts_with("loader.") => Driver::Loader(Box::new(LoaderNode {
            kind: LoaderKind::Input,
            config: node.config.clone(),
        })),
        _ if kind.starts_with("agent.") => {
            let loop_prompt = document
                .graph
                .nodes
                .iter()
                .enumerate()
                .find_map(|(other, node)| {
                    let leads =
                        kinds[other] == "control.plan-loop" && reach[position].contains(&other);
                    leads.then(|| Some(node.config.get("evaluatePrompt")?.as_str()?.to_owned()))?
                });
            Driver::Agent(Box::new(agent_node(document, node, manifest, loop_prompt)))
        }
        _ => Driver::Skip,
    };
    let retry = &config["retry"];
    CompiledNode {
        id: node.node_id.as_str().into(),
        kind: kind.to_owned(),
        label: None,
        inputs: node.input_ports.clone(),
        outputs: node.output_ports.clone(),
        join,
        driver,
        retry: RetryPolicy {
            max_attempts: retry["maxAttempts"].as_u64().unwrap_or(1) as u32,
            initial_interval_ms: retry["initialIntervalMs"].as_u64().unwrap_or(500),
            ..RetryPolicy::default()
        },
        on_error: match config["onError"].as_str() {
            Some("continue") => OnError::Continue(config["defaultOutput"].clone()),
            Some("branch") => OnError::Branch,
            None if has_error_edge => OnError::Branch,
            _ => OnError::Fail,
        },
    }
}

fn agent_node(
    document: &Flow,
    node: &Node,
    manifest: Option<&Value>,
    loop_evaluate_prompt: Option<String>,
) -> AgentNode {
    let config = Value::Object(node.config.clone());
    let text = |key: &str| config[key].as_str().map(str::to_owned);
    let id = node.agent_ref.as_ref().or(node.agent_id.as_ref()).cloned();
    let id = id.or_else(|| text("agentId")).unwrap();
    let def = document
        .agents
        .agent_defs
        .iter()
        .find(|def| def.agent_id == id);
    let asset = manifest
        .filter(|_| node.agent_ref.is_some())
        .map(|manifest| (manifest, &manifest["agents"][id.as_str()]));
    let agent = effective(&id, def, asset.filter(|(_, asset)| asset.is_object()));
    let mode = |value: &Value| match value.as_str() {
        Some("plan") => Some(TurnMode::Plan),
        Some("evaluate") => Some(TurnMode::Evaluate),
        Some(_) => Some(TurnMode::Normal),
        None => None,
    };
    let turn_mode = mode(&config["turnMode"])
        .or(agent.turn_mode)
        .unwrap_or_default();
    AgentNode {
        turn_mode,
        output_kind: agent.output_kind.unwrap_or(match turn_mode {
            TurnMode::Plan => OutputKind::Plan,
            TurnMode::Evaluate => OutputKind::Score,
            TurnMode::Normal => OutputKind::Text,
        }),
        system_prompt: text("systemPrompt"),
        user_prompt: text("userPrompt"),
        evaluate_prompt: text("evaluatePrompt"),
        loop_evaluate_prompt,
        model: None,
        temperature: None,
        max_tokens: None,
        turn_limit_ms: Some(agent.timeouts.turn_ms.unwrap_or(60_000)),
        budgets: Budgets::default(),
        agent: Arc::new(agent),
    }
}

fn effective(id: &str, def: Option<&AgentDef>, asset: Option<(&Value, &Value)>) -> EffectiveAgent {
    let file = |text: &Value| AssetText {
        label: "file".to_owned(),
        source_path: None,
        text: text.as_str().unwrap_or_default().into(),
    };
    let prompt = asset.map(|(manifest, asset)| {
        let files = |kind: &str| -> Vec<AssetText> {
            let names = asset["includes"][kind]
                .as_array()
                .cloned()
                .unwrap_or_default();
            names
                .iter()
                .map(|name| file(&manifest[kind][name.as_str().unwrap()]))
                .collect()
        };
        AssetPrompt {
            global: manifest["globalSystemPrompt"]
                .is_string()
                .then(|| file(&manifest["globalSystemPrompt"])),
            instructions: files("instructions"),
            skills: files("skills"),
            body: file(&asset["body"]),
        }
    });
    let of_asset = |key: &str| asset.map_or(Value::Null, |(_, asset)| asset[key].clone());
    let kind = of_asset("adapterKind").as_str().map(str::to_owned);
    EffectiveAgent {
        agent_id: id.to_owned(),
        adapter_kind: kind.or(def.map(|def| def.adapter_kind.clone())).unwrap(),
        model_profile: def
            .and_then(|def| def.model_profile.clone())
            .unwrap_or_default(),
        tool_policy: Default::default(),
        memory_policy: def
            .and_then(|def| def.memory_policy.clone())
            .unwrap_or_default(),
        subagent_policy: def
            .and_then(|def| def.subagent_policy.clone())
            .unwrap_or_default(),
        timeouts: def.and_then(|def| def.timeouts.clone()).unwrap_or_default(),
        budgets: def.and_then(|def| def.budgets.clone()).unwrap_or_default(),
        adapter_config: def
            .and_then(|def| def.adapter_config.clone())
            .unwrap_or_default(),
        output_kind: serde_json::from_value(of_asset("outputKind"))
            .unwrap_or(None)
            .or(def.and_then(|def| def.output_kind)),
        turn_mode: serde_json::from_value(of_asset("turnMode")).unwrap_or(None),
        tools: Vec::new(),
        asset: prompt,
    }
}
