//! `GET /docs`: a page that shows the document and tries its operations. It needs nothing from elsewhere.

use axum::extract::State;
use axum::http::header;
use axum::response::{Html, IntoResponse};

use crate::error::ApiError;
use crate::routes::{App, Reply};

/// The page; where it says `{nonce}` comes the word that its own script and style go by.
const PAGE: &str = include_str!("page.html");

/// The page may run its own script and ask this server, nothing else.
pub(crate) async fn docs(State(state): App) -> Reply {
    if !state.docs_enabled {
        return Err(ApiError::RouteNotFound);
    }
    let nonce = state.ids.random().simple().to_string();
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
