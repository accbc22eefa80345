//! Turns of the kind `model` with the scripted provider.

use deerflow_core::actor_context::ActorContext;
use deerflow_core::clock::SystemClock;
use deerflow_core::ids::SeededIds;
use deerflow_models::{
    BreakerPolicy, Breakers, ModelCatalog, ModelEntry, Pricing, RetryPolicy as ModelRetryPolicy,
};
use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

use super::*;

#[derive(Debug, Default)]
struct Deltas(Mutex<Vec<TurnDelta>>);

impl DeltaSink for Deltas {
    fn delta(&self, delta: TurnDelta) {
        self.0.lock().push(delta);
    }
}

fn priced(name: &str, currency: &str) -> ModelEntry {
    ModelEntry {
        pricing: Some(Pricing {
            currency: currency.to_owned(),
            input: 1.0,
            cached_input: 1.0,
            output: 2.0,
        }),
        ..ModelEntry::new(name, "scripted", "s")
    }
}

fn factory() -> ModelFactory {
    let entries = [
        ModelEntry::new("first", "scripted", "s"),
        priced("dollars", "USD"),
        priced("euros", "EUR"),
    ];
    let models = AuxiliaryModels {
        catalog: Arc::new(ModelCatalog::new(entries, Arc::new(SystemClock))),
        breakers: Arc::new(Breakers::new(BreakerPolicy::default())),
        retry: ModelRetryPolicy {
            max_attempts: 1,
            ..ModelRetryPolicy::default()
        },
    };
    ModelFactory::new(models, Arc::new(SystemClock), Arc::new(SeededIds::new(1)))
}

fn agent(config: Value, model: Option<&str>) -> Arc<EffectiveAgent> {
    let mut agent = EffectiveAgent {
        agent_id: "a".to_owned(),
        adapter_kind: KIND.to_owned(),
        model_profile: Default::default(),
        tool_policy: Default::default(),
        memory_policy: Default::default(),
        subagent_policy: Default::default(),
        timeouts: Default::default(),
        budgets: Default::default(),
        adapter_config: config.as_object().cloned().unwrap_or_default(),
        output_kind: None,
        turn_mode: None,
        tools: Vec::new(),
        asset: None,
    };
    agent.model_profile.model = model.map(str::to_owned);
    Arc::new(agent)
}

fn invocation(agent: &Arc<EffectiveAgent>, mode: TurnMode, prompt: &str) -> AgentInvocation {
    AgentInvocation {
        invocation_id: InvocationId("i".to_owned()),
        session_id: SessionId("s".to_owned()),
        run_id: "r".to_owned(),
        flow_name: "F".to_owned(),
        node_id: "n".to_owned(),
        visit: 1,
        agent: agent.clone(),
        turn_mode: mode,
        system_prompt: "SYS".to_owned(),
        user_prompt: prompt.to_owned(),
        segments: Arc::from([]),
        input: Map::new(),
        messages: Arc::from([]),
        expected_output: None,
        model: agent.model_profile.model.clone(),
        temperature: Some(0.0),
        max_tokens: Some(10),
        answer: None,
    }
}

async fn run(
    agent: &Arc<EffectiveAgent>,
    invocation: AgentInvocation,
    runtime: TurnRuntime,
    cancel: CancellationToken,
) -> (AgentTurnResult, String) {
    let context = AdapterContext {
        flow_name: "F".to_owned(),
        flow_config: Map::new(),
        agent: agent.clone(),
        actor: ActorContext::user("u"),
    };
    let adapter = factory().create(context).await.unwrap();
    let deltas = Deltas::default();
    let result = adapter.run_turn(invocation, runtime, &deltas, cancel).await;
    let text = deltas
        .0
        .lock()
        .iter()
        .map(|delta| delta.text.as_str())
        .collect();
    (result, text)
}

