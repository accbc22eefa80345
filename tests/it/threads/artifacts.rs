//! The artifact panel's operations on a file that a run presented, and uploads of the user.

use serde_json::json;

use crate::rig::{HttpResponse, Rig, text};
use reqwest::Method;

const REPORT: &str = "/mnt/user-data/outputs/report.md";

#[tokio::test]
async fn report_is_read_saved_and_deleted_with_its_thread() {
    let rig = Rig::start().await;
    let write = json!({"description": "write", "path": REPORT, "content": "# R\n"});
    let run = rig
        .run_prompt(&format!(
            "Write a report [[tool:write_file {write}]] then say Done."
        ))
        .await;
    let file = format!("/api/threads/{}/artifacts{REPORT}", run.thread);

    let artifact = rig.get(&file).await;
    assert_eq!(
        (artifact.status.as_u16(), artifact.text.as_str()),
        (200, "# R\n")
    );
    assert!(
        artifact.headers["content-disposition"]
            .to_str()
            .expect("text")
            .starts_with("inline")
    );
    let part = HttpResponse::of(rig.request(Method::GET, &file).header("range", "bytes=0-0")).await;
    assert_eq!((part.status.as_u16(), part.text.as_str()), (206, "#"));

    let seen = artifact.headers["etag"]
        .to_str()
        .expect("text")
        .trim_matches('"')
        .to_owned();
    let edit = |content: &str| json!({"content": content, "expected_sha256": seen});
    let saved = rig.put(&file, &edit("# Mine\n")).await.ok();
    assert_eq!(
        (&saved["path"], &saved["size"]),
        (&json!(REPORT), &json!(7))
    );
    assert_eq!(
        rig.put(&file, &edit("# Lost\n")).await.refusal(412),
        "Artifact changed since it was opened"
    );
    let read = json!({"description": "read", "path": REPORT});
    rig.run(
        &run.thread,
        &crate::rig::body(&format!("Read it [[tool:read_file {read}]] then say Read.")),
    )
    .await;
    let actual = rig.visible_messages(&run.thread).await;
    assert!(
        actual
            .iter()
            .any(|(role, words)| role == "tool" && words.contains("# Mine")),
        "the agent reads what was saved: {actual:?}"
    );

    assert_eq!(
        rig.delete(&format!("/api/threads/{}", run.thread))
            .await
            .status,
        200
    );
    assert_eq!(
        rig.get(&file).await.refusal(404),
        format!("Thread {} not found", run.thread)
    );
}

#[tokio::test]
async fn upload_before_first_message_is_visible_to_agent() {
    let rig = Rig::start().await;
    let thread = "0c7e1f7a-6a0b-4a4e-8d61-1f2e3d4c5b6a";
    let form = "--X\r\ncontent-disposition: form-data; name=\"files\"; filename=\"a b.txt\"\r\n\r\nmy notes\r\n--X--\r\n";
    let request = rig.request(Method::POST, &format!("/api/threads/{thread}/uploads"));
    let uploaded = HttpResponse::of(
        request
            .header("content-type", "multipart/form-data; boundary=X")
            .body(form),
    )
    .await
    .ok();
    let file = &uploaded["files"][0];
    assert_eq!(
        (&file["size"], &file["virtual_path"]),
        (&json!(8), &json!("/mnt/user-data/uploads/a b.txt"))
    );
    rig.post("/api/threads", &json!({"thread_id": thread}))
        .await
        .ok();
    assert_eq!(rig.get(text(&file["artifact_url"])).await.text, "my notes");
    let read = json!({"description": "read", "path": "/mnt/user-data/uploads/a b.txt"});
    rig.run(
        thread,
        &crate::rig::body(&format!("Read it [[tool:read_file {read}]] then say Read.")),
    )
    .await;
    let actual = rig.visible_messages(thread).await;
    assert!(
        actual
            .iter()
            .any(|(role, words)| role == "tool" && words.contains("my notes")),
        "{actual:?}"
    );
    assert_eq!(
        rig.delete(&format!("/api/threads/{thread}/uploads/a%20b.txt"))
            .await
            .ok()["success"],
        true
    );
    assert_eq!(
        rig.get(&format!("/api/threads/{thread}/uploads/list"))
            .await
            .ok(),
        json!({"count": 0, "files": []})
    );
}
