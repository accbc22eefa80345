//! A limit of commands that run on this node at the same time.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use super::{
    CommandEnd, CommandError, CommandOutput, CommandRequest, CommandSandbox, Isolation, Reach,
};

/// Runs commands in another sandbox, so many at a time. Those that come too many wait, and not for ever.
#[derive(Debug)]
pub struct LimitedCommandSandbox<S> {
    sandbox: S,
    places: Semaphore,
    patience: Duration,
}

impl<S> LimitedCommandSandbox<S> {
    /// At most `most` at a time; the next waits for a place as long as `patience`.
    pub fn new(sandbox: S, most: usize, patience: Duration) -> Self {
        Self {
            sandbox,
            places: Semaphore::new(most.min(Semaphore::MAX_PERMITS)),
            patience,
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
        let place = tokio::time::timeout(self.patience, self.places.acquire()).await;
        let Ok(Ok(_place)) = place else {
            return Err(CommandError::Busy {
                seconds: self.patience.as_secs(),
            });
        };
        self.sandbox.run(request, output).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ids::ThreadId;
    use crate::sandbox::safe_fs::Resolver;
    use crate::sandbox::{Shelf, ThreadDirs, Transcript};

    /// Begins when asked and never ends.
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
            output.take(super::super::Pipe::Out, b"begun");
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_too_many_waits_for_a_place_and_not_for_ever() {
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
        let shelf = Shelf::default();
        let request = CommandRequest {
            dirs: &dirs,
            shelf: &shelf,
            command: "true",
            time_limit: Duration::from_secs(600),
        };
        let (mut first, mut second) = (Transcript::keeping(9), Transcript::keeping(9));
        {
            let running = sandbox.run(request, &mut first);
            tokio::pin!(running);
            assert!(
                tokio::time::timeout(Duration::from_secs(1), running.as_mut())
                    .await
                    .is_err(),
                "it goes on"
            );
            let refused = sandbox.run(request, &mut second).await;
            assert!(
                matches!(refused, Err(CommandError::Busy { seconds: 30 })),
                "{refused:?}"
            );
        }
        let mut third = Transcript::keeping(9);
        let begun =
            tokio::time::timeout(Duration::from_secs(1), sandbox.run(request, &mut third)).await;
        assert!(begun.is_err(), "it goes on");
        assert_eq!(
            (first.out(), second.out(), third.out()),
            ("begun".to_owned(), String::new(), "begun".to_owned())
        );
    }
}
