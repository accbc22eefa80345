//! Tests of long results: those that stay, the replacements of the others, and their files.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::synopsis::kind;
use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::{ReplayModel, Reply, ask, calls, fresh, run, state_of};
use crate::ids::ThreadId;
use crate::messages::ToolStatus;
use crate::sandbox::{FileLimits, LineRange, TextRead};
use crate::tools::Tool;

/// Tool that returns a text of the requested length.
#[derive(Debug)]
struct Long(&'static str);

#[derive(Deserialize, JsonSchema)]
struct Length {
    chars: usize,
}

impl Tool for Long {
    type Args = Length;

    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &str {
        "Gives a long text."
    }

    async fn call(&self, args: Length, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok("0123456789ü"
            .chars()
            .cycle()
            .take(args.chars)
            .collect::<String>()
            .into())
    }
}

struct Fixture {
    _dir: tempfile::TempDir,
    home: FileHome,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            home: FileHome::new(dir.path(), FileLimits::default()),
            _dir: dir,
        }
    }

    /// Returns the result of one call as stored in the thread.
    async fn result(&self, tool: &'static str, chars: usize, limits: ToolOutputConfig) -> String {
        let budget = ToolOutputBudgetMiddleware::new(limits, Some(self.home.clone()));
        let model = ReplayModel::new([
            calls([("c", tool, json!({ "chars": chars }))]),
            Reply::Say("done"),
        ]);
        let agent = AgentBuilder::new(model)
            .tool(Long(tool))
            .middleware(budget)
            .build();
        ask(&agent, "go").await.state().messages()[2].content.text()
    }

    async fn stored(&self, path: &str) -> String {
        let files = self.home.thread("ann", &ThreadId::parse("thread").unwrap());
        let read = files
            .read_text(&VirtualPath::parse(path).unwrap(), LineRange::default())
            .await
            .unwrap();
        let TextRead::Text { text, .. } = read else {
            panic!("{read:?}")
        };
        text
    }
}

fn path_in(synopsis: &str) -> &str {
    let from = synopsis.find("/mnt/").unwrap();
    &synopsis[from..from + synopsis[from..].find(": ").unwrap()]
}

#[tokio::test]
async fn long_result_is_stored_and_model_reads_path() {
    let fixture = Fixture::new();
    let result = fixture
        .result("web_fetch", 20_000, ToolOutputConfig::default())
        .await;
    assert!(
        result.contains("20000 characters")
            && result.contains("Kind: text, 1 lines")
            && result.chars().count() < 4_000,
        "{result}"
    );
    let path = path_in(&result);
    assert!(
        path.starts_with("/mnt/user-data/outputs/.tool-results/web_fetch-")
            && path.ends_with(".log"),
        "{path}"
    );
    let stored = fixture.stored(path).await;
    assert_eq!(stored.chars().count(), 20_000);
    assert!(result.ends_with(&stored[stored.char_indices().nth(19_000).unwrap().0..]));
}

#[tokio::test]
async fn short_results_and_exempt_tools_are_unchanged() {
    let fixture = Fixture::new();
    let limits = || {
        serde_json::from_value::<ToolOutputConfig>(
            json!({"tool_overrides": {"small": 10, "free": 0}}),
        )
        .unwrap()
    };
    for (tool, chars, stays) in [
        ("own", 12_000, true),
        ("own", 12_001, false),
        ("read_file", 40_000, true),
        ("small", 10, true),
        ("small", 11, false),
        ("free", 40_000, true),
    ] {
        assert_eq!(
            fixture.result(tool, chars, limits()).await.chars().count() == chars,
            stays,
            "{tool} {chars}"
        );
    }
}

#[tokio::test]
async fn unstorable_result_is_cut_at_its_limit() {
    let fixture = Fixture::new();
    let nowhere = |value| {
        let mut config: ToolOutputConfig = serde_json::from_value(value).unwrap();
        config.storage_subdir = "../out".to_owned();
        config
    };
    assert_eq!(
        fixture
            .result("own", 20_000, nowhere(json!({})))
            .await
            .chars()
            .count(),
        20_000
    );
    let cut = fixture.result("own", 40_000, nowhere(json!({}))).await;
    assert!(
        cut.contains("29000 characters are left out") && cut.chars().count() <= 30_000,
        "{cut}"
    );
}

