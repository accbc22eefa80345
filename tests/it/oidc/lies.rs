//! Lies of identity providers, and what becomes of the sign-in.

use openidconnect::core::CoreJwsSigningAlgorithm;
use serde_json::{Value, json};

use super::provider::{Answers, CLIENT, Key, Lie, Raw, SECRET, now, other_public_key, public_key};

/// Result of a sign-in that does not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The callback leads to the sign-in page with this code.
    Failed(&'static str),
    /// The sign-in does not begin.
    Unreachable,
}

const FAILED: Fate = Fate::Failed("sso_failed");
const NOT_ALLOWED: Fate = Fate::Failed("sso_not_allowed");

/// Lies with their names.
pub(super) fn lies() -> Vec<(&'static str, Fate, Lie)> {
    [
        claims(),
        people(),
        signatures(),
        answers_of_endpoints(),
        discoveries(),
    ]
    .concat()
}

fn raw(status: u16, kind: &str, body: impl Into<String>) -> Raw {
    Raw {
        status,
        headers: vec![("content-type", kind.to_owned())],
        body: body.into(),
    }
}

/// An answer of more than 512 KiB.
fn oversized() -> Raw {
    let filler = "x".repeat(600_000);
    raw(
        200,
        "application/json",
        json!({ "filler": filler }).to_string(),
    )
}

/// A redirect to the honest answer of another realm.
fn moved(answers: &Answers, endpoint: &str) -> Raw {
    let (base, _) = answers.issuer.rsplit_once('/').expect("a realm");
    Raw {
        headers: vec![("location", format!("{base}/honest/{endpoint}"))],
        ..raw(307, "application/json", "{}")
    }
}

fn claims() -> Vec<(&'static str, Fate, Lie)> {
    vec![
        ("other issuer", FAILED, |a| {
            a.claims["iss"] = "https://evil.test".into()
        }),
        ("issuer with a slash", FAILED, |a| {
            a.claims["iss"] = format!("{}/", a.issuer).into();
        }),
        ("issuer of another realm", FAILED, |a| {
            a.claims["iss"] = format!("{}x", a.issuer).into();
        }),
        ("no issuer", FAILED, |a| a.claims["iss"] = Value::Null),
        ("issuer as a list", FAILED, |a| {
            a.claims["iss"] = json!([a.issuer])
        }),
        ("other audience", FAILED, |a| {
            a.claims["aud"] = "other".into()
        }),
        ("audience in other case", FAILED, |a| {
            a.claims["aud"] = "DEERFLOW".into()
        }),
        ("no audience", FAILED, |a| a.claims["aud"] = Value::Null),
        ("empty audience", FAILED, |a| a.claims["aud"] = json!([])),
        ("two audiences without party", FAILED, |a| {
            a.claims["aud"] = json!([CLIENT, "other"]);
        }),
        ("party is another client", FAILED, |a| {
            a.claims["azp"] = "other".into()
        }),
        ("two audiences, other party", FAILED, |a| {
            a.claims["aud"] = json!(["other", CLIENT]);
            a.claims["azp"] = "other".into();
        }),
        ("audience as a number", FAILED, |a| {
            a.claims["aud"] = 7.into()
        }),
        ("other nonce", FAILED, |a| {
            a.claims["nonce"] = "n-other".into()
        }),
        ("no nonce", FAILED, |a| a.claims["nonce"] = Value::Null),
        ("empty nonce", FAILED, |a| a.claims["nonce"] = "".into()),
        ("nonce as a list", FAILED, |a| {
            a.claims["nonce"] = json!([a.claims["nonce"]]);
        }),
        ("expired an hour ago", FAILED, |a| {
            a.claims["exp"] = (now() - 3_600).into()
        }),
        ("expired 62 seconds ago", FAILED, |a| {
            a.claims["exp"] = (now() - 62).into()
        }),
        ("no expiry", FAILED, |a| a.claims["exp"] = Value::Null),
        ("expiry as a text", FAILED, |a| {
            a.claims["exp"] = "never".into()
        }),
        ("issued in two minutes", FAILED, |a| {
            a.claims["iat"] = (now() + 120).into()
        }),
        ("no time of issue", FAILED, |a| {
            a.claims["iat"] = Value::Null
        }),
        ("no subject", FAILED, |a| a.claims["sub"] = Value::Null),
        ("empty subject", FAILED, |a| a.claims["sub"] = "".into()),
        ("subject of 129 characters", FAILED, |a| {
            a.claims["sub"] = "s".repeat(129).into()
        }),
        ("subject with NUL", FAILED, |a| {
            a.claims["sub"] = "ann\0".into()
        }),
        ("subject as a number", FAILED, |a| {
            a.claims["sub"] = 1.into()
        }),
        ("other access token", FAILED, |a| {
            a.claims["at_hash"] = "77QmUPtjPfzWtF2AnpK9RQ".into();
        }),
    ]
}

