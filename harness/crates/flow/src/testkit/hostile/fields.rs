//! A valid document with one field changed, removed or repeated.

use serde_json::{Value, json};

use super::HostileDocument;

/// Documents that are changed. Both are valid.
fn base() -> Value {
    json!({
        "agentsflow": true,
        "meta": {"schemaVersion": "2.0", "name": "base", "description": "d", "version": "1",
                 "tags": ["t"], "author": "a"},
        "agents": {"agentDefs": [{
            "agentId": "a", "adapterKind": "fake", "outputKind": "text",
            "modelProfile": {"model": "m", "systemPrompt": "s", "temperature": 0.5, "maxTokens": 9},
            "toolPolicy": {"allowedCapabilities": ["c"], "approvalRequirement": "never"},
            "memoryPolicy": {"visibleScopes": ["run"], "maxItems": 1},
            "subagentPolicy": {"allowedAgents": ["a"], "maxDelegations": 1},
            "timeouts": {"turnMs": 1000},
            "budgets": {"maxTokens": 5, "maxCostUsd": 0.5},
            "adapterConfig": {"history": "none"},
        }]},
        "graph": {
            "startNodeId": "n",
            "nodes": [
                {"nodeId": "n", "nodeKind": "agent.main", "label": "l", "agentId": "a",
                 "config": {"turnMode": "plan", "retry": {"maxAttempts": 2, "jitter": false}},
                 "inputPorts": [{"portId": "in", "dataType": "any", "required": false}],
                 "outputPorts": [{"portId": "out", "dataType": "string"}],
                 "params": [{"paramId": "p", "paramType": "string"}]},
                {"nodeId": "loop", "nodeKind": "control.loop", "config": {"maxIterations": 2}},
                {"nodeId": "ask", "nodeKind": "control.human", "config": {"options": ["y", "z"]}},
                {"nodeId": "end", "nodeType": "output"},
            ],
            "edges": [
                {"source": "n", "target": "loop", "condition": "input.a == 1"},
                {"source": "loop", "target": "n", "sourceHandle": "loop"},
                {"source": "loop", "target": "ask", "sourceHandle": "done"},
                {"source": "ask", "target": "end", "sourceHandle": "y", "label": "l"},
                {"source": "n", "sourceHandle": "out", "target": "end", "targetHandle": "result",
                 "dataEdge": true},
            ],
        },
        "runtime": {"maxConcurrency": 2, "globalBudget": {"maxSteps": 9},
                    "adapterConfig": {"fake": {"free": 1}}},
        "layout": {"viewport": {"x": 0, "y": 0, "zoom": 1},
                   "nodeBindings": [{"nodeId": "n", "agentId": "a", "overrides": {}}]},
        "extensions": {"customNodeSpecs": [{"kind": "agent.own", "label": "l", "category": "c",
            "description": "d", "icon": "i", "tags": ["t"]}]},
    })
}

/// Values that replace each value of the base.
fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(0.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("\u{0}\u{202e}"),
        json!("x".repeat(5_000)),
        json!([]),
        json!([[[]]]),
        json!({}),
        json!({"a": {"b": null}}),
    ]
}

pub(super) fn fields() -> Vec<HostileDocument> {
    let base = base();
    let mut pointers = Vec::new();
    collect(&base, &mut String::new(), &mut pointers);
    let mut documents = vec![];
    for (number, pointer) in pointers.iter().enumerate() {
        for (index, value) in values().into_iter().enumerate() {
            let mut flow = base.clone();
            if let Some(place) = flow.pointer_mut(pointer) {
                *place = value;
            }
            let name = format!("value {index} at {pointer}");
            // Both languages meet each place and each value.
            let text = match (number + index) % 2 {
                0 => flow.to_string(),
                _ => serde_saphyr::to_string(&flow).unwrap_or_default(),
            };
            documents.push(HostileDocument::odd(name, text));
        }
        documents.push(HostileDocument::odd(
            format!("without {pointer}"),
            without(&base, pointer).to_string(),
        ));
        if !pointer.ends_with(|c: char| c.is_ascii_digit()) {
            let name = format!("{pointer} twice");
            documents.push(HostileDocument::invalid(name, repeated(&base, pointer)));
        }
    }
    documents
}

/// Collects the pointers of all values below a value.
fn collect(value: &Value, path: &mut String, pointers: &mut Vec<String>) {
    let length = path.len();
    let mut below = |segment: &str, value: &Value| {
        path.push('/');
        path.push_str(segment);
        pointers.push(path.clone());
        collect(value, path, pointers);
        path.truncate(length);
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                below(&index.to_string(), item);
            }
        }
        Value::Object(fields) => fields.iter().for_each(|(key, value)| below(key, value)),
        _ => {}
    }
}

fn split(pointer: &str) -> (&str, &str) {
    pointer.rsplit_once('/').unwrap_or(("", pointer))
}

fn without(base: &Value, pointer: &str) -> Value {
    let mut flow = base.clone();
    let (parent, key) = split(pointer);
    match flow.pointer_mut(parent) {
        Some(Value::Object(fields)) => drop(fields.shift_remove(key)),
        Some(Value::Array(items)) => {
            if let Ok(index) = key.parse::<usize>() {
                items.remove(index);
            }
        }
        _ => {}
    }
    flow
}

/// Writes the key of a pointer twice, which a [`Value`] cannot represent.
fn repeated(base: &Value, pointer: &str) -> String {
    const MARK: &str = "repeated key";
    let mut flow = base.clone();
    let (parent, key) = split(pointer);
    if let Some(Value::Object(fields)) = flow.pointer_mut(parent) {
        fields.insert(MARK.to_owned(), json!(1));
    }
    flow.to_string()
        .replace(&format!("{MARK:?}"), &format!("{key:?}"))
}
