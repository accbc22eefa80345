//! Documents of the right shape whose graphs are not valid.

use serde_json::{Value, json};

use super::HostileDocument;

/// Ids that no node may have.
const IDS: [&str; 12] = [
    "",
    "a|b",
    "a:b",
    "a\nb",
    "a\tb",
    "\u{7f}",
    "\u{0}",
    "\u{85}",
    "*",
    "__start__",
    "__end__",
    "|",
];

pub(super) fn graphs() -> Vec<HostileDocument> {
    let mut documents = vec![
        document("501 nodes", |flow| {
            let nodes = (0..501).map(|n| agent(&format!("n{n}")));
            flow["graph"]["nodes"] = nodes.collect();
        }),
        document("2001 edges", |flow| {
            let edges = (0..2_001).map(|_| json!({"source": "a", "target": "b"}));
            flow["graph"]["edges"] = edges.collect();
        }),
        document("201 agents", |flow| {
            let agents =
                (0..201).map(|n| json!({"agentId": format!("a{n}"), "adapterKind": "fake"}));
            flow["agents"]["agentDefs"] = agents.collect();
        }),
        document("no nodes", |flow| flow["graph"]["nodes"] = json!([])),
        document("unknown version", |flow| {
            flow["meta"]["schemaVersion"] = json!("9")
        }),
        document("unknown start", |flow| {
            flow["graph"]["startNodeId"] = json!("nowhere")
        }),
        document("unknown source", |flow| {
            flow["graph"]["edges"][0]["source"] = json!("x")
        }),
        document("unknown target", |flow| {
            flow["graph"]["edges"][0]["target"] = json!("x")
        }),
        document("self edge", |flow| {
            flow["graph"]["edges"][0]["target"] = json!("a")
        }),
        document("unknown output", |flow| {
            flow["graph"]["edges"][0]["sourceHandle"] = json!("x")
        }),
        document("unknown input", |flow| {
            flow["graph"]["edges"][0]["targetHandle"] = json!("x")
        }),
        document("same edge twice", |flow| {
            let edge = flow["graph"]["edges"][0].clone();
            flow["graph"]["edges"] = json!([edge, edge]);
        }),
        document("same node twice", |flow| {
            flow["graph"]["nodes"][1] = agent("a")
        }),
        document("same agent twice", |flow| {
            let agent = flow["agents"]["agentDefs"][0].clone();
            flow["agents"]["agentDefs"] = json!([agent, agent]);
        }),
        document("same port twice", |flow| {
            let port = json!({"portId": "in", "dataType": "any"});
            flow["graph"]["nodes"][0]["inputPorts"] = json!([port, port]);
        }),
        document("types of ports differ", |flow| {
            flow["graph"]["nodes"][0]["outputPorts"] =
                json!([{"portId": "n", "dataType": "number"}]);
            flow["graph"]["nodes"][1]["inputPorts"] =
                json!([{"portId": "b", "dataType": "boolean"}]);
            flow["graph"]["edges"][0] = data("n", "b");
        }),
        document("two sources of one input", |flow| {
            flow["graph"]["nodes"][2] = agent("c");
            flow["graph"]["edges"] = json!([
                data("out", "data"),
                {"source": "c", "target": "b", "sourceHandle": "out", "targetHandle": "data",
                 "dataEdge": true},
            ]);
        }),
        document("unknown agent", |flow| {
            flow["graph"]["nodes"][0]["agentId"] = json!("x")
        }),
        document("unknown agent file", |flow| {
            flow["graph"]["nodes"][0]["agentRef"] = json!("x")
        }),
        document("no agent", |flow| {
            flow["graph"]["nodes"][0]["agentId"] = Value::Null
        }),
        document("unknown adapter", |flow| {
            flow["agents"]["agentDefs"][0]["adapterKind"] = json!("nothing-has-this-kind");
        }),
        document("plan loop without handles", |flow| {
            flow["graph"]["nodes"][0]["nodeKind"] = json!("control.plan-loop");
            flow["graph"]["edges"] = json!([]);
        }),
        document("branch without an edge", |flow| {
            flow["graph"]["nodes"][0]["config"] = json!({"onError": "branch"});
        }),
        document("long agent id that many nodes name", |flow| {
            flow["agents"]["agentDefs"][0]["agentId"] = "x".repeat(500_000).into();
            let nodes = (0..500).map(|n| agent(&format!("n{n}")));
            flow["graph"]["nodes"] = nodes.collect();
        }),
        document("long port id that many edges miss", |flow| {
            let id = "x".repeat(500_000);
            flow["graph"]["nodes"][0]["outputPorts"] = json!([{"portId": id, "dataType": "any"}]);
            let edge =
                |n: usize| json!({"source": "a", "target": "b", "sourceHandle": format!("p{n}")});
            flow["graph"]["edges"] = (0..2_000).map(edge).collect();
        }),
        document("many ports", |flow| {
            let port = |n: usize| json!({"portId": format!("p{n}"), "dataType": "any"});
            flow["graph"]["nodes"][0]["outputPorts"] = (0..20_000).map(port).collect();
        }),
        document("many options", |flow| {
            let options: Vec<String> = (0..60_000).map(|n| format!("o{n}")).collect();
            flow["graph"]["nodes"][1] =
                json!({"nodeId": "b", "nodeKind": "control.human", "config": {"options": options}});
        }),
        document("many secrets below a long key", |flow| {
            let secrets: Vec<String> = (0..5_000).map(|n| format!("sk-{n:030}")).collect();
            flow["x".repeat(400_000)] = json!(secrets);
            flow["graph"]["edges"][0]["source"] = json!("x");
        }),
        document("many unknown settings with long names", |flow| {
            let names = (0..100).map(|n| (format!("{n}{}", "x".repeat(5_000)), json!(1)));
            flow["graph"]["nodes"][0]["config"] = Value::Object(names.collect());
            flow["graph"]["edges"][0]["source"] = json!("x");
        }),
        document("500 problems", |flow| {
            let nodes = (0..500).map(|n| json!({"nodeId": format!("n{n}"), "nodeKind": "x.y"}));
            flow["graph"]["nodes"] = nodes.collect();
        }),
    ];
    documents.extend(IDS.iter().enumerate().map(|(number, id)| {
        document(format!("node id {number}"), |flow| {
            flow["graph"]["nodes"][0]["nodeId"] = json!(id)
        })
    }));
    let kinds = [
        "",
        "x",
        "control.",
        "control.nothing",
        ".",
        "router",
        "\u{0}.x",
        "CONTROL.FINISH",
    ];
    documents.extend(kinds.iter().enumerate().map(|(number, kind)| {
        document(format!("node kind {number}"), |flow| {
            flow["graph"]["nodes"][2]["nodeKind"] = json!(kind);
        })
    }));
    documents.extend(
        settings()
            .into_iter()
            .enumerate()
            .map(|(number, (kind, config))| {
                document(format!("setting {number} of {kind}"), |flow| {
                    flow["graph"]["nodes"][1] =
                        json!({"nodeId": "b", "nodeKind": kind, "config": config});
                    if kind.starts_with("agent.") {
                        flow["graph"]["nodes"][1]["agentId"] = json!("main");
                    }
                })
            }),
    );
    let conditions = [
        "(",
        ")",
        "a",
        "1 <",
        "== 1",
        "'open",
        "input.",
        "nodes[",
        "1 2",
        "a()",
        "contains(1)",
        "!",
        "input.a == == 2",
        "input.a < 1 < 2",
        "\u{0}",
        "input.a & input.b",
        "len(",
        "nodes['a].out",
        "1e999999 > 0 0",
        "&&",
        "exists()",
        "loop",
        "last",
        "\u{202e}input.a",
        "input..a",
    ];
    documents.extend(conditions.iter().enumerate().map(|(number, condition)| {
        document(format!("condition {number}"), |flow| {
            flow["graph"]["edges"][0]["condition"] = json!(condition);
        })
    }));
    documents
}

