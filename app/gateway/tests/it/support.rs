//! A whole in-memory gateway: real runtime, real bridge, and an agent whose behaviour the user's
//! message selects.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use deerflow_domain::api_keys::InMemoryApiKeyStore;
use deerflow_domain::crons::InMemoryCronStore;
use deerflow_domain::in_memory::InMemoryAssistantStore;
use deerflow_domain::items::{InMemoryItemStore, ItemService, TtlPolicy};
use deerflow_gateway::GatewayState;
use deerflow_gateway::guard::auth::{Authenticator, KeyRule};
use deerflow_gateway::guard::origin_policy::{Hosts, OriginPolicy};
use deerflow_gateway::ports::{
    AssistView, CatalogView, FeatureView, MetricsView, SuggestionsView, ThreadFilesError,
    ThreadFilesPort,
};
use deerflow_gateway::webhooks::WebhookPolicy;
use harness::agents::assist::{Polisher, Suggester};
use harness::agents::custom::InMemoryCustomAgents;
use harness::clock::{Clock, ManualClock, SystemClock};
use harness::config::{AppConfig, ExtensionsFile, OpenKeys, SummarizationConfig};
use harness::documents::DocumentReader;
use harness::ids::{IdSource, SystemIds, ThreadId};
use harness::messages::Message;
use harness::middlewares::summarization::Compactor;
use harness::models::{
    AuxiliaryModels, ModelCatalog, ModelEntry, ModelFacts, ModelList, Pricing, RetryPolicy,
};
use harness::runtime::agent::{
    Agent, AgentError, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStart,
    AgentStream, AssistantInfo, ModelCallRecord, RunContext, StepEvent, StopKind, UnknownAssistant,
};
use harness::runtime::in_memory::{
    InMemoryNodeNotifier, InMemoryOptions, InMemoryStores, InMemoryStreamBridge,
};
use harness::runtime::runs::{NullObserver, RunLimits, RunsFacade, RuntimePorts};
use harness::runtime::tasks::Tasks;
use harness::sandbox::{FileHome, FileLimits, OrphanedThread, ThreadFiles};
use harness::skills::{SkillFolders, Skills};
use harness::state::StateUpdate;
use harness::uploads::UploadLimits;
use harness::user_memory::{InMemoryUserMemoryStore, MemoryView, UserMemories};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::thread_rows::Threads;

/// Answers `say X` with X, never answers `slow`, and fails at `fail X` with X.
#[derive(Debug)]
struct Echo;

impl Agent for Echo {
    fn stream(
        &self,
        input: AgentInput,
        ctx: RunContext,
        events: mpsc::UnboundedReceiver<AgentEvent>,
    ) -> AgentStream {
        AgentStream::new(events, Box::pin(answer(input, ctx)))
    }

    fn nodes(&self) -> Vec<String> {
        vec!["model".to_owned(), "tools".to_owned()]
    }
}

async fn answer(input: AgentInput, ctx: RunContext) -> Result<AgentOutcome, AgentError> {
    let mut state = input.state;
    if input.start != AgentStart::Fresh {
        return Err(AgentError::EmptyInput);
    }
    let user_text = state
        .messages()
        .last()
        .map(|message| message.content.text())
        .unwrap_or_default();
    ctx.sink
        .emit(AgentEvent::Custom(json!({ "type": "started" })));
    if user_text == "slow" {
        std::future::pending::<()>().await;
    }
    if let Some(message) = user_text.strip_prefix("fail ") {
        return Err(AgentError::Ended {
            name: "RuntimeError".to_owned(),
            message: message.to_owned(),
        });
    }
    let message = Message::ai(user_text.strip_prefix("say ").unwrap_or("hello"))
        .with(|body| body.id = Some(ctx.ids.message_id()));
    ctx.sink.emit(AgentEvent::ModelCall(ModelCallRecord {
        call_id: ctx.ids.message_id(),
        caller: "lead_agent".to_owned(),
        model: "fake".to_owned(),
        message: message.clone(),
        usage: None,
        latency_ms: 1,
    }));
    let step = StateUpdate::messages([message]);
    state.apply(step.clone(), &*ctx.ids)?;
    ctx.sink.emit(AgentEvent::Step(StepEvent {
        node: "model".to_owned(),
        update: Some(step),
        state: Arc::new(state),
        next: vec![],
        machine: Value::Null,
        steps: 1,
        checkpoint: true,
    }));
    Ok(AgentOutcome {
        kind: StopKind::Completed,
        stop_reason: None,
    })
}

