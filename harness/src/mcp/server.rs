//! A configured server: what it has is found out beside the runs, and a call goes to the conversation of its thread.

use std::fmt;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use reqwest::Client;
use reqwest::header::HeaderValue;
use rmcp::model::{CallToolResult, JsonObject, Tool};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::catalog::{ListedTool, listed};
use super::error::McpError;
use super::http::Trouble;
use super::oauth::{TokenError, Tokens};
use super::pool::{Pool, SessionKey};
use super::session::{News, Session, Surroundings};
use super::spec::{Link, ServerSpec};
use crate::programs::Place;
use crate::runtime::tasks::{TaskKind, Tasks};
use crate::sandbox::{Fault, FileHome, Root, Shelf, ThreadDirs, UserDirName, masking};
use crate::tools::ToolContext;

/// How long runs wait for a server that is being looked at for the first time.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);
/// A server that announces changes is looked at again no sooner than this.
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);
/// A server that failed is looked at again after this long, and after twice as long each time that it fails.
const AFTER_FAILURE: Duration = Duration::from_secs(30);
/// No longer than this.
const LONGEST_REST: Duration = Duration::from_secs(600);
/// How long goodbyes may go on when the process ends.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The folder of servers, in a thread's and in the runtime's home.
const FOLDER: &str = "mcp";
/// Below a server's own folder, where it may put temporary files.
const TMP: &str = "tmp";

/// What servers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) files: Option<FileHome>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) client: Client,
    pub(super) pool: Pool,
    pub(super) tasks: Tasks,
}

impl Shared {
    /// Has conversations end in order. Nobody waits for it, and when the process ends it is cut short.
    pub(super) fn say_goodbye(&self, goodbye: impl Future<Output = ()> + Send + 'static) {
        let token = self.tasks.token().clone();
        let cut = async move {
            token.cancelled().await;
            sleep(LAST_WORDS).await;
        };
        self.tasks
            .spawn(TaskKind::Finish, "mcp goodbye", async move {
                tokio::select! {
                    () = goodbye => {}
                    () = cut => {}
                }
            });
    }
}

/// A server. Clones of its `Arc` live in the tools that agents were given.
pub(super) struct Server {
    /// Tells servers of one process apart, also those of one name.
    pub(super) id: u64,
    pub(super) spec: ServerSpec,
    shared: Arc<Shared>,
    tokens: Option<Tokens>,
    news: News,
    look: Mutex<Look>,
    list: watch::Sender<List>,
    /// Whether it is not configured any more; runs under way may still know it.
    is_gone: AtomicBool,
}

/// How far finding out has come.
#[derive(Debug, Default)]
struct Look {
    /// Since when somebody looks.
    since: Option<Instant>,
    /// When somebody looked last.
    done: Option<Instant>,
    /// How often it failed since it went well.
    failures: u32,
    /// Whether its tools are known.
    is_known: bool,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub(super) struct List {
    /// Grows when the tools change; 0 before they are known.
    pub(super) version: u64,
    pub(super) tools: Arc<[ListedTool]>,
    /// How often somebody has looked.
    looks: u64,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("id", &self.id)
            .field("name", &self.spec.name)
            .finish_non_exhaustive()
    }
}

impl Server {
    pub(super) fn new(id: u64, spec: ServerSpec, shared: Arc<Shared>) -> Self {
        let tokens = match &spec.link {
            Link::Http {
                oauth: Some(oauth), ..
            } => Some(Tokens::new(
                (**oauth).clone(),
                shared.client.clone(),
                shared.tasks.clone(),
            )),
            _ => None,
        };
        let (news, list) = (News::default(), watch::Sender::new(List::default()));
        Self {
            id,
            spec,
            shared,
            tokens,
            news,
            look: Mutex::default(),
            list,
            is_gone: AtomicBool::new(false),
        }
    }

    /// What is known of its tools.
    pub(super) fn list(&self) -> List {
        self.list.borrow().clone()
    }

    /// Has somebody look, when that is due.
    pub(super) fn look(self: &Arc<Self>) {
        let mut look = self.look.lock();
        if look.since.is_some() || !look.is_due(self.news.are_there()) {
            return;
        }
        look.since = Some(Instant::now());
        drop(look);
        let (server, token) = (self.clone(), self.shared.tasks.token().clone());
        self.shared
            .tasks
            .spawn(TaskKind::Service, "mcp discovery", async move {
                let looking = Looking(&server);
                let found = tokio::select! {
                    found = server.find() => found,
                    () = token.cancelled() => Err(McpError::Ended),
                };
                looking.end(found);
            });
    }

    /// Has the next who asks look again, whatever came of it before. What is known holds until then.
    pub(super) fn look_again(&self) {
        let mut look = self.look.lock();
        (look.done, look.failures) = (None, 0);
    }

