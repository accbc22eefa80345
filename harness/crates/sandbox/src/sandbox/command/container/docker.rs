//! Containers on this machine, created by Docker or Podman through their common HTTP API.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use serde_json::{Value, json};

use super::docker_responses::{Inspected, Listed};
use super::error::ContainerError;
use super::http_service::{Call, HttpService, ServiceResponse};
use super::sandbox_host::{ContainerEndpoint, ContainerSpec, SandboxHost, SandboxId, digest};
use crate::sandbox::command::{CommandLimits, Mount};

/// Port of the API inside a container.
const INNER_PORT: &str = "8080/tcp";
/// Timeout for pulling an image.
const PULL_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Maximum size of an engine's progress messages while it pulls an image, in bytes.
const MAX_PULL_LOG_BYTES: usize = 32 << 20;
/// Number of ports to try, beginning with the configured one.
const MAX_PORTS_TRIED: u16 = 10;
/// Maximum number of orphaned containers that are adopted at startup.
const MAX_ORPHANS: usize = 200;
/// Memory and processes for the programs of the image, in addition to those of a command.
const IMAGE_MEMORY_BYTES: u64 = 2 << 30;
const IMAGE_PROCESSES: u64 = 1024;
/// Capabilities that an image needs to start its programs as different users; none reaches outside
/// of the container.
const CAPABILITIES: [&str; 7] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "KILL",
    "NET_BIND_SERVICE",
    "SETGID",
    "SETUID",
];
/// Label with the home of the server that owns the container.
const OWNER_LABEL: &str = "deerflow.home";
/// Label with the user and the thread of the container.
const THREAD_LABEL: &str = "deerflow.thread";
/// Label with the digest of the container's specification.
const SPEC_LABEL: &str = "deerflow.made-of";

/// Options of a container engine.
#[derive(Debug, Clone)]
pub struct DockerOptions {
    /// Path of the engine's socket.
    pub socket: PathBuf,
    /// Image of an all-in-one sandbox.
    pub image: String,
    /// Prefix of container names.
    pub prefix: String,
    /// First host port for containers; without it the engine chooses the ports.
    pub first_port: Option<u16>,
    /// Host name for reaching ports of the engine's machine.
    pub host: String,
    /// Home of this server, and the path of the same folder as seen by the engine.
    pub home: (PathBuf, PathBuf),
    /// Resource limits of a command.
    pub limits: CommandLimits,
    /// Environment variables inside the container.
    pub environment: Vec<(String, String)>,
}

/// Creates containers with Docker or Podman.
#[derive(Debug)]
pub(super) struct DockerSandboxHost {
    engine: HttpService,
    options: DockerOptions,
}

impl DockerSandboxHost {
    pub(super) fn new(options: DockerOptions) -> Result<Self, reqwest::Error> {
        Ok(Self {
            engine: HttpService::at_socket("the container engine", &options.socket)?,
            options,
        })
    }

    fn name(&self, id: &SandboxId) -> String {
        format!("{}-{id}", self.options.prefix)
    }

    fn owner(&self) -> String {
        self.options.home.0.display().to_string()
    }

    /// Request body of a container, without labels and port bindings.
    fn body(&self, spec: &ContainerSpec) -> Value {
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
                "Mounts": spec.mounts.iter().map(mount).collect::<Vec<_>>(),
                "AutoRemove": true,
                "Privileged": false,
                "CapDrop": ["ALL"],
                "CapAdd": CAPABILITIES,
                "SecurityOpt": ["no-new-privileges"],
                "Memory": self.options.limits.memory_bytes.saturating_add(IMAGE_MEMORY_BYTES),
                "PidsLimit": self.options.limits.processes.saturating_add(IMAGE_PROCESSES),
            },
        })
    }

    fn body_with_port(&self, spec: &ContainerSpec, port: Option<u16>) -> Value {
        let mut body = self.body(spec);
        body["Labels"] = json!({OWNER_LABEL: self.owner(), THREAD_LABEL: thread_of(spec), SPEC_LABEL: self.spec_digest(spec)});
        let is_here = matches!(self.options.host.as_str(), "127.0.0.1" | "localhost");
        let binding = if is_here { "127.0.0.1" } else { "0.0.0.0" };
        let port = port.map(|port| port.to_string()).unwrap_or_default();
        body["HostConfig"]["PortBindings"] =
            json!({INNER_PORT: [{"HostIp": binding, "HostPort": port}]});
        body
    }

    /// Creates a container without starting it.
    async fn create(&self, spec: &ContainerSpec, port: Option<u16>) -> Result<(), ContainerError> {
        let name = self.name(&spec.id);
        let body = self.body_with_port(spec, port);
        let create_once = || async {
            self.engine
                .call(Call::post("/containers/create", body.clone()).query_parameter("name", &name))
                .await
        };
        let mut response = create_once().await?;
        if response.status == 404 {
            self.pull_image().await?;
            response = create_once().await?;
        }
        if response.status == 409 {
            // Created but never started. It belongs to this thread, or `find` would have failed.
            self.find(spec).await?;
            self.remove(&spec.id).await?;
            response = create_once().await?;
        }
        response.check_status()
    }

    async fn start(&self, id: &SandboxId) -> Result<ServiceResponse, ContainerError> {
        let path = format!("/containers/{}/start", self.name(id));
        self.engine
            .call(Call::post(&path, json!({})).within(Duration::from_secs(60)))
            .await
    }

    async fn pull_image(&self) -> Result<(), ContainerError> {
        let image = self.options.image.clone();
        tracing::info!(image, "pulling the sandbox image");
        // Without a tag the engine would pull all of them.
        let is_exact = image.contains('@')
            || image
                .rsplit('/')
                .next()
                .is_some_and(|name| name.contains(':'));
        let reference = if is_exact {
            image.clone()
        } else {
            format!("{image}:latest")
        };
        let call = Call::post("/images/create", json!({}))
            .query_parameter("fromImage", reference)
            .within(PULL_TIMEOUT)
            .max_bytes(MAX_PULL_LOG_BYTES);
        let response = self.engine.call(call).await?;
        let failed = |why: String| ContainerError::Image {
            image: image.clone(),
            why,
        };
        if response.check_status().is_err() {
            return Err(failed(response.message()));
        }
        // The engine answers 200 first and reports failures line by line.
        let lines = response
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
        let response = self
            .engine
            .call(Call::get(&format!("/containers/{}/json", self.name(id))))
            .await?;
        if response.status == 404 {
            Ok(None)
        } else {
            response.read().map(Some)
        }
    }

    /// Address of a running container.
    fn endpoint(&self, found: &Inspected) -> Option<ContainerEndpoint> {
        let binding = found
            .network_settings
            .ports
            .get(INNER_PORT)?
            .as_ref()?
            .first()
            .filter(|_| found.state.running)?;
        let url = Url::parse(&format!(
            "http://{}:{}",
            self.options.host, binding.host_port
        ))
        .ok()?;
        Some(ContainerEndpoint {
            url,
            spec_digest: found.config.labels.get(SPEC_LABEL).cloned(),
        })
    }
}

