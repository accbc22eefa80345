//! `/api/console`: totals over a user's runs, compared with what the provider reported.

use serde_json::{Value, json};

use crate::rig::{FinishedRun, MODEL, Rig, body_with, config, list, text};

/// Models in addition to the agent's own: one for its subagent, and one without a price.
const OTHER_MODELS: &str =
    "  - {name: helper, use: openai, model: scripted-2, api_key: k, base_url: 'ADDRESS',
      pricing: {currency: USD, input_per_million: 1, output_per_million: 4}}
  - {name: free, use: openai, model: scripted-3, api_key: k, base_url: 'ADDRESS'}
tool_groups:";
const PRICE: &str = "    pricing: {currency: USD, input_per_million: 2, output_per_million: 8, input_cache_hit_per_million: 0.5}\n    base_url:";
const LISTER_SUBAGENT: &str = "subagents:
  custom_agents:
    lister: {description: lists folders, system_prompt: You list folders., tools: [ls], model: helper}
";

async fn priced() -> Rig {
    let config = |base_url: &str| {
        let usual = config(base_url, LISTER_SUBAGENT).replacen("    base_url:", PRICE, 1);
        usual.replacen(
            "tool_groups:",
            &OTHER_MODELS.replace("ADDRESS", base_url),
            1,
        )
    };
    Rig::configured(config, &[]).await
}

async fn run_on(rig: &Rig, model: &str, words: &str) -> FinishedRun {
    let context = json!({"context": {"model_name": model, "thinking_enabled": false, "subagent_enabled": true}});
    let thread = rig.thread().await;
    rig.run(&thread, &body_with(words, context)).await
}

/// Asserts a price in millionths. Sums of floats differ in their last digits by the order of
/// addition.
#[track_caller]
fn costs(value: &Value, millionths: f64) {
    let cost = value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"));
    assert!(
        (cost * 1e6 - millionths).abs() < 1e-6,
        "{cost} is not {millionths} millionths"
    );
}

#[tokio::test]
async fn console_reports_provider_usage_per_run_and_model() {
    let rig = priced().await;
    // Two calls of the agent with a part of the prompt from the cache, and two of its subagent.
    let prompt = r#"[[usage 11,7]] [[tool:ls {"description": "look", "path": "/mnt/user-data/workspace"}]] then say nothing there"#;
    let args =
        json!({"description": "list the folder", "prompt": prompt, "subagent_type": "lister"});
    let family = run_on(
        &rig,
        MODEL,
        &format!("[[usage 100,10,40]] [[tool:task {args}]] then say all done"),
    )
    .await;
    let helper = run_on(&rig, "helper", "[[usage 5,3]] then say x").await;
    let free = run_on(&rig, "free", "[[usage 9,1]] then say x").await;
    let failed = run_on(&rig, MODEL, "[[error 401]]").await;
    let mut requested: Vec<String> = rig
        .model
        .requests()
        .into_iter()
        .filter_map(|request| request.model)
        .collect();
    requested.sort();
    let calls = [("scripted-1", 3), ("scripted-2", 3), ("scripted-3", 1)];
    assert_eq!(
        requested,
        calls
            .iter()
            .flat_map(|(model, times)| vec![*model; *times])
            .collect::<Vec<_>>(),
        "no other model was called"
    );

    let stored = rig.get_run(&family.thread, &family.run).await;
    let split = [
        "lead_agent_tokens",
        "subagent_tokens",
        "middleware_tokens",
        "total_input_tokens",
        "total_output_tokens",
        "total_tokens",
    ];
    assert_eq!(
        split.map(|key| stored[key].clone()),
        [220, 36, 0, 222, 34, 256].map(|count| json!(count))
    );

    let usage = rig.get("/api/console/usage?days=2").await.ok();
    assert_eq!(
        (
            &usage["total_tokens"],
            &usage["total_runs"],
            &usage["currency"]
        ),
        (&json!(274), &json!(4), &json!("USD"))
    );
    costs(&usage["total_cost"], 535.0);
    let models = usage["by_model"].as_object().expect("models");
    assert_eq!(models.len(), 3, "{usage}");
    let counts = ["tokens", "runs", "input_tokens", "cache_read_tokens"];
    for (model, expected, price) in [
        (MODEL, [220, 1, 200, 80], Some(440.0)),
        ("helper", [44, 2, 27, 0], Some(95.0)),
        ("free", [10, 1, 9, 0], None),
    ] {
        assert_eq!(
            counts.map(|key| models[model][key].clone()),
            expected.map(|count| json!(count)),
            "{model}: {usage}"
        );
        match price {
            Some(price) => costs(&models[model]["cost"], price),
            None => assert_eq!(models[model]["cost"], Value::Null),
        }
    }
    let days = list(&usage["days"]);
    let sum = |key: &str| days.iter().filter_map(|day| day[key].as_u64()).sum::<u64>();
    let sums = ["total_tokens", "input_tokens", "output_tokens", "runs"].map(sum);
    assert_eq!((days.len(), sums), (2, [274, 236, 38, 4]));
    costs(
        &json!(
            days.iter()
                .filter_map(|day| day["cost"].as_f64())
                .sum::<f64>()
        ),
        535.0,
    );

    let stats = rig.get("/api/console/stats").await.ok();
    let counts = [
        "total_runs",
        "active_runs",
        "failed_runs",
        "total_threads",
        "total_tokens",
    ];
    assert_eq!(
        counts.map(|key| stats[key].clone()),
        [4, 0, 1, 4, 274].map(|count| json!(count)),
        "{stats}"
    );
    costs(&stats["total_cost"], 535.0);

    let page = rig.get("/api/console/runs").await.ok();
    let rows = list(&page["runs"]);
    let newest_first: Vec<&str> = rows.iter().map(|row| text(&row["run_id"])).collect();
    assert_eq!(
        newest_first,
        [&failed.run, &free.run, &helper.run, &family.run]
    );
    assert_eq!(
        rows.iter()
            .map(|row| row["total_tokens"].clone())
            .collect::<Vec<_>>(),
        [0, 10, 8, 256].map(|count| json!(count))
    );
    assert_eq!(
        (&rows[0]["cost"], &rows[1]["cost"], &rows[0]["status"]),
        (&Value::Null, &Value::Null, &json!("error"))
    );
    costs(&rows[2]["cost"], 17.0);
    costs(&rows[3]["cost"], 518.0);
    let failures = rig.get("/api/console/runs?status=error").await.ok();
    assert_eq!(list(&failures["runs"]).len(), 1);
}
