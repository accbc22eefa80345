//! Form of a sign-in with e-mail and password.

use axum::extract::Request;
use axum::http::header;
use deerflow_accounts::Credentials;
use reqwest::Url;
use serde_json::{Value, json};

use crate::error::{ApiError, Issue};
use crate::extract::{SHORT_BODY_LIMIT, receive};

const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// Reads the form of a request. Other fields, such as those of OAuth 2, are ignored.
pub(super) async fn read(request: Request) -> Result<Credentials, ApiError> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case(MEDIA_TYPE) {
        return Err(ApiError::Unprocessable(format!(
            "the body has to be a form: {MEDIA_TYPE}"
        )));
    }
    let body = receive(request, SHORT_BODY_LIMIT).await?;
    credentials(&String::from_utf8_lossy(&body))
}

/// Reads the fields.
fn credentials(form: &str) -> Result<Credentials, ApiError> {
    let mut url =
        Url::parse("form://form").map_err(|error| ApiError::Internal(error.to_string()))?;
    url.set_query(Some(form));
    let field = |name: &str| {
        url.query_pairs()
            .filter(|(key, _)| key == name)
            .last()
            .map(|(_, value)| value.into_owned())
    };
    let mut issues = Vec::new();
    let mut required = |name: &str| {
        field(name).unwrap_or_else(|| {
            let loc = vec!["body".into(), name.into()];
            issues.push(Issue::new("missing", loc, "Field required", &Value::Null));
            String::new()
        })
    };
    let (email, password) = (required("username"), required("password"));
    let persistent = flag(field("remember_me").as_deref(), &mut issues);
    if !issues.is_empty() {
        return Err(ApiError::Invalid(issues));
    }
    Ok(Credentials {
        email,
        password: password.into(),
        persistent,
    })
}

/// Reads the wish to stay signed in; `true` without one.
fn flag(text: Option<&str>, issues: &mut Vec<Issue>) -> bool {
    match text.map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "1" | "yes" | "on" | "t" | "y") => true,
        Some("false" | "0" | "no" | "off" | "f" | "n") => false,
        Some(other) => {
            let loc = vec!["body".into(), "remember_me".into()];
            let message = "Input should be a valid boolean, unable to interpret input";
            issues.push(Issue::new("bool_parsing", loc, message, &json!(other)));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn fields_are_decoded_and_others_ignored() {
        let form = "username=Ann%40x.org&password=a+b%26%3D%C3%A4%23&grant_type=password&remember_me=false";
        let read = credentials(form).unwrap();
        assert_eq!(read.email, "Ann@x.org");
        assert_eq!(read.password.expose_secret(), "a b&=ä#");
        assert!(!read.persistent);
        assert!(credentials("username=a&password=b").unwrap().persistent);
        let raw = credentials("username=a&password=b#c d").unwrap();
        assert_eq!(raw.password.expose_secret(), "b#c d");
    }

    #[test]
    fn missing_and_wrong_fields_are_named() {
        let Err(ApiError::Invalid(issues)) = credentials("remember_me=perhaps") else {
            panic!("accepted")
        };
        let found: Vec<_> = issues
            .iter()
            .map(|issue| (issue.kind, issue.loc[1].clone()))
            .collect();
        assert_eq!(
            found,
            [
                ("missing", json!("username")),
                ("missing", json!("password")),
                ("bool_parsing", json!("remember_me")),
            ]
        );
    }
}
