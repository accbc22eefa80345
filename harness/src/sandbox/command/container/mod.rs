//! Commands in containers: one for each user's thread, made when it is needed and kept for a while.
//!
//! `docker` and `provisioner` make them, `pool` says which are kept, `inside` speaks to what runs in one. A command is launched by a script
//! that knows everything it started, so its end is the same whatever the image's service does.

mod docker;
mod error;
mod inside;
mod peer;
mod place;
mod pool;
mod provisioner;

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::{
    CommandEnd, CommandError, CommandLimits, CommandOutput, CommandRequest, CommandSandbox,
    Isolation, Mount,
};
use crate::runtime::tasks::{TaskKind, Tasks};
use crate::sandbox::fault::Fault;
use crate::sandbox::virtual_paths::{ACP_WORKSPACE, Root, SKILLS, USER_DATA};
use docker::DockerSandboxHost;
use inside::{Errand, Inside};
use place::{Order, Place, SandboxHost, SandboxId};
use pool::{Pool, Seat};
use provisioner::ProvisionerSandboxHost;

pub use docker::DockerOptions;
pub use error::{CallFault, ContainerError};
pub use pool::PoolRules;
pub use provisioner::ProvisionerOptions;

/// Who makes containers.
#[derive(Debug, Clone)]
pub enum ContainerMaker {
    /// An engine on this machine.
    Docker(DockerOptions),
    /// A service of a cluster.
    Provisioner(ProvisionerOptions),
}

/// Runs commands in containers, one for each thread.
#[derive(Debug)]
pub struct ContainerCommandSandbox {
    pool: Arc<Pool>,
    limits: CommandLimits,
    mounts: Vec<Mount>,
}

impl ContainerMaker {
    fn open(self) -> Result<Arc<dyn SandboxHost>, reqwest::Error> {
        Ok(match self {
            Self::Docker(options) => Arc::new(DockerSandboxHost::new(options)?),
            Self::Provisioner(options) => Arc::new(ProvisionerSandboxHost::new(options)?),
        })
    }

    /// Asks for name and version, or says what is wrong.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn look(self) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.open()?.look().await?)
    }
}

impl ContainerCommandSandbox {
    /// Commands see `mounts` besides their thread's folders. Until `tasks` are shut down, containers are kept; then they go.
    ///
    /// # Errors
    /// When there can be no HTTP client.
    pub fn new(
        maker: ContainerMaker,
        rules: PoolRules,
        limits: CommandLimits,
        mounts: Vec<Mount>,
        tasks: Tasks,
    ) -> Result<Self, reqwest::Error> {
        let pool = Pool::new(maker.open()?, Inside::new()?, rules, tasks.clone());
        tasks.spawn(TaskKind::Service, "sandbox keeper", pool.clone().keep());
        Ok(Self {
            pool,
            limits,
            mounts,
        })
    }

    /// What the thread of a request needs; its folders are made.
    fn order(&self, request: CommandRequest<'_>) -> Result<Order, Fault> {
        let (user, thread) = request.dirs.names();
        let mut mounts = Vec::new();
        for root in Root::ALL {
            let inside = format!("{USER_DATA}/{}", root.dir_name());
            mounts.push(Mount {
                host: request.dirs.create_open(root)?,
                inside,
                read_only: false,
            });
        }
        // A container outlives the call that first writes there.
        request.dirs.create(Root::AcpWorkspace)?;
        mounts.push(Mount {
            host: request.dirs.host_path(Root::AcpWorkspace),
            inside: ACP_WORKSPACE.to_owned(),
            read_only: true,
        });
        let shelved = request.shelf.folders().iter();
        mounts.extend(shelved.map(|folder| {
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
        Ok(Order {
            id: SandboxId::of(request.dirs),
            user: user.to_owned(),
            thread: thread.to_owned(),
            mounts,
        })
    }

    /// Enters a container and lays the command down in it. One that is lost by then is made anew, once.
    async fn prepare(&self, order: Order, errand: Errand<'_>) -> Result<Entered, CommandError> {
        let no_place = |error: ContainerError| CommandError::NoPlace(error.into());
        let (seat, place) = self.pool.enter(order.clone()).await.map_err(no_place)?;
        if self.pool.inside.prepare(&place.url, errand).await.is_ok() {
            return Ok(Entered { seat, place });
        }
        seat.doubt().await;
        drop(seat);
        let (seat, place) = self.pool.enter(order).await.map_err(no_place)?;
        self.pool
            .inside
            .prepare(&place.url, errand)
            .await
            .map_err(no_place)?;
        Ok(Entered { seat, place })
    }
}

#[async_trait]
impl CommandSandbox for ContainerCommandSandbox {
    fn isolation(&self) -> Isolation {
        Isolation::Container
    }

    /// All of it comes in one answer.
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
        let errand = Errand {
            mark: &mark,
            command: request.command,
            time_limit: request.time_limit,
            limits: &self.limits,
        };
        let entered = self.prepare(self.order(request)?, errand).await?;
        let mut running = Running {
            entered: Some(entered),
            mark: mark.clone(),
        };
        let reported = match &running.entered {
            Some(entered) => self.pool.inside.run(&entered.place.url, errand).await,
            None => Err(ContainerError::Closing),
        };
        match reported {
            Ok(report) => {
                running.entered = None;
                Ok(report.tell(output))
            }
            Err(error) => Err(CommandError::Lost(error.into())),
        }
    }
}

/// A container, and the right to it.
#[derive(Debug)]
struct Entered {
    seat: Seat,
    place: Place,
}

/// A command that may run. Dropped before its end is known, it is ended.
#[derive(Debug)]
struct Running {
    entered: Option<Entered>,
    mark: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(Entered { seat, place }) = self.entered.take() else {
            return;
        };
        let mark = std::mem::take(&mut self.mark);
        let pool = seat.pool().clone();
        let tasks = pool.tasks.clone();
        tasks.spawn(TaskKind::Finish, "sandbox cancel", async move {
            if let Err(error) = pool.inside.cancel(&place.url, &mark).await {
                tracing::warn!(%error, "a command in a container was perhaps not ended");
            }
            seat.doubt().await;
        });
    }
}
