//! Which files a run has presented, and which tools did.

use indexmap::{IndexMap, IndexSet};
use serde_json::{Value, json};

use crate::runtime::agent::{Task, TaskEnd};
use crate::state::{StateUpdate, ThreadState};

/// The channel that has the files a thread has presented.
const ARTIFACTS: &str = "artifacts";

/// What the calls of a run presented, by tool.
#[derive(Debug, Default)]
pub(crate) struct RunDelivery(IndexMap<String, IndexSet<String>>);

impl RunDelivery {
    pub(crate) fn hear(&mut self, task: &Task, end: &TaskEnd) {
        let Some(update) = end.update.as_ref().filter(|_| task.call.is_some()) else {
            return;
        };
        let presented = paths(update.channels.get(ARTIFACTS));
        if let Some(tool) = tool_of(update).filter(|_| !presented.is_empty()) {
            self.0
                .entry(tool.to_owned())
                .or_default()
                .extend(presented.into_iter().map(str::to_owned));
        }
    }

    /// The receipt of a run that found `before` and reached `after`. It says what has become of the thread: what a call presented
    /// that was cut off is not in it; what a former attempt presented, whose calls nobody remembers, is in it without a tool.
    pub(crate) fn receipt(&self, before: &ThreadState, after: &ThreadState) -> Value {
        let (earlier, held) = (
            paths(before.channel(ARTIFACTS)),
            paths(after.channel(ARTIFACTS)),
        );
        let is_told = |path: &str| self.0.values().any(|told| told.contains(path));
        let presented: Vec<&str> = held
            .iter()
            .copied()
            .filter(|path| !earlier.contains(path) || is_told(path))
            .collect();
        let kept = |told: &IndexSet<String>| -> Vec<Value> {
            told.iter()
                .filter(|path| held.contains(path.as_str()))
                .map(|path| path.as_str().into())
                .collect()
        };
        let by_tool = self
            .0
            .iter()
            .map(|(tool, told)| (tool.clone(), kept(told)))
            .filter(|(_, kept)| !kept.is_empty());
        json!({ "presented": presented.len(), "paths": presented, "by_tool": by_tool.collect::<IndexMap<_, _>>() })
    }
}

/// The tool whose result leads what its call wrote.
fn tool_of(update: &StateUpdate) -> Option<&str> {
    update
        .messages
        .first()
        .filter(|message| message.tool_call_id().is_some())?
        .name
        .as_deref()
}

fn paths(artifacts: Option<&Value>) -> IndexSet<&str> {
    artifacts
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::messages::{Message, ToolCall, ToolStatus};

    fn thread(artifacts: Value) -> ThreadState {
        ThreadState::restored(
            [],
            [(ARTIFACTS.to_owned(), artifacts)].into_iter().collect(),
        )
    }

    /// The end of a call of `tool` that wrote these artifacts.
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

    fn heard(ends: impl IntoIterator<Item = TaskEnd>) -> RunDelivery {
        let mut delivery = RunDelivery::default();
        let task = Task {
            id: "t".to_owned(),
            node: "tools".to_owned(),
            step: 1,
            call: Some(0),
        };
        ends.into_iter().for_each(|end| delivery.hear(&task, &end));
        delivery
    }

    #[test]
    fn a_run_that_presents_nothing_says_so() {
        let receipt = heard([called("ls", Value::Null)])
            .receipt(&thread(json!(["/old"])), &thread(json!(["/old"])));
        assert_eq!(
            receipt.to_string(),
            r#"{"presented":0,"paths":[],"by_tool":{}}"#
        );
        let nothing = ThreadState::default();
        assert_eq!(RunDelivery::default().receipt(&nothing, &nothing), receipt);
    }

    #[test]
    fn each_file_counts_once_also_when_it_was_presented_before_or_by_two_tools() {
        let delivery = heard([
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
    fn what_the_thread_never_took_is_not_presented() {
        let receipt = heard([called("present_files", json!(["/a"]))])
            .receipt(&ThreadState::default(), &ThreadState::default());
        assert_eq!(
            receipt,
            json!({ "presented": 0, "paths": [], "by_tool": {} })
        );
    }

    #[test]
    fn files_of_a_former_attempt_are_presented_by_a_tool_that_is_not_known() {
        let receipt = heard([called("present_files", json!(["/b"]))])
            .receipt(&thread(json!([])), &thread(json!(["/a", "/b"])));
        assert_eq!(
            receipt,
            json!({ "presented": 2, "paths": ["/a", "/b"], "by_tool": { "present_files": ["/b"] } })
        );
    }
}