async fn ask(config: Value, model: Option<&str>, mode: TurnMode, prompt: &str) -> AgentTurnResult {
    let agent = agent(config, model);
    let turn = invocation(&agent, mode, prompt);
    run(
        &agent,
        turn,
        TurnRuntime::default(),
        CancellationToken::new(),
    )
    .await
    .0
}

#[tokio::test]
async fn answer_is_streamed_with_usage_and_without_cost() {
    let agent = agent(json!({}), None);
    let prompt = "[[think hmm]] [[usage 11,7]] then say Hello there";
    let turn = invocation(&agent, TurnMode::Normal, prompt);
    let (result, streamed) = run(
        &agent,
        turn,
        TurnRuntime::default(),
        CancellationToken::new(),
    )
    .await;
    assert_eq!(result.status, TurnStatus::Completed);
    assert_eq!(
        (result.final_text.as_str(), streamed.as_str()),
        ("Hello there", "Hello there")
    );
    assert_eq!(result.reasoning_text.as_deref(), Some("hmm"));
    let usage = Usage {
        input_tokens: 11,
        output_tokens: 7,
        total_tokens: 18,
        cost_usd: None,
    };
    assert_eq!(result.usage, usage);
}

#[tokio::test]
async fn cost_is_counted_for_prices_in_dollars_only() {
    let prompt = "[[usage 1000000,1000000]] then say x";
    for (name, cost) in [("dollars", Some(3.0)), ("euros", None)] {
        let result = ask(json!({"modelName": name}), None, TurnMode::Normal, prompt).await;
        assert_eq!(result.usage.cost_usd, cost, "{name}");
    }
}

#[tokio::test]
async fn node_then_model_name_then_profile_select_the_entry() {
    let table = [
        (json!({}), Some("dollars"), None, Some("dollars")),
        (
            json!({"modelName": "dollars"}),
            Some("other"),
            None,
            Some("dollars"),
        ),
        (
            json!({"modelName": "dollars"}),
            Some("other"),
            Some("euros"),
            Some("euros"),
        ),
        (json!({"modelName": " "}), None, None, None),
    ];
    for (config, of_agent, of_node, expected) in table {
        let agent = agent(config, of_agent);
        let mut turn = invocation(&agent, TurnMode::Normal, "x");
        if of_node.is_some() {
            turn.model = of_node.map(str::to_owned);
        }
        let adapter = ModelAdapter {
            port: factory().port().await.unwrap(),
            entry: entry_name(&Map::new(), &agent),
        };
        assert_eq!(adapter.entry_of(&turn), expected);
    }
}

/// Source that permits one entry.
#[derive(Debug)]
struct OnlyDollars;

#[async_trait]
impl ActorModelSource for OnlyDollars {
    async fn models(&self) -> Result<ActorModels, FlowError> {
        let entries = [priced("dollars", "USD")];
        let models = (factory().models)();
        let catalog = Arc::new(ModelCatalog::new(entries, Arc::new(SystemClock)));
        Ok(ActorModels {
            models: AuxiliaryModels { catalog, ..models },
            forbidden: vec!["first".to_owned(), "euros".to_owned()],
        })
    }
}

#[tokio::test]
async fn forbidden_entry_is_replaced_by_default_of_actor() {
    for (entry, expected) in [
        (None, Ok("dollars")),
        (Some("euros"), Ok("dollars")),
        (Some("dollars"), Ok("dollars")),
        (Some("absent"), Err(())),
    ] {
        let agent = agent(json!({}), entry);
        let factory = factory().with_actor_models(Arc::new(OnlyDollars));
        let adapter = ModelAdapter {
            port: factory.port().await.unwrap(),
            entry: entry_name(&Map::new(), &agent),
        };
        let turn = invocation(&agent, TurnMode::Normal, "x");
        let models = &adapter.port.of_actor.models;
        let found = models.catalog.get_or_default(adapter.entry_of(&turn));
        let found = found.map(|model| model.info().name.clone()).map_err(drop);
        assert_eq!(found, expected.map(str::to_owned), "{entry:?}");
    }
}

