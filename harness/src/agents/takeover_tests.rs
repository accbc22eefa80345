//! Tools under the whole runtime, over memory stores that two processes see one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Notify;

use crate::agents::{AgentBuilder, StaticResolver};
use crate::ids::ThreadId;
use crate::messages::Message;
use crate::models::ScriptedModel;
use crate::runtime::actor_context::{ActorContext, Owner, scope};
use crate::runtime::memory::{MemoryOptions, MemoryStreamBridge, runtime_in_memory};
use crate::runtime::runs::{
    CancelAction, RunInput, RunLimits, RunRecord, RunSpec, RunStatus, RunsFacade, RuntimeParts,
};
use crate::runtime::tasks::Tasks;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

#[derive(Debug, Deserialize, JsonSchema)]
struct Args {
    #[serde(default)]
    hang: bool,
}

/// What outlives a process.
#[derive(Debug, Default)]
struct World {
    /// Once a process has died, nothing hangs any more.
    healed: AtomicBool,
    hanging: Notify,
    made: Mutex<Vec<(&'static str, String)>>,
}

struct Doing(&'static str, Effect, Arc<World>);

impl Tool for Doing {
    type Args = Args;

    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &str {
        "Does something."
    }

    fn effect(&self, _args: &Args) -> Effect {
        self.1
    }

    async fn call(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.2.made.lock().push((self.0, ctx.key.clone()));
        if args.hang && !self.2.healed.load(Ordering::Relaxed) {
            self.2.hanging.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(format!("{} done", self.0).into())
    }
}

struct House {
    world: Arc<World>,
    runs: RunsFacade,
}

fn process(parts: RuntimeParts) -> RunsFacade {
    let bridge = Arc::new(MemoryStreamBridge::new(MemoryOptions::default()).unwrap());
    RunsFacade::new(
        RuntimeParts {
            bridge,
            tasks: Tasks::new(),
            ..parts
        },
        RunLimits::default(),
    )
}

fn house() -> House {
    let world = Arc::<World>::default();
    let tool = |name, effect| Doing(name, effect, world.clone());
    let agent = AgentBuilder::new(Arc::new(ScriptedModel::default()));
    let agent = agent
        .tool(tool("reads", Effect::Pure))
        .tool(tool("puts", Effect::Keyed))
        .tool(tool("sends", Effect::Unsafe))
        .build();
    let agents = StaticResolver::new().with_agent("plain", agent);
    House {
        runs: process(runtime_in_memory(Arc::new(agents)).unwrap()),
        world,
    }
}

impl House {
    /// Starts a run, waits until a tool hangs in it, and lets its process die there; gives the next process.
    async fn dies_in(&self, script: &str) -> (RunRecord, RunsFacade) {
        let run = self.runs.create_background(ask(script)).await.unwrap();
        self.world.hanging.notified().await;
        // Results of the others are durable when nothing is left to do but wait.
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.world.healed.store(true, Ordering::Relaxed);
        self.runs.parts().tasks.token().cancel();
        let next = process(self.runs.parts().clone());
        assert_eq!(next.recover().await.unwrap(), 1);
        (run, next)
    }

    fn counts(&self) -> [usize; 3] {
        let made = self.world.made.lock();
        ["reads", "puts", "sends"].map(|tool| made.iter().filter(|(name, _)| *name == tool).count())
    }
}

fn thread() -> ThreadId {
    ThreadId::parse("t").unwrap()
}

fn ask(script: &str) -> RunSpec {
    RunSpec::ask("plain", thread(), Message::human(script))
}

async fn as_user<T>(work: impl Future<Output = T>) -> T {
    scope(ActorContext::user("ann"), work).await
}

async fn texts(runs: &RunsFacade) -> Vec<String> {
    let head = runs
        .parts()
        .checkpointer
        .get(&thread(), None)
        .await
        .unwrap()
        .unwrap();
    super::test_support::transcript(head.state.messages())
}

#[tokio::test(start_paused = true)]
async fn a_process_that_takes_a_run_over_repeats_only_what_may_be_repeated() {
    as_user(async {
        let house = house();
        let batch = r#"[[tools:[{"name":"sends","args":{}},{"name":"sends","args":{"hang":true}},{"name":"puts","args":{"hang":true}},{"name":"reads","args":{"hang":true}}]]]"#;
        let (run, next) = house.dies_in(&format!("{batch} then say fine")).await;
        next.join_wait(None, &run.run_id).await.unwrap();
        let ended = next.parts().query.get(&run.run_id, &Owner::None).await.unwrap().unwrap();
        assert_eq!((ended.status, ended.attempt), (RunStatus::Success, 2));
        let said = texts(&next).await;
        assert_eq!(said[2], "tool:sends done");
        assert!(said[3].contains("outcome is unknown"), "{said:?}");
        assert_eq!(said[4..], ["tool:puts done", "tool:reads done", "ai:fine"]);
        assert_eq!(house.counts(), [2, 2, 2]);
        let made = house.world.made.lock().clone();
        let keys: Vec<_> = made.iter().filter(|(name, _)| *name == "puts").map(|(_, key)| key).collect();
        assert_eq!(keys[0], keys[1]);
        for (_, key) in &made {
            assert_eq!(next.parts().ledger.progress(&run.run_id, key).await, Ok(None), "the ledger goes with the run");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_later_call_of_a_run_that_was_taken_over_is_made_as_usual() {
    as_user(async {
        let house = house();
        let (run, next) = house
            .dies_in(r#"[[tool:sends {"hang":true}]] [[tool:sends {}]] then say fine"#)
            .await;
        next.join_wait(None, &run.run_id).await.unwrap();
        let said = texts(&next).await;
        assert!(said[2].contains("outcome is unknown"));
        assert_eq!(said[4..], ["tool:sends done", "ai:fine"]);
        assert_eq!(house.counts(), [0, 0, 2]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_told_to_stop_in_a_call_forgets_its_ledger() {
    as_user(async {
        let house = house();
        let run = house
            .runs
            .create_background(ask(r#"[[tool:sends {"hang":true}]]"#))
            .await
            .unwrap();
        house.world.hanging.notified().await;
        let key = house.world.made.lock()[0].1.clone();
        let head = house
            .runs
            .parts()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            head.meta.next[0].name, "tools",
            "and so is the step that it belongs to"
        );
        assert!(
            house
                .runs
                .parts()
                .ledger
                .progress(&run.run_id, &key)
                .await
                .unwrap()
                .is_some(),
            "durable before the tool begins"
        );
        house
            .runs
            .cancel(None, &run.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        assert_eq!(
            house.runs.parts().ledger.progress(&run.run_id, &key).await,
            Ok(None)
        );
        let again = RunSpec {
            input: RunInput::Continue,
            ..ask("")
        };
        house.world.healed.store(true, Ordering::Relaxed);
        house.runs.create_and_wait(again).await.unwrap();
        assert_eq!(house.counts()[2], 2, "another run may do it");
    })
    .await;
}