#[tokio::test]
async fn earlier_long_results_are_cut_in_request_only() {
    let model = ReplayModel::new([Reply::Say("ok")]);
    let limits =
        serde_json::from_value(json!({"tool_overrides": {"free": 0, "wide": 60_000}})).unwrap();
    let agent = AgentBuilder::new(model.clone())
        .middleware(ToolOutputBudgetMiddleware::new(limits, None))
        .build();
    let call = |name: &str| ToolCall::new(name, name, serde_json::Map::new());
    let result = |name: &str| {
        Message::tool(
            &call(name),
            "line of text\n".repeat(4_000),
            ToolStatus::Success,
        )
    };
    let past = [
        Message::human("go"),
        result("own"),
        result("read_file"),
        result("free"),
        result("wide"),
    ];
    let output = run(&agent, fresh(state_of(past)), |_| {}).await;
    let lengths = |messages: &[Message]| {
        messages[1..5]
            .iter()
            .map(|message| message.content.text().len())
            .collect::<Vec<_>>()
    };
    let sent = lengths(&model.requests()[0].messages);
    assert!(sent[0] <= 11_100 && sent[0] > 10_000, "{sent:?}");
    assert_eq!(
        (&sent[1..], lengths(output.state().messages())),
        (&[52_000; 3][..], vec![52_000; 4])
    );
}

#[test]
fn clipped_text_never_exceeds_limit() {
    let text = "ü line\n".repeat(1_000);
    for max in [0, 1, 79, 80, 81, 200, 5_000] {
        let short = clipped(&text, max, 4_000, 4_000);
        assert!(
            short.chars().count() <= max,
            "{max}: {}",
            short.chars().count()
        );
    }
    assert!(clipped(&text, 200, 50, 20).starts_with("ü line\nü line"));
    let one_line = format!("title\n{}\nend", "x".repeat(1_000));
    let short = clipped(&one_line, 500, 200, 100);
    assert!(
        short.starts_with("title\nxxx")
            && short.ends_with("xxx\nend")
            && short.chars().count() > 300,
        "no line is near: {short}"
    );
}

#[test]
fn formats_are_detected_and_described() {
    for (text, wanted) in [
        (
            r#"{"a": 1, "b": [2]}"#,
            "json, an object with the keys a, b",
        ),
        (
            r#"[{"id": 1}, {"id": 2}]"#,
            "json, a list of 2 items, the first with the keys id",
        ),
        ("[1, 2", "text, 1 lines"),
        (
            "name,age\nann,3\nbob,4\n",
            "csv, 3 lines, the columns are name, age",
        ),
        (
            "name\tage\nann\t3\n",
            "tsv, 2 lines, the columns are name, age",
        ),
        (
            "<?xml version=\"1.0\"?>\n<root><a/></root>",
            "xml, the root element is root",
        ),
        (
            "name: x\nitems:\n  - a\nport: 3\n",
            "yaml, the keys are name, items, port",
        ),
        (
            "use std;\nfn main() {\n}\nfn other() {}\n",
            "code, 4 lines, with fn main() {, fn other() {}",
        ),
        ("Hello there.\nThis is prose.\n", "text, 2 lines"),
        ("a\0b", "unknown, looks like binary data"),
    ] {
        assert_eq!(kind(text), wanted);
    }
    let wide: Vec<String> = (0..30).map(|at| format!("\"k{at}\": 1")).collect();
    assert!(kind(&format!("{{{}}}", wide.join(","))).ends_with("k19, and 10 more"));
}

#[test]
fn non_text_blocks_stay_next_to_synopsis() {
    let image = json!({"type": "image_url", "image_url": {"url": "x"}});
    let content = Content::Blocks(vec![
        json!("one"),
        image.clone(),
        json!({"type": "text", "text": "two"}),
    ]);
    assert_eq!(
        content.with_text("short".to_owned()),
        Content::Blocks(vec![json!({"type": "text", "text": "short"}), image])
    );
}