/// Settings that their node kinds refuse.
fn settings() -> Vec<(&'static str, Value)> {
    vec![
        ("agent.main", json!({"turnMode": "sideways"})),
        ("agent.main", json!({"temperature": 9})),
        ("agent.main", json!({"timeoutMs": 0})),
        ("agent.main", json!({"maxTokens": -1})),
        ("agent.main", json!({"retry": {"maxAttempts": 0}})),
        ("agent.main", json!({"retry": "often"})),
        ("agent.main", json!({"onError": "ignore"})),
        ("agent.main", json!({"join": "some"})),
        ("agent.main", json!({"budgets": {"maxTokens": 0}})),
        ("agent.main", json!({"userPrompt": ["a"]})),
        ("control.plan-loop", json!({"maxIterations": 0})),
        ("control.plan-loop", json!({"completionThreshold": 2})),
        ("control.loop", json!({"maxIterations": 1.5})),
        ("control.loop", json!({"condition": "("})),
        ("control.human", json!({"options": ["a", "a"]})),
        ("control.human", json!({"options": ["out"]})),
        ("control.human", json!({"options": "yes"})),
        ("control.finish", json!({"outputFormat": "pdf"})),
        ("control.subflow", json!({"flowId": 5})),
        ("control.subflow", json!({})),
        ("input.prompt", json!({"promptFile": "/etc/passwd"})),
        ("input.prompt", json!({"promptFile": "a/../../b"})),
        ("input.prompt", json!({"promptFile": "C:\\secrets.txt"})),
        ("input.prompt", json!({"mergeMode": "mix"})),
        ("loader.work-dir", json!({"directory": "/"})),
        ("loader.local-dir", json!({"directory": "~/.ssh"})),
        ("loader.local-dir", json!({"maxFileSize": -1})),
        ("loader.http-auth", json!({"url": "file:///etc/passwd"})),
        ("loader.http-auth", json!({})),
        (
            "loader.http-auth",
            json!({"url": "https://a.example", "authType": "magic"}),
        ),
    ]
}

fn agent(id: &str) -> Value {
    json!({"nodeId": id, "nodeKind": "agent.sub", "agentId": "main"})
}

fn data(output: &str, input: &str) -> Value {
    json!({
        "source": "a", "target": "b", "sourceHandle": output, "targetHandle": input,
        "dataEdge": true,
    })
}

/// Changes a valid flow with the nodes `a`, `b` and `c`, the last of which is a finish node.
fn document(name: impl Into<String>, change: impl FnOnce(&mut Value)) -> HostileDocument {
    let mut flow = json!({
        "meta": {"schemaVersion": "2.0", "name": "graph"},
        "agents": {"agentDefs": [{"agentId": "main", "adapterKind": "fake"}]},
        "graph": {
            "startNodeId": "a",
            "nodes": [agent("a"), agent("b"), {"nodeId": "c", "nodeKind": "control.finish"}],
            "edges": [{"source": "a", "target": "b"}, {"source": "b", "target": "c"}],
        },
    });
    change(&mut flow);
    HostileDocument::invalid(format!("graph: {}", name.into()), flow.to_string())
}