    /// Forgets what is known of its tools.
    pub(super) fn forget(&self) {
        self.look_again();
        self.look.lock().is_known = false;
        self.list.send_if_modified(|list| {
            let is_known = list.version > 0;
            if is_known {
                (list.version, list.tools) = (list.version + 1, Arc::default());
            }
            is_known
        });
    }

    /// Refuses further calls, also of runs that were given its tools.
    pub(super) fn retire(&self) {
        self.is_gone.store(true, Ordering::Release);
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// Waits until the look under way is done, for a while after it began. Nobody waits for a server that failed before, or whose
    /// tools are known.
    pub(super) async fn settled(&self) {
        let mut list = self.list.subscribe();
        let until = {
            let look = self.look.lock();
            look.since
                .filter(|_| look.failures == 0 && !look.is_known)
                .map(|since| since + FIRST_PATIENCE)
        };
        let Some(until) = until else { return };
        let looks = list.borrow_and_update().looks;
        let done = async {
            while self.look.lock().since.is_some() && list.borrow_and_update().looks == looks {
                if list.changed().await.is_err() {
                    return;
                }
            }
        };
        if timeout_at(until, done).await.is_err() {
            tracing::warn!(server = %self.spec.name, "an mcp server is slow; runs begin without its tools");
        }
    }

    /// Asks for the tools: in a conversation that is open, when its server has announced news, else in one of its own.
    async fn find(&self) -> Result<Vec<ListedTool>, McpError> {
        let has_news = self.news.take();
        if let Some(open) = self.shared.pool.any_of(self.id).filter(|_| has_news)
            && let Ok(tools) = open.list().await
        {
            return Ok(listed(&self.spec, tools));
        }
        // Without a token a server may still say what it has.
        let token = self.token().await.unwrap_or_else(|error| {
            tracing::error!(server = %self.spec.name, %error, "an mcp server's token was not fetched");
            None
        });
        let found = self.find_apart(token).await;
        self.forget_refused_token(&found);
        Ok(listed(&self.spec, found?))
    }

    async fn find_apart(&self, token: Option<HeaderValue>) -> Result<Vec<Tool>, McpError> {
        let session = self.open(self.home(), token).await?;
        let tools = session.list().await;
        self.shared.say_goodbye(session.close());
        tools
    }

    fn forget_refused_token<T>(&self, answer: &Result<T, McpError>) {
        if let (Err(McpError::Http(Trouble::Status(401))), Some(tokens)) = (answer, &self.tokens) {
            tokens.forget();
        }
    }

    async fn token(&self) -> Result<Option<HeaderValue>, TokenError> {
        match &self.tokens {
            Some(tokens) => tokens.header().await.map(Some),
            None => Ok(None),
        }
    }

    async fn open(&self, place: Place, token: Option<HeaderValue>) -> Result<Session, McpError> {
        let Shared {
            client, variables, ..
        } = &*self.shared;
        Session::open(
            &self.spec,
            Surroundings {
                client,
                variables,
                place,
                token,
                news: self.news.clone(),
            },
        )
        .await
    }

    /// Calls a tool for a thread.
    pub(super) async fn call(
        self: &Arc<Self>,
        tool: &str,
        args: JsonObject,
        ctx: &ToolContext,
    ) -> Result<CallToolResult, McpError> {
        if self.is_gone() {
            return Err(McpError::Gone);
        }
        if matches!(self.spec.link, Link::Http { .. }) {
            let answer = self.call_over_http(tool, args, &ctx.key).await;
            self.forget_refused_token(&answer);
            return answer;
        }
        let (user, thread) = (ctx.run.actor.user_id.clone(), ctx.run.thread_id.to_string());
        let key = SessionKey {
            server: self.id,
            user,
            thread,
        };
        let (server, dirs) = (self.clone(), self.dirs(ctx));
        let open = || async move { server.open(server.place(dirs)?, None).await }.boxed();
        let session = self.shared.pool.get(&key, open).await?;
        let mut left = Unfinished {
            pool: &self.shared.pool,
            key: &key,
            session: &session,
            is_finished: false,
        };
        if self.is_gone() {
            return Err(McpError::Gone);
        }
        let answer = session
            .call(tool, args, &ctx.key, self.spec.call_limit)
            .await;
        left.is_finished = !matches!(
            answer,
            Err(McpError::Late { .. } | McpError::Ended | McpError::Link(_) | McpError::Http(_))
        );
        drop(left);
        answer
    }

    async fn call_over_http(
        &self,
        tool: &str,
        args: JsonObject,
        key: &str,
    ) -> Result<CallToolResult, McpError> {
        let session = self.open(Place::default(), self.token().await?).await?;
        let answer = session.call(tool, args, key, self.spec.call_limit).await;
        self.shared.say_goodbye(session.close());
        answer
    }

    /// The folders of a call's thread.
    pub(super) fn dirs(&self, ctx: &ToolContext) -> Option<ThreadDirs> {
        let files = self
            .shared
            .files
            .as_ref()?
            .thread(&ctx.run.actor.user_id, &ctx.run.thread_id);
        Some(files.blocking().dirs().clone())
    }

    /// Texts as agents see them: without the places on this machine of the thread's folders and of the server's own.
    pub(super) fn mask(&self, ctx: &ToolContext) -> impl Fn(&str) -> String {
        let (dirs, own) = (self.dirs(ctx), self.own_name());
        move |text: &str| {
            let Some(dirs) = &dirs else {
                return text.to_owned();
            };
            let text = masking::to_virtual(text, dirs, &Shelf::default());
            text.replace(
                &dirs.apart(&[FOLDER, own.as_str()]).display().to_string(),
                "/mcp",
            )
        }
    }

    /// Its name as a folder's.
    fn own_name(&self) -> UserDirName {
        UserDirName::from_user_id(&self.spec.name)
    }

    /// Where the entry says that it starts.
    fn cwd(&self) -> Option<PathBuf> {
        match &self.spec.link {
            Link::Stdio { cwd, .. } => cwd.clone(),
            Link::Http { .. } => None,
        }
    }

    /// Where a conversation of a thread begins: where its agents cannot write, for launchers run what lies there.
    fn place(&self, dirs: Option<ThreadDirs>) -> Result<Place, McpError> {
        let failed = |fault: Fault| McpError::Start(fault.to_string());
        let Some(dirs) = dirs else {
            return Ok(Place {
                cwd: self.cwd(),
                tmp: None,
            });
        };
        let own = self.own_name();
        let tmp = dirs
            .create_apart(&[FOLDER, own.as_str(), TMP])
            .map_err(failed)?;
        let cwd = match &self.spec.link {
            Link::Stdio {
                cwd: None,
                starts_in_workspace: true,
                ..
            } => {
                dirs.create(Root::Workspace).map_err(failed)?;
                dirs.host_path(Root::Workspace)
            }
            _ => self
                .cwd()
                .unwrap_or_else(|| dirs.apart(&[FOLDER, own.as_str()])),
        };
        Ok(Place {
            cwd: Some(cwd),
            tmp: Some(tmp),
        })
    }

    /// Where a conversation of no thread begins.
    fn home(&self) -> Place {
        let own = self
            .shared
            .files
            .as_ref()
            .map(|files| files.home().join(FOLDER).join(self.own_name().as_str()));
        let own = own.filter(|own| {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(own.join(TMP))
                .is_ok()
        });
        Place {
            tmp: own.as_ref().map(|own| own.join(TMP)),
            cwd: self.cwd().or(own),
        }
    }
}

impl Look {
    fn is_due(&self, has_news: bool) -> bool {
        let Some(done) = self.done else { return true };
        let rest = match self.failures {
            0 if has_news => BETWEEN_LOOKS,
            0 => return false,
            failures => AFTER_FAILURE
                .saturating_mul(1 << (failures - 1).min(10))
                .min(LONGEST_REST),
        };
        done.elapsed() >= rest
    }
}

/// A look under way. Dropped without a result, it has failed.
struct Looking<'a>(&'a Server);

impl Looking<'_> {
    fn end(self, found: Result<Vec<ListedTool>, McpError>) {
        let Self(server) = self;
        match found {
            Ok(tools) => {
                let mut look = server.look.lock();
                (look.failures, look.is_known) = (0, true);
                drop(look);
                server.list.send_modify(|list| {
                    if list.version == 0 || *list.tools != *tools {
                        tracing::info!(server = %server.spec.name, tools = tools.len(), "the tools of an mcp server are known");
                        list.version += 1;
                        list.tools = tools.into();
                    }
                });
            }
            Err(error) => {
                let mut look = server.look.lock();
                look.failures += 1;
                let failures = look.failures;
                drop(look);
                tracing::error!(server = %server.spec.name, %error, failures, "an mcp server's tools are not known");
            }
        }
    }
}

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        let mut look = self.0.look.lock();
        look.since = None;
        look.done = Some(Instant::now());
        drop(look);
        self.0.list.send_modify(|list| list.looks += 1);
    }
}

/// A call under way. Left unfinished, its conversation is not used again.
struct Unfinished<'a> {
    pool: &'a Pool,
    key: &'a SessionKey,
    session: &'a Arc<Session>,
    is_finished: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.pool.abandon(self.key, self.session);
        }
    }
}
