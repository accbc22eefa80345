//! Sign-ins at honest providers.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};

use super::browser::{Setup, location, session};
use super::provider::{Answers, CLIENT, Key, Lie, SECRET, now, other_public_key, public_key};

const HONEST: Lie = |_| {};
const PASSWORD: &str = "a quiet brown deer";

async fn corp(settings: Value) -> Setup {
    Setup::start(vec![("corp".to_owned(), HONEST, settings)]).await
}

#[tokio::test]
async fn person_signs_in_and_finds_the_account_again() {
    let setup = Setup::start(vec![
        ("zeta".to_owned(), HONEST, json!({ "display_name": "Z" })),
        ("alpha".to_owned(), HONEST, json!({})),
    ])
    .await;
    let listed = setup.get(1, "/api/v1/auth/providers", "").await.ok();
    let expected = json!({ "providers": [
        { "id": "zeta", "display_name": "Z", "type": "oidc" },
        { "id": "alpha", "display_name": "Corp", "type": "oidc" },
    ]});
    assert_eq!(listed, expected);
    let begun = setup
        .begin(1, "zeta", "?next=/workspace/agents")
        .await
        .expect("begun");
    let parts: Vec<&str> = begun.set_cookie.split("; ").skip(1).collect();
    assert_eq!(
        parts,
        [
            "Path=/api/v1/auth/callback/zeta",
            "Max-Age=300",
            "SameSite=lax",
            "HttpOnly"
        ]
    );
    assert_eq!(begun.query["response_type"], "code");
    assert_eq!(begun.query["client_id"], CLIENT);
    assert_eq!(begun.query["scope"], "openid email profile");
    let callback = format!("{}/api/v1/auth/callback/zeta", setup.gateway.base_url());
    assert_eq!(begun.query["redirect_uri"], callback);
    let answer = setup.complete(1, &begun).await;
    assert_eq!(answer.status, 302, "{}", answer.text);
    assert_eq!(answer.headers["cache-control"], "no-store");
    let page = "/auth/callback?next=%2Fworkspace%2Fagents";
    assert_eq!(location(&answer.headers), page);
    let cookies: Vec<&str> = answer
        .headers
        .get_all("set-cookie")
        .iter()
        .map(|cookie| cookie.to_str().expect("text"))
        .collect();
    assert_eq!(cookies.len(), 4, "{cookies:?}");
    assert!(
        cookies[3].starts_with("df_oidc_state_zeta=; "),
        "{cookies:?}"
    );
    assert!(cookies[3].contains("Max-Age=0"), "{cookies:?}");
    let first = setup.me(&session(&answer).expect("a session")).await;
    assert_eq!(first["email"], "ann@example.org");
    assert_eq!(first["oauth_provider"], "zeta");
    assert_eq!(first["system_role"], "user");
    let again = setup.sign_in(2, "zeta").await;
    let again = setup.me(&session(&again).expect("a session")).await;
    assert_eq!(again["id"], first["id"]);
    // The other provider names the same e-mail, which is no proof here.
    let other = setup.sign_in(3, "alpha").await;
    assert_eq!(location(&other.headers), "/login?error=sso_account_exists");
}

#[tokio::test]
async fn client_proves_itself_by_the_configured_method() {
    let method = |name: &str, method: &str| {
        (
            name.to_owned(),
            HONEST,
            json!({ "token_endpoint_auth_method": method }),
        )
    };
    let setup = Setup::start(vec![
        method("post", "client_secret_post"),
        method("basic", "client_secret_basic"),
        method("public", "none"),
    ])
    .await;
    let lie: Lie = |answers: &mut Answers| {
        let realm = answers
            .issuer
            .rsplit_once('/')
            .expect("a realm")
            .1
            .to_owned();
        answers.claims["email"] = format!("{realm}@example.org").into();
    };
    for realm in ["post", "basic", "public"] {
        setup.provider.set_lie(realm, lie);
        let answer = setup.sign_in(1, realm).await;
        assert!(session(&answer).is_some(), "{realm}: {}", answer.text);
    }
    let request = |realm: &str| setup.provider.token_requests(realm).remove(0);
    let post = request("post");
    assert_eq!(post.authorization, None);
    assert_eq!(
        (&*post.form["client_id"], &*post.form["client_secret"]),
        (CLIENT, SECRET)
    );
    let basic = request("basic");
    let credentials = STANDARD.encode(format!("{CLIENT}:a+secret+of+the+client%2C+%26+more"));
    assert_eq!(basic.authorization, Some(format!("Basic {credentials}")));
    assert!(!basic.form.contains_key("client_secret"));
    let public = request("public");
    assert_eq!(public.authorization, None);
    assert_eq!(public.form["client_id"], CLIENT);
    assert!(!public.form.contains_key("client_secret"));
}

