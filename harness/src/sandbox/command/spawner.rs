//! The thread that starts commands.
//!
//! The kernel ends a sandbox with the *thread* that started it (`PR_SET_PDEATHSIG`), and threads of an async runtime come and go. So
//! one thread starts them all and lives as long as the sandbox's adapter.

use std::io;
use std::sync::mpsc::{Sender, channel};

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

#[derive(Debug)]
pub(super) struct Spawner {
    jobs: Sender<Job>,
}

struct Job {
    command: Command,
    runtime: Handle,
    answer: oneshot::Sender<io::Result<Child>>,
}

impl Spawner {
    pub(super) fn start() -> io::Result<Self> {
        let (jobs, received) = channel::<Job>();
        std::thread::Builder::new()
            .name("command-spawner".to_owned())
            .spawn(move || {
                for Job {
                    mut command,
                    runtime,
                    answer,
                } in received
                {
                    let _within = runtime.enter();
                    // Nobody waits any more: the child is dropped here, and that kills it.
                    let _unwanted = answer.send(command.spawn());
                }
            })?;
        Ok(Self { jobs })
    }

    /// Starts a command, which is killed when the child is dropped.
    pub(super) async fn spawn(&self, mut command: Command) -> io::Result<Child> {
        command.kill_on_drop(true);
        let (answer, started) = oneshot::channel();
        let job = Job {
            command,
            runtime: Handle::current(),
            answer,
        };
        let gone = || io::Error::other("the thread that starts commands has ended");
        self.jobs.send(job).map_err(|_| gone())?;
        started.await.map_err(|_| gone())?
    }
}
