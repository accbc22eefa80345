//! Which changes pass, and which must read first.

use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::{ReplayModel, Reply, calls, fresh, run, state_of};
use crate::ids::{RunId, ThreadId};
use crate::runtime::agent::{CallLog, RunContext};
use crate::runtime::runs::store::{CallProgress, StoreError, ToolLedger};
use crate::sandbox::{FileLimits, WriteMode};
use crate::tools::builtins::{ReadFile, StrReplace, WriteFile};

const PATH: &str = "/mnt/user-data/workspace/a.txt";

fn path() -> VirtualPath {
    VirtualPath::parse(PATH).unwrap()
}

/// Knows that every call has ended.
#[derive(Debug)]
struct AllDone;

#[async_trait]
impl ToolLedger for AllDone {
    async fn progress(&self, _run: &RunId, _key: &str) -> Result<Option<CallProgress>, StoreError> {
        let ended: Result<ToolOutput, ToolError> = Ok(ToolOutput::text("as recorded"));
        Ok(Some(CallProgress::Done(
            serde_json::to_value(ended).unwrap(),
        )))
    }
}

struct House {
    _dir: tempfile::TempDir,
    home: FileHome,
    past: Vec<Message>,
}

impl House {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            home: FileHome::new(dir.path(), FileLimits::default()),
            _dir: dir,
            past: vec![Message::human("go")],
        }
    }

    async fn outside(&self, text: &str) {
        let files = self.home.thread("ann", &ThreadId::parse("thread").unwrap());
        files
            .write_text(&path(), text.to_owned(), WriteMode::Replace)
            .await
            .unwrap();
    }

    /// The result of one call in the same conversation.
    async fn call(&mut self, tool: &'static str, args: Value) -> String {
        self.called(tool, args, None).await
    }

    /// The same, of a run that a former attempt may have written things down of.
    async fn called(
        &mut self,
        tool: &'static str,
        mut args: Value,
        former: Option<Arc<dyn ToolLedger>>,
    ) -> String {
        args["path"] = json!(PATH);
        args["description"] = json!("d");
        let home = || self.home.clone();
        let agent = AgentBuilder::new(ReplayModel::new([
            calls([("c", tool, args)]),
            Reply::Say("ok"),
        ]))
        .tool(ReadFile {
            home: home(),
            max_chars: 0,
        })
        .tool(WriteFile { home: home() })
        .tool(StrReplace { home: home() })
        .middleware(ReadBeforeWriteMiddleware::new(home()))
        .build();
        let state = state_of(
            self.past
                .iter()
                .map(|message| message.with(|body| body.id = None)),
        );
        let calls =
            |ctx: &mut RunContext| ctx.calls = CallLog::of(ctx.run_id.clone(), former.clone()).0;
        let said = run(&agent, fresh(state), |ctx| {
            if former.is_some() {
                calls(ctx)
            }
        })
        .await;
        self.past = said.state().messages().to_vec();
        self.past[self.past.len() - 2].content.text()
    }
}

#[tokio::test]
async fn a_file_is_changed_only_by_who_knows_its_content() {
    let mut house = House::new();
    let edit = || json!({"old_str": "one", "new_str": "two"});
    house.outside("one").await;
    assert!(
        house
            .call("str_replace", edit())
            .await
            .contains("you have not read it")
    );
    assert!(
        house
            .call("write_file", json!({"content": "x"}))
            .await
            .contains("you have not read it")
    );
    assert!(
        house
            .call("write_file", json!({"content": "x", "append": true}))
            .await
            .contains("you have not read it")
    );
    assert!(
        house
            .call("write_file", json!({"content": "one", "append": true}))
            .await
            .contains("you have not read it")
    );
    assert_eq!(house.call("read_file", json!({})).await, "one");
    assert_eq!(house.call("str_replace", edit()).await, "OK");
    assert_eq!(
        house.call("write_file", json!({"content": "three"})).await,
        "OK",
        "what one wrote one knows"
    );
    house.outside("four").await;
    assert!(
        house
            .call("write_file", json!({"content": "five"}))
            .await
            .contains("has changed since you last read it")
    );
}