#[tokio::test]
async fn new_key_of_the_provider_is_found() {
    let setup = corp(json!({})).await;
    assert!(session(&setup.sign_in(1, "corp").await).is_some());
    assert!(session(&setup.sign_in(1, "corp").await).is_some());
    assert_eq!(setup.provider.keys_read("corp"), 1);
    let rotated: Lie = |answers: &mut Answers| {
        answers.keys = json!({ "keys": [public_key("k1"), other_public_key("k2")] });
        answers.header["kid"] = "k2".into();
        answers.key = Key::Other;
    };
    setup.provider.set_lie("corp", rotated);
    assert!(session(&setup.sign_in(1, "corp").await).is_some());
    assert!(session(&setup.sign_in(1, "corp").await).is_some());
    assert_eq!(setup.provider.keys_read("corp"), 2);
}

#[tokio::test]
async fn clocks_may_differ_by_a_minute() {
    let setup = corp(json!({})).await;
    let behind: Lie = |answers: &mut Answers| {
        answers.claims["iat"] = (now() - 350).into();
        answers.claims["exp"] = (now() - 50).into();
    };
    let ahead: Lie = |answers: &mut Answers| {
        answers.claims["iat"] = (now() + 50).into();
        answers.claims["exp"] = (now() + 350).into();
    };
    for lie in [behind, ahead] {
        setup.provider.set_lie("corp", lie);
        let answer = setup.sign_in(1, "corp").await;
        assert!(session(&answer).is_some(), "{}", answer.text);
    }
}

#[tokio::test]
async fn settings_override_the_discovery_document() {
    let wrong: Lie = |answers: &mut Answers| {
        for key in ["authorization_endpoint", "token_endpoint", "jwks_uri"] {
            answers.discovery[key] = "http://127.0.0.1:9/nowhere".into();
        }
        answers.discovery["userinfo_endpoint"] = "http://127.0.0.1:9/nowhere".into();
        answers.userinfo = Some(json!({
            "sub": "ann", "email": "ann.b@example.org", "email_verified": true,
        }));
    };
    let settings = json!({
        "authorization_endpoint": "ISSUER/authorize",
        "token_endpoint": "ISSUER/token",
        "userinfo_endpoint": "ISSUER/userinfo",
        "jwks_uri": "ISSUER/keys",
        "redirect_uri": "https://deer.example.org/sso",
        "scopes": ["openid", "email"],
        "pkce_enabled": false,
        "nonce_enabled": false,
    });
    let setup = Setup::start(vec![("corp".to_owned(), wrong, settings)]).await;
    let begun = setup.begin(1, "corp", "").await.expect("begun");
    assert_eq!(begun.query["redirect_uri"], "https://deer.example.org/sso");
    assert_eq!(begun.query["scope"], "openid email");
    assert!(!begun.query.contains_key("nonce") && !begun.query.contains_key("code_challenge"));
    let answer = setup.complete(1, &begun).await;
    let me = setup.me(&session(&answer).expect("a session")).await;
    // The userinfo wins over the ID token.
    assert_eq!(me["email"], "ann.b@example.org");
}

