//! Providers that lie and browsers that attack: no sign-in succeeds.

use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _};
use serde_json::json;

use super::browser::{Begun, Setup, location, session};
use super::lies::{Fate, lies};
use super::provider::{Answers, CODE, Lie};
use crate::rig::HttpResponse;

const HONEST: Lie = |_| {};

/// Sign-ins at the same time.
const CONCURRENT: usize = 12;

/// Asserts that a response starts no session.
fn assert_outside(what: &str, answer: &HttpResponse) {
    assert_eq!(
        session(answer),
        None,
        "{what}: {} {}",
        answer.status,
        answer.text
    );
    assert!(
        answer.status.as_u16() < 500 || answer.status == 502,
        "{what}: {}",
        answer.text
    );
}

/// Asserts that a callback leads to the sign-in page with this code.
fn assert_failed(what: &str, answer: &HttpResponse, code: &str) {
    assert_outside(what, answer);
    assert_eq!(answer.status, 302, "{what}: {}", answer.text);
    let expected = format!("/login?error={code}");
    assert_eq!(location(&answer.headers), expected, "{what}");
}

#[tokio::test]
async fn provider_that_lies_signs_no_one_in() {
    let lies = lies();
    assert!(lies.len() >= 60, "{}", lies.len());
    let mut realms = vec![("honest".to_owned(), HONEST, json!({}))];
    for (n, (_, _, lie)) in lies.iter().enumerate() {
        realms.push((format!("r{n}"), *lie, json!({})));
    }
    let setup = Setup::start(realms).await;
    let failures: Vec<String> = stream::iter(lies.iter().enumerate())
        .map(|(n, (what, fate, _))| check_lie(&setup, n, what, *fate))
        .buffer_unordered(CONCURRENT)
        .collect()
        .await;
    let failures: Vec<String> = failures
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
    // The same steps sign a person in if the provider does not lie.
    let answer = setup.sign_in(250, "honest").await;
    assert_eq!(
        location(&answer.headers),
        "/auth/callback?next=%2Fworkspace"
    );
    let cookie = session(&answer).expect("a session");
    assert_eq!(setup.me(&cookie).await["email"], "ann@example.org");
    let logs = setup.gateway.logs();
    for secret in [CODE, "a secret of the client"] {
        assert!(!logs.contains(secret), "{secret} is in the log");
    }
}

/// Signs in at a realm that lies; returns what is wrong with the result.
async fn check_lie(setup: &Setup, n: usize, what: &str, fate: Fate) -> String {
    let browser = u8::try_from(n + 1).expect("few lies");
    let since = Instant::now();
    let answer = setup.sign_in(browser, &format!("r{n}")).await;
    let took = since.elapsed();
    let found = match answer.status.as_u16() {
        302 => location(&answer.headers).to_owned(),
        status => status.to_string(),
    };
    let expected = match fate {
        Fate::Failed(code) => format!("/login?error={code}"),
        Fate::Unreachable => "502".to_owned(),
    };
    let is_outside = session(&answer).is_none();
    if is_outside && found == expected && took < Duration::from_secs(15) {
        String::new()
    } else {
        format!("{what}: {found} instead of {expected}, outside: {is_outside}, {took:?}")
    }
}

/// Begins an honest sign-in.
async fn begun(setup: &Setup, browser: u8, realm: &str) -> Begun {
    setup.begin(browser, realm, "").await.expect("begun")
}

async fn two_realms() -> Setup {
    let realm = |name: &str| (name.to_owned(), HONEST, json!({}));
    Setup::start(vec![realm("corp"), realm("other")]).await
}

#[tokio::test]
async fn callback_needs_state_and_cookie_of_its_browser() {
    let setup = two_realms().await;
    let first = begun(&setup, 1, "corp").await;
    let second = begun(&setup, 2, "corp").await;
    let foreign = begun(&setup, 3, "other").await;
    let renamed = foreign
        .cookie
        .replace("df_oidc_state_other", "df_oidc_state_corp");
    let (name, value) = second.cookie.split_once('=').expect("a pair");
    let (content, signature) = value.split_once('.').expect("a signature");
    let tampered = format!("{name}={content}A.{signature}");
    let unsigned = format!("{name}={content}");
    let mixed = format!(
        "{name}={content}.{}",
        first.cookie.rsplit_once('.').expect("parts").1
    );
    let long = "s".repeat(5_000);
    let (state, code) = (second.state(), ("code", CODE));
    let with = |state| [code, ("state", state)];
    // Name, query, cookie, status.
    type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str, u16);
    let cases: Vec<Case<'_>> = vec![
        ("no cookie", with(state).to_vec(), "", 403),
        (
            "cookie of another browser",
            with(state).to_vec(),
            &first.cookie,
            403,
        ),
        (
            "cookie of another provider",
            with(foreign.state()).to_vec(),
            &foreign.cookie,
            403,
        ),
        (
            "renamed cookie",
            with(foreign.state()).to_vec(),
            &renamed,
            403,
        ),
        ("tampered cookie", with(state).to_vec(), &tampered, 403),
        (
            "cookie without signature",
            with(state).to_vec(),
            &unsigned,
            403,
        ),
        (
            "cookie with another signature",
            with(state).to_vec(),
            &mixed,
            403,
        ),
        (
            "state of another browser",
            with(first.state()).to_vec(),
            &second.cookie,
            403,
        ),
        ("empty state", with("").to_vec(), &second.cookie, 400),
        (
            "state in part",
            with(&state[..42]).to_vec(),
            &second.cookie,
            403,
        ),
        ("long state", with(&long).to_vec(), &second.cookie, 403),
        ("no state", vec![code], &second.cookie, 400),
        ("no code", vec![("state", state)], &second.cookie, 400),
        (
            "empty code",
            vec![("code", ""), ("state", state)],
            &second.cookie,
            400,
        ),
        ("nothing", vec![], &second.cookie, 400),
    ];
    for (what, query, cookie, status) in cases {
        let answer = setup.come_back(2, "corp", &query, cookie).await;
        assert_outside(what, &answer);
        answer.refusal(status);
    }
    for (what, realm, status) in [
        ("unknown provider", "unknown", 400),
        ("no provider id", "a.b", 400),
        ("encoded slash", "corp%2F..%2Fcorp", 400),
    ] {
        let answer = setup
            .come_back(2, realm, &with(state), &second.cookie)
            .await;
        assert_outside(what, &answer);
        answer.refusal(status);
        let started = setup.begin(2, realm, "").await.expect_err("refused");
        started.refusal(status);
    }
    // None of that used the state up.
    let answer = setup.complete(2, &second).await;
    assert!(session(&answer).is_some(), "{}", answer.text);
}

