//! Statuses of store failures, and values echoed in validation errors.

use harness::runtime::runs::RunError;
use harness::runtime::runs::store::StoreError;

use super::*;

#[test]
fn store_failures_have_distinct_statuses() {
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
fn echo_of_an_invalid_value_is_truncated() {
    let issue = Issue::new(
        "string_type",
        vec!["body".into()],
        "no",
        &Value::from("x".repeat(1_000_000)),
    );
    assert!(issue.list_item().to_string().len() < 1_000 && issue.plain_text().len() < 1_000);
}
