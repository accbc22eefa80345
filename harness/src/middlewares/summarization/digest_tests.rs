//! Tests of the lists of tasks and skills next to a summary.

use serde_json::json;

use super::*;

fn calling(id: &str, tool: &str, args: Value) -> (Message, ToolCall) {
    let call = ToolCall::new(id, tool, args.as_object().cloned().unwrap());
    let answer = Message::ai("").with(|body| {
        if let MessageKind::Ai { tool_calls, .. } = &mut body.kind {
            tool_calls.push(call.clone());
        }
    });
    (answer, call)
}

fn task(id: &str, result: Option<(&str, Value)>) -> Vec<Message> {
    let (answer, call) = calling(
        id,
        "task",
        json!({"description": format!("find <{id}>"), "subagent_type": "general-purpose"}),
    );
    let result = result.map(|(text, noted)| {
        Message::tool(&call, text, ToolStatus::Success).with(|body| {
            body.additional_kwargs
                .extend(noted.as_object().cloned().unwrap());
        })
    });
    [answer].into_iter().chain(result).collect()
}

#[test]
fn digest_lists_tasks_newest_first_with_advice() {
    let messages = [
        task("a", Some(("plain <result>", json!({})))),
        task(
            "b",
            Some((
                "long",
                json!({"subagent_status": "completed", "subagent_result_brief": "42 files"}),
            )),
        ),
        task(
            "c",
            Some((
                "x",
                json!({"subagent_status": "timed_out", "subagent_error": "too slow"}),
            )),
        ),
        task(
            "d",
            Some((
                "half",
                json!({"subagent_status": "completed", "subagent_stop_reason": "token_capped"}),
            )),
        ),
        task("e", None),
    ]
    .concat();
    let sections = digest(&messages).unwrap();
    let lines: Vec<&str> = sections
        .lines()
        .filter(|line| line.starts_with("- "))
        .collect();
    assert!(
        lines[0].contains("[in_progress]") && lines[0].contains("find &lt;e&gt;"),
        "{sections}"
    );
    assert!(
        lines[1].contains("a part of the result")
            && lines[2].contains("[timed_out]")
            && lines[2].ends_with("too slow")
    );
    assert!(
        lines[3].ends_with(": 42 files")
            && lines[4].ends_with("plain &lt;result&gt;")
            && lines.len() == 5
    );
}

#[test]
fn digest_omits_oldest_tasks_over_limit() {
    let text = "word ".repeat(1_000);
    let messages: Vec<Message> = (0..80)
        .flat_map(|at| task(&format!("t{at}"), Some((&text, json!({})))))
        .collect();
    let sections = digest(&messages).unwrap();
    assert!(
        sections.chars().count() < MAX_CHARS + 500
            && sections.contains("find &lt;t79&gt;")
            && !sections.contains("find &lt;t0&gt;")
    );
    let number: usize = sections
        .split("and ")
        .last()
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(
        number
            + sections
                .lines()
                .filter(|line| line.starts_with("- ["))
                .count(),
        80
    );
}

#[test]
fn digest_lists_read_skills_once() {
    let read = |id: &str, path: &str, text: &str| {
        let (answer, call) = calling(id, "read_file", json!({ "path": path }));
        [answer, Message::tool(&call, text, ToolStatus::Success)]
    };
    let messages = [
        read("a", "/mnt/skills/public/pdf/SKILL.md", "how to"),
        read(
            "b",
            "/mnt/skills/public/gone/SKILL.md",
            "Error: no such file",
        ),
        read("c", "/mnt/user-data/workspace/SKILL.md", "mine"),
        read("d", "/mnt/skills/public/pdf/SKILL.md", "how to"),
    ]
    .concat();
    let sections = digest(&messages).unwrap();
    assert_eq!(sections.matches("SKILL.md").count(), 1, "{sections}");
    assert_eq!(digest(&[Message::human("hi"), Message::ai("hello")]), None);
}
