//! Tests of the system flows.

use std::fs;

use deerflow_flow::adapter::AdapterRegistry;
use deerflow_flow::adapters::fake::FakeFactory;
use harness::clock::SystemClock;
use harness::config_file::{Environment, load_file};
use tempfile::TempDir;

use super::*;

/// A flow with one agent node.
fn flow(name: &str) -> String {
    format!(
        "meta: {{schemaVersion: '2.0', name: {name}}}
agents: {{agentDefs: [{{agentId: a, adapterKind: fake}}]}}
graph:
  startNodeId: n
  nodes: [{{nodeId: n, nodeKind: agent.main, agentId: a}}]
  edges: []
"
    )
}

struct Installation {
    home: TempDir,
    flows: WatchedFlows,
}

impl Installation {
    async fn with(files: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write(home.path(), path, text);
        }
        let config = home.path().join("config.yaml");
        fs::write(&config, "config_version: 34\ndatabase: {backend: memory}\n").unwrap();
        let environment = Environment::of(home.path(), [("A", "b")]);
        let loaded = load_file(&config, &environment).unwrap();
        let mut registry = AdapterRegistry::default();
        registry
            .register(Arc::new(FakeFactory::plain("fake")))
            .unwrap();
        let rules = Arc::new(FlowRules::new(Arc::new(registry)));
        let handle = ConfigHandle::new(loaded, environment);
        let flows = WatchedFlows::open(handle, rules, Arc::new(SystemClock)).await;
        Self { home, flows }
    }

    async fn after(&self, path: &str, text: &str) -> Arc<SystemSnapshot> {
        write(self.home.path(), path, text);
        self.flows.refresh().await;
        self.flows.current()
    }
}

fn write(home: &Path, path: &str, text: &str) {
    let file = home.join("flows").join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

#[tokio::test]
async fn system_flows_are_read_at_start_and_after_changes() {
    let installation = Installation::with(&[("one.yaml", &flow("One"))]).await;
    let first = installation.flows.current();
    assert_eq!(first.flows["one"].summary.name, "One");
    let second = installation.after("p/two.yml", &flow("Two")).await;
    assert_eq!(second.flows.keys().collect::<Vec<_>>(), ["one", "two"]);
    let third = installation.after("one.yaml", &flow("Longer")).await;
    assert_ne!(third.flows["one"].version, first.flows["one"].version);
    let restarted = Installation::with(&[("one.yaml", &flow("Longer"))]).await;
    let again = &restarted.flows.current().flows["one"];
    assert_eq!(again.version, third.flows["one"].version);
    assert_eq!(third.flows["one"].summary.name, "Longer");
    fs::remove_file(installation.home.path().join("flows/p/two.yml")).unwrap();
    installation.flows.refresh().await;
    let fourth = installation.flows.current();
    assert_eq!(fourth.flows.keys().collect::<Vec<_>>(), ["one"]);
}

#[tokio::test]
async fn broken_file_keeps_its_last_valid_content() {
    let installation = Installation::with(&[("one.yaml", &flow("One"))]).await;
    let before = installation.flows.current();
    for broken in ["meta: {name: x}\n", "meta: [\n", ""] {
        let after = installation.after("one.yaml", broken).await;
        let (known, now) = (&before.flows["one"], &after.flows["one"]);
        assert_eq!(now.content, known.content, "{broken:?}");
        assert!(!now.errors.is_empty(), "{broken:?}");
        assert_eq!(now.version, known.version);
    }
    let repaired = installation.after("one.yaml", &flow("One")).await;
    assert_eq!(*repaired, *before);
}

#[tokio::test]
async fn broken_new_file_and_second_file_of_a_slug_are_problems() {
    let installation = Installation::with(&[
        ("a/one.yaml", &flow("First")),
        ("b/One.yaml", &flow("Second")),
        ("bad.yaml", "meta: {name: x}\n"),
        ("日.yaml", &flow("Nameless")),
        ("compose.yaml", "services: {}\n"),
    ])
    .await;
    let state = installation.flows.current();
    assert_eq!(state.flows["one"].summary.name, "First");
    let problems: Vec<(&str, Option<&str>)> = state
        .problems
        .iter()
        .map(|problem| (problem.path.as_str(), problem.slug.as_deref()))
        .collect();
    assert_eq!(
        problems,
        [
            ("b/One.yaml", Some("one")),
            ("bad.yaml", Some("bad")),
            ("日.yaml", None)
        ]
    );
    assert!(
        state
            .problems
            .iter()
            .all(|problem| !problem.errors.is_empty())
    );
}

#[tokio::test]
async fn changed_asset_changes_the_content_of_its_flow() {
    let agent = "---\nname: A\ndescription: d\nagentId: helper\noutput.kind: text\nadapterKind: fake\n---\nHelp.\n";
    let text = flow("One").replace("agentId: a}]", "agentRef: helper}]");
    let installation = Installation::with(&[
        ("p/one.yaml", &text),
        ("p/.agents-flow/agents/h.agent.md", agent),
        ("p/.agents-flow/agents/other.md", "x"),
    ])
    .await;
    let first = installation.flows.current().flows["one"].clone();
    let paths: Vec<&str> = first
        .content
        .assets
        .iter()
        .map(|a| a.path.as_str())
        .collect();
    assert_eq!(paths, [".agents-flow/agents/h.agent.md"]);
    let changed = agent.replace("Help.", "Help well.");
    let after = installation
        .after("p/.agents-flow/agents/h.agent.md", &changed)
        .await;
    assert_ne!(after.flows["one"].content_hash, first.content_hash);
}

#[tokio::test]
async fn documents_of_a_loader_belong_to_the_content() {
    let loader = "nodes: [{nodeId: load, nodeKind: loader.local-dir, config: {directory: docs}}, ";
    let text = flow("Main").replace("nodes: [", loader);
    let files = [
        ("p/.agents-flow/global-system-prompt.md", "Be brief."),
        ("p/docs/a.md", "A"),
        ("p/other.md", "O"),
        ("p/main.yaml", text.as_str()),
    ];
    let installation = Installation::with(&files).await;
    let snapshot = installation.flows.current();
    let assets = &snapshot.flows["main"].content.assets;
    let paths: Vec<&str> = assets.iter().map(|asset| &*asset.path).collect();
    assert_eq!(paths, ["docs/a.md"]);
}
