//! The flows that the repository ships, as system flows of the real binary with a scripted model.

use deerflow_tests::gateway::{GatewayOptions, deerflow_binary};
use serde_json::{Value, json};

use crate::rig::{Rig, config};

/// Key of the starter flow's backend.
const BACKEND_KEY: &str = "sk-backend-0123456789abcdef";

/// Starts a gateway whose system flows are the files of `folder`.
pub(crate) async fn with_flows(folder: &str, sections: &str) -> Rig {
    let flows = format!("{}/../{folder}", env!("CARGO_MANIFEST_DIR"));
    Rig::launched(|base_url| {
        let sections = format!("flows: {{path: {flows}}}\n{sections}");
        let binary = deerflow_binary().expect("the binary");
        let mut options = GatewayOptions::new(binary, config(base_url, &sections));
        options.env = [
            ("AGENTSFLOW_LLM_BASE_URL", base_url),
            ("AGENTSFLOW_LLM_API_KEY", BACKEND_KEY),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        options
    })
    .await
}

/// Runs a flow on a thread, with a prompt or an answer, and returns the values of its end.
async fn wait(rig: &Rig, thread: &str, flow: &str, input: Value) -> Value {
    let mut body = json!({"assistant_id": format!("flow-{flow}")});
    body.as_object_mut()
        .expect("an object")
        .extend(input.as_object().expect("an object").clone());
    rig.post(&format!("/threads/{thread}/runs/wait"), &body)
        .await
        .ok()
}

fn prompt(text: &str) -> Value {
    json!({"input": {"userPrompt": text}})
}

fn answer(text: &str) -> Value {
    json!({"command": {"resume": text}})
}

fn result(values: &Value) -> &str {
    values["result"]
        .as_str()
        .unwrap_or_else(|| panic!("no result: {values}"))
}

#[tokio::test]
async fn shipped_flows_are_listed_without_errors() {
    let rig = with_flows("flows", "").await;
    let flows = rig.get("/api/flows").await.ok();
    let flows = flows.as_array().expect("a list");
    assert_eq!(flows.len(), 5, "{flows:?}");
    for flow in flows {
        assert_eq!(flow["errors"], json!([]), "{flow}");
    }
}

#[tokio::test]
async fn plan_execute_judge_ends_by_score_or_after_its_rounds() {
    let rig = with_flows("flows", "").await;
    for (score, rounds) in [(0.9, 1), (0.2, 3)] {
        let thread = rig.thread().await;
        let say = format!(r#"then say {{"score": {score}, "canComplete": true, "reason": "r"}}"#);
        let end = wait(&rig, &thread, "plan-execute-judge", prompt(&say)).await;
        assert_eq!(end["visits"]["plan"], 1, "{end}");
        assert_eq!(end["visits"]["execute"], rounds, "{end}");
        assert_eq!(end["visits"]["judge"], rounds, "{end}");
        assert!(result(&end).contains("score"), "{end}");
    }
}

#[tokio::test]
async fn parallel_research_repeats_the_report_until_approval() {
    let rig = with_flows("flows", "").await;
    let thread = rig.thread().await;
    let asked = wait(
        &rig,
        &thread,
        "parallel-research",
        prompt("then say because"),
    )
    .await;
    let question = &asked["__interrupt__"][0]["value"];
    assert_eq!(question["options"], json!(["publish", "revise"]), "{asked}");
    let asked = wait(&rig, &thread, "parallel-research", answer("revise")).await;
    assert!(asked["__interrupt__"][0]["value"].is_object(), "{asked}");
    let end = wait(&rig, &thread, "parallel-research", answer("publish")).await;
    let visits = &end["visits"];
    for (node, times) in [
        ("pro", 1),
        ("contra", 1),
        ("join", 1),
        ("write", 2),
        ("approve", 2),
    ] {
        assert_eq!(visits[node], times, "{node}: {end}");
    }
    assert!(result(&end).starts_with("because"), "{end}");
    // The report is written from the arguments of both sides.
    let texts: Vec<String> = rig.model.requests().into_iter().map(|r| r.user).collect();
    let of_both =
        |text: &&String| text.contains("arguments_for") && text.contains("arguments_against");
    assert_eq!(texts.iter().filter(of_both).count(), 2, "{texts:?}");
}

#[tokio::test]
async fn triage_routes_by_class_and_by_failure() {
    let rig = with_flows("flows", "").await;
    for (text, taken, left_out) in [
        ("then say bug", "analyse", "answer"),
        ("then say question", "answer", "analyse"),
        ("[[error 400 times=1]] then say sorry", "answer", "analyse"),
    ] {
        let thread = rig.thread().await;
        let end = wait(&rig, &thread, "triage", prompt(text)).await;
        assert_eq!(end["visits"][taken], 1, "{text}: {end}");
        assert_eq!(end["visits"][left_out], Value::Null, "{text}: {end}");
        let has_failed = text.contains("error");
        assert_eq!(
            end["visits"]["route"].is_null(),
            has_failed,
            "{text}: {end}"
        );
        assert!(!result(&end).is_empty(), "{text}: {end}");
    }
}

#[tokio::test]
async fn decision_paper_asks_for_its_subflow_and_condenses_it() {
    let rig = with_flows("flows", "").await;
    let thread = rig.thread().await;
    let asked = wait(&rig, &thread, "decision-paper", prompt("then say agreed")).await;
    let question = &asked["__interrupt__"][0]["value"];
    assert_eq!(question["options"], json!(["publish", "revise"]), "{asked}");
    let end = wait(&rig, &thread, "decision-paper", answer("publish")).await;
    assert_eq!(
        end["visits"],
        json!({"research": 1, "condense": 1, "finish": 1}),
        "{end}"
    );
    assert!(result(&end).starts_with("agreed"), "{end}");
}

#[tokio::test]
async fn starter_flow_runs_with_an_environment_alone() {
    let rig = with_flows("flows", "").await;
    let thread = rig.thread().await;
    let say = r#"then say {"score": 1, "canComplete": true, "reason": "good"}"#;
    let end = wait(&rig, &thread, "starter", prompt(say)).await;
    let once = json!({"main-prompt": 1, "sub-execute": 1, "main-evaluate": 1, "finish": 1});
    assert_eq!(end["visits"], once, "{end}");
    let turns: Vec<_> = rig.model.requests();
    // The model records the beginning of each key.
    let of_backend = turns.iter().filter(|turn| turn.auth == "Bearer sk-ba");
    let models: Vec<_> = of_backend.map(|turn| turn.model.clone()).collect();
    assert_eq!(
        models,
        vec![Some("deepseek-v4-flash".to_owned()); 3],
        "{turns:?}"
    );
    assert!(!end.to_string().contains(BACKEND_KEY));
}
