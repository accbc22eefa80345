//! Skills of one user: list, installation, edit, rejected archives.

use harness::testkit::skill_archives::{compressed, hostile, skill_text};
use serde_json::{Value, json};

use super::{install, install_own, names, put_file, with_public_skill};

#[tokio::test]
async fn skills_are_listed_read_and_toggled() {
    let gateway = with_public_skill();
    let mut web = json!({
        "name": "web", "description": "Does web", "license": null, "category": "public", "enabled": true, "editable": false,
    });
    assert_eq!(
        gateway.get("/api/skills").await.json(),
        json!({ "skills": [web] })
    );
    assert_eq!(gateway.get("/api/skills/web").await.json(), web);
    web["enabled"] = false.into();
    assert_eq!(
        gateway
            .send("PUT", "/api/skills/web", Some(json!({ "enabled": false })))
            .await
            .json(),
        web
    );
    assert_eq!(
        gateway.get("/api/skills").await.json(),
        json!({ "skills": [web] }),
        "what is off is still listed"
    );
    assert_eq!(
        gateway.post("/api/skills/reload", json!({})).await.json()["scope"],
        "process"
    );
    for path in [
        "/api/skills/none",
        "/api/skills/..%2Fweb",
        "/api/skills/%00",
    ] {
        assert_eq!(gateway.get(path).await.code(), 404, "{path}");
        assert_eq!(
            gateway
                .send("PUT", path, Some(json!({ "enabled": true })))
                .await
                .code(),
            404,
            "{path}"
        );
    }
    assert_eq!(
        gateway.get("/api/skills/none").await.json()["detail"],
        "Skill 'none' not found"
    );
}

#[tokio::test]
async fn malformed_bodies_are_rejected() {
    let gateway = with_public_skill();
    for (method, path, body) in [
        ("PUT", "/api/skills/web", json!({})),
        ("PUT", "/api/skills/web", json!({ "enabled": "yes" })),
        ("PUT", "/api/skills/web", json!([])),
        ("POST", "/api/skills/install", json!({})),
        (
            "POST",
            "/api/skills/install",
            json!({ "thread_id": 5, "path": "x" }),
        ),
        (
            "POST",
            "/api/skills/install",
            json!({ "thread_id": "../t", "path": "x" }),
        ),
        (
            "POST",
            "/api/skills/install",
            json!({ "thread_id": "t1", "path": ["x"] }),
        ),
        ("PUT", "/api/skills/custom/own", json!({ "content": 1 })),
        (
            "POST",
            "/api/skills/custom/own/rollback",
            json!({ "history_index": 1.5 }),
        ),
    ] {
        let response = gateway.send(method, path, Some(body.clone())).await;
        assert_eq!(
            response.code(),
            422,
            "{method} {path} {body}: {}",
            response.text()
        );
    }
}

#[tokio::test]
async fn archive_of_a_thread_is_installed_once() {
    let gateway = with_public_skill();
    install_own(&gateway).await;
    let own = gateway.get("/api/skills/own").await.json();
    assert_eq!(
        (&own["category"], &own["editable"], &own["enabled"]),
        (&json!("custom"), &json!(true), &json!(true))
    );
    let again = install(
        &gateway,
        compressed(&[("SKILL.md", skill_text("own").as_bytes())]),
    )
    .await;
    assert_eq!(
        (again.code(), again.json()["detail"].clone()),
        (409, json!("Skill 'own' already exists"))
    );
    put_file(
        &gateway,
        "default",
        "/mnt/user-data/outputs/a.zip",
        b"PK".to_vec(),
    )
    .await;
    for (path, expected) in [
        ("/mnt/user-data/outputs/none.skill", 404),
        ("/mnt/user-data/outputs/a.zip", 400),
        ("/mnt/user-data/outputs", 400),
        ("/mnt/user-data/outputs/../../x.skill", 400),
        ("/etc/passwd.skill", 400),
        ("/mnt/skills/public/web.skill", 400),
        ("a.skill", 400),
        ("", 400),
    ] {
        let response = gateway
            .post(
                "/api/skills/install",
                json!({ "thread_id": "t1", "path": path }),
            )
            .await;
        assert_eq!(response.code(), expected, "{path}: {}", response.text());
    }
}

#[tokio::test]
async fn hostile_archives_are_rejected_without_side_effects() {
    let gateway = with_public_skill();
    for (what, bytes) in hostile() {
        let response = install(&gateway, bytes).await;
        let detail = response.json()["detail"]
            .as_str()
            .expect("a text")
            .to_owned();
        assert_eq!(
            (
                response.code(),
                detail.starts_with("Invalid skill archive: ")
            ),
            (400, true),
            "{what}: {detail}"
        );
        assert!(
            !detail.contains("/tmp") || what.contains("path"),
            "{what}: {detail}"
        );
    }
    assert_eq!(names(&gateway).await, ["web"]);
}

#[tokio::test]
async fn custom_skill_is_edited_deleted_and_restored() {
    let gateway = with_public_skill();
    install_own(&gateway).await;
    let own = "/api/skills/custom/own";
    assert_eq!(
        gateway.get("/api/skills/custom").await.json()["skills"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    assert_eq!(gateway.get(own).await.json()["content"], skill_text("own"));
    let new = skill_text("own") + "More.\n";
    assert_eq!(
        gateway
            .send("PUT", own, Some(json!({ "content": new })))
            .await
            .json()["content"],
        new
    );
    for bad in [
        "",
        "no head",
        &skill_text("other"),
        "---\nname: own\ndescription: a: b\n---\n",
    ] {
        assert_eq!(
            gateway
                .send("PUT", own, Some(json!({ "content": bad })))
                .await
                .code(),
            400,
            "{bad}"
        );
    }
    assert_eq!(
        gateway.send("DELETE", own, None).await.json(),
        json!({ "success": true })
    );
    for (method, path, body) in [
        ("GET", own, None),
        ("DELETE", own, None),
        ("PUT", own, Some(json!({ "content": new }))),
        ("GET", "/api/skills/custom/web", None),
        ("GET", "/api/skills/custom/never/history", None),
        ("POST", "/api/skills/custom/never/rollback", Some(json!({}))),
    ] {
        assert_eq!(
            gateway.send(method, path, body).await.code(),
            404,
            "{method} {path}"
        );
    }
    let rollback = format!("{own}/rollback");
    assert_eq!(
        gateway.post(&rollback, json!({})).await.json()["content"],
        new
    );
    assert_eq!(
        gateway
            .post(&rollback, json!({ "history_index": 99 }))
            .await
            .code(),
        400
    );
    let history = gateway.get(&format!("{own}/history")).await.json();
    let actions: Vec<&Value> = history["history"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| &entry["action"])
        .collect();
    assert_eq!(
        actions,
        ["install", "human_edit", "human_delete", "rollback"]
    );
}