#[tokio::test]
async fn a_write_that_is_made_again_passes() {
    let mut house = House::new();
    house.outside("one").await;
    assert_eq!(
        house.call("write_file", json!({"content": "one"})).await,
        "OK"
    );
}

#[tokio::test]
async fn a_call_that_was_made_before_has_the_result_it_had() {
    let mut house = House::new();
    house.outside("two").await;
    for (tool, args) in [
        ("str_replace", json!({"old_str": "one", "new_str": "two"})),
        ("write_file", json!({"content": "o", "append": true})),
        ("write_file", json!({"content": "x"})),
    ] {
        assert_eq!(
            house.called(tool, args, Some(Arc::new(AllDone))).await,
            "as recorded",
            "{tool}"
        );
    }
}

#[tokio::test]
async fn a_new_file_needs_no_reading_and_a_failed_write_marks_nothing() {
    let mut house = House::new();
    assert_eq!(
        house.call("write_file", json!({"content": "one"})).await,
        "OK"
    );
    assert!(
        house
            .call("str_replace", json!({"old_str": "zzz", "new_str": "y"}))
            .await
            .starts_with("Error")
    );
    assert_eq!(
        house
            .past
            .iter()
            .filter(|message| message.additional_kwargs.contains_key(kwargs::READ_MARK))
            .count(),
        1
    );
    assert_eq!(
        newest_mark(
            &house.past,
            &VirtualPath::parse("/mnt/user-data/outputs/a.txt").unwrap()
        ),
        None
    );
}

#[tokio::test]
async fn several_changes_of_a_file_in_one_answer_build_on_each_other() {
    let house = House::new();
    let edit = |id, old: &str, new: &str| {
        (
            id,
            "str_replace",
            json!({"path": PATH, "description": "d", "old_str": old, "new_str": new}),
        )
    };
    let write = (
        "a",
        "write_file",
        json!({"path": PATH, "description": "d", "content": "one two"}),
    );
    let answer = calls([write, edit("b", "one", "1"), edit("c", "two", "2")]);
    let agent = AgentBuilder::new(ReplayModel::new([answer, Reply::Say("ok")]))
        .tool(WriteFile {
            home: house.home.clone(),
        })
        .tool(StrReplace {
            home: house.home.clone(),
        })
        .middleware(ReadBeforeWriteMiddleware::new(house.home.clone()))
        .build();
    let said = run(&agent, fresh(state_of([Message::human("go")])), |_| {}).await;
    let results: Vec<String> = said.state().messages()[2..5]
        .iter()
        .map(|result| result.content.text())
        .collect();
    assert!(results.iter().all(|result| result == "OK"), "{results:?}");
}

#[tokio::test]
async fn nobody_waits_for_the_file_of_another() {
    let house = House::new();
    let gate = ReadBeforeWriteMiddleware::new(house.home.clone());
    let key = |user: &str, number: usize| {
        let path = VirtualPath::parse(&format!("/mnt/user-data/workspace/{number}")).unwrap();
        (user.to_owned(), ThreadId::parse("thread").unwrap(), path)
    };
    let held = gate.turn(key("ann", 0));
    let _held = held.lock().await;
    assert!(gate.turn(key("ann", 0)).try_lock().is_err());
    assert!(gate.turn(key("bob", 0)).try_lock().is_ok());
    for number in 1..2 * MOST_KNOWN {
        assert!(gate.turn(key("ann", number)).try_lock().is_ok(), "{number}");
    }
    assert!(
        gate.turn(key("ann", 0)).try_lock().is_err(),
        "what is in use is not forgotten"
    );
    assert!(gate.known.lock().len() <= MOST_KNOWN);
}
