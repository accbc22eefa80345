//! Tests of the receipt of presented files.

use serde_json::Map;

use super::*;
use deerflow_core::messages::{Message, ToolCall, ToolStatus};

fn thread(artifacts: Value) -> ThreadState {
    ThreadState::restored(
        [],
        [(ARTIFACTS.to_owned(), artifacts)].into_iter().collect(),
    )
}

/// Result of a call of `tool` that wrote these artifacts.
fn called(tool: &str, artifacts: Value) -> TaskEnd {
    let result = Message::tool(
        &ToolCall::new("c", tool, Map::new()),
        "done",
        ToolStatus::Success,
    );
    let update = StateUpdate::messages([result]).and(ARTIFACTS, artifacts);
    TaskEnd {
        update: Some(update),
        ..TaskEnd::default()
    }
}

fn delivery_of(ends: impl IntoIterator<Item = TaskEnd>) -> RunDelivery {
    let mut delivery = RunDelivery::default();
    let task = Task {
        id: "t".to_owned(),
        node: "tools".to_owned(),
        step: 1,
        call: Some(0),
    };
    ends.into_iter()
        .for_each(|end| delivery.on_event(&task, &end));
    delivery
}

#[test]
fn run_without_files_has_empty_receipt() {
    let receipt = delivery_of([called("ls", Value::Null)])
        .receipt(&thread(json!(["/old"])), &thread(json!(["/old"])));
    assert_eq!(
        receipt.to_string(),
        r#"{"presented":0,"paths":[],"by_tool":{}}"#
    );
    let empty = ThreadState::default();
    assert_eq!(RunDelivery::default().receipt(&empty, &empty), receipt);
}

#[test]
fn receipt_counts_each_file_once() {
    let delivery = delivery_of([
        called("present_files", json!(["/b", "/a"])),
        called("task", json!(["/b"])),
        called("present_files", json!(["/a"])),
    ]);
    let receipt = delivery.receipt(
        &thread(json!(["/old", "/a"])),
        &thread(json!(["/old", "/a", "/b"])),
    );
    let by_tool = json!({ "present_files": ["/b", "/a"], "task": ["/b"] });
    assert_eq!(
        receipt,
        json!({ "presented": 2, "paths": ["/a", "/b"], "by_tool": by_tool })
    );
}

#[test]
fn file_missing_in_thread_is_not_presented() {
    let receipt = delivery_of([called("present_files", json!(["/a"]))])
        .receipt(&ThreadState::default(), &ThreadState::default());
    assert_eq!(
        receipt,
        json!({ "presented": 0, "paths": [], "by_tool": {} })
    );
}

#[test]
fn file_of_earlier_attempt_has_no_tool() {
    let receipt = delivery_of([called("present_files", json!(["/b"]))])
        .receipt(&thread(json!([])), &thread(json!(["/a", "/b"])));
    assert_eq!(
        receipt,
        json!({ "presented": 2, "paths": ["/a", "/b"], "by_tool": { "present_files": ["/b"] } })
    );
}
