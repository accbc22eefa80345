//! Tests of breakpoints, and of runs that resume from a stored state.

use super::*;

#[tokio::test]
async fn breakpoint_stops_before_its_node_and_resumes() {
    let (agent, model) = agent([calls([("a", "obey", text("x"))]), Reply::Say("done")]);
    let stop = |ctx: &mut crate::runtime::agent::RunContext| {
        ctx.interrupt_before = NodeSelector::Named(vec!["tools".to_owned()])
    };
    let output = run(&agent, fresh(state_of([Message::human("go")])), stop).await;
    assert_eq!(output.outcome.as_ref().unwrap().kind, StopKind::Breakpoint);
    assert_eq!(output.last_step().next[0].name, "tools");
    let id = output.last_step().next[0].id.clone();
    let more = run(&agent, resume_input(&output, AgentStart::Continue), stop).await;
    assert!(completed(&more));
    assert_eq!(more.transcript(), ["human:go", "ai:", "tool:x", "ai:done"]);
    assert_eq!(
        more.steps()[0].next[0].id,
        id,
        "the task id is stable while the task is pending"
    );
    assert_eq!(model.requests().len(), 2);
    let after = run(&agent, fresh(state_of([Message::human("go")])), |ctx| {
        ctx.interrupt_after = NodeSelector::All
    })
    .await;
    assert!(completed(&after), "no task is pending after the last node");
}

#[tokio::test]
async fn resume_without_pending_task_changes_nothing() {
    let (agent, model) = agent([Reply::Say("done")]);
    let output = ask(&agent, "hi").await;
    let more = run(&agent, resume_input(&output, AgentStart::Continue), |_| {}).await;
    assert!(completed(&more) && more.events.is_empty());
    let mut input = fresh(ThreadState::default());
    input.start = AgentStart::Continue;
    assert!(matches!(
        run(&agent, input, |_| {}).await.outcome,
        Err(AgentError::EmptyInput)
    ));
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn externally_written_state_determines_the_next_node() {
    let go_on_with = async |messages: Vec<Message>, replies: Vec<Reply>| {
        let (agent, _) = agent(replies);
        let input = AgentInput {
            start: AgentStart::Continue,
            ..fresh(state_of(messages))
        };
        let output = run(&agent, input, |_| {}).await;
        assert!(completed(&output));
        if output.events.is_empty() {
            vec![]
        } else {
            output.transcript()
        }
    };
    let called = ask(
        &agent([calls([("a", "obey", text("x"))]), Reply::Say("-")]).0,
        "go",
    )
    .await
    .state()
    .messages()[..2]
        .to_vec();
    let result = Message::tool(&called[1].tool_calls()[0], "given", ToolStatus::Success);
    let done = || vec![Reply::Say("done")];
    assert_eq!(
        go_on_with(called.clone(), done()).await,
        ["human:go", "ai:", "tool:x", "ai:done"]
    );
    let answered = [called.clone(), vec![result.clone()]].concat();
    assert_eq!(
        go_on_with(answered.clone(), done()).await,
        ["human:go", "ai:", "tool:given", "ai:done"]
    );
    let requests = [called.clone(), vec![Message::human("and?")]].concat();
    assert_eq!(
        go_on_with(requests, done()).await,
        ["human:go", "ai:", "human:and?", "ai:done"]
    );
    let card = result.with(|body| {
        if let MessageKind::Tool { artifact, .. } = &mut body.kind {
            *artifact = json!({ "human_input": {} });
        }
    });
    let waiting = [called, vec![card]].concat();
    assert!(
        go_on_with(waiting, done()).await.is_empty(),
        "the user is to speak"
    );
}

#[tokio::test]
async fn saved_machine_of_another_agent_is_rejected() {
    let (agent, _) = agent([Reply::Say("done")]);
    let output = ask(&agent, "hi").await;
    for machine in [
        json!(null),
        json!({"at": "x"}),
        json!({"version": 1, "at": "Gone.before_model", "seed": uuid::Uuid::nil(), "serial": 0}),
    ] {
        let mut input = resume_input(&output, AgentStart::Continue);
        input.machine = Some(machine);
        assert!(matches!(
            run(&agent, input, |_| {}).await.outcome,
            Err(AgentError::Resume(_))
        ));
    }
}

#[tokio::test]
async fn thread_can_resume_after_a_drop_in_a_tool() {
    use futures_util::StreamExt;
    let (agent, _) = agent([calls([("a", "obey", text("never"))])]);
    let (ctx, events) = context(1);
    let mut stream = agent.stream(fresh(state_of([Message::human("go")])), ctx, events);
    let mut saved = None;
    loop {
        match stream.next().await.unwrap().unwrap() {
            AgentEvent::Step(step) if step.checkpoint => saved = Some(step),
            AgentEvent::ToolStart { .. } => break,
            _ => {}
        }
    }
    drop(stream);
    let saved = saved.unwrap();
    assert_eq!(saved.next[0].name, "tools");
    let mut input = fresh(ThreadState::clone(&saved.state));
    input.start = AgentStart::Continue;
    input.machine = Some(saved.machine);
    let model = ReplayModel::new([Reply::Say("done")]);
    let other: Arc<dyn Agent> = AgentBuilder::new(model).build();
    let output = run(&other, input, |_| {}).await;
    assert!(completed(&output));
    assert!(output.transcript()[2].contains("is not a tool"));
}
