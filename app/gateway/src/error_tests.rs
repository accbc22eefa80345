//! Statuses of failures of stores, and values that refusals repeat.

use super::*;

#[test]
fn store_failures_say_whether_a_later_try_may_help() {
    let status = |error: StoreError| ApiError::from(error).status(Dialect::DeerFlow).as_u16();
    assert_eq!(status(StoreError::Unavailable("x".to_owned())), 503);
    assert_eq!(status(StoreError::NotWritable("x".to_owned())), 507);
    assert_eq!(status(StoreError::Failed("x".to_owned())), 500);
    assert_eq!(
        ApiError::from(RunError::ShuttingDown)
            .status(Dialect::Platform)
            .as_u16(),
        503
    );
}

#[test]
fn a_refused_value_is_echoed_only_so_far() {
    let issue = Issue::new(
        "string_type",
        vec!["body".into()],
        "no",
        &Value::from("x".repeat(1_000_000)),
    );
    assert!(issue.list_item().to_string().len() < 1_000 && issue.sentence().len() < 1_000);
}