#[derive(Debug)]
struct OneAgent;

#[async_trait]
impl AgentResolver for OneAgent {
    async fn resolve(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        match (assistant, options.get("model_name").and_then(Value::as_str)) {
            ("lead_agent", None | Some("fake")) => Ok(Arc::new(Echo)),
            ("lead_agent", Some(model)) => Err(UnknownAssistant::UnknownModel(model.to_owned())),
            (other, _) => Err(UnknownAssistant::NotFound(other.to_owned())),
        }
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        vec![AssistantInfo {
            name: "lead_agent".to_owned(),
            description: Some("Echoes".to_owned()),
        }]
    }
}

/// The configuration, as far as tests need it.
pub(crate) fn config() -> AppConfig {
    let config = json!({
        "models": [{ "name": "fake", "use": "scripted", "model": "fake-1", "display_name": "Fake" }],
        "uploads": { "auto_convert_documents": true },
    });
    serde_json::from_value(config).expect("a configuration")
}

#[derive(Debug, Default)]
struct Catalog {
    agents_api: bool,
    documents: Option<Arc<dyn DocumentReader>>,
}

impl CatalogView for Catalog {
    fn models(&self) -> Vec<ModelFacts> {
        ModelList::from(&config()).models
    }

    fn features(&self) -> FeatureView {
        FeatureView {
            token_usage: true,
            agents_api: self.agents_api,
            ..FeatureView::default()
        }
    }

    fn suggestions(&self) -> SuggestionsView {
        SuggestionsView {
            enabled: true,
            max_suggestions: 3,
        }
    }

    fn memory(&self) -> MemoryView {
        MemoryView::from(&config().memory)
    }

    fn pricing(&self, model: &str) -> Option<Pricing> {
        let pricing = Pricing {
            currency: "EUR".to_owned(),
            input: 1_000_000.0,
            cached_input: 500_000.0,
            output: 2_000_000.0,
        };
        (model == "fake").then_some(pricing)
    }

    fn documents(&self) -> Option<Arc<dyn DocumentReader>> {
        self.documents.clone()
    }

    fn uploads(&self) -> UploadLimits {
        UploadLimits::from(&config().uploads)
    }
}

/// Scripted models, which follow the directives in their input.
#[derive(Debug)]
pub(crate) struct ScriptedAssist(AuxiliaryModels);

impl ScriptedAssist {
    fn new() -> Self {
        let catalog = ModelCatalog::new(
            [ModelEntry::new("fake", "scripted", "s")],
            Arc::new(SystemClock),
        );
        let retry = RetryPolicy {
            max_attempts: 1,
            ..RetryPolicy::default()
        };
        Self(AuxiliaryModels {
            catalog: Arc::new(catalog),
            breakers: Arc::default(),
            retry,
        })
    }
}

impl AssistView for ScriptedAssist {
    fn compactor(&self, model: Option<&str>) -> Option<Compactor> {
        let mut rules = SummarizationConfig::default();
        rules.keep.value = 2.0;
        (model != Some("none")).then(|| Compactor::new(&rules, self.0.clone(), model))
    }

    fn ruler(&self, model: Option<&str>) -> Compactor {
        Compactor::new(&SummarizationConfig::default(), self.0.clone(), model)
    }

    fn suggester(&self) -> Option<Suggester> {
        Some(Suggester {
            models: self.0.clone(),
            most: 3,
        })
    }

    fn polisher(&self) -> Option<Polisher> {
        Some(Polisher {
            models: self.0.clone(),
            model: None,
            max_chars: 100,
        })
    }
}

/// Tests collect no metrics: the recorder is global to the process.
#[derive(Debug)]
struct NoMetrics;

impl MetricsView for NoMetrics {
    fn render(&self) -> String {
        "deerflow_runs_active 0\n".to_owned()
    }
}

/// Files in a temporary directory of the gateway; records the removed threads.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) home: FileHome,
    pub(crate) removed: Mutex<Vec<String>>,
    _directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self {
            home: FileHome::new(directory.path(), FileLimits::default()),
            removed: Mutex::default(),
            _directory: directory,
        }
    }
}

#[async_trait]
impl ThreadFilesPort for Files {
    fn thread(&self, user: &str, thread: &ThreadId) -> ThreadFiles {
        self.home.thread(user, thread)
    }

