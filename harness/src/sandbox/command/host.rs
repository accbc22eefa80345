//! Commands on the bare host, as this process' own user. There is no isolation here: this is for administrators who say so by name.
//!
//! Virtual paths in a command are rewritten to where the thread's folders lie. That is a convenience, not a fence.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use async_trait::async_trait;
use tokio::process::Command;

use super::running::Running;
use super::{CommandEnd, CommandError, CommandLimits, CommandOutput, CommandRequest, CommandSandbox, Isolation};
use crate::sandbox::masking::to_host;
use crate::sandbox::virtual_paths::Root;

/// Runs commands as this process' user.
#[derive(Debug)]
pub struct HostCommandSandbox {
    shell: PathBuf,
    environment: Vec<(String, String)>,
    limits: CommandLimits,
}

impl HostCommandSandbox {
    /// Commands get `environment` and nothing else.
    ///
    /// # Errors
    /// When there is no shell.
    pub fn new(environment: Vec<(String, String)>, limits: CommandLimits) -> io::Result<Self> {
        let shell = ["/bin/bash", "/usr/bin/bash", "/bin/sh"].into_iter().map(PathBuf::from).find(|path| path.is_file());
        let shell = shell.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no shell"))?;
        Ok(Self { shell, environment, limits })
    }
}

#[async_trait]
impl CommandSandbox for HostCommandSandbox {
    fn isolation(&self) -> Isolation {
        Isolation::None
    }

    async fn run(&self, request: CommandRequest<'_>, output: &mut dyn CommandOutput) -> Result<CommandEnd, CommandError> {
        request.check()?;
        for root in Root::ALL {
            request.dirs.create(root)?;
        }
        let workspace = request.dirs.host_path(Root::Workspace);
        if !is_plain(&workspace) {
            // It becomes part of the command, where anything else would mean something to the shell.
            let why = format!("{} has characters that a shell would read; choose a data folder without them", workspace.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why).into());
        }
        let mut command = Command::new(&self.shell);
        command.arg("-c").arg(to_host(request.command, request.dirs)).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(workspace).process_group(0).kill_on_drop(true);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        Ok(Running::group(child).follow(request.time_limit, self.limits.output_bytes, output).await?)
    }
}

/// Whether a shell takes the path for one word, and reads nothing into it.
fn is_plain(path: &std::path::Path) -> bool {
    path.to_str().is_some_and(|path| path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./+@-".contains(&byte)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::ThreadId;
    use crate::sandbox::safe_fs::Resolver;
    use crate::sandbox::thread_dirs::ThreadDirs;
    use crate::testkit::command_sandbox;

    #[tokio::test]
    async fn the_port_keeps_its_promises() {
        let base = tempfile::tempdir().unwrap();
        let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let sandbox = HostCommandSandbox::new(environment, CommandLimits::default()).unwrap();
        let home: Arc<std::path::Path> = base.path().into();
        let dirs = ThreadDirs::new(home, Resolver::detect(), "ann", &ThreadId::parse("t1").unwrap());
        command_sandbox::keeps_every_promise(&sandbox, &dirs).await;
    }
}
