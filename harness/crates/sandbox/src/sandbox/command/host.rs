//! Runs commands on the host as the server's own user, without isolation. An administrator must
//! enable this explicitly.
//!
//! Virtual paths in a command are rewritten to the host folders of the thread. This is a
//! convenience, not a protection. Paths inside files are not rewritten: a script may be meant for
//! another system, and the file would differ from what was written. Scripts find the folders by
//! environment variables.

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
use crate::sandbox::skill_mounts::SkillMounts;
use crate::sandbox::virtual_paths::Root;

/// Environment variables with the paths of the thread's folders, for programs.
const FOLDER_VARIABLES: [(&str, Root); 3] = [
    ("DEER_FLOW_WORKSPACE", Root::Workspace),
    ("DEER_FLOW_UPLOADS", Root::Uploads),
    ("DEER_FLOW_OUTPUTS", Root::Outputs),
];

/// Runs commands as the user of this process.
#[derive(Debug)]
pub struct HostCommandSandbox {
    shell: PathBuf,
    environment: Vec<(String, String)>,
    limits: CommandLimits,
}

impl HostCommandSandbox {
    /// Creates the sandbox. Commands get `environment` and no other variables.
    ///
    /// # Errors
    /// If no shell is found.
    pub fn new(environment: Vec<(String, String)>, limits: CommandLimits) -> io::Result<Self> {
        let shell = ["/bin/bash", "/usr/bin/bash", "/bin/sh"]
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.is_file());
        let shell =
            shell.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no shell found"))?;
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
        // The path becomes part of the command, where other characters have a meaning for the
        // shell.
        if !is_plain(&workspace) {
            let why = format!(
                "{} has characters with a meaning for the shell; choose a folder without them",
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
        command.envs(FOLDER_VARIABLES.map(|(name, root)| (name, request.dirs.host_path(root))));
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

/// Drops skill folders with a path that cannot be part of a command.
fn plain(skills: &SkillMounts) -> SkillMounts {
    let (plain, skipped): (Vec<_>, Vec<_>) = skills
        .folders()
        .iter()
        .cloned()
        .partition(|folder| is_plain(&folder.host));
    if !skipped.is_empty() {
        let skipped: Vec<_> = skipped.iter().map(|folder| folder.path.as_str()).collect();
        tracing::warn!(
            ?skipped,
            "skills hidden from host commands: their folders have characters with a meaning for the shell"
        );
    }
    SkillMounts::new(plain)
}

/// Reports whether a shell reads the path as one literal word.
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
    use crate::sandbox::command::Transcript;
    use crate::sandbox::safe_fs::Resolver;
    use crate::sandbox::skill_mounts::MountedSkill;
    use crate::sandbox::thread_dirs::ThreadDirs;
    use crate::sandbox::virtual_paths::RelativePath;
    use crate::testkit::command_sandbox;
    use deerflow_core::ids::ThreadId;

    fn fixture(home: &std::path::Path) -> (HostCommandSandbox, ThreadDirs) {
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
    async fn adapter_fulfils_port_contract() {
        let base = tempfile::tempdir().unwrap();
        let (sandbox, dirs) = fixture(base.path());
        command_sandbox::satisfies_sandbox_contract(&sandbox, &dirs).await;
        let script = "printf 'echo x > $DEER_FLOW_OUTPUTS/by-script' > s.sh; bash s.sh; cat /mnt/user-data/outputs/by-script";
        let request = CommandRequest {
            dirs: &dirs,
            shelf: &SkillMounts::default(),
            command: script,
            time_limit: Duration::from_secs(20),
        };
        let mut transcript = Transcript::with_limit(1024);
        sandbox.run(request, &mut transcript).await.unwrap();
        assert_eq!(
            (transcript.out(), transcript.err()),
            ("x\n".to_owned(), String::new())
        );
    }

    #[tokio::test]
    async fn skill_with_unsafe_path_hides_no_other_skill() {
        let base = tempfile::tempdir().unwrap();
        let (sandbox, dirs) = fixture(base.path());
        let folders = ["plain", "my skill", "$(touch x)", "übung"].map(|name| {
            let host = base.path().join(name);
            std::fs::create_dir(&host).unwrap();
            std::fs::write(host.join("a"), name).unwrap();
            MountedSkill {
                path: RelativePath::of_plain_names(&["public", name]),
                host,
            }
        });
        let skills = SkillMounts::new(folders.to_vec());
        let command = "cat /mnt/skills/public/plain/a; cat '/mnt/skills/public/my skill/a'; ls";
        let mut transcript = Transcript::with_limit(1_024);
        let time_limit = std::time::Duration::from_secs(30);
        sandbox
            .run(
                CommandRequest {
                    dirs: &dirs,
                    shelf: &skills,
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
