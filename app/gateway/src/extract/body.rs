//! Extractors of JSON bodies, and their conversion to types.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde_json::{Map, Value, json};

use super::field_limits::check_fields;
use super::issues::Issues;
use super::json::{SHORT_BODY_LIMIT, read_json};
use super::layout::{Layout, MAX_NULL_ISSUES};
use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};
use crate::guard::received_body::BODY_LIMIT;
use crate::state::GatewayState;

/// Maximum number of elements of a list body.
const BATCH_LIMIT: usize = 1_000;

/// Type of a body: an object whose fields have rules. Unknown fields are ignored.
pub trait RequestBody: Default + DeserializeOwned {
    /// Fields that DeerFlow's dialect ignores.
    const PLATFORM_ONLY: &'static [&'static str] = &[];
    /// Fields whose rules depend on the dialect, checked by the function that uses the body.
    const CHECKED_LATER: &'static [&'static str] = &[];
    /// `true` if issues do not repeat received values, which may be passwords.
    const IS_SECRET: bool = false;

    /// Returns the rules of the fields.
    fn layout() -> &'static Layout;
}

/// Declares the types of bodies, whose rules are compiled once from their schemas.
macro_rules! request_body {
    ($name:ty $(, platform_only: $platform:expr)? $(, checked_later: $later:expr)? $(, is_secret: $secret:expr)?) => {
        impl crate::extract::RequestBody for $name {
            $(const PLATFORM_ONLY: &'static [&'static str] = &$platform;)?
            $(const CHECKED_LATER: &'static [&'static str] = &$later;)?
            $(const IS_SECRET: bool = $secret;)?

            fn layout() -> &'static crate::extract::Layout {
                static LAYOUT: std::sync::LazyLock<crate::extract::Layout> =
                    std::sync::LazyLock::new(crate::extract::Layout::of::<$name>);
                &LAYOUT
            }
        }
    };
}
pub(crate) use request_body;

/// A JSON object as body. It is checked when it is read, so that a handler can check the request's
/// other parts first.
#[derive(Debug)]
pub struct Body<T> {
    map: Map<String, Value>,
    dialect: Dialect,
    of: PhantomData<fn() -> T>,
}

impl<T: RequestBody> Body<T> {
    /// A body that was sent in `dialect`, or is stored in its form.
    pub fn new(map: Map<String, Value>, dialect: Dialect) -> Self {
        Self {
            map,
            dialect,
            of: PhantomData,
        }
    }

    /// The object as it was sent.
    pub fn map(&self) -> &Map<String, Value> {
        &self.map
    }

    /// Returns the object as it was sent.
    pub fn into_map(self) -> Map<String, Value> {
        self.map
    }

    /// Returns the value, if all fields are valid.
    ///
    /// # Errors
    /// [`ApiError::Invalid`] with all issues.
    pub fn valid(self) -> Result<T, ApiError> {
        let (value, issues) = self.parts();
        issues.finish()?;
        Ok(value)
    }

    /// Returns the value and its issues, to which the caller may add. Invalid fields are absent
    /// from the value.
    pub fn parts(self) -> (T, Issues) {
        let (mut map, is_platform) = (self.map, self.dialect.is_platform());
        let mut unchecked = T::CHECKED_LATER.to_vec();
        if !is_platform {
            for name in T::PLATFORM_ONLY {
                map.swap_remove(*name);
            }
            unchecked.extend(T::PLATFORM_ONLY);
        }
        let mut list = T::layout().check(&mut map, &unchecked, is_platform);
        let value = decode(map).unwrap_or_else(|issue| {
            list.push(*issue);
            T::default()
        });
        if T::IS_SECRET {
            list.iter_mut().for_each(Issue::forget_input);
        }
        (value, Issues::new(T::layout().names(), list))
    }
}

/// Converts an object to `T`. A field that does not fit is named in the issue.
fn decode<T: DeserializeOwned>(map: Map<String, Value>) -> Result<T, Box<Issue>> {
    let current = RefCell::new(String::new());
    let fields = map
        .into_iter()
        .inspect(|(name, _)| current.borrow_mut().clone_from(name));
    T::deserialize(MapDeserializer::new(fields)).map_err(|error: serde_json::Error| {
        let loc = vec!["body".into(), current.borrow().as_str().into()];
        let reason = error.to_string();
        Box::new(Issue::new("value_error", loc, reason, &Value::Null))
    })
}

/// A JSON object of at most [`SHORT_BODY_LIMIT`] bytes as body, for routes that read it before the
/// client has proved who it is.
#[derive(Debug)]
pub(crate) struct ShortBody<T>(pub(crate) Body<T>);

/// A JSON object as body, or no body at all.
#[derive(Debug)]
pub struct OptionalBody<T>(pub Body<T>);

/// A JSON list as body, with at least one element.
#[derive(Debug)]
pub struct ListBody<T>(pub Vec<Body<T>>);

