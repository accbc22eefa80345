//! Changes of `config.yaml` while the gateway runs.

use crate::rig::{Rig, config, list, until};

fn with_second_model(rig: &Rig) -> String {
    let entry = format!(
        "  - {{name: second, use: openai, model: m, api_key: k, base_url: '{}'}}\ntool_groups:",
        rig.model.base_url
    );
    config(&rig.model.base_url, "").replacen("tool_groups:", &entry, 1)
}

/// Replaces the file atomically, as editors do.
fn edit(rig: &Rig, text: &str) {
    let home = rig.gateway.home();
    std::fs::write(home.join("config.new"), text).expect("written");
    std::fs::rename(home.join("config.new"), home.join("config.yaml")).expect("renamed");
}

async fn model_count(rig: &Rig) -> usize {
    list(&rig.get("/api/models").await.ok()["models"]).len()
}

#[tokio::test]
async fn new_model_is_available_without_restart() {
    let rig = Rig::start().await;
    assert_eq!(model_count(&rig).await, 1);
    edit(&rig, &with_second_model(&rig));
    until("the second model", async || {
        (model_count(&rig).await == 2).then_some(())
    })
    .await;
    let thread = rig.thread().await;
    let body = crate::rig::body_with(
        "then say x",
        serde_json::json!({"context": {"model_name": "second"}}),
    );
    let run = rig.run(&thread, &body).await;
    assert_eq!(rig.get_run(&thread, &run.run).await["status"], "success");
    assert_eq!(
        rig.model
            .requests()
            .last()
            .and_then(|request| request.model.clone())
            .as_deref(),
        Some("m")
    );
}

#[tokio::test]
async fn invalid_edit_is_logged_and_last_valid_config_stays() {
    let rig = Rig::start().await;
    for broken in [
        "models: [",
        "models: 5\n",
        "models:\n  - {name: x, use: openai, model: m, stream_chunk_timeout: -1}\n",
    ] {
        let lines = rig.gateway.logs().lines().count();
        edit(&rig, broken);
        until(&format!("a log message about {broken:?}"), async || {
            let logs = rig.gateway.logs();
            logs.lines()
                .skip(lines)
                .any(|line| line.contains("config"))
                .then_some(())
        })
        .await;
        assert_eq!(model_count(&rig).await, 1, "{broken:?}");
        let run = rig.run_prompt("then say x").await;
        assert_eq!(
            rig.get_run(&run.thread, &run.run).await["status"],
            "success",
            "{broken:?}"
        );
    }
    edit(&rig, &with_second_model(&rig));
    until("the corrected configuration", async || {
        (model_count(&rig).await == 2).then_some(())
    })
    .await;
}
