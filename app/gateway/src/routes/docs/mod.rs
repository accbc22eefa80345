//! The OpenAPI document, and `GET /docs`: a self-contained page that shows it and can try its
//! operations.

use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::{Html, IntoResponse, Redirect};
use harness::runtime::compute::{HEAVY_BYTES, Size, heavy_poll};

use crate::error::ApiError;
use crate::openapi::Document;
use crate::routes::{App, ResponseResult};
use crate::state::Observability;

/// The page; `{nonce}` is replaced by the nonce of its script and style.
const PAGE: &str = include_str!("page.html");

/// `GET /openapi.json` and `GET /api/openapi.json`, unless disabled by the configuration.
pub(crate) async fn openapi(
    State(observability): State<Observability>,
    Extension(document): Extension<Document>,
) -> ResponseResult {
    if !observability.docs_enabled {
        return Err(ApiError::RouteNotFound);
    }
    // The first read builds the document.
    heavy_poll(Size::bytes(HEAVY_BYTES)).await;
    let text = document.text().map_err(ApiError::Internal)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// Returns the page. Its content security policy allows only its own script and calls to this
/// server.
pub(crate) async fn page(State(state): App) -> ResponseResult {
    if !state.observability.docs_enabled {
        return Err(ApiError::RouteNotFound);
    }
    let nonce = state.process.ids.random().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    );
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, Html(PAGE.replace("{nonce}", &nonce))).into_response())
}

/// `GET /redoc`: DeerFlow's second documentation page leads to the only one here.
pub(crate) async fn redoc(State(observability): State<Observability>) -> ResponseResult {
    if !observability.docs_enabled {
        return Err(ApiError::RouteNotFound);
    }
    Ok(Redirect::temporary("/docs").into_response())
}
