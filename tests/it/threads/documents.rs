//! Documents that are converted to Markdown at upload.

use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::{HttpResponse, Rig, body, message_text, text};

/// Builds a PDF of one page with one line.
fn pdf(line: &str) -> String {
    let content = format!("BT /F1 24 Tf 72 700 Td ({line}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let table = file.len();
    file.push_str("xref\n0 6\n0000000000 65535 f \n");
    places
        .iter()
        .for_each(|place| file.push_str(&format!("{place:010} 00000 n \n")));
    file.push_str(&format!(
        "trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n"
    ));
    file
}

async fn upload(rig: &Rig, thread: &str, files: &[(&str, &str)]) -> Value {
    let parts = files
        .iter()
        .map(|(name, content)| format!("--X\r\ncontent-disposition: form-data; name=\"files\"; filename=\"{name}\"\r\n\r\n{content}\r\n"));
    let form = format!("{}--X--\r\n", parts.collect::<String>());
    let request = rig.request(Method::POST, &format!("/api/threads/{thread}/uploads"));
    HttpResponse::of(
        request
            .header("content-type", "multipart/form-data; boundary=X")
            .body(form),
    )
    .await
    .ok()
}

#[tokio::test]
async fn document_is_converted_to_markdown_for_the_agent() {
    let rig = Rig::with("uploads: {auto_convert_documents: true}").await;
    let thread = rig.thread().await;
    let uploaded = upload(
        &rig,
        &thread,
        &[("plan.pdf", &pdf("Deer live in woods")), ("note.txt", "x")],
    )
    .await;
    let file = &uploaded["files"][0];
    let markdown = "/mnt/user-data/uploads/plan.md";
    assert_eq!(
        (&file["markdown_file"], &file["markdown_virtual_path"]),
        (&json!("plan.md"), &json!(markdown)),
        "{}",
        rig.gateway.logs()
    );
    assert!(
        rig.get(text(&file["markdown_artifact_url"]))
            .await
            .text
            .contains("Deer live in woods")
    );
    assert_eq!(uploaded["files"][1]["markdown_file"], Value::Null);
    let mut actual_text = body("Look at it, then say done");
    actual_text["input"]["messages"][0]["additional_kwargs"]["files"] =
        json!([{"filename": "plan.pdf", "size": 1}]);
    rig.run(&thread, &actual_text).await;
    let actual = message_text(&rig.values(&thread).await["messages"][0]);
    assert!(
        actual.contains("Markdown: /mnt/user-data/uploads/plan.md")
            && actual.contains("Deer live in woods"),
        "{actual}"
    );
    // The text is replaced with its document and deleted with it.
    let again = upload(&rig, &thread, &[("plan.pdf", &pdf("Elk do so too"))]).await;
    assert!(
        rig.get(text(&again["files"][0]["markdown_artifact_url"]))
            .await
            .text
            .contains("Elk do so too")
    );
    rig.delete(&format!("/api/threads/{thread}/uploads/plan.pdf"))
        .await
        .ok();
    assert_eq!(
        rig.get(&format!("/api/threads/{thread}/uploads/list"))
            .await
            .ok()["count"],
        1
    );
}

#[tokio::test]
async fn unreadable_document_is_uploaded_without_conversion() {
    let rig = Rig::with("uploads: {auto_convert_documents: true}").await;
    let thread = rig.thread().await;
    let hostile = [
        ("a.pdf", "no pdf"),
        ("b.docx", "PK\u{3}\u{4}"),
        ("c.xls", ""),
        ("d.pptx", "<xml>"),
        ("mine.pdf", "%PDF"),
        ("mine.md", "my own"),
    ];
    let uploaded = upload(&rig, &thread, &hostile).await;
    assert_eq!(
        uploaded["files"].as_array().map(Vec::len),
        Some(hostile.len()),
        "{uploaded}"
    );
    for (at, (_, content)) in hostile.iter().enumerate() {
        let file = &uploaded["files"][at];
        assert_eq!(
            (&file["size"], &file["markdown_file"]),
            (&json!(content.len()), &Value::Null),
            "{file}"
        );
    }
    // A converted text never replaces a file of the user.
    upload(&rig, &thread, &[("mine.pdf", &pdf("other"))]).await;
    let later = upload(&rig, &thread, &[("late.md", "my own")]).await;
    let uploaded = upload(&rig, &thread, &[("late.pdf", &pdf("other"))]).await;
    assert_eq!(uploaded["files"][0]["markdown_file"], "late.pdf.md");
    assert_eq!(
        rig.get(text(&later["files"][0]["artifact_url"])).await.text,
        "my own"
    );
}

#[tokio::test]
async fn documents_are_not_converted_by_default() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let uploaded = upload(&rig, &thread, &[("plan.pdf", &pdf("Deer"))]).await;
    assert_eq!(uploaded["files"][0]["markdown_file"], Value::Null);
}
