//! MCP request handler: server information, tool list and tool calls.
#![expect(
    deprecated,
    reason = "log messages are on their way out of the protocol, and what clients show today"
)]

use std::future::Future;

use harness::client::Client;
use harness::ids::ThreadId;
use harness::runtime::actor_context::{DEFAULT_USER_ID, Owner};
use harness::runtime::tasks::TaskKind;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult, ConstString,
    CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation, InitializeRequestParams,
    InitializeResult, InitializeResultMethod, ListToolsResult, LoggingLevel,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
    SetLevelRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};

use crate::arguments::{ArtifactRequest, Question};
use crate::ask::QuestionRun;
use crate::call_limit::{CallLimiter, CallPermit, MAX_CALLS};
use crate::elicitation::Elicitor;
use crate::outcome::failure;
use crate::ports::ServerPorts;
use crate::tools::{ASK, READ_ARTIFACT, tools};
use crate::{artifact, progress_sink};

/// Instructions for the client's model.
const INSTRUCTIONS: &str = "DeerFlow is an agent that researches, writes and works with files and tools of its own. `ask` gives it a task and \
    waits for the answer, which may take minutes. It knows nothing of your conversation: say everything that it needs. Each answer names a \
    thread_id; ask again with it to go on where the agent stands, or to answer its questions. `read_artifact` reads files that it made.";

/// Handles the requests of one client.
#[derive(Debug)]
pub(crate) struct AgentServer {
    ports: ServerPorts,
    call_limiter: CallLimiter,
    /// Minimum level of the log messages that the client requested.
    level: Mutex<Option<LoggingLevel>>,
}

impl AgentServer {
    /// Creates a handler over an installation.
    pub(crate) fn new(ports: ServerPorts) -> Self {
        Self {
            ports,
            call_limiter: CallLimiter::new(),
            level: Mutex::default(),
        }
    }

    /// Returns the limiter of concurrent calls.
    pub(crate) fn call_limiter(&self) -> CallLimiter {
        self.call_limiter.clone()
    }

    /// Runs a question in its own task, so that a panic becomes an error result and shutdown waits
    /// for the task.
    async fn ask(
        &self,
        question: Question,
        permit: CallPermit,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, String> {
        let thread = match &question.thread {
            Some(thread) => self.existing_thread(thread).await?,
            None => self.ports.ids.thread_id(),
        };
        let (sink, notifications) = progress_sink::of(&context, *self.level.lock());
        let question_run = QuestionRun::new(
            Client::new(self.ports.runs.clone()),
            sink,
            Elicitor::for_client(&context.peer),
            context.ct.clone(),
            self.ports.approval_command,
        );
        let question_run = async move {
            let _permit = permit;
            question_run.ask(question, thread).await
        };
        let question_run = self
            .ports
            .tasks
            .spawn(TaskKind::Finish, "mcp question", question_run);
        let (answer, _) = tokio::join!(question_run, context.ct.run_until_cancelled(notifications));
        let answer = answer.map_err(|gone| gone.to_string())?;
        answer.map_err(|_panic| {
            "The question could not be asked: the log of this server says why.".to_owned()
        })
    }

    async fn read_artifact(&self, request: ArtifactRequest) -> Result<CallToolResult, String> {
        let thread = self.existing_thread(&request.thread).await?;
        Ok(artifact::read(
            &self.ports.files.thread(DEFAULT_USER_ID, &thread),
            &request.path,
        )
        .await)
    }

    /// Returns the thread if it exists. A model may invent ids; an invented id must not start a new
    /// conversation.
    async fn existing_thread(&self, thread: &ThreadId) -> Result<ThreadId, String> {
        let found = self
            .ports
            .threads
            .get(thread, &Owner::User(DEFAULT_USER_ID.to_owned()))
            .await;
        match found.map_err(|error| format!("The thread cannot be looked up: {error}"))? {
            Some(record) => Ok(record.thread_id),
            None => Err(format!(
                "There is no thread {thread}. Leave thread_id out to begin a new conversation."
            )),
        }
    }
}

impl ServerHandler for AgentServer {
    fn get_info(&self) -> ServerConfig {
        let implementation =
            Implementation::new("deerflow", env!("CARGO_PKG_VERSION")).with_title("DeerFlow");
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let answer = self.negotiate_initialize(&request)?;
        request.protocol_version = answer.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(answer)
    }

    fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + Send + '_ {
        *self.level.lock() = Some(request.level);
        std::future::ready(Ok(()))
    }

    fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        std::future::ready(Ok(ListToolsResult::with_all_items(tools())))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if ![ASK, READ_ARTIFACT].contains(&&*request.name) {
            let name: String = request.name.chars().take(80).collect();
            return Err(ErrorData::invalid_params(
                format!("there is no tool {name:?}"),
                None,
            ));
        }
        let Some(permit) = self.call_limiter.try_acquire() else {
            let full = format!(
                "This server works on {MAX_CALLS} calls already. Call again when one of them is answered."
            );
            return Ok(failure(full).into());
        };
        let result = match &*request.name {
            ASK => match Question::read(request.arguments) {
                Ok(question) => self.ask(question, permit, context).await,
                Err(problem) => Err(problem),
            },
            _ => match ArtifactRequest::read(request.arguments) {
                Ok(request) => self.read_artifact(request).await,
                Err(problem) => Err(problem),
            },
        };
        Ok(result.unwrap_or_else(failure).into())
    }

    /// Rejects requests with an unknown method or with invalid parameters.
    fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CustomResult, ErrorData>> + Send + '_ {
        let method: String = request.method.chars().take(80).collect();
        let existing_thread = [
            CallToolRequestMethod::VALUE,
            InitializeResultMethod::VALUE,
            SetLevelRequestMethod::VALUE,
        ];
        std::future::ready(Err(match existing_thread.contains(&&*method) {
            true => ErrorData::invalid_params(
                format!("the parameters of {method} are not what they should be"),
                None,
            ),
            false => ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("there is no method {method:?}"),
                None,
            ),
        }))
    }
}
