//! Session with a server, from the handshake to its end. Each phase has a timeout.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::Client;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientConfig, Implementation,
    JsonObject, MetaObject, PaginatedRequestParams, ProtocolVersion, RequestMetaObject, Tool,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, serve_client};
use tokio::time::timeout;

use super::catalog::MAX_SERVER_TOOLS;
use super::error::McpError;
use super::redacting_client::RedactingClient;
use super::spec::{HttpKind, Link, ServerSpec};
use super::sse::SseTransport;
use super::stdio::StdioTransport;
use super::transport::GuardedTransport;
use crate::child_process::{
    ChildTree, ConnectionHealth, MAX_MESSAGE_BYTES, SecretRedactor, StderrReader, WorkingDir,
};

/// Timeout for listing the tools, all pages together.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout for closing a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of pages of a tool list.
const MAX_LIST_PAGES: usize = 100;
/// Maximum size of a server's tool list, in bytes.
const MAX_LIST_BYTES: usize = 16 << 20;
/// Metadata key of the idempotency key of a call, for servers that detect repeated calls.
const IDEMPOTENCY_META_KEY: &str = "io.deerflow/idempotencyKey";

/// Parameters of a new session.
#[derive(Debug, Clone)]
pub(super) struct SessionContext<'a> {
    /// Client for servers over HTTP.
    pub(super) client: &'a Client,
    /// Environment variables of every process.
    pub(super) variables: &'a [(String, String)],
    /// Working directory of a process.
    pub(super) working_dir: WorkingDir,
    /// Token for this connection.
    pub(super) token: Option<HeaderValue>,
    /// Set when the server announces a change of its tools.
    pub(super) tool_list_change: ToolListChange,
}

/// Flag that is set when a server announces a change of its tools. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolListChange(Arc<AtomicBool>);

impl ToolListChange {
    /// Clears the flag and returns its previous value.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }

    /// Returns the flag.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Client side of the protocol. It declares no capabilities: no files, no sampling, no elicitation.
struct NotificationHandler(ToolListChange);

impl ClientHandler for NotificationHandler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("deerflow", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(Default::default(), own)
            .with_protocol_version(ProtocolVersion::V_2025_06_18)
    }

    fn on_tool_list_changed(
        &self,
        _context: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.0.0.store(true, Ordering::Release);
        std::future::ready(())
    }
}

/// Open session. Dropping it closes the connection at once and kills the process with all its
/// descendants.
pub(super) struct Session {
    service: RunningService<RoleClient, NotificationHandler>,
    child: Mutex<Option<ChildTree>>,
    health: ConnectionHealth,
    init_limit: Duration,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("health", &self.health)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Connects and performs the handshake.
    pub(super) async fn open(
        spec: &ServerSpec,
        with: SessionContext<'_>,
    ) -> Result<Self, McpError> {
        let health = ConnectionHealth::default();
        let opened = timeout(spec.init_limit, Self::connect(spec, with, health.clone())).await;
        let opened = opened.unwrap_or(Err(McpError::TimedOut {
            phase: "start and complete the handshake",
            limit: spec.init_limit,
        }));
        opened.map_err(|error| {
            let stderr_tail = health.stderr_tail();
            if !stderr_tail.is_empty() {
                tracing::warn!(server = %spec.name, %stderr_tail, "mcp server wrote to stderr and did not start");
            }
            with_connection_failure(error, &health)
        })
    }

    async fn connect(
        spec: &ServerSpec,
        with: SessionContext<'_>,
        health: ConnectionHealth,
    ) -> Result<Self, McpError> {
        let listener = NotificationHandler(with.tool_list_change);
        let (service, child) = match &spec.link {
            Link::Stdio {
                command, args, env, ..
            } => {
                let variables = with
                    .variables
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .chain(env.iter());
                let started = ChildTree::start(command, args, variables, &with.working_dir)
                    .map_err(|error| McpError::Start(error.to_string()));
                let (child, pipes) = started?;
                let link = StdioTransport::new(pipes.output, pipes.input, health.clone());
                let redactor = SecretRedactor::new(env.iter().map(|(_, value)| value));
                let errors = StderrReader::new(pipes.errors, redactor, health.clone());
                let link = GuardedTransport::new(link, health.clone()).with_stderr(errors);
                (serve_client(listener, link).await, Some(child))
            }
            Link::Http {
                url,
                headers,
                kind: HttpKind::Sse,
                ..
            } => {
                let headers = with_token(headers.clone(), with.token);
                let link =
                    SseTransport::connect(with.client.clone(), url, headers, health.clone()).await;
                let link = link.map_err(|error| McpError::of_link(&error))?;
                (
                    serve_client(listener, GuardedTransport::new(link, health.clone())).await,
                    None,
                )
            }
            Link::Http {
                url,
                headers,
                kind: HttpKind::Streamable,
                ..
            } => {
                let headers = with_token(headers.clone(), with.token);
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(
                        headers
                            .into_iter()
                            .filter_map(|(name, value)| Some((name?, value)))
                            .collect::<HashMap<_, _>>(),
                    )
                    .max_sse_event_size(MAX_MESSAGE_BYTES);
                let link = StreamableHttpClientTransport::with_client(
                    RedactingClient(with.client.clone()),
                    config,
                );
                (
                    serve_client(listener, GuardedTransport::new(link, health.clone())).await,
                    None,
                )
            }
        };
        let service = service.map_err(|error| McpError::of_start(&error))?;
        Ok(Self {
            service,
            child: Mutex::new(child),
            health,
            init_limit: spec.init_limit,
        })
    }

