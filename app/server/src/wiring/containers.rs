//! Opens the sandbox of commands in containers.

use std::path::PathBuf;
use std::sync::Arc;

use harness::runtime::tasks::Tasks;
use harness::sandbox::command::container::{ContainerBackend, ContainerCommandSandbox};
use harness::sandbox::{CommandLimits, CommandSandbox};

use crate::config::{ConfigHandle, Settings};
use crate::sandbox::OpenedSandbox;
use crate::sandbox::containers::{backend, pool_rules};
use crate::sandbox::mounts::{canonical, mounts, private_paths};

/// Opens the container sandbox. The tool is offered even if the engine is down, because it may
/// start later.
pub(super) async fn open(
    handle: &ConfigHandle,
    settings: &Settings,
    tasks: &Tasks,
) -> OpenedSandbox {
    let config = handle.current();
    let sandbox = &config.sandbox;
    let backend = backend(sandbox, handle.environment(), &settings.home)?;
    match backend.clone().version().await {
        Ok(found) => tracing::info!(backend = found, "commands run in containers"),
        Err(error) => tracing::error!(%error, "commands fail until containers are available"),
    }
    let mounts = match &backend {
        ContainerBackend::Docker(options) => {
            let private: Vec<PathBuf> = private_paths(handle, settings)
                .into_iter()
                .chain([canonical(&options.socket)])
                .collect();
            mounts(sandbox, &private)
        }
        // Its host paths are those of other machines.
        ContainerBackend::Provisioner(_) => Vec::new(),
    };
    let opened = ContainerCommandSandbox::new(
        backend,
        pool_rules(sandbox),
        CommandLimits::from(&sandbox.limits),
        mounts,
        tasks.clone(),
    );
    opened
        .map(|opened| Arc::new(opened) as Arc<dyn CommandSandbox>)
        .map_err(|error| error.to_string())
}