#[tokio::test]
async fn plan_and_evaluation_return_structured_output() {
    let prompt = "then say ```json\n{\"score\": 0.9, \"reason\": \"fine\"}\n```";
    let expected = json!({"score": 0.9, "reason": "fine"});
    for (mode, structured, text) in [
        (TurnMode::Evaluate, Some(&expected), "fine"),
        (TurnMode::Plan, Some(&expected), "```json"),
        (TurnMode::Normal, None, "```json"),
    ] {
        let result = ask(json!({}), None, mode, prompt).await;
        assert_eq!(result.structured_output.as_ref(), structured, "{mode:?}");
        assert!(result.final_text.starts_with(text), "{}", result.final_text);
    }
}

#[tokio::test]
async fn failed_call_is_a_failed_turn() {
    let table = [
        ("[[error 500]]", true),
        ("[[error 400]]", false),
        ("[[cut 2]] then say one two three four", true),
    ];
    for (prompt, retryable) in table {
        let result = ask(json!({}), None, TurnMode::Normal, prompt).await;
        let error = result.error.unwrap();
        assert_eq!(result.status, TurnStatus::Failed, "{prompt}");
        assert_eq!(
            (error.code.as_str(), error.retryable),
            ("turn_failed", retryable),
            "{prompt}"
        );
        assert_eq!(error.category, ErrorCategory::Model);
    }
}

#[tokio::test]
async fn unknown_entry_is_a_finding_and_a_failed_turn() {
    let config = json!({"modelName": "zzz"});
    let found = factory().validate_config(&Map::new(), &agent(config.clone(), None));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].code, "unknown_model");
    assert!(
        factory()
            .validate_config(&Map::new(), &agent(json!({}), None))
            .is_empty()
    );
    let result = ask(config, None, TurnMode::Normal, "x").await;
    assert!(!result.error.unwrap().retryable);
}

#[tokio::test(start_paused = true)]
async fn cancel_and_deadline_end_a_hanging_call() {
    let agent = agent(json!({}), None);
    let turn = || invocation(&agent, TurnMode::Normal, "[[hang]] then say x");
    let limited = TurnRuntime {
        deadline: Some(Instant::now() + Duration::from_secs(5)),
        ..TurnRuntime::default()
    };
    let (result, _) = run(&agent, turn(), limited, CancellationToken::new()).await;
    assert_eq!(result.status, TurnStatus::TimedOut);
    assert_eq!(result.error.unwrap().code, "turn_timeout");
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let (result, _) = run(&agent, turn(), TurnRuntime::default(), cancelled).await;
    assert_eq!(result.error.unwrap().message, "the turn was cancelled");
}

#[test]
fn request_contains_system_history_and_prompt_once() {
    let agent = agent(json!({}), None);
    let mut turn = invocation(&agent, TurnMode::Normal, "q");
    let message = |role, content: &str| TurnMessage {
        role,
        content: content.to_owned(),
    };
    turn.messages = Arc::from([
        message(TurnRole::Assistant, "before"),
        message(TurnRole::User, " q "),
    ]);
    let request = super::request(&turn, "m1".to_owned());
    let texts: Vec<_> = request
        .messages
        .iter()
        .map(|one| one.content.text())
        .collect();
    assert_eq!(texts, ["before", " q "]);
    assert_eq!(request.system.as_deref(), Some("SYS"));
    assert_eq!(
        Value::Object(request.overrides),
        json!({"temperature": 0.0, "max_tokens": 10})
    );
}

#[tokio::test]
async fn model_adapter_keeps_the_contract() {
    let subject = crate::testkit::AdapterSubject {
        factory: Arc::new(factory()),
        agent: agent(json!({}), None),
        succeeding_prompt: "say one two".to_owned(),
        succeeding_node: "n".to_owned(),
        failing_prompt: "[[error 400]]".to_owned(),
        failing_node: "n".to_owned(),
        runtime: TurnRuntime::default(),
    };
    crate::testkit::adapter_keeps_the_contract(&subject).await;
}
