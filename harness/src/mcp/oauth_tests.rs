//! Tokens: fetched once, renewed in time, rotated, and never told.

use futures_util::future::join_all;
use serde_json::json;

use super::super::http::client;
use super::super::http_kit::{Answer, Server, good};
use super::super::test_kit::Bench;
use super::*;

async fn endpoint(life: u64) -> Server {
    Server::start(move |asked| {
        let number = asked.body.len();
        let token = json!({"access_token": format!("canary-{number}"), "token_type": "bearer", "expires_in": life.to_string(), "refresh_token": format!("next{number}")});
        Answer::Say(200, "content-type: application/json\r\n", token.to_string())
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
async fn many_who_need_a_token_at_once_make_one_request() {
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
    assert_eq!(server.asked.lock().len(), 1);
    let body = server.asked.lock()[0].body.clone();
    assert_eq!(
        body,
        "grant_type=client_credentials&client_id=id&client_secret=canary&scope=a+b&p=x%26y"
    );
    assert!(!format!("{tokens:?}").contains("canary"));
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends_and_a_rotated_one_is_used() {
    let server = endpoint(60).await;
    let tokens = tokens(
        &server,
        json!({"grant_type": "refresh_token", "refresh_token": "first"}),
    );
    tokens.header().await.unwrap();
    tokens.header().await.unwrap();
    let bodies: Vec<String> = server
        .asked
        .lock()
        .iter()
        .map(|asked| asked.body.clone())
        .collect();
    assert_eq!(bodies.len(), 2, "sixty seconds are within the skew");
    assert!(
        bodies[0].contains("refresh_token=first&") && bodies[1].contains("refresh_token=next"),
        "{bodies:?}"
    );
}

#[tokio::test]
async fn what_is_no_token_is_an_error_that_shows_nothing() {
    let said = |status: u16, body: &'static str| {
        Server::start(move |_| Answer::Say(status, "", body.to_owned()))
    };
    for (status, body, wanted) in [
        (500, "canary", TokenError::Refused(500)),
        (200, "canary", TokenError::Answer("JSON object".to_owned())),
        (
            200,
            r#"{"token": "canary"}"#,
            TokenError::Answer("access_token".to_owned()),
        ),
        (
            200,
            r#"{"access_token": "can\nary"}"#,
            TokenError::Answer("access_token".to_owned()),
        ),
    ] {
        assert_eq!(
            tokens(&said(status, body).await, credentials())
                .header()
                .await,
            Err(wanted)
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
async fn a_failure_is_shared_and_stands_for_a_while() {
    let server = Server::start(|_| Answer::Say(500, "", String::new())).await;
    let tokens = tokens(&server, credentials());
    let headers = join_all((0..10).map(|_| tokens.header())).await;
    tokio::time::pause();
    assert!(
        headers
            .iter()
            .all(|header| *header == Err(TokenError::Refused(500)))
    );
    assert_eq!(tokens.header().await, Err(TokenError::Refused(500)));
    assert_eq!(server.asked.lock().len(), 1);
    tokio::time::advance(AFTER_FAILURE).await;
    tokio::time::resume();
    tokens.header().await.unwrap_err();
    assert_eq!(server.asked.lock().len(), 2);
}

#[tokio::test]
async fn nobody_waits_longer_for_a_token_than_one_fetch_takes() {
    let server = Server::start(|_| Answer::Hang).await;
    let tokens = tokens(&server, credentials());
    let all = join_all((0..5).map(|_| tokens.header()));
    tokio::pin!(all);
    let asked = async {
        while server.asked.lock().is_empty() {
            tokio::task::yield_now().await
        }
    };
    tokio::select! {
        _early = &mut all => panic!("the endpoint does not answer"),
        () = asked => {}
    }
    tokio::time::pause();
    let began = Instant::now();
    assert!(
        all.await
            .iter()
            .all(|header| *header == Err(TokenError::Late))
    );
    // One after the other they would wait for five.
    assert!(began.elapsed() < 2 * PATIENCE, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_life_that_cannot_be_read_is_an_hour_and_never_less_than_a_second() {
    let spec = OAuthSpec::default();
    for (life, seconds) in [
        (json!("soon"), 3600),
        (Value::Null, 3600),
        (json!(-5), 1),
        (json!("90"), 90),
        (json!(1e300), LONGEST_LIFE),
    ] {
        let answer = json!({"access_token": "t", "expires_in": life});
        assert_eq!(
            spec.read(answer.as_object().unwrap()).unwrap().life,
            Duration::from_secs(seconds),
            "{life}"
        );
    }
}

#[tokio::test]
async fn servers_get_their_token_and_only_lose_it_when_its_endpoint_fails() {
    let issuer = endpoint(3600).await;
    let server = Server::start(good).await;
    let entry = |issuer: &str| json!({"type": "http", "url": server.base, "oauth": {"token_url": issuer, "client_id": "id", "client_secret": "s"}, "session_init_timeout": 60});
    let bench = Bench::with(json!({"h": entry(&issuer.base)}));
    bench.call("h_echo", json!({})).await.unwrap();
    assert!(
        server
            .asked
            .lock()
            .iter()
            .all(|asked| asked.head.contains("authorization: bearer canary-"))
    );
    assert_eq!(issuer.asked.lock().len(), 1);
    let bench = Bench::with(json!({"h": entry("http://127.0.0.1:9/")}));
    assert_eq!(
        bench.names().await,
        ["h_echo"],
        "the server may say what it has without a token"
    );
    let error = bench.call("h_echo", json!({})).await.unwrap_err();
    assert!(
        error.contains("the token endpoint cannot be reached"),
        "{error}"
    );
}

#[tokio::test]
async fn a_token_that_its_server_refuses_is_not_used_again() {
    let issuer = endpoint(3600).await;
    let server = Server::start(|asked| match asked.method().as_str() {
        "tools/call" => Answer::Say(401, "www-authenticate: Bearer\r\n", String::new()),
        _ => good(asked),
    })
    .await;
    let oauth = json!({"token_url": issuer.base, "client_id": "id", "client_secret": "s"});
    let bench = Bench::with(json!({"h": {"type": "http", "url": server.base, "oauth": oauth}}));
    for asked in [1, 2] {
        let error = bench.call("h_echo", json!({})).await.unwrap_err();
        assert!(error.contains("status 401"), "{error}");
        assert_eq!(issuer.asked.lock().len(), asked);
    }
}

#[tokio::test]
async fn a_token_that_is_refused_when_tools_are_looked_for_is_not_used_again() {
    let issuer = endpoint(3600).await;
    let server =
        Server::start(|_| Answer::Say(401, "www-authenticate: Bearer\r\n", String::new())).await;
    let oauth = json!({"token_url": issuer.base, "client_id": "id", "client_secret": "s"});
    let bench = Bench::with(json!({"h": {"type": "http", "url": server.base, "oauth": oauth}}));
    for asked in [1, 2] {
        assert_eq!(bench.names().await, Vec::<String>::new());
        assert_eq!(issuer.asked.lock().len(), asked);
        bench.toolbox.refresh().await;
    }
}