fn object(value: Value) -> Result<Map<String, Value>, ApiError> {
    match value {
        Value::Object(map) => Ok(map),
        other => {
            let message = "Input should be a valid dictionary or object to extract fields from";
            Err(ApiError::issue(Issue::new(
                "model_attributes_type",
                vec!["body".into()],
                message,
                &other,
            )))
        }
    }
}

/// Removes received values from the issues of a body that may contain passwords.
fn without_secrets<T: RequestBody>(error: ApiError) -> ApiError {
    match error {
        ApiError::Invalid(mut issues) if T::IS_SECRET => {
            issues.iter_mut().for_each(Issue::forget_input);
            ApiError::Invalid(issues)
        }
        other => other,
    }
}

/// Dialect of the request's path.
fn dialect_of(request: &Request) -> Dialect {
    let dialect = request.extensions().get::<Dialect>().copied();
    dialect.unwrap_or(Dialect::DeerFlow)
}

/// Rejects the nulls that the schema of `T` does not allow. Only the platform distinguishes null
/// and absent fields.
fn refuse_nulls<T: RequestBody>(
    value: &Value,
    at: Vec<Value>,
    dialect: Dialect,
) -> Result<(), ApiError> {
    let nulls = if dialect.is_platform() {
        T::layout().nulls(value, at)
    } else {
        Vec::new()
    };
    if nulls.is_empty() {
        Ok(())
    } else {
        Err(ApiError::Invalid(nulls))
    }
}

/// Reads a JSON object of at most `limit` bytes.
async fn read_object<T: RequestBody>(
    request: Request,
    state: &GatewayState,
    limit: usize,
) -> Result<Body<T>, ApiError> {
    let dialect = dialect_of(&request);
    match read_json(request, limit).await? {
        Some(value) => {
            let checked = refuse_nulls::<T>(&value, vec!["body".into()], dialect);
            let map = checked.and_then(|()| object(value));
            let map = map.map_err(without_secrets::<T>)?;
            check_fields(&map, &state.info.field_limits())?;
            Ok(Body::new(map, dialect))
        }
        None if dialect.is_platform() => Err(ApiError::InvalidJson("the body is empty".to_owned())),
        None => Err(ApiError::issue(Issue::new(
            "missing",
            vec!["body".into()],
            "Field required",
            &Value::Null,
        ))),
    }
}

impl<T: RequestBody> FromRequest<Arc<GatewayState>> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<GatewayState>) -> Result<Self, ApiError> {
        read_object(request, state, BODY_LIMIT).await
    }
}

impl<T: RequestBody> FromRequest<Arc<GatewayState>> for ShortBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<GatewayState>) -> Result<Self, ApiError> {
        read_object(request, state, SHORT_BODY_LIMIT)
            .await
            .map(Self)
    }
}

impl<T: RequestBody> FromRequest<Arc<GatewayState>> for OptionalBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<GatewayState>) -> Result<Self, ApiError> {
        let dialect = dialect_of(&request);
        let value = match read_json(request, BODY_LIMIT).await? {
            Some(value) => {
                refuse_nulls::<T>(&value, vec!["body".into()], dialect)?;
                value
            }
            None => Value::Null,
        };
        let map = match value {
            Value::Null => Map::new(),
            value => object(value)?,
        };
        check_fields(&map, &state.info.field_limits())?;
        Ok(Self(Body::new(map, dialect)))
    }
}

impl<T: RequestBody> FromRequest<Arc<GatewayState>> for ListBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<GatewayState>) -> Result<Self, ApiError> {
        let dialect = dialect_of(&request);
        let refused = |kind, message: &str, input: &Value| {
            Err(ApiError::issue(Issue::new(
                kind,
                vec!["body".into()],
                message,
                input,
            )))
        };
        let body = read_json(request, BODY_LIMIT).await?;
        let items = body.iter().filter_map(Value::as_array).flatten();
        let nulls = items
            .enumerate()
            .filter(|_| dialect.is_platform())
            .flat_map(|(index, item)| T::layout().nulls(item, vec!["body".into(), index.into()]))
            .take(MAX_NULL_ISSUES)
            .collect::<Vec<_>>();
        if !nulls.is_empty() {
            return Err(ApiError::Invalid(nulls));
        }
        match body {
            Some(Value::Null) if dialect.is_platform() => {
                refused("type", "Input should not be null", &Value::Null)
            }
            Some(Value::Array(items)) if items.is_empty() => {
                refused("too_short", "[] has less than 1 item", &json!([]))
            }
            Some(Value::Array(items)) if items.len() > BATCH_LIMIT => refused(
                "too_long",
                &format!("List should have at most {BATCH_LIMIT} items"),
                &items.len().into(),
            ),
            Some(Value::Array(items)) => Ok(Self(
                items
                    .into_iter()
                    .map(|item| {
                        let map = object(item)?;
                        check_fields(&map, &state.info.field_limits())?;
                        Ok(Body::new(map, dialect))
                    })
                    .collect::<Result<_, ApiError>>()?,
            )),
            Some(other) => refused("list_type", "Input should be a valid list", &other),
            None => Err(ApiError::InvalidJson("the body is empty".to_owned())),
        }
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
