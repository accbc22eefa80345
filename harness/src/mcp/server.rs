//! Configured server. Its tools are discovered concurrently with the runs, and a call uses the
//! session of its thread.

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
use rmcp::model::{CallToolResult, JsonObject};
use tokio::sync::watch;
use tokio::time::sleep;

use super::discovery_state::{DiscoveryState, ToolList};
use super::error::McpError;
use super::http::TransportFailure;
use super::oauth::{TokenError, Tokens};
use super::pool::{Pool, SessionKey};
use super::session::{Session, SessionContext, ToolListChange};
use super::spec::{Link, ServerSpec};
use crate::child_process::WorkingDir;
use crate::runtime::tasks::{TaskKind, Tasks};
use crate::sandbox::{FileFailure, FileHome, Root, SkillMounts, ThreadDirs, UserDirName, masking};
use crate::tools::ToolContext;

/// Maximum time for closing sessions during shutdown.
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// Folder of servers, in the home of a thread and of the runtime.
const FOLDER: &str = "mcp";
/// Folder for temporary files, below a server's own folder.
const TMP: &str = "tmp";

/// Resources that all servers share.
#[derive(Debug)]
pub(super) struct SharedResources {
    pub(super) files: Option<FileHome>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) client: Client,
    pub(super) pool: Pool,
    pub(super) tasks: Tasks,
}

impl SharedResources {
    /// Closes sessions in the background. Callers do not wait for it, and shutdown limits it to
    /// [`EXIT_GRACE`].
    pub(super) fn close_in_background(&self, closing: impl Future<Output = ()> + Send + 'static) {
        let token = self.tasks.token().clone();
        let deadline = async move {
            token.cancelled().await;
            sleep(EXIT_GRACE).await;
        };
        self.tasks
            .spawn(TaskKind::Finish, "mcp session close", async move {
                tokio::select! {
                    () = closing => {}
                    () = deadline => {}
                }
            });
    }
}

/// Configured server. The tools that agents received hold clones of its `Arc`.
pub(super) struct Server {
    /// Unique within the process, also for servers of the same name.
    pub(super) id: u64,
    pub(super) spec: ServerSpec,
    pub(super) shared: Arc<SharedResources>,
    tokens: Option<Tokens>,
    pub(super) tool_list_change: ToolListChange,
    pub(super) discovery: Mutex<DiscoveryState>,
    pub(super) list: watch::Sender<ToolList>,
    /// `true` after the server was removed from the configuration; running runs may still hold its
    /// tools.
    is_removed: AtomicBool,
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
    pub(super) fn new(id: u64, spec: ServerSpec, shared: Arc<SharedResources>) -> Self {
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
        let (tool_list_change, list) = (
            ToolListChange::default(),
            watch::Sender::new(ToolList::default()),
        );
        Self {
            id,
            spec,
            shared,
            tokens,
            tool_list_change,
            discovery: Mutex::default(),
            list,
            is_removed: AtomicBool::new(false),
        }
    }

    /// Marks the server as removed: further calls fail, also in runs that already hold its tools.
    pub(super) fn retire(&self) {
        self.is_removed.store(true, Ordering::Release);
    }

    fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Acquire)
    }

    pub(super) fn discard_rejected_token<T>(&self, result: &Result<T, McpError>) {
        if let (Err(McpError::Http(TransportFailure::Status(401))), Some(tokens)) =
            (result, &self.tokens)
        {
            tokens.forget();
        }
    }

    pub(super) async fn token(&self) -> Result<Option<HeaderValue>, TokenError> {
        match &self.tokens {
            Some(tokens) => tokens.header().await.map(Some),
            None => Ok(None),
        }
    }

    pub(super) async fn open(
        &self,
        working_dir: WorkingDir,
        token: Option<HeaderValue>,
    ) -> Result<Session, McpError> {
        let SharedResources {
            client, variables, ..
        } = &*self.shared;
        Session::open(
            &self.spec,
            SessionContext {
                client,
                variables,
                working_dir,
                token,
                tool_list_change: self.tool_list_change.clone(),
            },
        )
        .await
    }

    /// Calls a tool in the session of the calling thread.
    pub(super) async fn call(
        self: &Arc<Self>,
        tool: &str,
        args: JsonObject,
        ctx: &ToolContext,
    ) -> Result<CallToolResult, McpError> {
        if self.is_removed() {
            return Err(McpError::Removed);
        }
        if matches!(self.spec.link, Link::Http { .. }) {
            let result = self.call_over_http(tool, args, &ctx.key).await;
            self.discard_rejected_token(&result);
            return result;
        }
        let (user, thread) = (ctx.run.actor.user_id.clone(), ctx.run.thread_id.to_string());
        let key = SessionKey {
            server: self.id,
            user,
            thread,
        };
        let (server, dirs) = (self.clone(), self.dirs(ctx));
        let open = || async move { server.open(server.working_dir(dirs)?, None).await }.boxed();
        let session = self.shared.pool.get(&key, open).await?;
        let mut guard = CallGuard {
            pool: &self.shared.pool,
            key: &key,
            session: &session,
            is_finished: false,
        };
        if self.is_removed() {
            return Err(McpError::Removed);
        }
        let result = session
            .call(tool, args, &ctx.key, self.spec.call_limit)
            .await;
        guard.is_finished = !matches!(
            result,
            Err(McpError::TimedOut { .. }
                | McpError::Ended
                | McpError::Link(_)
                | McpError::Http(_))
        );
        drop(guard);
        result
    }

    async fn call_over_http(
        &self,
        tool: &str,
        args: JsonObject,
        key: &str,
    ) -> Result<CallToolResult, McpError> {
        let session = self
            .open(WorkingDir::default(), self.token().await?)
            .await?;
        let result = session.call(tool, args, key, self.spec.call_limit).await;
        self.shared.close_in_background(session.close());
        result
    }

    /// Returns the folders of the calling thread.
    pub(super) fn dirs(&self, ctx: &ToolContext) -> Option<ThreadDirs> {
        let files = self
            .shared
            .files
            .as_ref()?
            .thread(&ctx.run.actor.user_id, &ctx.run.thread_id);
        Some(files.blocking().dirs().clone())
    }

    /// Returns a function that replaces the host paths of the thread's folders and of the server's
    /// own folder by the paths that agents see.
    pub(super) fn mask(&self, ctx: &ToolContext) -> impl Fn(&str) -> String {
        let (dirs, own) = (self.dirs(ctx), self.dir_name());
        move |text: &str| {
            let Some(dirs) = &dirs else {
                return text.to_owned();
            };
            let text = masking::to_virtual(text, dirs, &SkillMounts::default());
            text.replace(
                &dirs
                    .private_dir(&[FOLDER, own.as_str()])
                    .display()
                    .to_string(),
                "/mcp",
            )
        }
    }

    /// Returns the name of the server's folder.
    fn dir_name(&self) -> UserDirName {
        UserDirName::from_user_id(&self.spec.name)
    }

    /// Returns the configured working directory.
    fn cwd(&self) -> Option<PathBuf> {
        match &self.spec.link {
            Link::Stdio { cwd, .. } => cwd.clone(),
            Link::Http { .. } => None,
        }
    }

    /// Returns the working directory of a thread's session. By default agents cannot write to it,
    /// because launchers execute files that they find there.
    fn working_dir(&self, dirs: Option<ThreadDirs>) -> Result<WorkingDir, McpError> {
        let failed = |failure: FileFailure| McpError::Start(failure.to_string());
        let Some(dirs) = dirs else {
            return Ok(WorkingDir {
                cwd: self.cwd(),
                tmp: None,
            });
        };
        let own = self.dir_name();
        let tmp = dirs
            .create_private_dir(&[FOLDER, own.as_str(), TMP])
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
                .unwrap_or_else(|| dirs.private_dir(&[FOLDER, own.as_str()])),
        };
        Ok(WorkingDir {
            cwd: Some(cwd),
            tmp: Some(tmp),
        })
    }

    /// Returns the working directory of a session without a thread.
    pub(super) fn shared_working_dir(&self) -> WorkingDir {
        let own = self
            .shared
            .files
            .as_ref()
            .map(|files| files.home().join(FOLDER).join(self.dir_name().as_str()));
        let own = own.filter(|own| {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(own.join(TMP))
                .is_ok()
        });
        WorkingDir {
            tmp: own.as_ref().map(|own| own.join(TMP)),
            cwd: self.cwd().or(own),
        }
    }
}

/// Guard of a running call. If the call is abandoned, its session is not used again.
struct CallGuard<'a> {
    pool: &'a Pool,
    key: &'a SessionKey,
    session: &'a Arc<Session>,
    is_finished: bool,
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.pool.abandon(self.key, self.session);
        }
    }
}
