//! Tests of the section `auth.oidc`.

use serde_json::{Value, json};

use super::*;

fn provider(overrides: Value) -> Value {
    let mut provider = json!({
        "display_name": "Corp",
        "issuer": "https://id.example.com/realms/corp",
        "client_id": "deerflow",
        "client_secret": "s",
    });
    for (key, value) in overrides.as_object().unwrap() {
        provider[key] = value.clone();
    }
    provider
}

fn violations(section: Value) -> Vec<String> {
    let section: OidcConfig = serde_json::from_value(section).unwrap();
    let mut check = Checker::default();
    section.check(&mut check);
    let violations = check.into_violations();
    violations.iter().map(ToString::to_string).collect()
}

#[test]
fn complete_provider_is_accepted() {
    let section = json!({"enabled": true, "providers": {"corp": provider(json!({}))}});
    assert_eq!(violations(section.clone()), [""; 0]);
    let section: OidcConfig = serde_json::from_value(section).unwrap();
    let corp = section.provider("corp").unwrap();
    assert_eq!(corp.scopes, ["openid", "email", "profile"]);
    assert_eq!(
        corp.token_endpoint_auth_method,
        TokenEndpointAuthMethod::ClientSecretPost
    );
    assert!(corp.pkce_enabled && corp.nonce_enabled && corp.require_verified_email);
    assert!(corp.auto_create_users && !corp.link_by_verified_email);
    assert!(section.provider("other").is_none());
    assert!(!format!("{section:?}").contains("\"s\""));
}

#[test]
fn disabled_section_has_no_providers_and_is_not_checked() {
    let section = json!({"providers": {"corp": provider(json!({"issuer": "sample"}))}});
    assert_eq!(violations(section.clone()), [""; 0]);
    let section: OidcConfig = serde_json::from_value(section).unwrap();
    assert!(section.provider("corp").is_none());
}

#[test]
fn invalid_values_are_named_with_their_place() {
    let of = |overrides| json!({"enabled": true, "providers": {"corp": provider(overrides)}});
    let long = "a".repeat(33);
    let mut ui = of(json!({}));
    ui["frontend_base_url"] = "ui.example.com".into();
    for (section, place) in [
        (json!({"enabled": true}), "`providers`"),
        (ui, "`frontend_base_url`"),
        (
            json!({"enabled": true, "providers": {"a b": provider(json!({}))}}),
            "`providers.a b`",
        ),
        (
            json!({"enabled": true, "providers": {long: provider(json!({}))}}),
            "`providers.aaa",
        ),
        (
            of(json!({"display_name": " "})),
            "`providers.corp.display_name`",
        ),
        (of(json!({"client_id": ""})), "`providers.corp.client_id`"),
        (of(json!({"issuer": ""})), "`providers.corp.issuer`"),
        (
            of(json!({"issuer": "https://id.example.com/?a=b"})),
            "`providers.corp.issuer`",
        ),
        (
            of(json!({"issuer": "https://user@id.example.com"})),
            "`providers.corp.issuer`",
        ),
        (
            of(json!({"client_secret": ""})),
            "`providers.corp.client_secret`",
        ),
        (of(json!({"scopes": ["email"]})), "`providers.corp.scopes`"),
        (
            of(json!({"jwks_uri": "file:///etc/passwd"})),
            "`providers.corp.jwks_uri`",
        ),
        (
            of(json!({"token_endpoint": "https://"})),
            "`providers.corp.token_endpoint`",
        ),
        (
            of(json!({"redirect_uri": "/callback"})),
            "`providers.corp.redirect_uri`",
        ),
        (
            of(json!({"allowed_email_domains": ["a.com", "@b.com"]})),
            "`providers.corp.allowed_email_domains[1]`",
        ),
        (
            of(json!({"admin_emails": ["root"]})),
            "`providers.corp.admin_emails[0]`",
        ),
    ] {
        let found = violations(section);
        assert!(
            matches!(&*found, [one] if one.starts_with(place)),
            "{place}: {found:?}"
        );
    }
    let public = of(json!({"client_secret": null, "token_endpoint_auth_method": "none"}));
    assert_eq!(violations(public), [""; 0]);
}

#[test]
fn providers_are_sorted_as_listed() {
    let mut section: OidcConfig = serde_json::from_value(json!({"providers": {
        "a": provider(json!({})), "b": provider(json!({})), "c": provider(json!({})),
    }}))
    .unwrap();
    section.sort_providers(&["c".to_owned(), "a".to_owned()]);
    let names: Vec<&String> = section.providers.keys().collect();
    assert_eq!(names, ["c", "a", "b"]);
}
