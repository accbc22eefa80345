//! Limit of concurrent commands per node.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    CommandEnd, CommandError, CommandOutput, CommandRequest, CommandSandbox, Isolation, Reach,
};
use deerflow_core::actor_context::effective_user_id;
use deerflow_core::fair_permits::FairPermits;

/// Runs commands in another sandbox, limited to a number of concurrent commands. Further commands
/// wait, up to a timeout; waiting users receive permits in turn.
#[derive(Debug)]
pub struct LimitedCommandSandbox<S> {
    sandbox: S,
    permits: FairPermits,
    wait_timeout: Duration,
}

impl<S> LimitedCommandSandbox<S> {
    /// Allows `max` concurrent commands; the next one waits up to `wait_timeout` for a permit.
    pub fn new(sandbox: S, max: usize, wait_timeout: Duration) -> Self {
        Self {
            sandbox,
            permits: FairPermits::new("commands", max),
            wait_timeout,
        }
    }
}

#[async_trait]
impl<S: CommandSandbox> CommandSandbox for LimitedCommandSandbox<S> {
    fn isolation(&self) -> Isolation {
        self.sandbox.isolation()
    }

    fn prints_live(&self) -> bool {
        self.sandbox.prints_live()
    }

    fn reach(&self) -> Reach {
        self.sandbox.reach()
    }

    async fn run(
        &self,
        request: CommandRequest<'_>,
        output: &mut dyn CommandOutput,
    ) -> Result<CommandEnd, CommandError> {
        let user = effective_user_id();
        let permit = self.permits.acquire_within(&user, self.wait_timeout).await;
        let Some(_permit) = permit else {
            return Err(CommandError::Busy {
                seconds: self.wait_timeout.as_secs(),
            });
        };
        self.sandbox.run(request, output).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sandbox::safe_fs::Resolver;
    use crate::sandbox::{SkillMounts, ThreadDirs, Transcript};
    use deerflow_core::ids::ThreadId;

    /// A sandbox whose commands start and never end.
    #[derive(Debug)]
    struct Endless;

    #[async_trait]
    impl CommandSandbox for Endless {
        fn isolation(&self) -> Isolation {
            Isolation::Kernel
        }

        async fn run(
            &self,
            _request: CommandRequest<'_>,
            output: &mut dyn CommandOutput,
        ) -> Result<CommandEnd, CommandError> {
            output.take(crate::sandbox::command::Pipe::Out, b"begun");
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn excess_command_waits_for_permit_until_timeout() {
        let sandbox = Arc::new(LimitedCommandSandbox::new(
            Endless,
            1,
            Duration::from_secs(30),
        ));
        let home: Arc<std::path::Path> = std::path::Path::new("/nowhere").into();
        let dirs = ThreadDirs::new(
            home,
            Resolver::detect(),
            "ann",
            &ThreadId::parse("t1").unwrap(),
        );
        let skills = SkillMounts::default();
        let request = CommandRequest {
            dirs: &dirs,
            shelf: &skills,
            command: "true",
            time_limit: Duration::from_secs(600),
        };
        let (mut first, mut second) = (Transcript::with_limit(9), Transcript::with_limit(9));
        {
            let running = sandbox.run(request, &mut first);
            tokio::pin!(running);
            assert!(
                tokio::time::timeout(Duration::from_secs(1), running.as_mut())
                    .await
                    .is_err(),
                "still running"
            );
            let refused = sandbox.run(request, &mut second).await;
            assert!(
                matches!(refused, Err(CommandError::Busy { seconds: 30 })),
                "{refused:?}"
            );
        }
        let mut third = Transcript::with_limit(9);
        let started =
            tokio::time::timeout(Duration::from_secs(1), sandbox.run(request, &mut third)).await;
        assert!(started.is_err(), "still running");
        assert_eq!(
            (first.out(), second.out(), third.out()),
            ("begun".to_owned(), String::new(), "begun".to_owned())
        );
    }
}
