//! `/api/skills`: list, enable, install and edit, with permissions and rejections.

mod shared;
mod users;

use harness::ids::ThreadId;
use harness::sandbox::VirtualPath;
use harness::sandbox::pending_file::Durability;
use harness::testkit::skill_archives::{compressed, skill_text};
use serde_json::{Value, json};

use crate::support::{Gateway, HttpResponse};

/// Returns a gateway with the public skill `web`.
fn with_public_skill() -> Gateway {
    let gateway = Gateway::new();
    let folder = gateway.files.home.home().join("shared/public/web");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("SKILL.md"), skill_text("web")).expect("a skill");
    gateway
}

async fn put_file(gateway: &Gateway, user: &str, path: &str, bytes: Vec<u8>) {
    let files = gateway
        .files
        .home
        .thread(user, &ThreadId::parse("t1").expect("an id"));
    let path = VirtualPath::parse(path).expect("a path");
    files
        .write_bytes(&path, bytes.into(), Durability::Cached)
        .await
        .expect("a file");
}

async fn install(gateway: &Gateway, bytes: Vec<u8>) -> HttpResponse {
    put_file(gateway, "default", "/mnt/user-data/outputs/a.skill", bytes).await;
    gateway
        .post(
            "/api/skills/install",
            json!({ "thread_id": "t1", "path": "/mnt/user-data/outputs/a.skill" }),
        )
        .await
}

async fn install_own(gateway: &Gateway) {
    let response = install(
        gateway,
        compressed(&[
            ("own/SKILL.md", skill_text("own").as_bytes()),
            ("own/a.py", b"print()"),
        ]),
    )
    .await;
    let expected = json!({ "success": true, "skill_name": "own", "message": "Skill 'own' installed successfully" });
    assert_eq!((response.code(), response.json()), (200, expected));
}

async fn names(gateway: &Gateway) -> Vec<Value> {
    gateway.get("/api/skills").await.json()["skills"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|skill| skill["name"].clone())
        .collect()
}
