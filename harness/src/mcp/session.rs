//! A conversation with a server, from its greeting to its end. No phase of it takes longer than its limit.

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

use super::catalog::MOST_TOOLS;
use super::discreet::Discreet;
use super::error::McpError;
use super::spec::{HttpKind, Link, ServerSpec};
use super::sse::SseTransport;
use super::stdio::StdioTransport;
use super::transport::Watched;
use crate::programs::{ChildTree, Errors, Faults, Hidden, LONGEST_MESSAGE, Place};

/// How long a list of tools may take, all pages together.
const LIST_LIMIT: Duration = Duration::from_secs(20);
/// How long a goodbye may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// How many pages of tools are read.
const MOST_PAGES: usize = 100;
/// How much a server's tools may take, all together, in bytes.
const MOST_BYTES: usize = 16 << 20;
/// Under this key a call says which call it is, for servers that want to know a repetition.
const CALL_KEY: &str = "io.deerflow/idempotencyKey";

/// What a session is opened with.
#[derive(Debug, Clone)]
pub(super) struct Surroundings<'a> {
    /// The client for servers over HTTP.
    pub(super) client: &'a Client,
    /// The variables that every process gets.
    pub(super) variables: &'a [(String, String)],
    /// Where a process begins.
    pub(super) place: Place,
    /// The token for this connection.
    pub(super) token: Option<HeaderValue>,
    /// Where to say that the tools have changed.
    pub(super) news: News,
}

/// Whether a server said that its tools have changed. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct News(Arc<AtomicBool>);

impl News {
    /// Whether there are some; asking takes them.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }

    /// Whether there are some.
    pub(super) fn are_there(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// This side of the conversation. It offers nothing: no files, no model, nobody to ask.
struct Listener(News);

impl ClientHandler for Listener {
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

/// A conversation. Dropped, it ends at once, and a process with everything below it is killed.
pub(super) struct Session {
    talk: RunningService<RoleClient, Listener>,
    child: Mutex<Option<ChildTree>>,
    faults: Faults,
    init_limit: Duration,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Connects and greets.
    pub(super) async fn open(spec: &ServerSpec, with: Surroundings<'_>) -> Result<Self, McpError> {
        let faults = Faults::default();
        let opened = timeout(spec.init_limit, Self::connect(spec, with, faults.clone())).await;
        let opened = opened.unwrap_or(Err(McpError::Late {
            phase: "start and greet",
            limit: spec.init_limit,
        }));
        opened.map_err(|error| {
            let complaints = faults.complaints();
            if !complaints.is_empty() {
                tracing::warn!(server = %spec.name, %complaints, "an mcp server that did not start complained");
            }
            explained(error, &faults)
        })
    }

    async fn connect(
        spec: &ServerSpec,
        with: Surroundings<'_>,
        faults: Faults,
    ) -> Result<Self, McpError> {
        let listener = Listener(with.news);
        let (talk, child) = match &spec.link {
            Link::Stdio {
                command, args, env, ..
            } => {
                let variables = with
                    .variables
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .chain(env.iter());
                let started = ChildTree::start(command, args, variables, &with.place)
                    .map_err(|error| McpError::Start(error.to_string()));
                let (child, streams) = started?;
                let link = StdioTransport::new(streams.output, streams.input, faults.clone());
                let hidden = Hidden::of(env.iter().map(|(_, value)| value));
                let errors = Errors::new(streams.errors, hidden, faults.clone());
                let link = Watched::new(link, faults.clone()).with_errors(errors);
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
                    SseTransport::connect(with.client.clone(), url, headers, faults.clone()).await;
                let link = link.map_err(|error| McpError::of_link(&error))?;
                (
                    serve_client(listener, Watched::new(link, faults.clone())).await,
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
                    .max_sse_event_size(LONGEST_MESSAGE);
                let link = StreamableHttpClientTransport::with_client(
                    Discreet(with.client.clone()),
                    config,
                );
                (
                    serve_client(listener, Watched::new(link, faults.clone())).await,
                    None,
                )
            }
        };
        let talk = talk.map_err(|error| McpError::of_start(&error))?;
        Ok(Self {
            talk,
            child: Mutex::new(child),
            faults,
            init_limit: spec.init_limit,
        })
    }

    /// Whether nothing more will come of it.
    pub(super) fn is_over(&self) -> bool {
        self.talk.is_closed() || self.talk.peer().is_transport_closed()
    }

    /// The tools that the server says it has, those beyond the bounds left out.
    pub(super) async fn list(&self) -> Result<Vec<Tool>, McpError> {
        let pages = async {
            let (mut tools, mut bytes, mut cursor) = (Vec::new(), 0, None);
            for _ in 0..MOST_PAGES {
                let asked = cursor
                    .take()
                    .map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
                let page = self
                    .talk
                    .peer()
                    .list_tools(asked)
                    .await
                    .map_err(|error| McpError::of_call(&error))?;
                for tool in page.tools {
                    bytes += serde_json::to_string(&tool).map_or(0, |text| text.len());
                    if tools.len() == MOST_TOOLS || bytes > MOST_BYTES {
                        tracing::warn!(
                            tools = tools.len(),
                            bytes,
                            "an mcp server has too many tools, the others are left out"
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
            Err(McpError::TooManyPages(MOST_PAGES))
        };
        let limit = LIST_LIMIT.min(self.init_limit);
        let listed = timeout(limit, pages).await;
        listed
            .unwrap_or(Err(McpError::Late {
                phase: "list its tools",
                limit,
            }))
            .map_err(|error| explained(error, &self.faults))
    }

    /// Calls a tool. Dropping the future tells the server that nobody waits any more.
    pub(super) async fn call(
        &self,
        tool: &str,
        args: JsonObject,
        key: &str,
        limit: Duration,
    ) -> Result<CallToolResult, McpError> {
        let mut call = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        call.meta = Some(RequestMetaObject(MetaObject(
            [(CALL_KEY.to_owned(), key.into())].into_iter().collect(),
        )));
        let asked = timeout(limit, self.talk.peer().call_tool_once(call)).await;
        let asked = asked.map_err(|_late| McpError::Late {
            phase: "answer",
            limit,
        });
        match asked.and_then(|answer| answer.map_err(|error| McpError::of_call(&error))) {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            // It asks somebody who is not there, or makes a task of it, neither of which it was offered.
            Ok(_) => Err(McpError::Answer),
            Err(error) => Err(explained(error, &self.faults)),
        }
    }

    /// Ends it in order: the server may say goodbye, a process may end by itself.
    pub(super) async fn close(mut self) {
        let mut child = self.child.get_mut().take();
        child.iter_mut().for_each(ChildTree::note_tree);
        let goodbye = async {
            let _ended = self.talk.close().await;
            if let Some(child) = child {
                child.end().await;
            }
        };
        if timeout(CLOSE_LIMIT, goodbye).await.is_err() {
            tracing::debug!("an mcp session was ended without its server's consent");
        }
    }
}

fn with_token(mut headers: HeaderMap, token: Option<HeaderValue>) -> HeaderMap {
    if let Some(token) = token {
        headers.insert(AUTHORIZATION, token);
    }
    headers
}

/// The error, with what the connection knows of it.
fn explained(error: McpError, faults: &Faults) -> McpError {
    match (error, faults.reason()) {
        (McpError::Ended | McpError::Link(_) | McpError::Http(_), Some(reason)) => {
            McpError::Link(reason)
        }
        (error, _) => error,
    }
}