    async fn delete_thread(&self, user: &str, thread: &ThreadId) -> Result<(), ThreadFilesError> {
        self.removed.lock().push(format!("{user}/{thread}"));
        ThreadFilesPort::delete_thread(&self.home, user, thread).await
    }

    async fn note_removal(
        &self,
        user: &str,
        thread: &ThreadId,
        is_removed: bool,
    ) -> Result<(), ThreadFilesError> {
        self.home.note_removal(user, thread, is_removed).await
    }

    async fn sweep(&self) -> Result<Vec<OrphanedThread>, ThreadFilesError> {
        ThreadFilesPort::sweep(&self.home).await
    }

    async fn delete_orphaned(&self, left: OrphanedThread) -> Result<(), ThreadFilesError> {
        self.home.delete_orphaned(left).await
    }
}

/// The gateway under test.
pub(crate) struct Gateway {
    pub(crate) router: axum::Router,
    pub(crate) runs: Arc<RunsFacade>,
    pub(crate) stores: InMemoryStores,
    pub(crate) files: Arc<Files>,
    pub(crate) state: Arc<GatewayState>,
    pub(crate) keys: Arc<InMemoryApiKeyStore>,
    pub(crate) crons: Arc<InMemoryCronStore>,
    pub(crate) shutdown: CancellationToken,
}

impl Gateway {
    pub(crate) fn new() -> Self {
        Self::with_docs(true)
    }

    /// Returns a gateway with or without OpenAPI documents.
    pub(crate) fn with_docs(docs_enabled: bool) -> Self {
        Self::built(docs_enabled, Catalog::default(), Arc::new(SystemClock))
    }

    /// Returns a gateway with a clock that stays at noon, so that a test stays within one day.
    pub(crate) fn at_noon() -> Self {
        let noon = "2026-01-01T12:00:00Z".parse().expect("a moment");
        Self::built(
            true,
            Catalog::default(),
            Arc::new(ManualClock::starting_at(noon)),
        )
    }

    /// Returns a gateway with custom agents.
    pub(crate) fn with_agents() -> Self {
        Self::built(
            true,
            Catalog {
                agents_api: true,
                ..Catalog::default()
            },
            Arc::new(SystemClock),
        )
    }

    /// Returns a gateway that converts documents to Markdown.
    pub(crate) fn with_documents(reader: Arc<dyn DocumentReader>) -> Self {
        Self::built(
            true,
            Catalog {
                documents: Some(reader),
                ..Catalog::default()
            },
            Arc::new(SystemClock),
        )
    }

    fn built(docs_enabled: bool, catalog: Catalog, clock: Arc<dyn Clock>) -> Self {
        let stores = InMemoryStores::new();
        let ports = Arc::new(stores.clone());
        let ids: Arc<dyn IdSource> = Arc::new(SystemIds::default());
        let tasks = Tasks::new();
        let parts = RuntimePorts {
            bridge: Arc::new(
                InMemoryStreamBridge::new(InMemoryOptions::default()).expect("a bridge"),
            ),
            checkpointer: ports.clone(),
            create: ports.clone(),
            commit: ports.clone(),
            query: ports.clone(),
            delete: ports.clone(),
            ledger: ports.clone(),
            nodes: ports.clone(),
            bell: Arc::new(InMemoryNodeNotifier::default()),
            events: ports.clone(),
            agents: Arc::new(OneAgent),
            observer: Arc::new(NullObserver),
            clock: clock.clone(),
            ids: ids.clone(),
            tasks: tasks.clone(),
        };
        let runs = Arc::new(RunsFacade::new(parts, RunLimits::default()));
        let files = Arc::new(Files::new());
        let (keys, crons) = (
            Arc::new(InMemoryApiKeyStore::default()),
            Arc::new(InMemoryCronStore::with_requests(ports.clone())),
        );
        let home = files.home.home();
        let extensions = Arc::new(ExtensionsFile::at(home.join("extensions_config.json")));
        let places = SkillFolders {
            shared: home.join("shared"),
            home: home.to_owned(),
        };
        let skills = Skills::new(places, extensions, OpenKeys::default(), clock.clone());
        let shutdown = CancellationToken::new();
        let state = GatewayState {
            runs: runs.clone(),
            threads: Arc::new(Threads {
                rows: Arc::default(),
                stores: stores.clone(),
            }),
            feedback: Arc::new(crate::feedback::FeedbackRows::default()),
            assistant_store: Arc::new(InMemoryAssistantStore::default()),
            custom_agents: Arc::new(InMemoryCustomAgents::default()),
            usage: ports.clone(),
            user_memories: UserMemories::new(
                Arc::new(InMemoryUserMemoryStore::default()),
                clock.clone(),
                ids.clone(),
            ),
            skills,
            items: Arc::new(ItemService::new(
                Arc::new(InMemoryItemStore::default()),
                None,
                TtlPolicy::default(),
                clock.clone(),
            )),
            crons: crons.clone(),
            authenticator: Authenticator::new(KeyRule::Optional, keys.clone(), clock.clone()),
            docs_enabled,
            checkpoints: ports.clone(),
            requests: ports.clone(),
            outbox: ports.clone(),
            events: ports,
            assistants: Arc::new(OneAgent),
            info: Arc::new(catalog),
            assist: Arc::new(ScriptedAssist::new()),
            mcp: Arc::new(crate::mcp::Servers::default()),
            files: files.clone(),
            webhooks: WebhookPolicy::default(),
            health: Default::default(),
            run_gauges: Default::default(),
            metrics: Arc::new(NoMetrics),
            origin_policy: OriginPolicy::new(
                Hosts::LoopbackAnd(vec![]),
                vec!["https://ui.test".to_owned()],
            ),
            started_at: clock.now(),
            clock,
            ids,
            tasks,
            shutdown: shutdown.clone(),
        };
        let state = Arc::new(state);
        Self {
            router: deerflow_gateway::router(state.clone()),
            state,
            runs,
            stores,
            files,
            keys,
            crons,
            shutdown,
        }
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<Value>) -> HttpResponse {
        self.raw(
            method,
            path,
            body.map(|body| body.to_string()).unwrap_or_default(),
            &[],
        )
        .await
    }

