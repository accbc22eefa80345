//! Lookup of flows by runs.

use std::sync::Arc;

use deerflow_domain::flows::{Expected, FlowContent, FlowQuota, FlowSummary, FlowWrite};
use deerflow_gateway::flows::{FlowCatalog, FlowOwner};
use harness::runtime::agent::AssistantPin;

use super::send;
use crate::support::{FLOW, Gateway};

const USER: &str = "default";

fn catalog(gateway: &Gateway) -> &FlowCatalog {
    &gateway.state.agent_services.flows
}

async fn pin(gateway: &Gateway, slug: &str) -> AssistantPin {
    let flow = catalog(gateway).find(USER, slug).await.expect("read");
    flow.expect("a flow").pin()
}

async fn pinned_text(gateway: &Gateway, slug: &str, pin: &AssistantPin) -> Option<String> {
    let flow = catalog(gateway).pinned(USER, slug, pin).await;
    flow.expect("read").map(|flow| flow.content.text.clone())
}

#[tokio::test]
async fn pinned_version_outlives_change_and_deletion() {
    let gateway = Gateway::new();
    send(&gateway, "POST", "/api/flows?id=f", FLOW).await;
    let pin = pin(&gateway, "f").await;
    let changed = FLOW.replace("Say Hello", "Other");
    send(&gateway, "PUT", "/api/flows/f", &changed).await;
    let text = pinned_text(&gateway, "f", &pin).await;
    assert_eq!(text.as_deref(), Some(FLOW));
    gateway.send("DELETE", "/api/flows/f", None).await;
    let text = pinned_text(&gateway, "f", &pin).await;
    assert_eq!(text.as_deref(), Some(FLOW));
    let other = catalog(&gateway).pinned("bob", "f", &pin).await;
    assert_eq!(other.expect("read"), None);
}

#[tokio::test]
async fn system_flow_is_pinned_after_it_is_retained() {
    let gateway = Gateway::new();
    let catalog = catalog(&gateway);
    let flow = catalog
        .find(USER, "shipped")
        .await
        .expect("read")
        .expect("a flow");
    assert_eq!(flow.owner, FlowOwner::System);
    assert_eq!(pinned_text(&gateway, "gone", &flow.pin()).await, None);
    catalog.retain(&flow).await.expect("stored");
    let text = pinned_text(&gateway, "gone", &flow.pin()).await;
    assert_eq!(text.as_deref(), Some(FLOW));
}

#[tokio::test]
async fn own_flow_precedes_a_later_system_flow() {
    let gateway = Gateway::new();
    let write = FlowWrite {
        slug: "shipped".to_owned(),
        expected: Expected::Absent,
        content: FlowContent::new(FLOW.replace("Say Hello", "Mine"), Vec::new()),
        summary: FlowSummary::default(),
    };
    let quota = FlowQuota {
        flows: 9,
        versions: 9,
    };
    let now = gateway.state.process.clock.now();
    let catalog = catalog(&gateway);
    catalog
        .store()
        .save(USER, vec![write], quota, now)
        .await
        .expect("stored");
    let owner = async |user: &str| {
        let flow = catalog.find(user, "shipped").await.expect("read");
        flow.map(|flow| flow.owner)
    };
    assert_eq!(owner(USER).await, Some(FlowOwner::User));
    assert_eq!(owner("bob").await, Some(FlowOwner::System));
    assert_eq!(catalog.list(USER).await.expect("read").len(), 1);
}

#[tokio::test]
async fn flow_is_compiled_once_per_content() {
    let gateway = Gateway::new();
    let catalog = catalog(&gateway);
    let compiled = async |slug: &str| {
        let flow = catalog
            .find(USER, slug)
            .await
            .expect("read")
            .expect("a flow");
        let compiled = catalog.compiled(&flow).await.expect("valid");
        assert_eq!(compiled.content_hash, flow.content_hash);
        compiled
    };
    let first = compiled("shipped").await;
    assert!(Arc::ptr_eq(&first, &compiled("shipped").await));
    send(&gateway, "POST", "/api/flows?id=copy", FLOW).await;
    assert!(Arc::ptr_eq(&first, &compiled("copy").await));
    let changed = FLOW.replace("Say Hello", "Other");
    send(&gateway, "PUT", "/api/flows/copy", &changed).await;
    assert!(!Arc::ptr_eq(&first, &compiled("copy").await));
}

#[tokio::test]
async fn runs_of_one_content_share_its_compiled_form() {
    let gateway = Gateway::new();
    send(&gateway, "POST", "/api/flows?id=f", FLOW).await;
    let catalog = catalog(&gateway);
    for slug in ["f", "shipped"] {
        let pin = catalog.pin(USER, slug).await.expect("valid");
        let pin = pin.expect("a flow");
        let first = catalog.compiled_pin(USER, slug, &pin).await;
        let again = catalog.pin(USER, slug).await.expect("valid");
        assert_eq!(again.as_ref(), Some(&pin));
        let second = catalog.compiled_pin(USER, slug, &pin).await;
        let compiled = [first, second].map(|flow| flow.expect("valid").expect("stored"));
        assert!(Arc::ptr_eq(&compiled[0], &compiled[1]));
    }
    assert_eq!(catalog.pin(USER, "other").await.expect("read"), None);
}

#[tokio::test]
async fn changed_flow_has_another_pin() {
    let gateway = Gateway::new();
    send(&gateway, "POST", "/api/flows?id=f", FLOW).await;
    let catalog = catalog(&gateway);
    let first = catalog.pin(USER, "f").await.expect("valid");
    let changed = FLOW.replace("Say Hello", "Other");
    send(&gateway, "PUT", "/api/flows/f", &changed).await;
    let second = catalog.pin(USER, "f").await.expect("valid");
    assert!(first.is_some() && second.is_some() && first != second);
}
