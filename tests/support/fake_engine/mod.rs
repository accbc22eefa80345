//! Fake container engine: its API on a socket, and "containers" that are HTTP servers running
//! commands in this machine's shell.

mod container_server;
mod engine;
mod provisioner;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::task::JoinSet;

use crate::local_server::LocalServer;

/// Behaviour of the engine and its containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    /// Everything works.
    Good,
    /// Everything works, with an old image that lacks `/v1/bash`.
    Old,
    /// The image must be pulled first.
    NoImage,
    /// The image does not exist.
    NoImageAnywhere,
    /// Containers never become ready.
    NeverReady,
    /// Commands end with status 500.
    Failing,
    /// Commands get a malformed response.
    Garbage,
    /// Commands get an endless response.
    Endless,
    /// Responses to commands stop in the middle.
    BreakingOff,
    /// Removals of containers are executed, but not answered before the behaviour changes.
    SilentAboutRemovals,
}

/// Engine or provisioner with the lifetime of its handle.
#[derive(Debug)]
pub struct FakeEngine {
    /// Socket on which the engine listens.
    pub socket: PathBuf,
    /// State of the engine.
    pub state: Arc<State>,
    _folder: TempDir,
    _serving: JoinSet<()>,
}

/// State of an engine: its behaviour, its containers and the calls it received.
#[derive(Debug)]
pub struct State {
    behavior: Mutex<Behavior>,
    containers: Mutex<BTreeMap<String, Container>>,
    calls: Mutex<Vec<String>>,
    /// API key that calls to the provisioner need.
    key: Option<&'static str>,
    /// Host folder that is the `/tmp` of all containers.
    scratch: TempDir,
}

/// Running container.
#[derive(Debug)]
struct Container {
    body: Value,
    server: Option<LocalServer>,
}

impl State {
    fn new(behavior: Behavior, key: Option<&'static str>) -> io::Result<Arc<Self>> {
        let scratch = tempfile::tempdir()?;
        Ok(Arc::new(Self {
            behavior: Mutex::new(behavior),
            containers: Mutex::default(),
            calls: Mutex::default(),
            key,
            scratch,
        }))
    }

    /// Returns the current behaviour.
    pub fn behavior(&self) -> Behavior {
        *self.behavior.lock()
    }

    /// Changes the behaviour.
    pub fn behave(&self, behavior: Behavior) {
        *self.behavior.lock() = behavior;
    }

    /// Returns the names of the existing containers.
    pub fn names(&self) -> Vec<String> {
        self.containers.lock().keys().cloned().collect()
    }

    /// Returns the body of a container's creation request.
    pub fn order(&self, name: &str) -> Option<Value> {
        self.containers
            .lock()
            .get(name)
            .map(|container| container.body.clone())
    }

    /// Removes a container as if it had crashed.
    pub fn kill(&self, name: &str) {
        self.containers.lock().remove(name);
    }

    /// Puts a foreign container under this name.
    pub fn occupy(&self, name: &str) {
        self.containers.lock().insert(
            name.to_owned(),
            Container {
                body: Value::Null,
                server: None,
            },
        );
    }

    /// Returns how often a call was received.
    pub fn count(&self, call: &str) -> usize {
        self.calls
            .lock()
            .iter()
            .filter(|made| *made == call)
            .count()
    }

    fn note(&self, call: &str) {
        self.calls.lock().push(call.to_owned());
    }
}

impl FakeEngine {
    /// Starts an engine on a socket.
    ///
    /// # Errors
    /// Returns an error if the socket cannot be created.
    pub fn start(behavior: Behavior) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&socket)?;
        let state = State::new(behavior, None)?;
        let router = engine::router(state.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::warn!(%error, "the engine stopped");
            }
        });
        Ok(Self {
            socket,
            state,
            _folder: folder,
            _serving: serving,
        })
    }
}

/// Starts a provisioner whose pods are such containers, for threads whose folders are beneath
/// `home`.
///
/// # Errors
/// Returns an error if no port can be bound.
pub async fn provisioner(
    behavior: Behavior,
    key: &'static str,
    home: &Path,
) -> io::Result<(LocalServer, Arc<State>)> {
    let state = State::new(behavior, Some(key))?;
    let server = LocalServer::start(provisioner::router(state.clone(), home.to_owned()), 0).await?;
    Ok((server, state))
}
