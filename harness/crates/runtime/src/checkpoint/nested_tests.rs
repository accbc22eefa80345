//! Tests of nested states and their paths.

use chrono::DateTime;

use super::*;
use crate::checkpoint::{CheckpointSource, PendingTask};
use deerflow_core::messages::Message;

fn id(n: u8) -> CheckpointId {
    CheckpointId::parse(format!("c{n}")).unwrap()
}

fn holding(name: &str, n: u8, next: Vec<PendingTask>) -> PendingTask {
    let state = ThreadState::restored([(1, Message::human(name))], Default::default());
    let nested = NestedState {
        checkpoint_id: id(n),
        parent_id: None,
        source: CheckpointSource::Loop,
        step: 1,
        next,
        machine: Some(json!({ "at": "tools" })),
        state: Arc::new(state),
        created_at: DateTime::UNIX_EPOCH,
    };
    PendingTask {
        nested: Some(Arc::new(nested)),
        ..PendingTask::new(name, "tools")
    }
}

#[test]
fn nested_agent_is_found_by_its_namespace() {
    let outer = CheckpointMeta {
        checkpoint_id: id(1),
        thread_id: ThreadId::parse("t").unwrap(),
        parent_id: None,
        run_id: None,
        source: CheckpointSource::Loop,
        step: 1,
        next: vec![
            PendingTask::new("x", "tools"),
            holding("a", 2, vec![holding("b", 3, vec![])]),
        ],
        machine: None,
        metadata: Map::new(),
        created_at: DateTime::UNIX_EPOCH,
    };
    let (snapshot, path) = nested_at(&outer, "tools:a|tools:b").unwrap();
    assert_eq!(
        (
            snapshot.meta.checkpoint_id,
            snapshot.state.messages()[0].content.text()
        ),
        (id(3), "b".to_owned())
    );
    assert_eq!(
        path.parents(),
        Map::from_iter([
            (String::new(), json!("c1")),
            ("tools:a".to_owned(), json!("c2"))
        ])
    );
    assert_eq!(
        nested_at(&outer, "tools:a").unwrap().1.map(Some(&id(2))),
        Some(json!({ "": "c1", "tools:a": "c2" }))
    );
    for unknown in [
        "",
        "tools:x",
        "tools:b",
        "tools:a|",
        "tools:a|tools:a",
        "|tools:a",
    ] {
        assert!(nested_at(&outer, unknown).is_none(), "{unknown}");
    }
}

#[test]
fn task_json_roundtrip_retains_nested_agent() {
    let task = holding("a", 2, vec![holding("b", 3, vec![])]);
    let read: PendingTask = serde_json::from_value(json!(task)).unwrap();
    assert_eq!(read, task);
    assert!(
        json!(PendingTask::new("x", "tools"))
            .get("nested")
            .is_none()
    );
}

#[test]
fn nested_agents_carry_over_to_pending_tasks_only() {
    let before = [holding("a", 2, vec![]), holding("b", 3, vec![])];
    let mut next = vec![
        PendingTask::new("b", "tools"),
        PendingTask::new("c", "tools"),
    ];
    PendingTask::carry_over(&mut next, &before);
    assert_eq!(
        next.iter()
            .map(|task| task.nested.is_some())
            .collect::<Vec<_>>(),
        [true, false]
    );
}
