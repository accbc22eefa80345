//! Tests of authorization requests and of signed sign-ins.

use std::path::Path;

use harness::testkit::at;
use serde_json::{Value, json};

use super::*;
use crate::secret::SigningSecret;
use crate::signing::{InvalidSignature, Signer};

fn config(changes: Value) -> OidcProviderConfig {
    let mut config = json!({"client_id": "deerflow", "issuer": "https://id.test"});
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    serde_json::from_value(config).unwrap()
}

fn pending(config: &OidcProviderConfig) -> PendingSignIn {
    let destination = Destination {
        redirect_uri: "https://deer.test/api/v1/auth/callback/corp".to_owned(),
        next: "/workspace".to_owned(),
        persistent: false,
    };
    PendingSignIn::new(destination, config)
}

fn query(config: &OidcProviderConfig, pending: &PendingSignIn) -> Vec<(String, String)> {
    let url = |text: &str| text.to_owned();
    let endpoints = Endpoints {
        issuer: openidconnect::IssuerUrl::new(url("https://id.test")).unwrap(),
        authorization: openidconnect::AuthUrl::new(url("https://id.test/auth?realm=a%26b"))
            .unwrap(),
        token: openidconnect::TokenUrl::new(url("https://id.test/token")).unwrap(),
        userinfo: None,
        keys: openidconnect::JsonWebKeySetUrl::new(url("https://id.test/keys")).unwrap(),
        names_issuer: false,
    };
    let url = authorization_url(&endpoints, config, pending).unwrap();
    assert_eq!(url.path(), "/auth");
    url.query_pairs().into_owned().collect()
}

#[test]
fn authorization_request_has_state_nonce_and_challenge() {
    let config = config(json!({"scopes": ["openid", "email", "groups"]}));
    let pending = pending(&config);
    let query = query(&config, &pending);
    let value = |name: &str| {
        let mut values = query.iter().filter(|(key, _)| key == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert_eq!(values.next(), None, "{name}");
        value
    };
    assert_eq!(value("realm"), Some("a&b"));
    assert_eq!(value("response_type"), Some("code"));
    assert_eq!(value("client_id"), Some("deerflow"));
    assert_eq!(
        value("redirect_uri"),
        Some("https://deer.test/api/v1/auth/callback/corp")
    );
    assert_eq!(value("scope"), Some("openid email groups"));
    assert_eq!(value("state").map(str::len), Some(43));
    assert_eq!(value("nonce").map(str::len), Some(22));
    assert_eq!(value("code_challenge").map(str::len), Some(43));
    assert_eq!(value("code_challenge_method"), Some("S256"));
}

#[test]
fn nonce_and_challenge_can_be_disabled() {
    let config = config(json!({"pkce_enabled": false, "nonce_enabled": false}));
    let pending = pending(&config);
    let names: Vec<String> = query(&config, &pending)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(names.contains(&"state".to_owned()), "{names:?}");
    for absent in ["nonce", "code_challenge", "code_challenge_method"] {
        assert!(!names.contains(&absent.to_owned()), "{names:?}");
    }
}

#[test]
fn sealed_sign_in_opens_at_its_provider_for_five_minutes() {
    let secret = SigningSecret::load(Some("secret"), Path::new("/")).unwrap();
    let signer = Signer::new(&secret);
    let pending = pending(&config(json!({})));
    let sealed = pending.seal(&signer, "corp", at(0)).unwrap();
    assert!(sealed.len() < 3_000, "{}", sealed.len());
    let open = |name, text: &str, at| PendingSignIn::open(&signer, name, text, at);
    assert_eq!(open("corp", &sealed, at(300)), Ok(pending.clone()));
    assert_eq!(open("corp", &sealed, at(301)), Err(InvalidSignature));
    assert_eq!(open("other", &sealed, at(0)), Err(InvalidSignature));
    let tampered = sealed.replacen('A', "B", 1);
    assert_eq!(open("corp", &tampered, at(0)), Err(InvalidSignature));
    assert!(pending.has_state(pending.state()));
    assert!(!pending.has_state(""));
    assert!(!format!("{pending:?}").contains(pending.state()));
}
