//! Parameters of a call: from the query, a form, JSON or a multipart body.

use std::collections::HashMap;

use axum::Form;
use axum::extract::{FromRequest, Multipart, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header;
use serde_json::{Map, Value, json};

use super::failure::ApiFailure;

/// Uploaded file.
#[derive(Debug, Clone)]
pub(super) struct Upload {
    pub(super) name: String,
    pub(super) media_type: String,
    pub(super) bytes: Bytes,
}

/// Decoded parameters.
#[derive(Debug, Default)]
pub(super) struct Params {
    values: Map<String, Value>,
    files: HashMap<String, Upload>,
}

impl Params {
    /// Decodes the parameters of a request.
    pub(super) async fn decode(request: Request) -> Result<Self, ApiFailure> {
        let mut params = Self::default();
        if let Some(query) = request.uri().query() {
            for (name, value) in pairs(query) {
                params.values.insert(name, Value::String(value));
            }
        }
        let media_type = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        if media_type.starts_with("multipart/form-data") {
            params.read_multipart(request).await?;
        } else if media_type.starts_with("application/json") {
            let body = Bytes::from_request(request, &())
                .await
                .map_err(|_| ApiFailure::new(413, "Request Entity Too Large"))?;
            let values = serde_json::from_slice::<Map<String, Value>>(&body)
                .map_err(|_| ApiFailure::bad("can't parse the JSON object"))?;
            params.values.extend(values);
        } else if media_type.starts_with("application/x-www-form-urlencoded") {
            let Form(form) = Form::<Vec<(String, String)>>::from_request(request, &())
                .await
                .map_err(|_| ApiFailure::bad("can't parse the form"))?;
            let values = form
                .into_iter()
                .map(|(name, value)| (name, Value::String(value)));
            params.values.extend(values);
        }
        Ok(params)
    }

    async fn read_multipart(&mut self, request: Request) -> Result<(), ApiFailure> {
        let invalid = || ApiFailure::bad("can't parse the multipart body");
        let mut parts = Multipart::from_request(request, &())
            .await
            .map_err(|_| invalid())?;
        while let Some(field) = parts.next_field().await.map_err(|_| invalid())? {
            let name = field.name().unwrap_or_default().to_owned();
            let file_name = field.file_name().map(str::to_owned);
            let media_type = field.content_type().unwrap_or_default().to_owned();
            let bytes = field
                .bytes()
                .await
                .map_err(|_| ApiFailure::new(413, "Request Entity Too Large"))?;
            match file_name {
                Some(file_name) => {
                    let upload = Upload {
                        name: file_name,
                        media_type,
                        bytes,
                    };
                    self.files.insert(name, upload);
                }
                None => {
                    let text = String::from_utf8(bytes.to_vec()).map_err(|_| invalid())?;
                    self.values.insert(name, Value::String(text));
                }
            }
        }
        Ok(())
    }

    /// Returns the parameters for the record of calls.
    pub(super) fn record(&self) -> Value {
        let mut values: Map<String, Value> = self
            .values
            .iter()
            .map(|(name, value)| (name.clone(), decoded(value)))
            .collect();
        for (name, file) in &self.files {
            let file = json!({
                "name": file.name,
                "size": file.bytes.len(),
                "base64": STANDARD.encode(&file.bytes),
            });
            values.insert(name.clone(), file);
        }
        Value::Object(values)
    }

    /// Refuses parameters that the method does not have. The Bot API ignores them; a test wants to
    /// notice misspelled names.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), ApiFailure> {
        let unknown = self
            .values
            .keys()
            .find(|name| !known.contains(&name.as_str()));
        match unknown {
            Some(name) => Err(ApiFailure::bad(format!("unknown parameter {name}"))),
            None => Ok(()),
        }
    }

    /// Returns an integer, which may be written as a text.
    pub(super) fn int(&self, name: &str) -> Result<Option<i64>, ApiFailure> {
        let number = match self.values.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Number(number)) => number.as_i64(),
            Some(Value::String(text)) => text.parse().ok(),
            Some(_) => None,
        };
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(ApiFailure::bad(format!("invalid integer in {name}"))),
        }
    }

    /// Returns a required integer.
    pub(super) fn required_int(&self, name: &str) -> Result<i64, ApiFailure> {
        self.int(name)?
            .ok_or_else(|| ApiFailure::bad(format!("{name} is empty")))
    }

    /// Returns a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(Value::as_str)
    }

    /// Returns a switch.
    pub(super) fn flag(&self, name: &str) -> bool {
        match self.values.get(name) {
            Some(Value::Bool(value)) => *value,
            Some(Value::String(text)) => text.eq_ignore_ascii_case("true") || text == "1",
            _ => false,
        }
    }

    /// Returns an object or a list, which may be written as a text.
    pub(super) fn json(&self, name: &str) -> Result<Option<Value>, ApiFailure> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => serde_json::from_str(text)
                .map(Some)
                .map_err(|_| ApiFailure::bad(format!("can't parse {name} JSON object"))),
            Some(value) => Ok(Some(value.clone())),
        }
    }

    /// Returns the uploaded file of a parameter, also if the parameter names it with `attach://`.
    pub(super) fn file(&self, name: &str) -> Option<&Upload> {
        let attached = self
            .text(name)
            .and_then(|text| text.strip_prefix("attach://"));
        self.files.get(attached.unwrap_or(name))
    }
}

/// Returns the JSON value of a form text if it is an object or a list, and the text otherwise.
fn decoded(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with(['{', '[']) => {
            serde_json::from_str(text).unwrap_or_else(|_| value.clone())
        }
        _ => value.clone(),
    }
}

fn pairs(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| {
        percent_encoding::percent_decode_str(&text.replace('+', " "))
            .decode_utf8_lossy()
            .into_owned()
    };
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}
