//! Tests of token fetching, renewal, rotation and redaction.

use futures_util::future::join_all;
use serde_json::json;

use super::super::http::client;
use super::super::http_kit::{Response, Server, valid_response};
use super::super::test_kit::TestToolbox;
use super::*;

async fn endpoint(lifetime: u64) -> Server {
    Server::start(move |request| {
        let number = request.body.len();
        let token = json!({"access_token": format!("canary-{number}"), "token_type": "bearer", "expires_in": lifetime.to_string(), "refresh_token": format!("next{number}")});
        Response::Status(200, "content-type: application/json\r\n", token.to_string())
    })
    .await
}

fn tokens(server: &Server, grant: Value) -> Tokens {
    let mut spec = json!({"token_url": format!("{}/token", server.base), "scope": "a b", "extra_token_params": {"p": "x&y"}});
    spec.as_object_mut()
        .unwrap()
        .extend(grant.as_object().unwrap().clone());
    Tokens::new(
        serde_json::from_value(spec).unwrap(),
        client().unwrap(),
        Tasks::new(),
    )
}

fn credentials() -> Value {
    json!({"client_id": "id", "client_secret": "canary"})
}

#[tokio::test]
async fn concurrent_callers_share_one_token_request() {
    let server = endpoint(3600).await;
    let tokens = tokens(&server, credentials());
    let headers = join_all((0..10).map(|_| tokens.header())).await;
    assert!(headers.iter().all(|header| {
        header
            .as_ref()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("Bearer canary-")
    }));
    assert_eq!(server.requests.lock().len(), 1);
    let body = server.requests.lock()[0].body.clone();
    assert_eq!(
        body,
        "grant_type=client_credentials&client_id=id&client_secret=canary&scope=a+b&p=x%26y"
    );
    assert!(!format!("{tokens:?}").contains("canary"));
}

#[tokio::test]
async fn token_is_renewed_early_with_rotated_refresh_token() {
    let server = endpoint(60).await;
    let tokens = tokens(
        &server,
        json!({"grant_type": "refresh_token", "refresh_token": "first"}),
    );
    tokens.header().await.unwrap();
    tokens.header().await.unwrap();
    let bodies: Vec<String> = server
        .requests
        .lock()
        .iter()
        .map(|request| request.body.clone())
        .collect();
    assert_eq!(bodies.len(), 2, "sixty seconds are within the skew");
    assert!(
        bodies[0].contains("refresh_token=first&") && bodies[1].contains("refresh_token=next"),
        "{bodies:?}"
    );
}

#[tokio::test]
async fn invalid_token_response_error_hides_secrets() {
    let respond = |status: u16, body: &'static str| {
        Server::start(move |_| Response::Status(status, "", body.to_owned()))
    };
    for (status, body, expected) in [
        (500, "canary", TokenError::Refused(500)),
        (
            200,
            "canary",
            TokenError::MalformedResponse("JSON object".to_owned()),
        ),
        (
            200,
            r#"{"token": "canary"}"#,
            TokenError::MalformedResponse("access_token".to_owned()),
        ),
        (
            200,
            r#"{"access_token": "can\nary"}"#,
            TokenError::MalformedResponse("access_token".to_owned()),
        ),
    ] {
        assert_eq!(
            tokens(&respond(status, body).await, credentials())
                .header()
                .await,
            Err(expected)
        );
    }
    let server = endpoint(1).await;
    assert_eq!(
        tokens(&server, json!({"client_id": "id"})).header().await,
        Err(TokenError::Missing("client_secret"))
    );
    assert_eq!(
        tokens(&server, json!({"grant_type": "refresh_token"}))
            .header()
            .await,
        Err(TokenError::Missing("refresh_token"))
    );
}

#[tokio::test]
async fn failed_fetch_is_shared_and_cached() {
    let server = Server::start(|_| Response::Status(500, "", String::new())).await;
    let tokens = tokens(&server, credentials());
    let headers = join_all((0..10).map(|_| tokens.header())).await;
    tokio::time::pause();
    assert!(
        headers
            .iter()
            .all(|header| *header == Err(TokenError::Refused(500)))
    );
    assert_eq!(tokens.header().await, Err(TokenError::Refused(500)));
    assert_eq!(server.requests.lock().len(), 1);
    tokio::time::advance(FAILURE_TTL).await;
    tokio::time::resume();
    tokens.header().await.unwrap_err();
    assert_eq!(server.requests.lock().len(), 2);
}

