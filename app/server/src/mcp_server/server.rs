//! What is said to a client: who this is, which tools there are, and what came of a call.
#![expect(
    deprecated,
    reason = "log messages are on their way out of the protocol, and what clients show today"
)]

use std::future::Future;
use std::sync::Arc;

use deerflow_domain::threads::ThreadStore;
use deerflow_gateway::ports::ThreadFilesPort;
use harness::client::Client;
use harness::ids::{IdSource, ThreadId};
use harness::runtime::actor_context::{DEFAULT_USER_ID, Owner};
use harness::runtime::runs::RunsFacade;
use harness::runtime::tasks::{TaskKind, Tasks};
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

use super::arguments::{Question, Wanted};
use super::ask::Asking;
use super::outcome::failure;
use super::person::Person;
use super::places::{MOST_CALLS, Place, Places};
use super::tools::{ASK, READ_ARTIFACT, tools};
use super::{artifact, caller};
use crate::wiring::App;

/// What clients tell their models of all tools together.
const INSTRUCTIONS: &str = "DeerFlow is an agent that researches, writes and works with files and tools of its own. `ask` gives it a task and \
    waits for the answer, which may take minutes. It knows nothing of your conversation: say everything that it needs. Each answer names a \
    thread_id; ask again with it to go on where the agent stands, or to answer its questions. `read_artifact` reads files that it made.";

/// Answers one client.
#[derive(Debug)]
pub(super) struct AgentServer {
    runs: Arc<RunsFacade>,
    threads: Arc<dyn ThreadStore>,
    files: Arc<dyn ThreadFilesPort>,
    ids: Arc<dyn IdSource>,
    tasks: Tasks,
    places: Places,
    /// From which level on the client wants to hear what agents do.
    level: Mutex<Option<LoggingLevel>>,
}

impl AgentServer {
    /// Over this installation, for its default user.
    pub(super) fn new(app: &App) -> Self {
        let gateway = &app.gateway;
        Self {
            runs: app.runs.clone(),
            threads: gateway.threads.clone(),
            files: gateway.files.clone(),
            ids: gateway.ids.clone(),
            tasks: app.tasks.clone(),
            places: Places::new(),
            level: Mutex::default(),
        }
    }

    /// The places of calls that are worked on.
    pub(super) fn places(&self) -> Places {
        self.places.clone()
    }

    /// Asks in a task of its own, so that a panic is an answer and the end of the process waits.
    async fn ask(
        &self,
        question: Question,
        place: Place,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, String> {
        let thread = match &question.thread {
            Some(thread) => self.known(thread).await?,
            None => self.ids.thread_id(),
        };
        let (caller, telling) = caller::of(&context, *self.level.lock());
        let asking = Asking::new(
            Client::new(self.runs.clone()),
            caller,
            Person::behind(&context.peer),
            context.ct.clone(),
        );
        let asking = async move {
            let _place = place;
            asking.ask(question, thread).await
        };
        let asking = self.tasks.spawn(TaskKind::Finish, "mcp question", asking);
        let (answer, _) = tokio::join!(asking, context.ct.run_until_cancelled(telling));
        let answer = answer.map_err(|gone| gone.to_string())?;
        answer.map_err(|_panic| {
            "The question could not be asked: the log of this server says why.".to_owned()
        })
    }

    async fn read_artifact(&self, wanted: Wanted) -> Result<CallToolResult, String> {
        let thread = self.known(&wanted.thread).await?;
        Ok(artifact::read(&self.files.thread(DEFAULT_USER_ID, &thread), &wanted.path).await)
    }

    /// The thread, if it exists: a model that makes up an id must not take a new conversation for an old one.
    async fn known(&self, thread: &ThreadId) -> Result<ThreadId, String> {
        let found = self
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
        let own = Implementation::new("deerflow", env!("CARGO_PKG_VERSION")).with_title("DeerFlow");
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(own)
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
        let Some(place) = self.places.take() else {
            let full = format!(
                "This server works on {MOST_CALLS} calls already. Call again when one of them is answered."
            );
            return Ok(failure(full).into());
        };
        let done = match &*request.name {
            ASK => match Question::read(request.arguments) {
                Ok(question) => self.ask(question, place, context).await,
                Err(problem) => Err(problem),
            },
            _ => match Wanted::read(request.arguments) {
                Ok(wanted) => self.read_artifact(wanted).await,
                Err(problem) => Err(problem),
            },
        };
        Ok(done.unwrap_or_else(failure).into())
    }

    /// What is no request that this protocol knows: the method, or what it came with.
    fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CustomResult, ErrorData>> + Send + '_ {
        let method: String = request.method.chars().take(80).collect();
        let known = [
            CallToolRequestMethod::VALUE,
            InitializeResultMethod::VALUE,
            SetLevelRequestMethod::VALUE,
        ];
        std::future::ready(Err(match known.contains(&&*method) {
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