fn people() -> Vec<(&'static str, Fate, Lie)> {
    vec![
        ("unverified e-mail", NOT_ALLOWED, |a| {
            a.claims["email_verified"] = false.into()
        }),
        ("e-mail without statement", NOT_ALLOWED, |a| {
            a.claims["email_verified"] = Value::Null;
        }),
        ("verified as a text", FAILED, |a| {
            a.claims["email_verified"] = "true".into()
        }),
        ("verified as a number", FAILED, |a| {
            a.claims["email_verified"] = 1.into()
        }),
        ("no e-mail", NOT_ALLOWED, |a| {
            a.claims["email"] = Value::Null
        }),
        ("e-mail without domain", NOT_ALLOWED, |a| {
            a.claims["email"] = "ann".into()
        }),
        ("e-mail with a line break", NOT_ALLOWED, |a| {
            a.claims["email"] = "ann@example.org\nbcc@evil.test".into();
        }),
        ("userinfo of another person", FAILED, |a| {
            a.with_userinfo(json!({ "sub": "root", "email": "root@example.org" }));
        }),
        ("unverified e-mail of the userinfo", NOT_ALLOWED, |a| {
            a.with_userinfo(json!({ "sub": "ann", "email": "root@example.org" }));
        }),
        ("unsigned token as userinfo", NOT_ALLOWED, |a| {
            a.claims["email"] = Value::Null;
            a.with_userinfo(Value::Null);
            let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4iLCJlbWFpbCI6ImFubkBleGFtcGxlLm9yZyIsImVtYWlsX3ZlcmlmaWVkIjp0cnVlfQ.";
            a.raw.insert("userinfo", raw(200, "application/jwt", token));
        }),
    ]
}

/// Returns the token without its signature.
fn stripped(token: String) -> String {
    let (signed, _) = token.rsplit_once('.').expect("three parts");
    format!("{signed}.")
}

/// Returns the token with another payload than the signed one.
fn other_payload(token: String) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let payload = "eyJzdWIiOiJyb290In0";
    format!("{}.{payload}.{}", parts[0], parts[2])
}

fn signatures() -> Vec<(&'static str, Fate, Lie)> {
    vec![
        ("no algorithm", FAILED, |a| {
            a.header["alg"] = "none".into();
            a.key = Key::None;
        }),
        ("no algorithm, but a signature", FAILED, |a| {
            a.header["alg"] = "none".into()
        }),
        ("no algorithm in other case", FAILED, |a| {
            a.header["alg"] = "nOnE".into();
            a.key = Key::None;
        }),
        ("public key as a shared secret", FAILED, |a| {
            a.header["alg"] = "HS256".into();
            a.algorithm = CoreJwsSigningAlgorithm::HmacSha256;
            a.key = Key::Shared(public_key("k1").to_string().into_bytes());
        }),
        ("modulus as a shared secret", FAILED, |a| {
            a.header["alg"] = "HS256".into();
            a.algorithm = CoreJwsSigningAlgorithm::HmacSha256;
            let modulus = public_key("k1")["n"].as_str().expect("text").to_owned();
            a.key = Key::Shared(modulus.into_bytes());
        }),
        ("client secret as a shared secret", FAILED, |a| {
            a.header["alg"] = "HS256".into();
            a.algorithm = CoreJwsSigningAlgorithm::HmacSha256;
            a.key = Key::Shared(SECRET.as_bytes().to_vec());
        }),
        ("client secret with SHA-512", FAILED, |a| {
            a.header["alg"] = "HS512".into();
            a.algorithm = CoreJwsSigningAlgorithm::HmacSha512;
            a.key = Key::Shared(SECRET.as_bytes().to_vec());
        }),
        ("published shared secret", FAILED, |a| {
            a.keys = json!({ "keys": [{ "kty": "oct", "kid": "k1", "k": "c2VjcmV0" }] });
            a.header["alg"] = "HS256".into();
            a.algorithm = CoreJwsSigningAlgorithm::HmacSha256;
            a.key = Key::Shared(b"secret".to_vec());
        }),
        ("unpublished key", FAILED, |a| a.key = Key::Other),
        ("unknown key id", FAILED, |a| a.header["kid"] = "k9".into()),
        ("no key id with two keys", FAILED, |a| {
            a.keys = json!({ "keys": [public_key("k1"), other_public_key("k2")] });
            a.header["kid"] = Value::Null;
        }),
        ("key for encryption", FAILED, |a| {
            a.keys["keys"][0]["use"] = "enc".into();
        }),
        ("key of another algorithm", FAILED, |a| {
            a.keys["keys"][0]["alg"] = "RS512".into();
        }),
        ("probabilistic signature", FAILED, |a| {
            a.header["alg"] = "PS256".into();
            a.algorithm = CoreJwsSigningAlgorithm::RsaSsaPssSha256;
        }),
        ("elliptic curve with an RSA key", FAILED, |a| {
            a.header["alg"] = "ES256".into()
        }),
        ("unknown algorithm", FAILED, |a| {
            a.header["alg"] = "XS256".into()
        }),
        ("removed signature", FAILED, |a| a.forge = stripped),
        ("shortened signature", FAILED, |a| {
            a.forge = |token| token[..token.len() - 8].to_owned()
        }),
        ("replaced payload", FAILED, |a| a.forge = other_payload),
        ("key in the header", FAILED, |a| {
            a.key = Key::Other;
            a.header["jwk"] = other_public_key("k1");
        }),
        ("address of keys in the header", FAILED, |a| {
            a.key = Key::Other;
            a.header["kid"] = "k9".into();
            a.header["jku"] = "https://evil.test/keys".into();
        }),
        ("critical header", FAILED, |a| {
            a.header["crit"] = json!(["exp"])
        }),
        ("type of an access token", FAILED, |a| {
            a.header["typ"] = "at+jwt".into()
        }),
        ("nested token", FAILED, |a| a.header["cty"] = "JWT".into()),
        ("encrypted token", FAILED, |a| {
            a.forge = |token| format!("{token}.e.e")
        }),
        ("two parts", FAILED, |a| {
            a.forge = |token| token.rsplit_once('.').expect("parts").0.to_owned();
        }),
        ("text that is no token", FAILED, |a| {
            a.forge = |_| "a.b.c".to_owned()
        }),
        ("empty token", FAILED, |a| a.forge = |_| String::new()),
        ("token as an object", FAILED, |a| {
            a.token["id_token"] = json!({})
        }),
        ("no keys", FAILED, |a| a.keys = json!({ "keys": [] })),
    ]
}

