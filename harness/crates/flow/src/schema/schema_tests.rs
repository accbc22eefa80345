//! Tests of reading and writing flow documents.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Document, json_schema};
use crate::finding::Validation;

fn minimal() -> Value {
    json!({
        "meta": {"schemaVersion": "2.0", "name": "case"},
        "agents": {"agentDefs": []},
        "graph": {
            "nodes": [{"nodeId": "a", "nodeKind": "control.finish"}],
            "edges": [],
            "startNodeId": "a",
        },
    })
}

fn with(pointer: &str, key: &str, value: Value) -> Value {
    let mut flow = minimal();
    flow.pointer_mut(pointer).unwrap()[key] = value;
    flow
}

fn paths(validation: &Validation) -> Vec<&str> {
    validation
        .errors
        .iter()
        .filter_map(|finding| finding.path.as_deref())
        .collect()
}

#[test]
fn null_fields_are_read_as_absent() {
    let read = Document::from_value(with("/meta", "description", Value::Null)).unwrap();
    assert_eq!(read.flow, Document::from_value(minimal()).unwrap().flow);
}

#[test]
fn numeric_versions_are_read_as_text() {
    for (number, text) in [(json!(1.0), "1.0"), (json!(2), "2.0"), (json!(2.5), "2.5")] {
        let read = Document::from_value(with("/meta", "schemaVersion", number)).unwrap();
        assert_eq!(read.flow.meta.schema_version, text);
    }
}

#[test]
fn unknown_fields_survive_reading_and_writing() {
    let mut flow = minimal();
    for pointer in ["", "/meta", "/agents", "/graph", "/graph/nodes/0"] {
        flow.pointer_mut(pointer).unwrap()["xNote"] = json!({"deep": [1, null, "no", 1.5]});
    }
    let document = Document::from_value(flow).unwrap();
    assert_eq!(document.unknown_fields().len(), 5);
    let in_node = document
        .unknown_fields()
        .iter()
        .find(|finding| finding.node_id.is_some());
    assert_eq!(
        in_node.unwrap().path.as_deref(),
        Some("/graph/nodes/0/xNote")
    );
    for text in [
        document.flow.to_json().unwrap(),
        document.flow.to_yaml().unwrap(),
    ] {
        assert_eq!(Document::read(&text).unwrap().flow, document.flow, "{text}");
    }
}

/// A document with every kind of record that can have unknown fields.
const EVERY_RECORD: &str = include_str!("../../tests/documents/every_record.yaml");

/// Adds an unknown field to each object, except to those whose fields are free.
fn add_unknown_fields(value: &mut Value, added: &mut usize) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                if !["config", "adapterConfig", "overrides", "defaultValue"].contains(&key.as_str())
                {
                    add_unknown_fields(value, added);
                }
            }
            fields.insert("xNote".to_owned(), json!({"a": [1.5, null, "no"]}));
            *added += 1;
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| add_unknown_fields(item, added)),
        _ => {}
    }
}

#[test]
fn unknown_fields_of_every_record_survive() {
    let mut value = Document::read(EVERY_RECORD).unwrap().value().clone();
    let mut added = 0;
    add_unknown_fields(&mut value, &mut added);
    assert!(added > 25, "{added}");
    let document = Document::from_value(value.clone()).unwrap();
    for text in [
        document.flow.to_json().unwrap(),
        document.flow.to_yaml().unwrap(),
    ] {
        assert_eq!(*Document::read(&text).unwrap().value(), value, "{text}");
    }
}

#[test]
fn cases_are_the_same_after_reading_and_writing() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flow_cases");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let case: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let Ok(document) = Document::from_value(case["flow"].clone()) else {
            continue;
        };
        read += 1;
        for text in [
            document.flow.to_json().unwrap(),
            document.flow.to_yaml().unwrap(),
        ] {
            assert_eq!(
                Document::read(&text).unwrap().flow,
                document.flow,
                "{}",
                path.display()
            );
        }
    }
    assert!(read > 25, "{read}");
}

#[test]
fn structural_problems_name_node_edge_agent_and_line() {
    let text = "meta: {schemaVersion: '2.0', name: x}
agents:
  agentDefs:
    - agentId: worker
      adapterKind: 7
graph:
  startNodeId: a
  nodes:
    - nodeId: a
      nodeType: zzz
  edges:
    - source: a
";
    let errors = Document::read(text).unwrap_err().errors;
    let facts: Vec<_> = errors
        .iter()
        .map(|e| {
            (
                e.agent_id.as_deref(),
                e.node_id.as_deref(),
                e.edge_index,
                e.line,
            )
        })
        .collect();
    assert_eq!(
        facts,
        [
            (Some("worker"), None, None, Some(5)),
            (None, Some("a"), None, Some(10)),
            (None, None, Some(0), Some(12)),
        ]
    );
    assert!(
        errors[1].message.contains("one of agent, router"),
        "{}",
        errors[1].message
    );
}

#[test]
fn lines_of_json_texts_are_known() {
    let text = "{\n  \"meta\": {\n    \"name\": \"\"\n  }\n}";
    let errors = Document::read(text).unwrap_err().errors;
    let name = errors
        .iter()
        .find(|e| e.path.as_deref() == Some("/meta/name"))
        .unwrap();
    assert_eq!(name.line, Some(3));
}