#[tokio::test]
async fn state_and_code_work_once() {
    let setup = two_realms().await;
    let begun = begun(&setup, 1, "corp").await;
    let answer = setup.complete(1, &begun).await;
    assert!(session(&answer).is_some(), "{}", answer.text);
    for _ in 0..2 {
        let again = setup.complete(1, &begun).await;
        assert_outside("replay", &again);
        again.refusal(403);
    }
    let fresh = [("code", "another-code"), ("state", begun.state())];
    let fresh = setup.come_back(1, "corp", &fresh, &begun.cookie).await;
    assert_outside("replay with another code", &fresh);
    fresh.refusal(403);
    assert_eq!(setup.provider.token_requests("corp").len(), 1);
    // Of concurrent callbacks one comes in.
    let begun = self::begun(&setup, 2, "corp").await;
    let answers = futures_util::future::join_all((0..10).map(|_| setup.complete(2, &begun))).await;
    let inside = answers.iter().filter(|answer| session(answer).is_some());
    assert_eq!(inside.count(), 1);
}

#[tokio::test]
async fn code_of_another_sign_in_is_refused() {
    let setup = two_realms().await;
    // An attacker injects a code of the own sign-in: the provider granted it for that one.
    let victim = begun(&setup, 1, "corp").await;
    let attacker = begun(&setup, 2, "corp").await;
    let answer = setup.complete(1, &victim).await;
    assert_failed("injected code", &answer, "sso_failed");
    let answer = setup.complete(2, &attacker).await;
    assert!(session(&answer).is_some(), "{}", answer.text);
    let wrong = begun(&setup, 3, "corp").await;
    let query = [("code", "guess"), ("state", wrong.state())];
    let answer = setup.come_back(3, "corp", &query, &wrong.cookie).await;
    assert_failed("guessed code", &answer, "sso_failed");
}

#[tokio::test]
async fn callback_of_another_issuer_is_refused() {
    let setup = two_realms().await;
    let named: Lie = |answers: &mut Answers| {
        answers.discovery["authorization_response_iss_parameter_supported"] = true.into();
    };
    setup.provider.set_lie("corp", named);
    let own = setup.provider.issuer("corp");
    let other = setup.provider.issuer("other");
    for (n, issuer) in [&other, "", &format!("{own}/")].into_iter().enumerate() {
        let browser = u8::try_from(n + 1).expect("few");
        let begun = begun(&setup, browser, "corp").await;
        let query = [("code", CODE), ("state", begun.state()), ("iss", issuer)];
        let answer = setup
            .come_back(browser, "corp", &query, &begun.cookie)
            .await;
        assert_failed(issuer, &answer, "sso_failed");
    }
    assert!(setup.provider.token_requests("corp").is_empty());
    let begun = begun(&setup, 9, "corp").await;
    let query = [("code", CODE), ("state", begun.state()), ("iss", &*own)];
    let answer = setup.come_back(9, "corp", &query, &begun.cookie).await;
    assert!(session(&answer).is_some(), "{}", answer.text);
}

#[tokio::test]
async fn next_leads_nowhere_but_here() {
    let setup = two_realms().await;
    for (n, next) in [
        "https://evil.test/",
        "//evil.test",
        "/\\evil.test",
        "/%09/evil.test",
        "/%0a/evil.test",
        "javascript:alert(1)",
        "evil.test",
        "/..//evil.test",
        "%2F%2Fevil.test",
        "",
    ]
    .into_iter()
    .enumerate()
    {
        let browser = u8::try_from(n + 1).expect("few");
        let begun = setup.begin(browser, "corp", &format!("?next={next}")).await;
        let answer = setup.complete(browser, &begun.expect("begun")).await;
        let expected = "/auth/callback?next=%2Fworkspace";
        assert_eq!(location(&answer.headers), expected, "{next}");
    }
    let begun = setup
        .begin(99, "corp", "?next=/workspace/chats/7?a=b%26c")
        .await;
    let answer = setup.complete(99, &begun.expect("begun")).await;
    let expected = "/auth/callback?next=%2Fworkspace%2Fchats%2F7%3Fa%3Db%26c";
    assert_eq!(location(&answer.headers), expected);
}

#[tokio::test]
async fn failures_of_an_address_are_limited() {
    let setup = two_realms().await;
    for _ in 0..50 {
        let begun = begun(&setup, 1, "corp").await;
        let query = [("error", "server_error"), ("state", begun.state())];
        let answer = setup.come_back(1, "corp", &query, &begun.cookie).await;
        assert_failed("error", &answer, "sso_failed");
    }
    let begun = begun(&setup, 1, "corp").await;
    let refused = setup.complete(1, &begun).await;
    refused.refusal(429);
    assert!(refused.headers.contains_key("retry-after"));
    assert!(session(&setup.sign_in(2, "corp").await).is_some());
}
