//! The HTTP request of a loader node. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::errors::invalid;
use crate::flow::adapter::FlowError;

/// Default header of an API key.
const API_KEY_HEADER: &str = "X-API-Key";
/// Maximum number of headers.
const MAX_HEADERS: usize = 64;
/// Headers that the client sets.
const OWN_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Request of a node. Its debug output has no header.
pub(super) struct HttpRequest {
    pub(super) url: String,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

impl HttpRequest {
    /// Reads the settings of a node.
    ///
    /// # Errors
    /// `invalid_config`, without the values of headers.
    pub(super) fn read(config: &Map<String, Value>) -> Result<Self, FlowError> {
        let text = |key: &str| config.get(key).and_then(Value::as_str).map(str::trim);
        let method = text("method").unwrap_or("GET");
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| invalid(format!("`method`: {method:?} is no HTTP method")))?;
        let mut headers = headers_of(config.get("headers"))?;
        let body = match config.get("body") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone().into_bytes()),
            Some(json) => {
                let content_type = HeaderValue::from_static("application/json");
                headers.entry(CONTENT_TYPE).or_insert(content_type);
                Some(json.to_string().into_bytes())
            }
        };
        let (name, value) = match text("authType").unwrap_or("none") {
            "bearer" => (AUTHORIZATION, format!("Bearer {}", token(config)?)),
            "basic" => (
                AUTHORIZATION,
                format!("Basic {}", STANDARD.encode(token(config)?)),
            ),
            "apikey" => {
                let name = text("authHeader").unwrap_or(API_KEY_HEADER);
                (header_name("authHeader", name)?, token(config)?.to_owned())
            }
            _ => {
                return Ok(Self {
                    url: text("url").unwrap_or_default().to_owned(),
                    method,
                    headers,
                    body,
                });
            }
        };
        headers.insert(name, header_value("authToken", &value)?);
        Ok(Self {
            url: text("url").unwrap_or_default().to_owned(),
            method,
            headers,
            body,
        })
    }
}

fn headers_of(headers: Option<&Value>) -> Result<HeaderMap, FlowError> {
    let mut found = HeaderMap::new();
    let Some(headers) = headers.filter(|headers| !headers.is_null()) else {
        return Ok(found);
    };
    let Some(headers) = headers.as_object().filter(|all| all.len() <= MAX_HEADERS) else {
        let message = format!("`headers`: expected an object of at most {MAX_HEADERS} texts");
        return Err(invalid(message));
    };
    for (name, value) in headers {
        let key = format!("headers.{name}");
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(invalid(format!("`{key}`: expected a text"))),
        };
        found.insert(header_name("headers", name)?, header_value(&key, &value)?);
    }
    Ok(found)
}

fn header_name(key: &str, name: &str) -> Result<HeaderName, FlowError> {
    let parsed = HeaderName::from_bytes(name.as_bytes()).ok();
    let usable = parsed.filter(|name| !OWN_HEADERS.contains(&name.as_str()));
    usable.ok_or_else(|| invalid(format!("`{key}`: {name:?} is no header that may be set")))
}

fn header_value(key: &str, value: &str) -> Result<HeaderValue, FlowError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        invalid(format!(
            "`{key}`: the value has characters that no header has"
        ))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn token(config: &Map<String, Value>) -> Result<&str, FlowError> {
    let token = config.get("authToken").and_then(Value::as_str);
    let token = token.map(str::trim).filter(|token| !token.is_empty());
    token.ok_or_else(|| invalid("`authToken`: expected a text; this server has no named secrets"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(config: Value) -> Result<HttpRequest, FlowError> {
        HttpRequest::read(config.as_object().unwrap())
    }

    fn header(config: Value, name: &str) -> Option<String> {
        let request = read(config).unwrap();
        let value = request.headers.get(name)?;
        Some(value.to_str().unwrap().to_owned())
    }

    #[test]
    fn credentials_become_headers() {
        let auth = |kind: &str| json!({"url": "u", "authType": kind, "authToken": "a:b"});
        let authorization = |kind| header(auth(kind), "authorization");
        assert_eq!(authorization("bearer").as_deref(), Some("Bearer a:b"));
        assert_eq!(authorization("basic").as_deref(), Some("Basic YTpi"));
        assert_eq!(header(auth("apikey"), "x-api-key").as_deref(), Some("a:b"));
        assert_eq!(authorization("none"), None);
    }

    #[test]
    fn objects_are_sent_as_json() {
        let config = json!({"url": "u", "method": "POST", "body": {"a": 1}});
        let request = read(config.clone()).unwrap();
        assert_eq!(request.body.as_deref(), Some(&b"{\"a\":1}"[..]));
        let kind = header(config, "content-type");
        assert_eq!(kind.as_deref(), Some("application/json"));
    }

    #[test]
    fn invalid_headers_are_refused_without_their_values() {
        for config in [
            json!({"headers": {"Host": "other"}}),
            json!({"headers": {"a b": "canary"}}),
            json!({"headers": {"x": "canary\n"}}),
            json!({"headers": ["canary"]}),
            json!({"headers": {"x": ["canary"]}}),
            json!({"authType": "bearer", "authToken": {"secret": "canary"}}),
        ] {
            let error = read(config.clone()).err().unwrap();
            assert_eq!(error.code, "invalid_config", "{config}");
            assert!(!error.message.contains("canary"), "{}", error.message);
        }
    }
}
