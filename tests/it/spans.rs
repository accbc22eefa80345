//! Tracing spans of one request through the runtime.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use harness::agents::{AgentBuilder, StaticResolver};
use harness::ids::ThreadId;
use harness::messages::Message;
use harness::models::scripted::ScriptedModel;
use harness::runtime::in_memory::runtime_in_memory;
use harness::runtime::runs::{RunLimits, RunRequest, RunsFacade, StreamMode, StreamModes};
use parking_lot::Mutex;
use tracing::{Id, Subscriber, span::Attributes};
use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt as _, registry::LookupSpan};

/// Opened spans with their parents, in order.
#[derive(Debug, Clone, Default)]
struct Opened(Arc<Mutex<Vec<Span>>>);

#[derive(Debug)]
struct Span {
    parent: Option<&'static str>,
    name: &'static str,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Opened {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let parent = context
            .span(id)
            .and_then(|span| span.parent().map(|parent| parent.name()));
        self.0.lock().push(Span {
            parent,
            name: attributes.metadata().name(),
        });
    }
}

impl Opened {
    fn under(&self, parent: &str) -> Vec<&'static str> {
        self.0
            .lock()
            .iter()
            .filter(|span| span.parent == Some(parent))
            .map(|span| span.name)
            .collect()
    }
}

fn spec() -> RunRequest {
    let thread = ThreadId::parse("t1").expect("id");
    RunRequest {
        stream_modes: StreamModes::from_iter([StreamMode::Values]),
        ..RunRequest::ask("agent", thread, Message::human("then say x"))
    }
}

#[tokio::test]
async fn run_passes_its_spans_in_order() {
    let opened = Opened::default();
    let _recording =
        tracing::subscriber::set_default(tracing_subscriber::registry().with(opened.clone()));
    let agent = AgentBuilder::new(Arc::new(ScriptedModel::new("scripted", "scripted"))).build();
    let parts = runtime_in_memory(Arc::new(StaticResolver::new().with_agent("agent", agent)))
        .expect("parts");
    let runs = RunsFacade::new(parts, RunLimits::default());
    let (_, stream) = runs
        .create_and_stream(spec(), Duration::from_secs(15))
        .await
        .expect("accepted");
    stream.items.collect::<Vec<_>>().await;

    assert_eq!(
        opened.under("create_and_stream"),
        ["plan", "admit", "launch", "subscribe"]
    );
    assert_eq!(opened.under("launch"), ["run"]);
    assert_eq!(
        opened.under("run"),
        ["start", "prepare", "stream", "finish"]
    );
}