#[tokio::test]
async fn userinfo_that_fails_is_not_needed() {
    let failing: Lie = |answers: &mut Answers| {
        let issuer = answers.issuer.clone();
        answers.discovery["userinfo_endpoint"] = format!("{issuer}/nothing").into();
    };
    let hanging: Lie = |answers: &mut Answers| {
        answers.claims["sub"] = "bob".into();
        answers.claims["email"] = "bob@example.org".into();
        answers.with_userinfo(json!({}));
        answers.hanging.push("userinfo");
    };
    let setup = Setup::start(vec![
        ("failing".to_owned(), failing, json!({})),
        ("hanging".to_owned(), hanging, json!({})),
    ])
    .await;
    for (realm, email) in [
        ("failing", "ann@example.org"),
        ("hanging", "bob@example.org"),
    ] {
        let since = Instant::now();
        let answer = setup.sign_in(1, realm).await;
        let me = setup.me(&session(&answer).expect("a session")).await;
        assert_eq!(me["email"], email);
        assert!(since.elapsed() < Duration::from_secs(8));
    }
}

#[tokio::test]
async fn declined_sign_in_is_cancelled() {
    let setup = corp(json!({})).await;
    for (error, code) in [
        ("access_denied", "sso_cancelled"),
        ("server_error", "sso_failed"),
        ("", "sso_failed"),
    ] {
        let begun = setup.begin(1, "corp", "").await.expect("begun");
        let query = [("error", error), ("state", begun.state())];
        let answer = setup.come_back(1, "corp", &query, &begun.cookie).await;
        assert_eq!(location(&answer.headers), format!("/login?error={code}"));
        assert_eq!(session(&answer), None);
    }
    // Without the cookie of the sign-in, too: the person sees the page of the UI.
    let answer = setup
        .come_back(1, "corp", &[("error", "access_denied")], "")
        .await;
    assert_eq!(location(&answer.headers), "/login?error=sso_cancelled");
}

#[tokio::test]
async fn verified_email_joins_an_account_if_configured() {
    let setup = corp(json!({ "link_by_verified_email": true })).await;
    let body = json!({ "email": "ann@example.org", "password": PASSWORD });
    let path = "/api/v1/auth/register";
    let registered = setup.send(1, Method::POST, path, "", Some(body)).await;
    assert_eq!(registered.status, 201, "{}", registered.text);
    let old = session(&registered).expect("a session");
    let answer = setup.sign_in(2, "corp").await;
    let me = setup.me(&session(&answer).expect("a session")).await;
    assert_eq!(me["id"], registered.json()["id"]);
    assert_eq!(me["oauth_provider"], "corp");
    setup.get(1, "/api/v1/auth/me", &old).await.refusal(401);
}

#[tokio::test]
async fn slow_provider_costs_its_own_login_only() {
    let hanging: Lie = |answers: &mut Answers| answers.hanging.push("discovery");
    let setup = Setup::start(vec![
        ("slow".to_owned(), hanging, json!({})),
        ("corp".to_owned(), HONEST, json!({})),
    ])
    .await;
    let slow = async {
        let since = Instant::now();
        let starts = (0..20).map(|_| setup.begin(1, "slow", ""));
        for refused in futures_util::future::join_all(starts).await {
            refused.expect_err("refused").refusal(502);
        }
        since.elapsed()
    };
    let others = async {
        let since = Instant::now();
        let answer = setup.sign_in(2, "corp").await;
        assert!(session(&answer).is_some(), "{}", answer.text);
        setup.get(2, "/api/v1/auth/setup-status", "").await.ok();
        since.elapsed()
    };
    let (slow, others) = tokio::join!(slow, others);
    assert!(slow < Duration::from_secs(12), "{slow:?}");
    assert!(others < Duration::from_secs(5), "{others:?}");
}

#[tokio::test]
async fn without_providers_there_is_no_way_to_them() {
    let setup = corp(json!({})).await;
    let disabled = setup.gateway.home().join("config.yaml");
    let text = std::fs::read_to_string(&disabled).expect("config");
    std::fs::write(
        &disabled,
        text.replace("\"enabled\":true", "\"enabled\":false"),
    )
    .expect("config");
    crate::rig::until("the changed configuration", async || {
        let listed = setup.get(1, "/api/v1/auth/providers", "").await.ok();
        (listed == json!({ "providers": [] })).then_some(())
    })
    .await;
    let refused = setup.begin(1, "corp", "").await.expect_err("refused");
    assert_eq!(refused.refusal(404), "SSO authentication is not enabled");
    let refused = setup
        .come_back(1, "corp", &[("code", "c"), ("state", "s")], "")
        .await;
    assert_eq!(refused.refusal(404), "SSO authentication is not enabled");
}
