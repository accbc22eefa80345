//! CORS for the configured origins.

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

use crate::guard::origin_policy::OriginPolicy;
use crate::http::trace_ids::TRACE_ID;

/// Response headers that browser clients may read.
const EXPOSED: [HeaderName; 6] = [
    header::CONTENT_LOCATION,
    header::LOCATION,
    HeaderName::from_static("x-pagination-total"),
    HeaderName::from_static("x-pagination-next"),
    crate::extract::REPLAYED,
    TRACE_ID,
];

/// Methods of the routes.
const METHODS: [Method; 6] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// The CORS layer for the origins of `origin_policy`; `None` if it has none.
pub(crate) fn cors(origin_policy: &OriginPolicy) -> Option<CorsLayer> {
    let policy = origin_policy.clone();
    let origins = move |origin: &HeaderValue, _: &_| {
        origin
            .to_str()
            .is_ok_and(|origin| policy.allows_origin(origin))
    };
    origin_policy.has_origins().then(|| {
        CorsLayer::new()
            .allow_origin(AllowOrigin::predicate(origins))
            .allow_credentials(true)
            .allow_methods(AllowMethods::list(METHODS))
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(EXPOSED)
    })
}
