//! Export and import.

use harness::skills::archive::{TextFile, pack};
use harness::testkit::skill_archives::hostile;
use serde_json::json;

use super::{codes, created, send};
use crate::support::{FLOW, Gateway, HttpResponse};

const ZIP: (&str, &str) = ("content-type", "application/zip");
const AGENT: &str = "---\nname: A\ndescription: d\nagentId: helper\noutput.kind: text\nadapterKind: fake\n---\nHelp.\n";

pub(super) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let file = |(path, text): &(&str, &str)| TextFile {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    };
    pack(&files.iter().map(file).collect::<Vec<_>>()).expect("an archive")
}

pub(super) async fn import(gateway: &Gateway, query: &str, bytes: Vec<u8>) -> HttpResponse {
    let path = format!("/api/flows/import{query}");
    gateway.raw("POST", &path, bytes, &[ZIP]).await
}

fn with_reference() -> String {
    FLOW.replace("agentId: a}]\n  edges", "agentRef: helper}]\n  edges")
}

#[tokio::test]
async fn project_is_imported_with_the_assets_that_its_flows_use() {
    let gateway = Gateway::new();
    let flow = with_reference();
    let bytes = archive(&[
        ("project/Flows/My_Flow.yaml", &flow),
        ("project/plain.yml", FLOW),
        ("project/compose.yaml", "services: {}\n"),
        ("project/.agents-flow/agents/h.agent.md", AGENT),
        (
            "project/.agents-flow/agents/unused.agent.md",
            &AGENT.replace("helper", "other"),
        ),
        ("project/README.md", "read me"),
    ]);
    let imported = import(&gateway, "", bytes).await;
    assert_eq!(imported.code(), 201, "{}", imported.text());
    let ids: Vec<_> = imported
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["flowId"].clone())
        .collect();
    assert_eq!(ids, ["my-flow", "plain"]);
    let stored = gateway.get("/api/flows/my-flow").await.json();
    assert_eq!(stored["content"], flow);
    assert_eq!(
        stored["assets"],
        json!([{"path": ".agents-flow/agents/h.agent.md", "text": AGENT}])
    );
    assert_eq!(
        gateway.get("/api/flows/plain").await.json()["assets"],
        json!([])
    );
    let assets = gateway.get("/api/flows/assets?flowId=my-flow").await.json();
    assert_eq!(assets["agents"][0]["agentId"], "helper");
}

#[tokio::test]
async fn text_change_keeps_the_assets() {
    let gateway = Gateway::new();
    let flow = with_reference();
    let files = [
        ("f.yaml", flow.as_str()),
        (".agents-flow/agents/h.agent.md", AGENT),
    ];
    assert_eq!(import(&gateway, "", archive(&files)).await.code(), 201);
    let changed = send(
        &gateway,
        "PUT",
        "/api/flows/f",
        &flow.replace("Say", "Shout"),
    )
    .await;
    assert_eq!(changed.code(), 200, "{}", changed.text());
    let stored = gateway.get("/api/flows/f").await.json();
    assert_eq!(stored["assets"][0]["text"], AGENT);
}

#[tokio::test]
async fn exported_flow_imports_again_with_the_same_content() {
    let gateway = Gateway::new();
    let flow = with_reference();
    let files = [
        ("f.yaml", flow.as_str()),
        (".agents-flow/agents/h.agent.md", AGENT),
    ];
    let first = import(&gateway, "", archive(&files)).await.json()[0].clone();
    let exported = gateway.get("/api/flows/f/export").await;
    assert_eq!(exported.header("content-type"), "application/zip");
    assert_eq!(
        exported.header("content-disposition"),
        "attachment; filename=\"f.zip\""
    );
    gateway.send("DELETE", "/api/flows/f", None).await;
    let again = import(&gateway, "", exported.body.to_vec()).await;
    assert_eq!(again.code(), 201, "{}", again.text());
    assert_eq!(again.json()[0]["contentHash"], first["contentHash"]);
}

#[tokio::test]
async fn import_of_known_ids_needs_replace() {
    let gateway = Gateway::new();
    created(&gateway).await;
    let changed = FLOW.replace("Say Hello", "Other");
    let files = [("say-hello.yaml", changed.as_str()), ("new.yaml", FLOW)];
    let refused = import(&gateway, "", archive(&files)).await;
    assert_eq!(refused.code(), 409, "{}", refused.text());
    assert_eq!(gateway.get("/api/flows/new").await.code(), 404);
    let replaced = import(&gateway, "?replace=true", archive(&files)).await;
    assert_eq!(replaced.code(), 201);
    let stored = gateway.get("/api/flows/say-hello").await.json();
    assert_eq!(
        (&stored["version"], &stored["content"]),
        (&json!(2), &json!(changed))
    );
    let system = import(&gateway, "", archive(&[("shipped.yaml", FLOW)])).await;
    assert_eq!(system.code(), 409);
}

#[tokio::test]
async fn import_with_one_invalid_flow_stores_nothing() {
    let gateway = Gateway::new();
    let files = [
        ("good.yaml", FLOW),
        ("bad.yaml", "meta: {name: x}\n"),
        ("x/good.yml", FLOW),
    ];
    let refused = import(&gateway, "", archive(&files)).await;
    assert_eq!(refused.code(), 422);
    assert!(codes(&refused).len() > 2, "{}", refused.text());
    let detail = refused.json()["detail"].clone();
    assert_eq!(detail[0]["file"], "bad.yaml");
    assert_eq!(gateway.get("/api/flows/good").await.code(), 404);
    let empty = import(&gateway, "", archive(&[("a.md", "x")])).await;
    assert_eq!(empty.code(), 422);
}

#[tokio::test]
async fn hostile_archives_are_refused() {
    let gateway = Gateway::new();
    for (what, bytes) in hostile() {
        let refused = import(&gateway, "", bytes).await;
        assert_eq!(refused.code(), 422, "{what}: {}", refused.text());
    }
    let large = import(&gateway, "", vec![0; (20 << 20) + 1]).await;
    assert_eq!(large.code(), 413);
    assert_eq!(import(&gateway, "", Vec::new()).await.code(), 422);
}

#[tokio::test]
async fn export_has_no_secrets_and_names_their_places() {
    let gateway = Gateway::new();
    let flow = FLOW.replace(
        "adapterKind: fake}",
        "adapterKind: fake, adapterConfig: {apiKey: sk-canary-0123456789}}",
    );
    let stored = send(&gateway, "POST", "/api/flows?id=f", &flow).await;
    assert_eq!(stored.code(), 201, "{}", stored.text());
    assert!(!stored.text().contains("sk-canary"));
    assert_eq!(stored.json()["warnings"][0]["code"], "secret_in_flow");
    let exported = gateway.get("/api/flows/f/export").await;
    assert_eq!(
        exported.header("x-flow-secrets-removed"),
        "/agents/agentDefs/0/adapterConfig/apiKey"
    );
    let again = import(&gateway, "?replace=true", exported.body.to_vec()).await;
    assert_eq!(again.code(), 201, "{}", again.text());
    let text = gateway.get("/api/flows/f").await;
    assert!(!text.text().contains("sk-canary"), "{}", text.text());
}
