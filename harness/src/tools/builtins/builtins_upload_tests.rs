//! Tests of the list of earlier uploads.

use super::*;

#[tokio::test]
async fn earlier_uploads_are_listed_with_headings() {
    let mut fixture = fixture();
    assert!(
        fixture
            .text("list_uploaded_files", json!({}))
            .await
            .starts_with("No files")
    );
    let markdown = format!(
        "{}\n\n# Aim\n\ntext\n",
        crate::documents::mark_of("plan.pdf")
    );
    for (name, content) in [
        ("plan.pdf", "%PDF"),
        ("plan.md", &*markdown),
        ("notes.md", "one\ntwo\n"),
        ("new.txt", "now"),
    ] {
        fixture
            .text(
                "write_file",
                json!({ "path": format!("/mnt/user-data/uploads/{name}"), "content": content }),
            )
            .await;
    }
    let channels = [(
        "uploaded_files".to_owned(),
        json!([{ "filename": "new.txt" }]),
    )]
    .into_iter()
    .collect();
    fixture.ctx.state = std::sync::Arc::new(crate::state::ThreadState::restored([], channels));
    let listed = fixture
        .text(
            "list_uploaded_files",
            json!({ "include_outline": ["plan.pdf"] }),
        )
        .await;
    assert!(listed.starts_with("Found 2 files\n- "), "{listed}");
    assert!(
        !listed.contains("new.txt") && !listed.contains("- plan.md") && !listed.contains("> one"),
        "{listed}"
    );
    let plan = "- plan.pdf (0.0 KB)\n  Path: /mnt/user-data/uploads/plan.pdf\n  Markdown: /mnt/user-data/uploads/plan.md\n  L3: Aim";
    assert!(listed.contains(plan), "{listed}");
    let all = fixture
        .text(
            "list_uploaded_files",
            json!({ "include_outline": true, "max_results": 1 }),
        )
        .await;
    assert!(
        all.starts_with("Found 2 files (showing the newest 1)"),
        "{all}"
    );
    let refused = format!(
        "{:?}",
        fixture
            .call("list_uploaded_files", json!({ "include_outline": 5 }))
            .await
            .unwrap_err()
    );
    assert!(
        refused.contains("expected true, false or a list of file names")
            && !refused.contains("untagged"),
        "{refused}"
    );

    // Two independent uploads with the same stem: the text file was not converted from the
    // document.
    for (name, content) in [("slides.pptx", "PK"), ("slides.md", "# My own\n")] {
        fixture
            .text(
                "write_file",
                json!({ "path": format!("/mnt/user-data/uploads/{name}"), "content": content }),
            )
            .await;
    }
    let own = fixture
        .text("list_uploaded_files", json!({ "include_outline": true }))
        .await;
    assert!(
        own.contains("- slides.md (0.0 KB)")
            && own.contains("L1: My own")
            && !own.contains("Markdown: /mnt/user-data/uploads/slides.md"),
        "{own}"
    );
}
