//! Tests of user memory and its facts.

use super::*;

#[tokio::test]
async fn memory_is_read_imported_and_cleared() {
    let client = TestClient::new().client;
    assert_eq!(
        client.get_memory().await.unwrap(),
        MemoryDocument::default()
    );
    let fact = json!({ "content": "likes tea", "confidence": 0.9 });
    let document = MemoryDocument {
        facts: vec![serde_json::from_value(fact).unwrap()],
        ..MemoryDocument::default()
    };
    let imported = client.import_memory(document.clone()).await.unwrap();
    assert_eq!(
        (imported.facts.len(), imported.facts[0].id.is_empty()),
        (1, false)
    );
    assert_eq!(client.reload_memory().await.unwrap(), imported);
    let status = client.get_memory_status().await.unwrap();
    assert_eq!(
        (
            status.data,
            status.config.enabled,
            &*status.config.manager_class
        ),
        (imported.clone(), true, "deermem")
    );
    assert_eq!(
        json!(client.get_memory_config().unwrap())["mode"],
        "middleware"
    );
    let beyond = Fact {
        content: "x".repeat(10_001),
        ..document.facts[0].clone()
    };
    let refused = client
        .import_memory(MemoryDocument {
            facts: vec![beyond],
            ..MemoryDocument::default()
        })
        .await;
    assert!(
        matches!(refused, Err(ClientError::Import(_))),
        "{refused:?}"
    );
    assert_eq!(client.get_memory().await.unwrap(), imported);
    assert!(client.clear_memory().await.unwrap().facts.is_empty());
}

#[tokio::test]
async fn facts_are_added_changed_and_deleted() {
    let client = TestClient::new().client;
    let added = client
        .create_memory_fact(" likes tea ", "preference", 0.8)
        .await
        .unwrap();
    let [fact] = &added.facts[..] else {
        panic!("{added:?}")
    };
    assert_eq!(
        (&*fact.content, &*fact.category, fact.is_manual()),
        ("likes tea", "preference", true)
    );
    let again = client
        .create_memory_fact("Likes  tea", "context", 0.5)
        .await;
    assert!(
        matches!(again, Err(ClientError::Memory(MemoryError::Duplicate))),
        "{again:?}"
    );
    let confidence_change = FactChange {
        confidence: Some(1.0),
        ..FactChange::default()
    };
    let corrected = client
        .update_memory_fact(&fact.id, &confidence_change)
        .await
        .unwrap();
    assert_eq!(
        (&*corrected.facts[0].content, corrected.facts[0].confidence),
        ("likes tea", 1.0)
    );
    for (content, category, confidence) in [
        (" ", "context", 0.5),
        ("x", "", 0.5),
        ("x", "context", f64::NAN),
    ] {
        let refused = client
            .create_memory_fact(content, category, confidence)
            .await;
        assert!(matches!(refused, Err(ClientError::Fact(_))), "{refused:?}");
    }
    let blank = FactChange {
        content: Some(String::new()),
        ..FactChange::default()
    };
    assert!(matches!(
        client.update_memory_fact(&fact.id, &blank).await,
        Err(ClientError::Fact(_))
    ));
    assert_eq!(
        client.get_memory().await.unwrap(),
        corrected,
        "rejected input changes nothing"
    );
    assert!(
        client
            .delete_memory_fact(&fact.id)
            .await
            .unwrap()
            .facts
            .is_empty()
    );
    let repeated = client.delete_memory_fact(&fact.id).await;
    assert!(
        matches!(repeated, Err(ClientError::Memory(MemoryError::NoFact(_)))),
        "{repeated:?}"
    );
}
