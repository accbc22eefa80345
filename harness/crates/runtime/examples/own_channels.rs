//! An agent with channels and an input of its own. Run it with `cargo run -p deerflow-runtime
//! --example own_channels`.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::ids::{InvalidId, ThreadId};
use deerflow_core::messages::Message;
use deerflow_core::state::{Channels, InvalidChannel, Reducer, StateUpdate};
use deerflow_runtime::agent::{
    Agent, AgentError, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStream,
    AssistantInfo, EventReceiver, InputError, RunContext, StepEvent, StopKind, UnknownAssistant,
};
use deerflow_runtime::in_memory::{InvalidOption, runtime_in_memory};
use deerflow_runtime::runs::{RunError, RunInput, RunLimits, RunRequest, RunsFacade, WaitOutcome};
use serde_json::{Map, Value, json};

/// Input of the run: any keys that the client sends.
const INPUT: &str = "input";
/// Number of letters by word.
const LENGTHS: &str = "lengths";

/// Agent that measures the words of its input.
#[derive(Debug)]
struct WordLengths(Channels);

impl WordLengths {
    fn new() -> Result<Self, InvalidChannel> {
        let channels = Channels::empty()
            .with(INPUT, Reducer::LastWrite)?
            .with(LENGTHS, Reducer::MergeKeys)?;
        Ok(Self(channels))
    }
}

impl Agent for WordLengths {
    fn channels(&self) -> Channels {
        self.0.clone()
    }

    /// Accepts `messages` and a required list `words`, which becomes the value of the channel
    /// `input`.
    fn read_input(&self, mut input: Map<String, Value>) -> Result<Map<String, Value>, InputError> {
        let messages = input.shift_remove_entry("messages");
        let words = input.get("words").cloned().unwrap_or_default();
        if !words.is_array() {
            return Err(InputError::Invalid {
                path: vec!["words".to_owned()],
                reason: "Input should be a valid list".to_owned(),
                value: words,
            });
        }
        let own = (INPUT.to_owned(), input.into());
        Ok(messages.into_iter().chain([own]).collect())
    }

    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
        AgentStream::new(events, Box::pin(measure(input, ctx)))
    }

    fn nodes(&self) -> Vec<String> {
        vec!["measure".to_owned()]
    }
}

/// Writes the length of each word. Updates of parallel nodes would be merged by word.
async fn measure(input: AgentInput, ctx: RunContext) -> Result<AgentOutcome, AgentError> {
    let mut state = input.state;
    let words = state
        .channel(INPUT)
        .and_then(|input| input.get("words")?.as_array())
        .cloned()
        .unwrap_or_default();
    let lengths: Map<String, Value> = words
        .iter()
        .filter_map(Value::as_str)
        .map(|word| (word.to_owned(), word.chars().count().into()))
        .collect();
    let update = StateUpdate::channel(LENGTHS, lengths.into());
    state.apply(update.clone(), &*ctx.ids)?;
    ctx.sink.emit(AgentEvent::Step(StepEvent {
        node: "measure".to_owned(),
        update: Some(update),
        state: Arc::new(state),
        next: vec![],
        machine: Value::Null,
        steps: 1,
        checkpoint: true,
    }));
    Ok(AgentOutcome {
        kind: StopKind::Completed,
        stop_reason: None,
    })
}

/// Resolves each name to the agent.
#[derive(Debug)]
struct OneAgent(Arc<WordLengths>);

#[async_trait]
impl AgentResolver for OneAgent {
    async fn resolve(
        &self,
        _assistant: &str,
        _options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Ok(self.0.clone())
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        vec![]
    }
}

/// Error of the example.
#[derive(Debug, thiserror::Error)]
enum ExampleError {
    #[error(transparent)]
    Channel(#[from] InvalidChannel),
    #[error(transparent)]
    Option(#[from] InvalidOption),
    #[error(transparent)]
    Id(#[from] InvalidId),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("the run failed: {0}")]
    Failed(String),
    #[error("the final state is no JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Measures words and returns the final state of the thread.
async fn run(sent: Map<String, Value>) -> Result<Value, ExampleError> {
    let agent = Arc::new(WordLengths::new()?);
    // A server calls this for the `input` of a request; this program sends it itself.
    let channels = agent.read_input(sent)?.into_iter().collect();
    let runs = RunsFacade::new(
        runtime_in_memory(Arc::new(OneAgent(agent)))?,
        RunLimits::default(),
    );
    let request = RunRequest {
        input: RunInput::Update(StateUpdate {
            messages: vec![],
            channels,
        }),
        ..RunRequest::ask("words", ThreadId::parse("t1")?, Message::human(""))
    };
    let (_run, outcome) = runs.create_and_wait(request).await?;
    match outcome {
        WaitOutcome::Values(values) => Ok(serde_json::from_slice(&values.into_bytes())?),
        WaitOutcome::Failed { message, .. } => Err(ExampleError::Failed(message)),
    }
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "an example shows its result")]
async fn main() -> Result<(), ExampleError> {
    let sent = Map::from_iter([("words".to_owned(), json!(["state", "channel"]))]);
    println!("{}", run(sent).await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn final_state_has_the_channels_of_the_agent() {
        let sent = json!({ "words": ["a", "bc"], "unit": "letters" });
        let sent = sent.as_object().cloned().unwrap();
        assert_eq!(
            run(sent.clone()).await.unwrap(),
            json!({ "messages": [], "input": sent, "lengths": { "a": 1, "bc": 2 } })
        );
    }

    #[tokio::test]
    async fn invalid_input_is_refused_with_its_place() {
        let error = run(Map::new()).await.unwrap_err();
        assert_eq!(error.to_string(), "words: Input should be a valid list");
    }
}
