//! Rendering of memories for agents.

use serde_json::json;

use super::*;

fn document(value: serde_json::Value) -> MemoryDocument {
    serde_json::from_value(value).unwrap()
}

fn tokens(text: &str) -> u64 {
    TokenFamily::Other.tokens(TextSize::of(text))
}

#[test]
fn empty_memory_and_quarantined_facts_are_not_rendered() {
    assert_eq!(render(&MemoryDocument::default(), 1_000), None);
    assert_eq!(
        render(
            &document(json!({"facts": [{"id": "f", "content": "x", "status": "quarantined"}]})),
            1_000
        ),
        None
    );
}

#[test]
fn sections_are_titled_escaped_and_ordered() {
    let document = document(json!({
        "user": {"workContext": {"summary": "writes <b>"}}, "history": {"recentMonths": {"summary": "moved"}},
        "facts": [{"id": "1", "content": "low", "confidence": 0.7}, {"id": "2", "content": "high", "confidence": 0.9},
                  {"id": "3", "content": "Ann not Anna", "category": "correction", "confidence": 0.8, "sourceError": "Anna"}],
    }));
    let text = render(&document, 1_000).unwrap();
    assert_eq!(
        text,
        "User context:\n- Work: writes &lt;b&gt;\n\nHistory:\n- Recent: moved\n\nFacts:\n- [correction | 0.80] Ann not Anna (avoid: Anna)\n\
         - [context | 0.90] high\n- [context | 0.70] low"
    );
}

#[test]
fn budget_holds_for_long_notes_many_facts_and_wide_text() {
    for letter in ["x", "字"] {
        let facts: Vec<_> = (0..500)
            .map(|n| json!({"id": n.to_string(), "content": letter.repeat(50), "confidence": 0.9}))
            .collect();
        let document = document(
            json!({"user": {"workContext": {"summary": letter.repeat(20_000)}}, "facts": facts}),
        );
        for budget in [50, 200, 2_000] {
            let text = render(&document, budget).unwrap();
            assert!(
                tokens(&text) <= budget + 4,
                "{letter} {budget}: {}",
                tokens(&text)
            );
            assert!(budget < 200 || (text.contains('…') && text.contains("Facts:")));
        }
    }
}