fn answers_of_endpoints() -> Vec<(&'static str, Fate, Lie)> {
    vec![
        ("no ID token", FAILED, |a| a.token["id_token"] = Value::Null),
        ("no access token", FAILED, |a| {
            a.token["access_token"] = Value::Null
        }),
        ("no type of the token", FAILED, |a| {
            a.token["token_type"] = Value::Null
        }),
        ("refused code", FAILED, |a| {
            let error = json!({ "error": "invalid_grant", "error_description": "the-code" });
            a.raw
                .insert("token", raw(400, "application/json", error.to_string()));
        }),
        ("failing token endpoint", FAILED, |a| {
            a.raw
                .insert("token", raw(500, "text/html", "<p>the-code</p>"));
        }),
        ("page at the token endpoint", FAILED, |a| {
            a.raw.insert("token", raw(200, "text/html", "<p>hello</p>"));
        }),
        ("moved token endpoint", FAILED, |a| {
            a.raw.insert("token", moved(a, "token"));
        }),
        ("oversized tokens", FAILED, |a| {
            a.raw.insert("token", oversized());
        }),
        ("hanging token endpoint", FAILED, |a| {
            a.hanging.push("token")
        }),
        ("failing keys", FAILED, |a| {
            a.raw.insert("keys", raw(500, "application/json", "{}"));
        }),
        ("moved keys", FAILED, |a| {
            a.raw.insert("keys", moved(a, "keys"));
        }),
        ("oversized keys", FAILED, |a| {
            a.raw.insert("keys", oversized());
        }),
        ("hanging keys", FAILED, |a| a.hanging.push("keys")),
        ("keys in a file", FAILED, |a| {
            a.discovery["jwks_uri"] = "file:///etc/passwd".into()
        }),
        ("callback without its issuer", FAILED, |a| {
            a.discovery["authorization_response_iss_parameter_supported"] = true.into();
        }),
    ]
}

fn discoveries() -> Vec<(&'static str, Fate, Lie)> {
    const UNREACHABLE: Fate = Fate::Unreachable;
    vec![
        ("document of another issuer", UNREACHABLE, |a| {
            a.discovery["issuer"] = "https://evil.test".into();
        }),
        ("document without token endpoint", UNREACHABLE, |a| {
            a.discovery["token_endpoint"] = Value::Null;
        }),
        ("document with a script", UNREACHABLE, |a| {
            a.discovery["authorization_endpoint"] = "javascript:alert(1)".into();
        }),
        ("document that is no JSON", UNREACHABLE, |a| {
            a.raw
                .insert("discovery", raw(200, "application/json", "<html>"));
        }),
        ("failing document", UNREACHABLE, |a| {
            a.raw
                .insert("discovery", raw(503, "application/json", "{}"));
        }),
        ("moved document", UNREACHABLE, |a| {
            a.raw
                .insert("discovery", moved(a, ".well-known/openid-configuration"));
        }),
        ("oversized document", UNREACHABLE, |a| {
            a.raw.insert("discovery", oversized());
        }),
        ("hanging document", UNREACHABLE, |a| {
            a.hanging.push("discovery")
        }),
    ]
}
