//! Skills of the real binary: the bundled ones, an installed one, and their effect on a run.

use harness::testkit::skill_archives::{compressed, skill_text};
use serde_json::{Value, json};

use crate::rig::{Rig, body, list, message_text};

/// Returns the names of the enabled skills.
async fn names(rig: &Rig) -> Vec<String> {
    let skills = rig.get("/api/skills").await.ok();
    let on = list(&skills["skills"])
        .iter()
        .filter(|skill| skill["enabled"] == true);
    on.map(|skill| skill["name"].as_str().expect("a name").to_owned())
        .collect()
}

/// Returns the tool results of one run as the model reads them.
async fn results(rig: &Rig, text: &str) -> Vec<String> {
    let values = rig.run_prompt(text).await.last_values();
    list(&values["messages"])
        .iter()
        .filter(|message| message["type"] == "tool")
        .map(message_text)
        .collect()
}

fn call(tool: &str, arguments: Value) -> String {
    format!("[[tool:{tool} {arguments}]]")
}

#[tokio::test]
async fn bundled_skills_are_listed_read_and_run() {
    let rig = Rig::with_commands("{use: local, allow_host_bash: true}").await;
    assert_eq!(
        names(&rig).await,
        [
            "bootstrap",
            "data-analysis",
            "deep-research",
            "skill-creator"
        ]
    );
    let file = "/mnt/skills/public/deep-research/SKILL.md";
    let read = call("read_file", json!({ "description": "d", "path": file }));
    let script = call(
        "bash",
        json!({ "description": "d", "command": format!("head -2 {file}; ls -d {file}") }),
    );
    let write = call(
        "write_file",
        json!({ "description": "d", "path": file, "content": "mine" }),
    );
    let results = results(&rig, &format!("{read}{script}{write} then say done")).await;
    assert!(
        results[0].contains("# Research with verified sources"),
        "{results:?}"
    );
    assert_eq!(
        results[1].trim(),
        format!("---\nname: deep-research\n{file}")
    );
    assert!(
        results[2].contains("outside the allowed directories"),
        "{results:?}"
    );
}

#[tokio::test]
async fn installed_skill_restricts_tools_until_disabled() {
    let mut rig = Rig::start().await;
    let thread = rig.thread().await;
    let outputs = rig.gateway.home().join(format!(
        ".deer-flow/users/default/threads/{thread}/user-data/outputs"
    ));
    std::fs::create_dir_all(&outputs).expect("a folder");
    let strict = skill_text("strict").replace("description", "allowed-tools: [ls]\ndescription");
    std::fs::write(
        outputs.join("a.skill"),
        compressed(&[("SKILL.md", strict.as_bytes())]),
    )
    .expect("an archive");
    let install = json!({ "thread_id": thread, "path": "/mnt/user-data/outputs/a.skill" });
    assert_eq!(
        rig.post("/api/skills/install", &install).await.ok()["skill_name"],
        "strict"
    );

    let write = call(
        "write_file",
        json!({ "description": "d", "path": "/mnt/user-data/workspace/a", "content": "x" }),
    );
    // A tool that a skill does not allow is not offered, and the scripted model calls only offered
    // tools.
    let called = results(&rig, &format!("/strict {write} then say done")).await;
    let offered = rig
        .model
        .requests()
        .into_iter()
        .rev()
        .find(|request| !request.tools.is_empty())
        .expect("a request")
        .tools;
    assert!(
        called.is_empty()
            && offered.contains(&"ls".to_owned())
            && !offered.contains(&"write_file".to_owned()),
        "{called:?} {offered:?}"
    );
    rig.gateway.restart().await.expect("a restart");
    rig.put("/api/skills/strict", &json!({ "enabled": false }))
        .await
        .ok();
    assert!(!names(&rig).await.contains(&"strict".to_owned()));
    let run = rig.run(&thread, &body("/strict now")).await;
    let last = list(&run.last_values()["messages"])
        .last()
        .map(message_text)
        .expect("an answer");
    assert!(
        last.starts_with("There is no skill `strict` that I can use"),
        "{last}"
    );
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn sandbox_commands_see_enabled_skills_read_only() {
    let rig = Rig::with_commands("{use: local}").await;
    rig.put("/api/skills/bootstrap", &json!({ "enabled": false }))
        .await
        .ok();
    let command = "cd /mnt/skills/public; ls; head -2 deep-research/SKILL.md; echo x >> deep-research/SKILL.md || touch deep-research/new \
                   || touch new || touch ../new || echo kept; printf 'a,b\\n1,2\\n' > /tmp/t.csv; \
                   python3 data-analysis/scripts/profile.py /tmp/t.csv | head -1";
    let outputs = results(
        &rig,
        &format!(
            "{} then say done",
            call("bash", json!({ "description": "d", "command": command }))
        ),
    )
    .await;
    let (out, _) = outputs[0].split_once("Std Error").expect("refusals");
    let expected = "data-analysis\ndeep-research\nskill-creator\n---\nname: deep-research\nkept\nt.csv: 1 rows, 2 columns, 0 rows that repeat another\n";
    assert_eq!(out, expected, "{outputs:?}");
}
