//! Containers of this machine, made by Docker or Podman over the HTTP API that both speak.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ContainerError;
use super::peer::{Answer, Call, Peer};
use super::place::{Order, Place, SandboxHost, SandboxId, digest};
use crate::sandbox::command::{CommandLimits, Mount};

/// The port of the API inside.
const INNER_PORT: &str = "8080/tcp";
/// How long fetching an image may take.
const FETCH_LIMIT: Duration = Duration::from_secs(15 * 60);
/// How much an engine may tell of its fetching.
const FETCH_BYTES: usize = 32 << 20;
/// How many ports are tried where a first one is configured.
const PORTS_TRIED: u16 = 10;
/// How many containers of a former process are looked at.
const MOST_LEFT: usize = 200;
/// What the image's own programs get besides a command's memory and processes.
const OWN_MEMORY: u64 = 2 << 30;
const OWN_PROCESSES: u64 = 1024;
/// What an image needs that starts its programs as users of their own; nothing that reaches out of the container.
const CAPABILITIES: [&str; 7] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "KILL",
    "NET_BIND_SERVICE",
    "SETGID",
    "SETUID",
];
/// Says whose a container is: the home of a server.
const OWNER: &str = "deerflow.home";
/// Says whose a container is: the user and the thread.
const THREAD: &str = "deerflow.thread";
/// Says what it was made of.
const MADE_OF: &str = "deerflow.made-of";

/// How an engine is asked for containers.
#[derive(Debug, Clone)]
pub struct DockerOptions {
    /// The engine's socket.
    pub socket: PathBuf,
    /// The image, an all-in-one sandbox.
    pub image: String,
    /// What the names of containers begin with.
    pub prefix: String,
    /// The first port of this machine that containers are reached at; without one the engine chooses.
    pub first_port: Option<u16>,
    /// The host under which ports of the engine's machine are reached.
    pub host: String,
    /// The home of this server, and where the engine sees it when that is somewhere else.
    pub home: (PathBuf, PathBuf),
    /// What a command may use.
    pub limits: CommandLimits,
    /// Variables inside.
    pub environment: Vec<(String, String)>,
}

/// Makes containers with Docker or Podman.
#[derive(Debug)]
pub(super) struct DockerSandboxHost {
    engine: Peer,
    options: DockerOptions,
}

impl DockerSandboxHost {
    pub(super) fn new(options: DockerOptions) -> Result<Self, reqwest::Error> {
        Ok(Self {
            engine: Peer::at_socket("the container engine", &options.socket)?,
            options,
        })
    }

    fn name(&self, id: &SandboxId) -> String {
        format!("{}-{id}", self.options.prefix)
    }

    fn owner(&self) -> String {
        self.options.home.0.display().to_string()
    }

    /// The container without what says whose it is and where it is reached.
    fn body(&self, order: &Order) -> Value {
        let (home, seen) = &self.options.home;
        let mount = |mount: &Mount| {
            let source = mount
                .host
                .strip_prefix(home)
                .map_or_else(|_| mount.host.clone(), |rest| seen.join(rest));
            json!({"Type": "bind", "Source": source, "Target": mount.inside, "ReadOnly": mount.read_only})
        };
        let variables: Vec<String> = self
            .options
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        json!({
            "Image": self.options.image,
            "Env": variables,
            "ExposedPorts": {INNER_PORT: {}},
            "HostConfig": {
                "Mounts": order.mounts.iter().map(mount).collect::<Vec<_>>(),
                "AutoRemove": true,
                "Privileged": false,
                "CapDrop": ["ALL"],
                "CapAdd": CAPABILITIES,
                "SecurityOpt": ["no-new-privileges"],
                "Memory": self.options.limits.memory_bytes.saturating_add(OWN_MEMORY),
                "PidsLimit": self.options.limits.processes.saturating_add(OWN_PROCESSES),
            },
        })
    }

    fn numbered_body(&self, order: &Order, port: Option<u16>) -> Value {
        let mut body = self.body(order);
        body["Labels"] =
            json!({OWNER: self.owner(), THREAD: thread_of(order), MADE_OF: self.recipe(order)});
        let is_here = matches!(self.options.host.as_str(), "127.0.0.1" | "localhost");
        let bound = if is_here { "127.0.0.1" } else { "0.0.0.0" };
        let port = port.map(|port| port.to_string()).unwrap_or_default();
        body["HostConfig"]["PortBindings"] =
            json!({INNER_PORT: [{"HostIp": bound, "HostPort": port}]});
        body
    }

    /// Makes a container that is not started yet.
    async fn create(&self, order: &Order, port: Option<u16>) -> Result<(), ContainerError> {
        let name = self.name(&order.id);
        let body = self.numbered_body(order, port);
        let ask = || async {
            self.engine
                .call(Call::post("/containers/create", body.clone()).asking("name", &name))
                .await
        };
        let mut answer = ask().await?;
        if answer.status == 404 {
            self.fetch().await?;
            answer = ask().await?;
        }
        if answer.status == 409 {
            // What was made and never started; a thread's own, or `find` would have said so.
            self.find(order).await?;
            self.remove(&order.id).await?;
            answer = ask().await?;
        }
        answer.done()
    }

    async fn start(&self, id: &SandboxId) -> Result<Answer, ContainerError> {
        let path = format!("/containers/{}/start", self.name(id));
        self.engine
            .call(Call::post(&path, json!({})).within(Duration::from_secs(60)))
            .await
    }

