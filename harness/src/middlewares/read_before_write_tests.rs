//! Tests of the changes that are permitted and of those that require a read first.

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

/// Call log in which every call has ended.
#[derive(Debug)]
struct AllCallsEnded;

#[async_trait]
impl ToolLedger for AllCallsEnded {
    async fn progress(&self, _run: &RunId, _key: &str) -> Result<Option<CallProgress>, StoreError> {
        let ended: Result<ToolOutput, ToolError> = Ok(ToolOutput::text("as recorded"));
        Ok(Some(CallProgress::Done(
            serde_json::to_value(ended).unwrap(),
        )))
    }
}

struct Fixture {
    _dir: tempfile::TempDir,
    home: FileHome,
    past: Vec<Message>,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            home: FileHome::new(dir.path(), FileLimits::default()),
            _dir: dir,
            past: vec![Message::human("go")],
        }
    }

    async fn write_externally(&self, text: &str) {
        let files = self.home.thread("ann", &ThreadId::parse("thread").unwrap());
        files
            .write_text(&path(), text.to_owned(), WriteMode::Replace)
            .await
            .unwrap();
    }

    /// Returns the result of one call in the same conversation.
    async fn call(&mut self, tool: &'static str, args: Value) -> String {
        self.called(tool, args, None).await
    }

    /// Same as `call`, for a run of which an earlier attempt may have recorded calls.
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
        let output = run(&agent, fresh(state), |ctx| {
            if former.is_some() {
                calls(ctx)
            }
        })
        .await;
        self.past = output.state().messages().to_vec();
        self.past[self.past.len() - 2].content.text()
    }
}

#[tokio::test]
async fn write_requires_mark_of_current_content() {
    let mut fixture = Fixture::new();
    let edit = || json!({"old_str": "one", "new_str": "two"});
    fixture.write_externally("one").await;
    assert!(
        fixture
            .call("str_replace", edit())
            .await
            .contains("you have not read it")
    );
    assert!(
        fixture
            .call("write_file", json!({"content": "x"}))
            .await
            .contains("you have not read it")
    );
    assert!(
        fixture
            .call("write_file", json!({"content": "x", "append": true}))
            .await
            .contains("you have not read it")
    );
    assert!(
        fixture
            .call("write_file", json!({"content": "one", "append": true}))
            .await
            .contains("you have not read it")
    );
    assert_eq!(fixture.call("read_file", json!({})).await, "one");
    assert_eq!(fixture.call("str_replace", edit()).await, "OK");
    assert_eq!(
        fixture
            .call("write_file", json!({"content": "three"}))
            .await,
        "OK",
        "the run's own change needs no read"
    );
    fixture.write_externally("four").await;
    assert!(
        fixture
            .call("write_file", json!({"content": "five"}))
            .await
            .contains("has changed since you last read it")
    );
}

#[tokio::test]
async fn repeated_write_passes() {
    let mut fixture = Fixture::new();
    fixture.write_externally("one").await;
    assert_eq!(
        fixture.call("write_file", json!({"content": "one"})).await,
        "OK"
    );
}

#[tokio::test]
async fn repeated_call_returns_recorded_result() {
    let mut fixture = Fixture::new();
    fixture.write_externally("two").await;
    for (tool, args) in [
        ("str_replace", json!({"old_str": "one", "new_str": "two"})),
        ("write_file", json!({"content": "o", "append": true})),
        ("write_file", json!({"content": "x"})),
    ] {
        assert_eq!(
            fixture
                .called(tool, args, Some(Arc::new(AllCallsEnded)))
                .await,
            "as recorded",
            "{tool}"
        );
    }
}

#[tokio::test]
async fn new_file_needs_no_read_and_failed_write_sets_no_mark() {
    let mut fixture = Fixture::new();
    assert_eq!(
        fixture.call("write_file", json!({"content": "one"})).await,
        "OK"
    );
    assert!(
        fixture
            .call("str_replace", json!({"old_str": "zzz", "new_str": "y"}))
            .await
            .starts_with("Error")
    );
    assert_eq!(
        fixture
            .past
            .iter()
            .filter(|message| message.additional_kwargs.contains_key(kwargs::READ_MARK))
            .count(),
        1
    );
    assert_eq!(
        newest_mark(
            &fixture.past,
            &VirtualPath::parse("/mnt/user-data/outputs/a.txt").unwrap()
        ),
        None
    );
}

#[tokio::test]
async fn several_changes_in_one_answer_are_allowed() {
    let fixture = Fixture::new();
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
            home: fixture.home.clone(),
        })
        .tool(StrReplace {
            home: fixture.home.clone(),
        })
        .middleware(ReadBeforeWriteMiddleware::new(fixture.home.clone()))
        .build();
    let output = run(&agent, fresh(state_of([Message::human("go")])), |_| {}).await;
    let results: Vec<String> = output.state().messages()[2..5]
        .iter()
        .map(|result| result.content.text())
        .collect();
    assert!(results.iter().all(|result| result == "OK"), "{results:?}");
}

#[tokio::test]
async fn file_locks_are_separate_per_user() {
    let fixture = Fixture::new();
    let gate = ReadBeforeWriteMiddleware::new(fixture.home.clone());
    let key = |user: &str, number: usize| {
        let path = VirtualPath::parse(&format!("/mnt/user-data/workspace/{number}")).unwrap();
        (user.to_owned(), ThreadId::parse("thread").unwrap(), path)
    };
    let file_lock = gate.file_lock(key("ann", 0));
    let _guard = file_lock.lock().await;
    assert!(gate.file_lock(key("ann", 0)).try_lock().is_err());
    assert!(gate.file_lock(key("bob", 0)).try_lock().is_ok());
    for number in 1..2 * MAX_TRACKED_FILES {
        assert!(
            gate.file_lock(key("ann", number)).try_lock().is_ok(),
            "{number}"
        );
    }
    assert!(
        gate.file_lock(key("ann", 0)).try_lock().is_err(),
        "a held lock is not dropped from the map"
    );
    assert!(gate.known.lock().len() <= MAX_TRACKED_FILES);
}
