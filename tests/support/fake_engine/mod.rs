//! A container engine that is none: its API on a socket, and "containers" that are HTTP servers running commands in this machine's shell.

mod engine;
mod inside;
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

/// How the engine and what it makes behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// As they should.
    Good,
    /// As they should, with an image of the time before `/v1/bash`.
    Old,
    /// The image is not there yet.
    NoImage,
    /// The image is nowhere.
    NoImageAnywhere,
    /// Containers never become ready.
    NeverReady,
    /// Commands end in status 500.
    Failing,
    /// Commands are answered with something else.
    Garbage,
    /// Commands are answered without end.
    Endless,
    /// Answers to commands stop in their middle.
    BreakingOff,
    /// Removes containers, and says so only when it behaves differently.
    SilentAboutRemovals,
}

/// An engine, or a provisioner, that lives exactly as long as its handle.
#[derive(Debug)]
pub struct FakeEngine {
    /// Where the engine listens.
    pub socket: PathBuf,
    /// What it does and has done.
    pub state: Arc<State>,
    _folder: TempDir,
    _serving: JoinSet<()>,
}

/// What an engine does and has done.
#[derive(Debug)]
pub struct State {
    manner: Mutex<Manner>,
    containers: Mutex<BTreeMap<String, Container>>,
    calls: Mutex<Vec<String>>,
    /// The key that calls to the provisioner have to have.
    key: Option<&'static str>,
    /// The `/tmp` of all containers.
    scratch: TempDir,
}

/// A container.
#[derive(Debug)]
struct Container {
    body: Value,
    server: Option<LocalServer>,
}

impl State {
    fn new(manner: Manner, key: Option<&'static str>) -> io::Result<Arc<Self>> {
        let scratch = tempfile::tempdir()?;
        Ok(Arc::new(Self {
            manner: Mutex::new(manner),
            containers: Mutex::default(),
            calls: Mutex::default(),
            key,
            scratch,
        }))
    }

    /// How it behaves.
    pub fn manner(&self) -> Manner {
        *self.manner.lock()
    }

    /// Has it behave differently from now on.
    pub fn behave(&self, manner: Manner) {
        *self.manner.lock() = manner;
    }

    /// The names of the containers that are there.
    pub fn names(&self) -> Vec<String> {
        self.containers.lock().keys().cloned().collect()
    }

    /// What a container was ordered with.
    pub fn order(&self, name: &str) -> Option<Value> {
        self.containers
            .lock()
            .get(name)
            .map(|container| container.body.clone())
    }

    /// Ends a container as if it had died.
    pub fn kill(&self, name: &str) {
        self.containers.lock().remove(name);
    }

    /// Puts something under a name that nobody ordered.
    pub fn squat(&self, name: &str) {
        self.containers.lock().insert(
            name.to_owned(),
            Container {
                body: Value::Null,
                server: None,
            },
        );
    }

    /// How often something was asked for.
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
    /// An engine at a socket.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn start(manner: Manner) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&socket)?;
        let state = State::new(manner, None)?;
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

/// A provisioner whose pods are such containers, for threads whose folders lie beneath `home`.
///
/// # Errors
/// When no port can be had.
pub async fn provisioner(
    manner: Manner,
    key: &'static str,
    home: &Path,
) -> io::Result<(LocalServer, Arc<State>)> {
    let state = State::new(manner, Some(key))?;
    let server = LocalServer::start(provisioner::router(state.clone(), home.to_owned()), 0).await?;
    Ok((server, state))
}