    async fn fetch(&self) -> Result<(), ContainerError> {
        let image = self.options.image.clone();
        tracing::info!(image, "fetching the image of sandboxes");
        // Without a tag all of them would come.
        let is_exact = image.contains('@')
            || image
                .rsplit('/')
                .next()
                .is_some_and(|name| name.contains(':'));
        let wanted = if is_exact {
            image.clone()
        } else {
            format!("{image}:latest")
        };
        let call = Call::post("/images/create", json!({}))
            .asking("fromImage", wanted)
            .within(FETCH_LIMIT)
            .of_at_most(FETCH_BYTES);
        let answer = self.engine.call(call).await?;
        let failed = |why: String| ContainerError::Image {
            image: image.clone(),
            why,
        };
        if answer.done().is_err() {
            return Err(failed(answer.words()));
        }
        // It answers 200 first and tells of a failure line by line.
        let lines = answer
            .body()
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        match lines
            .filter_map(|line| Some(line.get("error")?.as_str()?.chars().take(300).collect()))
            .next()
        {
            Some(why) => Err(failed(why)),
            None => Ok(()),
        }
    }

    async fn inspect(&self, id: &SandboxId) -> Result<Option<Inspected>, ContainerError> {
        let answer = self
            .engine
            .call(Call::get(&format!("/containers/{}/json", self.name(id))))
            .await?;
        if answer.status == 404 {
            Ok(None)
        } else {
            answer.read().map(Some)
        }
    }

    /// Where a container is reached, when it runs.
    fn place(&self, found: &Inspected) -> Option<Place> {
        let bound = found
            .network_settings
            .ports
            .get(INNER_PORT)?
            .as_ref()?
            .first()
            .filter(|_| found.state.running)?;
        let url = Url::parse(&format!("http://{}:{}", self.options.host, bound.host_port)).ok()?;
        Some(Place {
            url,
            made_of: found.config.labels.get(MADE_OF).cloned(),
        })
    }
}

#[async_trait]
impl SandboxHost for DockerSandboxHost {
    fn recipe(&self, order: &Order) -> Option<String> {
        Some(digest(self.body(order).to_string().as_bytes()))
    }

    async fn left_behind(&self) -> Result<Vec<(SandboxId, Place)>, ContainerError> {
        let filter = json!({"label": [format!("{OWNER}={}", self.owner())]});
        let listed: Vec<Listed> = self
            .engine
            .call(Call::get("/containers/json").asking("filters", filter))
            .await?
            .read()?;
        let of_prefix = |name: &String| {
            SandboxId::read(
                name.trim_start_matches('/')
                    .strip_prefix(&self.options.prefix)?
                    .strip_prefix('-')?,
            )
        };
        let ids: Vec<SandboxId> = listed
            .iter()
            .flat_map(|listed| &listed.names)
            .filter_map(of_prefix)
            .take(MOST_LEFT)
            .collect();
        let mut found = Vec::new();
        for id in ids {
            if let Some(place) = self
                .inspect(&id)
                .await?
                .and_then(|inspected| self.place(&inspected))
            {
                found.push((id, place));
            }
        }
        Ok(found)
    }

    async fn find(&self, order: &Order) -> Result<Option<Place>, ContainerError> {
        let Some(found) = self.inspect(&order.id).await? else {
            return Ok(None);
        };
        let says = |label: &str| found.config.labels.get(label).map(String::as_str);
        if says(OWNER) != Some(self.owner().as_str())
            || says(THREAD) != Some(thread_of(order).as_str())
        {
            return Err(ContainerError::Taken {
                name: self.name(&order.id),
            });
        }
        Ok(self.place(&found))
    }

    async fn make(&self, order: &Order) -> Result<Place, ContainerError> {
        let ports: Vec<Option<u16>> = match self.options.first_port {
            None => vec![None],
            Some(first) => (first..=first.saturating_add(PORTS_TRIED - 1))
                .map(Some)
                .collect(),
        };
        let mut refused = None;
        for port in ports {
            self.create(order, port).await?;
            let started = self.start(&order.id).await?;
            if started.status < 400 {
                return self.find(order).await?.ok_or_else(|| started.refusal());
            }
            self.remove(&order.id).await?;
            let said = started.words();
            let is_taken = ["already allocated", "already in use"]
                .iter()
                .any(|words| said.contains(words));
            refused = Some(started.refusal());
            if !is_taken {
                break;
            }
        }
        Err(refused.unwrap_or(ContainerError::Closing))
    }

    async fn remove(&self, id: &SandboxId) -> Result<(), ContainerError> {
        let path = format!("/containers/{}", self.name(id));
        let answer = self
            .engine
            .call(
                Call::delete(&path)
                    .asking("force", true)
                    .asking("v", true)
                    .within(Duration::from_secs(30)),
            )
            .await?;
        // Gone, or going.
        if matches!(answer.status, 404 | 409) {
            Ok(())
        } else {
            answer.done()
        }
    }

    async fn look(&self) -> Result<String, ContainerError> {
        let version: Value = self.engine.call(Call::get("/version")).await?.read()?;
        Ok(format!(
            "container engine {}",
            version["Version"].as_str().unwrap_or("of unknown version")
        ))
    }
}

fn thread_of(order: &Order) -> String {
    format!("{}/{}", order.user, order.thread)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    names: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inspected {
    state: State,
    config: Config,
    network_settings: NetworkSettings,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct State {
    running: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Config {
    #[serde(default, deserialize_with = "or_default")]
    labels: std::collections::HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NetworkSettings {
    #[serde(default, deserialize_with = "or_default")]
    ports: std::collections::HashMap<String, Option<Vec<Bound>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Bound {
    host_port: String,
}

/// Engines write null for what is empty.
fn or_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(
    value: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}
