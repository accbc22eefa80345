//! Interleaved messages accumulate separately and are released with their tasks.

use serde_json::Value;

use super::*;
use crate::checkpoint::PendingTask;
use crate::test_support::text_chunk;
use deerflow_core::state::ThreadState;

fn meta(namespace: &str) -> Arc<MessageMeta> {
    Arc::new(MessageMeta {
        langgraph_checkpoint_ns: namespace.to_owned(),
        ..MessageMeta::default()
    })
}

fn last(id: &str) -> MessageChunk {
    MessageChunk {
        chunk_position: Some("last"),
        ..MessageChunk::empty(id)
    }
}

/// Returns a step after which the tasks `node:task id` of these names are pending.
fn step(pending: &[&str], stored: &[&str]) -> StepEvent {
    let message = |id: &&str| Message::ai("x").with(|body| body.id = Some((*id).to_owned()));
    let messages = (1..).zip(stored.iter().map(message));
    StepEvent {
        node: "a".to_owned(),
        update: None,
        state: Arc::new(ThreadState::restored(messages, Default::default())),
        next: pending
            .iter()
            .map(|name| PendingTask::new("1", *name))
            .collect(),
        machine: Value::Null,
        steps: 1,
        checkpoint: true,
    }
}

fn texts(open: &mut OpenMessages) -> Vec<String> {
    let partial = open.take_partial();
    partial.iter().map(|one| one.content.text()).collect()
}

#[test]
fn interleaved_messages_accumulate_independently() {
    for (first, second) in [("a:1", "b:1"), ("", ""), ("t:9|a:1", "t:9|b:1")] {
        let mut open = OpenMessages::default();
        let (first, second) = (meta(first), meta(second));
        for (id, text, meta, so_far) in [
            ("m1", "one ", &first, "one "),
            ("m2", "uno ", &second, "uno "),
            ("m1", "two", &first, "one two"),
            ("m2", "due", &second, "uno due"),
        ] {
            open.push(&text_chunk(id, text), meta);
            let newest = open.newest().unwrap();
            assert_eq!(
                (newest.id.as_deref(), &*newest.content.text()),
                (Some(id), so_far)
            );
        }
        assert_eq!(texts(&mut open), ["one two", "uno due"]);
        assert!(open.newest().is_none());
    }
}

#[test]
fn step_releases_messages_of_tasks_that_ended() {
    let mut open = OpenMessages::default();
    open.push(&text_chunk("m1", "one"), &meta("a:1"));
    open.push(&text_chunk("m2", "uno"), &meta("b:1"));
    open.push(&text_chunk("m3", "eins"), &meta("c:1"));
    open.end_step(&step(&["b", "c"], &["m3"]));
    assert_eq!(open.0.len(), 1);
    open.push(&text_chunk("m2", " due"), &meta("b:1"));
    assert_eq!(texts(&mut open), ["uno due"]);
    open.push(&text_chunk("m4", "x"), &meta(""));
    open.end_step(&step(&["b"], &[]));
    assert!(open.0.is_empty());
}

#[test]
fn complete_message_is_released_by_the_next_of_its_task() {
    let mut open = OpenMessages::default();
    open.push(&text_chunk("m1", "one"), &meta("a:1"));
    open.push(&last("m1"), &meta("a:1"));
    open.push(&text_chunk("m2", "uno"), &meta("b:1"));
    assert_eq!(open.0.len(), 2);
    open.push(&text_chunk("m3", "next"), &meta("a:1"));
    assert_eq!(texts(&mut open), ["uno", "next"]);
}

#[test]
fn later_message_of_a_task_supersedes_a_failed_one() {
    let mut open = OpenMessages::default();
    open.push(&text_chunk("m1", "failed"), &meta("a:1"));
    open.push(&text_chunk("m2", ""), &meta("a:1"));
    assert!(texts(&mut open).is_empty());
}