#[test]
fn syntax_errors_have_one_finding_with_a_line() {
    for (text, line) in [
        ("a: [1\nb: 2", Some(2)),
        ("{\"a\": 1,\n \"b\" 2}", Some(2)),
        ("meta: 1\nmeta: 2", Some(2)),
        ("", None),
        ("[]", Some(1)),
        ("just text", Some(1)),
    ] {
        let errors = Document::read(text).unwrap_err().errors;
        assert_eq!(errors.len(), 1, "{text:?}: {errors:?}");
        assert_eq!(errors[0].path.as_deref(), Some(""));
        if line.is_some() {
            assert_eq!(errors[0].line, line, "{text:?}: {errors:?}");
        }
    }
}

#[test]
fn texts_beyond_the_limits_are_refused() {
    let large = format!("# {}", "x".repeat(super::MAX_BYTES));
    let deep_json = format!("{{\"a\": {}1{}}}", "[".repeat(70), "]".repeat(70));
    let deep_flow = format!("a: {}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let deep_block: String = (0..2_000)
        .map(|n| format!("{}a:\n", " ".repeat(n)))
        .collect();
    let very_deep_json = format!("{{\"a\": {}", "[".repeat(500_000));
    let bomb = format!(
        "a: &a [{}]\nb: &b [{}]\nc: [{}]",
        ["x"; 100].join(","),
        ["*a"; 100].join(","),
        ["*b"; 100].join(",")
    );
    let wide_json = format!("{{\"a\": [{}1]}}", "1,".repeat(super::MAX_VALUES));
    let wide_yaml = format!("a: [{}1]", "1,".repeat(super::MAX_VALUES));
    for text in [
        wide_json,
        wide_yaml,
        large,
        deep_json,
        deep_flow,
        deep_block,
        very_deep_json,
        bomb,
    ] {
        let validation = Document::read(&text).unwrap_err();
        assert_eq!(validation.errors.len(), 1, "{:.80}", text);
        assert_eq!(validation.errors[0].code.as_str(), "schema_invalid");
    }
}

#[test]
fn numbers_of_nodes_edges_and_agents_are_limited() {
    let mut flow = minimal();
    flow["graph"]["nodes"] = json!(vec![json!({}); 501]);
    flow["graph"]["edges"] = json!(vec![json!({}); 2_001]);
    flow["agents"]["agentDefs"] = json!(vec![json!({}); 201]);
    let validation = Document::from_value(flow).unwrap_err();
    assert_eq!(
        paths(&validation),
        ["/agents/agentDefs", "/graph/nodes", "/graph/edges"]
    );
}

#[test]
fn thousands_of_problems_are_cut_with_a_notice() {
    let validation =
        Document::from_value(with("/meta", "tags", json!(vec![1; 50_000]))).unwrap_err();
    assert_eq!(validation.errors.len(), crate::finding::MAX_FINDINGS);
    assert!(
        validation
            .errors
            .last()
            .unwrap()
            .message
            .starts_with("more problems")
    );
}

#[test]
fn node_ids_follow_the_rules_of_namespaces() {
    let long = "x".repeat(129);
    for id in ["", "a|b", "a:b", "a\nb", "__start__", "__end__", "*", &long] {
        let validation =
            Document::from_value(with("/graph/nodes/0", "nodeId", json!(id))).unwrap_err();
        assert_eq!(paths(&validation), ["/graph/nodes/0/nodeId"], "{id:?}");
    }
    assert!(Document::from_value(with("/graph/nodes/0", "nodeId", json!("é b/c"))).is_ok());
}

#[test]
fn plain_words_of_yaml_are_text() {
    let text = serde_json::to_string(&minimal()).unwrap();
    let yaml = format!("{}, description: no}}", text.trim_end_matches('}'));
    assert!(Document::read(&yaml).is_err(), "unbalanced");
    let text = "meta: {schemaVersion: 2.0, name: on, description: no, author: 'yes'}
agents: {agentDefs: []}
graph: {nodes: [{nodeId: a}], edges: [], startNodeId: a}";
    let flow = Document::read(text).unwrap().flow;
    assert_eq!(
        (flow.meta.name.as_str(), flow.meta.description.as_deref()),
        ("on", Some("no"))
    );
}

#[test]
fn json_schema_describes_all_records() {
    let schema = json_schema();
    assert_eq!(schema["required"], json!(["meta", "agents", "graph"]));
    assert_eq!(
        schema["$defs"]["Graph"]["properties"]["nodes"]["maxItems"],
        500
    );
    assert_eq!(schema["$defs"]["Node"]["required"], json!(["nodeId"]));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[ \\n\\t:#'\"{}\\[\\]&*!|>%@`,?~-]{0,6}".prop_map(Value::from),
        prop::sample::select(vec![
            "no", "1.0", "null", "~", "0x1f", "1e3", "<<", "=", "-", "? a"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z ]{0,5}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn parse_write_parse_is_identity(extra in any_value(), config in any_value(), label in "\\PC{0,20}") {
        let mut flow = minimal();
        flow["xExtra"] = extra;
        flow["graph"]["nodes"][0]["config"] = json!({"value": config});
        flow["graph"]["nodes"][0]["label"] = json!(label);
        let document = Document::from_value(flow).unwrap();
        let json = document.flow.to_json().unwrap();
        prop_assert_eq!(&Document::read(&json).unwrap().flow, &document.flow);
        let yaml = document.flow.to_yaml().unwrap();
        let read = Document::read(&yaml).map_err(|e| TestCaseError::fail(format!("{yaml}\n{e:?}")))?;
        prop_assert_eq!(&read.flow, &document.flow, "{}", yaml);
    }

    #[test]
    fn any_text_is_read_or_refused_without_panic(text in "\\PC{0,200}") {
        let _ = Document::read(&text);
    }
}
