//! Runs a flow once, then again from each state that the first run saved.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use deerflow_flow::adapter::{AdapterRegistry, FlowError};
use deerflow_flow::adapters::fake::{FakeCall, FakeFactory, ScriptedTurn};
use deerflow_flow::compiled::CompiledFlow;
use deerflow_flow::driver::{
    FlowEnd, FlowOptions, FlowOutcome, FlowPorts, FlowSource, FlowStart, Progress, RunHooks,
    run_flow,
};
use deerflow_flow::machine::{FlowMachine, Question, RunData, RunInput};
use serde_json::{Map, Value, json};

/// Maximum questions and breakpoints that a run continues after.
const MAX_STOPS: usize = 20;

/// A run that other processes take over.
#[derive(Debug)]
pub(crate) struct Takeover {
    pub(crate) flow: Arc<CompiledFlow>,
    pub(crate) script: HashMap<String, Vec<ScriptedTurn>>,
    pub(crate) kinds: Vec<String>,
    pub(crate) options: FlowOptions,
    pub(crate) subflows: HashMap<String, Arc<CompiledFlow>>,
    pub(crate) input: RunInput,
    /// Answers in turn; after them, the first option of each question.
    pub(crate) answers: Vec<Value>,
}

/// State of a run at a moment when its process may die.
struct Saved {
    machine: Value,
    channels: Map<String, Value>,
    /// Number of turns by node.
    turns: HashMap<String, usize>,
    /// Number of stops that the run continued after.
    stops: usize,
}

/// Saves the state after each superstep and each early result.
struct Saver {
    fake: FakeFactory,
    stops: AtomicUsize,
    saved: Mutex<Vec<Saved>>,
}

impl std::fmt::Debug for Saver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Saver").finish_non_exhaustive()
    }
}

impl Saver {
    fn save(&self, progress: &Progress<'_>) {
        let mut turns = HashMap::new();
        for call in self.fake.calls() {
            if let FakeCall::Turn(turn) = call {
                *turns.entry(turn.node_id).or_insert(0) += 1;
            }
        }
        self.saved.lock().unwrap().push(Saved {
            machine: serde_json::to_value(progress.machine).unwrap(),
            channels: progress.data.channels(progress.flow),
            turns,
            stops: self.stops.load(Ordering::Relaxed),
        });
    }
}

#[async_trait]
impl RunHooks for Saver {
    fn superstep(&self, progress: Progress<'_>) {
        self.save(&progress);
    }

    fn amended(&self, progress: Progress<'_>) {
        self.save(&progress);
    }
}

#[derive(Debug)]
struct Subflows(HashMap<String, Arc<CompiledFlow>>);

#[async_trait]
impl FlowSource for Subflows {
    async fn get(&self, flow_id: &str) -> Result<Option<Arc<CompiledFlow>>, FlowError> {
        Ok(self.0.get(flow_id).cloned())
    }
}

impl Takeover {
    /// Checks that the run reaches one end from each saved state. Returns the number of states, or
    /// a description of the first difference.
    pub(crate) fn check(&self) -> Result<usize, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let fake = FakeFactory::scripted("fake", self.script.clone());
        let saver = Arc::new(Saver {
            fake: fake.clone(),
            stops: AtomicUsize::new(0),
            saved: Mutex::default(),
        });
        let mut ports = self.ports(&fake);
        ports.hooks = saver.clone();
        let start = FlowStart::Fresh(self.input.clone());
        let whole = runtime.block_on(self.run_to_end(start, &ports, &saver.stops));
        let saved = std::mem::take(&mut *saver.saved.lock().unwrap());
        for (number, state) in saved.iter().enumerate() {
            let rest = runtime.block_on(self.continued(state));
            if summary(&rest) != summary(&whole) {
                return Err(format!(
                    "state {number} of {} reaches {:?}, not {:?}",
                    saved.len(),
                    summary(&rest),
                    summary(&whole)
                ));
            }
        }
        Ok(saved.len())
    }

    async fn continued(&self, state: &Saved) -> FlowEnd {
        let mut rest = self.script.clone();
        for (node, count) in &state.turns {
            let used = rest.entry(node.clone()).or_default();
            used.drain(..(*count).min(used.len()));
        }
        let bounds = self.options.bounds.clone();
        let machine = FlowMachine::restore(&self.flow, bounds, state.machine.clone()).unwrap();
        let data = RunData::restore(&self.flow, &state.channels).unwrap();
        assert_eq!(data.channels(&self.flow), state.channels);
        let start = FlowStart::TakenOver(Box::new(machine), Box::new(data));
        let ports = self.ports(&FakeFactory::scripted("fake", rest));
        let stops = AtomicUsize::new(state.stops);
        self.run_to_end(start, &ports, &stops).await
    }

    fn ports(&self, fake: &FakeFactory) -> FlowPorts {
        let mut registry = AdapterRegistry::default();
        for kind in &self.kinds {
            registry.register(Arc::new(fake.under_kind(kind))).unwrap();
        }
        FlowPorts {
            flows: Some(Arc::new(Subflows(self.subflows.clone()))),
            ..FlowPorts::new(registry)
        }
    }

    /// Runs, and continues after questions and breakpoints.
    async fn run_to_end(
        &self,
        start: FlowStart,
        ports: &FlowPorts,
        stops: &AtomicUsize,
    ) -> FlowEnd {
        let mut end = run_flow(&self.flow, start, &self.options, ports).await;
        loop {
            let answer = match &end.outcome {
                FlowOutcome::Interrupted(questions) => self.answer(questions, stops),
                FlowOutcome::Breakpoint(_) => Value::Null,
                _ => return end,
            };
            if stops.fetch_add(1, Ordering::Relaxed) == MAX_STOPS {
                return end;
            }
            let FlowEnd {
                mut machine, data, ..
            } = end;
            machine.begin_run(0);
            if !machine.questions().is_empty() {
                machine.answer(answer).unwrap();
            }
            let start = FlowStart::Resumed(Box::new(machine), Box::new(data));
            end = run_flow(&self.flow, start, &self.options, ports).await;
        }
    }

    fn answer(&self, questions: &[Question], stops: &AtomicUsize) -> Value {
        if let Some(answer) = self.answers.get(stops.load(Ordering::Relaxed)) {
            return answer.clone();
        }
        let first = |question: &Question| match &question.value["options"][0] {
            Value::Null => json!("yes"),
            option => option.clone(),
        };
        let answers = questions.iter().map(|q| (q.id.clone(), first(q)));
        Value::Object(answers.collect())
    }
}

fn summary(end: &FlowEnd) -> (String, Option<Value>) {
    let outcome = match &end.outcome {
        FlowOutcome::Failed(error) => error.code.clone(),
        other => format!("{other:?}"),
    };
    (outcome, end.data.result())
}
