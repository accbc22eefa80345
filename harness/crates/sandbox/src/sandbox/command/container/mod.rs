//! Runs commands in containers, one per user's thread, created on demand and reused.
//!
//! `docker` and `provisioner` create containers, `pool` decides which are retained, `api` calls the
//! service inside. A command is started by a launch script that tracks all its processes, so its
//! end does not depend on the image's service.

mod api;
mod docker;
mod docker_responses;
mod error;
mod http_service;
mod pool;
mod provisioner;
mod sandbox_host;
mod slot;

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::{
    CommandEnd, CommandError, CommandLimits, CommandOutput, CommandRequest, CommandSandbox,
    Isolation, Mount,
};
use crate::sandbox::file_error::FileFailure;
use crate::sandbox::virtual_paths::{ACP_WORKSPACE, Root, SKILLS, USER_DATA};
use api::{CommandJob, SandboxApi};
use deerflow_core::tasks::{TaskKind, Tasks};
use docker::DockerSandboxHost;
use pool::{ContainerLease, Pool};
use provisioner::ProvisionerSandboxHost;
use sandbox_host::{ContainerEndpoint, ContainerSpec, SandboxHost, SandboxId};

pub use docker::DockerOptions;
pub use error::{CallFailure, ContainerError};
pub use provisioner::ProvisionerOptions;
pub use slot::PoolRules;

/// Backend that creates containers.
#[derive(Debug, Clone)]
pub enum ContainerBackend {
    /// A container engine on this machine.
    Docker(DockerOptions),
    /// A provisioner service of a cluster.
    Provisioner(ProvisionerOptions),
}

/// Runs commands in containers, one per thread.
#[derive(Debug)]
pub struct ContainerCommandSandbox {
    pool: Arc<Pool>,
    limits: CommandLimits,
    mounts: Vec<Mount>,
}

impl ContainerBackend {
    fn open(self) -> Result<Arc<dyn SandboxHost>, reqwest::Error> {
        Ok(match self {
            Self::Docker(options) => Arc::new(DockerSandboxHost::new(options)?),
            Self::Provisioner(options) => Arc::new(ProvisionerSandboxHost::new(options)?),
        })
    }

    /// Queries the name and version of the backend.
    ///
    /// # Errors
    /// If the backend does not respond.
    pub async fn version(self) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.open()?.version().await?)
    }

    #[doc(hidden)]
    #[deprecated(note = "use `version`")]
    pub async fn look(self) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        self.version().await
    }
}

impl ContainerCommandSandbox {
    /// Creates the sandbox. Commands see `mounts` in addition to the folders of their thread. When
    /// `tasks` are shut down, all containers are removed.
    ///
    /// # Errors
    /// If the HTTP client cannot be created.
    pub fn new(
        backend: ContainerBackend,
        rules: PoolRules,
        limits: CommandLimits,
        mounts: Vec<Mount>,
        tasks: Tasks,
    ) -> Result<Self, reqwest::Error> {
        let pool = Pool::new(backend.open()?, SandboxApi::new()?, rules, tasks.clone());
        tasks.spawn(TaskKind::Service, "sandbox pool", pool.clone().maintain());
        Ok(Self {
            pool,
            limits,
            mounts,
        })
    }

    /// Builds the specification of the thread's container and creates its folders.
    fn container_spec(&self, request: CommandRequest<'_>) -> Result<ContainerSpec, FileFailure> {
        let (user, thread) = request.dirs.names();
        let mut mounts = Vec::new();
        for root in Root::ALL {
            let inside = format!("{USER_DATA}/{}", root.dir_name());
            mounts.push(Mount {
                host: request.dirs.create_world_writable(root)?,
                inside,
                read_only: false,
            });
        }
        // The folder must exist when the container is created, before the first write to it.
        request.dirs.create(Root::AcpWorkspace)?;
        mounts.push(Mount {
            host: request.dirs.host_path(Root::AcpWorkspace),
            inside: ACP_WORKSPACE.to_owned(),
            read_only: true,
        });
        let mounted = request.shelf.folders().iter();
        mounts.extend(mounted.map(|folder| {
            let inside = format!("{SKILLS}/{}", folder.path.as_str());
            Mount {
                host: folder.host.clone(),
                inside,
                read_only: true,
            }
        }));
        mounts.extend(self.mounts.iter().cloned());
        let mut seen = HashSet::new();
        mounts.retain(|mount| seen.insert(mount.inside.clone()));
        Ok(ContainerSpec {
            id: SandboxId::of(request.dirs),
            user: user.to_owned(),
            thread: thread.to_owned(),
            mounts,
        })
    }

    /// Acquires a container and uploads the command's script. If the container was lost, retries
    /// once with a new one.
    async fn prepare(
        &self,
        spec: ContainerSpec,
        job: CommandJob<'_>,
    ) -> Result<PreparedCommand, CommandError> {
        let unavailable = |error: ContainerError| CommandError::NoPlace(error.into());
        let (lease, endpoint) = self.pool.acquire(spec.clone()).await.map_err(unavailable)?;
        if self.pool.api.prepare(&endpoint.url, job).await.is_ok() {
            return Ok(PreparedCommand { lease, endpoint });
        }
        lease.require_check().await;
        drop(lease);
        let (lease, endpoint) = self.pool.acquire(spec).await.map_err(unavailable)?;
        self.pool
            .api
            .prepare(&endpoint.url, job)
            .await
            .map_err(unavailable)?;
        Ok(PreparedCommand { lease, endpoint })
    }
}

#[async_trait]
impl CommandSandbox for ContainerCommandSandbox {
    fn isolation(&self) -> Isolation {
        Isolation::Container
    }

    /// All output arrives in one response.
    fn prints_live(&self) -> bool {
        false
    }

    async fn run(
        &self,
        request: CommandRequest<'_>,
        output: &mut dyn CommandOutput,
    ) -> Result<CommandEnd, CommandError> {
        request.check()?;
        let mark = format!("{:032x}", rand::random::<u128>());
        let job = CommandJob {
            mark: &mark,
            command: request.command,
            time_limit: request.time_limit,
            limits: &self.limits,
        };
        let prepared = self.prepare(self.container_spec(request)?, job).await?;
        let mut running = Running {
            prepared: Some(prepared),
            mark: mark.clone(),
        };
        let reported = match &running.prepared {
            Some(prepared) => self.pool.api.run(&prepared.endpoint.url, job).await,
            None => Err(ContainerError::Closing),
        };
        match reported {
            Ok(report) => {
                running.prepared = None;
                Ok(report.write_to(output))
            }
            Err(error) => Err(CommandError::Lost(error.into())),
        }
    }
}

/// A container and its lease.
#[derive(Debug)]
struct PreparedCommand {
    lease: ContainerLease,
    endpoint: ContainerEndpoint,
}

/// A command that may be running. On drop it is killed, unless its end is known.
#[derive(Debug)]
struct Running {
    prepared: Option<PreparedCommand>,
    mark: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(PreparedCommand { lease, endpoint }) = self.prepared.take() else {
            return;
        };
        let mark = std::mem::take(&mut self.mark);
        let pool = lease.pool().clone();
        let tasks = pool.tasks.clone();
        tasks.spawn(TaskKind::Finish, "sandbox cancel", async move {
            if let Err(error) = pool.api.cancel(&endpoint.url, &mark).await {
                tracing::warn!(%error, "a command in a container may still be running");
            }
            lease.require_check().await;
        });
    }
}

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::sandbox::command::container::CallFailure as CallFault;
#[doc(hidden)]
pub use crate::sandbox::command::container::ContainerBackend as ContainerMaker;