#[async_trait]
impl SandboxHost for DockerSandboxHost {
    fn spec_digest(&self, spec: &ContainerSpec) -> Option<String> {
        Some(digest(self.body(spec).to_string().as_bytes()))
    }

    async fn list_orphans(&self) -> Result<Vec<(SandboxId, ContainerEndpoint)>, ContainerError> {
        let filter = json!({"label": [format!("{OWNER_LABEL}={}", self.owner())]});
        let listed: Vec<Listed> = self
            .engine
            .call(Call::get("/containers/json").query_parameter("filters", filter))
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
            .take(MAX_ORPHANS)
            .collect();
        let mut found = Vec::new();
        for id in ids {
            if let Some(endpoint) = self
                .inspect(&id)
                .await?
                .and_then(|inspected| self.endpoint(&inspected))
            {
                found.push((id, endpoint));
            }
        }
        Ok(found)
    }

    async fn find(
        &self,
        spec: &ContainerSpec,
    ) -> Result<Option<ContainerEndpoint>, ContainerError> {
        let Some(found) = self.inspect(&spec.id).await? else {
            return Ok(None);
        };
        let label = |label: &str| found.config.labels.get(label).map(String::as_str);
        if label(OWNER_LABEL) != Some(self.owner().as_str())
            || label(THREAD_LABEL) != Some(thread_of(spec).as_str())
        {
            return Err(ContainerError::Taken {
                name: self.name(&spec.id),
            });
        }
        Ok(self.endpoint(&found))
    }

    async fn launch(&self, spec: &ContainerSpec) -> Result<ContainerEndpoint, ContainerError> {
        let ports: Vec<Option<u16>> = match self.options.first_port {
            None => vec![None],
            Some(first) => (first..=first.saturating_add(MAX_PORTS_TRIED - 1))
                .map(Some)
                .collect(),
        };
        let mut refused = None;
        for port in ports {
            self.create(spec, port).await?;
            let started = self.start(&spec.id).await?;
            if started.status < 400 {
                return self.find(spec).await?.ok_or_else(|| started.status_error());
            }
            self.remove(&spec.id).await?;
            let text = started.message();
            let is_taken = ["already allocated", "already in use"]
                .iter()
                .any(|reason| text.contains(reason));
            refused = Some(started.status_error());
            if !is_taken {
                break;
            }
        }
        Err(refused.unwrap_or(ContainerError::Closing))
    }

    async fn remove(&self, id: &SandboxId) -> Result<(), ContainerError> {
        let path = format!("/containers/{}", self.name(id));
        let response = self
            .engine
            .call(
                Call::delete(&path)
                    .query_parameter("force", true)
                    .query_parameter("v", true)
                    .within(Duration::from_secs(30)),
            )
            .await?;
        // Already removed, or being removed.
        if matches!(response.status, 404 | 409) {
            Ok(())
        } else {
            response.check_status()
        }
    }

    async fn version(&self) -> Result<String, ContainerError> {
        let version: Value = self.engine.call(Call::get("/version")).await?.read()?;
        Ok(format!(
            "container engine {}",
            version["Version"].as_str().unwrap_or("of unknown version")
        ))
    }
}

fn thread_of(spec: &ContainerSpec) -> String {
    format!("{}/{}", spec.user, spec.thread)
}