    /// `true` if the session has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// Lists the server's tools, up to the limits on number and size.
    pub(super) async fn list(&self) -> Result<Vec<Tool>, McpError> {
        let pages = async {
            let (mut tools, mut bytes, mut cursor) = (Vec::new(), 0, None);
            for _ in 0..MAX_LIST_PAGES {
                let request = cursor
                    .take()
                    .map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
                let page = self
                    .service
                    .peer()
                    .list_tools(request)
                    .await
                    .map_err(|error| McpError::of_call(&error))?;
                for tool in page.tools {
                    bytes += serde_json::to_string(&tool).map_or(0, |text| text.len());
                    if tools.len() == MAX_SERVER_TOOLS || bytes > MAX_LIST_BYTES {
                        tracing::warn!(
                            tools = tools.len(),
                            bytes,
                            "mcp server has too many tools, skipping the rest"
                        );
                        return Ok(tools);
                    }
                    tools.push(tool);
                }
                cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
                if cursor.is_none() {
                    return Ok(tools);
                }
            }
            Err(McpError::TooManyPages(MAX_LIST_PAGES))
        };
        let limit = LIST_TIMEOUT.min(self.init_limit);
        let listed = timeout(limit, pages).await;
        listed
            .unwrap_or(Err(McpError::TimedOut {
                phase: "list its tools",
                limit,
            }))
            .map_err(|error| with_connection_failure(error, &self.health))
    }

    /// Calls a tool. Dropping the future cancels the request at the server.
    pub(super) async fn call(
        &self,
        tool: &str,
        args: JsonObject,
        key: &str,
        limit: Duration,
    ) -> Result<CallToolResult, McpError> {
        let mut call = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        call.meta = Some(RequestMetaObject(MetaObject(
            [(IDEMPOTENCY_META_KEY.to_owned(), key.into())]
                .into_iter()
                .collect(),
        )));
        let response = timeout(limit, self.service.peer().call_tool_once(call)).await;
        let response = response.map_err(|_late| McpError::TimedOut {
            phase: "answer",
            limit,
        });
        match response.and_then(|answer| answer.map_err(|error| McpError::of_call(&error))) {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            // The server requests input or creates a task; the client declared neither capability.
            Ok(_) => Err(McpError::UnexpectedResponse),
            Err(error) => Err(with_connection_failure(error, &self.health)),
        }
    }

    /// Closes the session gracefully: ends the protocol session and lets a process exit by itself.
    pub(super) async fn close(mut self) {
        let mut child = self.child.get_mut().take();
        child.iter_mut().for_each(ChildTree::record_descendants);
        let closing = async {
            let _ended = self.service.close().await;
            if let Some(child) = child {
                child.end().await;
            }
        };
        if timeout(CLOSE_TIMEOUT, closing).await.is_err() {
            tracing::debug!("mcp session did not close in time and was terminated");
        }
    }
}

fn with_token(mut headers: HeaderMap, token: Option<HeaderValue>) -> HeaderMap {
    if let Some(token) = token {
        headers.insert(AUTHORIZATION, token);
    }
    headers
}

/// Replaces a connection error by the failure that the connection recorded, if there is one.
fn with_connection_failure(error: McpError, health: &ConnectionHealth) -> McpError {
    match (error, health.failure()) {
        (McpError::Ended | McpError::Link(_) | McpError::Http(_), Some(reason)) => {
            McpError::Link(reason)
        }
        (error, _) => error,
    }
}
