//! Thread that spawns commands.
//!
//! The kernel kills a sandbox when the *thread* that started it ends (`PR_SET_PDEATHSIG`), and
//! threads of an async runtime may end at any time. So one thread spawns all commands; it lives as
//! long as the adapter.

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
    reply: oneshot::Sender<io::Result<Child>>,
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
                    reply,
                } in received
                {
                    let _within = runtime.enter();
                    // If the receiver was dropped, the child is dropped here, which kills it.
                    let _dropped = reply.send(command.spawn());
                }
            })?;
        Ok(Self { jobs })
    }

    /// Spawns a command that is killed when the child is dropped.
    pub(super) async fn spawn(&self, mut command: Command) -> io::Result<Child> {
        command.kill_on_drop(true);
        let (reply, started) = oneshot::channel();
        let job = Job {
            command,
            runtime: Handle::current(),
            reply,
        };
        let thread_ended = || io::Error::other("the thread that spawns commands has ended");
        self.jobs.send(job).map_err(|_| thread_ended())?;
        started.await.map_err(|_| thread_ended())?
    }
}
