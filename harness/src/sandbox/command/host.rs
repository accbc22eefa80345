//! Commands on the bare host, as this process' own user. There is no isolation here: this is for administrators who say so by name.
//!
//! Virtual paths in a command are rewritten to where the thread's folders lie. That is a convenience, not a fence. Those in files are
//! not: what a script says may be meant for others, and a rewritten file would not be what was written. Scripts find the folders by
//! variables.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use async_trait::async_trait;
use tokio::process::Command;

use super::running::Running;
use super::{
    CommandEnd, CommandError, CommandLimits, CommandOutput, CommandRequest, CommandSandbox,
    Isolation,
};
use crate::sandbox::masking::to_host;
use crate::sandbox::shelf::Shelf;
use crate::sandbox::virtual_paths::Root;

/// The variables by which a program finds the thread's folders.
const FOLDERS: [(&str, Root); 3] = [
    ("DEER_FLOW_WORKSPACE", Root::Workspace),
    ("DEER_FLOW_UPLOADS", Root::Uploads),
    ("DEER_FLOW_OUTPUTS", Root::Outputs),
];

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
        let shell = ["/bin/bash", "/usr/bin/bash", "/bin/sh"]
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.is_file());
        let shell =
            shell.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no shell"))?;
        Ok(Self {
            shell,
            environment,
            limits,
        })
    }
}

#[async_trait]
impl CommandSandbox for HostCommandSandbox {
    fn isolation(&self) -> Isolation {
        Isolation::None
    }

    async fn run(
        &self,
        request: CommandRequest<'_>,
        output: &mut dyn CommandOutput,
    ) -> Result<CommandEnd, CommandError> {
        request.check()?;
        for root in Root::ALL {
            request.dirs.create(root)?;
        }
        let workspace = request.dirs.host_path(Root::Workspace);
        // They become part of the command, where anything else would mean something to the shell.
        if !is_plain(&workspace) {
            let why = format!(
                "{} has characters that a shell would read; choose a folder without them",
                workspace.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why).into());
        }
        let mut command = Command::new(&self.shell);
        command
            .arg("-c")
            .arg(to_host(
                request.command,
                request.dirs,
                &plain(request.shelf),
            ))
            .env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.envs(FOLDERS.map(|(name, root)| (name, request.dirs.host_path(root))));
        command
            .current_dir(workspace)
            .process_group(0)
            .kill_on_drop(true);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Running::group(child)
            .follow(request.time_limit, self.limits.output_bytes, output)
            .await?)
    }
}

/// The shelf without folders that cannot be part of a command: commands do without those.
fn plain(shelf: &Shelf) -> Shelf {
    let (plain, odd): (Vec<_>, Vec<_>) = shelf
        .folders()
        .iter()
        .cloned()
        .partition(|folder| is_plain(&folder.host));
    if !odd.is_empty() {
        let odd: Vec<_> = odd.iter().map(|folder| folder.path.as_str()).collect();
        tracing::warn!(
            ?odd,
            "commands on the host cannot see skills whose folders have characters that a shell would read"
        );
    }
    Shelf::new(plain)
}

/// Whether a shell takes the path for one word, and reads nothing into it.
fn is_plain(path: &std::path::Path) -> bool {
    path.to_str().is_some_and(|path| {
        path.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_./+@-".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::ids::ThreadId;
    use crate::sandbox::command::Transcript;
    use crate::sandbox::safe_fs::Resolver;
    use crate::sandbox::shelf::ShelvedFolder;
    use crate::sandbox::thread_dirs::ThreadDirs;
    use crate::sandbox::virtual_paths::RelativePath;
    use crate::testkit::command_sandbox;

    fn place(home: &std::path::Path) -> (HostCommandSandbox, ThreadDirs) {
        let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let sandbox = HostCommandSandbox::new(environment, CommandLimits::default()).unwrap();
        let home: Arc<std::path::Path> = home.into();
        (
            sandbox,
            ThreadDirs::new(
                home,
                Resolver::detect(),
                "ann",
                &ThreadId::parse("t1").unwrap(),
            ),
        )
    }

    #[tokio::test]
    async fn the_port_keeps_its_promises() {
        let base = tempfile::tempdir().unwrap();
        let (sandbox, dirs) = place(base.path());
        command_sandbox::keeps_every_promise(&sandbox, &dirs).await;
        let script = "printf 'echo x > $DEER_FLOW_OUTPUTS/by-script' > s.sh; bash s.sh; cat /mnt/user-data/outputs/by-script";
        let request = CommandRequest {
            dirs: &dirs,
            shelf: &Shelf::default(),
            command: script,
            time_limit: Duration::from_secs(20),
        };
        let mut transcript = Transcript::keeping(1024);
        sandbox.run(request, &mut transcript).await.unwrap();
        assert_eq!(
            (transcript.out(), transcript.err()),
            ("x\n".to_owned(), String::new())
        );
    }

    #[tokio::test]
    async fn a_skill_with_an_odd_name_does_not_keep_commands_from_the_others() {
        let base = tempfile::tempdir().unwrap();
        let (sandbox, dirs) = place(base.path());
        let folders = ["plain", "my skill", "$(touch x)", "übung"].map(|name| {
            let host = base.path().join(name);
            std::fs::create_dir(&host).unwrap();
            std::fs::write(host.join("a"), name).unwrap();
            ShelvedFolder {
                path: RelativePath::of_plain_names(&["public", name]),
                host,
            }
        });
        let shelf = Shelf::new(folders.to_vec());
        let command = "cat /mnt/skills/public/plain/a; cat '/mnt/skills/public/my skill/a'; ls";
        let mut transcript = Transcript::keeping(1_024);
        let time_limit = std::time::Duration::from_secs(30);
        sandbox
            .run(
                CommandRequest {
                    dirs: &dirs,
                    shelf: &shelf,
                    command,
                    time_limit,
                },
                &mut transcript,
            )
            .await
            .unwrap();
        assert_eq!(transcript.out(), "plain");
    }
}
