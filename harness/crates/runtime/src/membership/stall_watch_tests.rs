//! Tests of runs that block a thread of their process.

use std::sync::{Mutex, mpsc};

use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::{Map, Value};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::*;
use crate::agent::{
    Agent, AgentError, AgentInput, AgentResolver, AgentStream, AssistantInfo, EventReceiver,
    RunContext, UnknownAssistant,
};
use crate::in_memory::runtime_in_memory;
use crate::runs::*;
use crate::test_support::*;

const LIMIT: Duration = Duration::from_secs(10);

/// Agent whose first poll blocks its thread until the test releases it.
#[derive(Debug, Clone)]
struct Blocking {
    entered: UnboundedSender<()>,
    release: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl Agent for Blocking {
    fn stream(&self, _input: AgentInput, _ctx: RunContext, events: EventReceiver) -> AgentStream {
        let Self { entered, release } = self.clone();
        let driver = async move {
            entered.send(()).unwrap();
            let _released = release.lock().unwrap().recv();
            Err(AgentError::RecursionLimit(1))
        };
        AgentStream::new(events, driver.boxed())
    }

    fn nodes(&self) -> Vec<String> {
        vec!["model".to_owned()]
    }
}

#[async_trait]
impl AgentResolver for Blocking {
    async fn resolve(
        &self,
        _assistant: &str,
        _options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Ok(Arc::new(self.clone()))
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        vec![]
    }
}

/// Process with a run that blocks one of its threads.
struct Stalled {
    process: Arc<RunsFacade>,
    run: RunRecord,
    watch: StallWatch,
    release: mpsc::Sender<()>,
}

impl Stalled {
    async fn start(process: impl AsyncFn(Arc<Blocking>) -> RunsFacade) -> Self {
        let (entered, mut blocked) = unbounded_channel();
        let (release, released) = mpsc::channel();
        let release_of_agent = Arc::new(Mutex::new(released));
        let process = process(Arc::new(Blocking {
            entered,
            release: release_of_agent,
        }))
        .await;
        let process = Arc::new(process);
        let run = process.create_background(spec("finish")).await.unwrap();
        blocked.recv().await.expect("the agent is polled");
        let watch = StallWatch::new(process.runtime().clone(), LIMIT);
        Self {
            process,
            run,
            watch,
            release,
        }
    }

    /// Lets the limit expire.
    async fn expire(&mut self) {
        self.watch.check(LIMIT).await;
        self.watch.check(LIMIT / 2).await;
        let now = stored(&self.process, &self.run).await;
        assert_eq!((now.status.is_owned(), now.attempt), (true, 1));
        assert_eq!(lifecycle(&self.process).stalled_runs(), 0);
        self.watch.check(LIMIT / 2).await;
        assert_eq!(lifecycle(&self.process).stalled_runs(), 1);
    }

    /// Lets the stalled poll return, and waits until all tasks have ended.
    async fn wake_up(self) {
        self.release.send(()).unwrap();
        self.process.runtime().ports().tasks.shut_down().await;
        assert_eq!(lifecycle(&self.process).stalled_runs(), 0);
    }
}

async fn without_dispatcher(agents: Arc<Blocking>) -> RunsFacade {
    over(runtime_in_memory(agents).unwrap())
}

/// Starts another process over the stores of a blocked one, with agents that finish.
async fn next_process(of: &RunsFacade, max_attempts: u32) -> RunsFacade {
    let next = over(RuntimePorts {
        agents: Arc::new(Agents::default()),
        ..of.runtime().ports().clone()
    });
    lifecycle(&next).set_limits(RunLimits {
        max_attempts,
        ..RunLimits::default()
    });
    lifecycle(&next).recover().await.unwrap();
    next
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_run_continues_in_another_process() {
    as_user(async {
        let mut stalled = Stalled::start(without_dispatcher).await;
        stalled.expire().await;
        let released = stored(&stalled.process, &stalled.run).await;
        assert_eq!((released.status, released.attempt), (RunStatus::Pending, 2));
        let next = next_process(&stalled.process, 2).await;
        let outcome = next.join_wait(None, &stalled.run.run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "one two"]);
        let ended = stored(&next, &stalled.run).await;
        assert_eq!((ended.status, ended.attempt), (RunStatus::Success, 2));
        let run = stalled.run.clone();
        stalled.wake_up().await;
        let after = stored(&next, &run).await;
        assert_eq!(after, ended, "the store refuses the stalled attempt");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_attempts_exhaust_the_attempts_of_run() {
    as_user(async {
        let mut stalled = Stalled::start(without_dispatcher).await;
        stalled.expire().await;
        let next = next_process(&stalled.process, 1).await;
        next.join_wait(None, &stalled.run.run_id).await.unwrap();
        let ended = stored(&next, &stalled.run).await;
        assert_eq!(
            (ended.status, ended.stop_reason()),
            (RunStatus::Error, Some(StopReason::AttemptsExhausted))
        );
        stalled.wake_up().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_process_poisons_run_instead_of_restart() {
    as_user(async {
        let with_dispatcher = async |agents| {
            let process = without_dispatcher(agents).await;
            lifecycle(&process).recover().await.unwrap();
            process
        };
        let mut stalled = Stalled::start(with_dispatcher).await;
        let (process, run) = (stalled.process.clone(), stalled.run.clone());
        let waiting = process.join_wait(None, &run.run_id);
        let (outcome, ()) = tokio::join!(waiting, stalled.expire());
        assert!(matches!(outcome, Ok(WaitOutcome::Failed { .. })));
        let ended = stored(&process, &run).await;
        assert_eq!(
            (ended.status, ended.stop_reason()),
            (RunStatus::Error, Some(StopReason::AttemptsExhausted))
        );
        stalled.wake_up().await;
        assert_eq!(stored(&process, &run).await, ended);
    })
    .await;
}

#[tokio::test]
async fn run_that_waits_is_not_stalled() {
    as_user(async {
        let process = facade();
        let run = process.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&process, &run.run_id).await;
        let mut watch = StallWatch::new(process.runtime().clone(), LIMIT);
        for _ in 0..3 {
            watch.check(10 * LIMIT).await;
        }
        let now = stored(&process, &run).await;
        assert_eq!((now.status.is_owned(), now.attempt), (true, 1));
        assert_eq!(lifecycle(&process).stalled_runs(), 0);
    })
    .await;
}