#[tokio::test]
async fn callers_wait_for_at_most_one_fetch() {
    let server = Server::start(|_| Response::Hang).await;
    let tokens = tokens(&server, credentials());
    let all = join_all((0..5).map(|_| tokens.header()));
    tokio::pin!(all);
    let request = async {
        while server.requests.lock().is_empty() {
            tokio::task::yield_now().await
        }
    };
    tokio::select! {
        _early = &mut all => panic!("the endpoint does not answer"),
        () = request => {}
    }
    tokio::time::pause();
    let began = Instant::now();
    assert!(
        all.await
            .iter()
            .all(|header| *header == Err(TokenError::TimedOut))
    );
    // Sequential fetches would take five timeouts.
    assert!(
        began.elapsed() < 2 * REQUEST_TIMEOUT,
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn unreadable_lifetime_defaults_to_one_hour() {
    let spec = OAuthSpec::default();
    for (lifetime, seconds) in [
        (json!("soon"), 3600),
        (Value::Null, 3600),
        (json!(-5), 1),
        (json!("90"), 90),
        (json!(1e300), MAX_LIFETIME_SECS),
    ] {
        let answer = json!({"access_token": "t", "expires_in": lifetime});
        assert_eq!(
            spec.read(answer.as_object().unwrap()).unwrap().lifetime,
            Duration::from_secs(seconds),
            "{lifetime}"
        );
    }
}

#[tokio::test]
async fn requests_carry_token_until_its_endpoint_fails() {
    let issuer = endpoint(3600).await;
    let server = Server::start(valid_response).await;
    let entry = |issuer: &str| json!({"type": "http", "url": server.base, "oauth": {"token_url": issuer, "client_id": "id", "client_secret": "s"}, "session_init_timeout": 60});
    let fixture = TestToolbox::with(json!({"h": entry(&issuer.base)}));
    fixture.call("h_echo", json!({})).await.unwrap();
    assert!(
        server
            .requests
            .lock()
            .iter()
            .all(|request| request.head.contains("authorization: bearer canary-"))
    );
    assert_eq!(issuer.requests.lock().len(), 1);
    let fixture = TestToolbox::with(json!({"h": entry("http://127.0.0.1:9/")}));
    assert_eq!(
        fixture.names().await,
        ["h_echo"],
        "the server may list its tools without a token"
    );
    let error = fixture.call("h_echo", json!({})).await.unwrap_err();
    assert!(
        error.contains("the token endpoint cannot be reached"),
        "{error}"
    );
}

#[tokio::test]
async fn rejected_token_is_discarded_after_call() {
    let issuer = endpoint(3600).await;
    let server = Server::start(|request| match request.method().as_str() {
        "tools/call" => Response::Status(401, "www-authenticate: Bearer\r\n", String::new()),
        _ => valid_response(request),
    })
    .await;
    let oauth = json!({"token_url": issuer.base, "client_id": "id", "client_secret": "s"});
    let fixture =
        TestToolbox::with(json!({"h": {"type": "http", "url": server.base, "oauth": oauth}}));
    for request in [1, 2] {
        let error = fixture.call("h_echo", json!({})).await.unwrap_err();
        assert!(error.contains("status 401"), "{error}");
        assert_eq!(issuer.requests.lock().len(), request);
    }
}

#[tokio::test]
async fn rejected_token_is_discarded_after_discovery() {
    let issuer = endpoint(3600).await;
    let server =
        Server::start(|_| Response::Status(401, "www-authenticate: Bearer\r\n", String::new()))
            .await;
    let oauth = json!({"token_url": issuer.base, "client_id": "id", "client_secret": "s"});
    let fixture =
        TestToolbox::with(json!({"h": {"type": "http", "url": server.base, "oauth": oauth}}));
    for request in [1, 2] {
        assert_eq!(fixture.names().await, Vec::<String>::new());
        assert_eq!(issuer.requests.lock().len(), request);
        fixture.toolbox.refresh().await;
    }
}