    pub(crate) async fn raw(
        &self,
        method: &str,
        path: &str,
        body: impl Into<Body>,
        headers: &[(&str, &str)],
    ) -> HttpResponse {
        let response = self.open(method, path, body, headers).await;
        let (parts, body) = response.into_parts();
        let read = axum::body::to_bytes(body, usize::MAX);
        let body = tokio::time::timeout(Duration::from_secs(20), read)
            .await
            .expect("an answer in time")
            .expect("a whole body");
        HttpResponse {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }

    /// Sends a request without reading the response's body.
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        body: impl Into<Body>,
        headers: &[(&str, &str)],
    ) -> axum::response::Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in [("host", "localhost"), ("content-type", "application/json")]
            .iter()
            .filter(|(name, _)| headers.iter().all(|(given, _)| given != name))
            .chain(headers)
        {
            request = request.header(*name, *value);
        }
        self.router
            .clone()
            .oneshot(request.body(body.into()).expect("a request"))
            .await
            .expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str) -> HttpResponse {
        self.send("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> HttpResponse {
        self.send("POST", path, Some(body)).await
    }

    /// Creates a thread and returns its id.
    pub(crate) async fn thread(&self) -> String {
        self.post("/threads", json!({})).await.json()["thread_id"]
            .as_str()
            .expect("an id")
            .to_owned()
    }

    /// Waits until a run has one of `statuses`.
    pub(crate) async fn wait_for_status(&self, thread: &str, run: &str) -> Value {
        for _ in 0..2_000 {
            let found = self
                .get(&format!("/api/threads/{thread}/runs/{run}"))
                .await
                .json();
            if !matches!(found["status"].as_str(), Some("pending" | "running")) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("run {run} did not end");
    }
}

/// Returns a run request with one message.
pub(crate) fn saying(text: &str) -> Value {
    json!({ "assistant_id": "lead_agent", "input": { "messages": [{ "type": "human", "content": text }] } })
}

/// Returns `saying` with additional fields.
pub(crate) fn saying_with(text: &str, more: Value) -> Value {
    let mut body = saying(text);
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    body
}

/// A response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl HttpResponse {
    pub(crate) fn code(&self) -> u16 {
        self.status.as_u16()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// Returns the frames of a stream, without the heartbeat comments.
    pub(crate) fn frames(&self) -> Vec<&str> {
        let end = if self.text().contains('\r') {
            "\r\n\r\n"
        } else {
            "\n\n"
        };
        self.text()
            .split_inclusive(end)
            .filter(|frame| !frame.starts_with(':'))
            .collect()
    }

    /// Returns the event names of a stream.
    pub(crate) fn events(&self) -> Vec<&str> {
        self.text()
            .lines()
            .filter_map(|line| line.strip_prefix("event: "))
            .map(str::trim_end)
            .collect()
    }
}
